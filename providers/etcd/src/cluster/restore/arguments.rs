//! What the block `restore` may hold.

use karmaform_model::{Attribute, Block, Diagnostic, Diagnostics, Nesting, Object, Schema, Type, Value};

use crate::cluster::arguments::known_text;
use crate::cluster::kubernetes::{Kubernetes, Storage};
use crate::versions::Version;

/// By how much the revision is raised unless something else is written: more than a week of 1,500 writes a second (etcd's guide to recovery).
const BUMP: i64 = 1_000_000_000;

/// What is to be restored.
#[derive(Clone, Debug)]
pub(crate) struct Restore {
    /// The snapshot: a path on this machine or a URL.
    pub(crate) from: Value,
    /// Its sum, 64 hexadecimal digits.
    pub(crate) sha256: String,
    /// A word for it; another one restores again.
    pub(crate) id: String,
    /// By how much the revision is raised; 0: it stays.
    pub(crate) bump: i64,
    /// Where karmaform is for pods; null on hosts.
    pub(crate) program_image: Value,
}

/// The block.
pub(crate) fn block() -> Block {
    let attributes = vec![
        Attribute::required(
            "from",
            Type::String,
            "The snapshot, as `karmaform etcd snapshot`, `etcd_backup` or `etcdctl snapshot save` writes it: a path on this machine or a URL.",
        ),
        Attribute::required("sha256", Type::String, "The SHA-256 sum of that file; its manifest has it."),
        Attribute::optional("id", Type::String, "A word for this restoration: another one restores the same file once more."),
        Attribute::optional(
            "bump_revision",
            Type::Number,
            "By how much etcd's revision is raised, so that nobody who watches takes an older state for a newer one; 0: not at all. From etcd 3.5.10 on.",
        )
        .or(BUMP),
        Attribute::optional(
            "program_image",
            Type::String,
            "With `kubernetes`: an image with this version of karmaform, which does the work on the members' volumes.",
        ),
    ];
    let doc = "Restores the cluster from a snapshot, once: all members stop, and begin anew with what is in it. What was written since is lost. \
               Data of before stays beside the data directory until the block is taken out again.";
    Block { name: "restore", nesting: Nesting::Single, schema: Schema::new(doc, attributes) }
}

impl Restore {
    /// Reads and checks it. What is wrong goes to `found`.
    pub(crate) fn read(object: &Object, place: Option<&Kubernetes>, found: &mut Diagnostics) -> Option<Self> {
        let block = object.get("restore").and_then(Value::as_entries)?;
        let program_image = block.get("program_image").cloned().unwrap_or_else(|| Value::null(Type::String));
        found.extend(where_it_works(place, &program_image));
        let mut text = |name: &str| known_text(block, name, "").map_err(|why| found.push(why)).ok();
        let (sha256, id) = (text("sha256")?, text("id")?);
        if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
            found.push(
                Diagnostic::error("Bad sum", "`sha256` in `restore` is no SHA-256 sum, which has 64 hexadecimal digits.")
                    .with_hint("The manifest beside a snapshot has it; else `sha256sum FILE` says it."),
            );
        }
        if id.len() > 64 || !id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
            found.push(Diagnostic::error("Bad word", "`id` in `restore` is made of letters, digits, \".\", \"_\" and \"-\", at most 64."));
        }
        let bump = block.get("bump_revision").filter(|v| !v.is_null()).cloned().unwrap_or_else(|| BUMP.into());
        let bump = bump.as_i64().filter(|n| (0..=1 << 50).contains(n));
        if bump.is_none() {
            found.push(Diagnostic::error("Bad `bump_revision`", "It is a whole number from 0 on, known when planning."));
        }
        let from = block.get("from").cloned().unwrap_or_else(|| Value::null(Type::String));
        found.extend(from.as_str().and_then(has_to_be_got));
        Some(Self { from, sha256: sha256.to_ascii_lowercase(), id, bump: bump?, program_image })
    }

    /// What names it: restored is what has another name.
    pub(crate) fn name(&self) -> String {
        let file = self.sha256.get(..12).unwrap_or_default();
        if self.id.is_empty() { file.to_owned() } else { format!("{file} {}", self.id) }
    }

    /// The same of arguments as the state has them.
    pub(in crate::cluster) fn name_in(arguments: &Object) -> Option<String> {
        let block = arguments.get("restore").and_then(Value::as_entries)?;
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let (sha256, id) = (text("sha256").to_ascii_lowercase(), text("id").to_owned());
        let (from, program_image) = (Value::null(Type::String), Value::null(Type::String));
        Some(Self { from, sha256, id, bump: 0, program_image }.name())
    }

    /// By how much this version can raise the revision.
    pub(crate) fn bump_of(&self, version: &Version) -> i64 {
        if (version.minor, version.patch) < (5, 10) { 0 } else { self.bump }
    }
}

/// What members can't be given as it lies there: neither the store's keys nor what decrypts it is known here.
fn has_to_be_got(from: &str) -> Option<Diagnostic> {
    let what = match from {
        _ if from.starts_with("s3://") => "a backup in a bucket",
        _ if from.ends_with(".age") => "an encrypted backup",
        _ => return None,
    };
    Some(
        Diagnostic::error(
            "A backup that has to be got first",
            format!("`from` in `restore` names {what}, and takes a snapshot as it is: a path or a URL."),
        )
        .with_hint("Get it with `karmaform etcd backup get`, which decrypts it, and write the file and its sum into the block."),
    )
}

/// What works on volumes, or why nothing can.
fn where_it_works(place: Option<&Kubernetes>, program_image: &Value) -> Option<Diagnostic> {
    match place {
        None if !program_image.is_null() => Some(
            Diagnostic::error("An image for nothing", "`program_image` in `restore` is for clusters in pods, and this one is on hosts.")
                .with_hint("Remove it."),
        ),
        Some(place) if place.storage == Storage::EmptyDir => Some(
            Diagnostic::error(
                "Data in emptyDir volumes can't be restored",
                "What is restored is put into each member's volume while no pod runs, and these are gone with their pods.",
            )
            .with_hint(
                "Let `storage` be a storage class or \"hostPath\"; a cluster that was formed with emptyDir has to be made anew for that.",
            ),
        ),
        Some(_) if program_image.is_null() => Some(
            Diagnostic::error(
                "No program for the volumes",
                "An image of etcd has no program that puts a snapshot into a volume, and `program_image` in `restore` names none that has.",
            )
            .with_hint("Write the image with this version of karmaform, as for `etcd_backup`."),
        ),
        _ => None,
    }
}
