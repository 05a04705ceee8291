//! How a cluster is reached: from arguments or a connection value to a client's configuration, and back to a value.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use karmaform_model::{Attribute, Diagnostic, Object, Type, Value, listed};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::values::{encode, text};

/// The provider's name, in connection values.
pub(crate) const PROVIDER: &str = "kubernetes";

const TIMEOUT: i64 = 10;

/// The attributes that say how a cluster is reached; the same in the data source and in a connection value.
pub(crate) fn attributes() -> Vec<Attribute> {
    vec![
        Attribute::optional("kubeconfig", Type::String, "Content of a kubeconfig. Programs that it names for credentials are run.")
            .secret(),
        Attribute::optional("kubeconfig_file", Type::String, "File of a kubeconfig. \"~\" is not expanded: use `pathexpand`."),
        Attribute::optional("context", Type::String, "Context of the kubeconfig; its current one by default."),
        Attribute::optional(
            "address",
            Type::String,
            "URL of the API server, for access without a kubeconfig. With neither, the access of the pod that karmaform runs in is used.",
        ),
        Attribute::optional(
            "ca_certificate",
            Type::String,
            "With `address`: certificate of the authority that the server's is signed by, PEM.",
        ),
        Attribute::optional("token", Type::String, "With `address`: bearer token.").secret(),
        Attribute::optional("client_certificate", Type::String, "With `address`: client certificate, PEM."),
        Attribute::optional("client_key", Type::String, "With `client_certificate`: its private key, PEM.").secret(),
        Attribute::optional(
            "proxy_url",
            Type::String,
            "Proxy on the way to the server: \"http://...\", \"https://...\" or \"socks5://...\".",
        ),
        Attribute::optional("timeout", Type::Number, "Seconds for connecting; 10 by default."),
        Attribute::optional(
            "requests_per_second",
            Type::Number,
            "The most requests that it is asked in a second, by everything that uses this connection; as many as there are unless written.",
        ),
        Attribute::optional(
            "required",
            Type::Bool,
            "Whether the cluster must answer when a plan is made. If false, one that does not is worth a warning, and what the state remembers \
             of what is there is taken to be so: a fleet is not held up by one dead cluster.",
        ),
    ]
}

/// False for a cluster that may be gone.
pub(crate) fn is_required(connection: &Object) -> bool {
    connection.get("required").and_then(Value::as_bool) != Some(false)
}

/// Where what is needed to connect comes from.
#[derive(Clone, PartialEq, Eq)]
enum Way {
    Kubeconfig { content: String, context: Option<String> },
    File { path: PathBuf, context: Option<String> },
    Address { address: String, ca: Option<String>, token: Option<String>, identity: Option<(String, String)> },
    InCluster,
}

/// Everything needed to connect. Holds secrets, so it has no `Debug`.
#[derive(Clone, PartialEq)]
pub(crate) struct Options {
    way: Way,
    proxy: Option<String>,
    /// The connection that the address is reached through.
    via: Option<Object>,
    /// For connecting.
    pub(crate) timeout: Duration,
    /// Between two requests.
    pub(crate) every: Duration,
}

/// What a way says of the server at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) url: String,
    /// The authority of its certificate, as PEM; empty if the system's are asked.
    pub(crate) ca: String,
    /// Its certificate is looked at.
    pub(crate) is_verified: bool,
}

impl Server {
    /// From a client's configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let pem = |der: &Vec<u8>| {
            let lines = encode(der).into_bytes();
            let lines: Vec<_> = lines.chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
        };
        Self {
            url: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            ca: config.root_cert.iter().flatten().map(pem).collect(),
            is_verified: !config.accept_invalid_certs,
        }
    }
}

/// Where something is that is reached through another connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beyond {
    /// That connection.
    pub(crate) via: Object,
    /// As seen from its other end.
    pub(crate) host: String,
    /// Of the host.
    pub(crate) port: u16,
    /// The whole address, for messages.
    pub(crate) place: String,
}

impl Options {
    /// From a data source's arguments or a connection value.
    pub(crate) fn new(arguments: &Object) -> Result<Self, Diagnostic> {
        let given = |name: &str| text(arguments, name).map(str::to_owned);
        let contradicting = |detail: String| {
            Diagnostic::error("Contradicting ways to the cluster", detail).with_hint(
                "Give `kubeconfig`, or `kubeconfig_file`, or `address` with what belongs to it, or nothing to use the pod's own access.",
            )
        };
        let ways: Vec<&str> = ["kubeconfig", "kubeconfig_file", "address"].into_iter().filter(|n| text(arguments, n).is_some()).collect();
        if ways.len() > 1 {
            return Err(contradicting(format!("{} are given together, and only one of them can be used.", list(&ways))));
        }
        let of_address = ["ca_certificate", "token", "client_certificate", "client_key"];
        let strays: Vec<&str> = match ways.first() {
            Some(&"address") => ["context"].into_iter().filter(|n| text(arguments, n).is_some()).collect(),
            Some(_) => of_address.into_iter().filter(|n| text(arguments, n).is_some()).collect(),
            None => of_address.into_iter().chain(["context"]).filter(|n| text(arguments, n).is_some()).collect(),
        };
        if !strays.is_empty() {
            let with = ways.first().map_or("without a way to the cluster".to_owned(), |w| format!("together with `{w}`"));
            return Err(contradicting(format!("{} {} given {with}, where it means nothing.", list(&strays), is_are(&strays))));
        }
        let identity = match (given("client_certificate"), given("client_key")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(contradicting("`client_certificate` and `client_key` belong together, and one of them is missing.".to_owned()));
            }
        };
        let context = given("context");
        let way = if let Some(content) = given("kubeconfig") {
            Way::Kubeconfig { content, context }
        } else if let Some(path) = given("kubeconfig_file") {
            Way::File { path: path.into(), context }
        } else if let Some(address) = given("address") {
            Way::Address { address, ca: given("ca_certificate"), token: given("token"), identity }
        } else {
            Way::InCluster
        };
        let seconds = arguments.get("timeout").and_then(Value::as_i64).unwrap_or(TIMEOUT);
        let timeout = u64::try_from(seconds)
            .ok()
            .filter(|s| *s > 0)
            .map(Duration::from_secs)
            .ok_or_else(|| Diagnostic::error("Bad timeout", format!("`timeout` is {seconds}, but must be at least 1 second.")))?;
        let every = match arguments.get("requests_per_second").filter(|v| !v.is_null()) {
            None => Duration::ZERO,
            Some(value) => {
                let rate = value.as_i64().and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=10_000).contains(n));
                let detail = "`requests_per_second` must be a whole number from 1 to 10000.";
                Duration::from_secs(1) / rate.ok_or_else(|| Diagnostic::error("Bad rate of requests", detail))?
            }
        };
        let via = arguments.get("via").and_then(Value::as_entries).cloned();
        if via.is_some() && !matches!(way, Way::Address { .. }) {
            return Err(contradicting("A connection through another one (`via`) needs an `address`.".to_owned()));
        }
        Ok(Self { way, proxy: given("proxy_url"), via, timeout, every })
    }

    /// For what is behind another connection: where it is.
    pub(crate) fn beyond(&self) -> Result<Option<Beyond>, Diagnostic> {
        let (Some(via), Way::Address { address, .. }) = (&self.via, &self.way) else { return Ok(None) };
        let parsed = url(address)?;
        Ok(Some(Beyond {
            via: via.clone(),
            host: host(&parsed).to_owned(),
            port: port(&parsed),
            place: address.trim_end_matches('/').to_owned(),
        }))
    }

    /// The client's configuration for what is reached at a local address, and is called `host` in its certificate.
    pub(crate) async fn config_at(&self, local: SocketAddr, host: &str) -> Result<Config, Diagnostic> {
        redirected(self.config().await?, local, host)
    }

    /// The client's configuration.
    pub(crate) async fn config(&self) -> Result<Config, Diagnostic> {
        let mut config = match &self.way {
            Way::Kubeconfig { content, context } => {
                // The parser's own message quotes the text around the error, and that may be a key.
                let parsed = Kubeconfig::from_yaml(content).map_err(|_| bad("It is no YAML of a kubeconfig."))?;
                from_kubeconfig(parsed, context.as_ref()).await?
            }
            Way::File { path, context } => {
                let parsed = Kubeconfig::read_from(path).map_err(|e| match e {
                    KubeconfigError::ReadConfig(cause, path) => {
                        let home = path.starts_with("~").then_some("\"~\" is not expanded here: write `pathexpand(\"~/...\")`.");
                        let error = bad(&format!("{} can't be read: {cause}.", path.display()));
                        home.map_or(error.clone(), |h| error.with_hint(h))
                    }
                    _ => bad(&format!("{} is no YAML of a kubeconfig.", path.display())),
                })?;
                from_kubeconfig(parsed, context.as_ref()).await?
            }
            Way::Address { address, ca, token, identity } => {
                by_address(address, ca.as_deref(), token.as_deref(), identity.as_ref()).await?
            }
            Way::InCluster => Config::incluster().map_err(|e| {
                Diagnostic::error(
                    "No way to a cluster",
                    format!("Nothing says how to reach the cluster, and karmaform does not run in one: {e}."),
                )
                .with_hint("Set `kubeconfig_file`, `kubeconfig` or `address`.")
            })?,
        };
        if let Some(proxy) = &self.proxy {
            let parsed = proxy.parse().map_err(|_| Diagnostic::error("Bad proxy URL", "`proxy_url` is no URL."))?;
            config.proxy_url = Some(parsed);
        }
        config.connect_timeout = Some(self.timeout);
        // The library's knows no end but ours, and not why. See `again`.
        config.default_retry = false;
        Ok(config)
    }

    /// The connection value: what was given, without what was not. `id` says which cluster it is, not known of one that did not answer;
    /// `version`, its server's version, lets others choose versions of APIs by it; `server` is its URL, and `server_ca` the
    /// authority of its certificate, as PEM.
    pub(crate) fn value(arguments: &Object, id: Value, version: Value, server: &Server) -> Value {
        let mut connection = Object::new();
        for attribute in attributes() {
            if let Some(value) = arguments.get(attribute.name).filter(|v| !v.is_null()) {
                connection.insert(attribute.name.to_owned(), value.clone().secret_if(attribute.secret));
            }
        }
        connection.insert("provider".to_owned(), PROVIDER.into());
        connection.insert("id".to_owned(), id);
        connection.insert("version".to_owned(), version);
        connection.insert("server".to_owned(), server.url.as_str().into());
        if !server.ca.is_empty() {
            connection.insert("server_ca".to_owned(), server.ca.as_str().into());
        }
        if !server.is_verified {
            connection.insert("insecure".to_owned(), true.into());
        }
        connection.into()
    }
}

fn list(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" and ")
}

fn is_are(names: &[&str]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

fn bad(detail: &str) -> Diagnostic {
    Diagnostic::error("Unusable kubeconfig", detail)
}

fn bad_address() -> Diagnostic {
    Diagnostic::error("Bad address of the cluster", "`address` is no URL.").with_hint("Write it like \"https://10.0.0.1:6443\".")
}

/// The same configuration, for what is reached at a local address and is called `host` in its certificate.
pub(crate) fn redirected(mut config: Config, local: SocketAddr, host: &str) -> Result<Config, Diagnostic> {
    let mut parts = config.cluster_url.into_parts();
    parts.authority = local.to_string().parse().ok();
    config.cluster_url = http::Uri::from_parts(parts).map_err(|_| bad_address())?;
    config.tls_server_name = Some(host.to_owned());
    // The way is another one already.
    config.proxy_url = None;
    Ok(config)
}

/// The host of a URL, without the brackets of an IPv6 address.
pub(crate) fn host(url: &http::Uri) -> &str {
    url.host().unwrap_or_default().trim_matches(['[', ']'])
}

/// The port of a URL: what is written, or what is usual.
pub(crate) fn port(url: &http::Uri) -> u16 {
    let usual = match url.scheme_str() {
        Some("http") => 80,
        Some("socks5") => 1080,
        _ => 443,
    };
    url.port_u16().unwrap_or(usual)
}

fn url(address: &str) -> Result<http::Uri, Diagnostic> {
    address.parse::<http::Uri>().ok().filter(|u| u.scheme().is_some() && u.host().is_some()).ok_or_else(bad_address)
}

/// By way of a kubeconfig made up for it: so certificates and keys are checked and used as those of any other.
async fn by_address(
    address: &str,
    ca: Option<&str>,
    token: Option<&str>,
    identity: Option<&(String, String)>,
) -> Result<Config, Diagnostic> {
    url(address)?;
    let quoted = |text: &str| serde_json::Value::from(text);
    let mut cluster = serde_json::json!({ "server": quoted(address) });
    if let Some(ca) = ca {
        cluster["certificate-authority-data"] = quoted(&encode(ca.as_bytes()));
    }
    let mut user = serde_json::json!({});
    if let Some(token) = token {
        user["token"] = quoted(token);
    }
    if let Some((certificate, key)) = identity {
        user["client-certificate-data"] = quoted(&encode(certificate.as_bytes()));
        user["client-key-data"] = quoted(&encode(key.as_bytes()));
    }
    let whole = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": cluster }],
        "users": [{ "name": "c", "user": user }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "c" } }],
    });
    let parsed = Kubeconfig::from_yaml(&whole.to_string()).map_err(|_| bad("The arguments make none."))?;
    from_kubeconfig(parsed, None).await
}

async fn from_kubeconfig(parsed: Kubeconfig, context: Option<&String>) -> Result<Config, Diagnostic> {
    let mut names: Vec<&str> = parsed.contexts.iter().map(|c| c.name.as_str()).collect();
    names.sort_unstable();
    let names = if names.is_empty() { "It has no contexts.".to_owned() } else { format!("It has {}.", listed(names)) };
    let options = KubeConfigOptions { context: context.cloned(), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(parsed, &options).await.map_err(|error| match error {
        KubeconfigError::CurrentContextNotSet => {
            Diagnostic::error("Context not found", format!("The kubeconfig has no current context, and none is asked for. {names}"))
                .with_hint("Set `context`.")
        }
        KubeconfigError::LoadContext(name) => {
            Diagnostic::error("Context not found", format!("The kubeconfig has no context \"{name}\". {names}"))
                .with_hint("Correct `context`.")
        }
        KubeconfigError::LoadClusterOfContext(name) => bad(&format!("Its context names the cluster \"{name}\", which is not in it.")),
        KubeconfigError::MissingClusterUrl => bad("The cluster in it has no `server`."),
        KubeconfigError::ParseClusterUrl(_) => bad("The `server` in it is no URL."),
        KubeconfigError::ParseProxyUrl(_) => bad("The `proxy-url` in it, or in HTTPS_PROXY, is no URL."),
        KubeconfigError::LoadCertificateAuthority(_) => {
            bad("Its certificate authority can't be read: the file is missing or the data is no base64.")
        }
        KubeconfigError::LoadClientCertificate(_) => {
            bad("Its client certificate can't be read: the file is missing or the data is no base64.")
        }
        KubeconfigError::LoadClientKey(_) => bad("Its client key can't be read: the file is missing or the data is no base64."),
        KubeconfigError::ParseCertificates(_) => bad("The certificate authority is no PEM."),
        _ => bad("The client library refuses it."),
    })
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
