//! The block `restore` of an `etcd_cluster`: all members begin anew with what a snapshot holds (facts of etcd, "Backup and restore";
//! etcd's guide to disaster recovery). What is to be restored is made on every host, or in every volume, while the old cluster still runs, so that a damaged file, a
//! full disk or a wrong program is found before anything is stopped. Then all members stop, change over and start together.

mod arguments;
mod children;
mod order;
mod pods;
mod progress;
mod scripts;

pub(super) use arguments::{Restore, block};
pub(super) use children::{children, records};
pub(super) use order::of_joining;
pub(super) use pods::helpers_in_the_way;
pub(super) use progress::{Ended, Restoration, ended, restoration};
