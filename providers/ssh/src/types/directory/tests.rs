//! What is planned, seen and told of directories.

use super::*;
use crate::owned::Owned;
use crate::values::object;
use karmaform_model::Action;

fn directory(path: &str, purge: bool, empty: bool) -> Object {
    object([("path", path.into()), ("purge", purge.into()), ("empty", empty.into())])
}

#[test]
fn deleting_data_is_an_impact() {
    let check = |purge: bool, empty: bool, expected: usize| {
        let change = Change::Delete { before: directory("/var/lib/etcd", purge, empty) };
        assert_eq!(Directory::new().impact(&change).len(), expected);
    };
    check(true, false, 1);
    check(true, true, 0);
    check(false, false, 0);
}

#[test]
fn an_empty_directory_is_taken_over_and_a_full_one_is_not() {
    let plan = |empty: bool| {
        let mut before = directory("/mnt/disk", false, empty);
        before.insert("foreign".into(), true.into());
        Directory::new().plan(&PlanContext { now: 0 }, Some(&before), Some(&directory("/mnt/disk", false, empty)))
    };
    assert!(matches!(plan(true), Ok(Change::Update { .. })), "so that it is written down on the host");
    assert!(plan(false).is_err());
}

#[test]
fn what_is_above_must_be_closed_to_others_and_open_to_its_own() {
    let at = |owner: &str, mode: u32| PathSeen {
        kind: PathKind::Directory,
        owner: owner.to_owned(),
        group: owner.to_owned(),
        uid: "0".to_owned(),
        gid: "0".to_owned(),
        mode,
        size: 0,
        sha256: None,
        content: None,
        empty: false,
    };
    let check = |above: (&str, u32), below: (&str, u32), said: &str| {
        let found = above_it("/a", &at(above.0, above.1), &at(below.0, below.1)).unwrap_or_default();
        assert!(found.contains(said) && found.is_empty() == said.is_empty(), "{above:?} {below:?}: {found}");
    };
    check(("root", 0o755), ("etcd", 0o700), "");
    check(("root", 0o777), ("root", 0o700), "/a has the mode 0777");
    // As /tmp: what is in it only its owner can replace.
    check(("root", 0o1777), ("etcd", 0o700), "");
    check(("root", 0o700), ("etcd", 0o700), "only root gets to it: /a has the mode 0700");
    // Root gets everywhere, and who owns both, too.
    check(("etcd", 0o700), ("root", 0o755), "");
    check(("etcd", 0o700), ("etcd", 0o700), "");
    let below = PathSeen { owner: "root".to_owned(), ..at("etcd", 0o700) };
    assert_eq!(above_it("/a", &at("root", 0o700), &below), None, "its group has no rights there");
}

#[test]
fn what_the_host_has_forgotten_it_is_told_again() {
    let [owner, group, uid, gid] = ["root", "root", "0", "0"].map(str::to_owned);
    let there =
        PathSeen { kind: PathKind::Directory, owner, group, uid, gid, mode: 0o755, size: 6, sha256: None, content: None, empty: true };
    let mut known = directory("/srv/data", true, true);
    known.extend([("mode", "0755"), ("owner", "root"), ("group", "root")].map(|(n, v)| (n.to_owned(), v.into())));
    let action = |owned: &str, is_all_owned: bool| {
        let paths = [("/srv/data".to_owned(), Ok(there.clone()))].into();
        let seen = Seen { place: "h".to_owned(), paths, owned: Owned::parse(owned), is_all_owned, ..Seen::default() };
        let found = Directory::new().answer(&seen, &object([("path", "/srv/data".into())]), Some(&known)).unwrap().unwrap();
        let change = Directory::new().plan(&PlanContext { now: 0 }, Some(&found), Some(&known)).unwrap();
        (change.action(), found["care"].as_items().map_or(0, <[Value]>::len), Directory::new().impact(&change).len())
    };
    assert_eq!(action("", true), (Action::Update, 1, 1));
    assert_eq!(action("ssh_directory\t/srv/data\t\n", true), (Action::NoOp, 0, 0));
    assert_eq!(action("adopted\t/srv/data\t\n", true), (Action::NoOp, 0, 0));
    assert_eq!(action("", false), (Action::NoOp, 0, 0), "who is not root does not see what root keeps");
}

#[test]
fn a_link_in_its_place_is_a_change_that_no_plan_makes_good() {
    let mut seen = Seen { place: "h".to_owned(), ..Seen::default() };
    let [owner, group, uid, gid] = ["root", "root", "0", "0"].map(str::to_owned);
    let kind = PathKind::Other("symbolic link".to_owned());
    let link = PathSeen { kind, owner, group, uid, gid, mode: 0o777, size: 6, sha256: None, content: None, empty: true };
    seen.paths.insert("/srv/data".into(), Ok(link));
    let mut known = directory("/srv/data", true, false);
    known.insert("mode".into(), "0750".into());
    let look = |known: Option<&Object>| Directory::new().answer(&seen, &object([("path", "/srv/data".into())]), known);
    let found = look(Some(&known)).unwrap().unwrap();
    assert_eq!(
        (text(&found, "mode"), text(&found, "instead"), boolean(&found, "empty")),
        (Some("0777"), Some("symbolic link"), Some(false))
    );
    for wanted in [Some(&known), None] {
        let refused = Directory::new().plan(&PlanContext { now: 0 }, Some(&found), wanted).unwrap_err();
        let detail = refused.iter().next().unwrap().detail.clone();
        assert!(detail.contains("/srv/data on ") && detail.contains("is a symbolic link, but should be a directory"), "{detail}");
    }
    assert_eq!(look(None).unwrap_err().summary, "Something else is at this path", "what is not known is not ours");
}

#[test]
fn system_directories_can_not_be_purged() {
    let plan = |path, purge| Directory::new().plan(&PlanContext { now: 0 }, None, Some(&directory(path, purge, false)));
    assert!(plan("/var/lib", true).is_err());
    assert!(plan("/var/lib", false).is_ok());
    assert!(plan("/var/lib/etcd", true).is_ok());
    assert!(deletion(&directory("/etc", true, false)).is_err());
}
