//! A cluster on Kubernetes: the block `kubernetes`, read and checked once.

pub(crate) mod children;
pub(crate) mod helper;
pub(crate) mod program;
pub(crate) mod schema;
mod template;

pub(crate) use children::manifest_of;
pub(crate) use template::{pull_secrets, saved};

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Object, Type, Value};

use super::arguments::{cluster_name, known_text, not_known};
use super::hosts::Host;
use crate::versions::Version;

/// Most members; the pods are prepared for so many.
pub(crate) const MOST_MEMBERS: usize = 7;
/// What etcd says last when it would start without data and is on no list (`hasLocalMember` of its `server/config`, the same since 3.4).
pub(crate) const LOST: &str = "couldn't find local name";
/// Where images of etcd are, if nothing else is written.
const REGISTRY: &str = "registry.k8s.io";
/// The storage of who wants none that lasts.
const EMPTY_DIR: &str = "emptyDir";
/// Where that is on nodes, if nothing else is written.
const NODE_FOLDER: &str = "/var/lib/karmaform/etcd";
/// The storage on the nodes' own disks.
const HOST_PATH: &str = "hostPath";
/// The longest name: members' names get a number and what belongs to them an ending, and labels take 63 characters.
const LONGEST_NAME: usize = 45;

/// Where the data is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Storage {
    /// With the pod, and gone with it.
    EmptyDir,
    /// On the disks of these nodes, one after the other; none while they are not known.
    HostPath { nodes: Vec<Value> },
    /// In a volume of this class.
    Class(String),
}

impl Storage {
    /// True for what is the name of a class.
    pub(crate) fn is_class(storage: &str) -> bool {
        ![EMPTY_DIR, HOST_PATH].contains(&storage)
    }
}

/// The minor version of a Kubernetes cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Minor {
    /// This one.
    Known(u32),
    /// Known after apply.
    Later,
    /// The connection does not say it.
    Untold,
}

/// A cluster's place on Kubernetes.
#[derive(Clone, Debug)]
pub(crate) struct Kubernetes {
    /// Name of the StatefulSet and its headless Service.
    pub(crate) name: String,
    /// A string, perhaps not known yet.
    pub(crate) namespace: Value,
    /// How the cluster is managed.
    pub(crate) connection: Value,
    /// Its minor version.
    pub(crate) minor: Minor,
    pub(crate) members: usize,
    pub(crate) image: Value,
    pub(crate) storage: Storage,
    /// What to say of a storage class that the cluster does not have; only who needs a new volume has to hear it.
    pub(crate) missing_class: Option<Diagnostic>,
    pub(crate) storage_size: Value,
    pub(crate) required_spread: bool,
    /// Ready nodes, if known.
    pub(crate) nodes: Option<usize>,
    /// The block, for what goes into manifests as it is.
    pub(crate) block: Object,
}

impl Kubernetes {
    /// Reads the block; `None` if there is none. What is wrong goes to `found`.
    pub(crate) fn read(address: &Address, object: &Object, version: Option<&Version>, found: &mut Diagnostics) -> Option<Self> {
        let block = object.get("kubernetes").and_then(Value::as_entries)?;
        let name = name(address, block, found);
        let (connection, facts) = connection(block, found);
        let members = members(block, found);
        let fact = |name: &str| facts.and_then(|f| f.get(name)).filter(|v| v.is_wholly_known() && !v.is_null());
        let nodes = fact("nodes").and_then(Value::as_items);
        let storage = storage(block, found);
        let is_later = block.get("storage").is_some_and(Value::is_unknown);
        let classes = fact("storage_classes").filter(|_| !is_later).and_then(Value::as_items);
        let missing_class = classes.and_then(|known| missing_class(&storage, known));
        let size = given(block, "storage_size");
        match &storage {
            Storage::EmptyDir if size.is_some() => found.push(Diagnostic::error(
                "A size for nothing",
                "`storage_size` is given, but `storage` is \"emptyDir\", which has no size.",
            )),
            Storage::Class(_) | Storage::HostPath { .. } if size.is_none() => {
                found.push(
                    Diagnostic::error("No size for the data", "`storage_size` says how large each member's volume is.")
                        .with_hint("Write, for one, `storage_size = \"10Gi\"`: four times what the database may grow to."),
                );
            }
            _ => {}
        }
        let spread = text(block, "spread", "preferred", found);
        if !matches!(spread.as_str(), "preferred" | "required") {
            found.push(Diagnostic::error(
                "Unknown `spread`",
                "It is \"preferred\" or \"required\": whether two members may be on one node.",
            ));
        }
        // A node that is not ready just now is no reason to refuse every plan.
        if let Some(nodes) = nodes.map(<[Value]>::len).filter(|n| spread == "required" && *n < members) {
            found.push(
                Diagnostic::error(
                    "More members than nodes",
                    format!("`spread` is \"required\", but there are {members} members and {nodes} nodes: some would never start."),
                )
                .with_hint("Take fewer members, add nodes, or write `spread = \"preferred\"`."),
            );
        }
        Some(Self {
            name,
            namespace: namespace(block, found),
            minor: minor(&connection, facts),
            image: image(block, version, found),
            storage,
            missing_class,
            storage_size: size.unwrap_or_else(|| Value::null(Type::String)),
            required_spread: spread == "required",
            connection,
            members,
            nodes: nodes.map(ready),
            block: block.clone(),
        })
    }

    /// The name of a member, and of its pod.
    pub(crate) fn member(&self, ordinal: usize) -> String {
        format!("{}-{ordinal}", self.name)
    }

    /// The folder on nodes.
    pub(crate) fn host_path(&self) -> &str {
        self.block.get("host_path").and_then(Value::as_str).unwrap_or(NODE_FOLDER)
    }

    /// The number in a member's name.
    pub(crate) fn ordinal(&self, member: &str) -> Option<usize> {
        member.strip_prefix(&self.name)?.strip_prefix('-')?.parse().ok()
    }

    /// A member, reached by the name that its pod keeps.
    pub(crate) fn host(&self, member: &str) -> Host {
        let domain = self.namespace.as_str().map(|namespace| format!("{member}.{}.{namespace}.svc", self.name));
        let address = domain.map_or_else(|| Value::unknown_not_null(Type::String), Value::from);
        Host { connection: self.connection.clone(), address, facts: Value::null(Type::Any) }
    }

    /// The members.
    pub(crate) fn hosts(&self) -> BTreeMap<String, Host> {
        (0..self.members).map(|i| self.member(i)).map(|member| (member.clone(), self.host(&member))).collect()
    }
}

/// A value that was written.
pub(crate) fn given(block: &Object, name: &str) -> Option<Value> {
    block.get(name).filter(|v| !v.is_null()).cloned()
}

/// A text that must be known.
fn text(block: &Object, name: &str, default: &str, found: &mut Diagnostics) -> String {
    known_text(block, name, default).unwrap_or_else(|problem| {
        found.push(problem);
        default.to_owned()
    })
}

/// True for what can be a name there.
pub(crate) fn is_label(text: &str, longest: usize) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= longest
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn name(address: &Address, block: &Object, found: &mut Diagnostics) -> String {
    let default = format!("etcd-{}", cluster_name(address)).to_ascii_lowercase().replace('_', "-");
    let name = text(block, "name", &default, found);
    // A Service's name starts with a letter.
    if !is_label(&name, LONGEST_NAME) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        found.push(
            Diagnostic::error(
                "Not a name for Kubernetes",
                format!(
                    "The cluster would be called \"{name}\" there. A name starts with a lower-case letter, has only lower-case letters, \
                     digits and \"-\", and at most {LONGEST_NAME} characters."
                ),
            )
            .with_hint("Write another one into `name` of the block `kubernetes`."),
        );
    }
    name
}

/// The namespace of a block. What is wrong goes to `found`.
pub(crate) fn namespace(block: &Object, found: &mut Diagnostics) -> Value {
    let namespace = given(block, "namespace").unwrap_or_else(|| Value::null(Type::String));
    match namespace.as_str() {
        Some(text) if !is_label(text, 63) => found.push(Diagnostic::error(
            "Not a namespace",
            format!("`namespace` is \"{text}\", but has only lower-case letters, digits and \"-\", and at most 63 characters."),
        )),
        None if !namespace.is_unknown() => found.push(Diagnostic::error("No namespace", "`namespace` must be a string.")),
        _ => {}
    }
    namespace
}

/// The way to the cluster, and the facts where they are given along.
pub(crate) fn connection<'a>(block: &'a Object, found: &mut Diagnostics) -> (Value, Option<&'a Value>) {
    let cluster = block.get("cluster").filter(|v| !v.is_null());
    match cluster {
        Some(cluster) if cluster.is_unknown() => (Value::unknown(Type::Any), None),
        Some(cluster) if cluster.get("provider").is_some() => (cluster.clone(), None),
        Some(cluster) if cluster.get("connection").is_some() => {
            (cluster.get("connection").cloned().unwrap_or_else(|| Value::unknown(Type::Any)), Some(cluster))
        }
        _ => {
            found.push(
                Diagnostic::error("No way to the cluster", "`cluster` must be what a `data \"kubernetes_cluster\"` gives.")
                    .with_hint("Write `cluster = data.kubernetes_cluster.NAME`."),
            );
            (Value::unknown(Type::Any), None)
        }
    }
}

fn members(block: &Object, found: &mut Diagnostics) -> usize {
    let value = block.get("members").cloned().unwrap_or_else(|| Value::null(Type::Number));
    match value.as_i64().and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=MOST_MEMBERS).contains(n)) {
        Some(members) => members,
        None => {
            found.push(if value.is_unknown() {
                not_known("members")
            } else {
                Diagnostic::error(
                    "A number of members that etcd is not made for",
                    format!("`members` must be a whole number from 1 to {MOST_MEMBERS}; with more of them every write gets slower."),
                )
                .with_hint("Take three members, or five if one may fail while another is restarted.")
            });
            1
        }
    }
}

fn ready(nodes: &[Value]) -> usize {
    nodes.iter().filter(|n| n.get("ready").and_then(Value::as_bool) == Some(true)).count()
}

/// Why volumes of this class would never come.
fn missing_class(storage: &Storage, known: &[Value]) -> Option<Diagnostic> {
    let Storage::Class(class) = storage else { return None };
    let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
    if class.is_empty() || known.contains(&class.as_str()) {
        return None;
    }
    let there = if known.is_empty() { "has none".to_owned() } else { format!("has {}", known.join(", ")) };
    let diagnostic = Diagnostic::error("Unknown storage class", format!("`storage` is \"{class}\", but the cluster {there}."));
    Some(diagnostic.with_hint("Besides classes there are \"hostPath\" and \"emptyDir\"."))
}

fn storage(block: &Object, found: &mut Diagnostics) -> Storage {
    let storage = text(block, "storage", "", found);
    let nodes = given(block, "nodes");
    let is_on_nodes = storage == HOST_PATH;
    if nodes.is_some() && !is_on_nodes {
        found.push(Diagnostic::error("Nodes for nothing", "`nodes` says where the data of \"hostPath\" is, but `storage` is another."));
    }
    if given(block, "host_path").is_some() && !is_on_nodes {
        found.push(Diagnostic::error(
            "A folder for nothing",
            "`host_path` says where the data of \"hostPath\" is, but `storage` is another.",
        ));
    }
    match storage.as_str() {
        EMPTY_DIR => Storage::EmptyDir,
        HOST_PATH => {
            // Written, and not those that happen to be ready: a member's data does not move when a node comes or goes.
            let is_later = nodes.as_ref().is_some_and(Value::is_unknown);
            let nodes = nodes.as_ref().and_then(Value::as_items).map(<[Value]>::to_vec).unwrap_or_default();
            if nodes.is_empty() && !is_later {
                found.push(
                    Diagnostic::error("No nodes for the data", "`storage` is \"hostPath\", but `nodes` does not say on which nodes.")
                        .with_hint("Write the nodes' names into `nodes`: one for each member, in the order of the members."),
                );
            }
            Storage::HostPath { nodes }
        }
        class => {
            let is_later = block.get("storage").is_some_and(Value::is_unknown);
            if class.is_empty() && !is_later {
                found.push(Diagnostic::error("No storage for the data", "`storage` must say where the members' data is.").with_hint(
                    "Write the name of a storage class, \"hostPath\" for the nodes' own disks, or \"emptyDir\" for data that may be lost.",
                ));
            }
            Storage::Class(class.to_owned())
        }
    }
}

/// The image of etcd.
pub(crate) fn image(block: &Object, version: Option<&Version>, found: &mut Diagnostics) -> Value {
    if let Some(image) = given(block, "image") {
        if let (Some(text), Some(version)) = (image.as_str(), version)
            && let Some(other) = version_in(text).filter(|tag| (tag.minor, tag.patch) != (version.minor, version.patch))
        {
            let what = format!("`image` is \"{text}\", which is etcd {}, and `version` says {}.", other.text, version.text);
            found.push(Diagnostic::error("The image is of another version", what).with_hint("Let both say the same."));
        }
        return image;
    }
    let version = version.map(|v| v.text.as_str()).unwrap_or_default();
    match given(block, "registry") {
        Some(registry) if registry.as_str().is_none() => Value::unknown_not_null(Type::String),
        registry => {
            let registry = registry.as_ref().and_then(Value::as_str).unwrap_or(REGISTRY).trim_end_matches('/');
            format!("{registry}/etcd:{version}-0").into()
        }
    }
}

/// The version in an image's tag; `None` where it has none.
fn version_in(image: &str) -> Option<Version> {
    let last = image.rsplit('/').next()?.split('@').next()?;
    Version::read(last.split_once(':')?.1.trim_start_matches('v'))
}

/// From the second number of `1.20.2` or `v1.36.0+k3s1`.
pub(crate) fn minor(connection: &Value, facts: Option<&Value>) -> Minor {
    let version = facts.and_then(|f| f.get("version")).or_else(|| connection.get("version"));
    if connection.is_unknown() || version.is_some_and(Value::is_unknown) {
        return Minor::Later;
    }
    let number = version.and_then(Value::as_str).and_then(|v| v.split('.').nth(1)?.parse().ok());
    number.map_or(Minor::Untold, Minor::Known)
}
