//! Everything that can go wrong with one request, at each request of an apply: it ends well, or with a clear word, and then the next one
//! ends well; nothing is lost and nothing doubled.

use super::{configure, lock_id};
use crate::http_state::gitlab::GitLab;
use crate::kubernetes_proxy;
use crate::kubernetes_state;
use crate::parts::tell;
use crate::project::Project;
use crate::proxy::{Asked, Fault, Proxy};
use crate::s3::Server;

/// What must not be told to people, whatever goes wrong.
const NOISE: &[&str] = &["panicked", "RUST_BACKTRACE", "object_store", "reqwest", "hyper", "Generic {", "Some("];

/// A server behind a line on which things go wrong.
struct Line {
    name: &'static str,
    /// A block for a place that nobody else has.
    backend: Box<dyn Fn() -> String>,
    proxy: Box<dyn std::ops::Deref<Target = Proxy>>,
    /// True for a request that writes the state.
    writes: fn(&Asked) -> bool,
    /// The most requests that an apply makes.
    most: usize,
    /// What must not be told either, and what must be once it is gone.
    words: (&'static [&'static str], &'static str),
    /// Nobody holds a lock there any more, where the server tells.
    is_free: Box<dyn Fn() -> bool>,
}

impl Line {
    /// All that the machine carries; says what is skipped.
    fn all(test: &str) -> Vec<Self> {
        let mut lines = Vec::new();
        if let Some(server) = Server::all(test).into_iter().next() {
            let (through, proxy) = server.through_proxy();
            let backend = Box::new(move || through.backend(&through.key("fault")));
            let writes = |a: &Asked| a.method == "PUT" && a.path.contains(".tfstate") && !a.path.contains(".tflock");
            let proxy = Box::new(Box::new(proxy));
            lines.push(Self { name: "S3", backend, proxy, writes, most: 20, words: (&[], "Error"), is_free: Box::new(|| true) });
        }
        match std::env::var("KARMAFORM_TEST_KUBECONFIG") {
            Ok(kubeconfig) => {
                let proxy = kubernetes_proxy::Proxy::new(&kubeconfig);
                let through = proxy.kubeconfig();
                let backend = Box::new(move || kubernetes_state::backend(&format!("fault-{:016x}", fastrand::u64(..)), &through));
                let writes = |a: &Asked| a.method != "GET" && a.path.contains("/secrets");
                let (proxy, is_free) = (Box::new(proxy), Box::new(|| true));
                lines.push(Self { name: "Kubernetes", backend, proxy, writes, most: 30, words: (&[], "Error"), is_free });
            }
            Err(_) => tell(&format!("SKIPPED (no Kubernetes): {test}")),
        }
        let server = GitLab::start();
        let (through, proxy) = server.through_proxy();
        let backend = Box::new(move || through.backend(&format!("fault-{:016x}", fastrand::u64(..))));
        let writes = |a: &Asked| a.method == "POST" && !a.path.ends_with("/lock");
        let is_free = Box::new(move || server.states().values().all(|kept| kept.lock.is_none()));
        let words: (&[&str], &str) = (&["None"], "can't be reached");
        lines.push(Self { name: "GitLab", backend, proxy: Box::new(Box::new(proxy)), writes, most: 20, words, is_free });
        lines
    }
}

#[test]
fn whatever_happens_to_a_request_nothing_is_lost() {
    for Line { name, backend, proxy, most, is_free, .. } in Line::all("an apply with faults") {
        for fault in [Fault::Answer(500), Fault::Answer(503), Fault::CutBefore, Fault::CutAfter, Fault::Half] {
            let (project, backend) = (Project::new(), backend());
            configure(&project, &backend, 3);
            proxy.rule(|_| None);
            project.apply();
            let count = proxy.done().0;
            assert!((6..=most).contains(&count), "{name}: an apply has {count} requests");
            for number in 0..count {
                let more = 3 + (number + 1) % 3;
                configure(&project, &backend, more);
                // Once: what is tried again gets through.
                proxy.rule(move |asked| (asked.number == number).then_some(fault));
                let ended = project.run(&["apply", "-auto-approve", "-lock-timeout=90s"]);
                let what = format!("{name}: {fault:?} at request {number}: {:?}\n{}", proxy.done().1, ended.text);
                assert_eq!(ended.code, Some(0), "{what}");
                assert!(name != "GitLab" || !ended.text.contains("Warning"), "{what}");
                proxy.rule(|_| None);
                let listed = project.must(0, &["state", "list"]);
                assert_eq!(listed.matches("terraform_data.thing[").count(), more, "{what}");
                project.no_changes();
            }
        }
        assert!(is_free(), "{name}: a lock is left");
    }
}

#[test]
fn a_place_that_is_gone_is_said_in_one_sentence_and_costs_nothing() {
    for Line { name, backend, proxy, writes, words: (noise, gone), .. } in Line::all("a place that is gone") {
        let is_clear = |text: &str| is_clear(name, text, noise);
        let (project, backend) = (Project::new(), backend());
        configure(&project, &backend, 3);
        project.apply();
        configure(&project, &backend, 5);
        // Away from the start: nothing is done.
        proxy.rule(|_| Some(Fault::CutBefore));
        let refused = project.must(1, &["apply", "-auto-approve"]);
        is_clear(&refused);
        assert!(refused.contains(gone), "{name}: {refused}");
        // Away once the work is done: what was done is kept, and the next run goes on from there.
        let mut written = 0;
        proxy.rule(move |asked| {
            written += usize::from(writes(asked));
            (written > 1).then_some(Fault::Answer(500))
        });
        let refused = project.must(1, &["apply", "-auto-approve"]);
        is_clear(&refused);
        assert!(refused.contains("errored.tfstate") && refused.contains("state push errored.tfstate"), "{name}: {refused}");
        proxy.rule(|_| None);
        pushed_from_elsewhere(name, &project);
    }
}

/// What could not be written is pushed from another directory; the lock of the run that could not even unlock is in the way until then.
fn pushed_from_elsewhere(name: &str, project: &Project) {
    let other = Project::new();
    for file in ["main.kf.hcl", "errored.tfstate"] {
        std::fs::copy(project.path().join(file), other.path().join(file)).expect("copied");
    }
    let refused = other.must(1, &["state", "push", "errored.tfstate"]);
    let id = lock_id(&refused);
    other.must(0, &["force-unlock", "-force", &id]);
    other.must(0, &["state", "push", "errored.tfstate"]);
    other.no_changes();
    assert_eq!(other.must(0, &["state", "list"]).matches("terraform_data.thing[").count(), 5, "{name}");
    // The journal of the first directory has the same to say, and changes nothing.
    project.no_changes();
}

fn is_clear(name: &str, text: &str, more: &[&str]) {
    for noise in NOISE.iter().chain(more) {
        assert!(!text.contains(noise), "{name}: \"{noise}\" in: {text}");
    }
    assert!(text.contains("Error"), "{name}: {text}");
}
