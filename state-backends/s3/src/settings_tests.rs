//! Which arguments are refused, and with which words.

use super::*;

fn read(given: &[(&str, Value)], workspace: &str, environment: &[(&str, &str)]) -> Result<Settings, String> {
    let mut arguments: Object = [("bucket", "fleet"), ("key", "prod/k")].map(|(k, v)| (k.to_owned(), Value::from(v))).into();
    arguments.extend(given.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
    let environment: BTreeMap<_, _> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let settings = Settings::read(&arguments, workspace, Surroundings { environment: &environment, home: None });
    settings.map_err(|d| format!("{}: {}", d.summary, d.detail))
}

#[test]
fn what_can_not_be_is_refused() {
    let text = |value: &str| Value::from(value);
    let key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    for (given, expected) in [
        (vec![("bucket", text(""))], "invalid bucket"),
        (vec![("bucket", text("s3://fleet"))], "invalid bucket"),
        (vec![("key", text("/k"))], "invalid key"),
        (vec![("key", text("k/"))], "invalid key"),
        (vec![("key", text("a//b"))], "invalid key"),
        (vec![("key", text("a/../b"))], "invalid key"),
        (vec![("key", text(""))], "invalid key"),
        (vec![("dynamodb_table", text("locks"))], "invalid dynamodb_table"),
        (vec![("use_lockfile", Value::from(false))], "invalid use_lockfile"),
        (vec![("sse_customer_key", text("c2hvcnQ="))], "invalid sse_customer_key"),
        (vec![("sse_customer_key", text(key)), ("kms_key_id", text("k"))], "invalid encryption"),
        (vec![("kms_key_id", text("a b"))], "invalid kms_key_id"),
        (vec![("acl", text("Private\n"))], "invalid acl"),
        (vec![("endpoint", text("store.example"))], "invalid endpoint (s3)"),
        (vec![("endpoint", text("https://user:secret@store.example"))], "invalid endpoint (s3)"),
        (vec![("endpoints", Value::object([("sts", text("ftp://x"))]))], "invalid endpoint (sts)"),
        (vec![("max_retries", Value::from(-1i64))], "invalid max_retries"),
        (vec![("retry_mode", text("fast"))], "invalid retry_mode"),
        (vec![("custom_ca_bundle", text("/not/there"))], "invalid custom_ca_bundle"),
    ] {
        let said = read(&given, "default", &[]).map(|_| ()).unwrap_err();
        assert!(said.starts_with(&format!("{expected} of the s3 backend: ")), "{said}");
        assert!(!said.contains("secret@"), "{said}");
    }
    assert!(read(&[("workspace_key_prefix", text("/x"))], "default", &[]).is_ok(), "not used");
    assert!(read(&[("workspace_key_prefix", text("/x"))], "dev", &[]).is_err());
    assert!(read(&[], "a/b", &[]).is_err());
}

#[test]
fn keys_are_by_workspace() {
    let key = |given: &[(&str, Value)], workspace| read(given, workspace, &[]).map(|s| s.key);
    assert_eq!(key(&[], "default").as_deref(), Ok("prod/k"));
    assert_eq!(key(&[], "dev").as_deref(), Ok("env:/dev/prod/k"));
    assert_eq!(key(&[("workspace_key_prefix", Value::from("ws/all"))], "dev").as_deref(), Ok("ws/all/dev/prod/k"));
}

#[test]
fn the_environment_fills_in() {
    let s3 = |given: &[(&str, Value)], environment: &[(&str, &str)]| read(given, "default", environment).unwrap().endpoints.s3;
    let own = [("endpoints", Value::object([("s3", Value::from("http://own:1/"))]))];
    let all = [("AWS_ENDPOINT_URL_S3", "http://service"), ("AWS_ENDPOINT_URL", "http://all")];
    assert_eq!(s3(&own, &all).as_deref(), Some("http://own:1"));
    assert_eq!(s3(&[], &all).as_deref(), Some("http://service"));
    assert_eq!(s3(&[], &all[1..]).as_deref(), Some("http://all"));
    assert_eq!(s3(&[], &[all[0], ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")]), None);
    let settings =
        read(&[], "default", &[("AWS_SSE_CUSTOMER_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="), ("https_proxy", "http://p:1")]);
    let settings = settings.unwrap();
    assert!(matches!(settings.encryption, Encryption::Customer { md5, .. } if md5 == "KYvwGXoFFJ42a2u2GDWhwQ=="));
    assert_eq!(settings.reach.https_proxy.as_deref(), Some("http://p:1"));
}
