//! Which arguments are refused, and with which words.

use super::*;

fn read(given: &[(&str, Value)], environment: &[(&str, &str)]) -> Result<Settings, String> {
    let arguments: Object = given.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Settings::read(&arguments, &environment).map_err(|d| format!("{}: {}", d.summary, d.detail))
}

fn text(value: &str) -> Value {
    Value::from(value)
}

#[test]
fn what_can_not_be_is_refused() {
    let with = |more: &[(&'static str, Value)]| [&[("address", text("https://h/s"))], more].concat();
    for (given, expected) in [
        (vec![], "needs the argument \"address\""),
        (vec![("address", text(""))], "needs the argument \"address\""),
        (vec![("address", text("h/s"))], "Invalid address of the http backend"),
        (vec![("address", text("ftp://h/s"))], "Invalid address of the http backend"),
        (vec![("address", text("https://me:hunter2@h/s"))], "no user and no password"),
        (with(&[("lock_address", text("https://h/l"))]), "no lock would ever be released"),
        (with(&[("unlock_address", text("https://h/l"))]), "nothing would be locked"),
        (with(&[("lock_address", text("nowhere")), ("unlock_address", text("https://h/l"))]), "Invalid lock_address"),
        (with(&[("update_method", text("PO ST"))]), "Invalid update_method"),
        (with(&[("retry_max", Value::from(-1i64))]), "Invalid retry_max"),
        (with(&[("retry_max", Value::from(1000i64))]), "from 0 to 100"),
        (with(&[("retry_wait_min", Value::from(1_000_000i64))]), "Invalid retry_wait_min"),
        (with(&[("client_certificate_pem", text("x"))]), "one of them is missing"),
        (with(&[("client_private_key_pem", text("x"))]), "one of them is missing"),
    ] {
        let said = read(&given, &[]).map(|_| ()).unwrap_err();
        assert!(said.contains(expected) && !said.contains("hunter2"), "{said}");
    }
    let said = read(&with(&[]), &[("TF_HTTP_RETRY_MAX", "many")]).map(|_| ()).unwrap_err();
    assert!(said.contains("Invalid retry_max"), "{said}");
}

#[test]
fn defaults_are_terraforms() {
    let settings = read(&[("address", text("https://h/s?type=git&x=1#part"))], &[]).unwrap();
    assert_eq!(settings.update.url.as_str(), "https://h/s?type=git&x=1");
    assert_eq!(settings.update.method, "POST");
    assert!(settings.locking.is_none() && settings.reach.login.is_none());
    let Retries { most, first_pause, longest_pause } = settings.retries;
    assert_eq!((most, first_pause.as_secs(), longest_pause.as_secs()), (2, 1, 30));
}

#[test]
fn the_environment_fills_in_and_what_is_written_wins() {
    let environment = [
        ("TF_HTTP_ADDRESS", "https://h/s"),
        ("TF_HTTP_UPDATE_METHOD", "PUT"),
        ("TF_HTTP_LOCK_ADDRESS", "https://h/s/lock"),
        ("TF_HTTP_LOCK_METHOD", "POST"),
        ("TF_HTTP_UNLOCK_ADDRESS", "https://h/s/unlock"),
        ("TF_HTTP_UNLOCK_METHOD", "DELETE"),
        ("TF_HTTP_USERNAME", "me"),
        ("TF_HTTP_PASSWORD", "token"),
        ("TF_HTTP_RETRY_MAX", "7"),
        ("TF_HTTP_RETRY_WAIT_MIN", "3"),
        ("TF_HTTP_RETRY_WAIT_MAX", "5"),
        ("TF_HTTP_CLIENT_CA_CERTIFICATE_PEM", "ca"),
        ("TF_HTTP_CLIENT_CERTIFICATE_PEM", "certificate"),
        ("TF_HTTP_CLIENT_PRIVATE_KEY_PEM", "key"),
        ("HTTPS_PROXY", "http://proxy:1"),
    ];
    let settings = read(&[], &environment).unwrap();
    let locking = settings.locking.unwrap();
    assert_eq!((settings.update.method.as_str(), settings.update.url.as_str()), ("PUT", "https://h/s"));
    assert_eq!((locking.lock.method.as_str(), locking.lock.url.as_str()), ("POST", "https://h/s/lock"));
    assert_eq!((locking.unlock.method.as_str(), locking.unlock.url.as_str()), ("DELETE", "https://h/s/unlock"));
    assert_eq!(settings.reach.login, Some(("me".to_owned(), "token".to_owned())));
    assert_eq!(settings.reach.trusted.as_deref(), Some("ca"));
    assert_eq!(settings.reach.identity.as_deref(), Some("certificate\nkey\n"));
    assert_eq!(settings.reach.https_proxy.as_deref(), Some("http://proxy:1"));
    assert_eq!((settings.retries.most, settings.retries.first_pause.as_secs(), settings.retries.longest_pause.as_secs()), (7, 3, 5));

    let written = [("address", text("http://other/s")), ("username", text("you")), ("retry_max", Value::from(0i64))];
    let settings = read(&written, &environment).unwrap();
    assert_eq!(settings.update.url.as_str(), "http://other/s");
    assert_eq!(settings.reach.login, Some(("you".to_owned(), "token".to_owned())));
    assert_eq!(settings.retries.most, 0);
}
