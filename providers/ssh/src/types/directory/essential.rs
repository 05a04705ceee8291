//! What a directory is nothing without. One that is not empty may have lost all that counts: of a database its log, while what was beside that
//! is left.

use karmaform_model::{Ask, Attribute, Diagnostic, Diagnostics, Object, Type};

use crate::look::{Look, PathKind, Seen};
use crate::values::{boolean, text};

/// The attributes that say what it is, and whether it is there.
pub(super) fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "essential",
            Type::String,
            "A directory below it without which what is in it is of no use: \"member/wal\". `hollow` says that it is missing.",
        )
        .write_only(),
        Attribute::computed("hollow", Type::Bool, "True if something is in it, and nothing is in `essential`.").volatile(),
    ]
}

/// What is wrong with them.
///
/// # Errors
/// It is no path below the directory.
pub(super) fn check(wanted: &Object) -> Result<(), Diagnostics> {
    let is_name = |part: &str| {
        !matches!(part, "" | "." | "..") && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
    };
    match text(wanted, "essential").filter(|path| !path.split('/').all(is_name)) {
        None => Ok(()),
        Some(bad) => {
            let names = "names of letters, digits, \"_\", \"-\" and \".\" with \"/\" between them";
            let detail = format!("\"{bad}\" in \"essential\" is no path below the directory: {names}.");
            Err(Diagnostic::error("Bad path", detail).into())
        }
    }
}

/// Where it has to be, of a directory that is in the state. What others left in one that is not says nothing.
fn place(ask: &Ask) -> Option<String> {
    let (path, essential) = (text(&ask.identity, "path")?, text(ask.wanted.as_ref()?, "essential")?);
    (ask.begun || ask.known.is_some()).then(|| format!("{path}/{essential}"))
}

/// What is looked at besides the directory.
pub(super) fn look(ask: &Ask) -> Option<Look> {
    place(ask).map(|path| Look::Directory { path })
}

/// What is there, and whether it is of use.
pub(super) fn answer(seen: &Seen, ask: &Ask, there: Option<Object>) -> Option<Object> {
    let mut there = there?;
    if let Some(place) = place(ask) {
        let is_hollow = is_here(ask, &there) && is_missing(seen, &place);
        there.insert("hollow".to_owned(), is_hollow.into());
    }
    Some(there)
}

/// Something is in the directory, and it is this one's and nowhere on its way.
fn is_here(ask: &Ask, there: &Object) -> bool {
    let is = |name: &str| boolean(there, name) == Some(true);
    text(there, "path") == text(&ask.identity, "path") && !is("empty") && !is("moving") && !is("foreign") && !there.contains_key("instead")
}

/// Nothing is there. What could not be looked at may be.
fn is_missing(seen: &Seen, place: &str) -> bool {
    match seen.paths.get(place) {
        None => true,
        Some(Ok(found)) => found.kind == PathKind::Directory && found.empty,
        Some(Err(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::Value;

    use super::*;
    use crate::look::PathSeen;
    use crate::values::object;

    fn directory(empty: bool) -> PathSeen {
        let [owner, group, uid, gid] = ["etcd", "etcd", "9", "9"].map(str::to_owned);
        PathSeen { kind: PathKind::Directory, owner, group, uid, gid, mode: 0o700, size: 0, sha256: None, content: None, empty }
    }

    fn ask(begun: bool) -> Ask {
        let wanted = object([("path", "/d".into()), ("essential", "member/wal".into())]);
        let (resource_type, identity) = ("ssh_directory".to_owned(), object([("path", "/d".into())]));
        Ask { resource_type, identity, known: None, wanted: Some(wanted), begun }
    }

    #[test]
    fn a_directory_without_what_counts_is_hollow() {
        let at = |wal: Option<Result<PathSeen, String>>, more: &[(&str, Value)], begun: bool| {
            let paths = wal.into_iter().map(|found| ("/d/member/wal".to_owned(), found)).collect();
            let seen = Seen { place: "h".to_owned(), paths, ..Seen::default() };
            let mut there = object([("path", "/d".into()), ("empty", false.into())]);
            there.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            boolean(&answer(&seen, &ask(begun), Some(there)).unwrap(), "hollow")
        };
        assert_eq!(at(None, &[], true), Some(true));
        assert_eq!(at(Some(Ok(directory(true))), &[], true), Some(true));
        assert_eq!(at(Some(Ok(directory(false))), &[], true), Some(false));
        assert_eq!(at(Some(Err("Permission denied".to_owned())), &[], true), Some(false), "nobody saw that it is missing");
        assert_eq!(at(None, &[("empty", true.into())], true), Some(false), "then it is empty");
        for way in ["moving", "foreign"] {
            assert_eq!(at(None, &[(way, true.into())], true), Some(false), "{way}");
        }
        assert_eq!(at(None, &[("path", "/e".into())], true), Some(false), "it was brought elsewhere");
        assert_eq!(at(None, &[], false), None, "it is in no state");
        assert_eq!(look(&ask(true)), Some(Look::Directory { path: "/d/member/wal".to_owned() }));
        assert_eq!(look(&ask(false)), None);
    }

    #[test]
    fn what_is_not_below_it_is_refused() {
        let told = |path: &str| {
            let refused = check(&object([("essential", path.into())]));
            refused.map_err(|found| found.iter().map(|d| d.summary.clone()).collect::<String>())
        };
        assert_eq!(told("member/wal"), Ok(()));
        for bad in ["", "/member", "../member", "member/", "a b"] {
            assert_eq!(told(bad), Err("Bad path".to_owned()), "{bad}");
        }
    }
}
