//! `examples/karmada-on-kubernetes` on a real cluster with a node. `tests/lab/with.sh` starts one and says in the environment where it is;
//! without it every test here says loudly that it was skipped. Karmada's own programs are the stand-in of `tests/stand-in`, unless
//! `KARMAFORM_TEST_KARMADA_BIN` names a folder with real ones (and `KARMAFORM_TEST_KUBE_BIN` one with a Kubernetes that fits).
//!
//! The cluster is shared, so one test at a time has it, and each has a namespace of its own.

mod anew;
mod cron;
mod drift;
mod etcd_backup;
mod etcd_faults;
mod etcd_members;
mod etcd_restore;
mod exposure;
mod faults;
mod host;
mod hybrid;
mod job;
mod kill;
mod life;
pub(crate) mod members;
mod plane;
mod refusals;
mod requests;
mod rotation;
mod two;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::parts::{alone, tell};

/// The Karmada whose CRDs there are.
const KARMADA: &str = "1.19.0";

/// The cluster of the environment, with all images on its node.
pub(crate) struct Host {
    kubeconfig: String,
    kubectl: String,
    /// Where kubectl remembers which kinds there are; without such a place it asks again for every single kind.
    cache: tempfile::TempDir,
    pub(crate) namespace: String,
    pub(crate) kube_version: String,
    pub(crate) etcd_version: String,
    /// The archive of Karmada's CRDs.
    pub(crate) crds: PathBuf,
    _one_at_a_time: File,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

impl Host {
    /// The cluster, for a test that has the namespace for itself; `None`, and said so, if there is none.
    pub(crate) fn for_test(test: &str, namespace: &str) -> Option<Self> {
        let skipped = |why: &str| {
            tell(&format!("*** SKIPPED ({why}): {test}"));
            None
        };
        if variable("KARMAFORM_TEST_NODES").is_none() {
            return skipped("no cluster with a node");
        }
        let crds = variable("KARMAFORM_SHARED_DATA").map(|data| Path::new(&data).join("karmada-crds-v1.19.tar.gz"));
        let Some(crds) = crds.filter(|c| c.exists()) else { return skipped("no archive of Karmada's CRDs in KARMAFORM_SHARED_DATA") };
        let Some(etcd_version) = etcd_versions().pop() else { return skipped("no etcd") };
        let given = |name: &str| variable(name).unwrap_or_else(|| panic!("{name} is not set, though there is a node"));
        let kubeconfig = given("KARMAFORM_TEST_KUBECONFIG");
        let one_at_a_time = alone(Path::new(&kubeconfig), "cluster");
        let host = Self {
            kubeconfig,
            kubectl: given("KARMAFORM_TEST_KUBECTL"),
            cache: tempfile::tempdir().expect("a temporary directory"),
            namespace: namespace.to_owned(),
            kube_version: kube_version(),
            etcd_version,
            crds,
            _one_at_a_time: one_at_a_time,
        };
        host.load_images();
        Some(host)
    }

    /// Once for all tests: it takes seconds.
    fn load_images(&self) {
        static LOADED: OnceLock<()> = OnceLock::new();
        LOADED.get_or_init(|| {
            let script = Path::new(&variable("KARMAFORM_TEST_KUBE").expect("the lab's script")).with_file_name("karmada.sh");
            let status = Command::new(script)
                .args(["images", &variable("KARMAFORM_TEST_KUBE_NAME").expect("the cluster's name"), KARMADA])
                .args([&self.kube_version, &etcd_versions().join(",")])
                .args(["KARMAFORM_TEST_KARMADA_BIN", "KARMAFORM_TEST_KUBE_BIN"].map(|n| variable(n).unwrap_or_default()))
                .stdin(Stdio::null())
                .status();
            assert!(status.is_ok_and(|s| s.success()), "karmada.sh images");
        });
    }
}

/// The versions of etcd that there are, the newest last.
fn etcd_versions() -> Vec<String> {
    let given = variable("KARMAFORM_TEST_ETCD").unwrap_or_default();
    given.split(',').filter_map(|etcd| Some(etcd.split_once('=')?.0.to_owned())).collect()
}

/// Of what will run in pods: `KARMAFORM_TEST_KUBE_BIN`'s, or the lab's own.
fn kube_version() -> String {
    let Some(folder) = variable("KARMAFORM_TEST_KUBE_BIN") else {
        return variable("KARMAFORM_TEST_KUBE_VERSION").expect("a cluster's version");
    };
    let output = Command::new(Path::new(&folder).join("kube-apiserver")).arg("--version").output().expect("kube-apiserver");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.trim_start_matches("Kubernetes v").to_owned()
}
