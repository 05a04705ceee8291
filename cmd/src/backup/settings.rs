//! What a backup is made by: a folder with `settings` (lines of `NAME=value`, as they are, without quotes) and files with what is secret or has more
//! than one line. Whoever writes the folder is `etcd_backup`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karmaform_model::{Diagnostic, Object, Value};
use karmaform_s3::S3Objects;
use sha2::{Digest as _, Sha256};

use crate::disk::hexadecimal;

/// The settings.
#[derive(Debug)]
pub(crate) struct Settings {
    /// What backups are called, and what they are noted under in the cluster.
    pub(crate) name: String,
    /// Whose they are, in the configuration.
    pub(crate) address: String,
    /// Where they are made.
    pub(crate) host: String,
    /// Who has a lower one goes first.
    pub(crate) rank: u64,
    /// Where backups lie, or where there is room to make them.
    pub(crate) directory: PathBuf,
    /// Where etcd's programs are; `None`: on the path.
    pub(crate) programs: Option<PathBuf>,
    /// So many of each are kept: hourly, daily, weekly.
    pub(crate) keep: [usize; 3],
    /// All of them are kept.
    pub(crate) keep_all: bool,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// Tells a backup by these settings from one by others, wherever it is made.
    pub(crate) digest: String,
    /// Whom they are encrypted for; nobody: they are not encrypted.
    pub(crate) recipients: Vec<String>,
    /// The connection to the cluster.
    pub(crate) cluster: Object,
    /// Where backups lie, if not in the directory.
    pub(crate) bucket: Option<Bucket>,
}

impl Settings {
    /// Reads the folder.
    ///
    /// # Errors
    /// Something is missing or can't be as it is.
    pub(crate) fn read(folder: &Path) -> Result<Self, Diagnostic> {
        let text = required(folder, "settings")?;
        let lines: BTreeMap<&str, &str> = text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once('=')).collect();
        let given = |name: &str| lines.get(name).copied().filter(|v| !v.is_empty());
        let must = |name: &str| given(name).ok_or_else(|| wrong(format!("it has no {name}")));
        let number = |name: &str| must(name)?.parse::<u64>().map_err(|_| wrong(format!("{name} is no number")));
        let count = |name: &str| Ok::<_, Diagnostic>(usize::try_from(number(name)?).unwrap_or(usize::MAX));
        let endpoints = must("ENDPOINTS")?.split(',').map(str::to_owned);
        let cluster = Object::from([
            ("id".to_owned(), must("NAME")?.into()),
            ("endpoints".to_owned(), Value::strings(endpoints)),
            ("ca_certificate".to_owned(), required(folder, "ca.crt")?.into()),
            ("certificate".to_owned(), required(folder, "client.crt")?.into()),
            ("private_key".to_owned(), Value::from(required(folder, "client.key")?).secret()),
        ]);
        let bucket = match given("S3_BUCKET") {
            None => None,
            Some(bucket) => Some(Bucket {
                bucket: bucket.to_owned(),
                prefix: must("S3_PREFIX")?.to_owned(),
                region: given("S3_REGION").map(str::to_owned),
                endpoint: given("S3_ENDPOINT").map(str::to_owned),
                use_path_style: given("S3_USE_PATH_STYLE") == Some("true"),
                ca_certificate: optional(folder, "s3-ca.crt")?,
                keys: optional(folder, "s3-access-key")?.zip(optional(folder, "s3-secret-key")?),
            }),
        };
        Ok(Self {
            name: must("NAME")?.to_owned(),
            address: must("ADDRESS")?.to_owned(),
            host: must("HOST")?.to_owned(),
            rank: number("RANK")?,
            directory: must("DIRECTORY")?.into(),
            programs: given("PROGRAMS").map(PathBuf::from),
            keep: [count("KEEP_HOURLY")?, count("KEEP_DAILY")?, count("KEEP_WEEKLY")?],
            keep_all: given("KEEP_ALL") == Some("true"),
            timeout: Duration::from_secs(number("TIMEOUT")?),
            digest: digest(&lines, bucket.as_ref()),
            recipients: given("RECIPIENTS").into_iter().flat_map(str::split_whitespace).map(str::to_owned).collect(),
            cluster,
            bucket,
        })
    }
}

/// Of all that is the same on all hosts; not of what is secret.
fn digest(lines: &BTreeMap<&str, &str>, bucket: Option<&Bucket>) -> String {
    let mut digest = Sha256::new();
    for (name, value) in lines.iter().filter(|(name, _)| !["HOST", "RANK"].contains(name)) {
        digest.update(format!("{name}={value}\n"));
    }
    digest.update(bucket.and_then(|b| b.keys.as_ref()).map_or("", |k| k.0.as_str()));
    digest.update(bucket.and_then(|b| b.ca_certificate.as_deref()).unwrap_or_default());
    hexadecimal(digest)[..16].to_owned()
}

/// A place in a bucket.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) use_path_style: bool,
    /// PEM.
    pub(crate) ca_certificate: Option<String>,
    /// Access key and secret key; `None`: Amazon's ways to credentials, from the environment on.
    pub(crate) keys: Option<(String, String)>,
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.place())
    }
}

impl Bucket {
    /// As people name it: `s3://BUCKET/PREFIX`.
    pub(crate) fn place(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// From the attribute `store` of an `etcd_backup_record`; `None`: there is no bucket.
    pub(crate) fn of(store: &Value) -> Option<Self> {
        let text = |name: &str| store.get(name).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        Some(Self {
            bucket: text("bucket")?,
            prefix: text("prefix")?,
            region: text("region"),
            endpoint: text("endpoint"),
            use_path_style: store.get("use_path_style").and_then(Value::as_bool) == Some(true),
            ca_certificate: text("ca_certificate"),
            keys: text("access_key").zip(text("secret_key")),
        })
    }

    /// The bucket. Nothing is asked yet.
    ///
    /// # Errors
    /// The place can't be one, or there are no credentials.
    pub(crate) fn open(&self, environment: &BTreeMap<String, String>, home: Option<&Path>) -> Result<S3Objects, Diagnostic> {
        let mut arguments = Object::from([
            ("bucket".to_owned(), self.bucket.as_str().into()),
            ("key".to_owned(), self.prefix.as_str().into()),
            ("use_path_style".to_owned(), self.use_path_style.into()),
        ]);
        let mut set = |name: &str, value: Option<Value>| drop(value.map(|v| arguments.insert(name.to_owned(), v)));
        set("region", self.region.as_deref().map(Value::from));
        set("endpoints", self.endpoint.as_deref().map(|e| Value::object([("s3", e.into())])));
        set("access_key", self.keys.as_ref().map(|k| k.0.as_str().into()));
        set("secret_key", self.keys.as_ref().map(|k| Value::from(k.1.as_str()).secret()));
        // It is read when the bucket is opened, and not again.
        let mut bundle = None;
        if let Some(ca) = &self.ca_certificate {
            let unwritable = |e: std::io::Error| Diagnostic::error("No temporary file", format!("The CA can't be written: {e}."));
            let mut file = tempfile::NamedTempFile::new().map_err(unwritable)?;
            file.write_all(ca.as_bytes()).map_err(unwritable)?;
            set("custom_ca_bundle", Some(file.path().to_string_lossy().into_owned().into()));
            bundle = Some(file);
        }
        let opened = S3Objects::open(&arguments, environment, home);
        drop(bundle);
        opened.map_err(in_block)
    }
}

/// What the store says in the words of its backend, in those of the block.
pub(super) fn in_block(mut why: Diagnostic) -> Diagnostic {
    let worded = |text: &str| {
        text.replace("custom_ca_bundle", "ca_certificate")
            .replace("of the s3 backend", "of the block s3")
            .replace("the s3 backend", "the store")
    };
    (why.summary, why.detail) = (worded(&why.summary), worded(&why.detail));
    why.hints.iter_mut().for_each(|hint| *hint = worded(hint));
    why
}

fn required(folder: &Path, name: &str) -> Result<String, Diagnostic> {
    optional(folder, name)?.ok_or_else(|| wrong(format!("there is no {name} in {}", folder.display())))
}

fn optional(folder: &Path, name: &str) -> Result<Option<String>, Diagnostic> {
    match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => Ok(Some(text).filter(|t| !t.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(format!("{} can't be read: {error}", folder.join(name).display()))),
    }
}

fn wrong(why: String) -> Diagnostic {
    Diagnostic::error("Not the settings of a backup", format!("The folder is none that an etcd_backup has written: {why}."))
        .with_hint("This is what timers and CronJobs start. Save a cluster by hand with karmaform etcd snapshot.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "# x\nNAME=main\nADDRESS=etcd_backup.main\nHOST=a\nRANK=1\nDIRECTORY=/b\nPROGRAMS=\nKEEP_HOURLY=2\nKEEP_DAILY=1\n\
                         KEEP_WEEKLY=0\nKEEP_ALL=false\nTIMEOUT=60\nRECIPIENTS=age1a age1b\nENDPOINTS=https://a:1,https://b:1\n";

    #[test]
    fn a_folder_is_read_and_what_is_missing_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let why = || Settings::read(folder.path()).unwrap_err().detail;
        assert!(why().contains("there is no settings"));
        write("settings", LINES);
        assert!(why().contains("there is no ca.crt"));
        for file in ["ca.crt", "client.crt", "client.key"] {
            write(file, "PEM");
        }
        let read = Settings::read(folder.path()).unwrap();
        assert_eq!((read.rank, read.keep, read.recipients.len(), read.programs.is_none()), (1, [2, 1, 0], 2, true));
        assert!(read.bucket.is_none());
        write("settings", &format!("{LINES}S3_BUCKET=b\nS3_PREFIX=p/q\nS3_USE_PATH_STYLE=true\nS3_REGION=\n"));
        write("s3-access-key", "k");
        write("s3-secret-key", "=s\"e'c");
        let bucket = Settings::read(folder.path()).unwrap().bucket.unwrap();
        assert!(bucket.use_path_style && bucket.region.is_none());
        assert_eq!(bucket.keys, Some(("k".into(), "=s\"e'c".into())));
        assert_eq!(format!("{bucket:?}"), "s3://b/p/q");
        let digest = |lines: &str| {
            write("settings", lines);
            Settings::read(folder.path()).unwrap().digest
        };
        assert_eq!(digest(LINES), digest(&LINES.replace("HOST=a", "HOST=b").replace("RANK=1", "RANK=2")));
        assert_ne!(digest(LINES), digest(&LINES.replace("age1b", "age1c")));
        let told = in_block(Diagnostic::error("x", "name its CA in custom_ca_bundle").with_hint("see the s3 backend"));
        assert!(told.detail.ends_with("ca_certificate") && told.hints[0] == "see the store");
        write("settings", &LINES.replace("RANK=1", "RANK=x"));
        assert!(why().contains("RANK is no number"));
    }
}
