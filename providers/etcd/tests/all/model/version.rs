//! Versions of etcd as far as they decide who can start on whose data (facts of etcd, "Rolling upgrade and downgrade").

use karmaform_model::{Object, Value};

/// Minor version and patch of etcd 3.
pub(crate) type Version = (u32, u32);

/// The version that an archive is named by.
pub(super) fn of_archive(source: &str) -> Option<Version> {
    read(source.split("etcd-v3.").nth(1)?)
}

fn read(text: &str) -> Option<Version> {
    let mut numbers = text.split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The version before which this command saves the data.
pub(super) fn to_save_for(resource_type: &str, object: &Object) -> Option<Version> {
    let saves = object.get("command").and_then(Value::as_str).is_some_and(|c| c.contains("snapshot save"));
    let version = object.get("environment")?.get("ETCD_VERSION")?;
    read(version.as_str()?.strip_prefix("3.")?).filter(|_| saves && resource_type == "ssh_command")
}

/// Why a member of this version can't be one of a cluster that is at that minor version.
pub(super) fn refuses(cluster: u32, (minor, _): Version) -> Option<String> {
    match minor {
        _ if minor < cluster => Some(format!("invalid downgrade: 3.{minor} in a cluster of 3.{cluster}")),
        _ if minor > cluster + 1 => Some(format!("3.{minor} does not go with a cluster of 3.{cluster}")),
        _ => None,
    }
}
