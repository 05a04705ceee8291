//! The arguments of a `karmada_control_plane`, checked once and given names.
//!
//! What decides paths, names and the number of parts must be known; everything else may be known later and is carried as it is.

use std::collections::BTreeMap;

use karmaform_model::{Address, Arg, Diagnostic, Diagnostics, Object, Value, nearest};

use super::exposure::Exposure;
use super::extras::Extras;
use super::host::{self, Host};
use super::pki::Certificates;
use super::places;
use super::schema::{DOMAIN, KARMADA_REGISTRY, KUBE_REGISTRY, SERVICE_SUBNET};
use super::settings::Settings;
use crate::check::{is_domain, is_subnet};
use crate::read::{self, Reader};
use crate::versions::{self, Component, Version};

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
    pub(crate) host: Host,
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
        let mut block = reader.block("kubernetes");
        if !block.is_there() {
            block.found.push(
                Diagnostic::error("Nowhere to run", "A control plane runs in a Kubernetes cluster, and the block `kubernetes` is missing.")
                    .with_hint("Write `kubernetes { cluster = data.kubernetes_cluster.NAME }`."),
            );
        }
        let host = Host::read(&mut block);
        let exposure = Exposure::read(reader);
        let certificates = Certificates::read(&mut reader.block("certificates"));
        let mut extras = Extras::default();
        extras.encryption(&mut reader.block("encryption"));
        extras.oidc(&mut reader.block("oidc"));
        extras.audit(&mut reader.block("audit"));
        let written = settings(reader);
        let (version, kube_version) = self::versions(reader)?;
        let kube_minor = host::minor(&kube_version)?;
        let components = components(reader, written, &version, kube_minor);
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
            host,
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

    /// What a component's objects are called.
    pub(crate) fn object_name(&self, component: Component) -> String {
        format!("{}-{}", self.name, component.name())
    }

    /// Where a component's Service is, for everyone in the host cluster.
    pub(crate) fn service_host(&self, component: Component) -> String {
        format!("{}.{}.svc.{}", self.object_name(component), self.host.namespace, self.domain)
    }

    /// Where the components reach the Karmada API.
    pub(crate) fn inside(&self) -> String {
        format!("https://{}:{}", self.service_host(Component::ApiServer), places::API_PORT)
    }

    /// Where people reach it.
    pub(crate) fn endpoint(&self) -> Arg {
        self.exposure.endpoint(&self.inside())
    }
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
    Etcd { endpoints, ca_certificate, certificate, private_key, prefix, adopt, on_destroy }
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

fn settings(reader: &mut Reader<'_, '_>) -> Written {
    let mut written = Written { defaults: Settings::read(&mut reader.block("defaults")), ..Written::default() };
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
            let settings = Settings::read(&mut reader.labelled(block, label, value.as_entries()));
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

fn components(reader: &mut Reader<'_, '_>, written: Written, version: &Version, kube_minor: u32) -> Vec<(Component, Settings)> {
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
        let settings = written.own.get(component.name()).cloned().unwrap_or_default().over(&defaults);
        settings.check(component, version, kube_minor, reader.found);
        components.push((component, settings));
    }
    components
}
