//! Tests of what is known of versions: the tables fit together, and what they say reaches the user.

use super::flags::FLAGS;
use super::gates::{KARMADA, LIBRARY};
use super::removed::REMOVED;
use super::reserved::RESERVED;
use super::*;

fn version(minor: u32) -> Version {
    Version::parse(&format!("1.{minor}.0")).expect("a known minor")
}

/// What a check says, in one line; empty if it says nothing.
fn said(result: Result<(), (String, Option<String>)>) -> String {
    result.err().map_or_else(String::new, |(sentence, hint)| format!("{sentence} {}", hint.unwrap_or_default()).trim().to_owned())
}

#[test]
fn versions_are_read_and_bad_ones_refused() {
    for (text, expected) in [
        ("1.19.0", Ok(("1.19.0", 19, 0))),
        ("v1.17.5", Ok(("1.17.5", 17, 5))),
        ("1.13.0", Ok(("1.13.0", 13, 0))),
        ("1.19.0-rc.0", Ok(("1.19.0-rc.0", 19, 0))),
        ("vv1.19.0", Err("three numbers")),
        ("1.19", Err("three numbers")),
        ("latest", Err("three numbers")),
        ("1.019.0", Err("three numbers")),
        ("1.+19.0", Err("three numbers")),
        ("1.19.99999999999", Err("three numbers")),
        ("1.19.0-dirty", Err("as in `1.19.0-rc.0`")),
        ("1.20.0", Err("knows Karmada 1.13 to 1.19")),
        ("1.12.4", Err("knows Karmada 1.13 to 1.19")),
        ("2.19.0", Err("knows Karmada 1.13 to 1.19")),
    ] {
        match (Version::parse(text), expected) {
            (Ok(v), Ok((text, minor, patch))) => assert_eq!((v.text.as_str(), v.minor, v.patch), (text, minor, patch)),
            (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
            (got, _) => panic!("{text}: {got:?}"),
        }
    }
}

#[test]
fn defaults_belong_to_minor_versions() {
    for (minor, kube, etcd) in [(19, "1.36.2", "3.6.8"), (18, "1.35.2", "3.6.6"), (16, "1.34.1", "3.6.0"), (13, "1.31.3", "3.5.16")] {
        assert_eq!(defaults(&version(minor)), Defaults { kube, etcd }, "1.{minor}");
    }
}

#[test]
fn kubernetes_is_compared_with_what_was_tested() {
    for (minor, kube, expected) in [
        (19, 36, ""),
        (19, 27, ""),
        (19, 26, "Kubernetes 1.26 is older than any that Karmada 1.19 was tested with, which are 1.27 to 1.36."),
        (19, 37, "Karmada 1.19 is tested with the API server of Kubernetes 1.36; nothing is known of 1.37, which is newer."),
        (16, 35, "Karmada 1.16 is tested with the API server of Kubernetes 1.34; nothing is known of 1.35, which is newer."),
        (16, 25, ""),
    ] {
        assert_eq!(check_kube(&version(minor), (kube, 0)).unwrap_or_default(), expected, "{minor} with {kube}");
    }
    // The default of each version is nothing to warn of.
    for facts in MINORS {
        let kube = facts.kube.split('.').nth(1).and_then(number).expect("a minor");
        assert_eq!(check_kube(&version(facts.number), (kube, 0)), None);
    }
}

#[test]
fn flags_of_karmada_are_known_by_version() {
    use Component::*;
    for (component, flag, minor, expected) in [
        (Scheduler, "v", 19, ""),
        (Scheduler, "logging-format", 15, ""),
        (Scheduler, "logging-format", 14, "karmada-scheduler 1.14 does not know it; it came with 1.15."),
        (Scheduler, "enable_scheduler_estimator", 19, ""),
        (
            ControllerManager,
            "cluster-lease-duration",
            18,
            "karmada-controller-manager 1.18 does not know it any more; 1.17 was the last that did.",
        ),
        (ControllerManager, "cluster-lease-duration", 17, ""),
        (
            ControllerManager,
            "failover-eviction-timeout",
            15,
            "karmada-controller-manager 1.15 does not know it any more; 1.14 was the last that did.",
        ),
        (ControllerManager, "secure-port", 16, "karmada-controller-manager 1.16 does not know it any more; 1.11 was the last that did."),
        (
            Webhook,
            "default-not-ready-toleration-seconds",
            15,
            "karmada-webhook 1.15 does not know it any more; 1.14 was the last that did.",
        ),
        (Search, "cluster-api-qps", 17, "karmada-search 1.17 does not know it; it came with 1.18."),
        (MetricsAdapter, "cluster-api-qps", 17, ""),
        (Descheduler, "descheduling-intervall", 19, "karmada-descheduler 1.19 has no such flag. Did you mean `descheduling-interval`?"),
        (Descheduler, "feature-gates", 19, "karmada-descheduler 1.19 has no such flag."),
        (Webhook, "etcd-servers", 19, "karmada-webhook 1.19 has no such flag."),
        (Webhook, "colour", 19, "karmada-webhook 1.19 has no such flag."),
        (Webhook, "--v", 19, "A flag is written without dashes in front. Write `v`."),
        (Webhook, "v=4", 19, "A flag's name is made of small letters, digits and dashes."),
        (Webhook, "", 19, "A flag's name is made of small letters, digits and dashes."),
    ] {
        assert_eq!(said(check_flag(component, flag, &version(minor), 36)), expected, "{flag} of {component:?} 1.{minor}");
    }
}

#[test]
fn flags_of_kubernetes_are_refused_only_if_gone() {
    use Component::*;
    for (component, flag, kube, expected) in [
        (ApiServer, "insecure-port", 36, "kube-apiserver 1.36 does not know it any more; it was removed by 1.25."),
        (ApiServer, "cloud-provider", 32, ""),
        (ApiServer, "cloud-provider", 33, "kube-apiserver 1.33 does not know it any more; it was removed by 1.33."),
        (KubeControllerManager, "cloud-provider", 36, ""),
        (
            KubeControllerManager,
            "pod-eviction-timeout",
            31,
            "kube-controller-manager 1.31 does not know it any more; it was removed by 1.27.",
        ),
        (ApiServer, "pod-eviction-timeout", 31, ""),
        (ApiServer, "logtostderr", 25, ""),
        (ApiServer, "some-flag-of-tomorrow", 36, ""),
        (ApiServer, "max-requests-inflight", 36, ""),
    ] {
        assert_eq!(said(check_flag(component, flag, &version(19), kube)), expected, "{flag} of {component:?} 1.{kube}");
    }
}

#[test]
fn flags_that_karmaform_sets_are_refused() {
    use Component::*;
    for (component, flag, part) in [
        (Scheduler, "kubeconfig", "an identity of its own"),
        (ApiServer, "etcd-servers", "Set `etcd` instead."),
        (Search, "etcd_prefix", "Set `etcd` instead."),
        (ApiServer, "service-cluster-ip-range", "Use `service_subnet` instead."),
        (ApiServer, "service-account-signing-key-file", "karmaform makes the certificates"),
        (KubeControllerManager, "root-ca-file", "karmaform makes the certificates"),
        (Webhook, "tls-cert-file-name", "karmaform makes the certificates"),
        (Webhook, "secure-port", "rely on where this component listens"),
        (ControllerManager, "feature-gates", "Use `feature_gates` instead."),
        (Descheduler, "leader-elect-resource-namespace", "`karmada-system`"),
        (Scheduler, "scheduler-estimator-ca-file", "estimators"),
    ] {
        let got = said(check_flag(component, flag, &version(19), 36));
        assert!(got.contains(part), "{flag} of {component:?}: {got}");
    }
}

#[test]
fn gates_are_known_by_version_and_component() {
    use Component::*;
    for (component, gate, minor, expected) in [
        (Scheduler, "Failover", 19, ""),
        (Scheduler, "AllAlpha", 13, ""),
        (Scheduler, "WorkloadAffinity", 17, ""),
        (Scheduler, "WorkloadAffinity", 16, "karmada-scheduler 1.16 does not know it; it came with 1.17."),
        (Webhook, "FederatedQuotaEnforcement", 14, ""),
        (Webhook, "Failover", 13, "karmada-webhook 1.13 has no feature gates."),
        (Descheduler, "Failover", 19, "karmada-descheduler 1.19 has no feature gates."),
        (Scheduler, "Failovr", 19, "karmada-scheduler 1.19 has no such feature gate. Did you mean `Failover`?"),
        (AggregatedApiServer, "WatchList", 19, ""),
        (Search, "BtreeWatchCache", 13, "karmada-search 1.13 does not know it; it came with 1.14."),
        (
            Scheduler,
            "WatchList",
            19,
            "karmada-scheduler 1.19 has no such feature gate. It is a gate of API servers: set it for `aggregated-apiserver`, `search` or \
             `apiserver`.",
        ),
        (AggregatedApiServer, "KMSv2", 14, "karmada-aggregated-apiserver 1.14 does not know it any more; 1.13 was the last that did."),
        (ApiServer, "AnythingAtAll", 19, ""),
        (ApiServer, "failover=true", 19, "A feature gate's name begins with a capital letter and has only letters and digits."),
    ] {
        assert_eq!(said(check_gate(component, gate, &version(minor))), expected, "{gate} of {component:?} 1.{minor}");
    }
}

#[test]
fn the_tables_are_sorted_and_fit_together() {
    assert!(MINORS.is_sorted_by_key(|m| m.number));
    assert!(FLAGS.is_sorted_by_key(|f| (f.0, f.2, f.3)));
    for list in [KARMADA, LIBRARY] {
        assert!(list.is_sorted_by_key(|g| g.0));
        assert!(list.iter().all(|(_, first, last)| first <= last && (13..=19).contains(first) && (13..=19).contains(last)));
    }
    assert!(KARMADA.iter().all(|(n, ..)| !LIBRARY.iter().any(|(l, ..)| l == n)), "no gate is in both lists");
    assert!(REMOVED.is_sorted_by_key(|r| r.0));
    assert!(RESERVED.is_sorted_by_key(|r| r.0));
    let own: Vec<_> = Component::ALL.into_iter().filter(|c| !c.is_kube()).collect();
    let kube: Vec<_> = Component::ALL.into_iter().filter(|c| c.is_kube()).collect();
    for (flag, letters, first, last) in FLAGS {
        assert!(first <= last, "{flag}");
        assert!(!letters.is_empty() && letters.chars().all(|l| own.iter().any(|c| c.letter() == l)), "{flag}");
        // Ranges of one flag and component do not overlap.
        for letter in letters.chars() {
            let rows = FLAGS.iter().filter(|(n, l, a, b)| n == flag && l.contains(letter) && (a, b) != (first, last));
            assert_eq!(rows.count(), 0, "{flag} of {letter}");
        }
    }
    for (flag, letters, _) in REMOVED {
        assert!(letters.chars().all(|l| kube.iter().any(|c| c.letter() == l)), "{flag}");
    }
    // A reserved flag is one the component has: for Karmada's own binaries that can be checked.
    for (flag, letters, _) in RESERVED {
        for component in own.iter().filter(|c| letters.contains(c.letter())) {
            assert!(
                FLAGS.iter().any(|(n, l, _, last)| n == flag && l.contains(component.letter()) && *last == 19),
                "{flag} of {component:?}"
            );
        }
    }
}
