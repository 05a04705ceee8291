//! Backups of etcd by a schedule: what a timer of systemd on a host, or a CronJob in a cluster, starts (`karmaform etcd backup run`), and where backups
//! lie. One backup: whose turn it is, save, prove, encrypt, put it where it is to be, note it in the cluster, remove old ones.
//!
//! Knows no state and no configuration: a folder with settings and credentials is all that it is given (`providers/etcd/src/backup` writes it).

mod getting;
mod lent;
mod owner;
pub(crate) mod place;
mod retention;
mod run;
mod sealing;
mod settings;
mod shelf;
mod unfinished;
mod work;

pub(crate) use getting::{choose, fetch, identity, moment};
pub(crate) use lent::Buckets;
pub(crate) use retention::at;
pub(crate) use run::{Made, run};
pub(crate) use settings::{Bucket, Settings};
pub(crate) use shelf::{Entry, SEALED, Shelf, ShelfView, entries};

/// What the state calls the record of an `etcd_backup`.
pub(crate) const RECORD: &str = "etcd_backup_record";
