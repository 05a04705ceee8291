//! Kubernetes clusters and the objects in them: any manifest, by server-side apply.
//!
//! Only `client`, `connection`, `through`, `multiplexed`, `forward`, `preflight_pod` and `preflight_check` build on the client library; it knows nothing of karmada and nothing of other providers.

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
mod dispatch;
mod exposed;
mod failure;
mod fields;
mod forward;
mod forward_target;
mod images;
mod list;
mod look;
mod manifest;
mod membership;
mod membership_leave;
mod membership_probe;
mod membership_taints;
mod multiplexed;
mod needs;
mod object;
mod owner;
mod pace;
mod pod;
mod pod_act;
mod pod_look;
mod pods;
mod pods_why;
mod preflight;
mod preflight_check;
mod preflight_pod;
mod provider;
mod ready;
mod rights;
mod runs;
mod service;
mod shape;
mod strays;
mod through;
mod twins;
mod used;
mod values;
mod wait;
mod wait_expression;

pub use provider::Kubernetes;
