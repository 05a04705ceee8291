use super::*;
use crate::values::object;
use karmaform_model::Action;

const A: &str = "CustomResourceDefinition.apiextensions.k8s.io//a.x";
const B: &str = "ConfigMap/n/b";

fn wanted(source: &str) -> Object {
    let cluster = Value::object([("provider", "kubernetes".into()), ("id", "u".into())]);
    object([("cluster", cluster), ("name", "set".into()), ("source", source.into())])
}

fn before(source: &str, objects: Value, seen: Option<Value>) -> Object {
    let mut before = wanted(source);
    before.insert("objects".into(), objects);
    before.extend(seen.map(|s| ("seen".to_owned(), s)));
    before
}

fn map(parts: &[(&str, &'static str)]) -> Value {
    texts(parts.iter().map(|(n, w)| ((*n).to_owned(), *w)))
}

fn plan(before: Option<&Object>, wanted: &Object) -> Result<Change, Diagnostics> {
    KubernetesArchive::new().plan(&PlanContext { now: 0 }, before, Some(wanted))
}

#[test]
fn what_is_missing_or_different_is_an_update() {
    let all = map(&[(A, AS_WANTED), (B, AS_WANTED)]);
    let same = before("a.tgz", all.clone(), Some(all.clone()));
    assert_eq!(plan(Some(&same), &wanted("a.tgz")).unwrap().action(), Action::NoOp);
    let seen = map(&[(A, DIFFERENT), (B, MISSING)]);
    let update = plan(Some(&before("a.tgz", seen.clone(), Some(seen.clone()))), &wanted("a.tgz")).unwrap();
    assert_eq!((update.action(), &update.after().unwrap()["objects"]), (Action::Update, &all));
    assert_eq!(KubernetesArchive::new().impact(&update), ["makes 1 object", "changes 1 object"]);
    assert!(plan(None, &wanted("a.tgz")).unwrap().after().unwrap()["objects"].is_unknown());
}

#[test]
fn another_archive_shows_what_it_changes() {
    let known = map(&[(A, AS_WANTED), ("ConfigMap/n/old", AS_WANTED)]);
    let seen = map(&[(A, DIFFERENT), (B, MISSING)]);
    let update = plan(Some(&before("a.tgz", known.clone(), Some(seen.clone()))), &wanted("b.tgz")).unwrap();
    assert_eq!((update.action(), &update.before().unwrap()["objects"]), (Action::Update, &seen));
    assert_eq!(update.after().unwrap()["objects"], map(&[(A, AS_WANTED), (B, AS_WANTED)]), "what is left over is forgotten");
    // not looked at: only what the state says can be told, and only of the same archive
    assert_eq!(plan(Some(&before("a.tgz", known.clone(), None)), &wanted("a.tgz")).unwrap().action(), Action::NoOp);
    assert!(plan(Some(&before("a.tgz", known.clone(), None)), &wanted("b.tgz")).unwrap().after().unwrap()["objects"].is_unknown());
    let mut open = wanted("a.tgz");
    open.insert("substitutions".into(), Value::unknown(Type::map(Type::String)));
    assert!(plan(Some(&before("a.tgz", known, Some(seen))), &open).unwrap().after().unwrap()["objects"].is_unknown());
}

#[test]
fn what_others_made_is_refused_unless_forced_and_deleting_says_what_goes() {
    let mut foreign = before("a.tgz", map(&[(A, DIFFERENT)]), Some(map(&[(A, DIFFERENT)])));
    foreign.insert("foreign".into(), Value::list(Type::String, vec![A.into()]));
    assert!(plan(Some(&foreign), &wanted("a.tgz")).unwrap_err().iter().next().unwrap().detail.contains(A));
    let mut forced = wanted("a.tgz");
    forced.insert("force".into(), true.into());
    assert_eq!(plan(Some(&foreign), &forced).unwrap().action(), Action::Update);
    let spec = KubernetesArchive::new();
    let delete = |objects: &[(&str, &'static str)]| spec.impact(&Change::Delete { before: before("a.tgz", map(objects), None) });
    assert_eq!(delete(&[(A, AS_WANTED), (B, AS_WANTED)]), ["deletes 2 objects, and everything of these kinds with them"]);
    assert_eq!(delete(&[(A, MISSING), (B, AS_WANTED)]), ["deletes 1 object"]);
}
