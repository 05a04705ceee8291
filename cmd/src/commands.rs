//! One file per command: its arguments and what it does.

pub(crate) mod apply;
pub(crate) mod bundle;
pub(crate) mod completion;
pub(crate) mod connect;
pub(crate) mod console;
pub(crate) mod destroy;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod etcd;
pub(crate) mod fmt;
pub(crate) mod force_unlock;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod output;
pub(crate) mod plan;
pub(crate) mod refresh;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod test;
pub(crate) mod validate;
pub(crate) mod version;
pub(crate) mod workspace;
