//! SIGKILL, or a network that is cut, at random moments of create, change and destroy of a control plane on hosts: the same command again, and
//! all is as if nothing had happened.
//!
//! `KARMAFORM_KILLS` says how often (3 unless set, on one host; `make kill` does 50, on three), `KARMAFORM_SEED` repeats a run.

use std::time::{Duration, Instant};

use super::for_test;
use super::site::Site;
use crate::parts::{kills, tell};

const USUAL: usize = 3;
/// About how long each takes undisturbed, until one has been seen to its end.
const TAKES: [Duration; 3] = [Duration::from_secs(20), Duration::from_secs(5), Duration::from_secs(8)];
const STAGES: [&str; 3] = ["create", "change", "destroy"];
/// How long the network of a host is cut, in seconds.
const CUT: std::ops::RangeInclusive<u64> = 1..=30;
/// Changes that are made one after the other: a component's block.
const CHANGES: [&str; 3] = ["apiserver", "controller-manager", "webhook"];

/// Units whose process was started with other arguments than they say.
const OLDER: &str = r#"for unit in $(systemctl list-units --state=running --plain --no-legend 'karmada-*.service' | cut -d' ' -f1); do
  process=$(systemctl show -p MainPID --value "$unit")
  written=$(systemctl show -p ExecStart --value "$unit" | sed 's/.* argv\[\]=\(.*\) ; ignore_errors=.*/\1/')
  [ "$written" = "$(tr '\0' ' ' </proc/$process/cmdline | sed 's/ $//')" ] || echo "$unit"
done"#;

#[test]
fn killed_or_cut_off_at_any_moment_a_control_plane_on_hosts_ends_the_same() {
    let Some((lab, parts)) = for_test("killed_or_cut_off_at_any_moment_a_control_plane_on_hosts_ends_the_same") else { return };
    let (kills, mut random) = kills(USUAL);
    let hosts: Vec<&str> = lab.hosts.iter().map(|(host, _)| host.as_str()).take(if kills > USUAL { 3 } else { 1 }).collect();
    let before = hosts.iter().map(|host| ((*host).to_owned(), lab.files(host))).collect();
    let as_before = || lab.has_files(&before);
    let site = Site::example(&lab, &parts, hosts.len());
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
        let mut running = site.project.start(&arguments);
        std::thread::sleep(moment);
        let is_over = running.child.try_wait().expect("a process").is_some();
        let (first, how) = if round % 2 == 0 && !is_over {
            let (host, cut) = (hosts[random.usize(..hosts.len())], Duration::from_secs(random.u64(CUT)));
            lab.act("blackhole", host);
            std::thread::sleep(cut);
            lab.act("heal", host);
            let ended = running.end();
            // Either it went on when it could, or it says what it could not do.
            let is_told = ended.text.contains("Error: ") && !ended.text.contains("panicked");
            assert!(ended.code == Some(0) || ended.code == Some(1) && is_told, "{host} cut off for {cut:?}:\n{}", ended.text);
            (ended.text, format!("{host} cut off for {cut:?}, ended with {:?}", ended.code.unwrap_or(-1)))
        } else {
            (running.kill(), "kill".to_owned())
        };
        killed += usize::from(!is_over);
        let started = Instant::now();
        let again = site.project.run(&arguments);
        let told = if is_over { "had ended by itself".to_owned() } else { format!("{killed}: {how}") };
        tell(&format!("{told}: {} after {moment:.1?}, again for {:.1?}", STAGES[stage], started.elapsed()));
        assert_eq!(again.code, Some(0), "{how} in {} at {moment:?}:\n{first}\n--- again ---\n{}", STAGES[stage], again.text);
        if stage != 1 {
            takes[stage] = takes[stage].max(again.took);
        }
        if stage == 2 {
            assert_eq!(site.project.must(0, &["state", "list"]).trim(), "");
            as_before();
            // Another life has another administrator.
            site.project.remove("kubeconfig.yaml");
        } else {
            site.project.no_changes();
            hosts.iter().for_each(|host| drop(site.ask(host, &["get", "clusters.cluster.karmada.io"])));
            // Files as they should be are half of it: each process was started with what its unit says.
            hosts.iter().for_each(|host| assert_eq!(lab.shell(host, OLDER).trim(), "", "on {host}"));
        }
    }
    site.project.must(0, &["destroy", "-auto-approve"]);
    as_before();
}
