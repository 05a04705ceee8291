//! Why a connection failed, from its words: the client library has no other way to tell. Knows no request, and no answer of a server.

use std::error::Error as _;

use karmaform_model::Diagnostic;

use crate::failure::{LOGGED_OUT, UNTRUSTED};

/// The words on a connection that was there.
pub(crate) const CUT: &str = "the connection was cut";
/// The words where nothing better is known.
pub(crate) const FAILED: &str = "the connection failed";

/// All messages of an error, from the outside in.
pub(crate) fn chain(error: &kube::Error) -> String {
    let mut words = vec![error.to_string()];
    let mut next = error.source();
    while let Some(error) = next {
        words.push(error.to_string());
        next = error.source();
    }
    words.join(": ")
}

/// What the user is told of a failed connection, by its messages. `place` is the server's address.
pub(crate) fn transport(words: &str, place: &str) -> Diagnostic {
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
    if has(&["CertificateRequired", "BadCertificate", "CertificateUnknown", "UnknownCA", "received fatal alert"]) {
        return Diagnostic::error(LOGGED_OUT, format!("{place} does not accept the client certificate."))
            .with_hint("See whether it has expired, and whether it belongs to this cluster.");
    }
    let why = unreached(words);
    Diagnostic::error("Cluster is unreachable", format!("{place} could not be reached: {why}."))
        .with_hint("See whether the cluster runs, and whether a proxy or a VPN is needed to reach it.")
        .retryable()
}

/// Why nobody was reached, or not to the end.
pub(crate) fn unreached(words: &str) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|p| words.contains(p));
    if has(&["refused"]) {
        "nothing listens there"
    } else if has(&["failed to lookup address", "dns error", "Name or service not known"]) {
        "its name is not known"
    } else if has(&["timed out", "deadline has elapsed", "TimedOut"]) {
        "nobody answered in time"
    } else if has(&["unreachable", "No route"]) {
        "there is no way to it"
    } else if has(&["reset", "closed", "broken pipe", "UnexpectedEof", "unexpected EOF"]) {
        CUT
    } else {
        FAILED
    }
}
