//! Talks to a registry: the second version of docker's protocol, which OCI took over. Only reads.
//!
//! A request is tried as it is; where the registry wants a log-in it says which, and the request is tried once more with it.

use std::path::PathBuf;
use std::time::Duration;

use karmaform_model::{Diagnostic, without_credentials};
use ureq::config::RedirectAuthHeaders;
use ureq::http::{Method, Response, StatusCode, header};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body, BodyReader};

use super::challenge::Challenge;
use super::login::{Login, look_up};
use super::manifest::ACCEPTED;
use super::reference::Reference;
use crate::artifact::{Access, fetch, trust};

/// The largest answer that is not a layer; registries take no larger manifests.
pub(super) const LARGEST: u64 = 4 << 20;

const UNFETCHED: &str = "Image can't be fetched";

/// How long it may take until an image is known to be there or not, by request; where there is no way out, all of it is waited for.
const HURRY: Duration = Duration::from_secs(3);
/// How registries say that there is no such image (OCI Distribution Specification 1.1, "Error Codes").
const UNKNOWN: [&str; 2] = ["MANIFEST_UNKNOWN", "NAME_UNKNOWN"];

/// What a registry sends.
pub(super) struct Answer {
    /// The sum that it says this has.
    pub(super) digest: Option<String>,
    /// To be read once.
    pub(super) reader: BodyReader<'static>,
}

/// A registry, and one repository of it.
pub(super) struct Registry {
    reference: Reference,
    /// The image, for messages.
    name: String,
    /// Docker's configuration file.
    docker: PathBuf,
    /// How it shows who it is.
    tls: TlsConfig,
    agent: Agent,
    scheme: &'static str,
    /// It may turn out that it speaks no TLS.
    may_be_plain: bool,
    authorization: Option<String>,
    /// What is known of the log-in that was tried.
    login: Option<Login>,
    /// How long a request may take.
    longest: Duration,
}

impl Registry {
    /// Of this image.
    pub(super) fn new(reference: Reference, name: String, access: &Access) -> Result<Self, Diagnostic> {
        let scheme = if reference.plain { "http" } else { "https" };
        let may_be_plain = !reference.plain && reference.is_loopback();
        let (docker, longest) = (access.docker.clone(), fetch::LONGEST);
        let tls = trust::tls(&access.trusted, trust::of_registry(&reference.registry, &docker)?)?;
        let agent = agent(&reference, scheme, &tls, longest);
        Ok(Self { reference, name, docker, tls, agent, scheme, may_be_plain, authorization: None, login: None, longest })
    }

    /// For who would rather not know than wait.
    pub(super) fn in_a_hurry(mut self) -> Self {
        self.longest = HURRY;
        self.agent = agent(&self.reference, self.scheme, &self.tls, HURRY);
        self
    }

    /// True if the registry says that nothing is at a path of the repository; false also if it does not say.
    pub(super) fn lacks(&mut self, path: &str) -> bool {
        // Whoever gets a manifest has pulled an image, where pulls are counted; whoever asks for its head has not.
        let is_found = |registry: &mut Self, method| registry.request(method, path).map(|r| (r.status() != StatusCode::NOT_FOUND, r));
        let Ok((false, _)) = is_found(self, Method::HEAD) else { return false };
        let Ok((false, response)) = is_found(self, Method::GET) else { return false };
        // Something else on the way may know of no such page; registries say it in their own words.
        let text = response.into_body().into_with_config().limit(LARGEST).read_to_vec().unwrap_or_default();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        json["errors"].as_array().is_some_and(|errors| errors.iter().any(|e| UNKNOWN.iter().any(|code| e["code"] == *code)))
    }

    /// What is at a path of the repository.
    pub(super) fn open(&mut self, path: &str) -> Result<Answer, Diagnostic> {
        let response = self.get(path)?;
        let digest = response.headers().get("docker-content-digest").and_then(|d| d.to_str().ok()?.strip_prefix("sha256:"));
        Ok(Answer { digest: digest.map(str::to_owned), reader: response.into_body().into_reader() })
    }

    /// Something went wrong on the way.
    pub(super) fn failed(&self, why: &str) -> Diagnostic {
        Diagnostic::error(UNFETCHED, format!("{}: {why}.", self.name))
            .with_hint("Check the name of the image, and the network; a mirror can be given instead.")
    }

    /// Where an authority can be put down for this registry alone.
    fn folder(&self) -> String {
        let beside = self.docker.with_file_name("certs.d").join(&self.reference.registry).join("ca.crt");
        format!("For this registry alone it can be in {}, or where docker has it.", beside.display())
    }

    fn request(&mut self, method: Method, path: &str) -> Result<Response<Body>, Diagnostic> {
        let response = self.send(&method, path)?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        self.log_in(&response)?;
        self.send(&method, path)
    }

    fn get(&mut self, path: &str) -> Result<Response<Body>, Diagnostic> {
        let response = self.request(Method::GET, path)?;
        match response.status() {
            status if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.refused(response.status())),
            StatusCode::NOT_FOUND => Err(self.failed(&format!("the registry does not have it (status 404 of {path})"))),
            _ => Err(self.answered("the registry", &response)),
        }
    }

    fn send(&mut self, method: &Method, path: &str) -> Result<Response<Body>, Diagnostic> {
        loop {
            let url = format!("{}://{}/v2/{}/{path}", self.scheme, self.reference.host(), self.reference.repository);
            let request = if *method == Method::HEAD { self.agent.head(url) } else { self.agent.get(url) };
            let mut request = request.header(header::ACCEPT, ACCEPTED);
            if let Some(authorization) = &self.authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            match request.call() {
                Ok(response) => {
                    self.may_be_plain = false;
                    return Ok(response);
                }
                // as docker does it: a registry on this machine need not have a certificate
                Err(e) if self.may_be_plain && speaks_no_tls(&e) => {
                    self.may_be_plain = false;
                    self.scheme = "http";
                    self.agent = agent(&self.reference, self.scheme, &self.tls, self.longest);
                }
                Err(e) => {
                    let problem = trust::problem(&e, UNFETCHED, &self.name).map(|p| p.with_hint(self.folder()));
                    return Err(problem.unwrap_or_else(|| self.failed(&without_secrets(&e.to_string())).retryable()));
                }
            }
        }
    }

    /// Answers what the registry asks for: a password, or a token that somebody else gives for one, or for nothing.
    fn log_in(&mut self, response: &Response<Body>) -> Result<(), Diagnostic> {
        let challenges = response.headers().get_all(header::WWW_AUTHENTICATE).iter().filter_map(|v| Challenge::parse(v.to_str().ok()?));
        let mut challenges: Vec<_> = challenges.collect();
        challenges.sort_by_key(|c| !c.is("bearer"));
        let login = look_up(&self.docker, &self.reference.registry)?;
        let basic = if let Login::Known(known) = &login { Some(format!("Basic {known}")) } else { None };
        self.login = Some(login);
        self.authorization = match challenges.first() {
            Some(challenge) if challenge.is("bearer") => Some(format!("Bearer {}", self.token(challenge, basic)?)),
            Some(challenge) if challenge.is("basic") && basic.is_some() => basic,
            _ => return Err(self.refused(response.status())),
        };
        Ok(())
    }

    /// A token, from where the registry says.
    fn token(&self, challenge: &Challenge, basic: Option<String>) -> Result<String, Diagnostic> {
        let realm = challenge.get("realm").ok_or_else(|| self.failed("the registry wants a token, but does not say from where"))?;
        let scope = format!("repository:{}:pull", self.reference.repository);
        let mut request = self.agent.get(realm).query("scope", challenge.get("scope").unwrap_or(&scope));
        if let Some(service) = challenge.get("service") {
            request = request.query("service", service);
        }
        if let Some(basic) = basic {
            request = request.header(header::AUTHORIZATION, basic);
        }
        let response = request.call().map_err(|e| {
            let problem = trust::problem(&e, UNFETCHED, &format!("{}, a token from {}", self.name, without_credentials(realm)));
            problem.unwrap_or_else(|| self.failed(&format!("no token from {realm}: {}", without_secrets(&e.to_string()))).retryable())
        })?;
        match response.status() {
            status if status.is_success() => {}
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => return Err(self.refused(status)),
            _ => return Err(self.answered(&format!("{}, which gives tokens,", without_credentials(realm)), &response)),
        }
        let text = response.into_body().into_with_config().limit(LARGEST).read_to_vec().unwrap_or_default();
        let json: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        let token = ["token", "access_token"].iter().find_map(|name| json.get(name)?.as_str()).filter(|t| !t.is_empty());
        token.map(str::to_owned).ok_or_else(|| self.failed(&format!("{} answered without a token", without_credentials(realm))))
    }

    fn answered(&self, who: &str, response: &Response<Body>) -> Diagnostic {
        let status = response.status();
        let failed = self.failed(&format!("{who} answered with status {}", status.as_u16()));
        let failed = match status {
            // Registries count pulls by who is logged in, and those of everybody else by where they come from.
            StatusCode::TOO_MANY_REQUESTS => {
                let registry = &self.reference.registry;
                failed.with_hint(format!(
                    "It gives no more for now: log in (\"docker login {registry}\"), take a mirror, or run again later."
                ))
            }
            _ => failed,
        };
        fetch::answered(failed, status, response.headers())
    }

    fn refused(&self, status: StatusCode) -> Diagnostic {
        let (registry, file) = (&self.reference.registry, self.docker.display());
        let (what, hint) = match &self.login {
            Some(Login::Known(_)) => (
                format!("The log-in for it in {file} was tried."),
                format!("Log in again (\"docker login {registry}\"), and check that this user may read the image, and its name."),
            ),
            Some(Login::Elsewhere(how)) => (
                format!("In {file}, the log-in for it is kept {how}, which karmaform does not ask."),
                format!(
                    "Write it into that file, or into \"config.json\" of another directory that DOCKER_CONFIG names, as \
                     {{\"auths\": {{\"{registry}\": {{\"auth\": \"...\"}}}}}} with USER:PASSWORD in base64."
                ),
            ),
            _ => (
                format!("In {file} is no log-in for it."),
                format!(
                    "Log in (\"docker login {registry}\") if it is not for all, and check its name: some registries say the same of one that is not there."
                ),
            ),
        };
        let detail = format!("{}: the registry answered with status {}. {what}", self.name, status.as_u16());
        Diagnostic::error("Registry refuses the image", detail).with_hint(hint)
    }
}

fn agent(reference: &Reference, scheme: &str, tls: &TlsConfig, longest: Duration) -> Agent {
    let mut config = fetch::client(tls.clone())
        .timeout_global(Some(longest))
        .http_status_as_error(false)
        // Layers often lie elsewhere, be it on another port of the same host, and that elsewhere must not learn the password.
        .redirect_auth_headers(RedirectAuthHeaders::Never)
        .https_only(scheme == "https");
    if reference.is_loopback() {
        config = config.proxy(None);
    }
    config.build().into()
}

/// True for the failures that a server causes that takes the beginning of TLS for a bad request.
fn speaks_no_tls(error: &ureq::Error) -> bool {
    let is_garbage = |e: &rustls::Error| matches!(e, rustls::Error::InvalidMessage(_));
    match error {
        ureq::Error::Rustls(e) => is_garbage(e),
        ureq::Error::Io(e) => {
            matches!(e.kind(), std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset)
                || e.get_ref().and_then(|e| e.downcast_ref()).is_some_and(is_garbage)
        }
        _ => false,
    }
}

/// Addresses to which a registry sends us on can have signatures in them.
fn without_secrets(message: &str) -> String {
    message
        .split(' ')
        .map(|word| if word.contains("://") { without_credentials(word) } else { word.to_owned() })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_bad_certificate_is_no_reason_to_do_without() {
        let check = |error: ureq::Error, plain: bool| assert_eq!(speaks_no_tls(&error), plain, "{error}");
        let garbage = || rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        let untrusted = || rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        check(ureq::Error::Rustls(garbage()), true);
        check(ureq::Error::Io(Error::new(ErrorKind::InvalidData, garbage())), true);
        check(ureq::Error::Io(ErrorKind::UnexpectedEof.into()), true);
        check(ureq::Error::Rustls(untrusted()), false);
        check(ureq::Error::Io(Error::new(ErrorKind::InvalidData, untrusted())), false);
        check(ureq::Error::Io(ErrorKind::ConnectionRefused.into()), false);
        check(ureq::Error::HostNotFound, false);
    }

    #[test]
    fn signatures_are_in_no_message() {
        assert_eq!(without_secrets("bad uri: https://u:p@h/a?s=hunter2 !"), "bad uri: https://h/a !");
    }
}
