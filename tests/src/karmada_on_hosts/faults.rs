//! A host dies: what the others do meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use super::site::{EVERYBODYS, Site};
use crate::parts::tell;

/// How long the API may be away for those who reach another host.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a host that comes back may take to have everything up.
const BACK: Duration = Duration::from_secs(60);

/// The first host, which karmaform itself goes through.
pub(super) fn a_host_dies(site: &Site<'_>) {
    balancer_is_on_a(site);
    site.lab.act("kill", "a");
    if site.vip.is_some() {
        let took = site.answers_within(AGAIN, EVERYBODYS, &["get", "--raw", "/readyz"]);
        tell(&format!("without a, the virtual IP answered after {:.1} s", took.as_secs_f64()));
    }
    for host in ["b", "c"] {
        let took = site.answers_within(AGAIN, host, &["get", "--raw", "/readyz"]);
        tell(&format!("without a, {host} answered after {:.1} s", took.as_secs_f64()));
        site.answers_within(AGAIN, host, &["get", "clusters.cluster.karmada.io"]);
        site.admits(host);
    }
    // Nobody takes the host for one that is to be made anew.
    let told = site.project.must(0, &["plan", "-detailed-exitcode"]);
    assert!(told.contains("Warning: ") && told.contains("is taken to be so") && told.contains("No changes"), "{told}");
    // What can't be looked at is told to be so, and never to be gone.
    let told = site.project.must(1, &["drift"]);
    assert!(told.contains("Unreachable: ") && !told.contains("Missing: ") && !told.contains("Changed: "), "{told}");
    // What there is to do elsewhere is done, and what is not is told: API servers change, then what is inside the API, then what needs that.
    site.with_block(
        "component \"apiserver\" {\n  extra_args = { v = \"2\" }\n}\ncomponent \"scheduler\" {\n  extra_args = { v = \"1\" }\n}\naddon \"search\" {}",
    );
    let applied = site.project.must(1, &["apply", "-auto-approve"]);
    assert!(applied.contains("host[\"a\"]/unit[\"scheduler\"]") && applied.contains("Error: "), "{applied}");
    for host in ["b", "c"] {
        for (component, flag) in [("apiserver", "--v=2"), ("scheduler", "--v=1")] {
            let unit = format!("karmada-demo-{component}.service");
            let line = format!("tr '\\0' ' ' < /proc/$(systemctl show --property=MainPID --value {unit})/cmdline");
            assert!(site.lab.shell(host, &line).contains(flag), "{component} on {host}: {applied}");
        }
        site.lab.shell(host, "systemctl is-active karmada-demo-search.service");
        let served = site.ask(host, &["get", "apiservice", "v1alpha1.search.karmada.io", "-o", "yaml"]);
        assert!(served.contains("port: 9443"), "{served}");
    }
    site.lab.act("start", "a");
    if let Some(vip) = &site.vip {
        // Nobody has it twice, and it stays where it is.
        assert_ne!(holders(site, vip), ["a"]);
    }
    site.answers_within(BACK, "a", &["get", "clusters.cluster.karmada.io"]);
    site.admits("a");
    // What needs the API is started again and again while a host comes up, and a plan tells of what does not run at the moment.
    let all_run = "for i in $(seq 100); do systemctl list-units --plain --no-legend 'karmada-demo-*' | grep -qv ' running ' || exit 0; \
                   sleep 0.3; done; systemctl list-units 'karmada-demo-*'; exit 1";
    site.lab.shell("a", all_run);
    let planned = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(planned.contains("13 to add, 3 to change, 0 to destroy"), "{planned}");
    site.converge();
}

/// Destroyed while a host is off: nothing stays on the others, etcd neither, and what is on that one goes when it is back.
pub(super) fn destroyed_without_a_host(site: &Site<'_>, before: &BTreeMap<String, String>) {
    site.lab.act("kill", "c");
    let told = site.project.must(1, &["destroy", "-auto-approve"]);
    assert!(told.contains("Error: ") && !told.contains("panicked"), "{told}");
    let others = before.iter().filter(|(host, _)| *host != "c").map(|(host, files)| (host.clone(), files.clone())).collect();
    site.lab.has_files(&others);
    let left = site.project.must(0, &["state", "list"]);
    let is_of_c = |line: &str| line.contains("host[\"c\"]") || line.contains("member[\"c\"]");
    let whole = ["etcd_cluster.main", "karmada_control_plane.main"];
    let strange: Vec<&str> = left.lines().filter(|l| !is_of_c(l) && !whole.contains(l) && !l.starts_with("data.")).collect();
    assert!(left.lines().any(is_of_c) && strange.is_empty(), "{strange:?} of\n{left}\nafter\n{told}");
    site.lab.act("start", "c");
    site.project.must(0, &["destroy", "-auto-approve"]);
    assert_eq!(site.project.must(0, &["state", "list"]).trim(), "");
}

/// The hosts that have the virtual IP.
pub(super) fn holders<'a>(site: &'a Site<'_>, vip: &str) -> Vec<&'a str> {
    let has = |host: &str| site.lab.shell(host, &format!("ip -o addr | grep -c ' {vip}/' || true")).trim() != "0";
    site.lab.hosts.iter().map(|(host, _)| host.as_str()).filter(|host| has(host)).collect()
}

/// The virtual IP goes where it is not yet: its programs end everywhere else for a moment.
fn balancer_is_on_a(site: &Site<'_>) {
    let Some(vip) = &site.vip else { return };
    for (action, word) in [("stop", "leaves"), ("start", "returns")] {
        for host in ["b", "c"] {
            site.lab.shell(host, &format!("systemctl {action} karmada-demo-haproxy.service"));
        }
        let started = std::time::Instant::now();
        while holders(site, vip) != ["a"] {
            assert!(started.elapsed() < BACK, "{vip} is on {:?} when haproxy {word} on the others", holders(site, vip));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}
