//! Everything that can go wrong with one request, at each request of an apply, and a kill at any moment: it ends well, or with a clear word,
//! and then the next one ends well; nothing is lost and nothing doubled.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::gitlab::GitLab;
use super::{configure, id_of, project};
use crate::project::Project;
use crate::proxy::Fault;

/// What must not be told to people, whatever goes wrong.
const NOISE: &[&str] = &["panicked", "RUST_BACKTRACE", "reqwest", "hyper", "Some(", "None"];
/// Kills in an ordinary run.
const KILLS: usize = 12;

#[test]
fn whatever_happens_to_a_request_nothing_is_lost() {
    let server = GitLab::start();
    let (through, proxy) = server.through_proxy();
    for fault in [Fault::Answer(500), Fault::Answer(503), Fault::CutBefore, Fault::CutAfter, Fault::Half] {
        let backend = through.backend(&format!("{fault:?}").replace(['(', ')'], "-"));
        let project = project(&backend, 3);
        proxy.rule(|_| None);
        project.apply();
        let count = proxy.done().0;
        assert!((6..=20).contains(&count), "an apply has {count} requests");
        for number in 0..count {
            let more = 3 + (number + 1) % 3;
            configure(&project, &backend, more);
            // Once: what is tried again gets through.
            proxy.rule(move |asked| (asked.number == number).then_some(fault));
            let ended = project.run(&["apply", "-auto-approve"]);
            let what = format!("{fault:?} at request {number}: {:?}\n{}", proxy.done().1, ended.text);
            assert_eq!(ended.code, Some(0), "{what}");
            assert!(!ended.text.contains("Warning"), "{what}");
            proxy.rule(|_| None);
            let listed = project.must(0, &["state", "list"]);
            assert_eq!(listed.matches("terraform_data.thing[").count(), more, "{what}");
            project.no_changes();
        }
    }
    assert!(server.states().values().all(|kept| kept.lock.is_none()));
}

#[test]
fn a_server_that_is_gone_is_said_in_one_sentence_and_costs_nothing() {
    let server = GitLab::start();
    let (through, proxy) = server.through_proxy();
    let backend = through.backend("gone");
    let project = project(&backend, 3);
    project.apply();
    configure(&project, &backend, 5);
    // Away from the start: nothing is done.
    proxy.rule(|_| Some(Fault::CutBefore));
    let refused = project.must(1, &["apply", "-auto-approve"]);
    is_clear(&refused);
    assert!(refused.contains("can't be reached"), "{refused}");
    // Away once the work is done: what was done is kept, and can be pushed from anywhere.
    let mut writes = 0;
    proxy.rule(move |asked| {
        writes += usize::from(asked.method == "POST" && !asked.path.ends_with("/lock"));
        (writes > 1).then_some(Fault::Answer(500))
    });
    let refused = project.must(1, &["apply", "-auto-approve"]);
    is_clear(&refused);
    assert!(refused.contains("errored.tfstate") && refused.contains("state push errored.tfstate"), "{refused}");
    proxy.rule(|_| None);
    let other = Project::new();
    for name in ["main.kf.hcl", "errored.tfstate"] {
        std::fs::copy(project.path().join(name), other.path().join(name)).expect("copied");
    }
    // The run could not even unlock.
    let id = id_of(&other.must(1, &["state", "push", "errored.tfstate"]));
    other.must(0, &["force-unlock", "-force", &id]);
    other.must(0, &["state", "push", "errored.tfstate"]);
    other.no_changes();
    assert_eq!(other.must(0, &["state", "list"]).matches("terraform_data.thing[").count(), 5);
    // The journal of the first directory has the same to say, and changes nothing.
    project.no_changes();
}

#[test]
fn killed_while_writing_nothing_is_lost_and_nothing_doubled() {
    let (kills, mut moments) = crate::parts::kills(KILLS);
    let server = GitLab::start();
    let backend = server.backend("kill");
    let project = project(&backend, 3);
    for round in 0..kills {
        let count = 3 + round % 5;
        configure(&project, &backend, count);
        let mut child = Command::new(env!("CARGO_BIN_EXE_karmaform-under-test"))
            .args(["apply", "-auto-approve"])
            .current_dir(project.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command");
        std::thread::sleep(Duration::from_millis(moments.u64(20..400)));
        let _ = child.kill();
        child.wait().expect("a process");
        // Its lock stays, whatever else it left.
        let left = server.states().get("kill").and_then(|kept| kept.lock.clone());
        if let Some(id) = left {
            assert_eq!(id_of(&project.must(1, &["apply", "-auto-approve"])), id);
            project.must(0, &["force-unlock", "-force", &id]);
        }
        let ended = project.must(0, &["apply", "-auto-approve"]);
        let listed = project.must(0, &["state", "list"]);
        assert_eq!(listed.matches("terraform_data.thing[").count(), count, "{round}:\n{ended}\n{listed}");
        project.no_changes();
    }
}

fn is_clear(text: &str) {
    for noise in NOISE {
        assert!(!text.contains(noise), "\"{noise}\" in: {text}");
    }
    assert!(text.contains("Error"), "{text}");
}
