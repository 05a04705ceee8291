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
        let name = known_name(&options.address, options.port);
        let mut known = Self { keys: Vec::new(), revoked: Vec::new(), source: String::new(), pinned: false };
        for (at, file) in options.known_hosts.iter().enumerate() {
            let source = file.display().to_string();
            let text = match fs::read(file) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                // What is there for all users beside it ssh does without, too, where it may not read it.
                Err(e) if at > 0 || e.kind() == ErrorKind::NotFound => String::new(),
                Err(e) => return Err(Diagnostic::error("File of known hosts can't be read", format!("{source}: {e}."))),
            };
            let is_new = known.keys.is_empty() && known.revoked.is_empty();
            known.read(&text, &name);
            // Where one is found, else where one is to be put.
            if known.source.is_empty() || (is_new && !(known.keys.is_empty() && known.revoked.is_empty())) {
                known.source = source;
            }
        }
        Ok(known)
    }

    /// Takes the lines about `name`. Only the question whether a line is about it (plain, in a list, hashed; patterns it does not know) goes to
    /// libssh2, line by line: given the whole file, it refuses all of it for one bad line, and takes keys of another kind for changed ones.
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
    let address = address.to_lowercase();
    if port == 22 { address } else { format!("[{address}]:{port}") }
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
    let list = line.split_whitespace().next().unwrap_or_default();
    let is_hashed = list.starts_with('|');
    if !is_hashed && list.contains(['*', '?', '!']) {
        return is_meant(&list.to_lowercase(), name);
    }
    // Names are the same in capital letters; hashes are made of small ones.
    let line = if is_hashed { line.to_owned() } else { format!("{}{}", list.to_lowercase(), line.strip_prefix(list).unwrap_or_default()) };
    let check = || -> Result<CheckResult, ssh2::Error> {
        let session = Session::new()?;
        let mut one = session.known_hosts()?;
        one.read_str(&line, KnownHostFileKind::OpenSSH)?;
        Ok(one.check(name, b"no key is like this"))
    };
    matches!(check(), Ok(CheckResult::Mismatch | CheckResult::Match))
}

/// Whether a list of patterns means a host: one of it does, and none that begins with "!". Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
fn is_meant(list: &str, name: &str) -> bool {
    let (not, those): (Vec<&str>, Vec<&str>) = list.split(',').partition(|pattern| pattern.starts_with('!'));
    those.iter().any(|pattern| fits(pattern, name)) && !not.iter().any(|pattern| fits(pattern.trim_start_matches('!'), name))
}

/// "*" stands for anything, "?" for one character.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => name.is_empty(),
        Some('*') => name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(rest.as_str(), &name[at..])),
        Some(first) => {
            let mut left = name.chars();
            left.next().is_some_and(|c| first == '?' || c == first) && fits(rest.as_str(), left.as_str())
        }
    }
}

/// As `ssh-keygen -l` prints it.
pub(super) fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
}

#[cfg(test)]
mod tests {
    use karmaform_model::Object;

    use super::*;
    use crate::values::object;

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
    fn keys_for_all_users_are_done_without_where_they_can_not_be_read() {
        let folder = tempfile::tempdir().unwrap();
        // Which root can't read as a file either.
        let (own, unreadable) = (folder.path().join("own"), folder.path().to_path_buf());
        fs::write(&own, format!("h1 {KEY}\n")).unwrap();
        let mut options = Options::new(&object([("address", "h1".into())]), &Object::new()).ok().unwrap();
        options.known_hosts = vec![own, unreadable.clone()];
        assert_eq!(KnownKeys::load(&options).ok().unwrap().keys.len(), 1);
        options.known_hosts = vec![unreadable];
        assert_eq!(KnownKeys::load(&options).err().unwrap().summary, "File of known hosts can't be read");
    }

    #[test]
    fn patterns_and_capital_letters_count_as_they_do_for_ssh() {
        assert_eq!(found(&format!("*.example.org,10.0.0.? {KEY}"), "a.b.example.org"), (1, 0));
        assert_eq!(found(&format!("*.example.org,10.0.0.? {KEY}"), "10.0.0.7"), (1, 0));
        assert_eq!(found(&format!("*.example.org,10.0.0.? {KEY}"), "10.0.0.77"), (0, 0));
        assert_eq!(found(&format!("*.example.org,!b.example.org {KEY}"), "b.example.org"), (0, 0));
        assert_eq!(found(&format!("[*.example.org]:2222 {KEY}"), "[a.example.org]:2222"), (1, 0));
        assert_eq!(found(&format!("@revoked * {KEY}"), "h1"), (0, 1));
        assert_eq!(found(&format!("H1,Other {KEY}"), "h1"), (1, 0));
        assert_eq!((known_name("H1.Example", 22), known_name("H1", 2222)), ("h1.example".to_owned(), "[h1]:2222".to_owned()));
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
