//! Tests of first legs.

use super::*;

#[test]
fn whom_a_url_asks_stays_the_same() {
    for (text, expected) in [
        ("https://10.3.7.1/etcd-v3.7.1-linux.tar.gz", Some("https://10.3.7.1/etcd-v3.6.14-linux.tar.gz")),
        ("https://u:3.7.1@h/v3.7.1/13.7.1/3.7.10/3.7.1.2/3.7.1.tar", Some("https://u:3.7.1@h/v3.6.14/13.7.1/3.7.10/3.7.1.2/3.6.14.tar")),
        ("r.example/etcd:3.7.1-0", Some("r.example/etcd:3.6.14-0")),
        ("https://3.7.1", None),
        ("etcd.tar.gz", None),
    ] {
        assert_eq!(with_version(text, "3.7.1", "3.6.14").as_deref(), expected, "{text}");
    }
}

#[test]
fn what_is_said_of_versions_on_the_way_is_checked() {
    let entry = |name: &str, value: &str| Value::object([(name, value.into())]);
    let check = |through: Value, more: &[(&str, Value)], expected: &str| {
        let mut all = object(more);
        all.insert("through".to_owned(), through);
        let mut found = Diagnostics::new();
        super::check(&all, &mut found);
        let text: String = found.iter().map(|d| d.detail.clone()).collect();
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
    };
    let sum = ("source_sha256", Value::from("0f".repeat(32)));
    let in_pods = |image: Value| [("kubernetes", Value::object([("image", image)]))];
    check(Value::object([("3.5.33", entry("source", "x"))]), &[], "");
    check(Value::object([("3.5.16", entry("source", "x"))]), &[], "3.6 takes over from 3.5.32 on");
    check(Value::object([("3.5", entry("source", "x"))]), &[], "three numbers");
    check(Value::object([("3.5.33", entry("sha256", "x"))]), &[], "not one of");
    check(Value::object([("3.5.33", entry("image", "x"))]), &[], "nothing of where etcd 3.5.33 is");
    check(Value::object([("3.5.33", entry("source", "x"))]), &[sum], "none for etcd 3.5.33");
    check(Value::object([("3.5.33", Value::from(Object::new()))]), &in_pods(Value::null(Type::String)), "");
    check(Value::object([("3.5.33", Value::from(Object::new()))]), &in_pods("r.example/etcd:v3.7.1".into()), "nothing of where");
    check("3.5.33".into(), &[], "a map by version");
    check(Value::unknown(Type::Any), &[], "known only after apply");
}

#[test]
fn what_is_secret_stays_so() {
    let through = Value::object([("3.5.33", Value::object([("source", "https://key@h/x".into())]))]).secret();
    let settings = Value::map(Type::String, [("log-level".to_owned(), "info".into())].into()).secret();
    let wanted = [("version", "3.6.14".into()), ("source", "x".into()), ("through", through), ("settings", settings)];
    let (first, _) = gone("3.5.16", &wanted).unwrap();
    assert!(first["source"].contains_secret() && first["settings"].contains_secret());
    let named = [("version", "3.6.14".into()), ("source", Value::from("https://key@h/3.6.14").secret())];
    assert!(gone("3.5.16", &named).unwrap().0["source"].contains_secret());
}

fn object(entries: &[(&str, Value)]) -> Object {
    entries.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect()
}

fn gone(before: &str, wanted: &[(&str, Value)]) -> Option<(Object, String)> {
    first(&object(&[("version", before.into())]), &object(wanted)).map(|leg| (leg.wanted, leg.rest))
}

#[test]
fn a_leg_has_programs_and_settings_of_its_version() {
    let of = |name: &str, value: &str| Value::map(Type::String, [(name.to_owned(), value.into())].into());
    let wanted = [
        ("version", "3.7.1".into()),
        ("source", "https://etcd.example/v3.7.1/etcd-v3.7.1-linux-amd64.tar.gz".into()),
        ("source_sha256", "https://etcd.example/v3.7.1/SHA256SUMS".into()),
        ("settings", of("compaction-batch-limit", "500")),
    ];
    let (first, rest) = gone("3.5.16", &wanted).unwrap();
    assert_eq!(first["source"].as_str(), Some("https://etcd.example/v3.5.32/etcd-v3.5.32-linux-amd64.tar.gz"));
    assert_eq!(first["source_sha256"].as_str(), Some("https://etcd.example/v3.5.32/SHA256SUMS"));
    assert_eq!(first["settings"], of("experimental-compaction-batch-limit", "500"));
    assert_eq!(rest, "etcd goes to 3.5.32 first, then to 3.6.11, then to 3.7.1");
    let (second, rest) = gone("3.5.32", &wanted).unwrap();
    let short = [("compaction-batch-limit", "500"), ("snapshot-count", "1")];
    let short = Value::map(Type::String, short.into_iter().map(|(n, v)| (n.to_owned(), v.into())).collect());
    assert_eq!((second["version"].as_str(), second["settings"].clone()), (Some("3.6.11"), short.clone()));
    assert_eq!(rest, "etcd goes to 3.6.11 first (with `snapshot-count` 1 until it goes on), then to 3.7.1");
    let then = |settings: Value| {
        super::first(&object(&[("version", "3.6.11".into()), ("source", "old".into()), ("settings", settings)]), &object(&wanted))
    };
    assert_eq!(then(short.clone()), None);
    // Where 3.6 was there before nobody knows what is in its logs.
    let clean = then(of("compaction-batch-limit", "500")).unwrap();
    assert_eq!((clean.wanted["version"].as_str(), clean.wanted["source"].as_str()), (Some("3.6.11"), Some("old")));
    assert_eq!(clean.wanted["settings"], short);
    assert!(clean.rest.contains("`snapshot-count` is 1 until then"), "{}", clean.rest);
}

#[test]
fn what_nobody_has_written_is_told_with_why_it_is_wanted() {
    let said = |from: &str, more: &[(&str, Value)]| {
        let mut wanted = object(&[("version", "3.6.14".into()), ("source", "mirror/etcd-3.6.14.tar.gz".into())]);
        wanted.extend(object(more));
        super::first(&object(&[("version", from.into())]), &wanted).unwrap().hint
    };
    let text = "etcd 3.5.32 is a step on the way from 3.5.16 to 3.6.14: put its archive where `source` has it by that number, \
                or write into `through` where it, or a newer 3.5, is.";
    assert_eq!(said("3.5.16", &[]), Some(LegHint { kind: "ssh_artifact", text: text.to_owned() }));
    let through = |version: &str| ("through", Value::object([(version, Value::object([("source", "x".into())]))]));
    assert_eq!(said("3.5.16", &[through("3.5.33")]), None);
    assert_eq!(said("3.5.16", &[through("3.5.3")]).map(|hint| hint.text).as_deref(), Some(text));
    let in_pods = ("kubernetes", Value::object([("image", "r.example/etcd:v3.6.14".into())]));
    assert_eq!(said("3.5.16", &[in_pods]), None);
    // The same version, with a log that begins anew.
    let clean = [("version", "3.7.1".into()), ("source", "mirror/etcd-3.7.1.tar.gz".into())];
    assert_eq!(said("3.6.14", &clean), None);
}

#[test]
fn programs_that_nobody_knows_of_are_no_leg() {
    let through = |version: &str| {
        let said = Value::object([("source", "mirror/old.tar.gz".into()), ("source_sha256", "ab".into())]);
        Value::object([(version, said)])
    };
    let unnamed = [("version", "3.6.14".into()), ("source", "etcd.tar.gz".into())];
    assert_eq!(gone("3.5.16", &unnamed), None);
    let said = [unnamed[0].clone(), unnamed[1].clone(), ("through", through("3.5.33"))];
    let (first, _) = gone("3.5.16", &said).unwrap();
    assert_eq!((first["version"].as_str(), first["source"].as_str()), (Some("3.5.33"), Some("mirror/old.tar.gz")));
    assert_eq!(first["source_sha256"].as_str(), Some("ab"));
    let listed = [
        said[0].clone(),
        said[1].clone(),
        ("source_sha256", "SHA256SUMS".into()),
        ("through", Value::object([("3.5.33", Value::object([("source", "x".into())]))])),
    ];
    assert_eq!(gone("3.5.16", &listed).unwrap().0["source_sha256"].as_str(), Some("SHA256SUMS"));
    let filled = [("version", "3.6.14".into()), ("source", "etcd-{version}-{arch}.tar.gz".into())];
    assert_eq!(gone("3.5.16", &filled).unwrap().0["source"].as_str(), Some("etcd-{version}-{arch}.tar.gz"));
    // The sum of one archive is not that of another.
    let summed = [("version", "3.6.14".into()), ("source", "etcd-3.6.14.tar.gz".into()), ("source_sha256", "0f".into())];
    assert_eq!(gone("3.5.16", &summed), None);
    let restored =
        [("version", "3.6.14".into()), ("source", "etcd-3.6.14.tar.gz".into()), ("restore", Value::object([("sha256", "0f".into())]))];
    assert_eq!(gone("3.5.16", &restored), None);
}

#[test]
fn images_of_a_version_on_the_way() {
    let null = || Value::null(Type::String);
    let image = |given: Option<&str>, through: Value| {
        let place = Value::object([("image", given.map_or_else(null, Value::from))]);
        let wanted = [("version", "3.6.14".into()), ("kubernetes", place), ("through", through)];
        let (first, _) = gone("3.5.16", &wanted)?;
        Some(first["kubernetes"].get("image")?.as_str().map(str::to_owned))
    };
    let says = |entry: Value| Value::object([("3.5.33", entry)]);
    assert_eq!(image(Some("r.example/etcd:v3.6.14"), null()), Some(Some("r.example/etcd:v3.5.32".to_owned())));
    for unsure in [None, Some("r.example/etcd:3.6.14-0"), Some("r.example/etcd:v3.6.14@sha256:0a"), Some("r.example/etcd@sha256:0a")] {
        assert_eq!(image(unsure, null()), None, "{unsure:?}");
        let said = says(Value::object([("image", "r.example/old".into())]));
        assert_eq!(image(unsure, said), Some(Some("r.example/old".to_owned())), "{unsure:?}");
    }
    // Where nothing is written it follows `version`.
    assert_eq!(image(None, says(Object::new().into())), Some(None));
}
