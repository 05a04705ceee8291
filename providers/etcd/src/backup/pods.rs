//! Backups by pods: a Secret with settings and credentials, a CronJob, and a Job for the first backup.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Diagnostic, Diagnostics, Object, Type, Value};
use serde_json::{Value as Json, json};

use super::arguments::{Arguments, given, text};
use super::children::{GRACE, RECORD, child, files, limit};
use super::schema::WORDS;
use crate::cluster::kubernetes::program::{self, PROGRAM};
use crate::cluster::kubernetes::{self, Minor};
use crate::versions::Version;

/// A CronJob's name gets a number behind it, of eleven characters, and a pod's another six. Source: Kubernetes' documentation, "CronJob".
const LONGEST_NAME: usize = 45;
/// Where settings and credentials are in a pod.
const SETTINGS: &str = "/etc/karmaform/backup";
/// Where backups lie or are made.
const BACKUPS: &str = "/backups";
/// Who it is that makes them, in notes.
const HOST: &str = "(pod)";
/// A run that could not begin in time is left out, after so many seconds.
const DEADLINE: i64 = 600;
/// So long the Job of the first backup is there, in seconds; from Kubernetes 1.21 on.
const KEPT: i64 = 86_400;
/// What runs on the schedule.
const CRON_JOB: &str = "cron_job";
/// The first backup: another path than on hosts, where it is something else.
const FIRST: &str = "first_job";

/// The block `kubernetes`.
#[derive(Clone, Debug)]
pub(super) struct Pods {
    name: String,
    namespace: Value,
    connection: Value,
    minor: Minor,
    image: Value,
    block: Object,
}

impl Pods {
    /// Reads it. What is wrong goes to `found`.
    pub(super) fn read(
        backup: &str,
        block: &Object,
        version: Option<&Version>,
        schedule: &str,
        has_bucket: bool,
        found: &mut Diagnostics,
    ) -> Self {
        let name = text(block, "name", &format!("etcd-backup-{backup}").to_ascii_lowercase().replace('_', "-"), found);
        if !kubernetes::is_label(&name, LONGEST_NAME) {
            let detail = format!(
                "Its objects would be called \"{name}\". A name has only lower-case letters, digits and \"-\", and at most {LONGEST_NAME} characters."
            );
            found.push(
                Diagnostic::error("Not a name for Kubernetes", detail)
                    .with_hint("Write another one into `name` of the block `kubernetes`."),
            );
        }
        if !has_bucket && given(block, "claim").is_none() {
            found.push(
                Diagnostic::error(
                    "Nowhere to put backups",
                    "What a pod writes is gone with it, and there is neither a bucket nor a volume.",
                )
                .with_hint("Add a block `s3`, or name a PersistentVolumeClaim in `kubernetes.claim`."),
            );
        }
        if has_bucket && given(block, "claim").is_some() {
            found.push(
                Diagnostic::error("Two places for backups", "There is a block `s3` and a `kubernetes.claim`.")
                    .with_hint("Keep one of them; for both take two etcd_backup."),
            );
        }
        if !is_cron(schedule) {
            found.push(
                Diagnostic::error("A schedule that Kubernetes does not take", format!("`schedule` is \"{schedule}\"."))
                    .with_hint("Write `hourly`, `daily`, `weekly`, or five fields as cron has them: \"*/15 * * * *\"."),
            );
        }
        let (connection, facts) = kubernetes::connection(block, found);
        Self {
            name,
            namespace: kubernetes::namespace(block, found),
            minor: kubernetes::minor(&connection, facts),
            image: kubernetes::image(block, version, found),
            connection,
            block: block.clone(),
        }
    }

    /// The way to the cluster.
    pub(super) fn connection(&self) -> &Value {
        &self.connection
    }
}

/// True for what systemd has as well; Kubernetes has it with `@`.
fn is_word(schedule: &str) -> bool {
    WORDS.iter().any(|(word, _)| *word == schedule)
}

fn is_cron(schedule: &str) -> bool {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let is_field = |f: &&str| f.bytes().all(|b| b.is_ascii_alphanumeric() || b"*/,-".contains(&b));
    is_word(schedule) || (fields.len() == 5 && fields.iter().all(is_field))
}

/// All that is in the cluster.
pub(super) fn expand(backup: &Arguments, pods: &Pods, children: &mut Vec<Child>) {
    let (secret, job) = (vec![ChildStep::new("secret")], vec![ChildStep::new(CRON_JOB)]);
    let mut made = manifest(pods, "v1", "Secret", &pods.name, json!({ "type": "Opaque" }));
    for (name, content) in files(backup, HOST, 0, (BACKUPS, "")) {
        made.set(&["stringData", name], content);
    }
    children.push(object(pods, secret.clone(), made, &[]));
    let schedule = if is_word(&backup.schedule) { format!("@{}", backup.schedule) } else { backup.schedule.clone() };
    let mut made = manifest(
        pods,
        "",
        "CronJob",
        &pods.name,
        json!({ "spec": {
        "schedule": schedule, "concurrencyPolicy": "Forbid", "startingDeadlineSeconds": DEADLINE,
        "successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 2,
        "jobTemplate": { "metadata": { "labels": labels(pods) } },
    } }),
    );
    made.set(&["spec", "jobTemplate", "spec"], job_spec(backup, pods));
    let api_version = match pods.minor {
        Minor::Later => Value::unknown_not_null(Type::String),
        Minor::Known(minor) if minor < 21 => "batch/v1beta1".into(),
        Minor::Known(_) | Minor::Untold => "batch/v1".into(),
    };
    made.set(&["apiVersion"], api_version.into());
    children.push(object(pods, job.clone(), made, &[secret.clone(), vec![ChildStep::new(RECORD)]]));
    children.push(first(backup, pods, &[secret, job]));
}

/// The first backup is made at once, and again when what makes it has changed: what can't work is found in the apply that made it so.
fn first(backup: &Arguments, pods: &Pods, after: &[Vec<ChildStep>]) -> Child {
    let mut made = manifest(pods, "batch/v1", "Job", &format!("{}-first", pods.name), json!({}));
    made.set(&["spec"], job_spec(backup, pods));
    // One that failed is looked at, and then nobody needs it any more.
    made.set(&["spec", "ttlSecondsAfterFinished"], KEPT.into());
    let settings = files(backup, HOST, 0, (BACKUPS, "")).into_iter().find(|(name, _)| *name == "settings").map(|(_, settings)| settings);
    let settings = settings.map(|settings| ("settings".to_owned(), settings));
    let key = backup.bucket.as_ref().and_then(|b| given(b, "secret_key")).map(|key| ("secret_key".to_owned(), key.into()));
    let arguments = [
        ("cluster", pods.connection.clone().into()),
        ("manifest", made),
        ("triggers", Arg::Object(settings.into_iter().chain(key).collect())),
        ("timeout", (limit(backup) + GRACE).into()),
    ];
    child(vec![ChildStep::new(FIRST)], "kubernetes_job", arguments, after)
}

/// A run that was no success and that the record in etcd says nothing of: its pod never got so far that it could. What the record has to say itself is
/// enough, and so is a newer backup that something else made: the Job of an apply, for one, which is none of the CronJob's.
pub(super) fn unnoted(seen: &BTreeMap<&[ChildStep], &Object>) -> Option<(Vec<ChildStep>, Diagnostic)> {
    let at = |name: &str| seen.get([ChildStep::new(name)].as_slice());
    let record = at(RECORD).filter(|record| record.get("healthy").and_then(Value::as_bool) == Some(true))?;
    let when = at(CRON_JOB)?.get("missed")?.as_str()?;
    if record.get("last").and_then(Value::as_str).is_some_and(|last| last >= when) {
        return None;
    }
    let detail = format!("The one that was to be made at {when} was not, and nothing is noted of why: its pod did not get so far.");
    let found = Diagnostic::warning("A backup was not made", detail)
        .with_hint("Look at the newest Job of the CronJob, and at its events: `kubectl describe`.");
    Some((vec![ChildStep::new(CRON_JOB)], found))
}

fn labels(pods: &Pods) -> Json {
    json!({
        "app.kubernetes.io/name": "etcd-backup", "app.kubernetes.io/instance": pods.name, "app.kubernetes.io/managed-by": "karmaform",
        "app.kubernetes.io/part-of": "etcd",
    })
}

fn manifest(pods: &Pods, api_version: &str, kind: &str, name: &str, rest: Json) -> Arg {
    kubernetes::manifest_of((Some(&pods.namespace), &labels(pods)), api_version, kind, name, rest)
}

fn object(pods: &Pods, path: Vec<ChildStep>, manifest: Arg, after: &[Vec<ChildStep>]) -> Child {
    let arguments = [
        ("cluster", pods.connection.clone().into()),
        ("manifest", manifest),
        ("reclaim", true.into()),
        ("exclusive", true.into()),
        // Servers leave the pods of a Job behind unless told otherwise.
        ("propagation", "background".into()),
    ];
    child(path, "kubernetes_object", arguments, after)
}

/// What a Job does: tried once, since the next one comes by itself.
fn job_spec(backup: &Arguments, pods: &Pods) -> Arg {
    let mut spec = Arg::from_json(
        &json!({ "backoffLimit": 0, "activeDeadlineSeconds": limit(backup), "template": { "metadata": { "labels": labels(pods) } } }),
    );
    spec.set(&["template", "spec"], pod_spec(backup, pods));
    spec
}

fn pod_spec(backup: &Arguments, pods: &Pods) -> Arg {
    let lies = given(&pods.block, "claim").filter(|_| backup.bucket.is_none());
    let mount = |name: &str, path: &str| json!({ "name": name, "mountPath": path });
    let mut spec = Arg::from_json(&json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": program::pod_security(false),
        "initContainers": [program::installer()],
        "containers": [{
            "name": "backup",
            "command": [program::installed(), "etcd", "backup", "run", SETTINGS],
            // etcd's image may have no authorities: those of the first image come along.
            "env": [
                { "name": "KF_IN_AUTOMATION", "value": "1" }, { "name": "TMPDIR", "value": "/tmp" },
                { "name": "SSL_CERT_FILE", "value": format!("{PROGRAM}/ca-certificates.crt") },
            ],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": program::container_security(),
            "volumeMounts": [
                { "name": "settings", "mountPath": SETTINGS, "readOnly": true },
                program::mount(),
                mount("backups", BACKUPS),
                mount("tmp", "/tmp"),
            ],
        }],
        "volumes": [
            { "name": "settings", "secret": { "secretName": pods.name, "defaultMode": 0o440 } },
            { "name": "program", "emptyDir": {} },
            { "name": "tmp", "emptyDir": {} },
            { "name": "backups" },
        ],
    }));
    match lies {
        Some(claim) => spec.set(&["volumes", "3", "persistentVolumeClaim", "claimName"], claim.into()),
        None => spec.set(&["volumes", "3", "emptyDir"], Arg::Object([].into())),
    }
    let program_image = given(&pods.block, "program_image").unwrap_or_else(|| Value::unknown_not_null(Type::String));
    spec.set(&["initContainers", "0", "image"], program_image.into());
    spec.set(&["containers", "0", "image"], pods.image.clone().into());
    for (name, paths) in [
        ("image_pull_policy", &[&["initContainers", "0", "imagePullPolicy"][..], &["containers", "0", "imagePullPolicy"]][..]),
        ("resources", &[&["initContainers", "0", "resources"], &["containers", "0", "resources"]]),
        ("tolerations", &[&["tolerations"]]),
        ("node_selector", &[&["nodeSelector"]]),
        ("service_account", &[&["serviceAccountName"]]),
    ] {
        if let Some(written) = given(&pods.block, name) {
            paths.iter().for_each(|path| spec.set(path, written.clone().into()));
        }
    }
    if let Some(secrets) = kubernetes::pull_secrets(&pods.block) {
        spec.set(&["imagePullSecrets"], secrets);
    }
    spec
}
