//! Everything that can go wrong with one request, at each request of an apply: it ends well, or with a clear word, and then the next one
//! ends well; nothing is lost and nothing doubled.

use super::Server;
use crate::project::Project;
use crate::proxy::Fault;

/// What must not be told to people, whatever goes wrong.
const NOISE: &[&str] = &["panicked", "RUST_BACKTRACE", "object_store", "reqwest", "hyper", "Generic {"];

#[test]
fn whatever_happens_to_a_request_nothing_is_lost() {
    let Some(server) = Server::all("an apply on S3 with faults").into_iter().next() else { return };
    let (through, proxy) = server.through_proxy();
    for fault in [Fault::Answer(500), Fault::Answer(503), Fault::CutBefore, Fault::CutAfter, Fault::Half] {
        let key = server.key("fault");
        let project = through.project(&key);
        proxy.rule(|_| None);
        project.apply();
        let count = proxy.done().0;
        assert!((6..=20).contains(&count), "an apply has {count} requests");
        for number in 0..count {
            let more = 3 + (number + 1) % 3;
            through.configure(&project, &key, more);
            // Once: what is tried again gets through.
            proxy.rule(move |asked| (asked.number == number).then_some(fault));
            let ended = project.run(&["apply", "-auto-approve", "-lock-timeout=90s"]);
            let what = format!("{fault:?} at request {number}: {:?}\n{}", proxy.done().1, ended.text);
            assert_eq!(ended.code, Some(0), "{what}");
            proxy.rule(|_| None);
            let listed = project.must(0, &["state", "list"]);
            assert_eq!(listed.matches("terraform_data.thing[").count(), more, "{what}");
            project.no_changes();
        }
    }
}

#[test]
fn a_store_that_is_gone_is_said_in_one_sentence_and_costs_nothing() {
    let Some(server) = Server::all("a store that is gone").into_iter().next() else { return };
    let (through, proxy) = server.through_proxy();
    let key = server.key("gone");
    let project = through.project(&key);
    project.apply();
    through.configure(&project, &key, 5);
    // Away from the start: nothing is done.
    proxy.rule(|_| Some(Fault::CutBefore));
    let refused = project.must(1, &["apply", "-auto-approve"]);
    is_clear(&refused);
    // Away once the work is done: what was done is kept, and the next run goes on from there.
    let mut writes = 0;
    proxy.rule(move |asked| {
        writes += usize::from(asked.method == "PUT" && asked.path.contains(".tfstate") && !asked.path.contains(".tflock"));
        (writes > 1).then_some(Fault::Answer(500))
    });
    let refused = project.must(1, &["apply", "-auto-approve"]);
    is_clear(&refused);
    assert!(refused.contains("errored.tfstate") && refused.contains("state push errored.tfstate"), "{refused}");
    proxy.rule(|_| None);
    pushed_from_elsewhere(&server, &project);
}

/// What could not be written is pushed from another directory; the lock of the run that could not even unlock is in the way until then.
fn pushed_from_elsewhere(server: &Server, project: &Project) {
    let other = Project::new();
    for name in ["main.kf.hcl", "errored.tfstate"] {
        std::fs::copy(project.path().join(name), other.path().join(name)).expect("copied");
    }
    let refused = other.must(1, &["state", "push", "errored.tfstate"]);
    let id = refused.split("force-unlock ").nth(1).and_then(|t| t.split_whitespace().next()).expect("an id").to_owned();
    other.must(0, &["force-unlock", "-force", &id]);
    other.must(0, &["state", "push", "errored.tfstate"]);
    other.no_changes();
    assert_eq!(other.must(0, &["state", "list"]).matches("terraform_data.thing[").count(), 5, "{}", server.name);
    // The journal of the first directory has the same to say, and changes nothing.
    project.no_changes();
}

fn is_clear(text: &str) {
    for noise in NOISE {
        assert!(!text.contains(noise), "\"{noise}\" in: {text}");
    }
    assert!(text.contains("Error"), "{text}");
}

#[test]
fn a_store_that_passes_over_conditions_is_refused() {
    // Only a server that does not look at signatures takes a request that was changed on the way.
    let Some(server) = Server::moto() else {
        return crate::parts::tell("SKIPPED (no moto): a store that passes over conditions");
    };
    let (through, proxy) = server.through_proxy();
    let project = through.project(&server.key("probe"));
    proxy.rule(|_| Some(Fault::Unconditional));
    let refused = project.must(1, &["init"]);
    assert!(refused.contains("Store does not keep its word"), "{refused}");
    proxy.rule(|_| None);
    project.must(0, &["init"]);
}
