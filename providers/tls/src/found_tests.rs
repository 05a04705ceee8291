use karmaform_model::{Action, ResourceSpec as _, ResourceType, Type};

use super::*;
use crate::ca::Ca;
use crate::certificate::Certificate;
use crate::issue::ALGORITHMS;
use crate::private_key::PrivateKey;
use crate::renewal::now;
use crate::testing::{applied, plan, wanted};

fn made(kind: &dyn ResourceType<()>, wanted: &Object) -> Object {
    applied(kind, &plan(kind, now(), None, wanted).unwrap())
}

fn ca(algorithm: &str, name: &str) -> (Object, Object) {
    let wanted = wanted(&Ca::new(), &[("common_name", name.into()), ("organization", "org".into()), ("algorithm", algorithm.into())]);
    let made = made(&Ca::new(), &wanted);
    (wanted, made)
}

fn leaf(ca: &Object, algorithm: &str, dns_name: &str) -> Object {
    let parts = [
        ("ca_certificate", ca["certificate"].clone()),
        ("ca_private_key", ca["private_key"].clone()),
        ("common_name", "etcd".into()),
        ("organizations", Value::strings(["b", "a"])),
        ("dns_names", Value::strings(["localhost", dns_name])),
        ("names", Value::strings(["0:0::1", "lb.example.org", "10.0.0.1"])),
        ("usages", Value::strings(["client_auth"])),
        ("algorithm", algorithm.into()),
    ];
    wanted(&Certificate::new(), &parts)
}

/// These attributes, as they turn up somewhere.
fn seen(object: &Object, names: &[&str]) -> Object {
    names.iter().map(|n| ((*n).to_owned(), object[*n].clone())).collect()
}

/// As the state gives it back.
fn stored(kind: &dyn ResourceType<()>, object: &Object) -> Object {
    kind.schema().decode(&kind.schema().encode(object)).unwrap()
}

const BOTH: &[&str] = &["certificate", "private_key"];

#[test]
fn what_is_found_is_what_was_made() {
    for algorithm in ALGORITHMS {
        let (ca_wanted, ca) = ca(algorithm, "test CA");
        let found = Ca::new().recovered(&ca_wanted, &seen(&ca, BOTH)).unwrap().unwrap();
        assert_eq!(stored(&Ca::new(), &found), ca, "{algorithm}");
        let wanted = leaf(&ca, algorithm, "a");
        let leaf = made(&Certificate::new(), &wanted);
        let found = Certificate::new().recovered(&wanted, &seen(&leaf, BOTH)).unwrap().unwrap();
        assert_eq!(stored(&Certificate::new(), &found), leaf, "{algorithm}");
        assert!(found["private_key"].secret);
        let wanted = crate::testing::wanted(&PrivateKey::new(), &[("algorithm", algorithm.into())]);
        let key = made(&PrivateKey::new(), &wanted);
        let found = PrivateKey::new().recovered(&wanted, &seen(&key, &["private_key"])).unwrap().unwrap();
        assert_eq!(stored(&PrivateKey::new(), &found), key, "{algorithm}");
    }
}

#[test]
fn what_is_not_as_wanted_is_planned_anew() {
    let (_, ca_a) = ca("ECDSA-P256", "a");
    let (wanted_b, ca_b) = ca("ECDSA-P256", "b");
    let there = made(&Certificate::new(), &leaf(&ca_a, "ECDSA-P256", "a"));
    let check = |wanted: &Object, expected: Action| {
        let found = Certificate::new().recovered(wanted, &seen(&there, BOTH)).unwrap().unwrap();
        let change = plan(&Certificate::new(), now(), Some(&stored(&Certificate::new(), &found)), wanted).unwrap();
        assert_eq!(change.action(), expected, "{wanted:?}");
    };
    check(&leaf(&ca_a, "ECDSA-P256", "a"), Action::NoOp);
    check(&leaf(&ca_a, "ECDSA-P256", "b"), Action::Update);
    check(&leaf(&ca_b, "ECDSA-P256", "a"), Action::Update);
    let (_, namesake) = ca("ECDSA-P256", "a");
    check(&leaf(&namesake, "ECDSA-P256", "a"), Action::Update);
    let mut other = leaf(&ca_a, "ECDSA-P256", "a");
    other.insert("organizations".into(), Value::strings(["c"]));
    check(&other, Action::Update);
    let found = Ca::new().recovered(&wanted_b, &seen(&ca_a, BOTH)).unwrap().unwrap();
    assert_eq!(plan(&Ca::new(), now(), Some(&stored(&Ca::new(), &found)), &wanted_b).unwrap().action(), Action::DestroyThenCreate);
    assert_ne!(found["common_name"], ca_b["common_name"]);
}

#[test]
fn keys_of_others_are_no_keys() {
    let (wanted_a, ca_a) = ca("ECDSA-P256", "a");
    let (_, ca_b) = ca("ECDSA-P256", "b");
    let mixed = |certificate: &Object, key: Value| {
        Object::from([("certificate".into(), certificate["certificate"].clone()), ("private_key".into(), key)])
    };
    // An authority is of use without its key: what it signed is verified by it. Nothing is planned for it.
    for key in [ca_b["private_key"].clone(), "rubbish".into(), Value::null(Type::String)] {
        let found = Ca::new().recovered(&wanted_a, &mixed(&ca_a, key)).unwrap().unwrap();
        assert!(found["private_key"].is_null());
        assert_eq!(plan(&Ca::new(), now(), Some(&stored(&Ca::new(), &found)), &wanted_a).unwrap().action(), Action::NoOp);
    }
    let found = Ca::new().recovered(&wanted_a, &seen(&ca_a, &["certificate"])).unwrap().unwrap();
    let refused = plan(&Ca::new(), i64::MAX / 2, Some(&stored(&Ca::new(), &found)), &wanted_a).unwrap_err();
    assert!(
        crate::testing::summaries(&refused).contains("Certificate authority without its key"),
        "it is due, and must not get another key"
    );
    // As long as it lasts, that it is due keeps nothing else from being planned; another validity would need the key.
    let soon = now() + 87_600 * crate::testing::HOUR - 100;
    assert_eq!(plan(&Ca::new(), soon, Some(&stored(&Ca::new(), &found)), &wanted_a).unwrap().action(), Action::NoOp);
    let mut longer = wanted_a.clone();
    longer.insert("validity_hours".into(), 90_000i64.into());
    assert!(plan(&Ca::new(), now(), Some(&stored(&Ca::new(), &found)), &longer).is_err());
    // A file with a certificate and a key in it is neither of the two.
    let both = format!("{}{}", crate::testing::text(&ca_a, "certificate"), crate::testing::text(&ca_a, "private_key"));
    let both = Object::from([("certificate".into(), both.as_str().into()), ("private_key".into(), both.as_str().into())]);
    assert!(Ca::new().recovered(&wanted_a, &both).unwrap().is_none());
    let mut keyless = leaf(&ca_a, "ECDSA-P256", "a");
    keyless.insert("ca_private_key".into(), Value::null(Type::String));
    let mut there = leaf(&ca_a, "ECDSA-P256", "a");
    there = stored(
        &Certificate::new(),
        &crate::testing::applied(&Certificate::new(), &plan(&Certificate::new(), now(), None, &there).unwrap()),
    );
    let at = |hours: i64| plan(&Certificate::new(), now() + hours * crate::testing::HOUR, Some(&there), &keyless);
    assert_eq!(at(8_759).unwrap().action(), Action::NoOp, "it is due, and lasts an hour");
    assert!(at(8_761).is_err());
    let refused = plan(&Certificate::new(), now(), None, &keyless).unwrap_err();
    assert!(crate::testing::summaries(&refused).contains("Certificate authority without its key"));
    let wanted = leaf(&ca_a, "ECDSA-P256", "a");
    let there = made(&Certificate::new(), &wanted);
    for found in [mixed(&there, ca_b["private_key"].clone()), seen(&there, &["certificate"]), mixed(&ca_a, "x".into()), Object::new()] {
        assert!(Certificate::new().recovered(&wanted, &found).unwrap().is_none());
    }
    let rubbish = Object::from([("certificate".into(), "rubbish".into())]);
    assert!(Ca::new().recovered(&wanted_a, &rubbish).unwrap().is_none());
}
