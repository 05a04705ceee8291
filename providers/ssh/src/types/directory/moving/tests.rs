use karmaform_model::{Action, PlanContext, ResourceSpec};

use super::super::Directory;
use super::*;
use crate::owned::Owned;

mod on_disk;

fn wanted(path: &str) -> Object {
    object([("path", path.into()), ("moves", true.into()), ("stopped_unit", "etcd-main.service".into())])
}

fn seen(paths: &[(&str, bool)], owned: &str) -> Seen {
    let there = |(path, empty): &(&str, bool)| {
        let found = crate::look::PathSeen {
            kind: PathKind::Directory,
            owner: "etcd".to_owned(),
            group: "etcd".to_owned(),
            uid: "9".to_owned(),
            gid: "9".to_owned(),
            mode: 0o700,
            size: 0,
            sha256: None,
            content: None,
            empty: *empty,
        };
        ((*path).to_owned(), Ok(found))
    };
    Seen { place: "h".to_owned(), paths: paths.iter().map(there).collect(), owned: Owned::parse(owned), ..Seen::default() }
}

/// The question of a plan: where the state has it, what it knows of it (`None`: an earlier run did not end there), and where it is wanted.
fn ask(known: Option<&Object>, at: &str, wanted: &Object) -> Ask {
    let (resource_type, identity) = (KIND.to_owned(), object([("path", at.into())]));
    Ask { resource_type, identity, known: known.cloned(), wanted: Some(wanted.clone()), begun: known.is_none() }
}

/// What is planned after that question.
fn planned_for(seen: &Seen, ask: &Ask) -> Result<Change, Diagnostics> {
    use crate::typed::SshType;
    let found = Directory::new().answer_for(seen, ask).unwrap();
    let before = found.map(|found| {
        let mut before = ask.known.clone().unwrap_or_default();
        before.extend(ask.identity.clone());
        before.extend(found);
        before
    });
    Directory::new().plan(&PlanContext { now: 0 }, before.as_ref(), ask.wanted.as_ref())
}

fn planned(seen: &Seen, known: Option<&Object>, at: &str, to: &str) -> Result<Change, Diagnostics> {
    planned_for(seen, &ask(known, at, &wanted(to)))
}

/// What the host notes while it goes from one to the other.
const NOTES: &str = "moving\t/d/b\t/d/a\tetcd-main.service\nmoving\t/d/a\t/d/b\tetcd-main.service\n";

#[test]
fn another_path_is_a_move_only_where_it_may_be() {
    let known = object([("path", "/d/a".into())]);
    let ours = "ssh_directory\t/d/a\t\n";
    let change = planned(&seen(&[("/d/a", false)], ours), Some(&known), "/d/a", "/d/b").unwrap();
    assert_eq!(change.action(), Action::Update);
    assert_eq!(sources(&change), ["/d/a"]);
    assert_eq!(Directory::new().impact(&change).len(), 1);
    let plain = object([("path", "/d/b".into())]);
    let change = Directory::new().plan(&PlanContext { now: 0 }, Some(&known), Some(&plain)).unwrap();
    assert_eq!(change.action(), Action::DestroyThenCreate);
    assert!(sources(&change).is_empty() && script(&change).is_empty());
}

#[test]
fn what_is_there_already_is_not_moved_upon() {
    let known = object([("path", "/d/a".into())]);
    let ours = "ssh_directory\t/d/a\t\n";
    let check = |paths: &[(&str, bool)], owned: &str| planned(&seen(paths, owned), Some(&known), "/d/a", "/d/b").is_ok();
    assert!(!check(&[("/d/a", false), ("/d/b", false)], ours));
    assert!(check(&[("/d/a", false), ("/d/b", true)], ours), "an empty one is a disk's");
    assert!(check(&[("/d/a", false), ("/d/b", false)], &format!("{ours}{NOTES}")), "it is what has come so far");
}

#[test]
fn what_was_cut_off_is_gone_on_with_and_can_be_taken_back() {
    // The state says /d/b, where a run that was cut off was to bring it.
    let check = |paths: &[(&str, bool)], owned: &str, to: &str| planned(&seen(paths, owned), None, "/d/b", to).unwrap().action();
    let begun = &format!("ssh_directory\t/d/a\t\nssh_directory\t/d/b\t\n{NOTES}");
    assert_eq!(check(&[("/d/b", false)], begun, "/d/b"), Action::Update);
    assert_eq!(check(&[], begun, "/d/b"), Action::Update);
    assert_eq!(check(&[], "ssh_directory\t/d/a\t\n", "/d/b"), Action::Create);
    assert_eq!(check(&[("/d/a", false)], begun, "/d/a"), Action::Update, "the host remembers it");
    assert_eq!(check(&[], begun, "/d/a"), Action::Update);
    assert_eq!(check(&[("/d/a", false)], begun, "/d/c"), Action::Update, "a third place");
    assert!(planned(&seen(&[("/d/a", false), ("/d/c", false)], begun), None, "/d/b", "/d/c").is_err(), "which is not ours");
    // Nothing was begun: it is still where it was, whatever there is where it was to go.
    let change = planned(&seen(&[("/d/a", false), ("/d/b", false)], "ssh_directory\t/d/a\t\n"), None, "/d/b", "/d/a").unwrap();
    assert_eq!(change.before().and_then(|b| text(b, "path")), Some("/d/a"));
    // The answer of a run that ended was lost: the state has it where it was, and the host knows better.
    let moved = "ssh_directory\t/d/b\t\nmoved\t/d/a\t/d/b\tetcd-main.service\n";
    let lost = |to: &str| planned(&seen(&[("/d/b", false)], moved), None, "/d/a", to).unwrap();
    assert_eq!((lost("/d/a").action(), sources(&lost("/d/a"))), (Action::Update, vec!["/d/b".to_owned()]));
    assert_eq!((lost("/d/c").action(), sources(&lost("/d/c"))), (Action::Update, vec!["/d/b".to_owned()]));
    assert_eq!(lost("/d/b").before().and_then(|b| text(b, "path")), Some("/d/b"), "it is where it is wanted");
    // Somebody else's is not touched.
    assert_eq!(check(&[("/d/b", false)], "", "/d/a"), Action::Create);
}

/// Where it was brought is not forgotten because there is an empty directory again where it was.
#[test]
fn an_empty_directory_that_was_made_again_says_nothing() {
    let moved = "ssh_directory\t/d/b\t\nmoved\t/d/a\t/d/b\tetcd-main.service\n";
    let there = seen(&[("/d/a", true), ("/d/b", false)], moved);
    for to in ["/d/a", "/d/c"] {
        assert_eq!(sources(&planned(&there, None, "/d/a", to).unwrap()), ["/d/b"], "{to}");
    }
    // One that was made there for this is what there is.
    let made = seen(&[("/d/a", true)], "ssh_directory\t/d/a\t\nmoved\t/d/a\t/d/b\tetcd-main.service\n");
    assert!(sources(&planned(&made, None, "/d/a", "/d/a").unwrap()).is_empty());
}

/// Who was somewhere before is nothing to whoever comes after.
#[test]
fn what_others_have_moved_is_not_taken() {
    let moved = "ssh_directory\t/d/b\t\nmoved\t/d/a\t/d/b\tetcd-other.service\n";
    let mut there = seen(&[("/d/b", false)], moved);
    assert_eq!(planned(&there, None, "/d/a", "/d/a").unwrap().action(), Action::Create, "another unit's");
    there.owned = Owned::parse(&moved.replace("other", "main"));
    let new = Ask { begun: false, ..ask(None, "/d/a", &wanted("/d/a")) };
    assert_eq!(planned_for(&there, &new).unwrap().action(), Action::Create, "the state does not have it");
    let plain = object([("path", "/d/a".into()), ("purge", true.into())]);
    let new = Ask { begun: false, ..ask(None, "/d/a", &plain) };
    assert_eq!(planned_for(&there, &new).unwrap().action(), Action::Create);
    assert!(planned_for(&there, &ask(None, "/d/a", &plain)).is_err(), "it is elsewhere, and would be deleted there");
}

/// Cut off when it had arrived, and the state one answer behind; and when a part of the notes was taken back.
#[test]
fn what_has_arrived_is_no_obstacle() {
    let unit = "etcd-main.service";
    let third = format!(
        "ssh_directory\t/d/b\t\nssh_directory\t/d/c\t\nmoved\t/d/a\t/d/b\t{unit}\nmoving\t/d/c\t/d/b\t{unit}\nmoving\t/d/b\t/d/c\t{unit}\n"
    );
    for to in ["/d/a", "/d/b", "/d/c"] {
        assert_eq!(planned(&seen(&[("/d/c", false)], &third), None, "/d/a", to).unwrap().action(), Action::Update, "{to}");
    }
    let last = format!("ssh_directory\t/d/b\t\nmoved\t/d/a\t/d/b\t{unit}\nmoving\t/d/b\t/d/a\t{unit}\n");
    for to in ["/d/a", "/d/b", "/d/c"] {
        assert_eq!(planned(&seen(&[("/d/b", false)], &last), None, "/d/a", to).unwrap().action(), Action::Update, "{to}");
    }
    let refused = planned(&seen(&[("/d/a", false), ("/d/b", false)], "ssh_directory\t/d/b\t\n"), None, "/d/a", "/d/b");
    assert!(refused.is_ok_and(|change| change.before().and_then(|b| text(b, "path")) == Some("/d/b")), "ours is taken as it is");
}

/// The host has forgotten everything: nothing says that it is lost, and nothing is made where it may be.
#[test]
fn what_the_host_has_forgotten_is_not_lost() {
    let there = seen(&[("/d/b", false)], "");
    let refused = planned(&there, None, "/d/a", "/d/b").unwrap_err();
    assert_eq!(refused.iter().next().unwrap().summary, "Something is at the new place");
    assert_eq!(planned(&seen(&[("/d/b", true)], ""), None, "/d/a", "/d/b").unwrap().action(), Action::Create);
}

/// While it is under way, an empty directory at one of the places does not say that nothing is left.
#[test]
fn an_empty_directory_on_the_way_says_nothing() {
    let begun = format!("ssh_directory\t/d/a\t\n{NOTES}");
    for to in ["/d/a", "/d/b"] {
        let change = planned(&seen(&[("/d/a", true), ("/d/b", true)], &begun), None, "/d/a", to).unwrap();
        assert_eq!(change.before().and_then(|b| boolean(b, "empty")), Some(false), "{to}");
    }
}

/// Without `moves` it would be deleted where it is, or made anew where it is not.
#[test]
fn what_is_on_its_way_is_not_made_anew() {
    let plain = object([("path", "/d/a".into()), ("purge", true.into())]);
    let begun = format!("ssh_directory\t/d/a\t\n{NOTES}");
    for there in [&[][..], &[("/d/a", false)], &[("/d/b", false)]] {
        let refused = planned_for(&seen(there, &begun), &ask(None, "/d/a", &plain)).unwrap_err();
        assert_eq!(refused.iter().next().unwrap().summary, "A directory that is being moved can't be deleted", "{there:?}");
    }
}

#[test]
fn bad_arguments_are_refused() {
    let check = |name: &str, value: Value| {
        let mut wanted = wanted("/d/a");
        wanted.insert(name.to_owned(), value);
        Directory::new().plan(&PlanContext { now: 0 }, None, Some(&wanted)).is_err()
    };
    assert!(check("moves_with", Value::strings(["a b"])) && check("moves_with", Value::strings([""])) && check("stopped_unit", "x".into()));
    assert!(!check("moves_with", Value::strings(["snapshots", "before-*"])));
}
