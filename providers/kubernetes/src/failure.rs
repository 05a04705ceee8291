//! From what a call came back with to what a user is told: what failed, why, and what to do. No secret passes here.

use std::time::Duration;

use karmaform_model::{Diagnostic, redact};

use crate::unreached::{CUT, FAILED, chain, transport, unreached};

/// The summary that says that a server answers, but can't do what it is for; or that another one behind it can't.
pub(crate) const UNABLE: &str = "Cluster is not able to answer";

/// The summary that says that a server does not take the credentials.
pub(crate) const LOGGED_OUT: &str = "Not logged in to the cluster";
/// The summary that says that a server's certificate is not taken.
pub(crate) const UNTRUSTED: &str = "Certificate of the cluster is not trusted";
/// The summaries that say that one of the two does not let the other in.
pub(crate) const OUTSIDE: &[&str] = &[LOGGED_OUT, UNTRUSTED];
/// The summary that says that an admission webhook is in the way which can't be asked.
pub(crate) const WEBHOOK: &str = "Admission webhook does not answer";
/// The summary that says that a namespace is on its way out.
pub(crate) const TERMINATING: &str = "Namespace is being deleted";
/// How servers say that a field can't be changed in place; with 422. Most say the first; then come StatefulSets, priority classes, Services, bindings of roles,
/// pods and storage classes (`validation.go` below `pkg/apis` in kubernetes).
const IMMUTABLE: &[&str] = &[
    "is immutable",
    "updates to statefulset spec",
    "may not be changed",
    "may not change once set",
    "cannot change roleRef",
    "pod updates may not change",
    "pod updates may not add or remove",
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
    "updates to reclaimPolicy are forbidden",
];
/// How a server says that it can't turn one version of a kind into another; with 500. Source: `webhook_converter.go` of `k8s.io/apiextensions-apiserver`.
const CONVERSION: &str = "conversion webhook for ";
/// How a server says that it can't ask the one that an API of its is served by (`proxyHandler` in `k8s.io/kube-aggregator`); with 503.
const BEHIND: [&str; 2] = ["service unavailable", "error trying to reach service"];
/// How a server of before 1.26 begins to say that it can't merge a manifest; with 500.
const UNTYPED: &str = "failed to create typed patch object";

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
    Timeout,
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
            Self::Timeout | Self::Way(_) | Self::Unserved(..) => None,
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
            Self::Timeout => true,
            Self::Way(_) | Self::Unserved(..) => false,
        }
    }

    /// True if the server says that it is not able to answer.
    pub(crate) fn is_outage(&self) -> bool {
        self.code().is_some_and(|c| c == 429 || c >= 500)
    }

    /// True if the same request may well work a little later: there was no answer, or the server says that it is not able to give one. What a
    /// webhook or a manifest is to blame for is no trouble of the server's.
    pub(crate) fn is_trouble(&self) -> bool {
        let is_theirs = |message: &str| message.contains(UNTYPED) || webhook(message).is_some() || is_too_large(message);
        let is_able = || matches!(self.code(), Some(500)) && is_theirs(self.message());
        self.is_cut() || (matches!(self.code(), Some(429 | 500 | 502..=504)) && !is_able())
    }

    /// Of a failed connection: true if another one will end the same.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Kube(error) if self.is_cut() && !transport(&chain(error), "").retryable)
    }

    /// Of a failed connection: true if nobody was reached at all.
    pub(crate) fn is_refused_connection(&self) -> bool {
        matches!(self, Self::Kube(error) if self.is_cut() && !matches!(unreached(&chain(error)), CUT | FAILED))
    }

    /// True if somebody else changed the object at the same time; not if a field of it belongs to them.
    pub(crate) fn is_race(&self) -> bool {
        self.status().is_some_and(|s| s.code == 409 && !is_manager_conflict(s))
    }

    /// How long the server wants to be left alone.
    pub(crate) fn wish(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// True if it is the kind that is not there, rather than an object: only objects have names.
    pub(crate) fn is_unserved(&self) -> bool {
        let nameless = |s: &kube::core::Status| s.details.as_ref().is_none_or(|d| d.name.is_empty());
        matches!(self, Self::Unserved(..)) || self.status().is_some_and(|s| s.code == 404 && nameless(s))
    }

    /// The message, if it says that a field can't be changed in place.
    pub(crate) fn immutable(&self, secrets: &[String]) -> Option<String> {
        let status = self.status().filter(|s| s.code == 422)?;
        IMMUTABLE.iter().any(|w| status.message.contains(w)).then(|| redact(&status.message, secrets))
    }

    /// True if a webhook stands in the way that can't be asked without effects.
    pub(crate) fn takes_no_dry_run(&self) -> bool {
        self.status().is_some_and(|s| s.message.contains("does not support dry run"))
    }

    /// What the user is told. `place` is the server's address.
    pub(crate) fn diagnostic(&self, place: &str, call: &Call, secrets: &[String]) -> Diagnostic {
        match self {
            // Without the time, which differs: what ails all requests alike is told once.
            Self::Timeout => {
                Diagnostic::error("Cluster did not answer", format!("{place} could be reached, but it gave no answer within its time."))
                    .with_hint("See how the API server fares, and its etcd: `kubectl get --raw /readyz?verbose`.")
                    .retryable()
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
                )
                .with_hint(
                    "Take the client certificate and its key (`client_certificate`, `client_key`) from the same place, and the CA as PEM.",
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
    let message = redact(&short(&status.message), secrets);
    let thing = call.thing();
    match status.code {
        401 => Diagnostic::error(LOGGED_OUT, format!("{place} does not accept the credentials it was given."))
            .with_hint("See whether the token or the client certificate has expired, and whether it belongs to this cluster."),
        403 if message.contains(" cannot ") => missing_right(call, &message),
        // An apply of what is not there, by somebody who may only patch: servers of 1.20 then give no reason.
        403 if message.ends_with(" is forbidden:") && call.verb == "patch" => {
            missing_right(&Call { verb: "create", ..call.clone() }, &message)
        }
        403 if message.contains("exceeded quota: ") => quota(call, &message),
        403 if is_terminating(status) => terminating(call.namespace.as_deref().unwrap_or_default()),
        404 => Diagnostic::error("Not there", format!("To {} {thing} something is missing. The server says: {message}.", call.verb)),
        409 if is_manager_conflict(status) => manager_conflict(status, &thing),
        409 => {
            Diagnostic::error("Changed at the same time", format!("Somebody else changes {thing}. The server says: {message}.")).retryable()
        }
        413 => too_large(&thing, &message),
        500 if is_too_large(&message) => too_large(&thing, &message),
        // A manifest that can't be merged is no fault of the server's.
        500 if message.contains(UNTYPED) => refused(&thing, &message),
        400..=499 if message.starts_with("admission webhook ") => denied(&thing, &message),
        400 | 403 | 422 => refused(&thing, &message),
        500 if let Some(name) = webhook(&message) => unanswered_webhook(name, &message),
        500 if message.contains(CONVERSION) => unconverted(place, &message),
        503 if BEHIND.iter().any(|words| message.starts_with(words)) => behind(place, &message),
        429 | 500 | 502..=504 => Diagnostic::error(UNABLE, format!("{place} says: {message} ({}).", status.code))
            .with_hint("See how the API server fares, and its etcd: `kubectl get --raw /readyz?verbose`.")
            .retryable(),
        code => Diagnostic::error("Refused by the cluster", format!("The server answers {code} for {thing}: {message}.")),
    }
}

fn unconverted(place: &str, message: &str) -> Diagnostic {
    Diagnostic::error(UNABLE, format!("{place} says: {message} (500)."))
        .with_hint("See whether what answers for that webhook runs; the kind's CustomResourceDefinition names it (`spec.conversion`).")
        .retryable()
}

fn behind(place: &str, message: &str) -> Diagnostic {
    let detail = format!("{place} says: {message} (503). One of its APIs is another server's, which it can't ask (an APIService).");
    Diagnostic::error(UNABLE, detail).with_hint("See which one, and why: `kubectl get apiservices`.").retryable()
}

/// etcd's refusal, or that of the server's own client of etcd; no other try helps.
fn is_too_large(message: &str) -> bool {
    ["etcdserver: request is too large", "trying to send message larger than max"].iter().any(|words| message.contains(words))
}

fn too_large(thing: &str, message: &str) -> Diagnostic {
    Diagnostic::error("Object is too large", format!("The server does not take {thing}: {message}."))
        .with_hint("Make it smaller, or several of it: etcd takes 1.5 MiB at once unless its `max-request-bytes` says otherwise.")
}

/// One line, and not a whole page of a proxy's.
fn short(message: &str) -> String {
    const LONGEST: usize = 600;
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

fn refused(thing: &str, message: &str) -> Diagnostic {
    Diagnostic::error("Refused by the cluster", format!("The server does not take {thing}: {message}."))
}

/// `User "u" cannot create resource "secrets" in API group "" in the namespace "n"`: which right it is, without the object, since what is
/// missing for all of a kind is told once. To apply what is not there takes two rights, so the server knows best which one is meant.
fn missing_right(call: &Call, message: &str) -> Diagnostic {
    let after = |word: &str| message.split_once(word).map(|(_, rest)| rest);
    let quoted = |word: &str| after(word)?.split('"').next().filter(|t| !t.is_empty());
    let verb = after(" cannot ").and_then(|rest| rest.split(' ').next()).unwrap_or(call.verb);
    let resource = quoted(" resource \"").unwrap_or(&call.resource);
    let group = quoted(" in API group \"").map(|g| format!(".{g}")).unwrap_or_default();
    let whose = quoted("User \"").map(|u| format!(" to \"{u}\"")).unwrap_or_default();
    let (place, role) = match &call.namespace {
        Some(namespace) => (format!(" in the namespace \"{namespace}\""), "role"),
        None => (String::new(), "cluster role"),
    };
    Diagnostic::error("Right missing in the cluster", format!("The right to {verb} {resource}{group}{place} is not given{whose}."))
        .with_hint(format!("Let a {role} grant \"{verb}\" on \"{resource}\" of the API group \"{}\".", group.trim_start_matches('.')))
}

/// `exceeded quota: NAME, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3`
fn quota(call: &Call, message: &str) -> Diagnostic {
    let told = message.split_once("exceeded quota: ").map_or(message, |(_, told)| told);
    let name = told.split(',').next().unwrap_or_default();
    let place = call.namespace.as_ref().map(|n| format!(" of the namespace \"{n}\"")).unwrap_or_default();
    Diagnostic::error("Quota is exceeded", format!("There is no room for {} in the ResourceQuota \"{name}\"{place}: {told}.", call.thing()))
        .with_hint("Raise the quota, or take something away that counts to it.")
}

fn is_terminating(status: &kube::core::Status) -> bool {
    let by_cause = status.details.as_ref().is_some_and(|d| d.causes.iter().any(|c| c.reason == "NamespaceTerminating"));
    by_cause || status.message.contains("because it is being terminated")
}

/// Alike for all that should be in it.
pub(crate) fn terminating(namespace: &str) -> Diagnostic {
    Diagnostic::error(TERMINATING, format!("The namespace \"{namespace}\" is being deleted, so nothing can be made in it."))
        .with_hint("Plan again when it is gone; `kubectl get namespace -o yaml` says what it waits for.")
}

/// The webhook that a server could not ask: `Internal error occurred: failed calling webhook "NAME": ...`.
fn webhook(message: &str) -> Option<&str> {
    message.split_once("failed calling webhook \"")?.1.split('"').next()
}

fn unanswered_webhook(name: &str, message: &str) -> Diagnostic {
    let why = message.split_once(&format!("\"{name}\": ")).map_or(message, |(_, why)| why);
    Diagnostic::error(
        WEBHOOK,
        format!("Without the admission webhook \"{name}\" the server takes no such change, and it can't ask that: {why}."),
    )
    .with_hint(
        "See whether what answers for the webhook runs; it is named in its ValidatingWebhookConfiguration or MutatingWebhookConfiguration.",
    )
    .retryable()
}

/// `admission webhook "NAME" denied the request: WHY`
fn denied(thing: &str, message: &str) -> Diagnostic {
    let name = message.split('"').nth(1).unwrap_or_default();
    let why = message.split_once(" denied the request: ").map_or(message, |(_, why)| why);
    Diagnostic::error("Refused by an admission webhook", format!("The webhook \"{name}\" of the cluster does not let {thing} pass: {why}."))
        .with_hint("Change the manifest as it says, or ask who runs that webhook.")
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

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
