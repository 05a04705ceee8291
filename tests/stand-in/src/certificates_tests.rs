//! Certificates made here, good ones and bad ones.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};

use super::*;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "karmada");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

fn leaf(authority: &Authority, change: impl FnOnce(&mut CertificateParams)) -> Pair {
    let mut params = CertificateParams::new(["a.b.svc".to_owned()]).expect("a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.distinguished_name.push(DnType::CommonName, "system:karmada:karmada-scheduler");
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    pair("it", certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).expect("a pair")
}

fn roots(authority: &Authority) -> RootCertStore {
    authorities("the CA", &certificates("the CA", authority.pem().as_bytes()).expect("PEM")).expect("an authority")
}

#[track_caller]
fn refuses(result: Result<(), String>, words: &str) {
    let why = result.expect_err("that is wrong");
    assert!(why.contains(words), "{why}");
}

#[test]
fn a_good_one_serves_and_identifies() {
    let authority = authority();
    let good = leaf(&authority, |_| ());
    assert_eq!(serves("it", &good, &roots(&authority), "a.b.svc"), Ok(()));
    assert_eq!(identifies("it", &good), Ok(()));
    assert_eq!(dns_names("it", &good).expect("names"), ["a.b.svc"]);
}

#[test]
fn names_authorities_times_and_purposes_are_looked_at() {
    let (ours, other) = (authority(), authority());
    let good = leaf(&ours, |_| ());
    refuses(serves("it", &good, &roots(&ours), "c.b.svc"), "c.b.svc");
    refuses(serves("it", &good, &roots(&other), "a.b.svc"), "certificate");
    let old = leaf(&ours, |p| (p.not_before, p.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1)));
    refuses(serves("it", &old, &roots(&ours), "a.b.svc"), "expired");
    refuses(identifies("it", &old), "valid from");
    let client = leaf(&ours, |p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    refuses(serves("it", &client, &roots(&ours), "a.b.svc"), "certificate");
    let server = leaf(&ours, |p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]);
    refuses(identifies("it", &server), "clientAuth");
    let leaf_as_root = authorities("the CA", &good.chain).map(|_| ());
    refuses(leaf_as_root, "no certificate authority");
}

#[test]
fn nobody_may_be_a_master_or_nameless() {
    let authority = authority();
    let master = leaf(&authority, |p| p.distinguished_name.push(DnType::OrganizationName, "system:masters"));
    refuses(identifies("it", &master), "system:masters");
    let admin = leaf(&authority, |p| p.distinguished_name.push(DnType::CommonName, "system:admin"));
    refuses(identifies("it", &admin), "no name of its own");
}

#[test]
fn keys_must_fit() {
    let (authority, other) = (authority(), KeyPair::generate().expect("a key"));
    let good = leaf(&authority, |_| ());
    let pem = authority.pem();
    refuses(pair("it", pem.as_bytes(), other.serialize_pem().as_bytes()).map(|_| ()), "don't fit");
    refuses(pair("it", pem.as_bytes(), b"rubbish").map(|_| ()), "private key");
    refuses(pair("it", b"", other.serialize_pem().as_bytes()).map(|_| ()), "no certificate");
    drop(good);
}
