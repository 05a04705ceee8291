//! What things are called: the children's paths, the objects on the host cluster, and files in pods.

use karmaform_model::{Address, ChildStep, Key};
use sha2::{Digest as _, Sha256};

use crate::versions::Component;

/// Where a component's Secret is in its pods. The whole volume and no single files of it: only so renewed certificates arrive.
pub(crate) const PKI: &str = "/etc/karmada/pki";
/// Where the API server's other files are.
pub(crate) const CONFIG: &str = "/etc/karmada/config";
/// The longest name of an instance. With the longest suffix it is still a Service's name, which may have 63 characters.
pub(crate) const LONGEST_NAME: usize = 40;
/// Where the API server listens, in its pods and in its Service.
pub(crate) const API_PORT: i64 = 5443;
/// Where what extends the Karmada API listens in its pods: above 1023, so that nobody needs rights for it.
pub(crate) const EXTENSION_PORT: i64 = 6443;
/// Where the webhook listens in its pods.
pub(crate) const WEBHOOK_PORT: i64 = 8443;

/// Where the metrics of Karmada's controllers are in their pods.
pub(crate) const METRICS_PORT: i64 = 8080;

/// Where Karmada's controllers are asked for their health in their pods.
pub(crate) fn health_port(component: Component) -> i64 {
    match component {
        Component::ControllerManager => 10_357,
        Component::Scheduler => 10_351,
        Component::Descheduler => 10_358,
        Component::Webhook => 8000,
        _ => 0,
    }
}

/// What the names of estimators' Services begin with for the scheduler of a control plane that something else made. Source: `DefaultEstimatorServicePrefix` in karmada.
pub(crate) const ESTIMATOR_PREFIX: &str = "karmada-scheduler-estimator";
/// Where the scheduler calls an estimator's Service. Source: `DefaultEstimatorPort` there.
pub(crate) const ESTIMATOR_PORT: i64 = 10_352;

/// What the names of estimators' Services begin with for the scheduler of this instance: short, as a member's name comes behind it.
pub(crate) fn estimator_prefix(instance: &str) -> String {
    format!("{instance}-estimator")
}

/// A path of one step.
pub(crate) fn part(name: &str) -> Vec<ChildStep> {
    vec![ChildStep::new(name)]
}

/// A path of one step with a key.
pub(crate) fn part_of(name: &str, key: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed(name, key)]
}

/// A component's Deployment.
pub(crate) fn component(component: Component) -> Vec<ChildStep> {
    part_of("component", component.name())
}

/// A component's Secret.
pub(crate) fn secret(component: Component) -> Vec<ChildStep> {
    part_of("secret", component.name())
}

/// A component's Service.
pub(crate) fn service(component: Component) -> Vec<ChildStep> {
    part_of("service", component.name())
}

/// A certificate by its role.
pub(crate) fn certificate(role: &str) -> Vec<ChildStep> {
    part_of("certificate", role)
}

/// The role of a component's client certificate.
pub(crate) fn client_role(component: Component) -> String {
    format!("{}-client", component.name())
}

/// An object inside the Karmada API.
pub(crate) fn api(key: &str) -> Vec<ChildStep> {
    part_of("api", key)
}

/// The component that a child of this kind belongs to: `component["scheduler"]`.
pub(crate) fn component_of<'a>(path: &'a [ChildStep], kind: &str) -> Option<&'a str> {
    match path {
        [ChildStep { name, key: Some(Key::Name(key)) }] if name == kind => Some(key),
        _ => None,
    }
}

/// The components that extend the Karmada API, and how they are called where the API looks for them.
pub(crate) fn extends_api(component: Component) -> bool {
    matches!(component, Component::AggregatedApiServer | Component::Search | Component::MetricsAdapter)
}

/// The port that a component's Service sends to, if it has a Service.
pub(crate) fn target_port(component: Component) -> Option<i64> {
    match component {
        Component::ApiServer => Some(API_PORT),
        Component::Webhook => Some(WEBHOOK_PORT),
        _ if extends_api(component) => Some(EXTENSION_PORT),
        _ => None,
    }
}

/// A name with a key.
fn keyed(name: &str, key: Option<&Key>) -> String {
    match key {
        None => name.to_owned(),
        Some(Key::Index(i)) => format!("{name}-{i}"),
        Some(Key::Name(key)) => format!("{name}-{key}"),
    }
}

/// What goes in front of names of what is in modules: `site-a-` in `module.site["a"]`. What two instances of a module make must differ.
pub(crate) fn module_prefix(address: &Address) -> String {
    address.module.iter().map(|step| keyed(&step.name, step.key.as_ref()) + "-").collect()
}

/// What an instance is called unless it is written: the resource's name and key, with the modules that it is in, as a DNS label.
///
/// `_` becomes `-`. If anything else had to change, a part of the address's checksum makes sure that no two become one.
pub(crate) fn default_name(address: &Address) -> String {
    let written = module_prefix(address) + &keyed(&address.name, address.key.as_ref());
    let plain = written.replace('_', "-");
    if name_problem(&plain).is_none() {
        return plain;
    }
    let label: String = plain.to_lowercase().chars().filter(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-').collect();
    let start = label.trim_matches(|c: char| !c.is_ascii_lowercase()).chars().take(LONGEST_NAME - 7).collect::<String>();
    let start = if start.is_empty() { "karmada" } else { start.trim_end_matches('-') };
    format!("{start}-{}", short_sum(&written).chars().take(6).collect::<String>())
}

/// Why this is no name of an instance.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Some("must have from 1 to 40 characters: with what follows it, it is a Service's name, which may have 63");
    }
    let good = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-');
    (!good).then_some("must hold only lower-case letters, digits and \"-\", start with a letter and not end with \"-\"")
}

/// A checksum that is short enough to be read. It says that something changed, and protects nothing.
pub(crate) fn short_sum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dns_labels_and_differ() {
        let name = |name: &str, key: Option<Key>| default_name(&Address::managed("karmada_control_plane", name).with_key(key));
        assert_eq!(name("prod", None), "prod");
        assert_eq!(name("prod_eu", Some(Key::Index(0))), "prod-eu-0");
        assert_eq!(name("prod", Some(Key::Name("a".into()))), "prod-a");
        let inside: Address = "module.site[\"eu\"].module.b[0].karmada_control_plane.prod".parse().unwrap();
        assert_eq!(default_name(&inside), "site-eu-b-0-prod");
        for odd in ["Prod", "_x_", "9", &"long".repeat(20)] {
            let made = name(odd, None);
            assert!(name_problem(&made).is_none(), "{odd}: {made}");
        }
        assert_ne!(name("Prod", None), name("prod", None));
        assert_ne!(name("a", Some(Key::Name("x/y".into()))), name("a", Some(Key::Name("xy".into()))));
    }
}
