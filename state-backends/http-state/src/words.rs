//! What a server answers when it does not do what it was asked, as one sentence for people. No secret is in it.

use karmaform_model::StoreError;
use reqwest::{StatusCode, Url};

use crate::http::{Failure, Reply};

/// What the server was asked to do, and where.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// `read the state`
    pub(crate) what: &'static str,
    pub(crate) url: &'a Url,
    /// The arguments that say where and how.
    pub(crate) arguments: &'static str,
    /// It was told who asks.
    pub(crate) has_login: bool,
}

/// The server did not answer.
pub(crate) fn unreachable(asked: Asked<'_>, failure: &Failure) -> StoreError {
    let Asked { url, arguments, .. } = asked;
    match failure {
        Failure::Late => StoreError::Unreachable(format!(
            "The server at {url} did not answer in time; try again, and check {arguments} and the network if it stays so."
        )),
        Failure::Broken(why) => {
            StoreError::Unreachable(format!("The server at {url} can't be reached ({why}); check {arguments} and the network."))
        }
        Failure::Untrusted(why) => StoreError::Refused(format!(
            "The server at {url} has a certificate that is not trusted ({why}); give the certificate of its CA in client_ca_certificate_pem."
        )),
        Failure::Unwelcome(why) => StoreError::Refused(format!(
            "The server at {url} broke the TLS handshake off ({why}); check client_certificate_pem and client_private_key_pem."
        )),
        Failure::Impossible(why) => StoreError::Refused(format!("No request to {url} can be made ({why}); check {arguments}.")),
    }
}

/// The server answered, and did not do it.
pub(crate) fn refused(asked: Asked<'_>, reply: &Reply) -> StoreError {
    let Asked { what, url, arguments, has_login } = asked;
    let status = reply.status.as_u16();
    let said = format!("{status}{}", message(&reply.body));
    if reply.status.is_server_error() && reply.status != StatusCode::NOT_IMPLEMENTED || matches!(status, 408 | 429) {
        return StoreError::Unreachable(format!("The server at {url} could not {what}: it answered {said} to every try; try again later."));
    }
    StoreError::Refused(match status {
        401 if !has_login => format!(
            "The server at {url} wants to know who asks ({said}); set username and password, or TF_HTTP_USERNAME and TF_HTTP_PASSWORD."
        ),
        401 => {
            format!("The server at {url} did not accept username and password ({said}); check them, and whether the token is still valid.")
        }
        403 => format!(
            "The server at {url} does not allow this user to {what} ({said}); check username and password, and the user's rights: on GitLab only maintainers of the project write states."
        ),
        300..=399 => format!(
            "The server at {url} did not {what} and sends one on to {}; if you trust that place, write it in {arguments}.",
            reply.elsewhere.as_deref().map_or("nowhere".to_owned(), shown)
        ),
        404 | 405 | 501 => format!("The server at {url} does not know how to {what} ({said}); check {arguments}."),
        413 => format!("The server at {url} did not {what}, because it is too large ({said}); raise the server's limit."),
        _ => format!("The server at {url} did not {what} ({said}); check {arguments}."),
    })
}

/// An address without what may be a signature.
fn shown(place: &str) -> String {
    place.split(['?', '#']).next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect()
}

/// What the server itself says, if it says it as GitLab and others do: a short text in `message` or `error`.
fn message(body: &[u8]) -> String {
    let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = ["message", "error"].iter().find_map(|name| json.get(name)?.as_str()).unwrap_or_default();
    let line: String =
        text.lines().next().unwrap_or_default().trim_end_matches('.').chars().filter(|c| !c.is_control()).take(200).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}
