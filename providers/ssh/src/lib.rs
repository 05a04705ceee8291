//! Resources on Linux hosts over SSH: files, directories, users, artifacts, units of systemd, commands; and the hosts themselves.
//!
//! A host has one connection for the whole run. All questions to it go there as one script, and so does every change, with the questions
//! about what came of it; scripts and contents travel on standard input and are never arguments of a process. What karmaform made is
//! written down on the host, so that it is known there even if the state is lost.
//!
//! Knows nothing of configurations, plans and states, nor of other providers.

mod artifact;
mod checks;
mod client;
mod connection;
mod facts;
mod failure;
mod files;
mod gate;
mod host;
mod look;
mod owned;
mod provider;
mod script;
mod stop;
mod strays;
mod sum;
mod typed;
mod types;
mod unused;
mod values;

pub use client::Client;
pub use provider::Ssh;
