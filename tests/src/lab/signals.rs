//! What signals do to an apply: the first one lets what is under way end, SIGTERM however often it comes, and a Ctrl-C after it ends at once.

use std::process::Command;
use std::time::Duration;

use super::Lab;
use crate::project::Project;

/// How long the command of the first step takes, in seconds; the second step waits for it.
const TAKES: u64 = 5;

fn project(lab: &Lab) -> Project {
    let project = Project::new();
    let text = format!(
        "{}resource \"ssh_command\" \"slow\" {{\n  host = data.ssh_host.x.connection\n  command = \"sleep {TAKES}; date >>/srv/kf-slow\"\n  undo = \"rm -f /srv/kf-slow\"\n}}\n\
         resource \"ssh_file\" \"after\" {{\n  host = data.ssh_host.x.connection\n  path = \"/srv/kf-after\"\n  content = ssh_command.slow.output\n}}\n",
        lab.host_block(&lab.hosts[0].1, "")
    );
    project.write("main.kf.hcl", &text);
    project.must(0, &["init"]);
    project
}

#[test]
fn sigterm_may_come_as_often_as_it_likes() {
    let Some(lab) = Lab::fresh("sigterm_may_come_as_often_as_it_likes") else { return };
    let project = project(&lab);
    let signalled = |signals: &[&str]| {
        let running = project.start(&["apply", "-auto-approve"]);
        for signal in signals {
            std::thread::sleep(Duration::from_millis(1200));
            let id = running.child.id().to_string();
            assert!(Command::new("kill").args([*signal, &id]).status().expect("kill").success(), "it has ended before {signal}");
        }
        running.end()
    };
    let ended = signalled(&["-TERM", "-TERM", "-TERM"]);
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    assert!(!ended.text.contains("Ended at once"), "{}", ended.text);
    // What was under way is in the state, what was not is not, and nobody holds the lock.
    assert_eq!(project.must(0, &["state", "list"]).trim(), "ssh_command.slow");
    lab.shell("a", "test -s /srv/kf-slow && ! test -e /srv/kf-after");
    project.apply();
    project.no_changes();
    lab.shell("a", "test \"$(wc -l </srv/kf-slow)\" = 1 && test -e /srv/kf-after");
    project.must(0, &["destroy", "-auto-approve"]);

    let ended = signalled(&["-TERM", "-INT"]);
    assert!(ended.code == Some(1) && ended.text.contains("Ended at once, in the middle of what was under way"), "{}", ended.text);
    // The command went on by itself, and is run again: nobody knows how far it came.
    std::thread::sleep(Duration::from_secs(TAKES));
    project.apply();
    project.must(0, &["destroy", "-auto-approve"]);
    lab.shell("a", "! test -e /srv/kf-slow && ! test -e /srv/kf-after");
}
