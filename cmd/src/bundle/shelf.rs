//! A bundle that is worked with: its files by what they are asked for by.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use karmaform_model::{Diagnostic, Stock, Supplied, Supply};

use super::file::{CONTENTS, Contents, FORMAT, key, place};

/// The largest table of contents, in bytes.
const LARGEST: u64 = 16 << 20;

/// What is said of half of one, and of something else.
const NOT_WHOLE: &str = "is no bundle, or not a whole one";

/// An open bundle.
pub(super) struct Shelf {
    name: String,
    file: Arc<File>,
    /// By key: where its bytes begin, how many there are, and their sum.
    places: BTreeMap<String, (u64, u64, String)>,
}

/// Some bytes of a file.
struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Shelf {
    /// Opens it. `name` is for messages. What is wrong completes a sentence that begins with the name.
    pub(super) fn open(path: &Path, name: &str) -> Result<Self, String> {
        // What the library says of a file that is something else holds bytes of that file.
        let broken = |_: io::Error| NOT_WHOLE.to_owned();
        let file = File::open(path).map_err(|e| format!("can't be opened ({})", crate::disk::reason(&e)))?;
        let kind = file.metadata().map_err(|e| format!("can't be opened ({})", crate::disk::reason(&e)))?;
        if !kind.is_file() {
            return Err("is no file".to_owned());
        }
        let mut archive = tar::Archive::new(&file);
        let mut files: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut contents = None;
        for entry in archive.entries_with_seek().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let place = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if place == CONTENTS {
                let mut bytes = Vec::new();
                (&mut entry).take(LARGEST).read_to_end(&mut bytes).map_err(broken)?;
                contents = Some(bytes);
            } else {
                let (at, size) = (entry.raw_file_position(), entry.size());
                if at.checked_add(size).is_none_or(|end| end > kind.len()) {
                    return Err(NOT_WHOLE.to_owned());
                }
                files.insert(place, (at, size));
            }
        }
        let contents = contents.ok_or("is no bundle, or not a whole one (it has no table of contents)")?;
        let format = serde_json::from_slice::<serde_json::Value>(&contents).ok().and_then(|v| v.get("format")?.as_u64());
        if let Some(format) = format.filter(|f| *f != u64::from(FORMAT)) {
            return Err(format!("has the format {format}, and this version reads {FORMAT}"));
        }
        let contents: Contents =
            serde_json::from_slice(&contents).map_err(|e| format!("has a table of contents that can't be read ({e})"))?;
        let mut places = BTreeMap::new();
        for note in contents.files {
            let (at, size) = files.get(&place(&note.sha256)).ok_or_else(|| format!("lacks the file {}", note.sha256))?;
            places.insert(note.key, (*at, *size, note.sha256));
        }
        Ok(Self { name: name.to_owned(), file: Arc::new(file), places })
    }
}

impl Stock for Shelf {
    fn name(&self) -> String {
        format!("the bundle {}", self.name)
    }

    fn has(&self, supply: &Supply) -> bool {
        self.places.contains_key(&key(supply))
    }

    fn find(&self, supply: &Supply) -> Result<Option<Supplied>, Diagnostic> {
        Ok(self.places.get(&key(supply)).map(|(at, size, sum)| Supplied {
            content: Box::new(Part { file: Arc::clone(&self.file), at: *at, end: at + size }),
            size: *size,
            sha256: sum.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::file::Writer;
    use karmaform_model::without_credentials;

    fn supply(source: &str) -> Supply {
        Supply { source: source.to_owned(), sha256: None, member: Some("tool".to_owned()), platform: None }
    }

    fn supplied(content: &'static [u8]) -> Supplied {
        Supplied { content: Box::new(content), size: content.len() as u64, sha256: crate::disk::sha256(content) }
    }

    fn made(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("site.kfbundle");
        let mut writer = Writer::new(&path).unwrap();
        let mut add = |source: &str, content| writer.add(&supply(source), without_credentials(source), supplied(content)).unwrap();
        add("https://u:hunter2@h/a?token=hunter2", b"one");
        add("https://h/b", b"two, which is longer");
        add("https://h/mirror/a", b"one");
        writer.finish(&path, Contents::new("0.1.0", vec!["amd64".to_owned()])).unwrap();
        path
    }

    #[test]
    fn what_was_put_in_comes_out_once_and_without_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path());
        let shelf = Shelf::open(&path, "site.kfbundle").unwrap();
        let read = |source: &str| {
            let mut text = String::new();
            shelf.find(&supply(source)).unwrap()?.content.read_to_string(&mut text).unwrap();
            Some(text)
        };
        assert_eq!(read("https://u:hunter2@h/a?token=hunter2").as_deref(), Some("one"));
        assert_eq!(read("https://h/b").as_deref(), Some("two, which is longer"));
        assert_eq!(read("https://h/mirror/a").as_deref(), Some("one"));
        assert_eq!(read("https://h/c"), None);
        assert!(!shelf.has(&Supply { member: None, ..supply("https://h/b") }), "another part of it is another file");
        let bytes = std::fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
        assert_eq!(tar::Archive::new(bytes.as_slice()).entries().unwrap().count(), 3, "two files and the table of contents");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn half_of_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = made(folder.path());
        let whole = std::fs::read(&path).unwrap();
        let why = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Shelf::open(&path, "x").err().unwrap()
        };
        for length in [0, 10, 600, 1024, whole.len() / 2] {
            assert!(why(&whole[..length]).contains("not a whole one"), "{length} bytes");
        }
        assert!(why(b"hello, this is some other file that is longer than a header").contains("is no bundle"));
        let later = String::from_utf8_lossy(&whole).replace("\"format\": 1", "\"format\": 2").into_bytes();
        assert!(why(&later).contains("has the format 2"), "{}", why(&later));
        std::fs::remove_file(&path).unwrap();
        assert!(Shelf::open(&path, "x").err().unwrap().contains("there is no such file"));
    }
}
