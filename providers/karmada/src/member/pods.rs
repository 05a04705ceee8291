//! How a program of Karmada runs in pods for one member: what the blocks `agent` and `estimator` have settings for alike.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Attribute, Type, Value};
use serde_json::{Value as Json, json};

use super::children::labels;
use crate::plane::{KARMADA_REGISTRY, short_sum};
use crate::read::Reader;

/// How long pods may take, in seconds: images are pulled.
pub(crate) const ROLLOUT_TIMEOUT: i64 = 300;

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;

/// Which image, how many, where, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Pods {
    /// Its version, if it is known by one.
    pub(crate) version: Option<String>,
    pub(crate) image: Value,
    image_pull_policy: Value,
    image_pull_secrets: Vec<String>,
    replicas: i64,
    resources: Value,
    extra_args: BTreeMap<String, Value>,
    node_selector: Value,
    tolerations: Value,
    annotations: Value,
    labels: Value,
    priority_class: Value,
    run_as_user: Option<i64>,
}

/// What a program's Deployment has of its own.
pub(crate) struct Shape {
    /// The program: `karmada-agent`. It is `/bin/` and this in its image, and the label by which its pods are found.
    pub(crate) program: &'static str,
    pub(crate) name: Arg,
    pub(crate) namespace: Arg,
    /// Who it is in its cluster; nobody unless given.
    pub(crate) account: Option<Arg>,
    /// Its flags, without the user's.
    pub(crate) flags: BTreeMap<String, Arg>,
    /// The Secret with its files, and where they are.
    pub(crate) secret: (Arg, &'static str),
    /// The container's other fields.
    pub(crate) container: Json,
    /// What makes new pods when it changes.
    pub(crate) marks: Vec<(&'static str, Arg)>,
}

/// The attributes.
pub(crate) fn attributes() -> Vec<Attribute> {
    let text = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::String, doc);
    let strings = || Type::map(Type::String);
    vec![
        text("version", "Its version: \"1.19.0\". Unless written, the version of the control plane, if karmaform made that."),
        text("registry", "The registry of its image.").or(KARMADA_REGISTRY),
        text("image", "Its image, as a whole, instead of `version` and `registry`."),
        text("image_pull_policy", "When the image is pulled: \"IfNotPresent\", \"Always\" or \"Never\"."),
        Attribute::optional("image_pull_secrets", Type::list(Type::String), "Secrets in its namespace to pull with."),
        Attribute::optional("replicas", Type::Number, "How many of it run. 2 unless written."),
        Attribute::optional("resources", Type::Any, "Its `resources`: `requests` and `limits`."),
        Attribute::optional(
            "extra_args",
            strings(),
            "More flags, by their names without dashes; they win over those that are set anyway, and one that is null is left out.",
        ),
        Attribute::optional("node_selector", strings(), "Labels of the nodes that it runs on."),
        Attribute::optional("tolerations", Type::Any, "Its `tolerations`."),
        Attribute::optional("annotations", strings(), "Annotations of its pods."),
        Attribute::optional("labels", strings(), "Labels of its pods."),
        text("priority_class", "Its priority class."),
        Attribute::optional(
            "run_as_user",
            Type::Number,
            "The user that its pods run as, by its number, as namespaces with `pod-security.kubernetes.io/enforce: restricted` ask for: 65532, for one. \
             Unless written, who the image says, which is root, or the cluster.",
        ),
    ]
}

impl Pods {
    /// Reads them, for this program in a member of this control plane.
    pub(crate) fn read(reader: &mut Reader<'_, '_>, program: &str, plane: &Value) -> Option<Self> {
        let of_plane = || plane.get("karmada_version").and_then(Value::as_str).map(str::to_owned);
        let is_written = reader.value("image").is_some() || reader.value("version").is_some();
        let (image, version) = match (reader.value("image").cloned(), reader.text("version")) {
            (Some(image), None) => (image, None),
            (None, version) if version.is_some() || (!is_written && of_plane().is_some()) => {
                let version = version.or_else(of_plane)?.trim_start_matches('v').to_owned();
                let registry = reader.text("registry").unwrap_or_else(|| KARMADA_REGISTRY.to_owned());
                (format!("{registry}/{program}:v{version}").into(), Some(version))
            }
            // It was said that it is not known yet.
            (None, None) if is_written => return None,
            // The control plane is asked for when there is one.
            (None, None) if plane.is_unknown() => (Value::unknown_not_null(Type::String), None),
            _ => return reader.wrong("version", &format!("or `image` must be written, one of them: which {program} runs is not known")),
        };
        for name in ["labels", "annotations"] {
            if reader.value(name).is_some_and(Value::is_unknown) {
                reader.later::<()>(name);
            }
        }
        Some(Self {
            version,
            image,
            image_pull_policy: reader.given("image_pull_policy"),
            image_pull_secrets: reader.texts("image_pull_secrets"),
            replicas: reader.number("replicas", 0..=100).unwrap_or(2),
            resources: reader.given("resources"),
            extra_args: extra_args(reader),
            node_selector: reader.given("node_selector"),
            tolerations: reader.given("tolerations"),
            annotations: reader.given("annotations"),
            labels: reader.given("labels"),
            priority_class: reader.given("priority_class"),
            run_as_user: reader.number("run_as_user", 1..=i64::from(i32::MAX)),
        })
    }

    /// The Deployment.
    pub(crate) fn deployment(&self, shape: Shape) -> Arg {
        let mut container = json!({
            "name": shape.program,
            "command": [format!("/bin/{}", shape.program)],
            "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
            "volumeMounts": [{ "name": "kubeconfig", "mountPath": shape.secret.1, "readOnly": true }],
        });
        if let (Some(own), Some(all)) = (shape.container.as_object(), container.as_object_mut()) {
            all.extend(own.clone());
        }
        let mut manifest = Arg::from_json(&json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "labels": labels() },
            "spec": {
                "replicas": self.replicas,
                "template": { "spec": { "containers": [container], "volumes": [{ "name": "kubeconfig", "secret": {} }] } },
            },
        }));
        let pod = ["spec", "template", "spec"];
        let within = |rest: &[&'static str]| pod.iter().copied().chain(rest.iter().copied()).collect::<Vec<_>>();
        manifest.set(&["metadata", "name"], shape.name.clone());
        manifest.set(&["metadata", "namespace"], shape.namespace);
        for place in [["spec", "selector", "matchLabels"].as_slice(), &["spec", "template", "metadata", "labels"]] {
            manifest.set(place, selector(shape.program, &shape.name));
        }
        match shape.account {
            Some(account) => manifest.set(&within(&["serviceAccountName"]), account),
            None => manifest.set(&within(&["automountServiceAccountToken"]), false.into()),
        }
        manifest.set(&within(&["volumes", "0", "secret", "secretName"]), shape.secret.0);
        manifest.set(&within(&["containers", "0", "image"]), self.image.clone().into());
        manifest.set(&within(&["containers", "0", "args"]), Arg::List(arguments(shape.flags, &self.extra_args)));
        for (name, mark) in shape.marks {
            manifest.set(&["spec", "template", "metadata", "annotations", name], mark);
        }
        for (path, value) in [
            (within(&["containers", "0", "imagePullPolicy"]), &self.image_pull_policy),
            (within(&["containers", "0", "resources"]), &self.resources),
            (within(&["nodeSelector"]), &self.node_selector),
            (within(&["tolerations"]), &self.tolerations),
            (within(&["priorityClassName"]), &self.priority_class),
        ] {
            if !value.is_null() {
                manifest.set(&path, value.clone().into());
            }
        }
        if let Some(user) = self.run_as_user {
            let security = json!({
                "runAsNonRoot": true, "runAsUser": user, "runAsGroup": user, "fsGroup": user, "seccompProfile": { "type": "RuntimeDefault" },
            });
            manifest.set(&within(&["securityContext"]), Arg::from_json(&security));
        }
        for (place, given) in [("annotations", &self.annotations), ("labels", &self.labels)] {
            for (key, value) in given.as_entries().into_iter().flatten() {
                manifest.set(&["spec", "template", "metadata", place, key], value.clone().into());
            }
        }
        if !self.image_pull_secrets.is_empty() {
            let names: Vec<_> = self.image_pull_secrets.iter().map(|name| json!({ "name": name })).collect();
            manifest.set(&within(&["imagePullSecrets"]), Arg::from_json(&json!(names)));
        }
        manifest
    }
}

/// The user's flags, by name.
pub(crate) fn extra_args(reader: &mut Reader<'_, '_>) -> BTreeMap<String, Value> {
    if reader.value("extra_args").is_some_and(Value::is_unknown) {
        reader.later::<()>("extra_args");
    }
    reader.value("extra_args").and_then(Value::as_entries).cloned().unwrap_or_default().into_iter().collect()
}

/// A program's arguments: these flags, and over them the user's; one that is null is left out.
pub(crate) fn arguments(mut flags: BTreeMap<String, Arg>, extra: &BTreeMap<String, Value>) -> Vec<Arg> {
    for (name, value) in extra {
        if value.is_null() {
            flags.remove(name);
        } else {
            flags.insert(name.clone(), value.clone().into());
        }
    }
    flags.into_iter().map(|(name, value)| Arg::Text(vec![format!("--{name}=").into(), value])).collect()
}

/// The labels by which a program's pods are found. With their own name: those of another control plane, or member, may be beside them.
pub(crate) fn selector(program: &str, name: &Arg) -> Arg {
    // A label has room for less than a name.
    let instance = match name.resolve(&|_, _| Value::unknown(Type::String)).as_str() {
        Some(text) if text.len() > LONGEST_LABEL => format!("{}-{}", &text[..LONGEST_LABEL - 9], &short_sum(text)[..8]).into(),
        _ => name.clone(),
    };
    Arg::object([("app.kubernetes.io/name", program.into()), ("app.kubernetes.io/instance", instance)])
}
