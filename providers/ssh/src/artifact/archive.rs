//! One file out of an archive: tar, as it is or compressed with gzip.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use karmaform_model::{Diagnostic, without_credentials};
use tar::{Archive, EntryType};

use super::{ByPlace, unnamed};

/// Members named in a message.
const NAMED: usize = 20;

/// Takes `member` out of an archive, into a new file in `directory`.
pub(super) fn extract(archive: &File, source: &str, member: &str, directory: &Path) -> Result<File, Diagnostic> {
    let source = without_credentials(source);
    let broken = |e: io::Error| {
        Diagnostic::error("Archive can't be read", format!("{source} can't be read as a tar archive (plain or gzip): {e}."))
            .with_hint("Leave out \"member\" if the source is the file itself.")
    };
    let mut names = Vec::new();
    for entry in Archive::new(open(archive).map_err(broken)?).entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        if matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous) {
            names.push(String::from_utf8_lossy(&entry.path_bytes()).into_owned());
        }
    }
    let wanted = choose(&names, member).map_err(|why| Diagnostic::error("Member is not in the archive", format!("{source}: {why}")))?;
    let mut file = unnamed(directory)?;
    for entry in Archive::new(open(archive).map_err(broken)?).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        if entry.path_bytes() == wanted.as_bytes() {
            io::copy(&mut entry, &mut file).map_err(broken)?;
            return Ok(file);
        }
    }
    Err(broken(io::Error::other("the member vanished")))
}

/// A file compressed with gzip, into a new file in `directory`. Fast rather than small: lines are slow, but processors have other work, too.
pub(super) fn pack(file: &File, directory: &Path) -> Result<File, Diagnostic> {
    let mut packed = GzEncoder::new(unnamed(directory)?, Compression::fast());
    let done = io::copy(&mut ByPlace::new(file), &mut packed).and_then(|_| packed.finish());
    done.map_err(|e| Diagnostic::error("Cache can't be written", format!("A file can't be compressed in {}: {e}.", directory.display())))
}

/// The archive's bytes as they were before they were compressed.
pub(super) fn open(archive: &File) -> io::Result<Box<dyn Read + '_>> {
    let mut magic = [0; 2];
    let n = ByPlace::new(archive).read(&mut magic)?;
    let bytes = io::BufReader::with_capacity(1 << 16, ByPlace::new(archive));
    Ok(if n == 2 && magic == [0x1f, 0x8b] { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) })
}

/// The member of this name, or the one whose path ends with it; of several the one nearest to the top.
pub(super) fn choose<'a>(names: &'a [String], member: &str) -> Result<&'a String, String> {
    let depth = |name: &&String| plain(name).matches('/').count();
    let mut found: Vec<_> = names.iter().filter(|n| fits(n, member)).collect();
    found.sort_by_key(depth);
    match found[..] {
        [] => {
            let mut listed = names.iter().take(NAMED).map(|n| plain(n)).collect::<Vec<_>>().join(", ");
            if names.len() > NAMED {
                listed.push_str(&format!(" and {} more", names.len() - NAMED));
            }
            Err(format!("no file in it is or ends with \"{member}\". It holds: {listed}."))
        }
        [one] => Ok(one),
        [first, second, ..] if depth(&first) < depth(&second) => Ok(first),
        [..] => {
            let listed = found.iter().take(NAMED).map(|n| plain(n)).collect::<Vec<_>>().join(", ");
            Err(format!("several files in it end with \"{member}\": {listed}. Write more of the path."))
        }
    }
}

/// Whether a name is this member, or ends with it.
pub(super) fn fits(name: &str, member: &str) -> bool {
    let (name, wanted) = (plain(name), member.trim_start_matches("./"));
    name == wanted || name.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('/'))
}

fn plain(name: &str) -> &str {
    name.strip_prefix("./").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_by_the_end_of_its_path() {
        let names: Vec<_> = ["./e-v1/etcd", "./e-v1/etcdctl", "./e-v1/docs/etcd", "a/x", "b/x"].map(str::to_owned).into();
        let check = |member: &str, expected: Result<&str, &str>| {
            let found = choose(&names, member);
            match expected {
                Ok(name) => assert_eq!(found.unwrap(), name),
                Err(word) => assert!(found.unwrap_err().contains(word), "{member}"),
            }
        };
        check("etcd", Ok("./e-v1/etcd"));
        check("docs/etcd", Ok("./e-v1/docs/etcd"));
        check("e-v1/etcdctl", Ok("./e-v1/etcdctl"));
        check("tcd", Err("no file"));
        check("x", Err("several"));
        check("nothing", Err("e-v1/etcdctl"));
    }
}
