//! Which of Karmada's programs is meant, and what each of them needs. Ports, flags and rights are those of Karmada 1.19.

/// One of Karmada's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    AggregatedApiserver,
    ControllerManager,
    Scheduler,
    Webhook,
    Search,
    Descheduler,
    MetricsAdapter,
}

/// Verb, API group and resource; `*` is any. A resource of a namespace has that namespace before it: `kube-system/configmaps`.
pub(crate) type Right = (&'static str, &'static str, &'static str);

/// Whoever asks another API server who a caller is and what they may do.
const DELEGATES: &[Right] =
    &[("create", "authentication.k8s.io", "tokenreviews"), ("create", "authorization.k8s.io", "subjectaccessreviews")];

const ALL: [Component; 7] = [
    Component::AggregatedApiserver,
    Component::ControllerManager,
    Component::Scheduler,
    Component::Webhook,
    Component::Search,
    Component::Descheduler,
    Component::MetricsAdapter,
];

impl Component {
    /// The one whose program has this name.
    pub(crate) fn named(program: &str) -> Option<Self> {
        ALL.into_iter().find(|c| c.program() == program)
    }

    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::AggregatedApiserver => "karmada-aggregated-apiserver",
            Self::ControllerManager => "karmada-controller-manager",
            Self::Scheduler => "karmada-scheduler",
            Self::Webhook => "karmada-webhook",
            Self::Search => "karmada-search",
            Self::Descheduler => "karmada-descheduler",
            Self::MetricsAdapter => "karmada-metrics-adapter",
        }
    }

    /// Every flag it knows and the kind of its value, one a line.
    pub(crate) fn flags(self) -> &'static str {
        match self {
            Self::AggregatedApiserver => include_str!("../flags/karmada-aggregated-apiserver.txt"),
            Self::ControllerManager => include_str!("../flags/karmada-controller-manager.txt"),
            Self::Scheduler => include_str!("../flags/karmada-scheduler.txt"),
            Self::Webhook => include_str!("../flags/karmada-webhook.txt"),
            Self::Search => include_str!("../flags/karmada-search.txt"),
            Self::Descheduler => include_str!("../flags/karmada-descheduler.txt"),
            Self::MetricsAdapter => include_str!("../flags/karmada-metrics-adapter.txt"),
        }
    }

    /// The flags without which it is of no use.
    pub(crate) fn required(self) -> &'static [&'static str] {
        match self {
            Self::AggregatedApiserver | Self::Search => &[
                "kubeconfig",
                "authentication-kubeconfig",
                "authorization-kubeconfig",
                "etcd-servers",
                "etcd-cafile",
                "etcd-certfile",
                "etcd-keyfile",
                "tls-cert-file",
                "tls-private-key-file",
            ],
            Self::MetricsAdapter => {
                &["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig", "tls-cert-file", "tls-private-key-file"]
            }
            Self::Webhook => &["kubeconfig", "cert-dir"],
            Self::ControllerManager | Self::Scheduler | Self::Descheduler => &["kubeconfig"],
        }
    }

    /// What it does with the Karmada API under the identity of `--kubeconfig`.
    pub(crate) fn rights(self) -> &'static [Right] {
        match self {
            Self::ControllerManager => &[("*", "*", "*")],
            Self::Scheduler => &[
                ("list", "work.karmada.io", "resourcebindings"),
                ("watch", "work.karmada.io", "resourcebindings"),
                ("patch", "work.karmada.io", "resourcebindings"),
                ("list", "work.karmada.io", "clusterresourcebindings"),
                ("watch", "work.karmada.io", "clusterresourcebindings"),
                ("list", "cluster.karmada.io", "clusters"),
                ("watch", "cluster.karmada.io", "clusters"),
            ],
            Self::Descheduler => &[
                ("list", "work.karmada.io", "resourcebindings"),
                ("watch", "work.karmada.io", "resourcebindings"),
                ("list", "cluster.karmada.io", "clusters"),
                ("watch", "cluster.karmada.io", "clusters"),
            ],
            Self::Webhook => &[("list", "config.karmada.io", "resourceinterpretercustomizations")],
            Self::Search | Self::MetricsAdapter => {
                &[("list", "cluster.karmada.io", "clusters"), ("watch", "cluster.karmada.io", "clusters")]
            }
            Self::AggregatedApiserver => &[("get", "", "secrets")],
        }
    }

    /// What it does under the identities that it asks about its callers with.
    pub(crate) fn delegated_rights(self) -> &'static [Right] {
        if self.api_groups().is_empty() { &[] } else { DELEGATES }
    }

    /// Of several replicas, one leads: by a Lease in the Karmada API.
    pub(crate) fn elects(self) -> bool {
        matches!(self, Self::ControllerManager | Self::Scheduler | Self::Descheduler)
    }

    /// API groups and versions that it serves to the Karmada API, and the resources in each of them.
    pub(crate) fn api_groups(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::AggregatedApiserver => &[("cluster.karmada.io", &["v1alpha1"])],
            Self::Search => &[("search.karmada.io", &["v1alpha1"])],
            Self::MetricsAdapter => &[("metrics.k8s.io", &["v1beta1"]), ("custom.metrics.k8s.io", &["v1beta1", "v1beta2"])],
            Self::ControllerManager | Self::Scheduler | Self::Webhook | Self::Descheduler => &[],
        }
    }

    /// The name that the Karmada API calls it by, if it is always the same one.
    pub(crate) fn served_name(self) -> Option<String> {
        (!self.api_groups().is_empty()).then(|| format!("{}.karmada-system.svc", self.program()))
    }

    /// Where it serves TLS unless `--secure-port` says otherwise.
    pub(crate) fn secure_port(self) -> Option<u16> {
        match self {
            Self::AggregatedApiserver | Self::Search | Self::MetricsAdapter => Some(443),
            Self::Webhook => Some(8443),
            Self::ControllerManager | Self::Scheduler | Self::Descheduler => None,
        }
    }

    /// The flags that say where it serves without TLS, and where that is if they are not given.
    pub(crate) fn plain_addresses(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ControllerManager => &[("metrics-bind-address", ":8080"), ("health-probe-bind-address", ":10357")],
            Self::Scheduler => &[("metrics-bind-address", ":8080"), ("health-probe-bind-address", ":10351")],
            Self::Descheduler => &[("metrics-bind-address", ":8080"), ("health-probe-bind-address", ":10358")],
            Self::Webhook => &[("metrics-bind-address", ":8080"), ("health-probe-bind-address", ":8000")],
            Self::MetricsAdapter => &[("metrics-bind-address", ":8080")],
            Self::AggregatedApiserver | Self::Search => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_that_is_needed_or_read_is_one_that_the_program_knows() {
        for component in ALL {
            let known: Vec<_> = component.flags().lines().filter_map(|l| l.split(' ').next()).collect();
            let read = component.plain_addresses().iter().map(|(f, _)| f).chain(component.required());
            for flag in read {
                assert!(known.contains(flag), "{} has no --{flag}", component.program());
            }
            assert_eq!(component.elects(), known.contains(&"leader-elect-resource-namespace"), "{component:?}");
            assert_eq!(component.secure_port().is_some(), known.contains(&"secure-port"), "{component:?}");
            assert_eq!(Component::named(component.program()), Some(component));
        }
        assert_eq!(Component::named("karmada-agent"), None);
    }
}
