use karmaform_model::Action;

use super::*;

const CONTEXT: PlanContext = PlanContext { now: 0 };

fn wanted(more: &[(&str, Value)]) -> Object {
    let cluster = Value::object([("id", "p".into()), ("endpoints", Value::strings(["https://10.0.0.1:2379"]))]);
    let mut object = Object::from([
        ("cluster".to_owned(), cluster),
        ("prefix".to_owned(), "/a".into()),
        ("owner".to_owned(), "ns/x".into()),
        ("owner_uid".to_owned(), "u".into()),
        ("on_destroy".to_owned(), "keep".into()),
        ("adopt".to_owned(), false.into()),
    ]);
    object.extend(more.iter().map(|(n, v)| ((*n).to_owned(), v.clone())));
    object
}

/// As etcd tells it, to a state that knows nothing.
fn seen(uid: Option<&str>, keys: i64, overlaps: &[&str]) -> Object {
    let null = || Value::null(Type::String);
    Object::from([
        ("prefix".to_owned(), "/a".into()),
        ("owner".to_owned(), uid.map_or_else(null, |_| "ns/other".into())),
        ("owner_uid".to_owned(), uid.map_or_else(null, Value::from)),
        ("checked".to_owned(), true.into()),
        ("cluster_id".to_owned(), "c".into()),
        ("foreign".to_owned(), (uid.is_some() || keys > 0).into()),
        ("keys".to_owned(), keys.into()),
        ("first_key".to_owned(), if keys > 0 { "/a/pods/x".into() } else { null() }),
        ("overlaps".to_owned(), Value::strings(overlaps)),
    ])
}

fn plan(before: Option<Object>, wanted: &Object) -> Result<Action, String> {
    let change = EtcdPrefix.plan(&CONTEXT, before.as_ref(), Some(wanted));
    change.map(|c| c.action()).map_err(|d| d.into_iter().map(|d| format!("{}: {} {}", d.summary, d.detail, d.hints.join(" "))).collect())
}

#[test]
fn what_is_somebody_elses_is_refused_and_what_is_ours_is_not() {
    let own = wanted(&[]);
    assert_eq!(plan(None, &own), Ok(Action::Create));
    // Ours, of a lost state: nothing but the state has to learn it.
    let mut ours = seen(Some("u"), 5, &[]);
    ours.insert("owner".to_owned(), "ns/x".into());
    assert_eq!(plan(Some(ours), &own), Ok(Action::NoOp));
    for (before, part) in [
        (seen(None, 1, &[]), "is not empty, and nothing says whose it is. One key is below it: /a/pods/x."),
        (seen(None, 17, &[]), "nothing says whose it is. 17 keys are below it; the first is /a/pods/x."),
        (seen(Some("v"), 0, &[]), "belongs to \"ns/other\". Nothing is below it just now."),
        (seen(Some("v"), 3, &[]), "/a in the etcd at https://10.0.0.1:2379 belongs to"),
        (seen(None, 0, &["/a/b, which belongs to \"ns/y\""]), "overlaps /a/b, which belongs to \"ns/y\"."),
    ] {
        let why = plan(Some(before.clone()), &own).unwrap_err();
        assert!(why.contains(part) && why.contains("Take "), "{why}");
        // Its own Service is not there yet: nothing that is marked can be its own.
        let later = wanted(&[("owner_uid", Value::unknown(Type::String))]);
        assert!(plan(Some(before), &later).is_err());
    }
}

#[test]
fn adopting_takes_over_but_never_what_overlaps() {
    let own = wanted(&[("adopt", true.into())]);
    assert_eq!(plan(Some(seen(None, 17, &[])), &own), Ok(Action::Update));
    assert_eq!(plan(Some(seen(Some("v"), 17, &[])), &own), Ok(Action::Update));
    assert!(plan(Some(seen(None, 0, &["/a/b, which belongs to \"ns/y\""])), &own).is_err());
    // Asked for or not any more, that alone is no change.
    let mut before = wanted(&[("checked", true.into()), ("cluster_id", "c".into()), ("foreign", false.into())]);
    before.remove("adopt");
    assert_eq!(plan(Some(before), &own), Ok(Action::NoOp));
}

#[test]
fn arguments_are_checked() {
    for (argument, value, part) in
        [("prefix", "/a/", "`prefix` is \"/a/\", which ends with"), ("on_destroy", "drop", "must be \"keep\" or \"delete\"")]
    {
        let why = plan(None, &wanted(&[(argument, value.into())])).unwrap_err();
        assert!(why.contains(part), "{why}");
    }
}
