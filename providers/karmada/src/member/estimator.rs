//! The scheduler estimator of a member: it watches the member's nodes and pods, and tells the control plane's scheduler how many replicas
//! still fit there. Here is what it is wherever it runs: its account in the member, its certificate, and where the scheduler finds it.
//!
//! Source: `pkg/karmadactl/addons/estimator`, `pkg/estimator` and `cmd/scheduler-estimator` in karmada.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Type, Value};
use serde_json::json;

use super::arguments::{Arguments, plane_ca};
use super::children::{after, exposed, in_plane, labels, with};
use super::{estimator_host, estimator_pods, push};
use crate::api::SYSTEM_NAMESPACE;
use crate::check::{is_domain, is_label};
use crate::plane::{ESTIMATOR_PORT, ESTIMATOR_PREFIX, HOST_NAMESPACE, child, minor, part, sum};
use crate::read::Reader;

/// The program.
pub(crate) const PROGRAM: &str = "karmada-scheduler-estimator";
/// Who signs certificates of servers. What it signs can't be used to log in: it is for servers alone. Source: "Kubernetes signers",
/// `kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests`.
const SIGNER: &str = "kubernetes.io/kubelet-serving";
/// What that signer asks of the name and the group. Source: the same.
const NAME: &str = "system:node:";
const GROUP: &str = "system:nodes";

/// The longest name of a Service.
const LONGEST: usize = 63;

/// The files that it reads, by their names.
const KUBECONFIG: &str = "kubeconfig";
const TOKEN: &str = "token";
const MEMBER_CA: &str = "member-ca.crt";
const CLIENT_CA: &str = "client-ca.crt";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// The block `estimator`.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) place: Place,
    /// Where the scheduler reaches it, if that is not beside the scheduler.
    pub(crate) elsewhere: Option<(Value, i64)>,
    /// The namespace that the scheduler looks in, and what the names of the Services there begin with; not known before the control plane is.
    pub(crate) service_namespace: Value,
    prefix: Value,
    server: Value,
    ca_certificate: Value,
    client_ca: Value,
    validity_hours: Value,
    renew_before_hours: Value,
}

/// Where it runs.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Pods(Box<estimator_pods::Settings>),
    Host(Box<estimator_host::Settings>),
}

impl Settings {
    /// Reads it, for a member of this name behind this connection, with this namespace for accounts; none if it is not written.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, plane: &Value, member: &Value, (name, namespace): (&str, &str)) -> Option<Self> {
        if !reader.is_there() {
            return None;
        }
        let service_namespace = reader.text("service_namespace").map_or_else(|| of_plane(plane, "namespace", HOST_NAMESPACE), Value::from);
        if service_namespace.as_str().is_some_and(|n| !is_label(n)) {
            reader.wrong::<()>("service_namespace", "is not the name of a namespace");
        }
        let prefix = of_plane(plane, "estimator_service_prefix", ESTIMATOR_PREFIX);
        let place = if reader.value("host").is_some() {
            estimator_host::Settings::read(reader).map(|s| Place::Host(Box::new(s)))
        } else {
            let settings = estimator_pods::Settings::read(reader, plane, member, (&service_namespace, namespace));
            settings.map(|s| Place::Pods(Box::new(s)))
        };
        let port = reader.number("port", 1..=65_535);
        let address = reader.value("address").cloned().or_else(|| match &place {
            Some(Place::Host(host)) => host.address.clone(),
            _ => None,
        });
        if address.as_ref().and_then(Value::as_str).is_some_and(|a| !is_domain(a)) {
            reader
                .wrong::<()>("address", "is neither an IPv4 address nor a DNS name: a Service of the kind ExternalName takes nothing else");
        }
        let elsewhere = address.map(|address| (address, port.unwrap_or(ESTIMATOR_PORT)));
        let problem = match (&place, &elsewhere) {
            (Some(Place::Host(_)), None) => Some(("address", "must be written: the host is not managed by an IPv4 address")),
            (Some(Place::Pods(pods)), None) if !pods.is_beside(plane, &service_namespace) => Some((
                "address",
                "must be written, and `port`: the estimator does not run beside the scheduler, so that one would not find it",
            )),
            (Some(Place::Pods(_)), None) if port.is_some() => Some(("port", "is given without `address`")),
            _ => None,
        };
        if let Some((name, why)) = problem {
            reader.wrong::<()>(name, why);
        }
        if let Some(why) = prefix.as_str().and_then(|prefix| too_long(&format!("{prefix}-{name}"))) {
            reader.wrong::<()>("service_namespace", &why);
        }
        // The mark at its end has eight digits.
        if matches!((&place, &elsewhere), (Some(Place::Pods(_)), Some(_)))
            && let Some(why) = too_long(&format!("karmada-{name}-estimator-????????"))
        {
            reader.wrong::<()>("namespace", &why);
        }
        let client_ca = reader.value("client_ca_certificate").cloned().or_else(|| plane_ca(plane));
        if plane.is_wholly_known() && client_ca.is_none() {
            reader.wrong::<()>("client_ca_certificate", "must be written: the connection of the control plane does not say it");
        }
        if let (Some(Place::Pods(pods)), Some(scheduler)) = (&place, plane.get("karmada_version").and_then(Value::as_str))
            && let Some(own) = pods.pods.version.as_deref()
            && speak_differently(own, scheduler)
        {
            let why = format!(
                "is \"{own}\", but the scheduler is {scheduler}: those before 1.18 and those after it do not understand each other"
            );
            reader.wrong::<()>("version", &why);
        }
        Some(Self {
            place: place?,
            elsewhere,
            service_namespace,
            prefix,
            server: reader.given("server"),
            ca_certificate: reader.given("ca_certificate"),
            client_ca: client_ca.unwrap_or_else(|| Value::unknown_not_null(Type::String)),
            validity_hours: reader.given("validity_hours"),
            renew_before_hours: reader.given("renew_before_hours"),
        })
    }

    /// The Service that the scheduler looks for. Source: `GenerateEstimatorServiceName` in karmada.
    pub(crate) fn service_name(&self, member: &Arguments) -> Arg {
        Arg::Text(vec![self.prefix.clone().into(), format!("-{}", member.name).into()])
    }

    /// Where it is reached at its address; on a host it listens there.
    pub(crate) fn port(&self) -> i64 {
        self.elsewhere.as_ref().map_or(ESTIMATOR_PORT, |(_, port)| *port)
    }

    /// Its version, if it is known by one.
    pub(crate) fn version(&self) -> Option<&str> {
        match &self.place {
            Place::Pods(pods) => pods.pods.version.as_deref(),
            Place::Host(_) => None,
        }
    }
}

/// What the connection of a control plane that karmaform made says, or what it is in one that something else made; not known before the
/// control plane is.
fn of_plane(plane: &Value, name: &str, usual: &str) -> Value {
    match plane.get(name).filter(|v| !v.is_null()) {
        Some(said) => said.clone(),
        None if plane.is_unknown() => Value::unknown_not_null(Type::String),
        None => usual.into(),
    }
}

/// What is wrong with a Service of this name, if it is too long for one.
fn too_long(name: &str) -> Option<String> {
    let length = name.len();
    (length > LONGEST)
        .then(|| format!("would have a Service \"{name}\" in it: that is {length} characters long, and {LONGEST} are the most"))
}

/// What they say to each other was replaced in 1.18, which knows both ways. Source: release notes of Karmada 1.18 and 1.19.
fn speak_differently(one: &str, other: &str) -> bool {
    let minors = [one, other].map(|v| minor(v).unwrap_or(18));
    minors.iter().any(|m| *m < 18) && minors.iter().any(|m| *m > 18)
}

/// All of it.
pub(crate) fn children(member: &Arguments) -> Vec<Child> {
    let Some(settings) = &member.estimator else { return Vec::new() };
    let mut children = account(member);
    children.extend(identity(member, settings));
    children.extend(match &settings.place {
        Place::Pods(pods) => estimator_pods::children(member, settings, pods),
        Place::Host(host) => estimator_host::children(member, settings, host),
    });
    children.extend(address(member, settings));
    children
}

/// Who it is in the member.
fn name(member: &Arguments) -> Arg {
    member.account("estimator")
}

/// The account in the member, which may look at what is to be counted, and at nothing else. Source: `supportedGVRs`, the informers and plugins
/// of `pkg/estimator/server`.
fn account(member: &Arguments) -> Vec<Child> {
    let look = ["get", "list", "watch"];
    let rules = json!([
        { "apiGroups": [""], "resources": ["nodes", "pods", "resourcequotas"], "verbs": look },
        { "apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": look },
    ]);
    let binding = push::binding(member, part("estimator_role_binding"), &name(member), name(member));
    vec![
        push::service_account(member, part("estimator_account"), name(member)),
        push::role_of(member, part("estimator_role"), name(member), Arg::from_json(&rules)),
        after(binding, &[part("estimator_role")]),
        push::token(member, token_path(), &name(member), part("estimator_account")),
    ]
}

fn token_path() -> Vec<ChildStep> {
    part("estimator_token")
}

/// Its key, and the certificate that the control plane's own authority signs: no key of an authority leaves the control plane.
fn identity(member: &Arguments, settings: &Settings) -> [Child; 2] {
    let names: Vec<Arg> = match &settings.elsewhere {
        Some((address, _)) => vec![address.clone().into()],
        None => {
            let service = |rest: &str| {
                Arg::Text(vec![settings.service_name(member), ".".into(), settings.service_namespace.clone().into(), rest.into()])
            };
            // The scheduler tries this domain before it leaves it out, whatever the cluster's is.
            vec![service(".svc.cluster.local"), service(".svc")]
        }
    };
    let request = child(
        part("estimator_certificate_request"),
        "tls_certificate_request",
        [
            ("common_name", format!("{NAME}{}", member.name).into()),
            ("organizations", Arg::List(vec![GROUP.into()])),
            ("names", Arg::List(names)),
        ],
    );
    let usages = ["digital signature", "key encipherment", "server auth"];
    let certificate = child(
        certificate_path(),
        "kubernetes_certificate",
        [
            ("cluster", member.plane.clone().into()),
            ("name", format!("karmada-estimator-{}", member.name).into()),
            ("request", Arg::child(&part("estimator_certificate_request"), "request")),
            ("signer_name", SIGNER.into()),
            ("usages", Value::strings(usages).into()),
            ("validity_hours", settings.validity_hours.clone().into()),
            ("renew_before_hours", settings.renew_before_hours.clone().into()),
        ],
    );
    [request, certificate]
}

fn certificate_path() -> Vec<ChildStep> {
    part("estimator_certificate")
}

/// A file's content.
pub(crate) enum Content {
    Plain(Arg),
    /// In base64.
    Encoded(Arg),
}

/// The files that it reads, all in one folder; the same wherever it runs.
pub(crate) fn files(member: &Arguments, settings: &Settings, is_inside: bool) -> Vec<(&'static str, Content)> {
    let plain = |arg: Arg| Content::Plain(arg);
    let given = |value: &Value| (!value.is_null()).then(|| value.clone());
    let ca = match (given(&settings.ca_certificate), given(&settings.server)) {
        (Some(ca), _) => Some(ca),
        // Another address may have another authority than the one of the control plane's way; the member's own is the likely one.
        (None, Some(_)) => None,
        (None, None) => given(&member.ca_certificate).filter(|_| !is_inside),
    };
    let is_verified = !member.insecure || given(&settings.ca_certificate).is_some();
    vec![
        (KUBECONFIG, plain(kubeconfig(member, server(member, settings, is_inside), is_verified, is_inside))),
        (TOKEN, Content::Encoded(exposed(&token_path(), "token"))),
        // Whether it is used is only known once the member is.
        (MEMBER_CA, ca.map_or_else(|| Content::Encoded(exposed(&token_path(), "ca")), |ca| plain(ca.into()))),
        (CLIENT_CA, plain(settings.client_ca.clone().into())),
        (CERTIFICATE, plain(Arg::child(&certificate_path(), "certificate"))),
        (KEY, plain(Arg::child(&part("estimator_certificate_request"), "private_key"))),
    ]
}

/// Where it reaches the member.
fn server(member: &Arguments, settings: &Settings, is_inside: bool) -> Arg {
    if !settings.server.is_null() {
        settings.server.clone().into()
    } else if is_inside {
        "https://kubernetes.default.svc".into()
    } else {
        member.endpoint.clone().into()
    }
}

/// The kubeconfig. It names files beside it, so that a new token is read without a restart.
fn kubeconfig(member: &Arguments, server: Arg, is_verified: bool, is_inside: bool) -> Arg {
    let trust = if is_verified { format!("certificate-authority: {MEMBER_CA}") } else { "insecure-skip-tls-verify: true".to_owned() };
    let mut text = vec![
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: member\nclusters:\n- name: member\n  cluster:\n    {trust}\n    server: \""
        )
        .into(),
        server,
        "\"\n".into(),
    ];
    if !is_inside && !member.proxy_url.is_null() {
        text.extend(["    proxy-url: \"".into(), member.proxy_url.clone().into(), "\"\n".into()]);
    }
    text.push(
        format!(
            "contexts:\n- name: member\n  context:\n    cluster: member\n    user: estimator\nusers:\n- name: estimator\n  user:\n    \
             tokenFile: {TOKEN}\n"
        )
        .into(),
    );
    Arg::Text(text)
}

/// Its flags, with the files in this folder.
pub(crate) fn flags(member: &Arguments, folder: &str, port: i64) -> BTreeMap<String, Arg> {
    let file = |name: &str| Arg::from(format!("{folder}/{name}"));
    BTreeMap::from([
        ("cluster-name".to_owned(), member.name.as_str().into()),
        ("grpc-auth-cert-file".to_owned(), file(CERTIFICATE)),
        ("grpc-auth-key-file".to_owned(), file(KEY)),
        ("grpc-client-ca-file".to_owned(), file(CLIENT_CA)),
        ("kubeconfig".to_owned(), file(KUBECONFIG)),
        ("server-port".to_owned(), port.to_string().into()),
    ])
}

/// What it reads only when it starts.
pub(crate) fn marks(member: &Arguments, settings: &Settings, is_inside: bool) -> Vec<(&'static str, Arg)> {
    let mut files = vec![server(member, settings, is_inside)];
    for value in [&settings.ca_certificate, &settings.client_ca, &member.ca_certificate, &member.proxy_url] {
        files.push(" ".into());
        files.extend((!value.is_null()).then(|| sum(value).into()));
    }
    let mut marks = vec![("karmaform/certificate", Arg::child(&certificate_path(), "not_after")), ("karmaform/files", Arg::Text(files))];
    marks.extend(member.rotation.as_ref().map(|word| ("karmaform/rotation", word.as_str().into())));
    marks
}

/// Where the scheduler finds one that is not beside it: a Service of the Karmada API that names its address. Source: `resolveCluster`,
/// `pkg/estimator/client/service.go` in karmada.
fn address(member: &Arguments, settings: &Settings) -> Vec<Child> {
    let Some((address, port)) = &settings.elsewhere else { return Vec::new() };
    let mut namespace = Arg::from_json(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "labels": labels() } }));
    namespace.set(&["metadata", "name"], settings.service_namespace.clone().into());
    // Members have no use for it. Karmada's own goes to none anyway (`IsReservedNamespace` in karmada), and the control plane has it with the
    // same labels.
    if settings.service_namespace.as_str() != Some(SYSTEM_NAMESPACE) {
        namespace.set(&["metadata", "labels", "namespace.karmada.io/skip-auto-propagation"], "true".into());
    }
    let namespace = with(in_plane(member, part("estimator_namespace"), namespace), "shared", true.into());
    // The control plane may be in it, and other members' estimators.
    let namespace = with(namespace, "keep", true.into());
    let mut service = Arg::from_json(&json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "labels": labels() },
        "spec": { "type": "ExternalName", "ports": [{ "port": ESTIMATOR_PORT, "targetPort": port, "protocol": "TCP" }] },
    }));
    service.set(&["metadata", "name"], settings.service_name(member));
    service.set(&["metadata", "namespace"], settings.service_namespace.clone().into());
    service.set(&["spec", "externalName"], address.clone().into());
    vec![namespace, after(in_plane(member, part("estimator_address"), service), &[part("estimator_namespace")])]
}
