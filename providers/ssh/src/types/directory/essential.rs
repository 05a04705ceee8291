//! What a directory is nothing without. One that is not empty may have lost all that counts: of a database its log, while what was beside that
//! is left. And one that is empty has lost nothing where a file system is only not mounted.

use karmaform_model::{Ask, Attribute, Diagnostic, Diagnostics, Object, Type, Value};

use crate::connection::place_of;
use crate::look::{Look, PathKind, Seen};
use crate::values::{boolean, object, text};

/// The attributes that say what it is, and whether it is there.
pub(super) fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "essential",
            Type::String,
            "A directory below it without which what is in it is of no use; with `/*ENDING` behind it, something in that whose name ends so: `member/wal/*.wal`. `hollow` says that it is missing.",
        )
        .write_only(),
        Attribute::computed("hollow", Type::Bool, "True if something is in it, and nothing is in `essential`.").volatile(),
        Attribute::computed(
            "unmounted",
            Type::String,
            "The file system that is to be mounted there or above it, and is not; nobody sees then what is in it.",
        )
        .volatile(),
    ]
}

/// What is wrong with them.
///
/// # Errors
/// It is no path below the directory.
pub(super) fn check(wanted: &Object) -> Result<(), Diagnostics> {
    let is_name =
        |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    let is_good = |path: &str| {
        let (directory, ending) = parted(path);
        directory.split('/').all(is_name) && ending.is_none_or(is_name)
    };
    match text(wanted, "essential").filter(|path| !is_good(path)) {
        None => Ok(()),
        Some(bad) => {
            let names =
                "names of letters, digits, \"_\", \"-\" and \".\" with \"/\" between them, the last one perhaps with \"*\" before it";
            let detail = format!("\"{bad}\" in \"essential\" is no path below the directory: {names}.");
            Err(Diagnostic::error("Bad path", detail).into())
        }
    }
}

/// The directory, and how a name in it ends, where one is asked for.
fn parted(essential: &str) -> (&str, Option<&str>) {
    essential.split_once("/*").map_or((essential, None), |(directory, ending)| (directory, Some(ending)))
}

/// Where it has to be, of a directory that is in the state. What others left in one that is not says nothing.
fn place(ask: &Ask) -> Option<(String, Option<&str>)> {
    let (path, essential) = (text(&ask.identity, "path")?, text(ask.wanted.as_ref()?, "essential")?);
    let (directory, ending) = parted(essential);
    (ask.begun || ask.known.is_some()).then(|| (format!("{path}/{directory}"), ending))
}

/// What is looked at besides the directory.
pub(super) fn look(ask: &Ask) -> Option<Look> {
    let (path, ending) = place(ask)?;
    Some(match ending {
        Some(ending) => Look::Among { path, ending: ending.to_owned() },
        None => Look::Directory { path },
    })
}

/// What is there, and whether it is of use. Where a file system is not mounted nothing seems to be.
pub(super) fn answer(seen: &Seen, ask: &Ask, there: Option<Object>) -> Option<Object> {
    let Some(path) = text(&ask.identity, "path") else { return there };
    // Where nobody says what is wanted, as by `-refresh-only`, the state does not forget what nobody sees: the next plan would begin it anew.
    if ask.wanted.is_none() {
        return there.or_else(|| ask.known.clone().filter(|_| unmounted(seen, path).is_some()));
    }
    let Some((place, _)) = place(ask) else { return there };
    // What was written below the place of a file system, as it was not mounted then, says nothing of what is on that.
    let is_useless = |there: &Object| boolean(there, "empty") == Some(true) || is_here(ask, there) && is_missing(seen, &place);
    let is_gone = there.as_ref().is_none_or(is_useless);
    let unmounted = unmounted(seen, &place).filter(|_| is_gone);
    let unseen = || object([("path", path.into()), ("empty", false.into()), ("foreign", false.into())]);
    let mut there = there.or_else(|| unmounted.map(|_| unseen()))?;
    let is_hollow = unmounted.is_none() && is_here(ask, &there) && is_missing(seen, &place);
    there.insert("hollow".to_owned(), is_hollow.into());
    there.insert("unmounted".to_owned(), unmounted.map_or_else(|| Value::null(Type::String), Value::from));
    Some(there)
}

/// The file system that is missing on the way to a path.
fn unmounted<'a>(seen: &'a Seen, path: &str) -> Option<&'a str> {
    let is_on_the_way = |root: &&String| path.strip_prefix(root.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    seen.unmounted.iter().find(is_on_the_way).map(String::as_str)
}

/// Refuses to begin anew what nobody sees.
///
/// # Errors
/// A file system is missing.
pub(super) fn may_begin(before: Option<&Object>, wanted: &Object) -> Result<(), Diagnostics> {
    let Some(root) = before.and_then(|before| text(before, "unmounted")) else { return Ok(()) };
    let what = format!("The directory {} on {}", text(wanted, "path").unwrap_or_default(), place_of(wanted));
    let why = format!("the host's /etc/fstab mounts a file system at {root}, and it is not mounted now");
    let detail = format!("{what}: {why}. What is there may be as it was.");
    Err(Diagnostic::error("A file system is not mounted", detail)
        .with_hint(format!("On the host, \"mount {root}\"; then plan again."))
        .with_hint("If that file system is lost for good, take its line out of /etc/fstab, and plan again: then nothing is there any more.")
        .into())
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
    use std::process::Command;

    use karmaform_model::{Action, PlanContext, ResourceSpec as _};

    use super::super::Directory;
    use super::*;
    use crate::look::PathSeen;

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
        let mut log = ask(true);
        log.wanted = Some(object([("path", "/d".into()), ("essential", "member/wal/*.wal".into())]));
        assert_eq!(look(&log), Some(Look::Among { path: "/d/member/wal".to_owned(), ending: ".wal".to_owned() }));
    }

    #[test]
    fn what_is_only_half_made_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["whole", "half", "none"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for file in ["whole/0.tmp", "whole/1.wal", "whole/2.wal", "half/0.tmp", "half/1.wal.broken"] {
            std::fs::write(at(file), "").unwrap();
        }
        let asked: Vec<String> = ["whole", "half", "none", "absent"].map(|name| format!("{} .wal", at(name).display())).into();
        let script = format!("kf_line='\n'\n{}\namong {}\n", include_str!("../../script/looks.sh"), asked.join(" "));
        let output = Command::new("sh").args(["-euc", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", at("whole").display()), "{output:?}");
    }

    #[test]
    fn what_nobody_sees_is_not_lost() {
        let told = |path: &str, found: Option<PathSeen>, (owned, wal, root): (&str, Option<bool>, &str)| {
            let mut ask = ask(true);
            ask.identity = object([("path", path.into())]);
            let wanted = ask.wanted.insert(object([("path", path.into()), ("essential", "member/wal".into())])).clone();
            let log = wal.map(|empty| (format!("{path}/member/wal"), Ok(directory(empty))));
            let paths = found.into_iter().map(|found| (path.to_owned(), Ok(found))).chain(log).collect();
            let owned = crate::owned::Owned::parse(owned);
            let seen = Seen { place: "h".to_owned(), paths, owned, unmounted: vec![root.to_owned()], ..Seen::default() };
            let there = crate::typed::SshType::answer_for(&Directory::new(), &seen, &ask).unwrap();
            let planned = |wanted: Option<&Object>| Directory::new().plan(&PlanContext { now: 0 }, there.as_ref(), wanted);
            assert!(there.is_none() || planned(None).is_ok(), "who is not wanted need not be there");
            planned(Some(&wanted)).map(|change| change.action()).map_err(|found| found.iter().map(|d| d.detail.clone()).collect::<String>())
        };
        let why = "The directory /d on the host: the host's /etc/fstab mounts a file system at /d, and it is not mounted now. \
                   What is there may be as it was.";
        let ours = "adopted\t/d\t\n";
        assert_eq!(told("/d", Some(directory(true)), (ours, None, "/d")), Err(why.to_owned()));
        assert_eq!(told("/d/data", None, ("", None, "/d")), Err(why.replace("directory /d ", "directory /d/data ")));
        assert_eq!(told("/data", None, ("", None, "/d")), Ok(Action::Create), "it is not on that way");
        assert!(told("/d", Some(directory(false)), (ours, Some(false), "/d")).is_ok(), "it is on the file system below");
        assert_eq!(told("/d", Some(directory(false)), (ours, None, "/d")), Err(why.to_owned()), "below is something else");
        let of_log = Err(why.replace("system at /d,", "system at /d/member/wal,"));
        assert_eq!(told("/d", Some(directory(false)), (ours, Some(true), "/d/member/wal")), of_log, "its log has a disk of its own");
    }

    #[test]
    fn who_wants_nothing_forgets_nothing() {
        let known = object([("path", "/d/data".into()), ("owner", "etcd".into())]);
        let told = |known: Option<&Object>, root: &str, there: Option<Object>| {
            let ask = Ask { identity: object([("path", "/d/data".into())]), known: known.cloned(), wanted: None, ..ask(known.is_none()) };
            answer(&Seen { place: "h".to_owned(), unmounted: vec![root.to_owned()], ..Seen::default() }, &ask, there)
        };
        assert_eq!(told(Some(&known), "/d", None), Some(known.clone()));
        assert_eq!(told(Some(&known), "/e", None), None);
        assert_eq!(told(None, "/d", None), None);
        let there = object([("path", "/d/data".into()), ("owner", "root".into())]);
        assert_eq!(told(Some(&known), "/d", Some(there.clone())), Some(there));
    }

    #[test]
    fn a_host_tells_what_is_not_mounted() {
        let folder = tempfile::tempdir().unwrap();
        let fstab = folder.path().join("fstab");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/proc", &link).unwrap();
        let lines = format!(
            "# disks\n/dev/a / ext4 defaults 0 1\n/dev/b /kf-nowhere/ ext4 nofail 0 2\n/dev/c /kf-later ext4 noauto 0 2\n\
             /dev/d none swap sw 0 0\nproc /proc proc defaults 0 0\nproc {} proc defaults 0 0\n\n/dev/e /kf-last ext4 defaults",
            link.display()
        );
        std::fs::write(&fstab, lines).unwrap();
        let told = |command: &str| {
            let script = format!("kf_fstab={}\n{}\n{command}\n", fstab.display(), include_str!("../../script/prelude.sh"));
            let output = Command::new("sh").args(["-ec", &script]).output().unwrap();
            assert!(output.stderr.is_empty(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(told("unmounted"), "/kf-nowhere\n/kf-last\n");
        // By whoever moves something there: it may be mounted over that later.
        assert_eq!(told("unmounted noauto"), "/kf-nowhere\n/kf-later\n/kf-last\n");
    }

    #[test]
    fn what_is_not_below_it_is_refused() {
        let told = |path: &str| {
            let refused = check(&object([("essential", path.into())]));
            refused.map_err(|found| found.iter().map(|d| d.summary.clone()).collect::<String>())
        };
        assert_eq!(told("member/wal"), Ok(()));
        assert_eq!(told("member/wal/*.wal"), Ok(()));
        for bad in ["", "/member", "../member", "member/", "a b", "*.wal", "wal/*", "wal/*/x", "*/wal", "wal/*..", "wal/*.*"] {
            assert_eq!(told(bad), Err("Bad path".to_owned()), "{bad}");
        }
    }
}
