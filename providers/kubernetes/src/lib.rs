//! Kubernetes clusters and the objects in them: any manifest, by server-side apply.
//!
//! Only `client`, `connection`, `through`, `multiplexed`, `forward`, `preflight_pod`, `preflight_check` and `exec` build on the client library; it knows nothing of karmada and nothing of other providers.

mod accepts;
mod act;
mod again;
mod archive;
mod archive_act;
mod archive_look;
mod archive_read;
mod archive_source;
mod builtin;
mod certificate;
mod client;
mod cluster;
mod connection;
mod cron;
mod defaults;
mod dispatch;
mod exclusive;
mod exec;
mod exec_input;
mod exposed;
mod failure;
mod fields;
mod forward;
mod forward_target;
mod grown;
mod helper;
mod images;
mod job;
mod known_place;
mod list;
mod look;
mod manifest;
mod membership;
mod membership_leave;
mod membership_probe;
mod membership_taints;
#[cfg(test)]
mod membership_told_tests;
#[cfg(test)]
mod mock;
mod multiplexed;
mod needs;
mod object;
mod owner;
mod pace;
mod pod;
mod pod_act;
mod pod_look;
mod pod_node;
mod pods;
mod pods_by_hand;
mod pods_why;
mod preflight;
mod preflight_check;
mod preflight_pod;
mod provider;
mod question;
mod ready;
mod rights;
mod runs;
mod service;
mod shape;
mod start;
mod stop;
mod strays;
mod surroundings;
mod through;
mod trust;
mod twins;
mod used;
mod values;
mod wait;
mod wait_expression;

pub use provider::Kubernetes;
