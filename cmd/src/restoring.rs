//! A member's volume while its cluster is restored: a copy is restored beside the data, takes its place, and what was there before stays aside. Each step
//! may be killed anywhere and done again, and finds what is done already.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{ErrorKind, Read, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use karmaform_etcd::{Beginning, verify};
use karmaform_model::Diagnostic;

use crate::disk::{Summing, hexadecimal};

/// What must be free besides, in bytes: etcd writes on, and makes files of 64 MB for its log ahead.
const SPARE: u64 = 256 << 20;
/// How much is read at once, in bytes.
const PIECE: usize = 1 << 20;
/// A snapshot that has not arrived yet.
const PART: &str = "snapshot-part";
/// A restored copy says by this file of which restoration it is, in the data directory of etcd.
const MARK: &str = "restored";

/// What is to be made ready.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    /// The snapshot's sum, in hexadecimal digits.
    pub(crate) sha256: &'a str,
    /// The largest database that the cluster takes, in bytes.
    pub(crate) quota: Option<u64>,
    /// The member; its token names the restoration.
    pub(crate) beginning: Beginning<'a>,
}

/// Restores a snapshot into a directory that is not there.
pub(crate) type Restore<'a> = &'a dyn Fn(&Path, &Path, &Beginning<'_>) -> Result<(), Diagnostic>;

/// Where a snapshot comes from: `ask` says that its length (eight bytes) or its content may come, and `from` is where it comes.
pub(crate) struct Input<'a> {
    pub(crate) from: &'a mut dyn Read,
    pub(crate) ask: &'a dyn Fn(&str),
}

/// A volume.
pub(crate) struct Volume {
    data: PathBuf,
    /// What belongs to a restoration, beside the data.
    beside: PathBuf,
    /// Nobody else works here.
    _alone: File,
}

impl Volume {
    /// The one with this data directory. Waits for whoever works there: a program of ours whose caller was cut off.
    ///
    /// # Errors
    /// It can't be written.
    pub(crate) fn of(data: &Path) -> Result<Self, Diagnostic> {
        let beside = with_ending(data, ".restore");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&beside);
        let alone = made.and_then(|()| File::options().create(true).truncate(false).write(true).open(with_ending(data, ".lock")));
        let alone = alone.map_err(|e| disk(&beside, &e))?;
        match alone.lock() {
            // Some file systems have no locks; then there is nobody else, as far as can be told.
            Err(e) if e.kind() != ErrorKind::Unsupported => return Err(disk(&beside, &e)),
            _ => {}
        }
        Ok(Self { data: data.to_owned(), beside, _alone: alone })
    }

    /// Restores a snapshot into a copy beside the data. Nothing is asked for if that is done already.
    /// Gives what to say of it.
    ///
    /// # Errors
    /// The snapshot is damaged, another one, or too large, or there is no room for it.
    pub(crate) fn prepare(&self, asked: &Asked<'_>, input: &mut Input<'_>, restore: Restore<'_>) -> Result<String, Diagnostic> {
        let token = asked.beginning.token;
        if self.is_in_place(token) || self.is_ready(token) {
            return Ok("it is ready".to_owned());
        }
        let before = self.before(token);
        if before.exists() {
            let detail = format!("{} is there: this restoration was done here before.", before.display());
            return Err(Diagnostic::error("What was restored is gone", detail).with_hint("Give the block `restore` another `id`."));
        }
        let snapshot = self.beside.join(format!("snapshot-{}.db", asked.sha256));
        self.only(&[&snapshot])?;
        let length = match snapshot.metadata() {
            Ok(there) => there.len(),
            Err(_) => self.receive(&snapshot, asked, input).inspect_err(|_| drop(std::fs::remove_file(self.beside.join(PART))))?,
        };
        let part = self.beside.join("new-part");
        // What can't be used is not left in the way of etcd.
        self.has_room(length).inspect_err(|_| drop(std::fs::remove_file(&snapshot)))?;
        let begun = Beginning { token: &format!("restored-{token}"), ..asked.beginning.clone() };
        let mark = || std::fs::write(part.join("member").join(MARK), token).and_then(|()| Ok(rustix::fs::syncfs(File::open(&part)?)?));
        if let Err(why) = restore(&snapshot, &part, &begun).and_then(|()| mark().map_err(|e| disk(&part, &e))) {
            drop(std::fs::remove_dir_all(&part));
            return Err(why);
        }
        self.rename(&part, &self.ready(token))?;
        drop(std::fs::remove_file(&snapshot));
        Ok(format!("{length} bytes are restored"))
    }

    /// Writes the snapshot to a file that has its name once it is whole and the right one; its length.
    fn receive(&self, snapshot: &Path, asked: &Asked<'_>, input: &mut Input<'_>) -> Result<u64, Diagnostic> {
        let cut =
            |e: std::io::Error| Diagnostic::error("The snapshot did not arrive", format!("What comes by standard input ended early: {e}."));
        let mut length = [0; 8];
        (input.ask)("length?");
        input.from.read_exact(&mut length).map_err(cut)?;
        let length = u64::from_be_bytes(length);
        if let Some(quota) = asked.quota.filter(|quota| length > *quota) {
            let detail = format!("The snapshot has {length} bytes, and the cluster may have {quota}.");
            return Err(Diagnostic::error("The snapshot is too large", detail).with_hint("Raise `quota-backend-bytes` in `settings`."));
        }
        // Once as it comes, and once more as it is restored.
        self.has_room(length.saturating_mul(2))?;
        let part = self.beside.join(PART);
        let mut file = Summing::new(File::create(&part).map_err(|e| disk(&part, &e))?);
        let (mut piece, mut left, mut written) = (vec![0; PIECE], length, Ok(()));
        (input.ask)("content?");
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            match input.from.read(&mut piece[..most]).map_err(cut)? {
                0 => return Err(cut(ErrorKind::UnexpectedEof.into())),
                read => {
                    // What was asked for is read to its end: else it holds up the way to what is said of it.
                    // Where there is no room, etcd needs what there is.
                    written = written.and_then(|()| file.write_all(&piece[..read]).inspect_err(|_| drop(file.inner.set_len(0))));
                    left -= read as u64;
                }
            }
        }
        written.map_err(|e| disk(&part, &e))?;
        let found = hexadecimal(file.sum);
        if found != asked.sha256 {
            let detail = format!("What arrived has the SHA-256 sum {found}, and `sha256` says {}.", asked.sha256);
            return Err(Diagnostic::error("Another snapshot than the one that is wanted", detail)
                .with_hint("Take the sum from its manifest, and look whether `from` is the file that is meant."));
        }
        file.inner.sync_all().map_err(|e| disk(&part, &e))?;
        verify(&part)?;
        self.rename(&part, snapshot)?;
        Ok(length)
    }

    /// Puts the copy in the place of the data. Gives what to say of it.
    ///
    /// # Errors
    /// There is no copy, or etcd still runs on the data.
    pub(crate) fn switch(&self, token: &str) -> Result<String, Diagnostic> {
        if !self.is_in_place(token) {
            if !self.is_ready(token) {
                return Err(Diagnostic::error("Nothing to put in place", format!("{} is not there.", self.ready(token).display())));
            }
            self.nobody_runs()?;
            if self.data.exists() {
                let aside = self.before(token);
                // That of before is aside already: this one is what somebody put there in between.
                let aside = if aside.exists() { self.before(&format!("unfinished-{token}")) } else { aside };
                self.rename(&self.data, &aside)?;
            }
            self.rename(&self.ready(token), &self.data)?;
        }
        drop(std::fs::remove_dir_all(&self.beside));
        Ok("it is in place".to_owned())
    }

    /// Removes what was made ready for restorations and, unless it is to be kept, what was there before them. Gives what to say of it.
    ///
    /// # Errors
    /// It can't be removed.
    pub(crate) fn tidy(&self, keep_before: bool) -> Result<String, Diagnostic> {
        let parent = self.data.parent().unwrap_or(Path::new("/"));
        let name = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let before = format!("{}.before-", name(&self.data));
        let mut removed = 0;
        for entry in std::fs::read_dir(parent).map_err(|e| disk(parent, &e))? {
            let path = entry.map_err(|e| disk(parent, &e))?.path();
            if path == self.beside || !keep_before && name(&path).starts_with(&before) {
                std::fs::remove_dir_all(&path).map_err(|e| disk(&path, &e))?;
                removed += usize::from(path != self.beside);
            }
        }
        drop(std::fs::remove_file(with_ending(&self.data, ".lock")));
        Ok(format!("{removed} directories of before are removed"))
    }

    fn ready(&self, token: &str) -> PathBuf {
        self.beside.join(format!("new-{token}"))
    }

    fn before(&self, token: &str) -> PathBuf {
        with_ending(&self.data, &format!(".before-{token}"))
    }

    fn is_ready(&self, token: &str) -> bool {
        self.ready(token).join("member").join(MARK).exists()
    }

    fn is_in_place(&self, token: &str) -> bool {
        std::fs::read_to_string(self.data.join("member").join(MARK)).is_ok_and(|of| of == token)
    }

    /// Removes whatever a restoration that was given up has left, but for these.
    fn only(&self, kept: &[&Path]) -> Result<(), Diagnostic> {
        for entry in std::fs::read_dir(&self.beside).map_err(|e| disk(&self.beside, &e))? {
            let path = entry.map_err(|e| disk(&self.beside, &e))?.path();
            if !kept.contains(&path.as_path()) {
                let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                removed.map_err(|e| disk(&path, &e))?;
            }
        }
        Ok(())
    }

    fn has_room(&self, needed: u64) -> Result<(), Diagnostic> {
        let told = rustix::fs::statvfs(&self.beside).map_err(|e| disk(&self.beside, &e.into()))?;
        let (free, needed) = (told.f_bavail.saturating_mul(told.f_frsize), needed.saturating_add(SPARE));
        if free >= needed {
            return Ok(());
        }
        let detail = format!("What is restored needs {} MiB in {}, and {} MiB are free.", needed >> 20, self.beside.display(), free >> 20);
        Err(Diagnostic::error("There is no room for what is restored", detail)
            .with_hint("Compact and defragment etcd (`karmaform etcd defrag`), or remove what else is in the volume."))
    }

    /// etcd has its database locked as long as it runs (flock, `bbolt`), as is seen from the same node.
    fn nobody_runs(&self) -> Result<(), Diagnostic> {
        let database = self.data.join("member/snap/db");
        let held = File::open(&database).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        if !held {
            return Ok(());
        }
        Err(Diagnostic::error("etcd still runs on this data", format!("{} is locked.", database.display()))
            .with_hint("Find the pod that uses the volume, and end it."))
    }

    /// Renames it for good.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), Diagnostic> {
        let lasting = |path: &Path| path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all());
        std::fs::rename(from, to).and_then(|()| lasting(to)).and_then(|()| lasting(from)).map_err(|e| disk(from, &e))
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(ending);
    text.into()
}

fn disk(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("A volume can't be written", format!("{}: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    /// A snapshot as etcd writes it: whole pages, and their sum.
    fn snapshot() -> (Vec<u8>, String) {
        let mut bytes = vec![7; 1024];
        bytes.extend_from_slice(&Sha256::digest(&bytes));
        let sum = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        (bytes, sum)
    }

    fn sent(bytes: &[u8]) -> Vec<u8> {
        [&(bytes.len() as u64).to_be_bytes()[..], bytes].concat()
    }

    fn asked<'a>(sha256: &'a str, token: &'a str) -> Asked<'a> {
        let beginning = Beginning { name: "a", url: "https://a:2380", members: "a=https://a:2380", token, bump: 5 };
        Asked { sha256, quota: None, beginning }
    }

    fn restore(file: &Path, directory: &Path, beginning: &Beginning<'_>) -> Result<(), Diagnostic> {
        assert!(file.is_file() && !directory.exists() && beginning.token.starts_with("restored-"));
        std::fs::create_dir_all(directory.join("member/snap")).unwrap();
        std::fs::write(directory.join("member/snap/db"), beginning.token).unwrap();
        Ok(())
    }

    fn content(data: &Path) -> String {
        std::fs::read_to_string(data.join("member/snap/db")).unwrap_or_default()
    }

    /// A volume with data of before.
    fn there() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("member/snap")).unwrap();
        std::fs::write(data.join("member/snap/db"), "old").unwrap();
        (folder, data)
    }

    #[test]
    fn a_copy_takes_the_place_of_the_data_and_what_was_there_is_kept() {
        let ((bytes, sum), (folder, data)) = (snapshot(), there());
        let prepare = |token: &str, from: &[u8]| {
            Volume::of(&data)?.prepare(&asked(&sum, token), &mut Input { from: &mut &from[..], ask: &|_| {} }, &restore)
        };
        prepare("t1", &sent(&bytes)).unwrap();
        assert_eq!(content(&data), "old");
        // Done already: nothing is read.
        prepare("t1", &[]).unwrap();
        Volume::of(&data).unwrap().switch("t1").unwrap();
        assert_eq!((content(&data), content(&folder.path().join("data.before-t1"))), ("restored-t1".to_owned(), "old".to_owned()));
        Volume::of(&data).unwrap().switch("t1").unwrap();
        prepare("t1", &[]).unwrap();
        assert_eq!(content(&data), "restored-t1");
        // Another one, and then all that was before goes.
        prepare("t2", &sent(&bytes)).unwrap();
        Volume::of(&data).unwrap().switch("t2").unwrap();
        assert_eq!((content(&data), content(&folder.path().join("data.before-t2"))), ("restored-t2".to_owned(), "restored-t1".to_owned()));
        Volume::of(&data).unwrap().tidy(true).unwrap();
        assert!(folder.path().join("data.before-t1").exists());
        Volume::of(&data).unwrap().tidy(false).unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["data"]);
    }

    #[test]
    fn a_switch_that_was_cut_off_is_gone_on_with() {
        let ((bytes, sum), (folder, data)) = (snapshot(), there());
        Volume::of(&data).unwrap().prepare(&asked(&sum, "t"), &mut Input { from: &mut &sent(&bytes)[..], ask: &|_| {} }, &restore).unwrap();
        std::fs::rename(&data, folder.path().join("data.before-t")).unwrap();
        Volume::of(&data).unwrap().switch("t").unwrap();
        assert_eq!((content(&data), content(&folder.path().join("data.before-t"))), ("restored-t".to_owned(), "old".to_owned()));
        // What was in place is gone: it is not made anew from less than it had.
        std::fs::remove_dir_all(&data).unwrap();
        let again = Volume::of(&data)
            .unwrap()
            .prepare(&asked(&sum, "t"), &mut Input { from: &mut &sent(&bytes)[..], ask: &|_| {} }, &restore)
            .unwrap_err();
        assert_eq!(again.summary, "What was restored is gone");
        assert_eq!(Volume::of(&data).unwrap().switch("t").unwrap_err().summary, "Nothing to put in place");
        // Nothing can be made beside what is no folder.
        assert_eq!(Volume::of(Path::new("/dev/null/data")).err().map(|d| d.summary).as_deref(), Some("A volume can't be written"));
    }

    #[test]
    fn what_is_damaged_or_cut_changes_nothing() {
        let ((bytes, sum), (_folder, data)) = (snapshot(), there());
        let prepare = |asked: &Asked<'_>, from: &[u8]| {
            Volume::of(&data)
                .and_then(|volume| volume.prepare(asked, &mut Input { from: &mut &from[..], ask: &|_| {} }, &restore))
                .map_err(|d| d.summary)
        };
        let mut damaged = bytes.clone();
        damaged[100] ^= 1;
        let of_damaged: String = Sha256::digest(&damaged).iter().map(|b| format!("{b:02x}")).collect();
        for (asked, from, expected) in [
            (asked(&sum, "t"), sent(&damaged), "Another snapshot than the one that is wanted"),
            (asked(&of_damaged, "t"), sent(&damaged), "The snapshot is damaged"),
            (asked(&sum, "t"), sent(&bytes)[..500].to_vec(), "The snapshot did not arrive"),
            (asked(&sum, "t"), Vec::new(), "The snapshot did not arrive"),
            (Asked { quota: Some(1000), ..asked(&sum, "t") }, sent(&bytes), "The snapshot is too large"),
            (asked(&sum, "t"), u64::MAX.to_be_bytes().to_vec(), "There is no room for what is restored"),
        ] {
            assert_eq!(prepare(&asked, &from).unwrap_err(), expected);
            assert!(Volume::of(&data).unwrap().switch("t").is_err());
            assert_eq!(content(&data), "old");
        }
        // What arrived whole need not come again, also when it did not restore.
        let refuses = |_: &Path, _: &Path, _: &Beginning<'_>| Err(Diagnostic::error("no", "no"));
        Volume::of(&data)
            .unwrap()
            .prepare(&asked(&sum, "t"), &mut Input { from: &mut &sent(&bytes)[..], ask: &|_| {} }, &refuses)
            .unwrap_err();
        prepare(&asked(&sum, "t"), &[]).unwrap();
    }

    #[test]
    fn nothing_changes_under_an_etcd_that_runs() {
        let ((bytes, sum), (_folder, data)) = (snapshot(), there());
        Volume::of(&data).unwrap().prepare(&asked(&sum, "t"), &mut Input { from: &mut &sent(&bytes)[..], ask: &|_| {} }, &restore).unwrap();
        let running = File::open(data.join("member/snap/db")).unwrap();
        running.lock().unwrap();
        assert_eq!(Volume::of(&data).unwrap().switch("t").unwrap_err().summary, "etcd still runs on this data");
        drop(running);
        Volume::of(&data).unwrap().switch("t").unwrap();
    }
}
