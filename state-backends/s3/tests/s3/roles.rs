//! Credentials on their way: roles from a real STS (moto's), and everything else from a server that checks what it is asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use karmaform_model::{Item, Object, StateStore as _, StoreError, Value};
use karmaform_s3::{Limits, S3Store};

use crate::fake::{Act, Fake, Seen, error, tagged};
use crate::servers::{arguments, servers};

const QUICK: Limits = Limits {
    connect: Duration::from_secs(5),
    one_try: Duration::from_secs(10),
    whole: Duration::from_secs(20),
    first_pause: Duration::from_millis(20),
};

fn variables(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn open(arguments: &Object, environment: &[(&str, &str)], home: Option<&Path>) -> S3Store {
    let store = S3Store::open_within(arguments, "default", &variables(environment), home, QUICK);
    store.unwrap_or_else(|d| panic!("{}: {}", d.summary, d.detail))
}

/// Arguments for a bucket on that server, which is asked for roles and logins too.
fn on(fake: &Fake) -> Object {
    let endpoint = || Value::from(fake.endpoint.as_str());
    let mut arguments = arguments(&[("bucket", "fleet"), ("key", "k"), ("region", "eu-west-1")]);
    arguments.remove("skip_metadata_api_check");
    arguments.insert("endpoints".to_owned(), Value::object([("s3", endpoint()), ("sts", endpoint()), ("sso", endpoint())]));
    arguments
}

/// The time in so many seconds, as these services write it.
fn until(seconds: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn role(action: &str, number: usize, seconds: i64) -> Act {
    let body = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><Credentials><AccessKeyId>ROLE{number}</AccessKeyId>\
         <SecretAccessKey>rs</SecretAccessKey><SessionToken>RT{number}</SessionToken><Expiration>{}</Expiration></Credentials>\
         <PackedPolicySize>6</PackedPolicySize></{action}Result><ResponseMetadata><RequestId>x</RequestId></ResponseMetadata></{action}Response>",
        until(seconds)
    );
    Act::Answer(200, vec![], body)
}

/// Who signed, and with which token.
fn signer(seen: &Seen) -> String {
    let key = seen.header("authorization").split("Credential=").nth(1).and_then(|c| c.split('/').next()).unwrap_or("nobody");
    format!("{key} {}", seen.header("x-amz-security-token"))
}

async fn signer_of_a_read(fake: &Fake, store: &S3Store) -> String {
    store.get(&Item::State).await.unwrap();
    let last = fake.seen().pop().unwrap();
    assert_eq!(last.path, "/fleet/k");
    signer(&last)
}

#[tokio::test]
async fn a_role_of_a_real_sts() {
    for server in servers("a_role_of_a_real_sts").into_iter().filter(|s| s.name == "moto") {
        let bucket = server.bucket().await;
        let mut arguments = server.arguments(&bucket, "k");
        arguments.insert("sts_endpoint".to_owned(), Value::from(server.endpoint.as_str()));
        let role = [("role_arn", Value::from("arn:aws:iam::123456789012:role/state")), ("session_name", Value::from("me"))];
        arguments.insert("assume_role".to_owned(), Value::object(role));
        let store = open(&arguments, &[], None);
        let first = store.put(&Item::State, b"{}".to_vec(), None).await.unwrap();
        assert_eq!(store.get(&Item::State).await.unwrap().unwrap().version, first);
    }
}

#[tokio::test]
async fn a_role_is_asked_for_with_all_that_was_said_and_kept_until_shortly_before_its_end() {
    let issued = AtomicUsize::new(0);
    let fake = Fake::new(move |_, seen| match seen.path.as_str() {
        // The first is for ten minutes; the second so short that it is not kept.
        "/" => match issued.fetch_add(1, Ordering::Relaxed) {
            0 => role("AssumeRole", 0, 600),
            n => role("AssumeRole", n, 200),
        },
        _ => tagged("\"1\"", ""),
    });
    let mut arguments = on(&fake);
    arguments.extend([("access_key", "AK"), ("secret_key", "SK"), ("token", "ST")].map(|(k, v)| (k.to_owned(), Value::from(v))));
    arguments.insert(
        "assume_role".to_owned(),
        Value::object([
            ("role_arn", Value::from("arn:aws:iam::1:role/a+b")),
            ("duration", Value::from("1h")),
            ("external_id", Value::from("x&y")),
            ("policy_arns", Value::set(karmaform_model::Type::String, vec![Value::from("arn:p")])),
            ("tags", Value::object([("team", Value::from("fleet"))])),
            ("transitive_tag_keys", Value::set(karmaform_model::Type::String, vec![Value::from("team")])),
        ]),
    );
    let store = open(&arguments, &[], None);
    assert_eq!(signer_of_a_read(&fake, &store).await, "ROLE0 RT0");
    assert_eq!(signer_of_a_read(&fake, &store).await, "ROLE0 RT0");
    let asked = &fake.seen()[0];
    assert_eq!(fake.seen().len(), 3, "asked for once");
    assert_eq!(signer(asked), "AK ST");
    assert!(asked.header("authorization").contains("/eu-west-1/sts/aws4_request"));
    assert_eq!(
        String::from_utf8_lossy(&asked.body),
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%2Bb&RoleSessionName=karmaform&DurationSeconds=3600&\
         PolicyArns.member.1.arn=arn%3Ap&ExternalId=x%26y&Tags.member.1.Key=team&Tags.member.1.Value=fleet&TransitiveTagKeys.member.1=team"
    );
    // Another store: its own role, too short to be kept, so the next read asks again.
    let store = open(&arguments, &[], None);
    assert_eq!(signer_of_a_read(&fake, &store).await, "ROLE1 RT1");
    assert_eq!(signer_of_a_read(&fake, &store).await, "ROLE2 RT2");
}

#[tokio::test]
async fn credentials_that_were_taken_back_are_asked_for_anew_once() {
    let issued = AtomicUsize::new(0);
    let fake = Fake::new(move |_, seen| match seen.path.as_str() {
        "/" => role("AssumeRole", issued.fetch_add(1, Ordering::Relaxed), 3600),
        _ if signer(seen).starts_with("ROLE0") => error(400, "ExpiredToken"),
        _ => tagged("\"1\"", ""),
    });
    let mut arguments = on(&fake);
    arguments.extend([("access_key", "AK"), ("secret_key", "SK")].map(|(k, v)| (k.to_owned(), Value::from(v))));
    arguments.insert("assume_role".to_owned(), Value::object([("role_arn", Value::from("arn:aws:iam::1:role/a"))]));
    assert_eq!(signer_of_a_read(&fake, &open(&arguments, &[], None)).await, "ROLE1 RT1");
}

#[tokio::test]
async fn credentials_that_were_taken_back_keep_no_lock_from_being_released() {
    let issued = AtomicUsize::new(0);
    let fake = Fake::new(move |_, seen| match seen.path.as_str() {
        "/" => role("AssumeRole", issued.fetch_add(1, Ordering::Relaxed), 3600),
        // As Amazon's: what answers a HEAD has no body.
        _ if signer(seen).starts_with("ROLE0") && seen.method == "HEAD" => Act::Answer(400, vec![], String::new()),
        _ if seen.method == "DELETE" => Act::Answer(204, vec![], String::new()),
        _ => tagged("\"1\"", ""),
    });
    let mut arguments = on(&fake);
    arguments.extend([("access_key", "AK"), ("secret_key", "SK")].map(|(k, v)| (k.to_owned(), Value::from(v))));
    arguments.insert("assume_role".to_owned(), Value::object([("role_arn", Value::from("arn:aws:iam::1:role/a"))]));
    let store = open(&arguments, &[], None);
    assert_eq!(store.delete(&Item::Lock, &karmaform_model::Version("\"1\"".to_owned())).await, Ok(()));
    assert_eq!(signer(&fake.seen().pop().unwrap()), "ROLE1 RT1");
}

#[tokio::test]
async fn a_role_that_is_not_given() {
    let answer = "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User x is not authorized</Message></Error></ErrorResponse>";
    let fake = Fake::new(move |_, _| Act::Answer(403, vec![], answer.to_owned()));
    let mut arguments = on(&fake);
    arguments.extend([("access_key", "AK"), ("secret_key", "SK")].map(|(k, v)| (k.to_owned(), Value::from(v))));
    arguments.insert("assume_role".to_owned(), Value::object([("role_arn", Value::from("arn:aws:iam::1:role/a"))]));
    let expected = format!(
        "STS at {} did not give the role \"arn:aws:iam::1:role/a\" (AccessDenied: User x is not authorized); check the role, and that these credentials may assume it.",
        fake.endpoint
    );
    assert_eq!(open(&arguments, &[], None).get(&Item::State).await, Err(StoreError::Refused(expected)));
}

#[tokio::test]
async fn a_token_of_an_identity_provider() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("token"), "JWT\n").unwrap();
    let fake = Fake::new(|_, seen| if seen.path == "/" { role("AssumeRoleWithWebIdentity", 7, 3600) } else { tagged("\"1\"", "") });
    let environment =
        [("AWS_WEB_IDENTITY_TOKEN_FILE", "~/token"), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/w"), ("AWS_ROLE_SESSION_NAME", "pod")];
    let store = open(&on(&fake), &environment, Some(home.path()));
    assert_eq!(signer_of_a_read(&fake, &store).await, "ROLE7 RT7");
    let asked = &fake.seen()[0];
    assert_eq!(asked.header("authorization"), "");
    assert!(
        String::from_utf8_lossy(&asked.body)
            .ends_with("&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fw&RoleSessionName=pod&WebIdentityToken=JWT")
    );
}

#[tokio::test]
async fn a_login_of_iam_identity_center() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().join(".aws/sso/cache");
    fs::create_dir_all(&cache).unwrap();
    fs::write(
        home.path().join(".aws/config"),
        "[profile me]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = reader\n[sso-session corp]\nsso_region = eu-west-1\n",
    )
    .unwrap();
    let fake = Fake::new(|_, seen| match seen.path.as_str() {
        "/fleet/k" => tagged("\"1\"", ""),
        "/federation/credentials?role_name=reader&account_id=1" if seen.header("x-amz-sso_bearer_token") == "LOGIN" => {
            let body = "{\"roleCredentials\":{\"accessKeyId\":\"SSO\",\"secretAccessKey\":\"s\",\"sessionToken\":\"SSOT\",\"expiration\":4102444800000}}";
            Act::Answer(200, vec![], body.to_owned())
        }
        _ => Act::Answer(401, vec![], String::new()),
    });
    let read = async || open(&on(&fake), &[("AWS_PROFILE", "me")], Some(home.path())).get(&Item::State).await.map(|_| ());
    let again = Err(StoreError::Refused("The profile \"me\" has no valid login; run `aws sso login --profile me`.".to_owned()));
    assert_eq!(read().await, again, "never logged in");
    let note = |token: &str, until: &str| {
        let text = format!("{{\"accessToken\":\"{token}\",\"expiresAt\":\"{until}\",\"region\":\"eu-west-1\"}}");
        // The SHA-1 of "corp".
        fs::write(cache.join("ee0bfd2552fbd840c02cc48b6e823320543c450f.json"), text).unwrap();
    };
    note("LOGIN", &until(-10));
    assert_eq!(read().await, again, "too long ago");
    note("OTHER", &until(600));
    assert_eq!(read().await, again, "not accepted");
    note("LOGIN", &until(600).replace('Z', "UTC"));
    assert_eq!(read().await, Ok(()));
    assert_eq!(signer(&fake.seen().pop().unwrap()), "SSO SSOT");
}

#[tokio::test]
async fn a_program_that_prints_credentials() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    let fake = Fake::new(|_, _| tagged("\"1\"", ""));
    let read = async |command: &str| {
        fs::write(home.path().join(".aws/config"), format!("[profile p]\ncredential_process = {command}\n")).unwrap();
        let environment = [("AWS_PROFILE", "p"), ("KEY", "PROGRAM"), ("PATH", "/usr/bin:/bin")];
        open(&on(&fake), &environment, Some(home.path())).get(&Item::State).await.map(|_| ())
    };
    let good = "echo \"{\\\"Version\\\": 1, \\\"AccessKeyId\\\": \\\"$KEY\\\", \\\"SecretAccessKey\\\": \\\"s\\\"}\"";
    assert_eq!(read(good).await, Ok(()));
    assert_eq!(signer(&fake.seen().pop().unwrap()), "PROGRAM ");
    let broken = good.replace("$KEY", "two words");
    let said = "The keys in the answer have characters that no key has, like spaces or line ends.";
    assert_eq!(read(&broken).await, Err(StoreError::Refused(said.to_owned())));
    for (command, why) in [("echo SECRET; false", "failed"), ("echo SECRET", "prints something else than credentials")] {
        let expected = format!("The profile's credential_process {why}; run it by hand to see what it says.");
        assert_eq!(read(command).await, Err(StoreError::Refused(expected)));
    }
}

#[tokio::test]
async fn what_surrounds_the_process_gives_credentials() {
    let keys = |name: &str| {
        let body = format!(
            "{{\"Code\":\"Success\",\"AccessKeyId\":\"{name}\",\"SecretAccessKey\":\"s\",\"Token\":\"T\",\"Expiration\":\"{}\"}}",
            until(3600)
        );
        Act::Answer(200, vec![], body)
    };
    let fake = Fake::new(move |_, seen| {
        let session = || seen.header("x-aws-ec2-metadata-token") == "SESSION";
        match (seen.method.as_str(), seen.path.as_str()) {
            (_, "/fleet/k") => tagged("\"1\"", ""),
            ("GET", "/pod") if seen.header("authorization") == "TOKEN" => keys("POD"),
            ("PUT", "/latest/api/token") if !seen.header("x-aws-ec2-metadata-token-ttl-seconds").is_empty() => {
                Act::Answer(200, vec![], "SESSION".to_owned())
            }
            ("GET", "/latest/meta-data/iam/security-credentials/") if session() => Act::Answer(200, vec![], "the-role\n".to_owned()),
            ("GET", "/latest/meta-data/iam/security-credentials/the-role") if session() => keys("MACHINE"),
            _ => Act::Answer(401, vec![], String::new()),
        }
    });
    let pod = format!("{}/pod", fake.endpoint);
    let environment = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", pod.as_str()), ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "TOKEN")];
    assert_eq!(signer_of_a_read(&fake, &open(&on(&fake), &environment, None)).await, "POD T");

    let mut arguments = on(&fake);
    arguments.insert("ec2_metadata_service_endpoint".to_owned(), Value::from(fake.endpoint.as_str()));
    assert_eq!(signer_of_a_read(&fake, &open(&arguments, &[], None)).await, "MACHINE T");

    // Where there is no such service, it is said what to do.
    arguments.insert("ec2_metadata_service_endpoint".to_owned(), Value::from("http://127.0.0.1:1"));
    let Err(StoreError::Refused(said)) = open(&arguments, &[], None).get(&Item::State).await else { panic!("credentials from nowhere") };
    assert!(said.contains("does not answer; set AWS_ACCESS_KEY_ID"), "{said}");
}
