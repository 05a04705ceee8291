//! The settings of a component: what its own block says over what `defaults` says.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics, Object, Type, Value};

use super::schema::REPLICAS;
use super::target::Target;
use crate::check::{is_label_key, is_label_value};
use crate::read::Reader;
use crate::versions::{Component, Version, check_flag, check_gate};

/// Settings that are merged by key instead of replaced.
const MAPS: [&str; 6] = ["extra_args", "feature_gates", "labels", "annotations", "node_selector", "unit"];
/// What is for pods alone, and what for hosts.
const OF_PODS: [&str; 14] = [
    "replicas",
    "resources",
    "labels",
    "annotations",
    "node_selector",
    "tolerations",
    "affinity",
    "topology_spread",
    "priority_class",
    "disruption_budget",
    "extra_volumes",
    "extra_volume_mounts",
    "sidecars",
    "patch",
];
const OF_HOSTS: [&str; 4] = ["hosts", "source", "source_sha256", "unit"];
/// Settings that are texts.
const TEXTS: [&str; 6] = ["image", "tag", "digest", "priority_class", "source", "source_sha256"];
/// Settings that are a pod's own structures: an object.
const OBJECTS: [&str; 3] = ["resources", "affinity", "patch"];
/// The same: a list of objects, and whether each needs a name.
const LISTS: [(&str, bool); 5] =
    [("tolerations", false), ("topology_spread", false), ("extra_volumes", true), ("extra_volume_mounts", true), ("sidecars", true)];
/// Labels that karmaform finds its pods by.
const OUR_LABELS: &str = "app.kubernetes.io/";
/// Annotations that karmaform restarts pods by.
const OUR_ANNOTATIONS: &str = "karmaform.io/";
/// More pods than this of one component are a mistake.
const MOST_REPLICAS: i64 = 100;

/// How many pods may be away at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Budget {
    /// Nothing is said; one, if there are two.
    Unsaid,
    /// No budget.
    None,
    /// This field of a PodDisruptionBudget with this value.
    Of(&'static str, Value),
}

/// A component's settings. Values that are null are not set; those that are unknown are known after apply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) replicas: Option<i64>,
    pub(crate) budget: Option<Budget>,
    /// The only hosts that it runs on.
    pub(crate) hosts: Option<Vec<String>>,
    values: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// What is set, or null.
    pub(crate) fn value(&self, name: &str) -> Value {
        self.values.get(name).cloned().unwrap_or_else(|| Value::null(Type::Any))
    }

    /// The entries of a map; `None` while not even its keys are known.
    pub(crate) fn entries(&self, name: &str) -> Option<Object> {
        let value = self.value(name);
        if value.is_unknown() { None } else { Some(value.as_entries().cloned().unwrap_or_default()) }
    }

    /// How many pods.
    pub(crate) fn replicas(&self) -> i64 {
        self.replicas.unwrap_or(REPLICAS)
    }

    /// How many may be away, if anybody minds.
    pub(crate) fn budget(&self) -> Option<(&'static str, Value)> {
        match self.budget.as_ref().unwrap_or(&Budget::Unsaid) {
            Budget::Of(field, value) => Some((field, value.clone())),
            Budget::Unsaid if self.replicas() > 1 => Some(("maxUnavailable", 1i64.into())),
            _ => None,
        }
    }

    /// These over `defaults`.
    pub(crate) fn over(mut self, defaults: &Self) -> Self {
        self.replicas = self.replicas.or(defaults.replicas);
        self.budget = self.budget.or_else(|| defaults.budget.clone());
        self.hosts = self.hosts.or_else(|| defaults.hosts.clone());
        for (name, default) in &defaults.values {
            let own = self.value(name);
            let value = match (own.as_entries(), default.as_entries()) {
                (Some(own), Some(default)) if MAPS.contains(name) => {
                    let mut both = default.clone();
                    both.extend(own.clone());
                    both.into()
                }
                // Not all keys are known.
                _ if MAPS.contains(name) && default.is_unknown() => default.clone(),
                _ if own.is_null() => default.clone(),
                _ => continue,
            };
            self.values.insert(name, value);
        }
        self
    }

    /// Reads and checks a block of settings.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, target: &Target) -> Self {
        let (strays, what) = match target {
            Target::Hosts(_) => (&OF_PODS[..], "is for pods, and this control plane is on hosts"),
            Target::Kubernetes(_) => (&OF_HOSTS[..], "is for hosts, and this control plane is in a cluster"),
        };
        for name in strays {
            if reader.value(name).is_none() {
                continue;
            }
            reader.wrong::<()>(name, what);
        }
        let mut settings = Self { replicas: reader.number("replicas", 0..=MOST_REPLICAS), ..Self::default() };
        for name in TEXTS.into_iter().chain(MAPS) {
            settings.take(reader, name);
        }
        for name in OBJECTS {
            settings.take(reader, name);
            let value = settings.value(name);
            if !is_open(&value) && value.as_entries().is_none() {
                reader.wrong::<()>(name, "must be an object");
            }
        }
        for (name, named) in LISTS {
            settings.take(reader, name);
            check_list(reader, name, named, &settings.value(name));
        }
        check_images(reader, &settings);
        check_maps(reader, &settings);
        check_patch(reader, &settings.value("patch"));
        settings.budget = budget(reader);
        settings.hosts = placement(reader, target);
        check_unit(reader, &settings);
        if settings.value("source").is_null() && !settings.value("source_sha256").is_null() {
            reader.wrong::<()>("source_sha256", "is the sum of `source`, which is not there");
        }
        settings
    }

    fn take(&mut self, reader: &Reader<'_, '_>, name: &'static str) {
        if let Some(value) = reader.value(name) {
            self.values.insert(name, value.clone());
        }
    }

    /// Checks flags and feature gates against what the component of this version knows.
    pub(crate) fn check(&self, component: Component, version: &Version, kube_minor: u32, found: &mut Diagnostics) {
        let mut refuse = |summary: &str, why: String, hint: Option<String>| {
            let diagnostic = Diagnostic::error(summary, format!("{}: {why}", component.name()));
            found.push(match hint {
                Some(hint) => diagnostic.with_hint(hint),
                None => diagnostic,
            });
        };
        let flags = self.entries("extra_args").unwrap_or_default();
        let gates = self.entries("feature_gates").unwrap_or_default();
        for (flag, value) in flags.iter().filter(|(_, v)| !v.is_null()) {
            let plain = flag.trim_start_matches('-');
            if plain != flag || flag.contains('=') || flag.is_empty() || flag.chars().any(char::is_whitespace) {
                let why = format!("\"{flag}\" is not the name of a flag. Names are written without dashes before and without a value.");
                refuse("A flag that can't be used", why, (!plain.is_empty() && plain != flag).then(|| format!("Write `{plain}`.")));
            } else if flag == "etcd-prefix" {
                let why = "All that use etcd must have the same prefix, so it is no flag of one component.".to_owned();
                refuse(
                    "A flag that can't be used",
                    why,
                    Some("Write `prefix` in `etcd`: `merge(etcd_cluster.NAME.client, { prefix = \"/x\" })`.".to_owned()),
                );
            } else if flag == "feature-gates" && !gates.is_empty() {
                let why = "The flag `feature-gates` and `feature_gates` are both set, and one would hide the other.".to_owned();
                refuse("A flag that can't be used", why, Some("Put all gates into `feature_gates`.".to_owned()));
            } else if value.as_str().is_some_and(|v| v.chars().any(char::is_control)) {
                refuse(
                    "A flag that can't be used",
                    format!("The value of \"{flag}\" holds a line break or another control character."),
                    None,
                );
            } else if let Err((why, hint)) = check_flag(component, flag, version, kube_minor) {
                refuse("A flag that can't be used", format!("\"{flag}\": {why}"), hint);
            }
        }
        for gate in gates.keys() {
            if let Err((why, hint)) = check_gate(component, gate, version) {
                refuse("A feature gate that can't be used", format!("\"{gate}\": {why}"), hint);
            }
        }
    }

    /// Why API servers with these would be taken for dead: whoever asks them whether they are ready has no credentials.
    pub(crate) fn would_seem_dead(&self, target: &Target) -> Option<Diagnostic> {
        let flags = self.entries("extra_args")?;
        let anonymous = flags.iter().find(|(name, _)| name.replace('_', "-") == "anonymous-auth")?.1.as_str()?.to_lowercase();
        let who = match target.hosts() {
            None => "the probes of its pods ask",
            Some(hosts) if hosts.balancer.as_ref().is_some_and(|balancer| balancer.ours.is_some()) => "haproxy asks",
            // Whether a load balancer of somebody else asks at all, or with what, nobody knows here.
            Some(_) => return None,
        };
        matches!(anonymous.as_str(), "false" | "f" | "0").then(|| {
            let detail = format!("apiserver: \"anonymous-auth\": {who} without credentials whether it is ready, and would take it for dead.");
            Diagnostic::error("A flag that can't be used", detail).with_hint(
                "Leave it out: without credentials nothing is told but the version, whether it is well, and the `cluster-info` that members register with.",
            )
        })
    }

    /// Without the feature gates that this component does not have: gates in `defaults` are for those that do.
    pub(crate) fn gates_for(&self, component: Component, version: &Version) -> Self {
        let mut settings = self.clone();
        if let Some(gates) = self.entries("feature_gates").filter(|g| !g.is_empty()) {
            let known = gates.into_iter().filter(|(gate, _)| check_gate(component, gate, version).is_ok()).collect();
            settings.values.insert("feature_gates", Value::map(Type::Bool, known));
        }
        settings
    }
}

/// Nothing that could be checked yet.
fn is_open(value: &Value) -> bool {
    value.is_null() || value.is_unknown()
}

fn check_list(reader: &mut Reader<'_, '_>, name: &str, named: bool, value: &Value) {
    if is_open(value) {
        return;
    }
    let Some(items) = value.as_items() else {
        reader.wrong::<()>(name, "must be a list of objects");
        return;
    };
    for item in items.iter().filter(|i| !i.is_unknown()) {
        let has_name = item.get("name").is_some_and(|n| n.is_unknown() || n.as_str().is_some_and(|n| !n.is_empty()));
        if item.as_entries().is_none() {
            reader.wrong::<()>(name, "must be a list of objects");
        } else if named && !has_name {
            reader.wrong::<()>(name, "has an item without a `name`");
        }
    }
}

fn check_images(reader: &mut Reader<'_, '_>, settings: &Settings) {
    let text = |name: &str| settings.value(name).as_str().map(str::to_owned);
    if let Some(image) = text("image") {
        let last = image.rsplit('/').next().unwrap_or_default();
        if image.is_empty() || image.chars().any(char::is_whitespace) {
            reader.wrong::<()>("image", "is not the name of an image");
        } else if last.contains([':', '@']) {
            reader.wrong::<()>("image", "holds a tag or a digest; these are the arguments `tag` and `digest`");
        }
    }
    if let Some(tag) = text("tag") {
        let good = tag.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) && !tag.starts_with(['.', '-']);
        if tag.is_empty() || tag.len() > 128 || !good {
            reader.wrong::<()>("tag", "is not the tag of an image");
        }
    }
    if let Some(digest) = text("digest") {
        let sum = digest.strip_prefix("sha256:").unwrap_or_default();
        if sum.len() != 64 || !sum.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            reader.wrong::<()>("digest", "must be \"sha256:\" and 64 hexadecimal digits");
        }
    }
}

fn check_maps(reader: &mut Reader<'_, '_>, settings: &Settings) {
    for name in ["labels", "node_selector"] {
        for (key, value) in settings.entries(name).unwrap_or_default() {
            if !is_label_key(&key) || value.as_str().is_some_and(|v| !is_label_value(v)) {
                reader.wrong::<()>(name, &format!("has an entry \"{key}\" that is no label"));
            }
        }
    }
    for (name, ours) in [("labels", OUR_LABELS), ("annotations", OUR_ANNOTATIONS)] {
        for key in settings.entries(name).unwrap_or_default().keys().filter(|k| k.starts_with(ours)) {
            reader.wrong::<()>(name, &format!("has \"{key}\", but karmaform keeps what starts with \"{ours}\" for itself"));
        }
    }
}

/// What names the Deployment and what it finds its pods by can't be patched: it would be another Deployment.
fn check_patch(reader: &mut Reader<'_, '_>, patch: &Value) {
    for path in [&["apiVersion"][..], &["kind"], &["metadata", "name"], &["metadata", "namespace"], &["spec", "selector"], &["status"]] {
        if path.iter().try_fold(patch, |here, step| here.get(step)).is_some() {
            reader.wrong::<()>("patch", &format!("holds `{}`, which can't be changed", path.join(".")));
        }
    }
}

/// The hosts that are written, which must be hosts of the control plane.
fn placement(reader: &mut Reader<'_, '_>, target: &Target) -> Option<Vec<String>> {
    let all = &target.hosts()?.all;
    reader.value("hosts")?;
    let names = reader.texts("hosts");
    for name in names.iter().filter(|n| !all.contains_key(*n)) {
        reader.wrong::<()>("hosts", &format!("has \"{name}\", which is no host of this control plane"));
    }
    Some(names)
}

/// Lines of a unit file.
fn check_unit(reader: &mut Reader<'_, '_>, settings: &Settings) {
    for (name, value) in settings.entries("unit").unwrap_or_default() {
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_name || value.as_str().is_some_and(|v| v.chars().any(char::is_control)) {
            reader.wrong::<()>("unit", &format!("has an entry \"{name}\" that is no setting of one line, like `MemoryMax = \"2G\"`"));
        } else if name.starts_with("Exec") || matches!(name.as_str(), "Type" | "User" | "Group") {
            reader.wrong::<()>("unit", &format!("has \"{name}\", which karmaform sets itself"));
        }
    }
}

fn budget(reader: &mut Reader<'_, '_>) -> Option<Budget> {
    let value = reader.value("disruption_budget")?;
    if value.is_unknown() {
        return reader.later("disruption_budget");
    }
    if value.as_bool() == Some(false) {
        return Some(Budget::None);
    }
    let said = [("min_available", "minAvailable"), ("max_unavailable", "maxUnavailable")]
        .into_iter()
        .filter_map(|(name, field)| Some((field, value.get(name).filter(|v| !v.is_null())?)));
    let said: Vec<_> = said.collect();
    let good = |v: &Value| {
        let percent = v.as_str().and_then(|t| t.strip_suffix('%')).and_then(|n| n.parse::<u8>().ok()).is_some_and(|n| n <= 100);
        v.is_unknown() || percent || v.as_i64().is_some_and(|n| n >= 0)
    };
    match said[..] {
        [(field, v)] if good(v) && value.as_entries().is_some_and(|e| e.values().filter(|v| !v.is_null()).count() == 1) => {
            Some(Budget::Of(field, v.clone()))
        }
        _ => reader.wrong(
            "disruption_budget",
            "must be `false`, or an object with one of `min_available` and `max_unavailable`: a number or a percentage (\"50%\")",
        ),
    }
}
