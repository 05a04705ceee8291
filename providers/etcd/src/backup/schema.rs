//! What an `etcd_backup` block may hold, and its defaults.

use std::sync::LazyLock;

use karmaform_model::{Attribute, Schema, Type};

/// How often, as systemd says it.
pub(super) const SCHEDULE: &str = "hourly";
/// So many of each are kept, after what operators of etcd do.
pub(super) const KEEP: [(&str, i64); 3] = [("keep_hourly", 24), ("keep_daily", 7), ("keep_weekly", 4)];
/// A newest backup that is older is told of: an hourly one that failed once is none yet.
pub(super) const MAX_AGE_HOURS: i64 = 3;

pub(super) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Backups of an etcd cluster on a schedule, by a timer of systemd on each of its hosts: one of them does it, from a healthy follower, into a \
         directory of its own. Each backup is proven by a restore into a scratch etcd on the host before it counts; one that failed, or is too old, is \
         decay. A backup is a file as `karmaform etcd snapshot` makes it, with its manifest.",
        vec![
            Attribute::required(
                "cluster",
                Type::Any,
                "What a client of the cluster needs: `etcd_cluster.NAME.client`, or an object with `endpoints`, `ca_certificate`, `certificate` and \
                 `private_key`.",
            ),
            Attribute::required(
                "version",
                Type::String,
                "The cluster's version, known when planning: the variable that the cluster has it from. Backups are proven by the same minor version.",
            ),
            Attribute::required(
                "hosts",
                Type::Any,
                "The hosts that take turns, by name: a `data \"ssh_host\"` with `for_each`, or a map of such objects. The first by name does it while it can; \
                 backups lie on the host that made them.",
            ),
            Attribute::required("source", Type::String, "The etcd release archive, a path or a `file:` or `https:` URL."),
            Attribute::optional(
                "source_sha256",
                Type::String,
                "The SHA-256 sum of the archive, or the path or URL of a file that says it.",
            ),
            Attribute::optional("schedule", Type::String, "When, as systemd's OnCalendar has it: `hourly`, `*:0/15`, `*-*-* 03:00`.")
                .or(SCHEDULE),
            Attribute::optional("directory", Type::String, "Where backups lie on a host; `/var/backups/etcd/NAME` unless written."),
            Attribute::optional("keep_hourly", Type::Number, "How many are kept of the newest of each hour.").or(KEEP[0].1),
            Attribute::optional("keep_daily", Type::Number, "How many are kept of the newest of each day.").or(KEEP[1].1),
            Attribute::optional("keep_weekly", Type::Number, "How many are kept of the newest of each week.").or(KEEP[2].1),
            Attribute::optional("max_age_hours", Type::Number, "How old the newest backup may be, in hours, until it is told of.")
                .or(MAX_AGE_HOURS),
        ],
    )
});
