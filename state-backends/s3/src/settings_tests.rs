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
        (vec![("bucket", text(""))], "Invalid bucket of the s3 backend: "),
        (vec![("bucket", text("s3://fleet"))], "Invalid bucket of the s3 backend: "),
        (vec![("key", text("/k"))], "Invalid key of the s3 backend: "),
        (vec![("key", text("k/"))], "Invalid key of the s3 backend: "),
        (vec![("key", text("a//b"))], "Invalid key of the s3 backend: "),
        (vec![("key", text("a/../b"))], "Invalid key of the s3 backend: "),
        (vec![("key", text(""))], "Invalid key of the s3 backend: "),
        (vec![("dynamodb_table", text("locks"))], "Invalid dynamodb_table of the s3 backend: "),
        (vec![("use_lockfile", Value::from(false))], "Invalid use_lockfile of the s3 backend: "),
        (vec![("sse_customer_key", text("c2hvcnQ="))], "Invalid sse_customer_key of the s3 backend: "),
        (vec![("sse_customer_key", text(key)), ("kms_key_id", text("k"))], "Invalid encryption of the s3 backend: "),
        (vec![("kms_key_id", text("a b"))], "Invalid kms_key_id of the s3 backend: "),
        (vec![("acl", text("Private\n"))], "Invalid acl of the s3 backend: "),
        (vec![("endpoint", text("store.example"))], "Invalid endpoint (s3) of the s3 backend: "),
        (vec![("endpoint", text("https://user:secret@store.example"))], "Invalid endpoint (s3) of the s3 backend: "),
        (vec![("endpoints", Value::object([("sts", text("ftp://x"))]))], "Invalid endpoint (sts) of the s3 backend: "),
        (vec![("max_retries", Value::from(-1i64))], "Invalid max_retries of the s3 backend: "),
        (vec![("retry_mode", text("fast"))], "Invalid retry_mode of the s3 backend: "),
        (vec![("custom_ca_bundle", text("/not/there"))], "Invalid custom_ca_bundle of the s3 backend: "),
    ] {
        let said = read(&given, "default", &[]).map(|_| ()).unwrap_err();
        assert!(said.starts_with(expected), "{said}");
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
