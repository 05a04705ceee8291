use karmaform_model::Action;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::*;
use crate::ca::Ca;
use crate::issue::ALGORITHMS;
use crate::testing::{HOUR, applied, der, openssl, openssl_agrees, plan, summaries, text, wanted};

fn ca(parts: &[(&str, Value)]) -> Object {
    let kind = Ca::new();
    let wanted = wanted(&kind, &[&[("common_name", Value::from("test CA"))], parts].concat());
    applied(&kind, &plan(&kind, 0, None, &wanted).unwrap())
}

fn leaf(ca: &Object, parts: &[(&str, Value)]) -> Object {
    let mut all = vec![
        ("ca_certificate", ca["certificate"].clone()),
        ("ca_private_key", ca["private_key"].clone()),
        ("common_name", Value::from("etcd")),
        ("dns_names", Value::strings(["localhost", "*.etcd.svc"])),
        ("ip_addresses", Value::strings(["10.0.0.11", "fd00::1"])),
    ];
    all.retain(|(n, _)| !parts.iter().any(|(m, _)| m == n));
    all.extend(parts.iter().cloned());
    wanted(&Certificate::new(), &all)
}

fn now() -> i64 {
    renewal::now()
}

fn made(wanted: &Object) -> Object {
    let kind = Certificate::new();
    applied(&kind, &plan(&kind, now(), None, wanted).unwrap())
}

/// OpenSSL accepts the leaf for a server and a client, by name and by address.
fn verify(ca: &str, leaf: &Object) {
    verify_with(&["-x509_strict"], ca, leaf);
}

fn verify_with(strict: &[&str], ca: &str, leaf: &Object) {
    let files = [("ca.pem", ca), ("leaf.pem", text(leaf, "certificate")), ("key.pem", text(leaf, "private_key"))];
    let base = [&["verify", "-CAfile", "ca.pem"], strict].concat();
    for more in [["-purpose", "sslserver"], ["-purpose", "sslclient"], ["-verify_ip", "10.0.0.11"], ["-verify_hostname", "a.etcd.svc"]] {
        openssl_agrees(&files, &[&base[..], &more, &["leaf.pem"]].concat());
    }
    openssl_agrees(&files, &["pkey", "-in", "key.pem", "-noout", "-check"]);
}

#[test]
fn every_authority_signs_every_kind_of_key() {
    for (ca_algorithm, algorithm) in ALGORITHMS.iter().zip(ALGORITHMS.iter().cycle().skip(2)).chain(ALGORITHMS.iter().zip(&ALGORITHMS)) {
        if *ca_algorithm == "RSA-4096" && *algorithm == "RSA-4096" {
            continue; // Slow, and nothing new.
        }
        let ca = ca(&[("algorithm", (*ca_algorithm).into())]);
        let leaf = made(&leaf(&ca, &[("algorithm", (*algorithm).into())]));
        verify(text(&ca, "certificate"), &leaf);
    }
}

#[test]
fn a_leaf_says_what_was_wanted() {
    let ca = ca(&[("organization", "Fleet".into())]);
    let groups = Value::strings(["system:masters", "ops", "dev"]);
    let object = made(&leaf(&ca, &[("organizations", groups), ("usages", Value::strings(["client_auth"]))]));
    assert!(!object.contains_key("ca_private_key"), "the key of the authority is not kept with each leaf");
    let (der, ca_der) = (der(&object), der(&ca));
    let parsed = X509Certificate::from_der(&der).unwrap().1;
    let authority = X509Certificate::from_der(&ca_der).unwrap().1;
    assert_eq!(parsed.subject().to_string(), "O=system:masters, O=ops, O=dev, CN=etcd");
    assert_eq!(parsed.issuer().as_raw(), authority.subject().as_raw());
    assert!(!parsed.is_ca() && parsed.basic_constraints().unwrap().is_some());
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && !usage.server_auth && !usage.any);
    assert!(parsed.key_usage().unwrap().unwrap().value.digital_signature());
    let names = &parsed.subject_alternative_name().unwrap().unwrap().value.general_names;
    let addresses = [GeneralName::IPAddress(&[10, 0, 0, 11]), GeneralName::IPAddress(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])];
    assert_eq!(names, &[[GeneralName::DNSName("localhost"), GeneralName::DNSName("*.etcd.svc")], addresses].concat());
    assert!(parsed.extensions().iter().any(|e| e.oid.to_id_string() == "2.5.29.35"), "who signed it");
    assert_eq!(parsed.raw_serial().len(), 20);
    assert_eq!(lifetime::written(parsed.validity().not_after.timestamp()), text(&object, "not_after"));
    openssl_agrees(
        &[("ca.pem", text(&ca, "certificate")), ("leaf.pem", text(&object, "certificate"))],
        &["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "ca.pem", "leaf.pem"],
    );
}

#[test]
fn names_of_both_kinds_come_on_top_of_the_others() {
    let ca = ca(&[]);
    let object = made(&leaf(&ca, &[("names", Value::strings(["192.0.2.7", "lb.example.org", "localhost", "fd00:0::1"]))]));
    let der = der(&object);
    let parsed = X509Certificate::from_der(&der).unwrap().1;
    let names = &parsed.subject_alternative_name().unwrap().unwrap().value.general_names;
    assert_eq!(names.len(), 6, "each once: {names:?}");
    assert!(names.contains(&GeneralName::DNSName("lb.example.org")) && names.contains(&GeneralName::IPAddress(&[192, 0, 2, 7])));
}

#[test]
fn each_kind_of_change() {
    let first = ca(&[]);
    let before = made(&leaf(&first, &[]));
    let end = lifetime::end(&before).unwrap();
    let check = |at: i64, parts: &[(&str, Value)], action: Action, is_new: bool, impact: &str| {
        let kind = Certificate::new();
        let change = plan(&kind, at, Some(&before), &leaf(&first, parts)).unwrap();
        assert_eq!(change.action(), action, "{parts:?}");
        let after = change.after().unwrap();
        for name in REISSUED {
            assert_eq!(after[name].is_unknown(), is_new, "{parts:?} {name}");
        }
        assert_eq!(kind.impact(&change).join(" "), impact, "{parts:?}");
        if after["ca_certificate"].is_unknown() || after["names"].is_unknown() {
            return;
        }
        let next = applied(&kind, &change);
        assert_eq!(next["private_key"] != before["private_key"], is_new, "{parts:?}");
        assert_eq!(plan(&kind, now(), Some(&next), &leaf(&first, parts)).unwrap().action(), Action::NoOp, "{parts:?}");
    };
    let day = lifetime::day(end);
    let (renews, anew) = (
        format!("renews the certificate that expires on {day}"),
        format!("issues a new certificate in place of the one that expires on {day}"),
    );
    let due = end - 2_880 * HOUR;
    check(due, &[], Action::NoOp, false, "");
    check(due + 1, &[], Action::Update, true, &renews);
    check(end + 1, &[], Action::Update, true, &renews);
    check(now(), &[("renew_before_hours", 1i64.into())], Action::Update, false, "");
    check(now(), &[("dns_names", Value::strings(["*.etcd.svc", "localhost", "localhost"]))], Action::NoOp, false, "");
    check(now(), &[("ip_addresses", Value::strings(["fd00:0::1", "10.0.0.11"]))], Action::NoOp, false, "");
    check(now(), &[("organizations", Value::strings([""; 0]))], Action::NoOp, false, "");
    for parts in [
        ("dns_names", Value::strings(["localhost"])),
        ("ip_addresses", Value::null(Type::list(Type::String))),
        ("common_name", "other".into()),
        ("names", Value::strings(["lb.example.org"])),
        ("names", Value::unknown(Type::list(Type::String))),
        ("organizations", Value::strings(["a"])),
        ("usages", Value::strings(["server_auth"])),
        ("algorithm", "ED25519".into()),
        ("validity_hours", 5_000i64.into()),
        ("ca_certificate", ca(&[])["certificate"].clone()),
        ("ca_certificate", Value::unknown(Type::String)),
    ] {
        if parts.0 != "ca_certificate" || parts.1.is_unknown() {
            check(now(), &[parts], Action::Update, true, &anew);
        } else {
            let problems = plan(&Certificate::new(), now(), Some(&before), &leaf(&first, &[parts])).unwrap_err();
            assert!(summaries(&problems).contains("is not the key of the certificate"), "another authority comes with its own key");
        }
    }
    let other = ca(&[]);
    let moved = plan(&Certificate::new(), now(), Some(&before), &leaf(&other, &[])).unwrap();
    verify(text(&other, "certificate"), &applied(&Certificate::new(), &moved));
}

#[test]
fn a_renewed_authority_still_stands_for_what_it_signed() {
    let kind = Ca::new();
    let old = ca(&[]);
    let leaf = made(&leaf(&old, &[]));
    let wanted = wanted(&kind, &[("common_name", "test CA".into())]);
    let renewed = applied(&kind, &plan(&kind, lifetime::end(&old).unwrap(), Some(&old), &wanted).unwrap());
    assert_ne!(renewed["certificate"], old["certificate"]);
    verify(text(&renewed, "certificate"), &leaf);
}

#[test]
fn a_leaf_ends_with_its_authority_at_the_latest() {
    let short = ca(&[("validity_hours", 100i64.into()), ("renew_before_hours", 10i64.into())]);
    let hours = |h: i64| leaf(&short, &[("validity_hours", h.into()), ("renew_before_hours", 1i64.into())]);
    for (validity, cut) in [(99, false), (100, true), (123, true)] {
        let object = made(&hours(validity));
        assert_eq!(text(&object, "not_after") == text(&short, "not_after"), cut, "{validity}");
        verify(text(&short, "certificate"), &object);
    }
    let too_long = |now: i64, object: &Object| summaries(&plan(&Certificate::new(), now, None, object).unwrap_err());
    assert!(too_long(now(), &hours(125)).contains("Certificate outlives its authority"));
    assert!(too_long(now(), &hours(125)).contains("Lower \"validity_hours\""));
    assert!(too_long(now() + 101 * HOUR, &hours(2)).contains("Expired certificate authority"));
    // Not known while planning: apply refuses it too.
    let change =
        Change::Create { after: hours(125).into_iter().chain([("certificate".to_owned(), Value::unknown(Type::String))]).collect() };
    let error = futures::executor::block_on(Certificate::new().apply(&(), &change)).unwrap_err();
    assert_eq!(error.summary, "Certificate outlives its authority");
}

#[test]
fn authorities_made_elsewhere_sign_too() {
    for key in [
        &["genrsa", "-traditional", "-out", "/dev/stdout", "2048"][..],
        &["genrsa", "2048"],
        &["ecparam", "-name", "prime256v1", "-genkey"],
        &["ecparam", "-name", "secp384r1", "-genkey"],
        &["genpkey", "-algorithm", "ed25519"],
    ] {
        let Some(made_key) = openssl(&[], key) else { return };
        let made_key = String::from_utf8(made_key.stdout).unwrap();
        let subject = "/C=DE/O=Old/OU=one/OU=two/CN=Old CA";
        let request = ["req", "-x509", "-new", "-key", "key.pem", "-subj", subject, "-days", "3650"];
        let certificate = String::from_utf8(openssl(&[("key.pem", &made_key)], &request).unwrap().stdout).unwrap();
        assert!(certificate.contains("BEGIN CERTIFICATE"), "{key:?}");
        let foreign =
            [("certificate".to_owned(), Value::from(format!("a comment\n{certificate}"))), ("private_key".to_owned(), made_key.into())];
        let object = made(&leaf(&foreign.into(), &[]));
        // What OpenSSL makes by itself is not strict.
        verify_with(&[], &certificate, &object);
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_the_plan() {
    let (good, other) = (ca(&[]), ca(&[("algorithm", "ED25519".into())]));
    let leaf_certificate = made(&leaf(&good, &[]));
    for (parts, expected) in [
        (("ca_certificate", Value::from("no")), "holds no certificate"),
        (("ca_certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into()), "can't be read"),
        (("ca_certificate", leaf_certificate["certificate"].clone()), "not one of an authority"),
        (("ca_private_key", other["private_key"].clone()), "not the key of the certificate"),
        (("ca_private_key", "hunter2".into()), "holds no private key"),
        (("ca_private_key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".into()), "none of: RSA"),
        (("ca_private_key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n".into()), "openssl pkey"),
        (("ip_addresses", Value::strings(["10.0.0.300"])), "Not an IP address"),
        (("dns_names", Value::strings(["10.0.0.1"])), "Not a DNS name"),
        (("names", Value::strings(["10.0.0.1", "a..b"])), "Neither a DNS name nor an IP address"),
        (("usages", Value::strings(["serverAuth"])), "none of: server_auth, client_auth"),
        (("organizations", Value::strings([""])), "\"organizations\" is empty"),
        (("common_name", "".into()), "\"common_name\" is empty"),
    ] {
        let problems = plan(&Certificate::new(), now(), None, &leaf(&good, std::slice::from_ref(&parts))).unwrap_err();
        let said = summaries(&problems);
        assert!(said.contains(expected) && !said.contains("hunter2"), "{parts:?}: {said}");
    }
    let many = leaf(&good, &[("dns_names", Value::strings(["a b", "c d"])), ("usages", Value::strings(["x"]))]);
    assert_eq!(plan(&Certificate::new(), now(), None, &many).unwrap_err().len(), 3, "all at once");
    let later = leaf(&good, &[("ca_certificate", Value::unknown(Type::String)), ("ca_private_key", Value::unknown(Type::String))]);
    assert_eq!(plan(&Certificate::new(), now(), None, &later).unwrap().action(), Action::Create);
}

/// Names that were not known when the plan was made were not checked there.
#[test]
fn a_name_that_no_certificate_can_have_is_named() {
    let mut after = leaf(&ca(&[]), &[("dns_names", Value::strings(["b\u{fc}cher.example"]))]);
    after.insert("certificate".into(), Value::unknown(karmaform_model::Type::String));
    let why = futures::executor::block_on(Certificate::new().apply(&(), &Change::Create { after })).unwrap_err();
    assert_eq!(why.summary, "Certificate can't be made");
    assert!(why.hints[0].contains("b\u{fc}cher.example"), "{why:?}");
}
