//! What an API server may have besides: encryption at rest, an OpenID Connect issuer, an audit log.
//!
//! Sources: "Encrypting Confidential Data at Rest", "Authenticating" and "Auditing" in the documentation of Kubernetes, and the flags of
//! kube-apiserver.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Diagnostic, Type, Value};

use super::encryption;
use super::places::short_sum;
use crate::read::Reader;

/// The file in which the issuer's CA is.
pub(crate) const OIDC_CA: &str = "oidc-ca.crt";

/// What the blocks `encryption`, `oidc` and `audit` add to the API server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    /// Flags by name.
    pub(crate) flags: BTreeMap<String, Arg>,
    /// Files of a Secret of their own.
    pub(crate) files: BTreeMap<String, Arg>,
    /// The CA of the issuer.
    pub(crate) oidc_ca: Option<Value>,
    /// What changes when a file changes that is read only at the start.
    pub(crate) sums: BTreeMap<&'static str, Value>,
    /// Where the API server's certificates are, and its other files.
    folders: (String, String),
}

impl Extras {
    /// Nothing yet; the API server's certificates and its other files are in these folders.
    pub(crate) fn new(folders: (String, String)) -> Self {
        Self { folders, ..Self::default() }
    }

    /// Reads the block `encryption`.
    pub(crate) fn encryption(&mut self, reader: &mut Reader<'_, '_>) {
        if !reader.is_there() {
            return;
        }
        let (config, keys) = (reader.value("config"), reader.value("keys"));
        let content = match (config, keys) {
            (Some(config), None) => Arg::Value(config.clone().secret_if(true)),
            (None, Some(keys)) => {
                let resources = reader.texts("resources");
                let encrypts = reader.flag("encrypt").unwrap_or(true);
                match encryption::configuration(keys, &resources, encrypts, reader) {
                    Some(content) => content,
                    None => return,
                }
            }
            _ => {
                let diagnostic = Diagnostic::error(
                    "One of two ways to encrypt",
                    "The block `encryption` must have either `config`, a whole EncryptionConfiguration, or `keys`.",
                );
                return reader.found.push(diagnostic.with_hint("With `keys` karmaform writes the configuration; that is the simpler way."));
            }
        };
        self.file("encryption.yaml", "encryption-provider-config", content);
    }

    /// Reads the block `audit`.
    pub(crate) fn audit(&mut self, reader: &mut Reader<'_, '_>) {
        if !reader.is_there() {
            return;
        }
        let policy = reader.given("policy");
        if policy.as_str().is_some_and(|p| !p.contains("rules")) {
            reader.wrong::<()>("policy", "is no audit policy: it has no `rules`");
        }
        self.file("audit.yaml", "audit-policy-file", policy.into());
        self.flags.insert("audit-log-path".to_owned(), reader.text("log_path").unwrap_or_else(|| "-".to_owned()).into());
        for name in ["log_maxage", "log_maxbackup", "log_maxsize"] {
            if let Some(number) = reader.number(name, 0..=1_000_000) {
                self.flags.insert(format!("audit-{}", name.replace('_', "-")), number.to_string().into());
            }
        }
    }

    /// Reads the block `oidc`.
    pub(crate) fn oidc(&mut self, reader: &mut Reader<'_, '_>) {
        if !reader.is_there() {
            return;
        }
        if reader.value("issuer_url").and_then(Value::as_str).is_some_and(|u| !u.starts_with("https://")) {
            reader.wrong::<()>("issuer_url", "must start with \"https://\": kube-apiserver takes no other issuer");
        }
        for name in ["issuer_url", "client_id", "username_claim", "username_prefix", "groups_claim", "groups_prefix"] {
            if let Some(value) = reader.value(name) {
                self.flags.insert(format!("oidc-{}", name.replace('_', "-")), value.clone().into());
            }
        }
        if let Some(claims) = reader.value("required_claims") {
            self.flags.insert("oidc-required-claim".to_owned(), pairs(claims));
        }
        let algorithms = reader.texts("signing_algs");
        if !algorithms.is_empty() {
            self.flags.insert("oidc-signing-algs".to_owned(), algorithms.join(",").into());
        }
        if let Some(ca) = reader.value("ca_certificate") {
            self.flags.insert("oidc-ca-file".to_owned(), format!("{}/{OIDC_CA}", self.folders.0).into());
            self.sums.insert("oidc-ca", sum(ca));
            self.oidc_ca = Some(ca.clone());
        }
    }

    fn file(&mut self, name: &'static str, flag: &str, content: Arg) {
        let resolved = content.resolve(&|_, _| Value::unknown(Type::String));
        self.sums.insert(name.trim_end_matches(".yaml"), sum(&resolved));
        self.flags.insert(flag.to_owned(), format!("{}/{name}", self.folders.1).into());
        self.files.insert(name.to_owned(), content);
    }
}

/// The checksum of a text, known once that is.
pub(crate) fn sum(text: &Value) -> Value {
    text.as_str().map_or_else(|| Value::unknown_not_null(Type::String), |t| short_sum(t).into())
}

/// `a=1,b=2`
fn pairs(map: &Value) -> Arg {
    let Some(entries) = map.as_entries() else { return Value::unknown_not_null(Type::String).into() };
    let mut parts = Vec::new();
    for (i, (name, value)) in entries.iter().enumerate() {
        parts.push(format!("{}{name}=", if i == 0 { "" } else { "," }).into());
        parts.push(value.clone().into());
    }
    Arg::Text(parts)
}
