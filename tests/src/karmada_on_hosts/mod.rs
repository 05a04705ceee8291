//! `examples/karmada-on-hosts` on real hosts, with a real etcd and a real Kubernetes. Karmada's own programs are the stand-in of
//! `tests/stand-in`, unless `KARMAFORM_TEST_KARMADA_BIN` names a folder with real ones (and `KARMAFORM_TEST_KUBE_BIN` one with a Kubernetes
//! that fits). What can't be had is said loudly.

mod faults;
mod ipv6;
mod kill;
mod life;
mod members;
mod moves;
mod plans;
mod programs;
mod second;
mod site;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lab::Lab;
use crate::parts::{root, tell};

/// The Karmada whose CRDs there are.
const KARMADA: &str = "1.19.0";
/// Karmada's programs in a control plane.
const PROGRAMS: [&str; 7] =
    ["aggregated-apiserver", "controller-manager", "scheduler", "webhook", "search", "descheduler", "metrics-adapter"];

/// What a control plane on the lab's hosts is made of.
pub(crate) struct Parts {
    /// Karmada's programs, each under its name.
    karmada: PathBuf,
    /// kube-apiserver, kube-controller-manager and kubectl.
    kube: PathBuf,
    kube_version: String,
    crds: PathBuf,
    /// The links, if they are ours.
    _links: tempfile::TempDir,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// Fresh hosts and all parts; `None`, and said so, where something is missing.
fn for_test(test: &str) -> Option<(Lab, Parts)> {
    let skipped = |why: &str| {
        tell(&format!("*** SKIPPED ({why}): {test}"));
        None
    };
    if variable("KARMAFORM_TEST_KUBE").is_none() && variable("KARMAFORM_TEST_KUBE_BIN").is_none() {
        return skipped("no Kubernetes");
    }
    let crds = variable("KARMAFORM_SHARED_DATA").map(|data| Path::new(&data).join("karmada-crds-v1.19.tar.gz"));
    let Some(crds) = crds.filter(|c| c.exists()) else { return skipped("no archive of Karmada's CRDs in KARMAFORM_SHARED_DATA") };
    let links = tempfile::tempdir().expect("a temporary directory");
    let karmada = match (variable("KARMAFORM_TEST_KARMADA_BIN"), variable("KARMAFORM_STAND_IN")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(program)) => {
            stand_ins(&program, links.path());
            links.path().to_owned()
        }
        (None, None) => return skipped("no stand-in for Karmada's programs; KARMAFORM_STAND_IN names it"),
    };
    let lab = Lab::fresh(test)?;
    let kube = variable("KARMAFORM_TEST_KUBE_BIN").map_or_else(built, PathBuf::from);
    let output = Command::new(kube.join("kube-apiserver")).arg("--version").output().expect("kube-apiserver");
    let kube_version = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("Kubernetes v").to_owned();
    Some((lab, Parts { karmada, kube, kube_version, crds, _links: links }))
}

/// The stand-in under the names of all programs, without what only debuggers read: it is sent to every host.
fn stand_ins(program: &str, folder: &Path) {
    let small = folder.join("stand-in");
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(program).status();
    assert!(stripped.is_ok_and(|s| s.success()), "strip {program}");
    for name in PROGRAMS {
        std::fs::hard_link(&small, folder.join(format!("karmada-{name}"))).expect("a link");
    }
}

/// The folder of the Kubernetes that the lab builds, or has built.
fn built() -> PathBuf {
    let script = root().join("tests/lab/kubernetes-build.sh");
    let output = Command::new(script).stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("kubernetes-build.sh");
    assert!(output.status.success(), "kubernetes-build.sh");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
