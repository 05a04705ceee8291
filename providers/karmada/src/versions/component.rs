//! The components of a Karmada control plane: their names, their binaries, and which of them are Kubernetes' own.

/// A component; etcd is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Component {
    /// The API server: Kubernetes' own.
    ApiServer,
    /// Serves `cluster.karmada.io`.
    AggregatedApiServer,
    /// Kubernetes' own, with few of its controllers.
    KubeControllerManager,
    /// Karmada's controllers.
    ControllerManager,
    /// Chooses clusters for bindings.
    Scheduler,
    /// Admission and conversion.
    Webhook,
    /// Serves `search.karmada.io`.
    Search,
    /// Moves replicas that can't be scheduled.
    Descheduler,
    /// Serves metrics of all members.
    MetricsAdapter,
}

impl Component {
    /// All of them, in the order in which they are best read.
    pub(crate) const ALL: [Self; 9] = [
        Self::ApiServer,
        Self::AggregatedApiServer,
        Self::KubeControllerManager,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Webhook,
        Self::Search,
        Self::Descheduler,
        Self::MetricsAdapter,
    ];

    /// Its short name, as in labels and in the names of objects on the host: `controller-manager`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiServer => "apiserver",
            Self::AggregatedApiServer => "aggregated-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Webhook => "webhook",
            Self::Search => "search",
            Self::Descheduler => "descheduler",
            Self::MetricsAdapter => "metrics-adapter",
        }
    }

    /// The component a user means: `controller-manager`, `controller_manager` and `karmada-controller-manager` are the same.
    pub(crate) fn argument(name: &str) -> Option<Self> {
        let dashed = name.replace('_', "-");
        let short = dashed.strip_prefix("karmada-").unwrap_or(&dashed);
        Self::ALL.into_iter().find(|c| c.name() == short)
    }

    /// A control plane works without it.
    pub(crate) fn is_addon(self) -> bool {
        matches!(self, Self::Search | Self::Descheduler | Self::MetricsAdapter)
    }

    /// Its binary, in `/bin` of its image.
    pub(crate) fn binary(self) -> &'static str {
        match self {
            Self::ApiServer => "kube-apiserver",
            Self::AggregatedApiServer => "karmada-aggregated-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::ControllerManager => "karmada-controller-manager",
            Self::Scheduler => "karmada-scheduler",
            Self::Webhook => "karmada-webhook",
            Self::Search => "karmada-search",
            Self::Descheduler => "karmada-descheduler",
            Self::MetricsAdapter => "karmada-metrics-adapter",
        }
    }

    /// Its binary is Kubernetes', with Kubernetes' version.
    pub(crate) fn is_kube(self) -> bool {
        matches!(self, Self::ApiServer | Self::KubeControllerManager)
    }

    /// Its letter in the tables of flags.
    pub(super) fn letter(self) -> char {
        match self {
            Self::ApiServer => 'k',
            Self::AggregatedApiServer => 'a',
            Self::KubeControllerManager => 'n',
            Self::ControllerManager => 'c',
            Self::Scheduler => 's',
            Self::Webhook => 'w',
            Self::Search => 'q',
            Self::Descheduler => 'd',
            Self::MetricsAdapter => 'm',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found_by_what_people_write() {
        for (written, expected) in [
            ("apiserver", Some(Component::ApiServer)),
            ("karmada-apiserver", Some(Component::ApiServer)),
            ("kube_controller_manager", Some(Component::KubeControllerManager)),
            ("karmada_controller_manager", Some(Component::ControllerManager)),
            ("metrics-adapter", Some(Component::MetricsAdapter)),
            ("etcd", None),
            ("karmada-", None),
            ("karmada-karmada-webhook", None),
        ] {
            assert_eq!(Component::argument(written), expected, "{written}");
        }
        for component in Component::ALL {
            assert_eq!(Component::argument(component.name()), Some(component));
            assert_eq!(component.is_kube(), component.binary().starts_with("kube-"));
        }
        let addons: Vec<_> = Component::ALL.into_iter().filter(|c| c.is_addon()).map(Component::name).collect();
        assert_eq!(addons, ["search", "descheduler", "metrics-adapter"]);
    }

    #[test]
    fn letters_are_unique() {
        let letters: std::collections::BTreeSet<char> = Component::ALL.into_iter().map(Component::letter).collect();
        assert_eq!(letters.len(), Component::ALL.len());
    }
}
