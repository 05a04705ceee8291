//! A backup from its shelf into a file: which one it is, and its bytes, that are there only when they are known to be whole.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use karmaform_encryption::AgeFiles;
use karmaform_etcd::verify;
use karmaform_model::Diagnostic;
use tempfile::NamedTempFile;

use super::shelf::{Entry, SEALED, Shelf};
use super::unfinished::Unfinished;
use crate::disk::reason_to_write;

/// What decrypts: a file as `age-keygen` writes it. `named`: what gave it, for messages.
///
/// # Errors
/// It can't be read, or is none.
pub(crate) fn identity(file: &Path, named: &str) -> Result<AgeFiles, Diagnostic> {
    AgeFiles::new(&[], Some(file)).map_err(|why| {
        let detail = why.detail.replace("that \"age_identity_file\" names", named);
        Diagnostic { summary: "Not an identity of age".to_owned(), detail, ..why }
    })
}

/// A time as somebody wrote it. `named`: where, for messages.
///
/// # Errors
/// It is none.
pub(crate) fn moment(named: &str, text: &str) -> Result<Timestamp, Diagnostic> {
    text.parse::<Timestamp>().map_err(|_| {
        Diagnostic::error("Not a time", format!("{named} is \"{text}\".")).with_hint("Write it as RFC 3339 has it: 2026-01-02T03:04:05Z.")
    })
}

/// The one of this name, or the newest that is whole, of a time or before it. Of a time that is still to come it is only by its name.
///
/// # Errors
/// There is none.
pub(crate) fn choose(found: Vec<Entry>, name: Option<&str>, before: Option<Timestamp>, now: DateTime) -> Result<Entry, Diagnostic> {
    let none =
        |detail: String| Diagnostic::error("No such backup", detail).with_hint("See which there are with karmaform etcd backup list.");
    let limit = before.map(|t| t.to_zoned(TimeZone::UTC).datetime());
    let mut fitting = found.into_iter().rev().filter(|e| name.is_none_or(|n| e.stem == n) && limit.is_none_or(|l| e.time <= l));
    if let Some(name) = name {
        let entry = fitting.next().ok_or_else(|| none(format!("There is none with the name \"{name}\".")))?;
        let broken = || none(format!("\"{name}\" is not whole: its data or its manifest is missing."));
        return if entry.is_whole() { Ok(entry) } else { Err(broken()) };
    }
    fitting.find(|e| e.is_whole() && e.time <= now).ok_or_else(|| {
        none(match before {
            Some(time) => format!("There is none that was made at {time} or before and that is whole."),
            None => "There is none that is whole.".to_owned(),
        })
    })
}

/// All of it, or nothing. Beside where it is to be, so that it is the disk with the room.
///
/// # Errors
/// It is gone, is damaged, or can't be decrypted or written.
pub(crate) async fn fetch(
    shelf: &Shelf,
    entry: &Entry,
    identity: Option<&AgeFiles>,
    (out, beside): (&Path, &Path),
) -> Result<(), Diagnostic> {
    let Shelf::Bucket(bucket) = shelf else { return Err(gone(entry)) };
    let (data, manifest) = (entry.data.as_deref().unwrap_or_default(), entry.manifest.as_deref().unwrap_or_default());
    let is_encrypted = data.ends_with(SEALED);
    let Some(identity) = (if is_encrypted { identity.map(Some) } else { Some(None) }) else {
        return Err(Diagnostic::error("No identity", format!("{data} is encrypted, and nothing was given to decrypt it with."))
            .with_hint("Give -identity FILE: the file of age-keygen, of one of `age_recipients`."));
    };
    let folder = out.parent().unwrap_or(Path::new("."));
    let unwritable =
        |e: std::io::Error| Diagnostic::error("The file can't be written", format!("{}: {}.", out.display(), reason_to_write(&e)));
    let work = Unfinished::new(folder).map_err(unwritable)?;
    let file = || NamedTempFile::new_in(work.path()).map_err(unwritable);
    let get = async |name: &str, file: &NamedTempFile| {
        let mut to = BufWriter::new(file.as_file());
        let is_there = bucket.get(name, &mut to).await?;
        to.flush().map_err(unwritable)?;
        if is_there { Ok(()) } else { Err(gone(entry)) }
    };
    let (got, told) = (file()?, file()?);
    get(data, &got).await?;
    get(manifest, &told).await?;
    let plain = match identity {
        None => got,
        Some(identity) => {
            let plain = file()?;
            let mut from = BufReader::with_capacity(1 << 20, File::open(got.path()).map_err(unwritable)?);
            let mut to = BufWriter::with_capacity(1 << 20, plain.as_file());
            identity.open(&mut from, &mut to)?;
            to.flush().map_err(unwritable)?;
            drop(to);
            plain
        }
    };
    // Looked at under names by which a snapshot and its manifest find each other.
    let (whole, its) = (work.path().join("whole.db"), work.path().join("whole.db.json"));
    plain.persist(&whole).map_err(|e| unwritable(e.error))?;
    told.persist(&its).map_err(|e| unwritable(e.error))?;
    verify(&whole).map_err(|d| Diagnostic { detail: d.detail.replace(&whole.display().to_string(), data), ..d })?;
    File::open(&whole).and_then(|f| f.sync_all()).map_err(unwritable)?;
    std::fs::rename(&its, beside).and_then(|()| std::fs::rename(&whole, out)).map_err(unwritable)
}

pub(super) fn gone(entry: &Entry) -> Diagnostic {
    Diagnostic::error("The backup is gone", format!("{} was listed, and is not there any more.", entry.stem))
        .with_hint("Another run removes old ones; take a newer one.")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::retention::at;
    use super::super::shelf::entries;
    use super::*;

    #[test]
    fn the_newest_that_fits_and_is_whole_is_chosen() {
        let whole = |day: u8| [format!("m-2026010{day}T000000Z.db"), format!("m-2026010{day}T000000Z.db.json")];
        let mut files: BTreeMap<String, u64> = [1, 2, 3].into_iter().flat_map(whole).map(|f| (f, 1)).collect();
        files.insert("m-20260104T000000Z.db".to_owned(), 1);
        files.extend(whole(9).map(|f| (f, 1)));
        let choose = |name: Option<&str>, before: Option<&str>| {
            let before = before.map(|t| moment("x", t).unwrap());
            super::choose(entries("m", &files), name, before, at(1_767_571_200)).map(|e| e.stem).map_err(|d| d.detail)
        };
        assert_eq!(choose(None, None), Ok("m-20260103T000000Z".into()));
        assert_eq!(choose(None, Some("2026-01-03T00:00:00Z")), Ok("m-20260103T000000Z".into()));
        assert_eq!(choose(None, Some("2026-01-03T00:59:59+01:00")), Ok("m-20260102T000000Z".into()));
        assert!(choose(None, Some("2025-01-01T00:00:00Z")).unwrap_err().contains("or before"));
        assert_eq!(choose(Some("m-20260101T000000Z"), None), Ok("m-20260101T000000Z".into()));
        assert!(choose(Some("m-20260104T000000Z"), None).unwrap_err().contains("not whole"));
        assert_eq!(choose(Some("m-20260109T000000Z"), None), Ok("m-20260109T000000Z".into()));
        assert!(choose(Some("x"), None).unwrap_err().contains("none with the name"));
        assert!(moment("-before", "yesterday").is_err());
    }
}
