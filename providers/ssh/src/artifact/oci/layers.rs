//! What is in a layer: a tar archive of what it adds, with marks for what it takes away from the layers below.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};

use tar::{Archive, EntryType};

use crate::artifact::ByPlace;
use crate::artifact::archive::open;

/// How the name of a mark begins: `.wh.NAME` takes NAME away.
const WHITEOUT: &str = ".wh.";

/// The mark that takes away everything that was in its directory.
const OPAQUE: &str = ".wh..wh..opq";

/// How what is compressed with zstd begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What something in a layer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file: the n-th entry of the archive.
    File(usize),
    /// A directory.
    Directory,
    /// A symbolic link, and where it leads to as it stands there.
    Symlink(String),
    /// Another name of a file: its path from the root.
    HardLink(String),
    /// A device and the like.
    Other,
}

/// A layer's table of contents. Paths are without a slash at either end.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// What it adds.
    pub(super) entries: BTreeMap<String, Kind>,
    /// What it takes away.
    pub(super) gone: BTreeSet<String>,
    /// Directories that it empties.
    pub(super) emptied: BTreeSet<String>,
}

/// Whether it is compressed in a way that we can't read.
pub(super) fn is_zstd(layer: &File) -> io::Result<bool> {
    let mut magic = Vec::new();
    ByPlace::new(layer).take(4).read_to_end(&mut magic)?;
    Ok(magic == ZSTD)
}

/// Reads the table.
pub(super) fn list(layer: &File) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for (index, entry) in Archive::new(open(layer)?).entries()?.enumerate() {
        let entry = entry?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let link = || entry.link_name_bytes().map(|l| text(&l)).unwrap_or_default();
        let kind = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File(index),
            EntryType::Directory => Kind::Directory,
            EntryType::Symlink => Kind::Symlink(link()),
            EntryType::Link => Kind::HardLink(link()),
            EntryType::XGlobalHeader => continue,
            _ => Kind::Other,
        };
        listing.add(&text(&entry.path_bytes()), kind);
    }
    Ok(listing)
}

/// The n-th entry of a layer.
pub(super) fn copy(layer: &File, index: usize, to: &mut File) -> io::Result<()> {
    let mut archive = Archive::new(open(layer)?);
    let mut entry = archive.entries()?.nth(index).ok_or_else(|| io::Error::other("the file vanished"))??;
    io::copy(&mut entry, to).map(|_| ())
}

impl Listing {
    /// Takes in an entry; of two of the same name the last one counts.
    pub(super) fn add(&mut self, path: &str, kind: Kind) {
        let path = plain(path);
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", &path));
        match name.strip_prefix(WHITEOUT) {
            None => drop(self.entries.insert(path, kind)),
            Some(_) if name == OPAQUE => drop(self.emptied.insert(directory.to_owned())),
            // ".wh..wh.": what a file system wrote for itself
            Some(gone) if !gone.starts_with(WHITEOUT) => drop(self.gone.insert(joined(directory, gone))),
            Some(_) => {}
        }
    }

    /// Whether nothing of the layers below can be seen at a path: it, or a directory above it, was taken away or emptied.
    pub(super) fn hides(&self, path: &str) -> bool {
        self.gone.contains(path) || self.emptied.contains("") || above(path).any(|a| self.gone.contains(a) || self.emptied.contains(a))
    }
}

/// The directories above a path, the uppermost first.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// A path below a directory.
pub(super) fn joined(directory: &str, path: &str) -> String {
    plain(&format!("{directory}/{path}"))
}

/// A path without empty parts and detours. Those that lead out of the root end there.
pub(super) fn plain(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
