//! The one test binary. What each module proves stands in its header.

mod asking;
mod cluster;
mod conformance;
mod encryption;
mod etcd_server;
mod etcd_state;
mod etcd_store;
mod events;
mod examples;
mod golden;
mod http_state;
mod karmada;
mod kubernetes_proxy;
mod kubernetes_state;
mod lab;
mod parts;
mod places;
mod project;
mod properties;
mod proxy;
mod reference;
mod remote_state;
mod s3;
mod tidy;
mod tool;
mod workspaces;
