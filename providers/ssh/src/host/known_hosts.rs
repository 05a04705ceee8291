//! Is it the host we mean? Its key must be the pinned one, or stand in a known_hosts file.

use std::fs;
use std::io::ErrorKind;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use karmaform_model::Diagnostic;
use sha2::{Digest, Sha256};
use ssh2::{CheckResult, KnownHostFileKind, Session};

use crate::connection::Options;
use crate::failure;

/// What is known about one host's keys.
pub(super) struct KnownKeys {
    /// (kind, key), as on a line of a known_hosts file.
    keys: Vec<(String, Vec<u8>)>,
    revoked: Vec<Vec<u8>>,
    source: String,
    pinned: bool,
}

impl KnownKeys {
    /// From the pinned key, else from the known_hosts file.
    pub(super) fn load(options: &Options) -> Result<Self, Diagnostic> {
        if let Some(pinned) = &options.host_key {
            let key = parse_key(pinned).ok_or_else(|| {
                Diagnostic::error(
                    "Host key can't be read",
                    "The argument \"host_key\" must be a public key as ssh-keyscan prints it: \"ssh-ed25519 AAAA...\".",
                )
            })?;
            return Ok(Self { keys: vec![key], revoked: Vec::new(), source: "the argument \"host_key\"".to_owned(), pinned: true });
        }
        let source = options.known_hosts_file.display().to_string();
        let text = match fs::read(&options.known_hosts_file) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == ErrorKind::NotFound => String::new(),
            Err(e) => return Err(Diagnostic::error("File of known hosts can't be read", format!("{source}: {e}."))),
        };
        let mut known = Self { keys: Vec::new(), revoked: Vec::new(), source, pinned: false };
        known.read(&text, &known_name(&options.address, options.port));
        Ok(known)
    }

    /// Takes the lines about `name`. Only the question whether a line is about it (plain, in a list, hashed) goes to libssh2, line by
    /// line: given the whole file, it refuses all of it for one bad line, and takes keys of another kind for changed ones.
    fn read(&mut self, text: &str, name: &str) {
        for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (marker, line) = match line.strip_prefix('@') {
                Some(rest) => rest.split_once(char::is_whitespace).map_or(("", ""), |(m, l)| (m, l.trim_start())),
                None => ("", line),
            };
            let Some(key) = line.split_once(char::is_whitespace).and_then(|(_, key)| parse_key(key)) else { continue };
            if !is_about(line, name) {
                continue;
            }
            match marker {
                "" => self.keys.push(key),
                "revoked" => self.revoked.push(key.1),
                // certificate authorities sign host keys; libssh2 knows no certificates
                _ => {}
            }
        }
    }

    /// The algorithms that go with the known keys, best first; `None` if no key is known.
    pub(super) fn algorithms(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for (kind, _) in &self.keys {
            let algorithms: &[&str] = if kind == "ssh-rsa" { &["rsa-sha2-512", "rsa-sha2-256"] } else { &[kind.as_str()] };
            for name in algorithms {
                if !names.contains(name) {
                    names.push(name);
                }
            }
        }
        (!names.is_empty()).then(|| names.join(","))
    }

    /// Compares with what the server showed.
    pub(super) fn verify(&self, session: &Session, options: &Options) -> Result<(), Diagnostic> {
        let Some((key, _)) = session.host_key() else {
            return Err(failure::handshake(&options.place(), "the server showed no key"));
        };
        let fingerprint = fingerprint(key);
        if self.revoked.iter().any(|k| k == key) {
            return Err(failure::host_key_revoked(&options.place(), &fingerprint, &self.source));
        }
        if self.keys.iter().any(|(_, k)| k == key) {
            return Ok(());
        }
        if self.keys.is_empty() {
            return Err(failure::host_key_unknown(&options.place(), &options.address, options.port, &fingerprint, &self.source));
        }
        let expected: Vec<_> = self.keys.iter().map(|(_, k)| self::fingerprint(k)).collect();
        Err(failure::host_key_changed(
            &options.place(),
            &known_name(&options.address, options.port),
            &fingerprint,
            &expected,
            &self.source,
            self.pinned,
        ))
    }
}

/// How a known_hosts file names a host.
fn known_name(address: &str, port: u16) -> String {
    if port == 22 { address.to_owned() } else { format!("[{address}]:{port}") }
}

/// `kind base64 [comment]`
fn parse_key(text: &str) -> Option<(String, Vec<u8>)> {
    let mut words = text.split_whitespace();
    let kind = words.next()?;
    let key = STANDARD.decode(words.next()?).ok()?;
    // the key says its own kind; a line that claims another is damaged
    let length = usize::try_from(u32::from_be_bytes(key.get(..4)?.try_into().ok()?)).ok()?;
    (key.get(4..4 + length)? == kind.as_bytes()).then(|| (kind.to_owned(), key))
}

fn is_about(line: &str, name: &str) -> bool {
    let check = || -> Result<CheckResult, ssh2::Error> {
        let session = Session::new()?;
        let mut one = session.known_hosts()?;
        one.read_str(line, KnownHostFileKind::OpenSSH)?;
        Ok(one.check(name, b"no key is like this"))
    };
    matches!(check(), Ok(CheckResult::Mismatch | CheckResult::Match))
}

/// As `ssh-keygen -l` prints it.
pub(super) fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHa3NJSMTzlTKwZEEKf2fwHWemjF5+RNzAvdmunK6ETz";

    fn found(text: &str, name: &str) -> (usize, usize) {
        let mut known = KnownKeys { keys: Vec::new(), revoked: Vec::new(), source: String::new(), pinned: false };
        known.read(text, name);
        (known.keys.len(), known.revoked.len())
    }

    #[test]
    fn lines_about_a_host_are_found() {
        assert_eq!(found(&format!("h1 {KEY}\n"), "h1"), (1, 0));
        assert_eq!(found(&format!("h2,h1,10.0.0.1 {KEY} comment"), "h1"), (1, 0));
        assert_eq!(found(&format!("h2 {KEY}"), "h1"), (0, 0));
        assert_eq!(found(&format!("[h1]:2222 {KEY}"), "[h1]:2222"), (1, 0));
        assert_eq!(found(&format!("[h1]:2222 {KEY}"), "h1"), (0, 0));
        assert_eq!(found(&format!("h1 {KEY}"), "[h1]:2222"), (0, 0));
        assert_eq!(found(&format!("# h1\nh1 rubbish\n@revoked h1 {KEY}\n@cert-authority h1 {KEY}\n"), "h1"), (0, 1));
    }

    #[test]
    fn hashed_lines_are_found() {
        // made with `ssh-keygen -H` for the name h1
        let line = format!("{HASHED_H1} {KEY}");
        assert_eq!(found(&line, "h1"), (1, 0));
        assert_eq!(found(&line, "h2"), (0, 0));
    }

    const HASHED_H1: &str = "|1|vy4gRTU/KpzpGy8Ht6/VwLRX+uQ=|ednlBZxgqsAfC8go+wVpN/a0oI4=";

    #[test]
    fn keys_and_algorithms() {
        assert!(parse_key(KEY).is_some());
        assert!(parse_key(&KEY.replace("ssh-ed25519", "ssh-rsa")).is_none());
        assert!(parse_key("ssh-ed25519").is_none());
        let known = KnownKeys {
            keys: vec![("ssh-rsa".into(), vec![]), ("ssh-ed25519".into(), vec![])],
            revoked: Vec::new(),
            source: String::new(),
            pinned: false,
        };
        assert_eq!(known.algorithms().unwrap(), "rsa-sha2-512,rsa-sha2-256,ssh-ed25519");
        assert!(fingerprint(b"x").starts_with("SHA256:"));
    }

    #[test]
    fn keys_that_can_not_be_read_are_no_keys() {
        let load = |name: &str, value: &str| {
            let arguments = [("address", "h"), (name, value)].map(|(n, v)| (n.to_owned(), karmaform_model::Value::from(v)));
            let options = Options::new(&arguments.into_iter().collect(), &karmaform_model::Object::new()).ok().unwrap();
            KnownKeys::load(&options).err().map(|why| why.summary)
        };
        assert_eq!(load("host_key", "ssh-ed25519 rubbish").as_deref(), Some("Host key can't be read"));
        assert_eq!(load("host_key", KEY), None);
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(load("known_hosts_file", &path(".")).as_deref(), Some("File of known hosts can't be read"), "a folder is no file");
        assert_eq!(load("known_hosts_file", &path("none")), None);
    }
}
