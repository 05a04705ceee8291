//! What things at a path have in common: owner, group and mode, and the same questions about whose they are.

use karmaform_model::{Attribute, Diagnostic, Diagnostics, Object, Type, Value};

use crate::connection::place_of;
use crate::failure;
use crate::look::{Content, Look, PathKind, PathSeen, Seen};
use crate::owned::PARENT;
use crate::script::quote;
use crate::values::{object, text};

/// The attribute `host`.
pub(super) fn host() -> Attribute {
    Attribute::required("host", Type::Any, "Connection to the host: the attribute `connection` of a `data \"ssh_host\"`.")
}

/// The attributes `owner`, `group` and `mode`.
pub(super) fn permissions(mode: &'static str) -> Vec<Attribute> {
    vec![
        Attribute::optional("owner", Type::String, "Owning user: a name, or a number.").or("root"),
        Attribute::optional("group", Type::String, "Owning group: a name, or a number.").or("root"),
        Attribute::optional("mode", Type::String, "Permission bits: three or four octal digits.").or(mode),
    ]
}

/// The attribute `check`.
pub(super) fn check() -> Attribute {
    let doc = "Command for the host's `sh` that must succeed, within 30 s, before a new file takes its place; it finds the new one at `$FILE`, beside \
               where it is to be, with its owner and mode. If it fails, what is there stays.";
    Attribute::optional("check", Type::String, doc).write_only()
}

/// The command that tries a new file; empty if there is none. What it says is not shown where it, or what it reads, is secret.
pub(super) fn check_of(after: &Object) -> String {
    let check = text(after, "check").unwrap_or_default();
    let is_secret = ["content", "check"].iter().any(|name| after.get(name).is_some_and(Value::contains_secret));
    if is_secret && !check.is_empty() { format!("{{ {check}\n}} >/dev/null 2>&1") } else { check.to_owned() }
}

/// The volatile attribute `foreign`.
pub(super) fn foreign() -> Attribute {
    Attribute::computed("foreign", Type::Bool, "True for something that exists already and that karmaform did not make.").volatile()
}

/// `user:group`, as one shell word.
pub(super) fn ownership(after: &Object) -> String {
    quote(&format!("{}:{}", text(after, "owner").unwrap_or("root"), text(after, "group").unwrap_or("root")))
}

/// What was seen of owner, group and mode, spelled as `known` spells it.
pub(super) fn permissions_seen(seen: &PathSeen, known: Option<&Object>) -> Object {
    let spelled = |attribute: &str, name: &str, number: &str| -> Value {
        let is_number = known.and_then(|k| text(k, attribute)).is_some_and(|k| k.bytes().all(|b| b.is_ascii_digit()));
        if is_number { number.into() } else { name.into() }
    };
    let mode = match known.and_then(|k| text(k, "mode")) {
        Some(known) if u32::from_str_radix(known, 8) == Ok(seen.mode) => known.to_owned(),
        _ => format!("{:04o}", seen.mode),
    };
    object([
        ("owner", spelled("owner", &seen.owner, &seen.uid)),
        ("group", spelled("group", &seen.group, &seen.gid)),
        ("mode", mode.into()),
    ])
}

/// What is at the path, if it is what is meant to be there.
pub(super) fn at_path<'a>(seen: &'a Seen, path: &str, kind: &PathKind) -> Result<Option<&'a PathSeen>, Diagnostic> {
    let Some(found) = seen.path(path)? else { return Ok(None) };
    if found.kind == *kind {
        return Ok(Some(found));
    }
    Err(other_kind(path, &seen.place, word(&found.kind), word(kind)))
}

/// What is at a file's path; and whether that is the file. What was made there and is something else by now gives way to it again, unless
/// that is a directory.
pub(super) fn file_at<'a>(seen: &'a Seen, path: &str, known: Option<&Object>) -> Result<Option<(&'a PathSeen, bool)>, Diagnostic> {
    match seen.path(path)? {
        Some(found) if known.is_some() && found.kind != PathKind::File => Ok(Some((found, false))),
        _ => Ok(at_path(seen, path, &PathKind::File)?.map(|found| (found, true))),
    }
}

/// What somebody put into a file's place.
pub(super) fn instead() -> Attribute {
    Attribute::computed("instead", Type::String, "What somebody put into its place, in the host's words: \"symbolic link\".").volatile()
}

/// A directory in the place of a file gives way to nothing: what is in it may be all that there is of it.
pub(super) fn gives_way(before: Option<&Object>) -> Result<(), Diagnostics> {
    let word = word(&PathKind::Directory);
    let Some(before) = before.filter(|b| text(b, "instead") == Some(word)) else { return Ok(()) };
    Err(other_kind(text(before, "path").unwrap_or_default(), &place_of(before), word, self::word(&PathKind::File)).into())
}

/// What a file that is in the state is in need of.
pub(super) fn care() -> Attribute {
    Attribute::computed("care", Type::list(Type::String), "What it and the directories above it are in need of, a sentence each.")
        .volatile()
}

/// The same, as it was seen.
pub(super) fn care_seen(seen: &Seen, path: &str, known: Option<&Object>) -> Value {
    Value::strings([led_away(seen, path), sealed(seen, path)].into_iter().flatten().filter(|_| known.is_some()))
}

/// The directories above a path, the nearest first, but for the root.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let next = |path: &str| path.rfind('/').filter(|end| *end > 0);
    std::iter::successors(next(path).map(|end| &path[..end]), move |above| next(above).map(|end| &path[..end]))
}

/// What is to be looked at so that [`care_seen`] can tell of what is above it.
pub(super) fn looks_above(path: &str) -> impl Iterator<Item = Look> {
    above(path).map(|above| Look::File { path: above.to_owned(), content: Content::Never })
}

/// What is to be said of something above which a link has taken the place of a directory that was made for it: that is nobody's resource, and what
/// is looked at is what the link leads to. A directory that is one says so itself.
fn led_away(seen: &Seen, path: &str) -> Option<String> {
    let is_link = |above: &&str| match seen.path(above) {
        Ok(Some(found)) => found.kind == PathKind::Other("symbolic link".to_owned()),
        _ => false,
    };
    let link = above(path).filter(|above| seen.owned.has(PARENT, above)).find(is_link)?;
    Some(format!(
        "somebody has put a symbolic link into the place of {link}, so it is elsewhere; nothing is written or deleted there until that is a directory again"
    ))
}

/// What is to be said of something of ours that not even root may change: it is as it should be, and no apply can make anything else of it.
pub(super) fn sealed(seen: &Seen, path: &str) -> Option<String> {
    let says = || format!("nobody may change it, not even root, as `lsattr` shows: `chattr -i -a {path}` ends that");
    seen.sealed.contains(path).then(says)
}

/// What a kind is called, in the host's words.
pub(super) fn word(kind: &PathKind) -> &str {
    match kind {
        PathKind::File => "regular file",
        PathKind::Directory => "directory",
        PathKind::Other(word) => word,
    }
}

/// The refusal to make anything of what is something else.
pub(super) fn other_kind(path: &str, place: &str, is: &str, should: &str) -> Diagnostic {
    Diagnostic::error("Something else is at this path", format!("{path} on {place} is a {is}, but should be a {should}."))
        .with_hint("Remove it, or choose another path.")
}

/// The refusal to take over what is not ours.
pub(super) fn refuse(before: &Object, thing: &str, hint: Option<&str>) -> Diagnostics {
    let refusal = failure::foreign(&format!("Planning for {}", place_of(before)), thing);
    hint.map_or(refusal.clone(), |h| refusal.with_hint(h)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owned::Owned;

    #[test]
    fn what_nobody_may_change_is_told() {
        let seen = Seen { sealed: ["/srv/a".to_owned()].into(), ..Seen::default() };
        assert!(sealed(&seen, "/srv/a").unwrap().contains("`chattr -i -a /srv/a` ends that"));
        assert_eq!(sealed(&seen, "/srv"), None);
    }

    #[test]
    fn the_host_says_what_is_sealed() {
        // As e2fsprogs and busybox print it.
        let said = "----i---------e------- /srv/a b\n-----a--------e------- /srv/log\n--------------e---I--A /srv/c\n";
        let script = format!("{}\nlsattr() {{ printf %s '{said}'; }}\nsealed /x\n", include_str!("../script/looks.sh"));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/srv/a b\n/srv/log\n");
    }

    #[test]
    fn a_link_above_is_told_where_the_directory_was_made_for_it() {
        assert_eq!(above("/srv/a/b/c").collect::<Vec<_>>(), ["/srv/a/b", "/srv/a", "/srv"]);
        assert_eq!(above("/srv").count(), 0);
        let [owner, group, uid, gid] = ["root", "root", "0", "0"].map(str::to_owned);
        let kind = PathKind::Other("symbolic link".to_owned());
        let link = PathSeen { kind, owner, group, uid, gid, mode: 0o777, size: 6, sha256: None, content: None, empty: true };
        let told = |owned: &str| {
            let paths = [("/srv/a".to_owned(), Ok(link.clone()))].into();
            led_away(&Seen { paths, owned: Owned::parse(owned), ..Seen::default() }, "/srv/a/b/c")
        };
        assert!(told("parent\t/srv/a\t\nparent\t/srv/a/b\t\n").unwrap().contains("into the place of /srv/a, so it is elsewhere"));
        // Links of others are where who wrote the path wants them.
        assert_eq!(told("parent\t/srv/a/b\t\n"), None);
    }
}
