//! What is planned, seen and told of files from releases.

use super::*;
use crate::values::object;
use karmaform_model::Action;

fn wanted(source: &str, sha256: Option<&str>, member: Option<&str>) -> Object {
    let optional = |v: Option<&str>| v.map_or_else(|| Value::null(Type::String), Value::from);
    object([
        ("path", "/usr/local/bin/etcd".into()),
        ("platform", Value::null(Type::String)),
        ("source", source.into()),
        ("sha256", optional(sha256)),
        ("member", optional(member)),
    ])
}

fn plan(before: Option<&Object>, wanted: &Object) -> (Action, Option<String>) {
    let change = Artifact::new().plan(&PlanContext { now: 0 }, before, Some(wanted)).unwrap();
    (change.action(), change.after().and_then(|a| text(a, "content_sha256")).map(str::to_owned))
}

fn installed(mut object: Object, sum: &str, recorded: Option<&str>) -> Object {
    object.insert("content_sha256".into(), sum.into());
    object.insert("recorded_sha256".into(), recorded.map_or_else(|| Value::null(Type::String), Value::from));
    object
}

#[test]
fn the_sum_is_planned_as_far_as_it_is_known() {
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let archive = wanted("u", Some(&a), Some("etcd"));
    assert_eq!(plan(None, &wanted("u", Some(&a), None)), (Action::Create, Some(a.clone())));
    assert_eq!(plan(None, &archive), (Action::Create, None));
    let before = installed(archive.clone(), "c1", None);
    assert_eq!(plan(Some(&before), &archive), (Action::NoOp, Some("c1".into())));
    assert_eq!(plan(Some(&before), &wanted("u2", Some(&a), Some("etcd"))), (Action::Update, Some("c1".into())));
    assert_eq!(plan(Some(&before), &wanted("u", Some(&b), Some("etcd"))), (Action::Update, None));
    let before = installed(wanted("u", None, Some("etcd")), "c1", None);
    assert_eq!(plan(Some(&before), &wanted("u2", None, Some("etcd"))), (Action::Update, None));
}

#[test]
fn a_link_above_it_is_told() {
    use crate::look::{PathKind, PathSeen};
    use crate::owned::Owned;
    let path = "/opt/tools/etcd";
    let seen = |kind: PathKind| {
        let [owner, group, uid, gid] = ["root", "root", "0", "0"].map(str::to_owned);
        let above = PathSeen { kind, owner, group, uid, gid, mode: 0o755, size: 6, sha256: None, content: None, empty: false };
        let file = PathSeen { kind: PathKind::File, sha256: Some("c1".to_owned()), ..above.clone() };
        let paths = [("/opt/tools".to_owned(), Ok(above)), (path.to_owned(), Ok(file))].into();
        Seen { paths, owned: Owned::parse("parent\t/opt/tools\t\n"), ..Seen::default() }
    };
    let identity = object([("path", path.into())]);
    let care = |kind: PathKind, known: Option<&Object>| {
        let found = Artifact::new().answer(&seen(kind), &identity, known).unwrap().unwrap();
        found["care"].as_items().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let known = installed(identity.clone(), "c1", None);
    let told = care(PathKind::Other("symbolic link".to_owned()), Some(&known));
    assert!(told.len() == 1 && told[0].contains("a symbolic link into the place of /opt/tools"), "{told:?}");
    assert!(care(PathKind::Directory, Some(&known)).is_empty());
    assert!(care(PathKind::Other("symbolic link".to_owned()), None).is_empty(), "nobody has made it yet");
    let asked = |known: Option<&Object>| Artifact::new().looks(&identity, known).len();
    assert_eq!((asked(Some(&known)), asked(None)), (3, 1));
}

#[test]
fn an_image_is_the_same_by_its_digest() {
    let (a, b) = (format!("@sha256:{}", "a".repeat(64)), format!("@sha256:{}", "b".repeat(64)));
    let image = |source: &str, digest: &str| wanted(&format!("oci://{source}{digest}"), None, Some("etcd"));
    let on = |platform: Value, mut object: Object| {
        object.insert("platform".into(), platform);
        object
    };
    let before = installed(image("r.io/etcd:v1", &a), "c1", None);
    let check = |wanted: Object, expected: Option<&str>| {
        assert_eq!(plan(Some(&before), &wanted).1.as_deref(), expected, "{wanted:?}");
    };
    assert_eq!(plan(Some(&before), &image("r.io/etcd:v1", &a)).0, Action::NoOp);
    check(image("mirror.io/etcd", &a), Some("c1"));
    check(image("r.io/etcd:v1", &b), None);
    check(on("linux/amd64".into(), image("r.io/etcd:v1", &a)), Some("c1"));
    check(on("linux/arm64".into(), image("r.io/etcd:v1", &a)), None);
    check(on(Value::unknown(Type::String), image("r.io/etcd:v1", &a)), None);
    check(wanted(&format!("oci://r.io/etcd:v1{a}"), None, Some("etcdctl")), None);
    check(wanted("/srv/e.tar.gz", Some(&a[8..]), Some("etcd")), None);
    // by its tag it is taken for the same as long as nothing else is asked for
    let before = installed(image("r.io/etcd:v1", ""), "c1", None);
    assert_eq!(plan(Some(&before), &image("r.io/etcd:v1", "")), (Action::NoOp, Some("c1".into())));
    assert_eq!(plan(Some(&before), &image("r.io/etcd:v2", "")), (Action::Update, None));
    assert_eq!(plan(Some(&before), &on("linux/arm64".into(), image("r.io/etcd:v1", ""))), (Action::Update, None));
}

#[test]
fn images_have_arguments_of_their_own() {
    let check = |wanted: &Object, summary: &str| {
        let found = Artifact::new().plan(&PlanContext { now: 0 }, None, Some(wanted)).err();
        let found: Vec<_> = found.into_iter().flatten().map(|d| format!("{} {}", d.summary, d.detail)).collect();
        assert!(found.len() == 1 && found[0].starts_with(summary) && !found[0].contains("hunter2"), "{found:?}");
    };
    let with_platform = |mut object: Object, platform: &str| {
        object.insert("platform".into(), platform.into());
        object
    };
    check(&wanted("oci://r.io/etcd", None, Some("etcd")), "Bad source");
    check(&wanted("oci://u:hunter2@r.io/etcd:v1", None, Some("etcd")), "Bad source");
    check(&wanted("oci://r.io/etcd:v1", None, None), "Member is missing");
    check(&wanted("oci://r.io/etcd:v1", Some(&"a".repeat(64)), Some("etcd")), "Image has no sum");
    check(&with_platform(wanted("oci://r.io/etcd:v1", None, Some("etcd")), "amd64"), "Bad platform");
    check(&with_platform(wanted("https://r.io/e.tar.gz", None, Some("etcd")), "linux/amd64"), "Platform is only for images");
    let mut secret = wanted("oci://r.io/hunter2", None, Some("etcd"));
    secret.insert("source".into(), Value::from("oci://r.io/hunter2").secret());
    check(&secret, "Bad source");
    let mut unknown = wanted("oci://r.io/etcd:v1", None, None);
    unknown.insert("member".into(), Value::unknown(Type::String));
    assert_eq!(plan(None, &unknown), (Action::Create, None));
}

#[test]
fn another_file_in_its_place_is_put_right() {
    let archive = wanted("u", Some(&"a".repeat(64)), Some("etcd"));
    let before = installed(archive.clone(), "drifted", Some("c1"));
    assert_eq!(plan(Some(&before), &archive), (Action::Update, Some("c1".into())));
}

#[test]
fn a_source_is_needed_only_for_what_is_not_installed() {
    let need = |seen: Option<&Object>, known: Option<&Object>, wanted: &Object| Artifact::new().need(seen, known, wanted).is_some();
    let (a, b) = ("a".repeat(64), "b".repeat(64));
    let local = wanted("/srv/e.tar.gz", Some(&a), Some("etcd"));
    assert!(need(None, None, &local), "absent");
    let known = installed(local.clone(), "c1", None);
    let seen = |sum: &str, recorded: Option<&str>| installed(object([("foreign", false.into())]), sum, recorded);
    assert!(!need(Some(&seen("c1", None)), Some(&known), &local), "installed");
    assert!(need(Some(&seen("drifted", Some("c1"))), Some(&known), &local), "another file is in its place");
    assert!(need(Some(&seen("c1", None)), Some(&known), &wanted("/srv/e.tar.gz", Some(&b), Some("etcd"))), "another version is wanted");
    assert!(!need(Some(&seen("c1", None)), Some(&known), &wanted("/elsewhere", Some(&a), Some("etcd"))), "the same bytes");
    let mut foreign = seen("x", None);
    foreign.insert("foreign".into(), true.into());
    assert!(!need(Some(&foreign), None, &local), "it is refused anyway");
    let mut unknown = local;
    unknown.insert("source".into(), Value::unknown(Type::String));
    assert!(!need(None, None, &unknown));
}

#[test]
fn a_sum_must_be_one() {
    assert!(Artifact::new().plan(&PlanContext { now: 0 }, None, Some(&wanted("u", Some("12"), None))).is_err());
}
