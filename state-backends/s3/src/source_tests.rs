//! Which credentials win, and which profiles make no sense.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use karmaform_model::{Object, Value};

use super::*;

/// A source in one line.
fn told(source: &Source) -> String {
    match source {
        Source::Keys(keys) => format!("{}{}", keys.access, keys.token.as_ref().map(|t| format!("+{t}")).unwrap_or_default()),
        Source::Role(base, role) => format!("{} -> {}", told(base), role.arn),
        Source::WebIdentity(IdentityToken::Inline(token), role) => format!("token {token} -> {}", role.arn),
        Source::WebIdentity(IdentityToken::File(file), role) => format!("{} -> {}", file.display(), role.arn),
        Source::Process(command) => format!("$ {command}"),
        Source::Sso { region, account, role, cache, .. } => {
            format!("sso {region} {account} {role} {}", cache.file_name().unwrap_or_default().to_string_lossy())
        }
        Source::Container { url, authorization } => format!("container {url} {}", authorization.is_some()),
        Source::Machine(endpoint) => format!("machine {endpoint}"),
    }
}

const CONFIG: &str = "
[default]
region = eu-central-1
[profile role]
role_arn = arn:role
source_profile = keys
[profile chain]
role_arn = arn:chain
source_profile = role
[profile circle]
role_arn = arn:circle
source_profile = circle2
[profile circle2]
role_arn = arn:circle2
source_profile = circle
[profile own]
role_arn = arn:own
source_profile = own
[profile lost]
role_arn = arn:lost
source_profile = nobody
[profile code]
role_arn = arn:code
source_profile = keys
mfa_serial = arn:mfa
[profile env]
role_arn = arn:env
credential_source = Environment
[profile program]
credential_process = /bin/keys --all
[profile identity]
role_arn = arn:identity
web_identity_token_file = /token
[profile login]
sso_session = corp
sso_account_id = 1
sso_role_name = reader
[profile oldlogin]
sso_start_url = https://corp.example/start
sso_region = eu-west-1
sso_account_id = 1
sso_role_name = reader
[profile halflogin]
sso_account_id = 1
[sso-session corp]
sso_region = us-east-1
sso_start_url = https://corp.example/start
[profile empty]
";

const CREDENTIALS: &str = "
[keys]
aws_access_key_id = FILE
aws_secret_access_key = s
[own]
aws_access_key_id = OWN
aws_secret_access_key = s
aws_session_token = T
";

fn chosen(home: &Path, arguments: &[(&str, Value)], environment: &[(&str, &str)]) -> Result<Chosen, Diagnostic> {
    let arguments: Object = arguments.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let environment: BTreeMap<_, _> = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    choose(&arguments, Surroundings { environment: &environment, home: Some(home) })
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".aws")).unwrap();
    fs::write(home.path().join(".aws/config"), CONFIG).unwrap();
    fs::write(home.path().join(".aws/credentials"), CREDENTIALS).unwrap();
    home
}

#[test]
fn the_order_is_that_of_amazons_tools() {
    let home = home();
    let text = |name: &'static str, value: &str| (name, Value::from(value));
    let keys = [text("access_key", "ARG"), text("secret_key", "s")];
    let environment = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_SESSION_TOKEN", "T")];
    let identity = [("AWS_WEB_IDENTITY_TOKEN_FILE", "~/t"), ("AWS_ROLE_ARN", "arn:web")];
    let told = |arguments: &[(&str, Value)], environment: &[(&str, &str)]| {
        told(&chosen(home.path(), arguments, environment).map_err(|d| d.detail).unwrap().source)
            .replace(&home.path().display().to_string(), "~")
    };
    let all: Vec<_> = environment.iter().chain(&identity).copied().collect();
    assert_eq!(told(&keys, &all), "ARG");
    assert_eq!(told(&[text("profile", "role")], &all), "FILE -> arn:role");
    assert_eq!(told(&[], &[&all[..], &[("AWS_PROFILE", "role")]].concat()), "ENV+T");
    assert_eq!(told(&[], &[&identity[..], &[("AWS_PROFILE", "role")]].concat()), "~/t -> arn:web");
    assert_eq!(told(&[], &[("AWS_PROFILE", "role")]), "FILE -> arn:role");
    // The default profile has no keys here.
    assert_eq!(told(&[], &[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")]), "container http://169.254.170.2/x false");
    let pod = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/t")];
    assert_eq!(told(&[], &pod), "container http://169.254.170.23/v1 true");
    assert_eq!(told(&[], &[]), "machine http://169.254.169.254");
    assert_eq!(told(&[], &[("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6")]), "machine http://[fd00:ec2::254]");
    assert_eq!(told(&[text("ec2_metadata_service_endpoint", "http://m/")], &[]), "machine http://m");
    let role = |name: &'static str| (name, Value::object([("role_arn", Value::from("arn:argument"))]));
    assert_eq!(told(&[&keys[..], &[role("assume_role")]].concat(), &[]), "ARG -> arn:argument");
    assert_eq!(told(&[role("assume_role_with_web_identity")], &all), "~/t -> arn:argument");
}

#[test]
fn profiles_say_where_keys_are() {
    let home = home();
    for (profile, expected) in [
        ("keys", "FILE"),
        ("role", "FILE -> arn:role"),
        ("chain", "FILE -> arn:role -> arn:chain"),
        ("own", "OWN+T -> arn:own"),
        ("env", "ENV -> arn:env"),
        ("program", "$ /bin/keys --all"),
        ("identity", "/token -> arn:identity"),
        // The names that `aws sso login` gives its files: SHA-1 of the session's name, or of the address.
        ("login", "sso us-east-1 1 reader ee0bfd2552fbd840c02cc48b6e823320543c450f.json"),
        ("oldlogin", "sso eu-west-1 1 reader f7c9b39d0b4c7a7d82c79307585f77e1c5e74378.json"),
        ("empty", "machine http://169.254.169.254"),
    ] {
        let environment = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let source = chosen(home.path(), &[("profile", Value::from(profile))], &environment).map_err(|d| d.detail).unwrap().source;
        assert_eq!(told(&source), expected, "{profile}");
    }
    assert_eq!(chosen(home.path(), &[], &[]).map_err(|d| d.detail).unwrap().region.as_deref(), Some("eu-central-1"));
}

#[test]
fn what_makes_no_sense_is_said() {
    let home = home();
    let text = |name: &'static str, value: &str| (name, Value::from(value));
    let off = ("skip_metadata_api_check", Value::from(true));
    for (arguments, expected) in [
        (vec![text("profile", "circle")], "Profile not usable: The profile \"circle\" leads to itself by source_profile."),
        (vec![text("profile", "lost")], "Profile not usable: The profile \"lost\" has the source_profile \"nobody\", which is not there."),
        (
            vec![text("profile", "code")],
            "Profile not usable: The profile \"code\" asks for a one-time code (mfa_serial), and nobody can be asked here.",
        ),
        (vec![text("profile", "env")], "Profile not usable: The profile \"env\" takes its keys from the environment, which has none."),
        (vec![text("profile", "halflogin")], "Profile not usable: The profile \"halflogin\" has sso_account_id but no sso_role_name."),
        (vec![text("profile", "nobody")], "Profile not found: No file with profiles has one of the name \"nobody\"."),
        (
            vec![text("access_key", "A")],
            "Invalid credentials of the s3 backend: access_key and secret_key belong together, and one of them is missing.",
        ),
        (
            vec![text("access_key", "A"), text("secret_key", "a\nb")],
            "Invalid credentials for the s3 backend: The keys in the arguments have characters that no key has, like spaces or line ends.",
        ),
        (
            vec![off],
            "No credentials for the s3 backend: Neither the arguments nor the environment nor the files in ~/.aws have any, and the metadata service is not to be asked.",
        ),
        (
            vec![("assume_role", Value::object([("role_arn", Value::from("arn:x")), ("duration", Value::from("5m"))]))],
            "Invalid assume_role of the s3 backend: The duration must be between 15 minutes and 12 hours.",
        ),
        (
            vec![("shared_config_files", Value::strings(["/not/there"]))],
            "File with profiles can't be read: /not/there: No such file or directory (os error 2).",
        ),
    ] {
        let why = chosen(home.path(), &arguments, &[]).map(|c| told(&c.source)).unwrap_err();
        assert_eq!(format!("{}: {}", why.summary, why.detail), expected);
        assert!(!why.hints.is_empty(), "{expected}");
    }
    let far = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://keys.example/")];
    let why = chosen(home.path(), &[], &far).map(|c| told(&c.source)).unwrap_err();
    assert_eq!(why.summary, "Container credentials from afar");
    assert!(why.detail.contains("could read the keys") && why.hints[0].starts_with("Use https"), "{why:?}");
}
