//! What stands in `backend "etcd" { ... }`. Terraform had a backend "etcdv3" until 1.3; where it had a word for something, it is that one.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use karmaform_model::{Attribute, Diagnostic, Object, Schema, Type, Value, written_path};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The longest wait for a connection.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// The longest wait for one answer. A server gives up after 7 s and then says why; a shorter limit would never see the reason.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(8);

/// Which arguments there are.
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(build);
    &SCHEMA
}

fn build() -> Schema {
    let text = |name, doc| Attribute::optional(name, Type::String, doc);
    Schema::new(
        "Keeps the state in etcd, version 3.4 or newer. What is larger than a request may be is kept in chunks.",
        vec![
            Attribute::required("endpoints", Type::list(Type::String), "Client URLs of the members: `[\"https://10.0.0.11:2379\"]`."),
            Attribute::required(
                "prefix",
                Type::String,
                "Key of the state. Its lock, its history and its chunks have keys that begin with it and a slash.",
            ),
            text("username", "User, where etcd asks for one."),
            text("password", "Password of the user.").secret(),
            text("cacert_path", "File with the certificates of the authorities that the members' certificates are from."),
            text("cert_path", "File with the client's certificate."),
            text("key_path", "File with the client's private key."),
        ],
    )
}

/// Everything that a connection needs.
pub(crate) struct Settings {
    pub(crate) endpoints: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) options: ConnectOptions,
}

impl Settings {
    /// Reads arguments that fit the schema, and the files they name, relative to `directory`.
    pub(crate) fn read(arguments: &Object, directory: &Path, home: Option<&Path>) -> Result<Self, Diagnostic> {
        let endpoints: Vec<_> =
            arguments.get("endpoints").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).collect();
        let is_url = |e: &&str| e.strip_prefix("https://").or(e.strip_prefix("http://")).is_some_and(|rest| !rest.is_empty());
        if endpoints.is_empty() || !endpoints.iter().all(is_url) {
            return Err(wrong("\"endpoints\" must be a list of URLs.").with_hint("Write it like [\"https://10.0.0.11:2379\"]."));
        }
        let is_tls = endpoints.iter().filter(|e| e.starts_with("https://")).count();
        if is_tls != 0 && is_tls != endpoints.len() {
            return Err(wrong("\"endpoints\" must be all https:// or all http://."));
        }
        let prefix = text(arguments, "prefix").unwrap_or_default().trim_end_matches('/').to_owned();
        if prefix.is_empty() {
            return Err(wrong("\"prefix\" must not be empty.").with_hint("Write it like \"karmaform/prod\"."));
        }
        let mut options = ConnectOptions::new().with_connect_timeout(CONNECT_LIMIT).with_timeout(CALL_LIMIT);
        match (text(arguments, "username"), text(arguments, "password")) {
            (Some(user), Some(password)) => options = options.with_user(user, password),
            (None, None) => {}
            _ => return Err(wrong("\"username\" and \"password\" go together.")),
        }
        let file = |name: &str| text(arguments, name).map(|path| read(name, &written_path(directory, home, path))).transpose();
        let (authorities, certificate, key) = (file("cacert_path")?, file("cert_path")?, file("key_path")?);
        if is_tls > 0 {
            let mut tls = TlsOptions::new();
            if let Some(pem) = authorities {
                tls = tls.ca_certificate(Certificate::from_pem(certificates("cacert_path", pem)?));
            }
            match (certificate, key) {
                (Some(certificate), Some(key)) => {
                    tls = tls.identity(Identity::from_pem(certificates("cert_path", certificate)?, private_key("key_path", key)?));
                }
                (None, None) => {}
                _ => return Err(wrong("\"cert_path\" and \"key_path\" go together.")),
            }
            options = options.with_tls(tls);
        }
        Ok(Self { endpoints: endpoints.into_iter().map(str::to_owned).collect(), prefix, options })
    }
}

fn read(name: &str, path: &Path) -> Result<Vec<u8>, Diagnostic> {
    std::fs::read(path).map_err(|e| wrong(&format!("The file that \"{name}\" names can't be read: {}.", e.kind())))
}

/// A file's certificates. Where there is none, or one that is cut, the library would say no more than that its transport failed.
fn certificates(name: &str, pem: Vec<u8>) -> Result<Vec<u8>, Diagnostic> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let holds = match found {
        Ok(found) if !found.is_empty() => return Ok(pem),
        Ok(_) => "no certificate in PEM form (\"-----BEGIN CERTIFICATE-----\")",
        Err(_) => "a part in PEM form that can't be read: it is cut, or damaged",
    };
    Err(wrong(&format!("The file that \"{name}\" names holds {holds}.")))
}

/// A file's private key, in one of the forms that the library reads.
fn private_key(name: &str, pem: Vec<u8>) -> Result<Vec<u8>, Diagnostic> {
    if PrivateKeyDer::from_pem_slice(&pem).is_ok() {
        return Ok(pem);
    }
    let refused = wrong(&format!("The file that \"{name}\" names holds no private key in PEM form."));
    let is_encrypted = String::from_utf8_lossy(&pem).contains("ENCRYPTED");
    Err(if is_encrypted { refused.with_hint("Decrypt it with \"openssl pkey\": there is no way to give its passphrase.") } else { refused })
}

fn text<'a>(arguments: &'a Object, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn wrong(detail: &str) -> Diagnostic {
    Diagnostic::error("Invalid backend configuration", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_said() {
        let given = |pairs: &[(&str, Value)]| -> Object { pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect() };
        let urls = |all: &[&str]| Value::list(Type::String, all.iter().map(|u| Value::from(*u)).collect());
        let good = ("endpoints", urls(&["https://a:1"]));
        let prefix = ("prefix", Value::from("p"));
        for (arguments, words) in [
            (given(&[("endpoints", urls(&[])), prefix.clone()]), "must be a list of URLs"),
            (given(&[("endpoints", urls(&["a:2379"])), prefix.clone()]), "must be a list of URLs"),
            (given(&[("endpoints", urls(&["https://a:1", "http://b:1"])), prefix.clone()]), "all https:// or all http://"),
            (given(&[good.clone(), ("prefix", Value::from("/"))]), "must not be empty"),
            (given(&[good.clone(), prefix.clone(), ("username", Value::from("u"))]), "go together"),
            (
                given(&[good.clone(), prefix.clone(), ("cacert_path", Value::from("/nowhere"))]),
                "The file that \"cacert_path\" names can't be read",
            ),
            (
                given(&[good.clone(), prefix.clone(), ("cacert_path", Value::from("Cargo.toml"))]),
                "The file that \"cacert_path\" names holds no certificate in PEM form",
            ),
            (
                given(&[good, prefix, ("cert_path", Value::from("Cargo.toml")), ("key_path", Value::from("Cargo.toml"))]),
                "The file that \"cert_path\" names holds no certificate in PEM form",
            ),
        ] {
            let wrong = Settings::read(&arguments, Path::new(env!("CARGO_MANIFEST_DIR")), None).err().expect(words);
            assert!(wrong.detail.contains(words), "{}", wrong.detail);
        }
    }

    #[test]
    fn what_is_not_in_pem_form_is_said() {
        let pem = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n").into_bytes();
        let cut = b"-----BEGIN CERTIFICATE-----\nAAAA\n".to_vec();
        for (given, expected) in [
            (pem("CERTIFICATE"), true),
            ([pem("CERTIFICATE"), pem("CERTIFICATE")].concat(), true),
            (pem("PRIVATE KEY"), false),
            ([pem("CERTIFICATE"), cut.clone()].concat(), false),
            (cut, false),
            (Vec::new(), false),
            (vec![0x30, 0x82, 0xff], false),
        ] {
            assert_eq!(certificates("cacert_path", given.clone()).is_ok(), expected, "{}", String::from_utf8_lossy(&given));
        }
        let told = |given: Vec<u8>| certificates("cacert_path", given).expect_err("none that is whole").detail;
        assert!(told(pem("PRIVATE KEY")).contains("holds no certificate in PEM form"));
        let one_is_cut = told([pem("CERTIFICATE"), b"-----BEGIN CERTIFICATE-----\nAAAA\n".to_vec()].concat());
        assert_eq!(one_is_cut, "The file that \"cacert_path\" names holds a part in PEM form that can't be read: it is cut, or damaged.");
        for (given, expected) in [
            (pem("PRIVATE KEY"), true),
            ([pem("CERTIFICATE"), pem("EC PRIVATE KEY")].concat(), true),
            (pem("RSA PRIVATE KEY"), true),
            (pem("PUBLIC KEY"), false),
            (pem("ENCRYPTED PRIVATE KEY"), false),
            (Vec::new(), false),
        ] {
            assert_eq!(private_key("key_path", given.clone()).is_ok(), expected, "{}", String::from_utf8_lossy(&given));
        }
        let refused = private_key("key_path", pem("ENCRYPTED PRIVATE KEY")).expect_err("an encrypted key");
        assert!(refused.detail.contains("\"key_path\" names holds no private key in PEM form"), "{}", refused.detail);
        assert!(refused.hints[0].contains("openssl pkey"), "{:?}", refused.hints);
    }
}
