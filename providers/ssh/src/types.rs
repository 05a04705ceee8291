//! The resource types: one file each, and their list.

mod artifact;
mod command;
mod directory;
mod file;
mod forgotten;
mod hosts_entries;
mod package;
mod placed;
mod systemd_unit;
mod user;

use crate::typed::{AnyType, Typed};

/// All of them.
pub(crate) fn all() -> Vec<Box<dyn AnyType>> {
    vec![
        Box::new(Typed(artifact::Artifact::new())),
        Box::new(Typed(command::Command::new())),
        Box::new(Typed(directory::Directory::new())),
        Box::new(Typed(file::File::new())),
        Box::new(Typed(hosts_entries::HostsEntries::new())),
        Box::new(Typed(package::Package::new())),
        Box::new(Typed(systemd_unit::SystemdUnit::new())),
        Box::new(Typed(user::User::new())),
    ]
}
