//! The certificates: which authorities there are, and a certificate for each role.
//!
//! Four things are trusted for four purposes, each by its own key: servers and the control plane's own clients (`ca`), the API server as the
//! one who vouches for users to what extends it (`front_proxy_ca`), agents of member clusters (`agent_ca`, the only one whose key is in a
//! pod, because kube-controller-manager signs their requests), and tokens of service accounts (a bare key).

use karmaform_model::{Arg, Child, Diagnostic, Value};

use super::arguments::Arguments;
use super::children::child;
use super::extras::sum;
use super::places::{certificate, client_role, estimator_prefix, extends_api, part};
use super::schema::{CA_VALIDITY_HOURS, RENEW_BEFORE_HOURS, VALIDITY_HOURS};
use crate::api::{SYSTEM_NAMESPACE, user};
use crate::check::{is_address, is_host};
use crate::read::Reader;
use crate::versions::Component;

/// The kind of all keys: small and quick, and everything in Karmada takes it.
const ALGORITHM: &str = "ECDSA-P256";
/// Who may do everything: the group that Kubernetes' own ClusterRoleBinding `cluster-admin` is for.
const ADMINISTRATORS: &str = "system:masters";

/// The block `certificates`.
#[derive(Clone, Debug)]
pub(crate) struct Certificates {
    validity_hours: Value,
    ca_validity_hours: Value,
    renew_before_hours: Value,
    /// The user's own CA: its certificate and its key.
    own: Option<(Value, Value)>,
    sans: Vec<String>,
    /// The keys of the CAs are kept in the host cluster, too.
    pub(crate) keeps_authority: bool,
}

impl Certificates {
    /// Reads it.
    pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Self {
        let hours = |reader: &Reader<'_, '_>, name: &str, default: i64| reader.value(name).cloned().unwrap_or_else(|| default.into());
        let validity_hours = hours(reader, "validity_hours", VALIDITY_HOURS);
        let ca_validity_hours = hours(reader, "ca_validity_hours", CA_VALIDITY_HOURS);
        let renew_before_hours = hours(reader, "renew_before_hours", RENEW_BEFORE_HOURS);
        if let (Some(validity), Some(renew)) = (validity_hours.as_i64(), renew_before_hours.as_i64())
            && (renew < 0 || renew >= validity)
        {
            let detail = format!(
                "Certificates are valid for {validity} hours and are renewed {renew} hours before their end: every plan would renew them."
            );
            let diagnostic = Diagnostic::error("Certificates that would be renewed at once", detail);
            reader.found.push(diagnostic.with_hint("Make `renew_before_hours` about a third of `validity_hours`."));
        }
        if let (Some(validity), Some(ca)) = (validity_hours.as_i64(), ca_validity_hours.as_i64())
            && ca < validity
        {
            let what = format!("is {ca}, but certificates are valid for {validity} hours and can't outlive their CA");
            reader.wrong::<()>("ca_validity_hours", &what);
        }
        let own = match (reader.value("ca_certificate"), reader.value("ca_private_key")) {
            (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone().secret())),
            (None, None) => None,
            (given, _) => {
                let (has, lacks) = if given.is_some() { ("certificate", "private_key") } else { ("private_key", "certificate") };
                let detail = format!("`certificates.ca_{has}` is set, but `certificates.ca_{lacks}` is not.");
                let diagnostic = Diagnostic::error("Half a certificate authority", detail);
                reader.found.push(diagnostic.with_hint("Set both for a CA of your own, or none for a new one."));
                None
            }
        };
        let sans = reader.texts("sans");
        for name in sans.iter().filter(|n| !is_host(n)) {
            reader.wrong::<()>("sans", &format!("has \"{name}\", which is no DNS name and no IP address"));
        }
        let keeps_authority = reader.flag("keep_authority").unwrap_or(true);
        Self { validity_hours, ca_validity_hours, renew_before_hours, own, sans, keeps_authority }
    }
}

impl Certificates {
    /// True if there is no CA of the user's own.
    pub(crate) fn makes_ca(&self) -> bool {
        self.own.is_none()
    }
}

/// The certificate of the CA of servers and of the control plane's clients.
pub(crate) fn ca_certificate(plane: &Arguments) -> Arg {
    match &plane.certificates.own {
        Some((certificate, _)) => certificate.clone().into(),
        None => Arg::child(&part("ca"), "certificate"),
    }
}

/// What changes when that certificate does.
pub(crate) fn ca_mark(plane: &Arguments) -> Arg {
    match &plane.certificates.own {
        Some((certificate, _)) => sum(certificate).into(),
        None => Arg::child(&part("ca"), "serial_number"),
    }
}

/// Whose signature a certificate carries.
#[derive(Clone, Copy)]
enum Signer {
    Ca,
    FrontProxy,
}

/// The authorities, the key of service accounts, and a certificate for each role.
pub(crate) fn children(plane: &Arguments) -> Vec<Child> {
    let mut children = Vec::new();
    for (path, what) in [("ca", ""), ("front_proxy_ca", " front proxy"), ("agent_ca", " agent")] {
        if path == "ca" && plane.certificates.own.is_some() {
            continue;
        }
        let common_name = format!("karmada {}{what} CA", plane.name);
        children.push(child(
            part(path),
            "tls_ca",
            [
                ("common_name", common_name.into()),
                ("algorithm", ALGORITHM.into()),
                ("validity_hours", plane.certificates.ca_validity_hours.clone().into()),
                ("renew_before_hours", ca_renew_before(plane)),
            ],
        ));
    }
    children.push(child(part("service_account_key"), "tls_private_key", [("algorithm", ALGORITHM.into())]));
    for (component, _) in &plane.components {
        if let Some(names) = serving_names(plane, *component) {
            let common_name = format!("system:karmada:{}", component.name());
            let mut made = leaf(plane, component.name(), Signer::Ca, &common_name, None, Some(names));
            let later = match plane.target.hosts() {
                Some(hosts) => Some(Arg::List(hosts.names())),
                None => plane.exposure.later_names(),
            };
            let later = later.filter(|_| matches!(component, Component::ApiServer));
            made.arguments.extend(later.map(|names| ("names".to_owned(), names)));
            children.push(made);
        }
    }
    for (component, _) in plane.components.iter().filter(|(c, _)| !matches!(c, Component::ApiServer)) {
        let role = client_role(*component);
        children.push(leaf(plane, &role, Signer::Ca, &user(*component), None, None));
    }
    children.push(leaf(plane, "admin", Signer::Ca, "system:karmada:admin", Some(ADMINISTRATORS), None));
    children.push(leaf(plane, "front-proxy-client", Signer::FrontProxy, "front-proxy-client", None, None));
    children
}

/// A tenth of its life, a year at most: a renewed CA keeps its key, and everything that it signed is signed anew.
fn ca_renew_before(plane: &Arguments) -> Arg {
    let validity = plane.certificates.ca_validity_hours.as_i64().unwrap_or(CA_VALIDITY_HOURS);
    (validity / 10).min(VALIDITY_HOURS).into()
}

/// The names that a component's server certificate is for; `None` if it serves nobody.
fn serving_names(plane: &Arguments, component: Component) -> Option<Vec<String>> {
    let served = plane.object_name(component);
    let (namespace, domain) = (&plane.namespace, &plane.domain);
    let mut names = vec![format!("{served}.{namespace}.svc"), format!("{served}.{namespace}.svc.{domain}")];
    match component {
        Component::ApiServer => {
            names.extend(["localhost".to_owned(), served.clone(), format!("{served}.{namespace}"), "127.0.0.1".to_owned()]);
            names.extend(plane.exposure.names().chain(&plane.certificates.sans).cloned());
        }
        // The API server verifies the Service that an APIService names, and that one is inside the Karmada API.
        _ if extends_api(component) => {
            names.extend([format!("{}.{SYSTEM_NAMESPACE}.svc", component.binary()), format!("{served}.{SYSTEM_NAMESPACE}.svc")])
        }
        Component::Webhook => {}
        _ => return None,
    }
    // By a name of the user's all of them are called.
    names.extend(plane.target.hosts().and_then(|h| h.dns_name.clone()));
    names.sort();
    names.dedup();
    Some(names)
}

fn leaf(plane: &Arguments, role: &str, signer: Signer, common_name: &str, group: Option<&str>, serves: Option<Vec<String>>) -> Child {
    let (ca_certificate, ca_private_key) = match (signer, &plane.certificates.own) {
        (Signer::Ca, Some((certificate, key))) => (certificate.clone().into(), key.clone().into()),
        (Signer::Ca, None) => pair("ca"),
        (Signer::FrontProxy, _) => pair("front_proxy_ca"),
    };
    let usage = if serves.is_some() { "server_auth" } else { "client_auth" };
    let (addresses, names): (Vec<String>, Vec<String>) = serves.unwrap_or_default().into_iter().partition(|n| is_address(n));
    child(
        certificate(role),
        "tls_certificate",
        [
            ("ca_certificate", ca_certificate),
            ("ca_private_key", ca_private_key),
            ("common_name", common_name.into()),
            ("organizations", Value::strings(group).into()),
            ("dns_names", Value::strings(names).into()),
            ("ip_addresses", Value::strings(addresses).into()),
            ("usages", Value::strings([usage]).into()),
            ("algorithm", ALGORITHM.into()),
            ("validity_hours", plane.certificates.validity_hours.clone().into()),
            ("renew_before_hours", plane.certificates.renew_before_hours.clone().into()),
        ],
    )
}

fn pair(ca: &str) -> (Arg, Arg) {
    (Arg::child(&part(ca), "certificate"), Arg::child(&part(ca), "private_key"))
}

/// What no other control plane has, and this one keeps as long as it lives.
pub(crate) fn identity() -> Arg {
    Arg::child(&part("service_account_key"), "fingerprint")
}

/// The connection to the Karmada API: as its administrator, through the host cluster.
pub(crate) fn connection(plane: &Arguments) -> Arg {
    let mut connection = Arg::object([
        ("provider", "kubernetes".into()),
        ("id", plane.address.to_string().into()),
        ("address", plane.inside().into()),
        // What else a member needs to know of it.
        ("karmada_version", plane.version.text.as_str().into()),
        ("namespace", plane.namespace.as_str().into()),
        ("estimator_service_prefix", estimator_prefix(&plane.name).into()),
        ("ca_certificate", ca_certificate(plane)),
        ("client_certificate", Arg::child(&certificate("admin"), "certificate")),
        ("client_key", Arg::child(&certificate("admin"), "private_key")),
    ]);
    if let Some(rate) = plane.requests_per_second {
        connection.set(&["requests_per_second"], rate.into());
    }
    connection.set(&["via"], plane.target.way());
    if let Some(hosts) = plane.target.hosts() {
        // Which one it is: hosts come and go, and a name may be that of another one elsewhere.
        connection.set(&["identity"], identity());
        connection.set(&["server"], plane.endpoint());
        if let Some(addresses) = hosts.addresses(plane) {
            connection.set(&["addresses"], addresses);
        }
    }
    connection
}
