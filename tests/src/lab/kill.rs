//! SIGKILL at random moments of create, change and destroy: apply again, and the world is as if nothing had happened.
//!
//! `KARMAFORM_KILLS` says how often (6 unless set; `make kill` does 50), `KARMAFORM_SEED` repeats a run.

use std::time::Duration;

use super::Lab;
use super::project::Etcdctl;
use crate::parts::{kills, tell};
use crate::project::Project;

const USUAL: usize = 6;

#[test]
fn killed_at_any_moment_the_world_ends_the_same() {
    let Some(lab) = Lab::fresh("killed_at_any_moment_the_world_ends_the_same") else { return };
    let (kills, mut random) = kills(USUAL);

    let project = Project::etcd(&lab);
    let archive = &lab.etcd.last().expect("an etcd").1;
    let pristine = shape(&lab);
    // One of each undisturbed, for how long they take and what they leave.
    let created = project.run(&["apply", "-auto-approve"]);
    assert_eq!(created.code, Some(0), "{}", created.text);
    let formed = shape(&lab);
    project.settings("heartbeat-interval = 110");
    let changed = project.run(&["apply", "-auto-approve"]);
    assert_eq!(changed.code, Some(0), "{}", changed.text);
    let destroyed = project.run(&["destroy", "-auto-approve"]);
    assert_eq!(destroyed.code, Some(0), "{}", destroyed.text);
    assert_eq!(shape(&lab), pristine);

    for round in 0..kills {
        let words = ["create", "change", "destroy"];
        let stage = round % words.len();
        let (arguments, usual): (&[&str], Duration) = match stage {
            0 => (&["apply", "-auto-approve"], created.took),
            1 => {
                project.settings(&format!("heartbeat-interval = {}", 120 + round));
                (&["apply", "-auto-approve"], changed.took)
            }
            _ => (&["destroy", "-auto-approve"], destroyed.took),
        };
        let moment = usual.mul_f64(random.f64());
        let running = project.start(arguments);
        std::thread::sleep(moment);
        let text = running.kill();
        tell(&format!("kill {}: {} after {:.2} s of {:.2}", round + 1, words[stage], moment.as_secs_f64(), usual.as_secs_f64()));

        let again = project.run(arguments);
        // What went wrong is at the end of it.
        let told = format!("after a kill in {} at {moment:?}:\n{}\n--- the killed one ---\n{text}", words[stage], last(&again.text));
        assert_eq!(again.code, Some(0), "{told}\n--- the one after it ---\n{}", again.text);
        if stage == 2 {
            let now = shape(&lab);
            assert!(now == pristine, "{}", crate::golden::difference(&pristine, &now));
            assert_eq!(project.must(0, &["state", "list"]).trim(), "");
        } else {
            project.no_changes();
            let now = shape(&lab);
            assert!(now == formed, "{}", crate::golden::difference(&formed, &now));
            let members = Etcdctl::new(&project, archive).run(&["member", "list"]);
            assert_eq!(members.matches("started").count(), lab.hosts.len(), "{members}");
            run_with_what_is_written(&lab);
        }
    }
    project.must(0, &["destroy", "-auto-approve"]);
    assert_eq!(shape(&lab), pristine);
}

/// Files as they should be are half of it: every member runs with the settings that are in them.
fn run_with_what_is_written(lab: &Lab) {
    for (host, _) in &lab.hosts {
        let process = "tr '\\0' '\\n' </proc/$(systemctl show -p MainPID --value etcd-main)/environ";
        let runs = lab.shell(host, &format!("{process} | grep -E '^ETCD_' | sort"));
        let written = lab.shell(host, "grep -E '^ETCD_' /etc/etcd/main/etcd.env | sed 's/=\"\\(.*\\)\"$/=\\1/' | sort");
        let is_written = |line: &&str| !written.lines().any(|w| w == *line) && !line.contains("INITIAL_CLUSTER");
        let other: Vec<&str> = runs.lines().filter(is_written).collect();
        assert!(!runs.is_empty() && other.is_empty(), "{host} runs with {other:?}, where this is written:\n{written}");
    }
}

/// The last lines of a text.
fn last(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// The names, kinds, modes and owners of all files of all hosts, without what etcd keeps in its data, and the units.
fn shape(lab: &Lab) -> String {
    let of = |host: &String| {
        let files = lab.files(host);
        let lines = files.lines().filter(|l| !l.starts_with("var/lib/etcd/main/") && !l.contains(" sha256 "));
        let units = lab.shell(host, "systemctl list-unit-files --plain --no-legend 'etcd-*' | cut -d' ' -f1,2");
        format!("{host}\n{}\n{units}\n", lines.collect::<Vec<_>>().join("\n"))
    };
    lab.hosts.iter().map(|(h, _)| of(h)).collect()
}
