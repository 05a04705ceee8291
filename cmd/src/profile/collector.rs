//! A collector of traces, as OpenTelemetry's variables of the environment name it, and one POST to it.
//!
//! Source: <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>, and for the answers <https://opentelemetry.io/docs/specs/otlp/#otlphttp-response>.
//! Headers are secrets: nothing of them, and nothing that a server answers (it may repeat them), is in what is said here.

use std::path::Path;
use std::time::Duration;

use karmaform_model::{Diagnostic, Diagnostics, innermost};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Certificate, Identity, NoProxy, Proxy, StatusCode, Url};
use serde_json::Value as Json;

use super::variables::{Environment, of_exporter, pairs, variable};
use crate::disk::reason;

/// Where collectors are unless it is said.
const USUAL: &str = "http://localhost:4318";
/// What is added to an address for everything.
const TRACES: &str = "v1/traces";
/// The one protocol that is spoken. The specification's own default, for which no variable is needed, goes to the same address.
const PROTOCOL: &str = "http/json";
/// Milliseconds that sending may take, tries and pauses and all.
const PATIENCE: u64 = 10_000;
/// The same where 0 asks for no limit: a run that never ends helps nobody.
const LONGEST: u64 = 3_600_000;
/// Milliseconds before the second try; each further pause is twice as long.
const PAUSE: u64 = 250;
/// More of an answer than this is not read.
const ANSWER: usize = 65_536;

/// True if the environment asks for traces to be sent.
pub(super) fn wants_traces(environment: &Environment) -> bool {
    let is_off = variable(environment, "OTEL_SDK_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let asked = variable(environment, "OTEL_TRACES_EXPORTER").unwrap_or_default();
    !is_off && asked.split(',').any(|one| one.trim() == "otlp")
}

/// Who takes traces, and how.
#[derive(Debug)]
pub(super) struct Collector {
    url: Url,
    headers: HeaderMap,
    /// Milliseconds.
    patience: u64,
    /// Certificates of authorities, instead of the system's.
    trusted: Option<Vec<Certificate>>,
    identity: Option<Identity>,
    proxies: Vec<Proxy>,
}

impl Collector {
    /// As the environment has it. `said`: what of it is not used. Files are relative to `directory`.
    ///
    /// # Errors
    /// Why nothing can be sent with it.
    pub(super) fn read(environment: &Environment, directory: &Path, said: &mut Diagnostics) -> Result<Self, Diagnostic> {
        if let Some((name, value)) = of_exporter(environment, "PROTOCOL").filter(|(_, value)| *value != PROTOCOL) {
            let asked = if matches!(value, "grpc" | "http/protobuf") { format!("\"{value}\"") } else { "something else".to_owned() };
            let why = format!("{name} asks for {asked}, and karmaform speaks \"{PROTOCOL}\" alone.");
            let hint = "Set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json, which collectors take where they take http/protobuf (port 4318 as a rule, not gRPC's 4317).";
            return Err(unsent(why).with_hint(hint));
        }
        let (identity, proxies) = (identity(environment, directory)?, proxies(environment)?);
        Ok(Self {
            url: address(environment)?,
            headers: headers(environment)?,
            patience: patience(environment, said),
            trusted: trusted(environment, directory)?,
            identity,
            proxies,
        })
    }

    /// The address without what may be a secret in it.
    fn place(&self) -> String {
        let mut shown = self.url.clone();
        let _ = shown.set_username("").and_then(|()| shown.set_password(None));
        shown.set_query(None);
        shown.set_fragment(None);
        shown.to_string()
    }

    fn client(&self) -> Result<reqwest::Client, reqwest::Error> {
        // What the process's environment says of proxies was read already; whoever is named elsewhere by an answer gets no headers.
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .http1_only()
            .user_agent(concat!("karmaform/", env!("CARGO_PKG_VERSION")));
        for proxy in self.proxies.iter().cloned() {
            builder = builder.proxy(proxy);
        }
        if let Some(trusted) = &self.trusted {
            builder = builder.tls_certs_only(trusted.iter().cloned());
        } else if self.url.scheme() == "http" {
            // An image without a store of authorities can still send to its neighbour.
            builder = builder.tls_certs_only([]);
        }
        if let Some(identity) = &self.identity {
            builder = builder.identity(identity.clone());
        }
        builder.build()
    }

    /// Sends a trace, and takes no longer than the environment allows.
    ///
    /// # Errors
    /// Why it did not arrive, or not all of it.
    pub(super) async fn send(self, trace: String) -> Result<(), Diagnostic> {
        let limit = Duration::from_millis(self.patience);
        tokio::time::timeout(limit, self.tries(&trace)).await.unwrap_or_else(|_| {
            Err(unsent(format!("The collector at {} did not take it within {} ms.", self.place(), self.patience))
                .with_hint("Check that it is well. OTEL_EXPORTER_OTLP_TIMEOUT says how long it may take, in milliseconds."))
        })
    }

    async fn tries(&self, trace: &str) -> Result<(), Diagnostic> {
        let client = self.client().map_err(|e| self.broken(&e))?;
        let mut pause = Duration::from_millis(PAUSE);
        loop {
            let request = client.post(self.url.clone()).headers(self.headers.clone()).header(CONTENT_TYPE, "application/json");
            let answer = request.body(trace.to_owned()).send().await.map_err(|e| self.broken(&e))?;
            let status = answer.status();
            if status.is_success() {
                return self.taken(answer).await;
            }
            if !matches!(status.as_u16(), 429 | 502..=504) {
                return Err(self.refused(status));
            }
            let asked = answer.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
            let next = asked.unwrap_or(pause);
            // Waiting for a try that there is no time for helps nobody.
            if next >= Duration::from_millis(self.patience) {
                return Err(self.refused(status));
            }
            tokio::time::sleep(next).await;
            pause *= 2;
        }
    }

    /// A collector may take a part alone, and says so in its answer.
    async fn taken(&self, mut answer: reqwest::Response) -> Result<(), Diagnostic> {
        let mut body = Vec::new();
        while let Ok(Some(piece)) = answer.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER {
                break;
            }
        }
        let said: Json = serde_json::from_slice(&body).unwrap_or_default();
        let rejected = &said["partialSuccess"]["rejectedSpans"];
        let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).filter(|count| *count > 0);
        let Some(count) = rejected else { return Ok(()) };
        let spans = if count == 1 { "1 span".to_owned() } else { format!("{count} spans") };
        let why = format!("The collector at {} did not take {spans} of it.", self.place());
        Err(Diagnostic::warning("Trace sent in part", why).with_hint("Its log says why."))
    }

    fn refused(&self, status: StatusCode) -> Diagnostic {
        let hint = match status.as_u16() {
            401 | 403 => "Check OTEL_EXPORTER_OTLP_HEADERS: they say who sends.",
            300..=399 => {
                "It sends one on to another address, to which no headers go: name that one in OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, if you trust it."
            }
            404 | 405 => {
                "Check OTEL_EXPORTER_OTLP_ENDPOINT, to which /v1/traces is added, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, which is taken as it is."
            }
            400 | 415 => "Check that it takes OTLP over HTTP as JSON at this address.",
            _ => "Check that it is well; its log says more.",
        };
        unsent(format!("The collector at {} answered {}.", self.place(), status.as_u16())).with_hint(hint)
    }

    fn broken(&self, error: &reqwest::Error) -> Diagnostic {
        let why = innermost(error);
        let hint = if why.to_lowercase().contains("certificate") || why.contains("UnknownIssuer") {
            "OTEL_EXPORTER_OTLP_CERTIFICATE names a file with the authority that it is to be trusted by."
        } else {
            "Check OTEL_EXPORTER_OTLP_ENDPOINT and the network, or send nothing: OTEL_TRACES_EXPORTER=none."
        };
        unsent(format!("The collector at {} can't be reached ({why}).", self.place())).with_hint(hint)
    }
}

fn unsent(why: String) -> Diagnostic {
    Diagnostic::warning("Trace not sent", why)
}

/// Where traces go: as it is if it is said of them, and else below what is said of everything.
fn address(environment: &Environment) -> Result<Url, Diagnostic> {
    let of_traces = variable(environment, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let (name, text) = match of_traces {
        Some(text) => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text),
        None => ("OTEL_EXPORTER_OTLP_ENDPOINT", variable(environment, "OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or(USUAL)),
    };
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
    let mut url = url.ok_or_else(|| {
        unsent(format!("{name} is no address: that is http:// or https://, a host, and perhaps a path."))
            .with_hint("Write it like http://localhost:4318.")
    })?;
    if of_traces.is_none() {
        let path = format!("{}/{TRACES}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

fn headers(environment: &Environment) -> Result<HeaderMap, Diagnostic> {
    let mut all = HeaderMap::new();
    let Some((variable, text)) = of_exporter(environment, "HEADERS") else { return Ok(all) };
    let read = pairs(text).and_then(|list| {
        list.into_iter().try_for_each(|(name, value)| {
            let mut value = HeaderValue::from_bytes(&value).ok()?;
            value.set_sensitive(true);
            all.insert(HeaderName::try_from(name).ok()?, value);
            Some(())
        })
    });
    match read {
        Some(()) => Ok(all),
        None => Err(unsent(format!("{variable} is no list of headers like name=value,name=value."))
            .with_hint("Write commas and what is no plain text in a value as %2C and so on.")),
    }
}

fn patience(environment: &Environment, said: &mut Diagnostics) -> u64 {
    let Some((name, text)) = of_exporter(environment, "TIMEOUT") else { return PATIENCE };
    match text.parse() {
        Ok(0) => LONGEST,
        Ok(milliseconds) => LONGEST.min(milliseconds),
        Err(_) => {
            let why = format!("{name} must be a whole number of milliseconds, so it is not used, and {PATIENCE} is.");
            said.push(Diagnostic::warning("Invalid environment variable", why));
            PATIENCE
        }
    }
}

/// A file that a variable names.
fn file(environment: &Environment, directory: &Path, option: &str) -> Result<Option<(String, Vec<u8>)>, Diagnostic> {
    let Some((name, path)) = of_exporter(environment, option) else { return Ok(None) };
    match std::fs::read(directory.join(path)) {
        Ok(bytes) => Ok(Some((name, bytes))),
        Err(e) => Err(unsent(format!("The file {path}, which {name} names, can't be read: {}.", reason(&e)))
            .with_hint("Correct that variable, or unset it.")),
    }
}

fn unusable(name: &str) -> Diagnostic {
    unsent(format!("The file that {name} names has not what it should have in it.")).with_hint("It is text (PEM).")
}

fn trusted(environment: &Environment, directory: &Path) -> Result<Option<Vec<Certificate>>, Diagnostic> {
    let Some((name, bytes)) = file(environment, directory, "CERTIFICATE")? else { return Ok(None) };
    let found = Certificate::from_pem_bundle(&bytes).ok().filter(|all| !all.is_empty());
    found.map(Some).ok_or_else(|| unusable(&name))
}

/// Certificate and key of ours, where a collector wants to see them.
fn identity(environment: &Environment, directory: &Path) -> Result<Option<Identity>, Diagnostic> {
    let certificate = file(environment, directory, "CLIENT_CERTIFICATE")?;
    match (certificate, file(environment, directory, "CLIENT_KEY")?) {
        (Some((name, certificate)), Some((_, key))) => {
            let both = [certificate, b"\n".to_vec(), key].concat();
            Identity::from_pem(&both).map(Some).map_err(|_| unusable(&name))
        }
        (None, None) => Ok(None),
        _ => Err(unsent(
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY go together, and one is missing.".to_owned(),
        )
        .with_hint("Set both, or neither.")),
    }
}

/// By curl's convention, which Go's library shares; what is on this machine is never asked for through one.
fn proxies(environment: &Environment) -> Result<Vec<Proxy>, Diagnostic> {
    let either = |name: &str| variable(environment, name).or_else(|| variable(environment, &name.to_uppercase()));
    let except = format!("localhost,127.0.0.0/8,::1,{}", either("no_proxy").unwrap_or_default());
    let mut all = Vec::new();
    for (name, of) in [("http_proxy", Proxy::http as fn(String) -> _), ("https_proxy", Proxy::https)] {
        let Some(address) = either(name) else { continue };
        let proxy = of(address.to_owned()).map_err(|_| unsent(format!("{name} in the environment is no address of a proxy.")))?;
        all.push(proxy.no_proxy(NoProxy::from_string(&except)));
    }
    Ok(all)
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
