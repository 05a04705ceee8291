//! SIGKILL at random moments of create, change and destroy of a control plane: the same command again, and all is as if nothing had happened.
//!
//! `KARMAFORM_KILLS` says how often (3 unless set; `make kill` does 50), `KARMAFORM_SEED` repeats a run.

use std::time::{Duration, Instant};

use super::Host;
use super::plane::Plane;
use crate::parts::{kills, tell};

const USUAL: usize = 3;
/// About how long each takes undisturbed, until one has been seen to its end.
const TAKES: [Duration; 3] = [Duration::from_secs(25), Duration::from_secs(12), Duration::from_secs(15)];
const STAGES: [&str; 3] = ["create", "change", "destroy"];

/// Members that keep their data when they are restarted.
const ON_DISK: &str = "storage = \"hostPath\"";

/// Changes that are made one after the other: values of the example, and a block of the control plane.
const CHANGES: [(&str, &str, &str); 5] = [
    ("replicas", "", "component \"scheduler\" {\n  replicas = 3\n}"),
    ("an addon", "addons = [\"descheduler\"]", ""),
    ("extra_args", "", "component \"controller-manager\" {\n  extra_args = { v = \"3\" }\n}"),
    ("etcd", "etcd_resources = { requests = { cpu = \"60m\" } }", ""),
    ("extra_args of the API server", "", "component \"apiserver\" {\n  extra_args = { v = \"2\" }\n}"),
];

#[test]
fn killed_at_any_moment_a_control_plane_ends_the_same() {
    let Some(host) = Host::for_test("killed_at_any_moment_a_control_plane_ends_the_same", "kf-kill") else { return };
    let (kills, mut random) = kills(USUAL);
    let before = host.inventory();
    let plane = Plane::example(&host, "demo");
    let (mut takes, mut killed, mut round) = (TAKES, 0, 0);
    // One that ended before it was killed does not count; but what ends at once must not go on for ever.
    while killed < kills && round < 3 * kills {
        let stage = round % STAGES.len();
        let what = match stage {
            0 => {
                plane.values("demo", ON_DISK);
                plane.with_block("");
                String::new()
            }
            1 => {
                let (what, values, block) = CHANGES[round / STAGES.len() % CHANGES.len()];
                plane.values("demo", &format!("{ON_DISK}\n{values}"));
                plane.with_block(block);
                format!(" of {what}")
            }
            _ => String::new(),
        };
        round += 1;
        let arguments = [if stage == 2 { "destroy" } else { "apply" }, "-auto-approve"];
        let moment = takes[stage].mul_f64(random.f64());
        let running = plane.project.start(&arguments);
        std::thread::sleep(moment);
        let first = running.kill();
        let is_over = first.contains(" complete! Resources");
        killed += usize::from(!is_over);
        let started = Instant::now();
        let again = plane.project.run(&arguments);
        let told = if is_over { "had ended by itself".to_owned() } else { format!("kill {killed}") };
        tell(&format!("{told}: {}{what} after {moment:.1?}, again for {:.1?}", STAGES[stage], started.elapsed()));
        assert_eq!(again.code, Some(0), "after a kill in {}{what} at {moment:?}:\n{first}\n--- again ---\n{}", STAGES[stage], again.text);
        // A change differs from the one before it.
        if stage != 1 {
            takes[stage] = takes[stage].max(again.took);
        }
        if stage == 2 {
            assert_eq!(plane.project.must(0, &["state", "list"]).trim(), "");
            host.is_as_before(&before);
        } else {
            plane.project.no_changes();
            plane.kubectl("kubeconfig").run(&["get", "clusters.cluster.karmada.io"]);
        }
    }
    plane.project.must(0, &["destroy", "-auto-approve"]);
    host.is_as_before(&before);
}
