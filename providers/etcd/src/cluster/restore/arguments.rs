//! What the block `restore` may hold.

use karmaform_model::{Arg, Attribute, Block, Diagnostic, Diagnostics, Kind, Nesting, Object, Schema, Type, Value, is_shelved};

use crate::cluster::arguments::known_text;
use crate::cluster::kubernetes::{Kubernetes, Storage};
use crate::cluster::places::chosen;
use crate::versions::Version;

/// By how much the revision is raised unless something else is written: more than a week of 1,500 writes a second (etcd's guide to recovery).
const BUMP: i64 = 1_000_000_000;

/// What is to be restored.
#[derive(Clone, Debug)]
pub(crate) struct Restore {
    /// The snapshot: a path on this machine or a URL.
    pub(crate) from: Value,
    /// Its sum, 64 hexadecimal digits; of a backup in a bucket empty, if it is not written.
    pub(crate) sha256: String,
    /// Which backup of a bucket, if it is one.
    pub(crate) shelved: Option<OnShelf>,
    /// A word for it; another one restores again.
    pub(crate) id: String,
    /// By how much the revision is raised; 0: it stays.
    pub(crate) bump: i64,
    /// Where karmaform is for pods; null on hosts.
    pub(crate) program_image: Value,
}

/// Backups in a bucket, one of which is chosen when planning.
#[derive(Clone, Debug)]
pub(crate) struct OnShelf {
    /// One backup, or the name of several.
    pub(crate) from: String,
    /// The newest of that time or before.
    pub(crate) before: Option<String>,
}

/// The block.
pub(crate) fn block() -> Block {
    let attributes = vec![
        Attribute::required(
            "from",
            Type::String,
            "The snapshot, as `karmaform etcd snapshot`, `etcd_backup` or `etcdctl snapshot save` writes it: a path on this machine, a URL, or the place of a \
             backup in a bucket. `s3://BUCKET/PREFIX/NAME` is the newest backup of that name.",
        ),
        Attribute::optional(
            "sha256",
            Type::String,
            "The SHA-256 sum of that file; its manifest has it. Of a backup in a bucket it is read there, and need not be written.",
        ),
        Attribute::optional(
            "before",
            Type::String,
            "With the name of backups in a bucket: the newest that was made at this time or before, RFC 3339 (`2026-11-25T03:00:00Z`).",
        ),
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
        let from = block.get("from").cloned().unwrap_or_else(|| Value::null(Type::String));
        let mut text = |name: &str| known_text(block, name, "").map_err(|why| found.push(why)).ok();
        let (sha256, id, before) = (text("sha256")?, text("id")?, text("before")?);
        // What has no sum names itself; what has one is planned otherwise in a bucket than as a file.
        let named = if sha256.is_empty() || may_be_shelved(&from) { text("from")? } else { from.as_str().unwrap_or_default().to_owned() };
        let shelved = on_shelf(&named, &before);
        found.extend(nothing_to_choose(&from, shelved.as_ref(), &before));
        let is_read = shelved.is_some() && sha256.is_empty();
        if !is_read && (sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit())) {
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
        found.extend(from.as_str().and_then(has_to_be_got));
        Some(Self { from, sha256: sha256.to_ascii_lowercase(), shelved, id, bump: bump?, program_image })
    }

    /// What names it: restored is what has another name. A sum that is written does, wherever the snapshot lies.
    pub(crate) fn name(&self) -> String {
        self.sha256.get(..12).map_or_else(|| self.asked(), |sum| self.with_id(sum))
    }

    /// What names the choice among backups in a bucket: what was asked for, and not what was chosen, since that another one comes to be the newest is no
    /// reason to restore.
    pub(in crate::cluster) fn asked(&self) -> String {
        match &self.shelved {
            None => self.with_id(""),
            Some(OnShelf { from, before: None }) => self.with_id(from),
            Some(OnShelf { from, before: Some(time) }) => self.with_id(&format!("{from} before {time}")),
        }
    }

    fn with_id(&self, what: &str) -> String {
        if self.id.is_empty() { what.to_owned() } else { format!("{what} {}", self.id) }
    }

    /// Where the snapshot is got from.
    pub(in crate::cluster) fn source(&self) -> Arg {
        if self.shelved.is_some() { Arg::child(&chosen(self), "place") } else { self.from.clone().into() }
    }

    /// The sum that it has to have.
    pub(in crate::cluster) fn sum(&self) -> Arg {
        if self.is_named_by_place() { Arg::child(&chosen(self), "sha256") } else { self.sha256.as_str().into() }
    }

    /// It is of a bucket, and its sum is not written: the manifest there has it.
    pub(in crate::cluster) fn is_named_by_place(&self) -> bool {
        self.shelved.is_some() && self.sha256.is_empty()
    }

    /// The [name](Self::name) of arguments as the state has them.
    pub(in crate::cluster) fn name_in(arguments: &Object) -> Option<String> {
        let block = arguments.get("restore").and_then(Value::as_entries)?;
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let (sha256, id) = (text("sha256").to_ascii_lowercase(), text("id").to_owned());
        let shelved = on_shelf(text("from"), text("before"));
        let (from, program_image) = (Value::null(Type::String), Value::null(Type::String));
        Some(Self { from, sha256, shelved, id, bump: 0, program_image }.name())
    }

    /// By how much this version can raise the revision.
    pub(crate) fn bump_of(&self, version: &Version) -> i64 {
        if (version.minor, version.patch) < (5, 10) { 0 } else { self.bump }
    }
}

fn on_shelf(from: &str, before: &str) -> Option<OnShelf> {
    let before = Some(before).filter(|time| !time.is_empty()).map(str::to_owned);
    is_shelved(from).then(|| OnShelf { from: from.to_owned(), before })
}

/// True of what is not known yet and may turn out to lie in a bucket.
fn may_be_shelved(from: &Value) -> bool {
    let Kind::Unknown(unknown) = &from.kind else { return false };
    unknown.prefix.as_deref().is_none_or(|prefix| is_shelved(prefix) || "s3://".starts_with(prefix))
}

/// A time that chooses nothing, or a choice that can't be called by what it is of.
fn nothing_to_choose(from: &Value, shelved: Option<&OnShelf>, before: &str) -> Option<Diagnostic> {
    if shelved.is_none() && !before.is_empty() {
        return Some(
            Diagnostic::error("A time for nothing", "`before` in `restore` chooses among backups in a bucket, and `from` names none.")
                .with_hint("Remove it, or let `from` be `s3://BUCKET/PREFIX/NAME`, the name that the backups begin with."),
        );
    }
    (shelved.is_some() && from.contains_secret()).then(|| {
        Diagnostic::error("A place that is secret", "`from` in `restore` names a bucket, and parts of the cluster are called by it.")
            .with_hint("Write it as it is, or with `nonsensitive()`: it holds no key.")
    })
}

/// What members can't be given as it lies there: what decrypts it is not known here.
fn has_to_be_got(from: &str) -> Option<Diagnostic> {
    (from.ends_with(".age") && !is_shelved(from)).then(|| {
        Diagnostic::error(
            "A backup that has to be got first",
            "`from` in `restore` names an encrypted backup, and takes one as it is: a path or a URL.",
        )
        .with_hint("Decrypt it with `age -d`, and write the file and its sum into the block; or name it in its bucket, where `karmaform` decrypts it.")
    })
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
