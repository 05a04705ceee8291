//! The arguments and the environment, checked and turned into what the rest works with. Reads the CA bundle; asks nobody.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Diagnostic, Object, Value, written_path};
use md5::{Digest as _, Md5};

/// The environment and the home folder, as whoever has them gives them.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) home: Option<&'a Path>,
}

impl Surroundings<'_> {
    /// A variable; an empty one counts as none.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|v| !v.is_empty()).cloned()
    }

    /// The first of these that is set.
    pub(crate) fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|n| self.variable(n))
    }

    /// A path with `~/` resolved.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        written_path(Path::new(""), self.home, path)
    }
}

/// How the store encrypts.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// As the bucket says.
    Bucket,
    /// With keys of the store's own.
    Aes256,
    /// With this KMS key.
    Kms(String),
    /// With a key that goes with each request: base64 of it and of its MD5.
    Customer { key: String, md5: String },
}

/// Where services are that are not Amazon's.
#[derive(Clone, Default)]
pub(crate) struct Endpoints {
    pub(crate) s3: Option<String>,
    pub(crate) sts: Option<String>,
    pub(crate) sso: Option<String>,
    pub(crate) kms: Option<String>,
}

/// How servers are reached.
#[derive(Clone, Default)]
pub(crate) struct Reach {
    pub(crate) ca_bundle: Option<Vec<u8>>,
    pub(crate) insecure: bool,
    pub(crate) http_proxy: Option<String>,
    pub(crate) https_proxy: Option<String>,
    pub(crate) no_proxy: Option<String>,
    pub(crate) max_retries: u32,
}

/// What was said of the store itself.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) bucket: String,
    /// The state's key, of the workspace that was chosen.
    pub(crate) key: String,
    /// The key in the default workspace.
    pub(crate) default_key: String,
    /// What the keys of other workspaces begin with, with its slash.
    pub(crate) workspaces: String,
    pub(crate) endpoints: Endpoints,
    pub(crate) path_style: bool,
    pub(crate) dualstack: bool,
    pub(crate) fips: bool,
    pub(crate) reach: Reach,
    pub(crate) encryption: Encryption,
    pub(crate) acl: Option<String>,
    pub(crate) checksum: bool,
}

/// An argument that is a string and not empty.
pub(crate) fn string(arguments: &Object, name: &str) -> Option<String> {
    arguments.get(name).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned)
}

/// An argument that is true.
pub(crate) fn is_set(arguments: &Object, name: &str) -> bool {
    arguments.get(name).and_then(Value::as_bool) == Some(true)
}

/// An argument that is a list or set of strings; `None` if it was not given.
pub(crate) fn strings(arguments: &Object, name: &str) -> Option<Vec<String>> {
    Some(arguments.get(name)?.as_items()?.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
}

/// An argument that can't be as it is.
pub(crate) fn wrong(name: &str, detail: impl Into<String>, hint: impl Into<String>) -> Diagnostic {
    Diagnostic::error(format!("Invalid {name} of the s3 backend"), detail).with_hint(hint)
}

impl Settings {
    /// Reads them. `workspace` is `default` or a name that was checked.
    pub(crate) fn read(arguments: &Object, workspace: &str, around: Surroundings<'_>) -> Result<Self, Diagnostic> {
        refuse_what_never_works(arguments)?;
        Ok(Self {
            bucket: bucket(arguments)?,
            key: key(arguments, workspace)?,
            default_key: key(arguments, "default")?,
            workspaces: format!("{}/", prefix(arguments)),
            endpoints: endpoints(arguments, around)?,
            path_style: is_set(arguments, "use_path_style") || is_set(arguments, "force_path_style"),
            dualstack: is_set(arguments, "use_dualstack_endpoint"),
            fips: is_set(arguments, "use_fips_endpoint"),
            reach: reach(arguments, around)?,
            encryption: encryption(arguments, around)?,
            acl: acl(arguments)?,
            checksum: !is_set(arguments, "skip_s3_checksum"),
        })
    }
}

fn refuse_what_never_works(arguments: &Object) -> Result<(), Diagnostic> {
    if string(arguments, "dynamodb_table").is_some() {
        return Err(wrong(
            "dynamodb_table",
            "karmaform locks with a file beside the state and not with a DynamoDB table.",
            "Remove dynamodb_table; a Terraform that shares this state needs use_lockfile = true.",
        ));
    }
    if arguments.get("use_lockfile").and_then(Value::as_bool) == Some(false) {
        return Err(wrong(
            "use_lockfile",
            "karmaform always locks the state, with a file beside it.",
            "Remove use_lockfile, or set it to true.",
        ));
    }
    Ok(())
}

fn bucket(arguments: &Object) -> Result<String, Diagnostic> {
    let bucket = string(arguments, "bucket").unwrap_or_default();
    // Names as Amazon has them, and the few more characters that other stores and old buckets have.
    let fits = (1..=255).contains(&bucket.len()) && bucket.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if !fits || bucket.trim_matches('.') != bucket {
        return Err(wrong(
            "bucket",
            "A bucket's name is of letters, digits, hyphens and dots.",
            "Write the name alone, without s3:// and without a path.",
        ));
    }
    Ok(bucket)
}

/// True for a path that stays as it is in an address.
pub(crate) fn is_clean(path: &str) -> bool {
    !path.split('/').any(|part| part.is_empty() || part == "." || part == "..") && !path.chars().any(char::is_control)
}

fn key(arguments: &Object, workspace: &str) -> Result<String, Diagnostic> {
    let key = string(arguments, "key").unwrap_or_default();
    if !is_clean(&key) {
        return Err(wrong(
            "key",
            "The key is a path without a slash at either end and without empty parts.",
            "Write it like \"prod/karmada.tfstate\".",
        ));
    }
    if workspace == "default" {
        return Ok(key);
    }
    let prefix = prefix(arguments);
    if !is_clean(&prefix) {
        return Err(wrong(
            "workspace_key_prefix",
            "The prefix is a path without a slash at either end and without empty parts.",
            "Write it like \"env:\" or \"workspaces\".",
        ));
    }
    if !is_clean(workspace) || workspace.contains('/') {
        return Err(wrong(
            "workspace",
            "The name of a workspace is part of the state's key and has no slash.",
            "Choose a workspace without a slash in its name.",
        ));
    }
    Ok(format!("{prefix}/{workspace}/{key}"))
}

fn prefix(arguments: &Object) -> String {
    string(arguments, "workspace_key_prefix").unwrap_or_else(|| "env:".to_owned())
}

/// An address with a scheme and a host, without a slash at its end.
fn address(name: &str, given: String) -> Result<String, Diagnostic> {
    let fits = |url: &reqwest::Url| {
        ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    };
    let url = reqwest::Url::parse(&given).ok().filter(fits).ok_or_else(|| {
        let detail = "An endpoint is http:// or https://, a host, and a port if it needs one.";
        wrong(name, detail, "Write it like \"https://store.example:9000\".")
    })?;
    // As the library writes it: names of other scripts as they are looked up.
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Where services are, by arguments and environment.
pub(crate) fn endpoints(arguments: &Object, around: Surroundings<'_>) -> Result<Endpoints, Diagnostic> {
    let object = arguments.get("endpoints").and_then(Value::as_entries).cloned().unwrap_or_default();
    let ignored = around.variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let find = |name: &str, older: &str, variables: &[&str]| {
        let from_environment = || (!ignored).then(|| around.first(variables).or_else(|| around.variable("AWS_ENDPOINT_URL"))).flatten();
        let given = string(&object, name).or_else(|| string(arguments, older)).or_else(from_environment);
        given.map(|given| address(&format!("endpoint ({name})"), given)).transpose()
    };
    Ok(Endpoints {
        s3: find("s3", "endpoint", &["AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT"])?,
        sts: find("sts", "sts_endpoint", &["AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT"])?,
        sso: find("sso", "", &["AWS_ENDPOINT_URL_SSO"])?,
        kms: find("kms", "", &["AWS_ENDPOINT_URL_KMS"])?,
    })
}

/// How servers are reached, by arguments and environment.
pub(crate) fn reach(arguments: &Object, around: Surroundings<'_>) -> Result<Reach, Diagnostic> {
    let bundle = string(arguments, "custom_ca_bundle").or_else(|| around.variable("AWS_CA_BUNDLE"));
    let ca_bundle = bundle.map(|path| fs::read(around.path(&path)).map_err(|e| (path, e))).transpose().map_err(|(path, e)| {
        wrong("custom_ca_bundle", format!("The file {path} can't be read: {e}."), "Name a file with certificates in PEM format.")
    })?;
    let retries = arguments.get("max_retries").and_then(Value::as_i64).unwrap_or(5);
    let max_retries = u32::try_from(retries).ok().filter(|n| *n <= 100).ok_or_else(|| {
        wrong("max_retries", "A request is repeated 0 to 100 times.", "Remove max_retries for 5, or write a number from 0 to 100.")
    })?;
    if let Some(mode) = string(arguments, "retry_mode").filter(|m| !["standard", "adaptive"].contains(&m.as_str())) {
        return Err(wrong(
            "retry_mode",
            format!("There is no mode {mode:?}."),
            "Write \"standard\" or \"adaptive\", or remove retry_mode.",
        ));
    }
    // curl's convention, which Amazon's tools share: lower case too.
    let proxy = |name: &str| string(arguments, name).or_else(|| around.first(&[name, &name.to_uppercase()]));
    Ok(Reach {
        ca_bundle,
        insecure: is_set(arguments, "insecure"),
        http_proxy: proxy("http_proxy"),
        https_proxy: proxy("https_proxy"),
        no_proxy: proxy("no_proxy"),
        max_retries,
    })
}

fn encryption(arguments: &Object, around: Surroundings<'_>) -> Result<Encryption, Diagnostic> {
    let kms = string(arguments, "kms_key_id");
    let given = string(arguments, "sse_customer_key");
    if kms.is_some() && given.is_some() {
        return Err(wrong("encryption", "kms_key_id and sse_customer_key exclude each other.", "Keep one of them."));
    }
    if let Some(key) = kms {
        return match header_safe(&key) {
            true => Ok(Encryption::Kms(key)),
            false => Err(wrong("kms_key_id", "An id or ARN is of printable characters.", "Copy the ARN of the key again.")),
        };
    }
    if let Some(key) = given.or_else(|| around.variable("AWS_SSE_CUSTOMER_KEY")) {
        let bytes = STANDARD.decode(&key).ok().filter(|b| b.len() == 32).ok_or_else(|| {
            wrong(
                "sse_customer_key",
                "The key must be 32 bytes in base64, which are 44 characters.",
                "Make one with `openssl rand -base64 32`, and keep it safe.",
            )
        })?;
        return Ok(Encryption::Customer { key, md5: STANDARD.encode(Md5::digest(bytes)) });
    }
    Ok(if is_set(arguments, "encrypt") { Encryption::Aes256 } else { Encryption::Bucket })
}

fn acl(arguments: &Object) -> Result<Option<String>, Diagnostic> {
    let acl = string(arguments, "acl");
    match &acl {
        Some(acl) if !acl.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') => Err(wrong(
            "acl",
            "A canned ACL is of lower-case letters and hyphens.",
            "Write it like \"private\" or \"bucket-owner-full-control\".",
        )),
        _ => Ok(acl),
    }
}

/// True for what can be the name of a region, Amazon's or another: it stands in addresses and signatures.
pub(crate) fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

/// True if a text can stand in a header: whatever signs requests relies on that.
pub(crate) fn header_safe(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
