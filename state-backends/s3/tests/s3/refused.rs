//! What can't be is refused before anybody is asked.

use std::collections::BTreeMap;
use std::io::Write as _;

use karmaform_model::{Diagnostic, Object, Value};
use karmaform_s3::{S3Store, kms};

use crate::servers::arguments;

fn with(given: &[(&str, Value)]) -> Object {
    let mut all = arguments(&[("bucket", "fleet"), ("key", "k"), ("region", "eu-west-1"), ("access_key", "AK"), ("secret_key", "SECRET")]);
    all.extend(given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    all
}

fn refused(given: &[(&str, Value)]) -> Diagnostic {
    let opened = S3Store::open(&with(given), "default", &BTreeMap::new(), None);
    opened.map(drop).expect_err("it can't be reached so")
}

#[test]
fn a_way_that_can_not_be_is_told_with_what_is_wrong() {
    let mut bundle = tempfile::NamedTempFile::new().unwrap();
    bundle.write_all(b"no certificate\n").unwrap();
    let bundle = Value::from(bundle.path().display().to_string());
    for (given, words) in [
        (("custom_ca_bundle", bundle), "the CA bundle has no certificate in it"),
        (("http_proxy", Value::from("http://")), "http_proxy can't be used"),
        (("https_proxy", Value::from("http://me:hunter2@")), "https_proxy can't be used"),
    ] {
        let why = refused(&[given]);
        assert_eq!(why.summary, "No connection to the s3 backend possible", "{words}");
        assert!(why.detail.contains(words) && !why.detail.contains("hunter2"), "{}", why.detail);
        assert_eq!(why.hints, ["Check custom_ca_bundle and the proxies."]);
    }
}

#[test]
fn a_key_of_kms_that_can_not_be_had_is_told_with_the_argument() {
    let text = |value: &str| Value::from(value);
    let key = ("key_id", text("alias/karmaform"));
    let region = ("region", text("eu-west-1"));
    for (given, words, hint) in [
        (vec![key.clone(), ("bucket", text("b"))], "\"aws_kms\" has no argument \"bucket\".", "It has key_id"),
        (vec![region.clone()], "\"aws_kms\" does not say which key.", "Give key_id"),
        (vec![key.clone()], "\"aws_kms\": Nothing says which region.", "Set region, or AWS_REGION"),
        (
            vec![key, region, ("profile", text("nobody"))],
            "\"aws_kms\": No file with profiles has one of the name \"nobody\".",
            "AWS_PROFILE",
        ),
    ] {
        let given: Object = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let why = kms(&given, &BTreeMap::new(), None).map(drop).expect_err(words);
        assert_eq!((why.summary.as_str(), why.detail.as_str()), ("Invalid encryption configuration", words));
        assert!(why.hints[0].contains(hint), "{:?}", why.hints);
    }
}
