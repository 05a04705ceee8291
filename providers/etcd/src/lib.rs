//! etcd: members and health gates through etcd's own API, and the composites `etcd_cluster`, with its choreography, and
//! `etcd_backup`.
//!
//! Composites name their children by type and attributes; this package knows nothing of SSH, of systemd or of how certificates are made.

mod backup;
mod by_hand;
mod care;
mod choice;
mod client;
mod cluster;
mod gate;
mod look;
mod member;
mod operations;
mod pem;
mod prefix;
mod provider;
mod versions;

use std::sync::Arc;

use karmaform_model::{Adapter, Composite, Driver, Shelves};

pub use backup::{EtcdBackup, Turn};
pub use by_hand::*;
pub use cluster::EtcdCluster;
pub use provider::Etcd;

/// The provider `etcd`, ready for a registry.
pub fn driver() -> Arc<dyn Driver> {
    Arc::new(Adapter(Etcd::default()))
}

/// The same, with shelves that backups are chosen off.
pub fn driver_with(shelves: Arc<dyn Shelves>) -> Arc<dyn Driver> {
    Arc::new(Adapter(Etcd::with_shelves(shelves)))
}

/// The composites of this package, ready for a registry.
pub fn composites() -> Vec<Arc<dyn Composite>> {
    composites_of(|| None)
}

/// The same for a program that says its own SHA-256 sum (in hexadecimal digits), by which copies of it elsewhere are told from those of others.
pub fn composites_of(program_sum: fn() -> Option<String>) -> Vec<Arc<dyn Composite>> {
    vec![Arc::new(EtcdCluster), Arc::new(EtcdBackup { program_sum })]
}
