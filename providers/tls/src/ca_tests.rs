use karmaform_model::Action;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::*;
use crate::issue::ALGORITHMS;
use crate::testing::{HOUR, applied, der, openssl_agrees, plan, summaries, text, wanted};

fn ca(parts: &[(&str, Value)]) -> Object {
    let kind = Ca::new();
    let mut all = vec![("common_name", Value::from("test CA"))];
    all.retain(|(n, _)| !parts.iter().any(|(m, _)| m == n));
    all.extend(parts.iter().cloned());
    wanted(&kind, &all)
}

fn made(wanted: &Object) -> Object {
    applied(&Ca::new(), &plan(&Ca::new(), 0, None, wanted).unwrap())
}

#[test]
fn each_algorithm_gives_an_authority_that_others_accept() {
    for algorithm in ALGORITHMS {
        let wanted = ca(&[("algorithm", algorithm.into()), ("organization", "Fleet".into())]);
        let change = plan(&Ca::new(), 0, None, &wanted).unwrap();
        assert!(crate::renewal::computed().iter().all(|a| change.after().unwrap()[a.name].is_unknown()));
        assert!(change.after().unwrap()["private_key"].secret);
        let object = made(&wanted);
        assert!(object["private_key"].secret);
        assert!(text(&object, "private_key").starts_with("-----BEGIN PRIVATE KEY-----\n"));

        let der = der(&object);
        let parsed = X509Certificate::from_der(&der).unwrap().1;
        assert_eq!(parsed.subject().to_string(), "O=Fleet, CN=test CA");
        assert_eq!(parsed.issuer(), parsed.subject());
        assert!(parsed.is_ca() && parsed.basic_constraints().unwrap().unwrap().critical);
        let usage = parsed.key_usage().unwrap().unwrap();
        assert!(usage.critical && usage.value.key_cert_sign() && usage.value.crl_sign());
        let validity = parsed.validity();
        assert_eq!(lifetime::written(validity.not_after.timestamp()), text(&object, "not_after"));
        assert_eq!(lifetime::written(validity.not_before.timestamp()), text(&object, "not_before"));
        let now = crate::renewal::now();
        assert!((now - 360..=now - 300).contains(&validity.not_before.timestamp()));
        assert!((now + 87_600 * HOUR - 60..=now + 87_600 * HOUR).contains(&validity.not_after.timestamp()));
        assert_eq!(parsed.raw_serial().len(), 20);
        assert!(parsed.raw_serial()[0] < 0x80);
        assert_eq!(parsed.raw_serial_as_string().replace(':', ""), text(&object, "serial_number"));

        let files = [("ca.pem", text(&object, "certificate")), ("key.pem", text(&object, "private_key"))];
        openssl_agrees(&files, &["verify", "-x509_strict", "-check_ss_sig", "-CAfile", "ca.pem", "ca.pem"]);
        openssl_agrees(&files, &["pkey", "-in", "key.pem", "-noout", "-check"]);
    }
}

#[test]
fn each_kind_of_change() {
    let start = ca(&[]);
    let before = made(&start);
    let end = lifetime::end(&before).unwrap();
    let check = |now: i64, parts: &[(&str, Value)], action: Action, unknown: &[&str], impact: &str| {
        let kind = Ca::new();
        let change = plan(&kind, now, Some(&before), &ca(parts)).unwrap();
        assert_eq!(change.action(), action, "{parts:?}");
        let after = change.after().unwrap();
        let found: Vec<_> = after.iter().filter(|(_, v)| v.is_unknown()).map(|(n, _)| n.as_str()).collect();
        assert_eq!(found, unknown, "{parts:?}");
        assert_eq!(kind.impact(&change).join(" "), impact, "{parts:?}");
        let next = applied(&kind, &change);
        assert_eq!(next["private_key"] == before["private_key"], action != Action::DestroyThenCreate, "{parts:?}");
        assert_eq!(plan(&kind, 0, Some(&next), &ca(parts)).unwrap().action(), Action::NoOp, "{parts:?}");
    };
    let new = ["certificate", "not_after", "not_before", "serial_number"];
    let all = ["certificate", "not_after", "not_before", "private_key", "serial_number"];
    let day = lifetime::day(end);
    let due = end - 8_760 * HOUR;
    check(due, &[], Action::NoOp, &[], "");
    let renews = format!("renews the certificate that expires on {day}, with the same key");
    check(due + 1, &[], Action::Update, &new, &renews);
    check(end + 1, &[], Action::Update, &new, &renews);
    check(0, &[("renew_before_hours", 5i64.into())], Action::Update, &[], "");
    check(due + 1, &[("renew_before_hours", 8_759i64.into())], Action::Update, &[], "");
    let anew = format!("issues a new certificate in place of the one that expires on {day}, with the same key");
    check(0, &[("validity_hours", 50_000i64.into())], Action::Update, &new, &anew);
    let other = "replaces the authority: what trusts it must trust the new one";
    check(0, &[("common_name", "other".into())], Action::DestroyThenCreate, &all, other);
    check(0, &[("organization", "other".into())], Action::DestroyThenCreate, &all, other);
    check(0, &[("algorithm", "ED25519".into())], Action::DestroyThenCreate, &all, other);
    let kind = Ca::new();
    assert_eq!(kind.plan(&PlanContext { now: 0 }, Some(&before), None).unwrap().action(), Action::Delete);
}

#[test]
fn a_certificate_that_is_missing_is_made() {
    let mut before = made(&ca(&[]));
    for name in ["certificate", "private_key", "not_after"] {
        before.insert(name.into(), Value::null(Type::String));
    }
    let change = plan(&Ca::new(), 0, Some(&before), &ca(&[])).unwrap();
    assert_eq!(change.action(), Action::Update);
    assert!(text(&applied(&Ca::new(), &change), "private_key").contains("PRIVATE KEY"));
}

#[test]
fn a_key_in_an_older_form_stays_as_it_is() {
    let Some(key) = crate::testing::openssl(&[], &["genrsa", "-traditional", "2048"]) else { return };
    let key = String::from_utf8(key.stdout).unwrap();
    let mut before = made(&ca(&[]));
    before.insert("private_key".into(), Value::from(key.as_str()).secret());
    let change = plan(&Ca::new(), lifetime::end(&before).unwrap(), Some(&before), &ca(&[])).unwrap();
    let next = applied(&Ca::new(), &change);
    assert_eq!(text(&next, "private_key"), key);
    let files = [("ca.pem", text(&next, "certificate"))];
    openssl_agrees(&files, &["verify", "-check_ss_sig", "-CAfile", "ca.pem", "ca.pem"]);
}

#[test]
fn what_makes_no_sense_is_refused_in_the_plan() {
    for (parts, expected) in [
        (vec![("common_name", Value::from(""))], "\"common_name\" is empty"),
        (vec![("common_name", "x".repeat(65).into())], "more than 64"),
        (vec![("organization", "a\nb".into())], "control character"),
        (vec![("algorithm", "RSA".into())], "none of: ECDSA-P256"),
        (vec![("validity_hours", 0i64.into()), ("renew_before_hours", 0i64.into())], "from 1 to 876000"),
        (vec![("validity_hours", 100i64.into())], "every plan would renew"),
    ] {
        let problems = plan(&Ca::new(), 0, None, &ca(&parts)).unwrap_err();
        assert!(summaries(&problems).contains(expected), "{parts:?}: {}", summaries(&problems));
    }
    let unknown = ca(&[("common_name", Value::unknown(Type::String)), ("validity_hours", Value::unknown(Type::Number))]);
    assert_eq!(plan(&Ca::new(), 0, None, &unknown).unwrap().action(), Action::Create);
}
