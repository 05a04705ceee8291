//! What a `karmada_control_plane` block may hold, and its defaults.

mod ways;

use std::sync::LazyLock;

use karmaform_model::{Attribute, Block, Nesting, ObjectAttribute, Schema, Type, Value};

/// The domain of a host cluster unless it says otherwise.
pub(crate) const DOMAIN: &str = "cluster.local";
/// The range of Service addresses in the Karmada API. Nothing listens there; what all installers of Karmada use.
pub(crate) const SERVICE_SUBNET: &str = "10.96.0.0/12";
/// Where Karmada's images are. Source: `operator/pkg/apis/operator/v1alpha1/defaults.go` of karmada.
pub(crate) const KARMADA_REGISTRY: &str = "docker.io/karmada";
/// Where the images of Kubernetes are.
pub(crate) const KUBE_REGISTRY: &str = "registry.k8s.io";
/// The namespace on the host cluster.
pub(crate) const NAMESPACE: &str = "karmada-system";
/// How long leaf certificates are valid: a year.
pub(crate) const VALIDITY_HOURS: i64 = 8760;
/// How long a CA is valid: ten years.
pub(crate) const CA_VALIDITY_HOURS: i64 = 87_600;
/// How long before its end a leaf certificate is renewed: a third of its life.
pub(crate) const RENEW_BEFORE_HOURS: i64 = 2880;
/// Two of everything, so that a restart or a lost node takes nothing away.
pub(crate) const REPLICAS: i64 = 2;

pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "A Karmada control plane in a Kubernetes cluster, or on Linux hosts: its own certificates, the API server and Karmada's components with \
         the rights that each needs, and everything inside the Karmada API that makes it one. etcd is given.",
        inputs().into_iter().chain(outputs()).collect(),
    )
    .with_blocks(blocks())
});

fn inputs() -> Vec<Attribute> {
    let etcd = [
        ("endpoints", ObjectAttribute::required(Type::list(Type::String))),
        ("ca_certificate", ObjectAttribute::required(Type::String)),
        ("certificate", ObjectAttribute::required(Type::String)),
        ("private_key", ObjectAttribute::required(Type::String)),
        ("prefix", ObjectAttribute::optional(Type::String)),
        ("cluster_id", ObjectAttribute::optional(Type::String)),
    ];
    vec![
        Attribute::required("version", Type::String, "The Karmada version: `1.19.0`. It is raised by one minor version at a time."),
        Attribute::optional_computed(
            "kube_version",
            Type::String,
            "The version of kube-apiserver and kube-controller-manager: `1.36.2`. Unless written, the one that goes with that Karmada.",
        ),
        Attribute::required(
            "etcd",
            Type::Object(etcd.into_iter().map(|(n, a)| (n.to_owned(), a)).collect()),
            "The etcd to keep everything in, as the attribute `client` of an `etcd_cluster` gives it: `endpoints` (https URLs), \
             `ca_certificate`, `certificate`, `private_key`, and optionally `prefix`, the prefix of all keys, which several control planes \
             on one etcd must not share (\"/registry\"). With another `cluster_id` (it was restored) all components start anew: what they \
             remember is of another time. To another etcd everything below the prefix goes along, while all that use it are stopped.",
        )
        .secret(),
        Attribute::optional(
            "hosts",
            Type::Any,
            "The hosts by name, unless the control plane is in a cluster: a `data \"ssh_host\"` with `for_each`, or a map of such objects. \
             Every component runs on each of them, as units of systemd; those of which one works at a time choose one.",
        ),
        Attribute::optional(
            "addresses",
            Type::map(Type::String),
            "IP addresses by host that the others use, where it is not the address that the host is managed by.",
        ),
        Attribute::optional(
            "ports",
            Type::map(Type::Number),
            "Ports on hosts, where another one than usual is meant: `apiserver` (5443), `aggregated-apiserver` (7443), `webhook` (8443), \
             `search` (9443), `metrics-adapter` (9444); on a host's loopback alone `kube-controller-manager` (10257), `scheduler-health` \
             (10351), `controller-manager-health` (10357), `descheduler-health` (10358), `webhook-health` (10359), \
             `controller-manager-metrics` (10380), `scheduler-metrics` (10381), `descheduler-metrics` (10382), `webhook-metrics` (10383) and \
             `metrics-adapter-metrics` (10384).",
        ),
        Attribute::optional(
            "dns_name",
            Type::String,
            "A DNS name with the addresses of all hosts, by which the components find each other. Unless written, each host gets lines in \
             /etc/hosts for that.",
        ),
        Attribute::optional(
            "karmada_source",
            Type::String,
            "Where Karmada's programs for hosts come from, if not out of the images of `karmada_registry`: a path or URL of a tar archive that \
             has them all, or of each with `{program}`, `{version}` and `{arch}` in it.",
        ),
        Attribute::optional("karmada_source_sha256", Type::String, "The SHA-256 sum of that archive; or the path or URL of a file of sums, with the same words in braces or a line for each program."),
        Attribute::optional(
            "kube_source",
            Type::String,
            "The same for kube-apiserver and kube-controller-manager, if not out of the images of `kube_registry`: \
             `kubernetes-server-linux-{arch}.tar.gz`, or `https://dl.k8s.io/v{version}/bin/linux/{arch}/{program}`.",
        ),
        Attribute::optional("kube_source_sha256", Type::String, "The SHA-256 sum of that archive; or the path or URL of a file of sums, with the same words in braces or a line for each program."),
        Attribute::optional(
            "adopt_etcd_data",
            Type::Bool,
            "Whether to take over what is below the prefix in etcd already, whosever it is: to bring back a control plane from its data, or to \
             take over one that something else made. Otherwise a prefix that is not free is refused. Together with another etcd: that what is \
             there counts, and nothing is to go along.",
        )
        .or(false),
        Attribute::optional(
            "etcd_data_on_destroy",
            Type::String,
            "What happens to everything below the prefix in etcd when the control plane is destroyed: \"keep\" or \"delete\".",
        )
        .or("keep"),
        Attribute::optional(
            "crds",
            Type::String,
            "The archive of Karmada's CRDs, `crds.tar.gz` of that release: a path, or a `file:` or `https:` URL.",
        ),
        Attribute::optional("crds_sha256", Type::String, "The SHA-256 of that archive in hexadecimal digits."),
        Attribute::optional("install_crds", Type::Bool, "Whether to install the CRDs. Without them, someone else must.").or(true),
        Attribute::optional_computed(
            "name",
            Type::String,
            "What everything on the host cluster is called after; several control planes in a namespace need different ones. Unless \
             written, the resource's name.",
        ),
        Attribute::optional(
            "scheduler_estimators",
            Type::Bool,
            "Whether the scheduler asks the members' estimators. Then every member should have one: where one of several that a workload may go \
             to has none, it asks none of them, and it looks 10 s for each that is missing before it starts to work.",
        )
        .or(false),
        Attribute::optional(
            "requests_per_second",
            Type::Number,
            "The most requests that karmaform asks the Karmada API in a second, for this and for members; as many as there are unless written.",
        ),
        Attribute::optional("cluster_domain", Type::String, "The DNS domain of the host cluster.").or(DOMAIN),
        Attribute::optional(
            "service_subnet",
            Type::String,
            "The range of Service addresses in the Karmada API. On hosts with addresses of IPv6 \"fd00:10:96::/112\" takes the place of the usual one.",
        )
        .or(SERVICE_SUBNET),
        Attribute::optional("karmada_registry", Type::String, "Where the images of Karmada are.").or(KARMADA_REGISTRY),
        Attribute::optional("kube_registry", Type::String, "Where the images of Kubernetes are.").or(KUBE_REGISTRY),
        Attribute::optional("image_pull_secrets", Type::list(Type::String), "Names of Secrets with credentials for the registries.")
            .or(Value::strings::<&str>([])),
        Attribute::optional("image_pull_policy", Type::String, "\"IfNotPresent\", \"Always\" or \"Never\".").or("IfNotPresent"),
    ]
}

fn outputs() -> Vec<Attribute> {
    vec![
        Attribute::computed("kubeconfig", Type::String, "A kubeconfig of an administrator.").secret(),
        Attribute::computed(
            "connection",
            Type::Any,
            "Connection to the Karmada API, for other resources; through the host cluster, or any of the hosts.",
        ),
        Attribute::computed("ca_certificate", Type::String, "The CA of the Karmada API's certificate, as PEM."),
        Attribute::computed("endpoint", Type::String, "Where people reach the Karmada API: the server in `kubeconfig`."),
        Attribute::computed("namespace", Type::String, "The namespace on the host cluster."),
    ]
}

fn blocks() -> Vec<Block> {
    let block = |name, nesting, doc, attributes| Block { name, nesting, schema: Schema::new(doc, attributes) };
    let mut component = images();
    component.extend(settings());
    vec![
        block("kubernetes", Nesting::Single, "The host cluster and the place in it.", kubernetes()),
        block("load_balancer", Nesting::Single, "What is in front of the API servers on hosts.", ways::balancer()),
        block("service", Nesting::Single, "How the API server is reached from outside.", ways::service()),
        block(
            "ingress",
            Nesting::Single,
            "An Ingress that hands TLS on to the API server by the name that clients ask for; its controller must be able to.",
            ways::ingress(),
        ),
        ways::tls_route(),
        block("certificates", Nesting::Single, "The certificates. All keys are ECDSA P-256.", certificates()),
        block("defaults", Nesting::Single, "Settings of all components that don't say otherwise.", settings()),
        block(
            "component",
            Nesting::Map,
            "Settings of a component, by its name: `scheduler`, `kube-controller-manager`.",
            component.clone(),
        ),
        block("addon", Nesting::Map, "An addon to install: `search`, `descheduler` or `metrics-adapter`.", component),
        block("encryption", Nesting::Single, "Encryption of objects in etcd.", encryption()),
        block("oidc", Nesting::Single, "An OpenID Connect issuer whose users the Karmada API knows.", oidc()),
        block("audit", Nesting::Single, "The audit log of the Karmada API.", audit()),
    ]
}

fn kubernetes() -> Vec<Attribute> {
    vec![
        Attribute::required("cluster", Type::Any, "The host cluster: a `data \"kubernetes_cluster\"`."),
        Attribute::optional("namespace", Type::String, "The namespace to run in.").or(NAMESPACE),
        Attribute::optional(
            "create_namespace",
            Type::Bool,
            "Whether to make the namespace if it is not there; for a control plane that is alone in it. It goes with the control plane then.",
        )
        .or(false),
    ]
}

fn certificates() -> Vec<Attribute> {
    vec![
        Attribute::optional("validity_hours", Type::Number, "How long certificates are valid, in hours.").or(VALIDITY_HOURS),
        Attribute::optional("ca_validity_hours", Type::Number, "How long the CAs are valid, in hours.").or(CA_VALIDITY_HOURS),
        Attribute::optional("renew_before_hours", Type::Number, "How long before its end a certificate is renewed, in hours.")
            .or(RENEW_BEFORE_HOURS),
        Attribute::optional("ca_certificate", Type::String, "A CA of your own in place of a new one, as PEM."),
        Attribute::optional("ca_private_key", Type::String, "Its key, as PEM. It signs, and goes into no pod.").secret(),
        Attribute::optional("sans", Type::list(Type::String), "More DNS names and IP addresses for the API server's certificate."),
        Attribute::optional(
            "keep_authority",
            Type::Bool,
            "Whether the keys of the CAs are also kept in the host cluster, in a Secret that no pod mounts. Without them a state that was \
             lost can't be made anew.",
        )
        .or(true),
    ]
}

fn images() -> Vec<Attribute> {
    vec![
        Attribute::optional("image", Type::String, "Its image without tag: `registry.example/karmada-scheduler`."),
        Attribute::optional("tag", Type::String, "Its image's tag. A component of another version than `version` is on your own account."),
        Attribute::optional("digest", Type::String, "Its image's digest: `sha256:...`."),
    ]
}

fn settings() -> Vec<Attribute> {
    vec![
        Attribute::optional("hosts", Type::list(Type::String), "On hosts: the names of those that it runs on; all unless written."),
        Attribute::optional(
            "source",
            Type::String,
            "On hosts: where its program comes from, a path or URL of the program or of a tar archive with it.",
        ),
        Attribute::optional(
            "source_sha256",
            Type::String,
            "The SHA-256 sum of that archive; or the path or URL of a file of sums, with the same words in braces or a line for each program.",
        ),
        Attribute::optional(
            "unit",
            Type::map(Type::String),
            "On hosts: settings of the section [Service] of its unit, `{ MemoryMax = \"2G\" }`. They come after karmaform's own.",
        ),
        Attribute::optional("replicas", Type::Number, "How many pods; 2 unless written. 0 stops it."),
        Attribute::optional(
            "extra_args",
            Type::map(Type::String),
            "Flags by name without dashes. They go before karmaform's own; null takes a flag away.",
        ),
        Attribute::optional("feature_gates", Type::map(Type::Bool), "Feature gates by name."),
        Attribute::optional("resources", Type::Any, "Requests and limits, as in a container."),
        Attribute::optional("labels", Type::map(Type::String), "More labels of the Deployment and its pods."),
        Attribute::optional("annotations", Type::map(Type::String), "More annotations of the Deployment and its pods."),
        Attribute::optional("node_selector", Type::map(Type::String), "Labels that nodes must have."),
        Attribute::optional("tolerations", Type::Any, "Tolerations, as in a pod."),
        Attribute::optional("affinity", Type::Any, "Affinity, as in a pod. Unless written, pods prefer nodes without a pod like them."),
        Attribute::optional("topology_spread", Type::Any, "Topology spread constraints, as in a pod. Unless written: over zones."),
        Attribute::optional(
            "priority_class",
            Type::String,
            "The priority class. None unless written: `system-node-critical` needs a quota for it in some clusters, and pods of all \
             others would be evicted for these.",
        ),
        Attribute::optional(
            "disruption_budget",
            Type::Any,
            "`{ min_available = 1 }` or `{ max_unavailable = 1 }`, a number or a percentage; `false` for none. Unless written: one \
             unavailable at a time, if there are at least two.",
        ),
        Attribute::optional("extra_volumes", Type::Any, "More volumes, as in a pod."),
        Attribute::optional("extra_volume_mounts", Type::Any, "More volume mounts, as in a container."),
        Attribute::optional("sidecars", Type::Any, "More containers."),
        Attribute::optional(
            "patch",
            Type::Any,
            "Whatever else: merged into the Deployment at the end. null removes; lists whose items have names merge by name.",
        ),
    ]
}

fn encryption() -> Vec<Attribute> {
    let key = Type::object([("name", Type::String), ("secret", Type::String)]);
    vec![
        Attribute::optional("config", Type::String, "An EncryptionConfiguration, as YAML.").secret(),
        Attribute::optional(
            "keys",
            Type::list(key),
            "Or keys of 32 bytes, in base64: the first encrypts, all decrypt. `[{ name = \"2026\", secret = var.key }]`. A new key comes \
             second, and first only with the next apply, when all replicas know it.",
        )
        .secret(),
        Attribute::optional(
            "encrypt",
            Type::Bool,
            "Whether the first of `keys` encrypts what is written. If not, keys only decrypt: the way out.",
        )
        .or(true),
        Attribute::optional("resources", Type::list(Type::String), "What is encrypted with `keys`.").or(Value::strings(["secrets"])),
    ]
}

fn oidc() -> Vec<Attribute> {
    vec![
        Attribute::required("issuer_url", Type::String, "The issuer's URL."),
        Attribute::required("client_id", Type::String, "The client that tokens must be for."),
        Attribute::optional("username_claim", Type::String, "The claim that is the user's name."),
        Attribute::optional("username_prefix", Type::String, "What comes before it."),
        Attribute::optional("groups_claim", Type::String, "The claim that holds the user's groups."),
        Attribute::optional("groups_prefix", Type::String, "What comes before each."),
        Attribute::optional("required_claims", Type::map(Type::String), "Claims that must be there with these values."),
        Attribute::optional("signing_algs", Type::list(Type::String), "Accepted signature algorithms."),
        Attribute::optional("ca_certificate", Type::String, "The CA of the issuer's certificate, as PEM."),
    ]
}

fn audit() -> Vec<Attribute> {
    vec![
        Attribute::required("policy", Type::String, "The audit policy, as YAML."),
        Attribute::optional("log_path", Type::String, "Where the log goes: \"-\" is the pod's output; anywhere else needs a volume.")
            .or("-"),
        Attribute::optional("log_maxage", Type::Number, "How many days files of the log are kept."),
        Attribute::optional("log_maxbackup", Type::Number, "How many files of the log are kept."),
        Attribute::optional("log_maxsize", Type::Number, "How large a file of the log gets, in megabytes."),
    ]
}
