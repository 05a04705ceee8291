//! Finds a file in an image: in the layers as they lie over each other, from the top down, and no further down than need be.

use std::collections::BTreeSet;

use karmaform_model::Diagnostic;

use super::layers::{Kind, Listing, above, joined, plain};
use crate::artifact::archive;

/// Links that are followed for one file, as Linux does.
const LINKS: usize = 40;

/// The layers of an image, numbered from the lowest. To list one may be to fetch it.
pub(super) trait Layers {
    /// How many there are.
    fn count(&self) -> usize;

    /// What is in one.
    fn listing(&mut self, layer: usize) -> Result<&Listing, Diagnostic>;
}

/// A regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Which layer it is in.
    pub(super) layer: usize,
    /// Which entry of it.
    pub(super) entry: usize,
}

/// The file, or why there is none: what follows the name of the image and a colon.
pub(super) type Answer = Result<Found, String>;

/// What a path leads to.
enum Step {
    File(Found),
    /// To this path, as it is seen from the top.
    Symlink(String),
    /// To this path, as it was when this layer was the uppermost.
    HardLink(String, usize),
    Nothing,
    Other(&'static str),
}

/// A member by its path from the root ("/bin/etcd"), or by the end of its path ("etcd"): that of the uppermost layer that has one.
pub(super) fn find(layers: &mut impl Layers, member: &str) -> Result<Answer, Diagnostic> {
    if member.starts_with('/') {
        return look_up(layers, member);
    }
    let mut problem = None;
    for layer in (0..layers.count()).rev() {
        let is_file = |kind: &Kind| matches!(kind, Kind::File(_) | Kind::Symlink(_) | Kind::HardLink(_));
        let listing = layers.listing(layer)?;
        let fitting = listing.entries.iter().filter(|(name, kind)| is_file(kind) && archive::fits(name, member));
        let names: Vec<String> = fitting.map(|(name, _)| name.clone()).collect();
        let mut found = Vec::new();
        for name in names {
            if !is_seen(layers, &name, layer)? {
                continue;
            }
            match look_up(layers, &name)? {
                Ok(file) => found.push((name, file)),
                Err(why) => problem = problem.or(Some(why)),
            }
        }
        if let Some((_, first)) = found.first() {
            // several names of one file are not several files
            if found.iter().all(|(_, file)| file == first) {
                return Ok(Ok(*first));
            }
            let names: Vec<_> = found.iter().map(|(name, _)| name.clone()).collect();
            return Ok(archive::choose(&names, member).map(|chosen| found[names.iter().position(|n| n == chosen).unwrap_or_default()].1));
        }
    }
    Ok(Err(problem.unwrap_or_else(|| format!("no file in it is or ends with \"{member}\""))))
}

/// The file at a path from the root. Links are followed, wherever they lead in the image.
fn look_up(layers: &mut impl Layers, member: &str) -> Result<Answer, Diagnostic> {
    let (mut path, mut top) = (plain(member), layers.count());
    for _ in 0..LINKS {
        let what = match step(layers, &path, top)? {
            Step::File(found) => return Ok(Ok(found)),
            Step::Symlink(target) => {
                (path, top) = (target, layers.count());
                continue;
            }
            Step::HardLink(target, layer) if target != path => {
                (path, top) = (target, layer + 1);
                continue;
            }
            // to itself: it is the one in a layer below
            Step::HardLink(_, layer) => {
                top = layer;
                continue;
            }
            Step::Nothing => "is not there",
            Step::Other(what) => what,
        };
        let through = if path == plain(member) { String::new() } else { format!(", to which \"{member}\" leads,") };
        return Ok(Err(format!("\"/{path}\"{through} {what}")));
    }
    Ok(Err(format!("the links at \"{member}\" lead in a circle")))
}

/// One look at a path in the layers below `top`.
fn step(layers: &mut impl Layers, path: &str, top: usize) -> Result<Step, Diagnostic> {
    // what is a directory in a layer above hides whatever else it was further down
    let mut directories = BTreeSet::new();
    for layer in (0..top).rev() {
        let listing = layers.listing(layer)?;
        if let Some(kind) = listing.entries.get(path) {
            return Ok(match kind {
                Kind::File(entry) => Step::File(Found { layer, entry: *entry }),
                Kind::Symlink(target) => Step::Symlink(target_of(path, target)),
                Kind::HardLink(target) => Step::HardLink(plain(target), layer),
                Kind::Directory => Step::Other("is a directory"),
                Kind::Other => Step::Other("is no regular file"),
            });
        }
        for directory in above(path) {
            match listing.entries.get(directory) {
                None => {}
                Some(Kind::Directory) => drop(directories.insert(directory)),
                Some(Kind::Symlink(target)) if !directories.contains(directory) => {
                    return Ok(Step::Symlink(joined(&target_of(directory, target), &path[directory.len()..])));
                }
                Some(_) => return Ok(Step::Nothing),
            }
        }
        if listing.hides(path) {
            return Ok(Step::Nothing);
        }
    }
    Ok(Step::Nothing)
}

/// Whether what a layer has at a path can be seen through the layers above.
fn is_seen(layers: &mut impl Layers, path: &str, layer: usize) -> Result<bool, Diagnostic> {
    for upper in layer + 1..layers.count() {
        let listing = layers.listing(upper)?;
        let is_covered = above(path).any(|d| listing.entries.get(d).is_some_and(|kind| *kind != Kind::Directory));
        if is_covered || listing.entries.contains_key(path) || listing.hides(path) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Where a symbolic link at `path` leads to.
fn target_of(path: &str, target: &str) -> String {
    if target.starts_with('/') { plain(target) } else { joined(path.rsplit_once('/').map_or("", |(directory, _)| directory), target) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stack {
        layers: Vec<Listing>,
        listed: usize,
    }

    impl Layers for Stack {
        fn count(&self) -> usize {
            self.layers.len()
        }

        fn listing(&mut self, layer: usize) -> Result<&Listing, Diagnostic> {
            self.listed = self.listed.max(self.layers.len() - layer);
            Ok(&self.layers[layer])
        }
    }

    /// Layers from the lowest, each a line: `path` a file, `path/` a directory, `path>target` a symbolic and `path=target` a hard link.
    fn stack(lines: &str) -> Stack {
        let layer = |line: &str| {
            let mut listing = Listing::default();
            for (index, word) in line.split_whitespace().enumerate() {
                match (word.split_once('>'), word.split_once('=')) {
                    (Some((path, target)), _) => listing.add(path, Kind::Symlink(target.to_owned())),
                    (_, Some((path, target))) => listing.add(path, Kind::HardLink(target.to_owned())),
                    _ if word.ends_with('/') => listing.add(word, Kind::Directory),
                    _ => listing.add(word, Kind::File(index)),
                }
            }
            listing
        };
        Stack { layers: lines.lines().map(str::trim).filter(|l| !l.is_empty()).map(layer).collect(), listed: 0 }
    }

    /// What a member is: its layer and entry, or words of the complaint; and how many layers that took.
    fn check(lines: &str, member: &str, expected: Result<(usize, usize), &str>, listed: usize) {
        let mut stack = stack(lines);
        match (find(&mut stack, member).unwrap(), expected) {
            (Ok(found), Ok((layer, entry))) => assert_eq!(found, Found { layer, entry }, "{lines} {member}"),
            (Err(why), Err(words)) => assert!(why.contains(words), "{lines} {member}: {why}"),
            (found, _) => panic!("{lines} {member}: {found:?}"),
        }
        assert_eq!(stack.listed, listed, "{lines} {member}: layers that were needed");
    }

    #[test]
    fn the_uppermost_file_counts() {
        check("bin/a", "/bin/a", Ok((0, 0)), 1);
        check("x bin/a\n bin/ bin/a", "/bin/a", Ok((1, 1)), 1);
        check("x bin/a\n bin/ bin/a", "a", Ok((1, 1)), 1);
        check("x bin/a\n bin/b", "./bin/a", Ok((0, 1)), 2);
        check("./bin/a", "/bin//a", Ok((0, 0)), 1);
        check("usr/bin/a", "/bin/a", Err("\"/bin/a\" is not there"), 1);
        check("usr/bin/a", "bin/a", Ok((0, 0)), 1);
        check("bin/a/", "/bin/a", Err("is a directory"), 1);
        check("bin/a x\n y", "b", Err("no file in it is or ends with \"b\""), 2);
        check("opt/a srv/a", "a", Err("several"), 1);
        check("a/a/a opt/a", "a", Ok((0, 1)), 1);
    }

    #[test]
    fn what_was_taken_away_is_gone() {
        check("bin/a\n bin/.wh.a", "/bin/a", Err("not there"), 1);
        check("bin/a\n bin/.wh.a", "a", Err("no file"), 2);
        check("bin/a\n .wh.bin", "/bin/a", Err("not there"), 1);
        check("opt/bin/a\n opt/.wh..wh..opq opt/b", "/opt/bin/a", Err("not there"), 1);
        check("opt/bin/a\n opt/.wh..wh..opq opt/b", "a", Err("no file"), 2);
        check("bin/a\n .wh..wh..opq", "/bin/a", Err("not there"), 1);
        check("bin/a\n bin/.wh.a bin/a", "/bin/a", Ok((1, 1)), 1);
        check("bin/a\n bin/.wh.a\n bin/a", "a", Ok((2, 0)), 1);
        check("bin/ab\n bin/.wh.a", "/bin/ab", Ok((0, 0)), 2);
        check("bin/a\n bin/.wh..wh.plnk", "/bin/a", Ok((0, 0)), 2);
        // another thing in the place of a directory
        check("bin/a\n bin", "/bin/a", Err("not there"), 1);
        check("bin/a\n bin", "a", Err("no file"), 2);
    }

    #[test]
    fn links_are_followed_inside_a_layer_and_across() {
        check("bin/stand-in\n bin/a>stand-in", "/bin/a", Ok((0, 0)), 2);
        check("bin/stand-in\n bin/a>stand-in", "a", Ok((0, 0)), 2);
        check("x bin/b bin/a=bin/b", "/bin/a", Ok((0, 1)), 1);
        check("bin/b\n bin/a=/bin/b", "a", Ok((0, 0)), 2);
        check("bin/a>/opt/a opt/a>../srv/./a srv/a", "/bin/a", Ok((0, 2)), 1);
        // a hard link is the file that was there then, a symbolic one whatever is there now
        check("bin/b\n bin/a=bin/b bin/s>b\n x bin/b", "/bin/a", Ok((0, 0)), 3);
        check("bin/b\n bin/a=bin/b bin/s>b\n x bin/b", "/bin/s", Ok((2, 1)), 2);
        check("bin/a\n bin/a=bin/a", "/bin/a", Ok((0, 0)), 2);
        check("bin/a>b bin/b>a", "/bin/a", Err("in a circle"), 1);
        check("bin/a>b", "/bin/a", Err("\"/bin/b\", to which \"/bin/a\" leads, is not there"), 1);
        check("bin/a>b", "a", Err("to which \"bin/a\" leads"), 1);
        check("x\n run/a>/nowhere opt/bin/a", "a", Ok((1, 1)), 2);
    }

    #[test]
    fn several_names_of_one_file_are_one_file() {
        check("opt/a srv/a>/opt/a usr/a=opt/a", "a", Ok((0, 0)), 1);
    }

    #[test]
    fn directories_may_be_links() {
        check("bin>usr/bin usr/bin/ usr/bin/a", "/bin/a", Ok((0, 2)), 1);
        check("bin>usr/bin x\n usr/bin/a", "/bin/a", Ok((1, 0)), 2);
        check("bin>usr/bin\n bin/a", "/bin/a", Ok((1, 0)), 1);
        check("bin>/usr/bin usr>/opt\n opt/bin/a", "/bin/a", Ok((1, 0)), 2);
        // a directory in the place of a link is empty at first
        check("usr/bin/a bin>usr/bin\n bin/", "/bin/a", Err("not there"), 2);
        check("bin/a\n .wh.bin bin>usr/bin\n bin/", "/bin/a", Err("not there"), 2);
    }
}
