//! SIGKILL at random moments of create, change and destroy of a control plane on a host: the same command again, and all is as if nothing had
//! happened.
//!
//! `KARMAFORM_KILLS` says how often (3 unless set; `make kill` does 50), `KARMAFORM_SEED` repeats a run.

use std::time::{Duration, Instant};

use super::for_test;
use super::site::Site;
use crate::parts::{kills, tell};

const USUAL: usize = 3;
/// About how long each takes undisturbed, until one has been seen to its end.
const TAKES: [Duration; 3] = [Duration::from_secs(20), Duration::from_secs(5), Duration::from_secs(8)];
const STAGES: [&str; 3] = ["create", "change", "destroy"];
/// Changes that are made one after the other: a component's block.
const CHANGES: [&str; 3] = ["apiserver", "controller-manager", "webhook"];

#[test]
fn killed_at_any_moment_a_control_plane_on_a_host_ends_the_same() {
    let Some((lab, parts)) = for_test("killed_at_any_moment_a_control_plane_on_a_host_ends_the_same") else { return };
    let (kills, mut random) = kills(USUAL);
    let host = &lab.hosts[0].0;
    let before = lab.files(host);
    let site = Site::example(&lab, &parts, 1);
    let (mut takes, mut killed, mut round) = (TAKES, 0, 0);
    // One that ended before it was killed does not count; but what ends at once must not go on for ever.
    while killed < kills && round < 3 * kills {
        let stage = round % STAGES.len();
        if stage < 2 {
            let component = CHANGES[round / STAGES.len() % CHANGES.len()];
            site.with_block(&if stage == 1 {
                format!("component \"{component}\" {{\n  extra_args = {{ v = \"1\" }}\n}}")
            } else {
                String::new()
            });
        }
        round += 1;
        let arguments = [if stage == 2 { "destroy" } else { "apply" }, "-auto-approve"];
        let moment = takes[stage].mul_f64(random.f64());
        let running = site.project.start(&arguments);
        std::thread::sleep(moment);
        let first = running.kill();
        let is_over = first.contains(" complete! Resources");
        killed += usize::from(!is_over);
        let started = Instant::now();
        let again = site.project.run(&arguments);
        let told = if is_over { "had ended by itself".to_owned() } else { format!("kill {killed}") };
        tell(&format!("{told}: {} after {moment:.1?}, again for {:.1?}", STAGES[stage], started.elapsed()));
        assert_eq!(again.code, Some(0), "after a kill in {} at {moment:?}:\n{first}\n--- again ---\n{}", STAGES[stage], again.text);
        if stage != 1 {
            takes[stage] = takes[stage].max(again.took);
        }
        if stage == 2 {
            assert_eq!(site.project.must(0, &["state", "list"]).trim(), "");
            let now = lab.files(host);
            assert!(now == before, "{}", crate::golden::difference(&before, &now));
            // Another life has another administrator.
            site.project.remove("kubeconfig.yaml");
        } else {
            site.project.no_changes();
            site.ask(host, &["get", "clusters.cluster.karmada.io"]);
        }
    }
    site.project.must(0, &["destroy", "-auto-approve"]);
    let now = lab.files(host);
    assert!(now == before, "{}", crate::golden::difference(&before, &now));
}
