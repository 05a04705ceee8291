use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use futures::executor::block_on;
use karmaform_model::Action;

use super::*;

const NOW: PlanContext = PlanContext { now: 0 };

fn wanted(filename: &Path, parts: &[(&str, Value)]) -> Object {
    let mut object: Object = parts.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
    object.insert("filename".into(), filename.to_str().unwrap().into());
    for (name, default) in [("file_permission", "0644"), ("directory_permission", "0755")] {
        object.get_or_insert_with(name, || default.into());
    }
    object
}

fn plan(before: Option<&Object>, wanted: &Object) -> Change {
    LocalFile::new().plan(&NOW, before, Some(wanted)).unwrap()
}

fn apply(change: &Change) -> Result<Option<Object>, Diagnostic> {
    block_on(LocalFile::new().apply(&(), change))
}

/// A look at what these attributes name.
fn seen(named: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
    let kind = LocalFile::new();
    let ask = Ask {
        resource_type: kind.name().to_owned(),
        identity: kind.schema.identity(named),
        known: known.cloned(),
        wanted: None,
        begun: false,
    };
    block_on(kind.observe(&(), &ask))
}

/// What the state says, with what is seen over it: as the engine puts the two together.
fn look(known: &Object) -> Option<Object> {
    let mut before = known.clone();
    before.extend(seen(known, Some(known)).unwrap()?);
    Some(before)
}

#[test]
fn a_file_comes_changes_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sub/motd");
    let change = plan(None, &wanted(&path, &[("content", "hi".into())]));
    let hash = "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4";
    assert_eq!(change.after().unwrap()["content_sha256"], hash.into(), "known before it is written");
    let done = apply(&change).unwrap().unwrap();
    assert_eq!(apply(&change).unwrap().unwrap(), done, "twice is once");
    assert_eq!(&done, change.after().unwrap(), "apply does what the plan said");
    assert_eq!(plan(look(&done).as_ref(), &wanted(&path, &[("content", "hi".into())])).action(), Action::NoOp);

    let update = plan(look(&done).as_ref(), &wanted(&path, &[("content", "ho".into()), ("file_permission", "600".into())]));
    assert_eq!(update.action(), Action::Update);
    let done = apply(&update).unwrap().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "ho");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(
        plan(look(&done).as_ref(), &wanted(&path, &[("content", "ho".into()), ("file_permission", "0600".into())])).action(),
        Action::NoOp
    );

    let delete = LocalFile::new().plan(&NOW, Some(&done), None).unwrap();
    assert_eq!((apply(&delete).unwrap(), apply(&delete).unwrap()), (None, None));
    assert_eq!(look(&done), None);
}

#[test]
fn drift_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    for (content, changed) in [
        (("content", Value::from("a")), b"b".as_slice()),
        (("content", "a".into()), &[0xff, 0xfe]),
        (("content_base64", "/w==".into()), b"text"),
        (("content_base64", "YQ==".into()), &[0xff]),
    ] {
        let wanted = wanted(&path, &[content]);
        let done = apply(&plan(None, &wanted)).unwrap().unwrap();
        assert_eq!(plan(look(&done).as_ref(), &wanted).action(), Action::NoOp, "{wanted:?}");
        fs::write(&path, changed).unwrap();
        let drifted = look(&done).unwrap();
        assert_ne!(drifted["content_sha256"], done["content_sha256"]);
        let repair = plan(Some(&drifted), &wanted);
        assert_eq!(repair.action(), Action::Update, "{wanted:?}");
        let repaired = apply(&repair).unwrap().unwrap();
        assert_eq!(plan(look(&repaired).as_ref(), &wanted).action(), Action::NoOp);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(plan(look(&repaired).as_ref(), &wanted).action(), Action::Update, "the mode counts");
    }
}

#[test]
fn a_file_that_the_state_lost_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    for content in [("content", Value::from("a")), ("content_base64", "YQ==".into()), ("content_base64", "/w==".into())] {
        let wanted = wanted(&path, &[content]);
        apply(&plan(None, &wanted)).unwrap();
        let found = seen(&wanted, None).unwrap().unwrap();
        assert_eq!(plan(Some(&found), &wanted).action(), Action::NoOp, "{wanted:?}");
        fs::write(&path, "other").unwrap();
        let found = seen(&wanted, None).unwrap().unwrap();
        assert_eq!(plan(Some(&found), &wanted).action(), Action::Update, "{wanted:?}");
    }
}

#[test]
fn another_name_is_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let done = apply(&plan(None, &wanted(&a, &[("content", "x".into())]))).unwrap().unwrap();
    assert_eq!(plan(Some(&done), &wanted(&b, &[("content", "x".into())])).action(), Action::DestroyThenCreate);
    let later = plan(Some(&done), &wanted(&a, &[("content", Value::unknown(Type::String))]));
    assert!(later.after().unwrap()["content_sha256"].is_unknown());
}

#[test]
fn a_secret_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let wanted = wanted(&path, &[("content", Value::from("hunter2").secret())]);
    let done = apply(&plan(None, &wanted)).unwrap().unwrap();
    assert!(done["content_sha256"].secret && done["id"].secret);
    let seen = look(&done).unwrap();
    assert!(seen["content"].secret && seen["content_sha256"].secret);
    assert!(!format!("{seen:?}").contains("hunter2"));
}

#[test]
fn what_makes_no_sense_is_refused_in_the_plan() {
    let path = Path::new("/nowhere/x");
    for (parts, expected) in [
        (vec![], "No content for a file"),
        (vec![("content", Value::from("a")), ("content_base64", "YQ==".into())], "Two contents for one file"),
        (vec![("content_base64", "???".into())], "Content is not base64"),
        (vec![("content", "a".into()), ("file_permission", "rw".into())], "Not a file mode"),
        (vec![("content", "a".into()), ("file_permission", "0689".into())], "Not a file mode"),
        (vec![("content", "a".into()), ("directory_permission", "77777".into())], "Not a file mode"),
        (vec![("content", "a".into()), ("file_permission", "+644".into())], "Not a file mode"),
    ] {
        let error = LocalFile::new().plan(&NOW, None, Some(&wanted(path, &parts))).unwrap_err();
        assert_eq!(error.iter().next().unwrap().summary, expected, "{parts:?}");
    }
    let error = LocalFile::new().plan(&NOW, None, Some(&wanted(Path::new(""), &[("content", "".into())]))).unwrap_err();
    assert_eq!(error.iter().next().unwrap().summary, "Not a file name");
}

#[test]
fn what_the_disk_refuses_is_said_clearly() {
    let folder = tempfile::tempdir().unwrap();
    // Not a word that the folder's random name may hold: `.tmp` and a `w` are enough for some.
    let object = wanted(folder.path(), &[("content", Value::from("a secret").secret())]);
    let error = apply(&plan(None, &object)).unwrap_err();
    assert_eq!(error.summary, "Local file can't be written");
    assert!(error.detail.contains("a directory is in its place") && !error.detail.contains("a secret"), "{}", error.detail);
    let error = seen(&object, None).unwrap_err();
    assert_eq!(error.summary, "Local file can't be read");
    assert!(folder.path().is_dir());
}

#[test]
fn what_is_not_known_in_the_end_is_named_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for name in ["filename", "content"] {
        let mut after = wanted(&path, &[("content", "hi".into())]);
        after.insert(name.into(), Value::unknown(Type::String));
        let why = apply(&Change::Create { after }).unwrap_err();
        assert_eq!(why.summary, "Value is not known");
        assert!(why.detail.contains(&format!("\"{name}\"")), "{}", why.detail);
        assert!(!path.exists());
    }
}
