//! The files that expressions read, below one directory. Remembers what was read, so that a saved plan can say so.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use karmaform_lang::Files;
use sha2::{Digest as _, Sha256};

/// A directory listing stops here; nobody means a whole disk.
const MOST_FILES: usize = 100_000;

/// The real disk.
#[derive(Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    reads: Mutex<BTreeMap<String, String>>,
}

impl Disk {
    /// Relative paths are below `root`.
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), reads: Mutex::default() }
    }

    /// Every file that was read, with the SHA-256 of what was in it; an empty one if it could not be read.
    pub(crate) fn reads(&self) -> BTreeMap<String, String> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The hash of a file as it is now; of a directory, whose name ends in a slash, that of the names in it.
    pub(crate) fn hash(&self, path: &str) -> String {
        if let Some(directory) = path.strip_suffix('/') {
            return self.files_of(directory).map(|names| sha256(names.join("\n").as_bytes())).unwrap_or_default();
        }
        std::fs::read(self.root.join(path)).map(|bytes| sha256(&bytes)).unwrap_or_default()
    }
}

impl Disk {
    fn files_of(&self, directory: &str) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.root.join(directory)).map_err(|e| reason(&e))? {
            let entry = entry.map_err(|e| reason(&e))?;
            if !entry.path().is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let result = std::fs::read(self.root.join(path)).map_err(|e| reason(&e));
        let hash = result.as_ref().map(|bytes| sha256(bytes)).unwrap_or_default();
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), hash);
        result
    }

    fn exists(&self, path: &str) -> Result<bool, String> {
        match std::fs::metadata(self.root.join(path)) {
            Ok(found) if found.is_file() => Ok(true),
            Ok(found) if found.is_dir() => Err("is a directory".to_owned()),
            Ok(_) => Err("is no regular file".to_owned()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("can't be looked at: {}", reason(&error))),
        }
    }

    fn names(&self, directory: &str) -> Result<Vec<String>, String> {
        let names = self
            .files_of(directory)
            .map_err(|why| if why == "there is no such file" { "there is no such directory".to_owned() } else { why })?;
        let hash = sha256(names.join("\n").as_bytes());
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("{directory}/"), hash);
        Ok(names)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        self.list_to(directory, usize::MAX)
    }

    fn list_to(&self, directory: &str, levels: usize) -> Result<Vec<String>, String> {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        let base = self.root.join(directory);
        let mut walk = Walk { base: &base, above: Vec::new(), found: Vec::new(), entered: 0 };
        match std::fs::metadata(&base) {
            Ok(kind) if kind.is_dir() => walk.below(&base, levels)?,
            // There is nothing below a file, and a folder of things that may be added is often not there yet.
            Ok(_) => {}
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
            Err(error) => return Err(reason(&error)),
        }
        walk.found.sort();
        Ok(walk.found)
    }
}

/// A search for files.
struct Walk<'a> {
    base: &'a Path,
    /// The real paths of the directories that it is in.
    above: Vec<PathBuf>,
    /// Relative to the base. Links that lead nowhere are among them.
    found: Vec<String>,
    /// How often it went into a directory.
    entered: usize,
}

impl Walk<'_> {
    /// All files of a directory, so many levels deep. Links are followed, but for one that leads to where the walk is already.
    fn below(&mut self, directory: &Path, levels: usize) -> Result<(), String> {
        let real = std::fs::canonicalize(directory).map_err(|e| reason(&e))?;
        if self.above.contains(&real) {
            return Ok(());
        }
        self.entered += 1;
        if self.entered > MOST_FILES {
            return Err(format!("there are more than {MOST_FILES} directories, where links lead to some again and again"));
        }
        self.above.push(real);
        for entry in std::fs::read_dir(directory).map_err(|e| reason(&e))? {
            let path = entry.map_err(|e| reason(&e))?.path();
            match std::fs::metadata(&path) {
                Ok(kind) if kind.is_dir() && levels > 1 => self.below(&path, levels - 1)?,
                Ok(kind) if !kind.is_file() => {}
                _ => self.found.extend(path.strip_prefix(self.base).ok().map(|path| path.to_string_lossy().into_owned())),
            }
            if self.found.len() > MOST_FILES {
                return Err(format!("there are more than {MOST_FILES} files"));
            }
        }
        self.above.pop();
        Ok(())
    }
}

/// The words for what the disk said, without codes.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        std::io::ErrorKind::NotADirectory => "what should be its folder is a file".to_owned(),
        std::io::ErrorKind::InvalidData => "it is no text".to_owned(),
        _ => error.to_string(),
    }
}

/// The same where something was to be written: what is not there then is the folder.
pub(crate) fn reason_to_write(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "its folder is not there".to_owned(),
        std::io::ErrorKind::AlreadyExists => "something else is in its place".to_owned(),
        _ => reason(error),
    }
}

/// Where a directory is from the top of the work tree of git that it is in, as `fleets/eu`; nothing for the top itself, and outside of any.
pub(crate) fn in_work_tree(directory: &Path) -> String {
    let real = std::fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    // A folder as a rule; a file in what `git worktree` made, and in submodules.
    let top = real.ancestors().find(|parent| parent.join(".git").exists());
    let below = top.and_then(|top| real.strip_prefix(top).ok());
    below.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Writes a file that its owner alone can read, whole or not at all: a temporary file is made so, and renamed.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = beside(path, 0o600)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Writes a file that everybody may read, whole or not at all: whoever reads it meanwhile has the old one.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn write_replaced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A pipe or a device is written to, and a link is followed to its file.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let mut file = beside(path, 0o644)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Takes away what [`write_replaced`] would replace. A link stays, and the file that it leads to has nothing in it then; what is no file is left.
pub(crate) fn make_room(path: &Path) -> std::io::Result<()> {
    let Ok(there) = std::fs::symlink_metadata(path) else { return Ok(()) };
    // What others write to as well, like /dev/stdout, is none of these.
    let leads_to_file = || !path.starts_with("/dev") && std::fs::metadata(path).is_ok_and(|m| m.is_file());
    if there.is_file() {
        std::fs::remove_file(path)
    } else if there.is_symlink() && leads_to_file() {
        std::fs::write(path, "")
    } else {
        Ok(())
    }
}

/// A temporary file of this mode that may take the place of the file at `path`.
fn beside(path: &Path, mode: u32) -> std::io::Result<tempfile::NamedTempFile> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(mode)).tempfile_in(directory)
}

/// Counts and sums what is written.
pub(crate) struct Summing<W> {
    pub(crate) inner: W,
    pub(crate) sum: Sha256,
    /// In bytes.
    pub(crate) size: u64,
}

impl<W> Summing<W> {
    /// Nothing is written yet.
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, sum: Sha256::new(), size: 0 }
    }
}

impl<W: std::io::Write> std::io::Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.sum.update(&bytes[..n]);
        self.size += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// In hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

/// What was summed, in hexadecimal digits.
pub(crate) fn hexadecimal(sum: Sha256) -> String {
    sum.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("d")).unwrap();
        std::fs::write(directory.path().join("d/a"), "x").unwrap();
        let disk = Disk::new(directory.path());
        assert_eq!(disk.read("d/a").unwrap(), b"x");
        assert_eq!(disk.read("nope").unwrap_err(), "there is no such file");
        assert_eq!(disk.list("d").unwrap(), ["a"]);
        assert!(disk.list("nowhere").unwrap().is_empty());
        assert_eq!((disk.exists("d/a"), disk.exists("e")), (Ok(true), Ok(false)));
        assert_eq!(disk.exists("d").unwrap_err(), "is a directory");
        assert_eq!(disk.reads()["d/a"], disk.hash("d/a"));
        assert_eq!(disk.reads()["nope"], "");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_in_a_circle() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        std::fs::create_dir_all(at("d/e")).unwrap();
        std::fs::write(at("d/e/a"), "x").unwrap();
        symlink("e", at("d/link")).unwrap();
        symlink("..", at("d/circle")).unwrap();
        symlink("nowhere", at("d/gone")).unwrap();
        let disk = Disk::new(directory.path());
        assert_eq!(disk.list_to("d", 1).unwrap(), ["gone"]);
        assert_eq!(disk.list_to("d", 2).unwrap(), ["e/a", "gone", "link/a"]);
        assert_eq!(disk.list("d/link").unwrap(), ["a"]);
        assert!(disk.list("d/e/a").unwrap().is_empty());
    }
}
