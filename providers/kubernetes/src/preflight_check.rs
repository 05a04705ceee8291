//! What a preflight tries: that the address leads from the pod to the cluster that is meant, with its certificate and our credentials.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use karmaform_model::{Diagnostic, Object, Value, to_json};
use kube::Config;
use kube::api::GetParams;
use kube::core::Request;
use serde_json::Value as Json;

use crate::act::seconds;
use crate::client::Client;
use crate::connection::{Options, host, port, redirected};
use crate::failure::{Call, Failure};
use crate::preflight::KIND;
use crate::preflight_pod::{Doorway, Way};
use crate::values::{encode, is_true, text};

/// The summary that says that there is no namespace for the pod.
pub(crate) const NO_NAMESPACE: &str = "No namespace for the preflight";
/// The default of the schema.
const TIMEOUT: u64 = 60;
/// Ways that are tried at a time through one pod.
const AT_ONCE: usize = 8;
/// What `nc` is given to say why there is no way.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A way that is to be tried.
pub(crate) struct Wanted {
    namespace: String,
    image: String,
    /// Of the pod's `spec`.
    fields: Json,
    limit: Duration,
    address: http::Uri,
    proxy: Option<http::Uri>,
    ca: Option<Vec<Vec<u8>>>,
    is_insecure: bool,
    options: Options,
    /// The UID of its namespace `kube-system`.
    id: Option<String>,
}

impl Wanted {
    /// Of arguments; none as long as some of them are not known.
    pub(crate) fn read(wanted: &Object) -> Result<Option<Self>, Diagnostic> {
        let needed = ["namespace", "image", "pod", "address", "target", "ca_certificate", "proxy_url"];
        if needed.iter().any(|name| wanted.get(name).is_some_and(|v| !v.is_wholly_known())) {
            return Ok(None);
        }
        let (Some(namespace), Some(image), Some(address)) = (text(wanted, "namespace"), text(wanted, "image"), text(wanted, "address"))
        else {
            return Ok(None);
        };
        let Some(target) = wanted.get("target").and_then(Value::as_entries) else {
            return Err(bad("`target` is no connection to a cluster."));
        };
        let mut way = target.clone();
        // How it is reached from here is another way.
        for name in ["via", "proxy_url"] {
            way.remove(name);
        }
        let proxy = match text(wanted, "proxy_url").map(|p| uri("proxy_url", p)).transpose()? {
            Some(proxy) if !matches!(proxy.scheme_str(), Some("http" | "socks5")) => {
                return Err(bad("`proxy_url` must begin with \"http://\" or \"socks5://\": another proxy can't be tried."));
            }
            Some(proxy) if proxy.scheme_str() == Some("socks5") && credentials(&proxy).is_some() => {
                return Err(bad("`proxy_url` has a user, and a proxy with \"socks5://\" and a user can't be tried."));
            }
            proxy => proxy,
        };
        Ok(Some(Self {
            namespace: namespace.to_owned(),
            image: image.to_owned(),
            fields: wanted.get("pod").map(to_json).unwrap_or_default(),
            limit: seconds(wanted, TIMEOUT),
            address: uri("address", address)?,
            proxy,
            ca: text(wanted, "ca_certificate").map(authorities).transpose()?,
            is_insecure: is_true(wanted, "insecure"),
            options: Options::new(&way)?,
            // What karmaform made itself is called by its place in the configuration.
            id: text(target, "id").filter(|_| target.get("via").is_none_or(Value::is_null)).map(str::to_owned),
        }))
    }

    /// The address, for messages.
    fn place(&self) -> String {
        self.address.to_string().trim_end_matches('/').to_owned()
    }

    /// What is tried, in a word for a list of what was.
    fn called(&self) -> String {
        let Self { namespace, image, address, proxy, is_insecure, id, .. } = self;
        let ca = self.ca.iter().flatten().map(|c| encode(c)).collect::<String>();
        format!("{KIND} {namespace} {image} {address} {proxy:?} {is_insecure} {id:?} {ca}")
    }

    /// The client's configuration, for the way from a local address.
    async fn config(&self, way: &Way) -> Result<Config, Diagnostic> {
        let mut config = self.options.config().await?;
        config.cluster_url = self.address.clone();
        let mut config = match &self.proxy {
            Some(proxy) => {
                let scheme = proxy.scheme_str().unwrap_or("http");
                let user = credentials(proxy).map(|c| format!("{c}@")).unwrap_or_default();
                let local = format!("{scheme}://{user}{}", way.local).parse().map_err(|_| bad("`proxy_url` is no URL."))?;
                config.proxy_url = Some(local);
                config.tls_server_name = None;
                config
            }
            None => redirected(config, way.local, host(&self.address))?,
        };
        // The whole is limited; what is connected to at once is only this machine.
        config.connect_timeout = None;
        if self.ca.is_some() {
            config.root_cert = self.ca.clone();
        }
        config.accept_invalid_certs = self.is_insecure;
        Ok(config)
    }
}

fn bad(detail: &str) -> Diagnostic {
    Diagnostic::error("Preflight can't be made", detail)
}

fn uri(name: &str, text: &str) -> Result<http::Uri, Diagnostic> {
    let parsed = text.parse::<http::Uri>().ok().filter(|u| u.scheme().is_some() && u.host().is_some());
    parsed.ok_or_else(|| bad(&format!("`{name}` is no URL.")).with_hint("Write it like \"https://10.0.0.1:6443\"."))
}

/// Who asks, as it is written before the host.
fn credentials(uri: &http::Uri) -> Option<&str> {
    uri.authority()?.as_str().rsplit_once('@').map(|(user, _)| user)
}

fn authorities(pem: &str) -> Result<Vec<Vec<u8>>, Diagnostic> {
    let found: Result<Vec<_>, _> = x509_parser::pem::Pem::iter_from_buffer(pem.as_bytes()).map(|p| p.map(|p| p.contents)).collect();
    found.ok().filter(|f| !f.is_empty()).ok_or_else(|| bad("`ca_certificate` is no certificate in PEM."))
}

/// Tries all of them, through one pod for all that can share one. Those that this client has tried with success are not tried again.
pub(crate) async fn all(client: &Client, wanted: &[Wanted]) -> Vec<Result<(), Diagnostic>> {
    let mut answers: Vec<Result<(), Diagnostic>> = wanted.iter().map(|_| Ok(())).collect();
    let mut groups: BTreeMap<(&str, &str, String, Duration), Vec<usize>> = BTreeMap::new();
    for (number, one) in wanted.iter().enumerate().filter(|(_, one)| !client.has_passed(&one.called())) {
        groups.entry((&one.namespace, &one.image, one.fields.to_string(), one.limit)).or_default().push(number);
    }
    let tried = groups.into_iter().map(|((namespace, image, _, limit), numbers)| async move {
        let fields = numbers.first().map(|n| wanted[*n].fields.clone()).unwrap_or_default();
        let doorway = match Doorway::open(client, namespace, image, &fields, (limit, numbers.len())).await {
            Ok(doorway) => doorway,
            Err(error) => return numbers.into_iter().map(|n| (n, Err(error.clone()))).collect(),
        };
        let places = tokio::sync::Semaphore::new(AT_ONCE);
        let found = join_all(numbers.iter().map(|n| in_turn(&places, one(client, &doorway, &wanted[*n])))).await;
        doorway.end().await;
        numbers.into_iter().zip(found).collect::<Vec<_>>()
    });
    for (number, answer) in join_all(tried).await.into_iter().flatten() {
        if answer.is_ok() {
            client.passed(wanted[number].called());
        }
        answers[number] = answer;
    }
    answers
}

/// When there is room.
async fn in_turn<T>(places: &tokio::sync::Semaphore, work: impl Future<Output = T>) -> T {
    let _place = places.acquire().await;
    work.await
}

async fn one(client: &Client, doorway: &Doorway, wanted: &Wanted) -> Result<(), Diagnostic> {
    let goal = wanted.proxy.as_ref().unwrap_or(&wanted.address);
    let way = doorway.to(host(goal), port(goal)).await?;
    let config = wanted.config(&way).await?;
    let limit = wanted.options.timeout;
    // Programs that give credentials are run here: they take their time, and are waited for where waiting is allowed.
    let made = tokio::task::spawn_blocking(move || kube::Client::try_from(config)).await;
    let asked = async {
        let kube = made.map_err(|_| Failure::Timeout)?.map_err(|e| Failure::Kube(Box::new(e)))?;
        let request = Request::new("/api/v1/namespaces").get("kube-system", &GetParams::default());
        let request = request.map_err(|e| Failure::Kube(Box::new(kube::Error::BuildRequest(e))))?;
        kube.request::<Json>(request).await.map_err(|e| Failure::Kube(Box::new(e)))
    };
    let answer = tokio::time::timeout(limit, asked).await.unwrap_or(Err(Failure::Timeout));
    let from = format!("From a pod in the namespace \"{}\" of {}", wanted.namespace, client.place());
    match answer {
        Ok(found) => match (found["metadata"]["uid"].as_str(), &wanted.id) {
            (Some(uid), Some(id)) if uid != id => {
                let detail = format!("{from}, {} leads to another cluster than the connection does.", wanted.place());
                Err(Diagnostic::error("Another cluster answers", detail)
                    .with_hint("Correct the address, or the kubeconfig: the UIDs of their namespaces kube-system differ."))
            }
            _ => Ok(()),
        },
        Err(failure) => {
            // It may still be about to say why it ended.
            if failure.is_cut() && way.said().is_empty() {
                tokio::time::sleep(LAST_WORDS).await;
            }
            Err(told(wanted, &from, &way.said(), &failure, limit))
        }
    }
}

/// What is wrong with the way, in the words of the first thing on it that failed: name, connection, certificate, credentials.
fn told(wanted: &Wanted, from: &str, said: &str, failure: &Failure, limit: Duration) -> Diagnostic {
    let (goal, what) = match &wanted.proxy {
        Some(proxy) => (host(proxy), format!("the proxy {}:{}", host(proxy), port(proxy))),
        None => (host(&wanted.address), wanted.place()),
    };
    let error = |detail: String| Diagnostic::error("No way to the server from there", detail);
    if said.contains("not found") && said.contains("nc") {
        return Diagnostic::error("Preflight can't be made", format!("The image \"{}\" has no program `nc`: {said}.", wanted.image))
            .with_hint("Give another `image`, with the programs `sleep` and `nc`.");
    }
    if ["bad address", "forward host lookup failed", "not known", "resolve"].iter().any(|w| said.contains(w)) {
        return error(format!("{from}, the name {goal} is not known: {said}."))
            .with_hint("Give an address that is known there, or make its name service know it.");
    }
    if !said.is_empty() {
        return error(format!("{from}, {what} can't be reached: {said}."))
            .with_hint("See whether the address is right, and what is between.");
    }
    if matches!(failure, Failure::Timeout) {
        return error(format!("{from}, {what} does not answer within {} s.", limit.as_secs()))
            .with_hint("See whether a firewall or a network policy is between.");
    }
    let call = Call { verb: "get", resource: "namespaces".to_owned(), namespace: None, name: "kube-system".to_owned() };
    let told = failure.diagnostic(&wanted.place(), &call, &[]);
    // It has a summary of its own: it is no word about the cluster that the pod runs in, which may be one that need not answer.
    told.hints.into_iter().fold(error(format!("{from}: {}", told.detail)), Diagnostic::with_hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;
    use karmaform_model::Type;

    fn wanted(address: &str) -> Object {
        let target = Value::object([("provider", "kubernetes".into()), ("address", "https://a".into()), ("id", "u".into())]);
        object([("namespace", "n".into()), ("image", "i".into()), ("address", address.into()), ("target", target)])
    }

    #[test]
    fn what_is_not_known_yet_is_not_tried() {
        let mut object = wanted("https://h");
        assert!(Wanted::read(&object).unwrap().is_some_and(|w| w.id.as_deref() == Some("u")));
        object.insert("image".to_owned(), Value::unknown(Type::String));
        assert!(Wanted::read(&object).unwrap().is_none());
        let mut made = wanted("https://h");
        let via = Value::object([("provider", "kubernetes".into()), ("id", "h".into())]);
        made.insert(
            "target".to_owned(),
            Value::object([("provider", "kubernetes".into()), ("address", "https://a".into()), ("id", "r.main".into()), ("via", via)]),
        );
        assert!(Wanted::read(&made).unwrap().is_some_and(|w| w.id.is_none()));
    }

    #[test]
    fn bad_urls_are_said() {
        let problem = |object: &Object| Wanted::read(object).err().map(|d| d.detail).unwrap_or_default();
        assert_eq!(problem(&wanted("h:1")), "`address` is no URL.");
        let mut object = wanted("https://h");
        object.insert("proxy_url".to_owned(), "https://p".into());
        assert!(problem(&object).contains("another proxy can't be tried"));
        object.remove("proxy_url");
        object.insert("ca_certificate".to_owned(), "x".into());
        assert!(problem(&object).contains("no certificate in PEM"));
    }

    #[test]
    fn the_first_thing_that_fails_is_said() {
        let wanted = Wanted::read(&wanted("https://h:6443/")).unwrap().unwrap();
        let told = |said: &str| told(&wanted, "From a pod", said, &Failure::Timeout, Duration::from_secs(10)).detail;
        assert_eq!(told("nc: bad address 'h'"), "From a pod, the name h is not known: nc: bad address 'h'.");
        assert_eq!(
            told("nc: h (10.0.0.1:6443): Connection refused"),
            "From a pod, https://h:6443 can't be reached: nc: h (10.0.0.1:6443): Connection refused."
        );
        assert_eq!(told(""), "From a pod, https://h:6443 does not answer within 10 s.");
        assert!(told("exec: \"nc\": executable file not found in $PATH").contains("has no program `nc`"));
    }

    #[test]
    fn what_can_not_be_tried_is_a_preflight_that_can_not_be_made() {
        let of = |object: &Object| Wanted::read(object).err().unwrap().summary;
        assert_eq!(of(&wanted("h:1")), "Preflight can't be made");
        let good = Wanted::read(&wanted("https://h")).unwrap().unwrap();
        let why = told(&good, "From a pod", "exec: \"nc\": not found", &Failure::Timeout, Duration::from_secs(10));
        assert_eq!(why.summary, "Preflight can't be made");
        assert!(why.hints[0].contains("`sleep` and `nc`"), "{why:?}");
    }
}
