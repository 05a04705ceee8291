//! From what a call came back with to what a user is told: what failed, why, and what to do. No secret passes here.

use std::error::Error as _;
use std::time::Duration;

use karmaform_model::{Diagnostic, redact};

/// The summary that says that a server answers, but can't do what it is for; or that another one behind it can't.
pub(crate) const UNABLE: &str = "Cluster is not able to answer";

const LOGGED_OUT: &str = "Not logged in to the cluster";
const UNTRUSTED: &str = "Certificate of the cluster is not trusted";
/// The summaries that say that one of the two does not let the other in.
pub(crate) const OUTSIDE: &[&str] = &[LOGGED_OUT, UNTRUSTED];

/// What was tried, in the words of RBAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// `get`, `list`, `patch`, `delete`
    pub(crate) verb: &'static str,
    /// `deployments`
    pub(crate) resource: String,
    /// None for the cluster.
    pub(crate) namespace: Option<String>,
    /// Empty for all.
    pub(crate) name: String,
}

impl Call {
    /// Nothing in particular.
    pub(crate) fn none() -> Self {
        Self { verb: "", resource: String::new(), namespace: None, name: String::new() }
    }

    fn thing(&self) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!(" \"{}\"", self.name) };
        let namespace = self.namespace.as_ref().map(|n| format!(" in the namespace \"{n}\"")).unwrap_or_default();
        format!("{}{name}{namespace}", self.resource)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The client library's error. It is never shown as it is: it may quote what was sent.
    Kube(Box<kube::Error>),
    /// No answer in time.
    Timeout(Duration),
    /// There is no way to the server through the other connection; what that one says.
    Way(Box<Diagnostic>),
    /// The server serves no such kind in such a version.
    Unserved(String, String),
}

impl Failure {
    fn status(&self) -> Option<&kube::core::Status> {
        match self {
            Self::Kube(error) => match &**error {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            Self::Timeout(_) | Self::Way(_) | Self::Unserved(..) => None,
        }
    }

    /// The HTTP status code of the server's refusal.
    pub(crate) fn code(&self) -> Option<u16> {
        self.status().map(|s| s.code)
    }

    /// What the server says.
    pub(crate) fn message(&self) -> &str {
        self.status().map(|s| s.message.as_str()).unwrap_or_default()
    }

    /// True if there was no answer: the connection failed or was cut, or nobody answered in time.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            Self::Kube(error) => matches!(**error, kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_)),
            Self::Timeout(_) => true,
            Self::Way(_) | Self::Unserved(..) => false,
        }
    }

    /// True if the server says that it is not able to answer.
    pub(crate) fn is_outage(&self) -> bool {
        self.code().is_some_and(|c| c == 429 || c >= 500)
    }

    /// True if it is the kind that is not there, rather than an object: only objects have names.
    pub(crate) fn is_unserved(&self) -> bool {
        let nameless = |s: &kube::core::Status| s.details.as_ref().is_none_or(|d| d.name.is_empty());
        matches!(self, Self::Unserved(..)) || self.status().is_some_and(|s| s.code == 404 && nameless(s))
    }

    /// The message, if it says that a field can't be changed in place.
    pub(crate) fn immutable(&self, secrets: &[String]) -> Option<String> {
        let status = self.status().filter(|s| s.code == 422)?;
        let words =
            ["is immutable", "updates to statefulset spec", "may not be changed", "may not change once set", "cannot change roleRef"];
        words.iter().any(|w| status.message.contains(w)).then(|| redact(&status.message, secrets))
    }

    /// True if a webhook stands in the way that can't be asked without effects.
    pub(crate) fn takes_no_dry_run(&self) -> bool {
        self.status().is_some_and(|s| s.message.contains("does not support dry run"))
    }

    /// What the user is told. `place` is the server's address.
    pub(crate) fn diagnostic(&self, place: &str, call: &Call, secrets: &[String]) -> Diagnostic {
        match self {
            Self::Timeout(limit) => {
                Diagnostic::error("Cluster did not answer", format!("{place} did not answer within {} s.", limit.as_secs())).retryable()
            }
            Self::Way(error) => (**error).clone(),
            Self::Unserved(kind, version) => {
                Diagnostic::error("Kind is not known to the cluster", format!("{place} serves no {kind} of {version}."))
                    .with_hint("See which versions of it this server serves: `kubectl api-resources`.")
                    .retryable()
            }
            Self::Kube(error) => match &**error {
                kube::Error::Api(status) => refusal(status, place, call, secrets),
                kube::Error::Auth(error) => authentication(error),
                kube::Error::ProxyProtocolUnsupported { .. } => {
                    Diagnostic::error("Bad proxy URL", "The proxy is neither an http, https nor a socks5 one.")
                }
                kube::Error::InferKubeconfig(_) => Diagnostic::error(
                    "Unusable kubeconfig",
                    "The client certificate or its key can't be used: a file is missing, or it is no base64 or no PEM.",
                ),
                kube::Error::RustlsTls(_) => Diagnostic::error(
                    "Unusable certificates",
                    "The certificates or the key to reach the cluster with can't be used: they are no PEM, or don't belong together.",
                ),
                kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
                    Diagnostic::error("Not a Kubernetes API server", format!("{place} answers, but not as a Kubernetes API server does."))
                }
                kube::Error::BuildRequest(_) => Diagnostic::error("Unusable name", format!("{} is no name of an object.", call.thing())),
                other => transport(&chain(other), place),
            },
        }
    }
}

fn refusal(status: &kube::core::Status, place: &str, call: &Call, secrets: &[String]) -> Diagnostic {
    let message = redact(status.message.trim_end_matches('.'), secrets);
    let thing = call.thing();
    match status.code {
        401 => Diagnostic::error(LOGGED_OUT, format!("{place} does not accept the credentials it was given."))
            .with_hint("See whether the token or the client certificate has expired, and whether it belongs to this cluster."),
        403 if message.contains(" cannot ") => Diagnostic::error(
            "Right missing in the cluster",
            format!("The right to {} {thing} is missing. The server says: {message}.", call.verb),
        )
        .with_hint(format!("Let a role grant \"{}\" on \"{}\" to this user.", call.verb, call.resource)),
        404 => Diagnostic::error("Not there", format!("To {} {thing} something is missing. The server says: {message}.", call.verb)),
        409 if is_manager_conflict(status) => manager_conflict(status, &thing),
        409 => {
            Diagnostic::error("Changed at the same time", format!("Somebody else changes {thing}. The server says: {message}.")).retryable()
        }
        413 => Diagnostic::error("Object is too large", format!("The server does not take {thing}: {message}.")),
        // A manifest that can't be merged is no fault of the server's.
        500 if message.contains("failed to create typed patch object") => {
            Diagnostic::error("Refused by the cluster", format!("The server does not take {thing}: {message}."))
        }
        400 | 403 | 422 => Diagnostic::error("Refused by the cluster", format!("The server does not take {thing}: {message}.")),
        429 | 500 | 502..=504 => Diagnostic::error(UNABLE, format!("{place} says: {message} ({}).", status.code)).retryable(),
        code => Diagnostic::error("Refused by the cluster", format!("The server answers {code} for {thing}: {message}.")),
    }
}

fn is_manager_conflict(status: &kube::core::Status) -> bool {
    status.details.as_ref().is_some_and(|d| d.causes.iter().any(|c| c.reason == "FieldManagerConflict"))
}

fn manager_conflict(status: &kube::core::Status, thing: &str) -> Diagnostic {
    let causes = status.details.iter().flat_map(|d| &d.causes);
    // `conflict with "kubectl" using v1 at 2026-...`: the value is not in it
    let whom = |message: &str| message.split('"').nth(1).unwrap_or("somebody else").to_owned();
    let mut owners: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
    for cause in causes {
        owners.entry(whom(&cause.message)).or_default().push(cause.field.clone());
    }
    let owners: Vec<String> = owners.iter().map(|(who, fields)| format!("\"{who}\" owns {}", fields.join(", "))).collect();
    Diagnostic::error("Field belongs to another manager", format!("Of {thing}, {}.", owners.join("; ")))
        .with_hint("Set `force = true` to take these fields over, or leave them out of the manifest.")
}

fn authentication(error: &kube::client::AuthError) -> Diagnostic {
    use kube::client::AuthError;
    let error = match error {
        AuthError::AuthExecStart(cause) => {
            Diagnostic::error("No credentials for the cluster", format!("The program that gives them could not be started: {cause}."))
                .with_hint("Install it, or put it into the PATH of this process.")
        }
        // Its arguments and variables may be secret, and so may what it printed; its complaints went to standard error.
        AuthError::AuthExecRun { out, .. } => Diagnostic::error(
            "No credentials for the cluster",
            format!("The program that gives them ended with {}; it said why on standard error.", out.status),
        ),
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            Diagnostic::error("No credentials for the cluster", "What the program printed that gives them can't be read.")
        }
        AuthError::ReadTokenFile(cause, path) => {
            Diagnostic::error("No credentials for the cluster", format!("The token file {} can't be read: {cause}.", path.display()))
        }
        _ => Diagnostic::error("No credentials for the cluster", "The credentials in the kubeconfig or the arguments can't be used."),
    };
    error.with_hint("Try the same access with kubectl.")
}

/// All messages of an error, from the outside in.
fn chain(error: &kube::Error) -> String {
    let mut words = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        words.push(error.to_string());
        next = error.source();
    }
    words.join(": ")
}

fn transport(words: &str, place: &str) -> Diagnostic {
    let has = |parts: &[&str]| parts.iter().any(|p| words.contains(p));
    if has(&["UnknownIssuer", "invalid peer certificate", "BadSignature", "CaUsedAsEndEntity"]) {
        let why = if has(&["NotValidForName"]) {
            "its certificate is for another name"
        } else if has(&["Expired", "NotValidYet"]) {
            "its certificate has expired, or is not valid yet"
        } else {
            "its certificate is signed by nobody that is trusted here"
        };
        return Diagnostic::error(UNTRUSTED, format!("{place} was reached, but {why}."))
            .with_hint("Give the cluster's own authority as `ca_certificate`, or a fresh kubeconfig.");
    }
    let why = if has(&["CertificateRequired", "BadCertificate", "CertificateUnknown", "UnknownCA", "received fatal alert"]) {
        return Diagnostic::error(LOGGED_OUT, format!("{place} does not accept the client certificate."))
            .with_hint("See whether it has expired, and whether it belongs to this cluster.");
    } else if has(&["refused"]) {
        "nothing listens there"
    } else if has(&["failed to lookup address", "dns error", "Name or service not known"]) {
        "its name is not known"
    } else if has(&["timed out", "deadline has elapsed", "TimedOut"]) {
        "nobody answered in time"
    } else if has(&["unreachable", "No route"]) {
        "there is no way to it"
    } else if has(&["reset", "closed", "broken pipe", "UnexpectedEof", "unexpected EOF"]) {
        "the connection was cut"
    } else {
        "the connection failed"
    };
    Diagnostic::error("Cluster is unreachable", format!("{place} could not be reached: {why}."))
        .with_hint("See whether the cluster runs, and whether a proxy or a VPN is needed to reach it.")
        .retryable()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn told(status: Json) -> Diagnostic {
        let status: Status = serde_json::from_value(status).unwrap();
        let call = Call { verb: "patch", resource: "secrets".into(), namespace: Some("ns".into()), name: "s".into() };
        Failure::Kube(Box::new(kube::Error::Api(Box::new(status)))).diagnostic("https://h:1", &call, &["hunter22".to_owned()])
    }

    use serde_json::{Value as Json, json};

    #[test]
    fn a_conflict_names_managers_and_fields() {
        let cause = |who: &str, field: &str| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with \"{who}\" using v1"), "field": field });
        let error = told(
            json!({ "code": 409, "reason": "Conflict", "details": { "causes": [cause("kubectl", ".data.a"), cause("helm", ".data.b"), cause("kubectl", ".data.c")] } }),
        );
        assert_eq!(error.summary, "Field belongs to another manager");
        assert!(error.detail.contains("\"helm\" owns .data.b; \"kubectl\" owns .data.a, .data.c"), "{}", error.detail);
        assert!(!error.retryable && error.hints[0].contains("force = true"));
    }

    #[test]
    fn refusals_hide_secrets_and_say_what_is_missing() {
        let error = told(json!({ "code": 422, "message": "Secret \"s\" is invalid: data: Invalid value: \"hunter22\"" }));
        assert!(error.detail.contains("(sensitive)") && !error.detail.contains("hunter22"), "{}", error.detail);
        let error = told(json!({ "code": 403, "message": "secrets \"s\" is forbidden: User \"u\" cannot patch resource \"secrets\"" }));
        assert_eq!(error.summary, "Right missing in the cluster");
        assert!(error.detail.starts_with("The right to patch secrets \"s\" in the namespace \"ns\" is missing."), "{}", error.detail);
        assert_eq!(told(json!({ "code": 403, "message": "exceeded quota" })).summary, "Refused by the cluster");
        assert!(told(json!({ "code": 503, "message": "x" })).retryable && told(json!({ "code": 409, "message": "x" })).retryable);
    }

    #[test]
    fn failed_connections_say_why() {
        let summary = |words: &str| transport(words, "https://h:1").summary;
        assert_eq!(summary("x: invalid peer certificate: UnknownIssuer"), "Certificate of the cluster is not trusted");
        assert_eq!(summary("received fatal alert: CertificateRequired"), "Not logged in to the cluster");
        assert_eq!(summary("tcp connect error: Connection refused"), "Cluster is unreachable");
    }
}
