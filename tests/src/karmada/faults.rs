//! Everything that can go wrong on the way to the host cluster's API server, by a proxy in between.

use std::time::{Duration, Instant};

use super::Host;
use super::plane::Plane;
use crate::kubernetes_proxy::Proxy;
use crate::parts::tell;
use crate::proxy::{Asked, Fault};

/// About every so many requests something goes wrong.
const EVERY: usize = 7;
/// From this request on nobody is there, for a while: an API server that restarts.
const OUTAGE: (usize, Duration) = (150, Duration::from_secs(5));
/// No command may need longer to find out that there is nothing to be done.
const LONGEST: Duration = Duration::from_secs(75);

/// Each kind of fault in turn, where it can be. Nobody hears nothing more than once: that costs a quarter of a minute.
fn now_and_then() -> impl FnMut(&Asked) -> Option<Fault> + Send + 'static {
    let (mut turn, mut is_silent, mut since) = (0, false, None::<Instant>);
    move |asked| {
        if asked.number >= OUTAGE.0 && since.get_or_insert_with(Instant::now).elapsed() < OUTAGE.1 {
            return Some(Fault::CutBefore);
        }
        if asked.number % EVERY != EVERY - 1 {
            return None;
        }
        turn += 1;
        let is_upgrade = asked.path.contains("portforward");
        let fault = match turn % 8 {
            0 if asked.method == "PATCH" || asked.method == "DELETE" => Fault::Answer(409),
            1 => Fault::Answer(429),
            2 => Fault::Answer(500),
            3 => Fault::Answer(503),
            4 if !is_upgrade => Fault::CutAfter,
            5 if !is_upgrade => Fault::Half,
            6 if asked.method == "GET" && !is_upgrade && !std::mem::replace(&mut is_silent, true) => Fault::Silence,
            _ => Fault::CutBefore,
        };
        Some(fault)
    }
}

/// How many things are said to be wrong.
pub(super) fn errors(text: &str) -> usize {
    text.lines().filter(|l| l.starts_with("Error: ")).count()
}

#[test]
fn a_control_plane_comes_and_goes_while_requests_fail() {
    let Some(host) = Host::for_test("a_control_plane_comes_and_goes_while_requests_fail", "kf-faults") else { return };
    let before = host.inventory();
    let plane = Plane::example(&host, "demo");
    let proxy = Proxy::new(host.kubeconfig());
    let way = format!("kubeconfig={}", proxy.kubeconfig());
    // What gives up says one thing, and the next one goes on from there.
    let converge = |words: &[&str]| {
        let mut tries = 0;
        loop {
            tries += 1;
            proxy.rule(now_and_then());
            let ended = plane.project.run(&[words, &["-var", &way]].concat());
            let (requests, faults) = proxy.done();
            tell(&format!("{}: {} of {requests} requests failed, code {:?} after {:.1?}", words[0], faults.len(), ended.code, ended.took));
            if ended.code == Some(0) {
                return ended.text;
            }
            assert_eq!(errors(&ended.text), 1, "{}\n{}", ended.text, faults.join("\n"));
            assert!(tries < 3, "{}\n{}", ended.text, faults.join("\n"));
            tell(&ended.text);
        }
    };
    converge(&["apply", "-auto-approve"]);
    let planned = converge(&["plan", "-detailed-exitcode"]);
    assert!(planned.contains("No changes"), "{planned}");
    converge(&["destroy", "-auto-approve"]);
    host.is_as_before(&before);
}

#[test]
fn a_server_that_is_no_good_is_told_of_once() {
    let Some(host) = Host::for_test("a_server_that_is_no_good_is_told_of_once", "kf-no-good") else { return };
    let expected = [
        (Fault::Answer(500), "Cluster is not able to answer"),
        (Fault::Answer(429), "Cluster is not able to answer"),
        (Fault::Answer(503), "Cluster is not able to answer"),
        (Fault::Silence, "Cluster did not answer"),
        (Fault::CutBefore, "Cluster is unreachable"),
        (Fault::Half, "Cluster is unreachable"),
    ];
    // From the first request on, and after the cluster's facts are known.
    let cases = expected.iter().flat_map(|(fault, summary)| [(0, *fault, *summary), (4, *fault, *summary)]);
    // That one takes 70 s.
    let cases = cases.filter(|(first, fault, _)| (*first, *fault) != (4, Fault::Silence));
    std::thread::scope(|scope| {
        for (first, fault, summary) in cases {
            let host = &host;
            scope.spawn(move || {
                let plane = Plane::example(host, "demo");
                let proxy = Proxy::new(host.kubeconfig());
                proxy.rule(move |asked| (asked.number >= first).then_some(fault));
                let ended = plane.project.run(&["plan", "-var", &format!("kubeconfig={}", proxy.kubeconfig())]);
                tell(&format!("{fault:?} from request {first} on: {} requests, {:.1?}", proxy.done().0, ended.took));
                let said = format!("{fault:?} from request {first} on, after {:?}:\n{}", ended.took, ended.text);
                assert!(ended.code == Some(1) && errors(&ended.text) == 1 && ended.text.contains(summary), "{said}");
                assert!(ended.took < LONGEST, "{said}");
            });
        }
    });
}
