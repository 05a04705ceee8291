//! What an `etcd_backup` stands for: what makes backups on a schedule, once the first backup, and the record in etcd.

use karmaform_model::{Arg, Child, ChildStep, Expansion, Object, Type, Value};

use super::arguments::{Arguments, Place, given};
use super::{hosts, pods};
use crate::cluster;

/// So long after its time a backup is ended from outside, in seconds: until then it can say by itself that it took too long.
pub(super) const GRACE: i64 = 120;
/// When whoever makes a backup is ended from outside, in seconds: it may wait for another one that has just begun.
pub(super) fn limit(backup: &Arguments) -> i64 {
    2 * backup.timeout + GRACE
}

/// The record: there before anything is there that writes to it, and gone after that.
pub(super) const RECORD: &str = "record";
/// What the first backup is called.
pub(super) const FIRST: &str = "first";

pub(super) fn child<const N: usize>(
    path: Vec<ChildStep>,
    resource_type: &str,
    arguments: [(&str, Arg); N],
    after: &[Vec<ChildStep>],
) -> Child {
    Child { after: after.to_vec(), ..cluster::child(path, resource_type, arguments) }
}

/// The children; there are no outputs.
pub(super) fn expand(backup: &Arguments, program_sum: fn() -> Option<String>) -> Expansion {
    let mut children = Vec::new();
    let via = match &backup.place {
        Place::Hosts(place) => {
            hosts::expand(backup, place, program_sum, &mut children);
            Arg::object([("provider", "ssh".into()), ("any_of", Arg::List(place.ways()))])
        }
        Place::Pods(place) => {
            pods::expand(backup, place, &mut children);
            place.connection().clone().into()
        }
    };
    let cluster = Arg::object([
        ("provider", "etcd".into()),
        ("id", backup.address.to_string().into()),
        ("endpoints", backup.client("endpoints").into()),
        ("ca_certificate", backup.client("ca_certificate").into()),
        ("certificate", backup.client("certificate").into()),
        ("private_key", backup.client("private_key").into()),
        ("via", via),
    ]);
    let arguments = [
        ("cluster", cluster),
        ("name", backup.name.as_str().into()),
        ("max_age_hours", backup.max_age_hours.into()),
        ("store", store(backup)),
    ];
    children.push(child(vec![ChildStep::new(RECORD)], "etcd_backup_record", arguments, &[]));
    Expansion { children, outputs: [].into() }
}

/// The bucket as the record keeps it, for who looks into it from elsewhere.
fn store(backup: &Arguments) -> Arg {
    let Some(bucket) = &backup.bucket else { return Value::null(Type::Any).into() };
    let kept = |name: &&str| Some(((*name).to_owned(), bucket.get(name)?.clone().into()));
    let names = ["bucket", "prefix", "region", "endpoint", "use_path_style", "ca_certificate", "access_key", "secret_key"];
    Arg::Object(names.iter().filter_map(kept).collect())
}

/// The files that `karmaform etcd backup run` is given: settings, and what is secret or has more than one line. `directory`: where backups lie or are
/// made; `programs`: where etcd's are, empty for the path.
pub(super) fn files(backup: &Arguments, host: &str, rank: usize, (directory, programs): (&str, &str)) -> Vec<(&'static str, Arg)> {
    let mut files = vec![
        ("ca.crt", backup.client("ca_certificate").into()),
        ("client.crt", backup.client("certificate").into()),
        ("client.key", backup.client("private_key").into()),
        ("settings", settings(backup, host, rank, (directory, programs))),
    ];
    let written = |name: &str| backup.bucket.as_ref().and_then(|b| given(b, name));
    for (file, name) in [("s3-ca.crt", "ca_certificate"), ("s3-access-key", "access_key"), ("s3-secret-key", "secret_key")] {
        files.extend(written(name).map(|value| (file, value.into())));
    }
    files
}

/// Lines of `NAME=value`.
fn settings(backup: &Arguments, host: &str, rank: usize, (directory, programs): (&str, &str)) -> Arg {
    let [hourly, daily, weekly] = backup.keep;
    let plain = format!(
        "# {address} on {host}. Written by karmaform; it undoes changes made here.\nNAME={}\nADDRESS={address}\nHOST={host}\nRANK={rank}\n\
         DIRECTORY={directory}\nPROGRAMS={programs}\nKEEP_HOURLY={hourly}\nKEEP_DAILY={daily}\nKEEP_WEEKLY={weekly}\nKEEP_ALL={}\nTIMEOUT={}\nENDPOINTS=",
        backup.name,
        backup.keep_all,
        backup.timeout,
        address = backup.address,
    );
    let mut text = vec![plain.into(), backup.endpoints().into(), "\nRECIPIENTS=".into(), backup.readers().into(), "\n".into()];
    let bucket = backup.bucket.as_ref();
    for (line, name) in [
        ("S3_BUCKET", "bucket"),
        ("S3_PREFIX", "prefix"),
        ("S3_REGION", "region"),
        ("S3_ENDPOINT", "endpoint"),
        ("S3_USE_PATH_STYLE", "use_path_style"),
    ] {
        if let Some(value) = bucket.and_then(|b: &Object| given(b, name)) {
            text.extend([format!("{line}=").into(), value.into(), "\n".into()]);
        }
    }
    Arg::Text(text)
}
