//! One request and its answer: repeated where the server did not answer or failed for a moment, never for longer than the limits say, and
//! never sent to another host. Knows nothing of states and locks.
//!
//! All requests sent here may be repeated: whoever calls bears that a try may meet itself.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::innermost;
use md5::{Digest as _, Md5};
use reqwest::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Body, Certificate, Identity, Method, NoProxy, Proxy, Request, StatusCode, Url};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::arguments::Reach;
use crate::limits::{Limits, Retries};

/// The way to one server.
pub(crate) struct Client {
    http: reqwest::Client,
    authorization: Option<HeaderValue>,
    retries: Retries,
    limits: Limits,
}

/// How often a request may be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As the arguments say.
    Usual,
    /// Not at all: it is only to find out what became of another one.
    None,
}

/// An answer, whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// It is not the answer to the first try: an earlier one may have been done.
    pub(crate) repeated: bool,
    /// Where else it is, if the server said so.
    pub(crate) elsewhere: Option<String>,
    retry_after: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing came in time.
    Late,
    /// The connection could not be made, or broke.
    Broken(String),
    /// The other side could not show that it is who it should be.
    Untrusted(String),
    /// The other side does not take us for who we should be.
    Unwelcome(String),
    /// The request could not even be made.
    Impossible(String),
}

/// So many redirects are followed.
const HOPS: usize = 5;

impl Client {
    /// `Err`: why there can be none, in words.
    pub(crate) fn new(reach: &Reach, retries: Retries, limits: Limits) -> Result<Self, String> {
        let says = |e: reqwest::Error| innermost(&e);
        let proxy_of = |name: &'static str| move |e: reqwest::Error| format!("the address in {name} can't be used: {}", innermost(&e));
        // Proxies of the process's environment are not asked: whoever calls gave an environment. Redirects are followed here, where it is
        // known who may be told the password.
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .connect_timeout(limits.connect)
            .user_agent(concat!("karmaform/", env!("CARGO_PKG_VERSION")));
        // As with Go's library: what is on this machine is never asked for through a proxy.
        let except = format!("localhost,127.0.0.0/8,::1,{}", reach.no_proxy.as_deref().unwrap_or_default());
        if let Some(proxy) = &reach.http_proxy {
            builder = builder.proxy(Proxy::http(proxy).map_err(proxy_of("http_proxy"))?.no_proxy(NoProxy::from_string(&except)));
        }
        if let Some(proxy) = &reach.https_proxy {
            builder = builder.proxy(Proxy::https(proxy).map_err(proxy_of("https_proxy"))?.no_proxy(NoProxy::from_string(&except)));
        }
        if let Some(trusted) = &reach.trusted {
            let certificates = Certificate::from_pem_bundle(trusted.as_bytes()).map_err(says)?;
            if certificates.is_empty() {
                return Err("client_ca_certificate_pem has no certificate in it".to_owned());
            }
            builder = builder.tls_certs_only(certificates);
        }
        if let Some(identity) = &reach.identity {
            let why = |e: reqwest::Error| format!("client_certificate_pem and client_private_key_pem can't be used: {}", says(e));
            builder = builder.identity(Identity::from_pem(identity.as_bytes()).map_err(why)?);
        }
        if reach.skip_verification {
            builder = builder.tls_danger_accept_invalid_certs(true);
        }
        let authorization = reach.login.as_ref().and_then(|(user, password)| {
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { http: builder.build().map_err(says)?, authorization, retries, limits })
    }

    /// True if it says who we are.
    pub(crate) fn has_login(&self) -> bool {
        self.authorization.is_some()
    }

    /// A request, with what belongs to it: who we are, and for a body its kind and MD5, as Terraform sends them.
    pub(crate) fn request(&self, method: &Method, url: &Url, body: Option<Vec<u8>>) -> Request {
        let mut request = Request::new(method.clone(), url.clone());
        let headers = request.headers_mut();
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        // What a cache remembers of a state is what must not be built on.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Some(bytes) = body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            if let Ok(digest) = HeaderValue::try_from(STANDARD.encode(Md5::digest(&bytes))) {
                headers.insert(HeaderName::from_static("content-md5"), digest);
            }
            *request.body_mut() = Some(Body::from(bytes));
        }
        request
    }

    /// Sends a request until there is an answer that more tries would not change.
    pub(crate) async fn send(&self, request: &Request, patience: Patience) -> Result<Reply, Failure> {
        let most = if patience == Patience::Usual { self.retries.most } else { 0 };
        let mut tries = 0;
        loop {
            let outcome = self.follow(request).await.map(|reply| Reply { repeated: tries > 0, ..reply });
            let asked_for = match &outcome {
                Ok(reply) if !is_passing(reply.status) => return outcome,
                Ok(reply) => reply.retry_after,
                Err(Failure::Late | Failure::Broken(_)) => Duration::ZERO,
                Err(_) => return outcome,
            };
            if tries >= most {
                return outcome;
            }
            sleep(self.retries.pause(tries, asked_for)).await;
            tries += 1;
        }
    }

    /// One try. Where what is read has moved on the same server, it is read there; nothing that is written follows.
    async fn follow(&self, request: &Request) -> Result<Reply, Failure> {
        let mut reply = self.once(request).await?;
        let mut here = request.url().clone();
        for _ in 0..HOPS {
            let next = reply.elsewhere.as_ref().and_then(|place| here.join(place).ok());
            let Some(next) = next.filter(|next| request.method() == Method::GET && next.origin() == here.origin()) else { break };
            let moved = self.request(request.method(), &next, None);
            reply = self.once(&moved).await?;
            here = next;
        }
        Ok(reply)
    }

    async fn once(&self, request: &Request) -> Result<Reply, Failure> {
        let copy = request.try_clone().ok_or_else(|| Failure::Impossible("it can't be repeated".to_owned()))?;
        let size = copy.body().and_then(Body::as_bytes).map_or(0, <[u8]>::len);
        let late = |_| Failure::Late;
        let mut response = timeout(self.limits.of(size), self.http.execute(copy)).await.map_err(late)?.map_err(failure)?;
        let status = response.status();
        let header = |name: HeaderName| Some(response.headers().get(name)?.to_str().ok()?.trim().to_owned());
        // A date is not looked at: the usual pause does as well.
        let retry_after = header(RETRY_AFTER).and_then(|v| v.parse().ok()).map_or(Duration::ZERO, Duration::from_secs);
        let elsewhere = header(LOCATION).filter(|_| status.is_redirection());
        let mut body = Vec::new();
        // How much will come is not known before. A slow line is waited for, a dead one is not.
        let until = Instant::now() + self.limits.one_try * 2;
        loop {
            let next = (Instant::now() + self.limits.one_try / 2).min(until);
            match timeout_at(next, response.chunk()).await.map_err(late)?.map_err(failure)? {
                Some(piece) => body.extend_from_slice(&piece),
                None => return Ok(Reply { status, body, repeated: false, elsewhere, retry_after }),
            }
        }
    }
}

/// True for errors that may be gone the next time: as Terraform's client has it, all of the server's own but "not implemented".
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502..=599)
}

fn failure(error: reqwest::Error) -> Failure {
    let words = innermost(&error);
    // The library has no kind for it; rustls and the platform's verifier both name the certificate, and an alert is the other side's word.
    let lower = words.to_lowercase();
    if lower.contains("alert") {
        return Failure::Unwelcome(words);
    }
    if lower.contains("certificate") || words.contains("UnknownIssuer") {
        return Failure::Untrusted(words);
    }
    match (error.is_timeout(), error.is_builder()) {
        (true, _) => Failure::Late,
        (_, true) => Failure::Impossible(words),
        _ => Failure::Broken(words),
    }
}
