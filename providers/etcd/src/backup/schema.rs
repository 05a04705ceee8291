//! What an `etcd_backup` block may hold, and its defaults.

use std::sync::LazyLock;

use karmaform_model::{Attribute, Block, Nesting, Schema, Type};

/// How often, as systemd and Kubernetes both have a word for it.
pub(super) const SCHEDULE: &str = "hourly";
/// So many of each are kept, after what operators of etcd do.
pub(super) const KEEP: [(&str, i64); 3] = [("keep_hourly", 24), ("keep_daily", 7), ("keep_weekly", 4)];
/// A newest backup that is older is told of: one that failed once is none yet.
pub(super) const MAX_AGE_HOURS: i64 = 3;
/// The same for schedules that are words, which systemd and Kubernetes both know.
pub(super) const WORDS: [(&str, i64); 5] =
    [("hourly", MAX_AGE_HOURS), ("daily", 27), ("weekly", 8 * 24), ("monthly", 33 * 24), ("yearly", 368 * 24)];
/// Seconds.
pub(super) const TIMEOUT: i64 = 3_600;
/// The longest, in seconds: a command on a host may take a day, and that of the first backup may wait for another one and its turn.
pub(super) const LONGEST: i64 = 21_000;

pub(super) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Backups of an etcd cluster on a schedule: by a timer of systemd on each of its hosts, of which one does it, or by a CronJob (`kubernetes`). From \
         a healthy follower, into a directory, a volume, or a bucket (`s3`), encrypted for whom `age_recipients` names. Each backup is proven by a \
         restore into a scratch etcd before it counts; one that failed, or is too old, is decay. A backup is a file as `karmaform etcd snapshot` makes \
         it, with its manifest.",
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
            Attribute::optional(
                "hosts",
                Type::Any,
                "The hosts that take turns, by name: a `data \"ssh_host\"` with `for_each`, or a map of such objects. The first by name does it while it \
                 can. Or a block `kubernetes`.",
            ),
            Attribute::optional(
                "source",
                Type::String,
                "With `hosts`: the etcd release archive, a path or a `file:` or `https:` URL. `{arch}` (`amd64` or `arm64`, as the host is) and `{version}` \
                 are filled in.",
            ),
            Attribute::optional(
                "source_sha256",
                Type::String,
                "The SHA-256 sum of the archive, or the path or URL of a file that says it. Words are filled in as in `source`.",
            ),
            Attribute::optional(
                "program",
                Type::String,
                "With `hosts`: the karmaform that makes backups there, a path or a `file:` or `https:` URL; the one that runs now unless written. It must be \
                 of the hosts' architecture; `{arch}` in it is filled in.",
            ),
            Attribute::optional("program_sha256", Type::String, "The SHA-256 sum of `program`, or the path or URL of a file that says it."),
            Attribute::optional(
                "schedule",
                Type::String,
                "When: `hourly`, `daily`, `weekly`; on hosts also as systemd's OnCalendar has it (`*:0/15`, `*-*-* 03:00`), in pods as cron has it (`*/15 * * * *`).",
            )
            .or(SCHEDULE),
            Attribute::optional(
                "directory",
                Type::String,
                "With `hosts`: where backups lie, or, with `s3`, are made; `/var/backups/etcd/NAME` unless written.",
            ),
            Attribute::optional(
                "age_recipients",
                Type::list(Type::String),
                "Public keys of age (`age1...`, as `age-keygen` prints them): backups are encrypted, and who has one of their identities reads them. What \
                 makes them can't.",
            ),
            Attribute::optional("keep_hourly", Type::Number, "How many are kept of the newest of each hour.").or(KEEP[0].1),
            Attribute::optional("keep_daily", Type::Number, "How many are kept of the newest of each day.").or(KEEP[1].1),
            Attribute::optional("keep_weekly", Type::Number, "How many are kept of the newest of each week.").or(KEEP[2].1),
            Attribute::optional("keep_all", Type::Bool, "Whether old ones stay, all of them: for a bucket with rules of its own, or a key that may not delete.")
                .or(false),
            Attribute::optional(
                "max_age_hours",
                Type::Number,
                "How old the newest backup may be, in hours, until it is told of. Unless written: 3, or, where `schedule` is `daily`, `weekly` and so on, that and some hours.",
            ),
            Attribute::optional("timeout", Type::Number, "How long a backup may take with its proof, in seconds: 60 to 21000. Who waits for another one to end has all of it from then on.").or(TIMEOUT),
        ],
    )
    .with_blocks(vec![s3(), kubernetes()])
});

fn s3() -> Block {
    let text = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::String, doc);
    let schema = Schema::new(
        "Backups lie in a bucket of Amazon S3, or of any store that speaks its protocol.",
        vec![
            Attribute::required("bucket", Type::String, "Name of the bucket. It must be there already."),
            Attribute::required("prefix", Type::String, "Where in it: a path without a slash at either end, that nothing else uses."),
            text("region", "Region of the bucket; with an endpoint of one's own it is not needed."),
            text("endpoint", "Address of a store that is not Amazon's, with scheme, as it is reached from where backups are made."),
            Attribute::optional(
                "use_path_style",
                Type::Bool,
                "The bucket is part of the path and not of the host name: most stores other than Amazon's want that.",
            )
            .or(false),
            text("ca_certificate", "Who signs the store's certificate, if not one whom everybody trusts (PEM)."),
            text("access_key", "The access key. Without it: the identity of the host or pod, in Amazon's ways."),
            text("secret_key", "The secret key.").secret(),
        ],
    );
    Block { name: "s3", nesting: Nesting::Single, schema }
}

fn kubernetes() -> Block {
    let schema = Schema::new(
        "Backups are made by pods of a CronJob, which run karmaform in etcd's own image.",
        vec![
            Attribute::required("cluster", Type::Any, "The Kubernetes cluster: a `data \"kubernetes_cluster\"`, or its `connection`."),
            Attribute::required("namespace", Type::String, "The namespace; it must exist by then."),
            Attribute::required(
                "program_image",
                Type::String,
                "An image with karmaform, from which the program is taken: `docs/pipelines/Dockerfile` makes one.",
            ),
            Attribute::optional(
                "claim",
                Type::String,
                "Name of the PersistentVolumeClaim in the namespace that backups lie in, where there is no `s3`. Besides them it has room for two more databases and 1 GiB.",
            ),
            Attribute::optional(
                "name",
                Type::String,
                "What its objects are called; `etcd-backup-` and the resource's name unless written.",
            ),
            Attribute::optional("image", Type::String, "The image of etcd; `REGISTRY/etcd:VERSION-0` unless written."),
            Attribute::optional("registry", Type::String, "Where that image is; `registry.k8s.io` unless written."),
            Attribute::optional("image_pull_policy", Type::String, "`IfNotPresent`, `Always` or `Never`.").or("IfNotPresent"),
            Attribute::optional("image_pull_secrets", Type::list(Type::String), "Names of Secrets for registries, in the namespace."),
            Attribute::optional(
                "service_account",
                Type::String,
                "Whom the pods run as: for an identity that the bucket knows. They never ask the API server.",
            ),
            Attribute::optional("resources", Type::Any, "Requests and limits of the pods."),
            Attribute::optional("node_selector", Type::map(Type::String), "Labels that a pod's node must have."),
            Attribute::optional("tolerations", Type::Any, "Tolerations of the pods."),
        ],
    );
    Block { name: "kubernetes", nesting: Nesting::Single, schema }
}
