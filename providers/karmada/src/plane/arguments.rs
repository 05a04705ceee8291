//! The arguments of a `karmada_control_plane`, checked once and given names.
//!
//! What decides paths, names and the number of parts must be known; everything else may be known later and is carried as it is.

use std::collections::BTreeMap;

use karmaform_model::{Address, Arg, ChildStep, Diagnostic, Diagnostics, Object, Value, nearest};

use super::exposure::Exposure;
use super::extras::Extras;
use super::host;
use super::hosts;
use super::pki::Certificates;
use super::places::{self, CONFIG, PKI};
use super::schema::{DOMAIN, KARMADA_REGISTRY, KUBE_REGISTRY, NAMESPACE, SERVICE_SUBNET};
use super::settings::Settings;
use super::target::Target;
use crate::check::{is_domain, is_subnet};
use crate::read::{self, Reader};
use crate::versions::{self, Component, Version};

/// Above everything on a host that is not a program or a unit.
const FILES: &str = "/etc/karmada";
/// Where a Service sends from to what is behind it.
const HTTPS: i64 = 443;

/// A control plane as it is wanted, or as it was.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) address: Address,
    /// What everything on the host cluster is called after.
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) kube_version: String,
    pub(crate) etcd: Etcd,
    /// The archive; `None` if the CRDs are left out.
    pub(crate) crds: Option<Value>,
    pub(crate) crds_sha256: Value,
    /// Whether its scheduler does.
    pub(crate) asks_estimators: bool,
    /// Requests to its API.
    pub(crate) requests_per_second: Option<i64>,
    pub(crate) domain: String,
    pub(crate) service_subnet: String,
    pub(crate) karmada_registry: String,
    pub(crate) kube_registry: String,
    pub(crate) image_pull_secrets: Vec<String>,
    pub(crate) image_pull_policy: String,
    pub(crate) target: Target,
    /// The namespace on the host cluster. On hosts there is none, but names are made with it all the same.
    pub(crate) namespace: String,
    pub(crate) exposure: Exposure,
    pub(crate) certificates: Certificates,
    pub(crate) extras: Extras,
    /// The components, addons among them, in a fixed order.
    pub(crate) components: Vec<(Component, Settings)>,
}

/// The etcd behind the Karmada API. All parts may be known later.
#[derive(Clone, Debug)]
pub(crate) struct Etcd {
    pub(crate) endpoints: Value,
    pub(crate) ca_certificate: Value,
    pub(crate) certificate: Value,
    pub(crate) private_key: Value,
    /// The cluster's id; null where it is not said. With another one its data is another, whatever the endpoints are.
    pub(crate) cluster_id: Value,
    /// Null for etcd's users' own default.
    pub(crate) prefix: Value,
    /// What is there is taken over, whosever it is.
    pub(crate) adopt: Value,
    /// `keep` or `delete`.
    pub(crate) on_destroy: String,
}

impl Arguments {
    /// Reads and checks them.
    pub(crate) fn read(address: &Address, object: &Object) -> Result<Self, Diagnostics> {
        read::all(address, object, |reader| Self::all(address, reader))
    }

    fn all(address: &Address, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let name = reader.text("name").unwrap_or_else(|| places::default_name(address));
        if let Some(problem) = places::name_problem(&name) {
            reader.wrong::<()>("name", problem);
        }
        let domain = reader.text("cluster_domain").unwrap_or_else(|| DOMAIN.to_owned());
        if !is_domain(&domain) {
            reader.wrong::<()>("cluster_domain", "is no DNS domain");
        }
        let service_subnet = reader.text("service_subnet").unwrap_or_else(|| SERVICE_SUBNET.to_owned());
        if !is_subnet(&service_subnet) {
            reader.wrong::<()>("service_subnet", "is no address range like \"10.96.0.0/12\"");
        }
        let karmada_registry = registry(reader, "karmada_registry", KARMADA_REGISTRY);
        let kube_registry = registry(reader, "kube_registry", KUBE_REGISTRY);
        let image_pull_secrets = reader.texts("image_pull_secrets");
        let image_pull_policy = reader.word("image_pull_policy", &["IfNotPresent", "Always", "Never"], "IfNotPresent");
        let etcd = etcd(reader);
        let crds = crds(reader);
        let crds_sha256 = reader.given("crds_sha256");
        let target = Target::read(reader);
        let service_subnet = hosts::service_subnet(reader, service_subnet, &target);
        let namespace = match &target {
            Target::Kubernetes(host) => host.namespace.clone(),
            Target::Hosts(_) => NAMESPACE.to_owned(),
        };
        // Where the files of the API server are, which the flags of what it may have besides say.
        let folders = match &target {
            Target::Kubernetes(_) => (PKI.to_owned(), CONFIG.to_owned()),
            Target::Hosts(_) => {
                let folder = folder(&name, Component::ApiServer);
                (folder.clone(), folder)
            }
        };
        let exposure = Exposure::read(reader);
        let certificates = Certificates::read(&mut reader.block("certificates"));
        let mut extras = Extras::new(folders);
        extras.encryption(&mut reader.block("encryption"));
        extras.oidc(&mut reader.block("oidc"));
        extras.audit(&mut reader.block("audit"));
        let written = settings(reader, &target);
        let (version, kube_version) = self::versions(reader)?;
        let kube_minor = host::minor(&kube_version)?;
        let components = components(reader, written, (&version, kube_minor), &target);
        Some(Self {
            address: address.clone(),
            name,
            version,
            kube_version,
            etcd,
            crds,
            crds_sha256,
            asks_estimators: reader.flag("scheduler_estimators").unwrap_or(false),
            requests_per_second: reader.number("requests_per_second", 1..=10_000),
            domain,
            service_subnet,
            karmada_registry,
            kube_registry,
            image_pull_secrets,
            image_pull_policy,
            target,
            namespace,
            exposure,
            certificates,
            extras,
            components,
        })
    }

    /// The addons among the components.
    pub(crate) fn addons(&self) -> Vec<Component> {
        self.components.iter().map(|(c, _)| *c).filter(|c| c.is_addon()).collect()
    }

    /// How many of a component there are; none if it is not there.
    pub(crate) fn replicas(&self, component: Component) -> Option<i64> {
        self.components.iter().find(|(c, _)| *c == component).map(|(_, settings)| settings.replicas())
    }

    /// What a component's objects are called.
    pub(crate) fn object_name(&self, component: Component) -> String {
        format!("{}-{}", self.name, component.name())
    }

    /// What a component's Service is called, for everyone in the host cluster; on hosts a name like it.
    pub(crate) fn service_name(&self, component: Component) -> String {
        format!("{}.{}.svc", self.object_name(component), self.namespace)
    }

    /// Where a component is reached by the others.
    pub(crate) fn service_host(&self, component: Component) -> String {
        match self.target.hosts().and_then(|h| h.dns_name.clone()) {
            Some(name) => name,
            None => format!("{}.{}", self.service_name(component), self.domain),
        }
    }

    /// The port that goes with it.
    pub(crate) fn service_port(&self, component: Component) -> i64 {
        match &self.target {
            Target::Hosts(hosts) => hosts.ports.of(component),
            Target::Kubernetes(_) if matches!(component, Component::ApiServer) => places::API_PORT,
            Target::Kubernetes(_) => HTTPS,
        }
    }

    /// Where a component itself listens for others, or on a host, if there are none, for questions about its health.
    pub(crate) fn listens(&self, component: Component) -> i64 {
        match &self.target {
            Target::Hosts(hosts) => hosts.ports.of(component),
            Target::Kubernetes(_) => places::target_port(component).unwrap_or_default(),
        }
    }

    /// Where it is asked for its health without TLS, if it is.
    pub(crate) fn health_port(&self, component: Component) -> i64 {
        match &self.target {
            Target::Hosts(hosts) => hosts.ports.health(component),
            Target::Kubernetes(_) => places::health_port(component),
        }
    }

    /// Where its metrics are, if it has some without TLS.
    pub(crate) fn metrics_port(&self, component: Component) -> i64 {
        match &self.target {
            Target::Hosts(hosts) => hosts.ports.metrics(component),
            Target::Kubernetes(_) => places::METRICS_PORT,
        }
    }

    /// Above everything on a host that is not a program or a unit.
    pub(crate) fn folder(&self) -> String {
        format!("{FILES}/{}", self.name)
    }

    /// Where a component's files are.
    pub(crate) fn pki(&self, component: Component) -> String {
        match &self.target {
            Target::Hosts(_) => folder(&self.name, component),
            Target::Kubernetes(_) => PKI.to_owned(),
        }
    }

    /// What runs a component: a Deployment, or a unit on each of its hosts.
    pub(crate) fn runners(&self, component: Component) -> Vec<Vec<ChildStep>> {
        match &self.target {
            Target::Kubernetes(_) => vec![places::component(component)],
            Target::Hosts(all) => hosts::homes(self, all, component).into_iter().map(|(name, _)| hosts::unit_of(name, component)).collect(),
        }
    }

    /// The image of a component: the user's or the registry's, by tag, and by digest if there is one.
    pub(crate) fn image(&self, component: Component, settings: &Settings) -> Arg {
        let (registry, version) =
            if component.is_kube() { (&self.kube_registry, &self.kube_version) } else { (&self.karmada_registry, &self.version.text) };
        let or = |name: &str, default: String| {
            let own = settings.value(name);
            if own.is_null() { default.into() } else { own }
        };
        let mut parts = vec![or("image", format!("{registry}/{}", component.binary())), ":".into(), or("tag", format!("v{version}"))];
        let digest = settings.value("digest");
        if !digest.is_null() {
            parts.extend(["@".into(), digest]);
        }
        if self.target.hosts().is_some() {
            parts.insert(0, "oci://".into());
        }
        match parts.iter().map(Value::as_str).collect::<Option<String>>() {
            Some(known) => known.into(),
            None => Arg::Text(parts.into_iter().map(Arg::Value).collect()),
        }
    }

    /// Where the components reach the Karmada API.
    pub(crate) fn inside(&self) -> String {
        format!("https://{}:{}", self.service_host(Component::ApiServer), self.service_port(Component::ApiServer))
    }

    /// Where people reach it.
    pub(crate) fn endpoint(&self) -> Arg {
        match &self.target {
            Target::Kubernetes(_) => self.exposure.endpoint(&self.inside()),
            Target::Hosts(all) => {
                let homes = hosts::homes(self, all, Component::ApiServer);
                all.endpoint(|name| homes.iter().any(|(n, _)| *n == name))
            }
        }
    }
}

/// Where a component's files are on a host.
fn folder(name: &str, component: Component) -> String {
    format!("{FILES}/{name}/{}", component.name())
}

fn registry(reader: &mut Reader<'_, '_>, name: &str, default: &str) -> String {
    let text = reader.text(name).unwrap_or_else(|| default.to_owned());
    if text.is_empty() || text.contains("://") || text.ends_with('/') || text.chars().any(char::is_whitespace) {
        reader.wrong::<()>(name, "is no registry: it is written without \"https://\" and without \"/\" at its end");
    }
    text
}

fn etcd(reader: &mut Reader<'_, '_>) -> Etcd {
    let value = reader.given("etcd");
    let part = |name: &str| match value.get(name) {
        Some(part) => part.clone(),
        None if value.is_unknown() => Value::unknown(karmaform_model::Type::Any),
        None => Value::null(karmaform_model::Type::Any),
    };
    let endpoints = part("endpoints");
    if let Some(items) = endpoints.as_items() {
        if items.is_empty() {
            reader.wrong::<()>("etcd", "has no endpoints");
        }
        if items.iter().filter_map(Value::as_str).any(|e| !e.starts_with("https://")) {
            reader.wrong::<()>(
                "etcd",
                "has an endpoint that does not start with \"https://\": the API server talks to etcd with certificates",
            );
        }
    } else if !endpoints.is_unknown() {
        reader.wrong::<()>("etcd", "has no list `endpoints`. It must be the attribute `client` of an `etcd_cluster`, or an object like it");
    }
    for name in ["ca_certificate", "certificate", "private_key"] {
        if !value.is_null() && (part(name).is_null() || part(name).as_str() == Some("")) {
            reader.wrong::<()>("etcd", &format!("has no `{name}`"));
        }
    }
    let prefix = part("prefix");
    // kube-apiserver cleans it up as a path, the others need not: only what is clean already is the same for all.
    let is_clean = |p: &str| p.strip_prefix('/').is_some_and(|rest| !rest.split('/').any(|part| matches!(part, "" | "." | "..")));
    if prefix.as_str().is_some_and(|p| !is_clean(p) || p.chars().any(|c| c.is_whitespace() || c.is_control())) {
        reader.wrong::<()>(
            "etcd",
            "has a `prefix` that can't be used: it starts with \"/\", does not end with it, and has no empty part, \".\" or \"..\" in it",
        );
    }
    let on_destroy = reader.word("etcd_data_on_destroy", &["keep", "delete"], "keep");
    let adopt = reader.value("adopt_etcd_data").cloned().unwrap_or_else(|| false.into());
    // Whatever was written: a key is secret.
    let private_key = part("private_key").secret();
    let (ca_certificate, certificate) = (part("ca_certificate"), part("certificate"));
    let cluster_id = part("cluster_id");
    Etcd { endpoints, ca_certificate, certificate, private_key, cluster_id, prefix, adopt, on_destroy }
}

fn crds(reader: &mut Reader<'_, '_>) -> Option<Value> {
    let install = reader.flag("install_crds").unwrap_or(true);
    let source = reader.value("crds").cloned();
    match (install, source) {
        (true, Some(source)) => Some(source),
        (false, None) => None,
        (true, None) => {
            reader.found.push(
                Diagnostic::error("No CRDs", "`crds` is not set, so there is nothing to install Karmada's CRDs from.")
                    .with_hint("Set it to the `crds.tar.gz` of that Karmada release: a path or a URL.")
                    .with_hint("If someone else installs them, set `install_crds = false`."),
            );
            None
        }
        (false, Some(_)) => {
            reader.found.push(
                Diagnostic::error("CRDs given and not wanted", "`crds` is set, but `install_crds` is false.")
                    .with_hint("Remove one of the two."),
            );
            None
        }
    }
}

fn versions(reader: &mut Reader<'_, '_>) -> Option<(Version, String)> {
    let text = reader.text("version");
    if text.is_none() && reader.value("version").is_none() {
        return reader.wrong("version", "is missing");
    }
    let version = match Version::parse(&text?) {
        Ok(version) => version,
        Err(why) => {
            reader.found.push(Diagnostic::error("A Karmada version that can't be used", why));
            return None;
        }
    };
    let kube = reader.text("kube_version").unwrap_or_else(|| versions::defaults(&version).kube.to_owned());
    let kube = kube.trim_start_matches('v').to_owned();
    let parts: Option<Vec<u32>> = kube.split('.').map(|p| p.parse().ok()).collect();
    let Some([1, _, _]) = parts.as_deref() else {
        return reader.wrong("kube_version", "is no version of Kubernetes like \"1.36.2\"");
    };
    Some((version, kube))
}

/// The written blocks of settings.
#[derive(Default)]
struct Written {
    defaults: Settings,
    own: BTreeMap<&'static str, Settings>,
    addons: Vec<Component>,
}

fn settings(reader: &mut Reader<'_, '_>, target: &Target) -> Written {
    let mut written = Written { defaults: Settings::read(&mut reader.block("defaults"), target), ..Written::default() };
    for (block, addons) in [("component", false), ("addon", true)] {
        let Some(blocks) = reader.value(block) else { continue };
        let Some(entries) = blocks.as_entries() else {
            reader.later::<()>(block);
            continue;
        };
        for (label, value) in entries {
            let Some(component) = Component::argument(label).filter(|c| c.is_addon() == addons) else {
                reader.found.push(no_component(label, addons));
                continue;
            };
            let settings = Settings::read(&mut reader.labelled(block, label, value.as_entries()), target);
            if written.own.insert(component.name(), settings).is_some() {
                let detail = format!("There are two blocks `{block}` for {}; with \"-\" and \"_\" it is the same.", component.name());
                reader.found.push(Diagnostic::error("A component twice", detail));
            }
            if addons {
                written.addons.push(component);
            }
        }
    }
    written
}

fn no_component(label: &str, addons: bool) -> Diagnostic {
    let (this, other) = if addons { ("addon", "component") } else { ("component", "addon") };
    if Component::argument(label).is_some() {
        let detail = format!("\"{label}\" is no {this}: it is installed {}.", if addons { "anyway" } else { "only if it is wanted" });
        return Diagnostic::error(format!("Not a block `{this}`"), detail).with_hint(format!("Write `{other} \"{label}\"`."));
    }
    let names: Vec<_> = Component::ALL.iter().filter(|c| c.is_addon() == addons).map(|c| c.name()).collect();
    let detail = format!("There is no {this} \"{label}\" in a control plane. There are {}.", names.join(", "));
    let diagnostic = Diagnostic::error(format!("Unknown {this}"), detail);
    match nearest(label, names) {
        Some(name) => diagnostic.with_hint(format!("Did you mean \"{name}\"?")),
        None => diagnostic,
    }
}

fn components(
    reader: &mut Reader<'_, '_>,
    written: Written,
    (version, kube_minor): (&Version, u32),
    target: &Target,
) -> Vec<(Component, Settings)> {
    let is_wanted = |c: &Component| !c.is_addon() || written.addons.iter().any(|a| a.name() == c.name());
    let wanted: Vec<Component> = Component::ALL.iter().copied().filter(is_wanted).collect();
    let known_somewhere = |gate: &str| wanted.iter().any(|c| versions::check_gate(*c, gate, version).is_ok());
    for gate in written.defaults.entries("feature_gates").unwrap_or_default().keys().filter(|g| !known_somewhere(g)) {
        let detail = format!("`defaults.feature_gates` has \"{gate}\", but no component of Karmada {} knows it.", version.text);
        reader.found.push(Diagnostic::error("A feature gate that can't be used", detail));
    }
    let mut components = Vec::new();
    for component in wanted {
        let defaults = written.defaults.gates_for(component, version);
        let mut settings = written.own.get(component.name()).cloned().unwrap_or_default().over(&defaults);
        if let Some(hosts) = target.hosts() {
            settings.replicas = i64::try_from(hosts::placed(hosts, &settings).count()).ok();
        }
        settings.check(component, version, kube_minor, reader.found);
        if matches!(component, Component::ApiServer) {
            reader.found.extend(settings.would_seem_dead(target));
        }
        components.push((component, settings));
    }
    components
}
