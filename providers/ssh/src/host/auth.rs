//! Logging in: private keys from text or file, the agent, a password; and saying exactly why it did not work.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::Diagnostic;
use ssh2::{ErrorCode, Session};

use super::connect::{Deadline, is_timeout};
use crate::connection::Options;
use crate::failure;

/// libssh2: the key could not be used at all (as opposed to: the server did not want it).
const KEY_UNUSABLE: ErrorCode = ErrorCode::Session(-16);

/// libssh2: the passphrase is wrong. Only said of the older formats; a wrong one for a newer key makes that "unusable".
const PASSPHRASE_WRONG: ErrorCode = ErrorCode::Session(-48);

/// So many keys of an agent no server minds.
const FEW: usize = 2;

/// A private key that was read.
struct PrivateKey {
    /// Where it came from, for messages.
    source: String,
    text: String,
    encrypted: bool,
}

/// What to log in with, in the order in which it is tried.
pub(super) struct Credentials {
    keys: Vec<PrivateKey>,
    agent: bool,
}

/// Reads the keys. Without any configured way in, the usual key files and a running agent are taken.
pub(super) fn prepare(options: &Options) -> Result<Credentials, Diagnostic> {
    let given = &options.credentials;
    let mut keys = Vec::new();
    if let Some(text) = &given.private_key {
        keys.push(key("the argument \"private_key\"", text.clone(), given.passphrase.is_some())?);
    }
    if let Some(path) = &given.private_key_file {
        keys.push(key_file(path, given.passphrase.is_some())?);
    }
    let mut agent = given.agent.unwrap_or(false);
    if keys.is_empty() && given.password.is_none() && given.agent.is_none() {
        agent = std::env::var_os("SSH_AUTH_SOCK").is_some();
        for name in ["id_ed25519", "id_ecdsa", "id_rsa"] {
            if let Some(path) = options.home.as_ref().map(|h| h.join(".ssh").join(name)).filter(|p| p.is_file())
                // one that needs a passphrase is the agent's business
                && let Ok(key) = key_file(&path, given.passphrase.is_some())
            {
                keys.push(key);
            }
        }
    }
    Ok(Credentials { keys, agent })
}

fn key_file(path: &Path, has_passphrase: bool) -> Result<PrivateKey, Diagnostic> {
    let source = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|e| {
        let why = match e.kind() {
            ErrorKind::NotFound => "it does not exist".to_owned(),
            ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
            ErrorKind::InvalidData => "it is no text".to_owned(),
            _ => e.to_string(),
        };
        failure::key_unreadable(&source, &why)
    })?;
    key(&source, text, has_passphrase)
}

fn key(source: &str, text: String, has_passphrase: bool) -> Result<PrivateKey, Diagnostic> {
    match encryption(&text) {
        None => Err(failure::key_unreadable(source, "it holds no private key in a PEM or OpenSSH format")),
        Some(true) if !has_passphrase => Err(failure::passphrase_missing(source)),
        Some(encrypted) => Ok(PrivateKey { source: source.to_owned(), text: with_last_newline(text), encrypted }),
    }
}

/// A heredoc or `trimspace` easily loses the last newline, and libssh2 then finds no key.
fn with_last_newline(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Whether the key is encrypted; `None` if it is no private key.
fn encryption(text: &str) -> Option<bool> {
    let begin = text.lines().find(|l| l.trim_start().starts_with("-----BEGIN ") && l.contains("PRIVATE KEY"))?;
    if begin.contains("ENCRYPTED") || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Some(true);
    }
    if !begin.contains("OPENSSH") {
        return Some(false);
    }
    let body: String =
        text.lines().skip_while(|l| !l.contains("-----BEGIN ")).skip(1).take_while(|l| !l.contains("-----END ")).map(str::trim).collect();
    let bytes = STANDARD.decode(body).ok()?;
    // "openssh-key-v1\0", then the cipher's name with its length before it
    let rest = bytes.strip_prefix(b"openssh-key-v1\0")?;
    let length = usize::try_from(u32::from_be_bytes(rest.get(..4)?.try_into().ok()?)).ok()?;
    Some(rest.get(4..4 + length)? != b"none")
}

/// Logs in, or says all that was tried.
pub(super) fn log_in(session: &Session, options: &Options, credentials: &Credentials, deadline: Deadline) -> Result<(), Diagnostic> {
    let (user, given) = (options.user.as_str(), &options.credentials);
    let mut tried = Vec::new();
    let lost = |session: &Session| -> Option<Diagnostic> {
        let last = ssh2::Error::last_session_error(session);
        if deadline.is_over() || last.as_ref().is_some_and(is_timeout) {
            return Some(failure::unreachable(&options.place(), deadline.seconds()));
        }
        let last = last?;
        matches!(last.code(), ErrorCode::Session(-7 | -13 | -43)).then(|| failure::lost(&options.place(), last.message()))
    };
    let accepted = match session.auth_methods(user) {
        Ok(methods) => methods.to_owned(),
        Err(_) if session.authenticated() => return Ok(()),
        Err(_) => match lost(session) {
            Some(error) => return Err(error),
            None => String::new(),
        },
    };
    for key in &credentials.keys {
        match session.userauth_pubkey_memory(user, None, &key.text, given.passphrase.as_deref().filter(|_| key.encrypted)) {
            Ok(()) => return Ok(()),
            Err(e) if key.encrypted && [KEY_UNUSABLE, PASSPHRASE_WRONG].contains(&e.code()) => {
                return Err(failure::passphrase_wrong(&key.source));
            }
            Err(e) if e.code() == KEY_UNUSABLE => return Err(failure::key_unreadable(&key.source, e.message())),
            Err(_) => tried.push(format!("the key from {}", key.source)),
        }
        if let Some(error) = lost(session) {
            return Err(error);
        }
    }
    if credentials.agent {
        let mut offered = 0;
        match with_agent(session, user, &mut offered) {
            Ok(true) => return Ok(()),
            Ok(false) => tried.push("every key of the agent".to_owned()),
            Err(why) => tried.push(format!("the agent (which failed: {why})")),
        }
        if let Some(error) = lost(session) {
            return Err(if offered > FEW { failure::too_many_keys(error, offered) } else { error });
        }
    }
    if let Some(password) = &given.password {
        if with_password(session, user, password) {
            return Ok(());
        }
        if let Some(error) = lost(session) {
            return Err(error);
        }
        tried.push("the password".to_owned());
    }
    Err(failure::log_in_refused(&options.place(), user, &tried, &accepted))
}

/// Offers one key after the other, and counts them.
fn with_agent(session: &Session, user: &str, offered: &mut usize) -> Result<bool, String> {
    let mut agent = session.agent().map_err(|e| e.message().to_owned())?;
    agent.connect().map_err(|e| e.message().to_owned())?;
    agent.list_identities().map_err(|e| e.message().to_owned())?;
    let identities = agent.identities().map_err(|e| e.message().to_owned())?;
    Ok(identities.iter().any(|identity| {
        *offered += 1;
        agent.userauth(user, identity).is_ok()
    }))
}

/// The password, asked for in either way that servers have.
fn with_password(session: &Session, user: &str, password: &str) -> bool {
    struct Answer<'a>(&'a str);
    impl ssh2::KeyboardInteractivePrompt for Answer<'_> {
        fn prompt(&mut self, _: &str, _: &str, prompts: &[ssh2::Prompt<'_>]) -> Vec<String> {
            prompts.iter().map(|_| self.0.to_owned()).collect()
        }
    }
    session.userauth_password(user, password).is_ok() || session.userauth_keyboard_interactive(user, &mut Answer(password)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_keys_are_told_from_open_ones() {
        let openssh = |cipher: &str| {
            let mut bytes = b"openssh-key-v1\0".to_vec();
            bytes.extend(u32::try_from(cipher.len()).unwrap().to_be_bytes());
            bytes.extend(cipher.as_bytes());
            bytes.extend([0; 40]);
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----", STANDARD.encode(bytes))
        };
        let check = |text: &str, expected: Option<bool>| assert_eq!(encryption(text), expected, "{text}");
        check(&openssh("none"), Some(false));
        check(&openssh("aes256-ctr"), Some(true));
        check("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nx\n-----END RSA PRIVATE KEY-----", Some(true));
        check("-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n-----END ENCRYPTED PRIVATE KEY-----", Some(true));
        check("-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----", Some(false));
        check("ssh-ed25519 AAAA", None);
    }
}
