//! One request and its answer: signed anew for each try, repeated where the server did not answer or answered with an error of its own,
//! and never for longer than the limits say. Knows nothing of buckets.
//!
//! All requests sent here may be repeated: reads, writes with a condition, and writes of the same bytes to the same place.

use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use karmaform_model::innermost;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequestBody};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::limits::Limits;
use crate::settings::Reach;

/// How the servers of one kind are reached.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: HttpClient,
    retries: u32,
    limits: Limits,
}

/// A request before it is signed.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: HttpRequestBody,
}

/// What a request is signed with, if it is.
#[derive(Clone, Copy)]
pub(crate) struct Signature<'a> {
    pub(crate) credential: &'a AwsCredential,
    pub(crate) service: &'a str,
    pub(crate) region: &'a str,
}

/// An answer, whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Why there is no answer, in words that fit behind "the server could not be reached: ".
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing came in time.
    Late,
    /// The connection could not be made, or broke.
    Broken(String),
    /// The other side could not show that it is who it should be.
    Untrusted(String),
    /// The request could not even be made.
    Impossible(String),
}

impl Client {
    /// A client that goes through the proxies in `reach` and trusts what it says. `Err`: why there can be none.
    pub(crate) fn new(reach: &Reach, limits: Limits) -> Result<Self, String> {
        let built = builder(reach, limits)?.build();
        // A machine without authorities, as images often are, reaches servers without TLS; of others it is told that nobody is trusted.
        let built = match built {
            Err(_) if reach.ca_bundle.is_none() => builder(reach, limits)?.tls_certs_only([]).build().or(built),
            other => other,
        };
        Ok(Self { http: HttpClient::new(built.map_err(|e| innermost(&e))?), retries: reach.max_retries, limits })
    }

    /// Sends a request until there is an answer that more tries would not change.
    pub(crate) async fn send(&self, ask: &Ask, signature: Option<Signature<'_>>) -> Result<Reply, Failure> {
        let (one_try, whole) = self.limits.of(ask.body.content_length());
        let deadline = Instant::now() + whole;
        let mut tries = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let outcome = self.once(ask, signature, one_try.min(left)).await;
            let asked_for = match &outcome {
                Ok(reply) if !is_passing(reply) => return outcome,
                Ok(reply) => retry_after(reply),
                Err(Failure::Untrusted(_) | Failure::Impossible(_)) => return outcome,
                Err(Failure::Late | Failure::Broken(_)) => Duration::ZERO,
            };
            let pause = self.limits.pause(tries).max(asked_for);
            if tries >= self.retries || Instant::now() + pause >= deadline {
                return outcome;
            }
            sleep(pause).await;
            tries += 1;
        }
    }

    /// The pause after so many tries, for whoever finds an error in an answer that looks good here.
    pub(crate) fn pause(&self, tries: u32) -> Duration {
        self.limits.pause(tries)
    }

    /// One try, whose answer must begin within `limit`.
    async fn once(&self, ask: &Ask, signature: Option<Signature<'_>>, limit: Duration) -> Result<Reply, Failure> {
        let impossible = |e: &(dyn std::error::Error + 'static)| Failure::Impossible(innermost(e));
        let mut request = Request::builder().method(&ask.method).uri(&ask.url).body(ask.body.clone()).map_err(|e| impossible(&e))?;
        request.headers_mut().clone_from(&ask.headers);
        if let Some(Signature { credential, service, region }) = signature {
            AwsAuthorizer::new(credential, service, region).try_authorize(&mut request, None).map_err(|e| impossible(&e))?;
        }
        let late = |_| Failure::Late;
        let response = timeout(limit, self.http.execute(request)).await.map_err(late)?.map_err(failure)?;
        let (head, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        // How much will come is not known before. A slow line is waited for, a dead one is not.
        let until = Instant::now() + self.limits.one_try * 2;
        loop {
            let next = (Instant::now() + self.limits.one_try / 2).min(until);
            let Some(frame) = timeout_at(next, body.frame()).await.map_err(late)? else { break };
            if let Ok(data) = frame.map_err(failure)?.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(Reply { status: head.status, headers: head.headers, body: bytes })
    }
}

fn builder(reach: &Reach, limits: Limits) -> Result<reqwest::ClientBuilder, String> {
    let says = |e: reqwest::Error| innermost(&e);
    let proxy_of = |name: &'static str| move |e: reqwest::Error| format!("{name} can't be used: {}", innermost(&e));
    // Proxies of the process's environment are not asked: whoever calls gave an environment. A redirect would be followed with a
    // signature for another host, and the answer be about that.
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .connect_timeout(limits.connect)
        .user_agent(concat!("karmaform/", env!("CARGO_PKG_VERSION")));
    let except = || reach.no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
    if let Some(proxy) = &reach.http_proxy {
        builder = builder.proxy(reqwest::Proxy::http(proxy).map_err(proxy_of("http_proxy"))?.no_proxy(except()));
    }
    if let Some(proxy) = &reach.https_proxy {
        builder = builder.proxy(reqwest::Proxy::https(proxy).map_err(proxy_of("https_proxy"))?.no_proxy(except()));
    }
    if let Some(bundle) = &reach.ca_bundle {
        let certificates = reqwest::Certificate::from_pem_bundle(bundle).map_err(says)?;
        if certificates.is_empty() {
            return Err("the CA bundle has no certificate in it".to_owned());
        }
        builder = builder.tls_certs_only(certificates);
    }
    if reach.insecure {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    Ok(builder)
}

/// True for errors that are the server's own and may be gone the next time.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>: RequestTimeout comes with 400.
fn is_passing(reply: &Reply) -> bool {
    let slow = || String::from_utf8_lossy(&reply.body).contains("<Code>RequestTimeout</Code>");
    match reply.status.as_u16() {
        408 | 429 | 500 | 502..=504 => true,
        400 => slow(),
        _ => false,
    }
}

/// How long the server wants to be left alone. A date is not looked at: no store is known that sends one.
fn retry_after(reply: &Reply) -> Duration {
    reply.header("retry-after").and_then(|v| v.trim().parse().ok()).map_or(Duration::ZERO, Duration::from_secs)
}

fn failure(error: HttpError) -> Failure {
    let words = innermost(&error);
    // The library has no kind for it; rustls and the platform's verifier both name the certificate.
    if words.contains("certificate") || words.contains("UnknownIssuer") {
        return Failure::Untrusted(words);
    }
    match error.kind() {
        HttpErrorKind::Timeout => Failure::Late,
        _ => Failure::Broken(words),
    }
}
