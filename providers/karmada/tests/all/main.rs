//! Control planes and members without a host or a cluster, in one program: for each one more is linked anew.

mod arguments;
mod choreography;
mod common;
mod expansion;
mod exposure;
mod host_order;
mod member;
mod on_hosts;
mod other_etcd;
