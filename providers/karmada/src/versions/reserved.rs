//! Flags that karmaform sets itself: other parts of a control plane rely on their values, so nobody may set them by hand.
//!
//! What karmaform merely has an opinion on (authorization modes, limits of requests, admission plugins, levels of logs) is not here.

/// Why a flag is karmaform's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// How a component reaches the Karmada API, and who it is there.
    Identity,
    /// Where data is kept.
    Etcd,
    /// Files of certificates and keys.
    Certificate,
    /// Services, probes and other components find it there.
    Address,
    /// Leases are objects of the Karmada API, in a namespace that must exist there.
    Lease,
    /// Where the scheduler estimators are found.
    Estimator,
    /// The range of Services, which has an argument of its own.
    Subnet,
    /// Feature gates, which have an argument of their own.
    Gates,
}

impl Why {
    /// What the user is told, and what to write instead.
    pub(super) fn explain(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Identity => ("karmaform gives every component an identity of its own and a kubeconfig for it.", None),
            Self::Etcd => (
                "Where data is kept must be the same for all API servers, so it follows from the etcd cluster of the control plane.",
                Some("Set `etcd` instead."),
            ),
            Self::Certificate => ("karmaform makes the certificates and keys, renews them, and says where they are.", None),
            Self::Address => ("Services, probes and other components rely on where this component listens.", None),
            Self::Lease => ("Leases are kept in the namespace `karmada-system` of the Karmada API, which karmaform makes.", None),
            Self::Estimator => ("Scheduler estimators run beside the control plane, where karmaform puts them.", None),
            Self::Subnet => {
                ("The range of Services has an argument of its own, so that it can be checked.", Some("Use `service_subnet` instead."))
            }
            Self::Gates => {
                ("Feature gates have an argument of their own, so that they can be checked.", Some("Use `feature_gates` instead."))
            }
        }
    }
}

/// A flag, the letters of the components for which it is karmaform's (see `Component::letter`), and why.
pub(super) const RESERVED: &[(&str, &str, Why)] = &[
    ("authentication-kubeconfig", "anqm", Why::Identity),
    ("authorization-kubeconfig", "anqm", Why::Identity),
    ("bind-address", "kanwqm", Why::Address),
    ("cert-dir", "kanwqm", Why::Certificate),
    ("client-ca-file", "kanqm", Why::Certificate),
    ("cluster-signing-cert-file", "n", Why::Certificate),
    ("cluster-signing-key-file", "n", Why::Certificate),
    ("etcd-cafile", "kaq", Why::Etcd),
    ("etcd-certfile", "kaq", Why::Etcd),
    ("etcd-keyfile", "kaq", Why::Etcd),
    ("etcd-prefix", "kaq", Why::Etcd),
    ("etcd-servers", "kaq", Why::Etcd),
    ("feature-gates", "kncaswq", Why::Gates),
    ("health-probe-bind-address", "cswd", Why::Address),
    ("kubeconfig", "ancswqdm", Why::Identity),
    ("leader-elect-resource-namespace", "ncsd", Why::Lease),
    ("master", "nsd", Why::Identity),
    ("metrics-bind-address", "cswdm", Why::Address),
    ("proxy-client-cert-file", "k", Why::Certificate),
    ("proxy-client-key-file", "k", Why::Certificate),
    ("requestheader-allowed-names", "kanqm", Why::Certificate),
    ("requestheader-client-ca-file", "kanqm", Why::Certificate),
    ("root-ca-file", "n", Why::Certificate),
    ("scheduler-estimator-ca-file", "sd", Why::Estimator),
    ("scheduler-estimator-cert-file", "sd", Why::Estimator),
    ("scheduler-estimator-key-file", "sd", Why::Estimator),
    ("scheduler-estimator-service-namespace", "sd", Why::Estimator),
    ("scheduler-estimator-service-prefix", "sd", Why::Estimator),
    ("secure-port", "kanwqm", Why::Address),
    ("service-account-key-file", "k", Why::Certificate),
    ("service-account-private-key-file", "n", Why::Certificate),
    ("service-account-signing-key-file", "k", Why::Certificate),
    ("service-cluster-ip-range", "k", Why::Subnet),
    ("tls-cert-file", "kanqm", Why::Certificate),
    ("tls-cert-file-name", "w", Why::Certificate),
    ("tls-private-key-file", "kanqm", Why::Certificate),
    ("tls-private-key-file-name", "w", Why::Certificate),
    ("tls-sni-cert-key", "kanqm", Why::Certificate),
    ("use-service-account-credentials", "n", Why::Identity),
];
