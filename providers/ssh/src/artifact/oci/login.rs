//! The passwords of registries, as `docker login` leaves them in docker's configuration file. Credential helpers, which are programs, are
//! not asked: a run starts no program that the configuration does not name.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::Diagnostic;
use serde_json::Value as Json;

use super::reference::is_docker_hub;

/// What is known of a log-in.
#[derive(PartialEq, Eq)]
pub(super) enum Login {
    /// User and password in base64, as HTTP wants them.
    Known(String),
    /// It is kept in a way that we can't use, which is this.
    Elsewhere(String),
    /// There is none.
    Unknown,
}

/// Where docker keeps its configuration.
pub(in crate::artifact) fn usual_file() -> PathBuf {
    let directory = std::env::var_os("DOCKER_CONFIG").filter(|d| !d.is_empty()).map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".docker"));
    directory.or_else(home).unwrap_or_default().join("config.json")
}

/// The log-in for a registry.
pub(super) fn look_up(file: &Path, registry: &str) -> Result<Login, Diagnostic> {
    let broken = |why: String| {
        Diagnostic::error(
            "Docker's configuration can't be read",
            format!("{}, which holds the log-ins of registries: {why}.", file.display()),
        )
    };
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Login::Unknown),
        Err(e) => return Err(broken(e.to_string())),
    };
    // not what the library says, which may quote a password
    let json: Json = serde_json::from_slice(&bytes).map_err(|e| broken(format!("line {} is no JSON", e.line())))?;
    let named = |list: &str| json.get(list)?.as_object()?.iter().find(|(key, _)| is_same(key, registry)).map(|(_, value)| value);
    let filled = |value: Option<&Json>| value.and_then(Json::as_str).filter(|s| !s.is_empty()).map(str::to_owned);
    let login = named("auths");
    let part = |name: &str| filled(login.and_then(|l| l.get(name)));
    if part("identitytoken").is_some() {
        return Ok(Login::Elsewhere("as an identity token".to_owned()));
    }
    if let Some(auth) = part("auth") {
        let text = STANDARD.decode(auth.trim()).ok().filter(|t| t.contains(&b':'));
        let text = text.ok_or_else(|| broken(format!("\"auth\" of {registry} is no base64 of a user, a colon and a password")))?;
        return Ok(Login::Known(STANDARD.encode(text)));
    }
    let helper = filled(named("credHelpers")).or_else(|| filled(json.get("credsStore")));
    Ok(helper.map_or(Login::Unknown, |h| Login::Elsewhere(format!("by the credential helper \"{h}\""))))
}

/// Whether a key of the file means this registry. Docker Hub is there by its oldest address.
fn is_same(key: &str, registry: &str) -> bool {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let host = bare.split('/').next().unwrap_or_default();
    host == registry || (is_docker_hub(host) && is_docker_hub(registry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_ins_are_found_by_their_registry() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let check = |text: &str, registry: &str, expected: Result<Login, &str>| {
            fs::write(&file, text).unwrap();
            match (look_up(&file, registry), expected) {
                (Ok(found), Ok(login)) => assert!(found == login, "{text}"),
                (Err(e), Err(word)) => assert!(e.detail.contains(word) && !e.detail.contains("hunter2"), "{}", e.detail),
                _ => panic!("{text}"),
            }
        };
        let auth = STANDARD.encode("u:hunter2");
        let auths = |key: &str| format!(r#"{{"auths": {{"{key}": {{"auth": "{auth}"}}}}, "credsStore": "desktop"}}"#);
        let known = || Ok(Login::Known(auth.clone()));
        check(&auths("r.io"), "r.io", known());
        check(&auths("https://r.io/v2/"), "r.io", known());
        check(&auths("https://index.docker.io/v1/"), "docker.io", known());
        check(&auths("r.io"), "r.io:5000", Ok(Login::Elsewhere("by the credential helper \"desktop\"".to_owned())));
        check(
            r#"{"auths": {"r.io": {}}, "credHelpers": {"r.io": "pass"}}"#,
            "r.io",
            Ok(Login::Elsewhere("by the credential helper \"pass\"".to_owned())),
        );
        check(
            r#"{"auths": {"r.io": {"auth": "AAAA", "identitytoken": "hunter2"}}}"#,
            "r.io",
            Ok(Login::Elsewhere("as an identity token".to_owned())),
        );
        check("{}", "r.io", Ok(Login::Unknown));
        check(r#"{"auths": {"r.io": {"auth": "hunter2"}}}"#, "r.io", Err("\"auth\" of r.io"));
        check("{\n\"hunter2", "r.io", Err("line 2"));
        assert!(look_up(&folder.path().join("none"), "r.io").is_ok_and(|l| l == Login::Unknown));
    }
}
