//! From nothing to a control plane on three hosts, through damage and change, and away again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::site::{EVERYBODYS, Site};
use super::{faults, for_test, programs, second};
use crate::lab::client::Finally;
use crate::lab::secrets;
use crate::parts::url;

/// An API server looks again every 30 s at the latest whether what others serve is there. Source: `remote_available_controller.go` in
/// `k8s.io/kube-aggregator`.
const SERVED: Duration = Duration::from_secs(40);

#[test]
fn from_nothing_to_a_control_plane_on_hosts_and_back() {
    let Some((lab, parts)) = for_test("from_nothing_to_a_control_plane_on_hosts_and_back") else { return };
    let before = lab.all_files();
    let site = Site::example(&lab, &parts, 3);

    let (plan, (applied, seen)) = site.with_a_bundle_alone(|| {
        let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
        assert!(plan.contains("0 to change, 0 to destroy") && plan.contains("on 3 hosts: a, b, c"), "{plan}");
        (plan, secrets::watching_processes(|| site.converge()))
    });
    // Where it came from makes no difference.
    site.project.no_changes();
    secrets::none_in(&site.project, &[("plan", &plan), ("apply", &applied), ("process list", &seen)]);
    every_host_serves(&site);
    one_address_is_everybodys(&site);
    files_are_the_components_own(&site);
    addons_come_and_go(&site);
    damage_is_repaired(&site);
    // In this order: the other way keepalived would have been started a moment before, and would be waited for.
    an_address_of_nobody_is_told(&site);
    an_address_of_two_is_told(&site);
    second::comes_and_goes(&site);
    programs::come_and_go(&site);
    a_change_rolls(&site);
    faults::a_host_dies(&site);
    what_can_not_start_takes_nothing_away(&site);

    // The state is lost: everything that it knew is on the hosts and in the Karmada API.
    site.project.remove("karmaform.tfstate");
    let text = site.project.must(0, &["state", "rebuild"]);
    assert!(text.contains("No changes.") && !text.contains("PRIVATE KEY"), "{text}");
    site.project.no_changes();

    faults::destroyed_without_a_host(&site, &before);
    lab.has_files(&before);
    for (host, _) in &lab.hosts {
        lab.shell(host, "! systemctl list-units --all --plain --no-legend 'karmada-*' | grep -v 'not-found inactive dead'");
    }
}

pub(super) fn every_host_serves(site: &Site<'_>) {
    for (host, _) in &site.lab.hosts {
        let served = site.ask(host, &["get", "apiservice", "v1alpha1.cluster.karmada.io", "-o", "yaml"]);
        assert!(served.contains("type: Available") && served.contains("port: 7443"), "{served}");
        site.ask(host, &["get", "clusters.cluster.karmada.io"]);
        assert_eq!(site.ask(host, &["get", "crds", "-o", "name"]).lines().count(), 19);
        // Asks the conversion webhook where there is something to convert, and in any case for both versions.
        site.ask(host, &["get", "resourcebindings.v1alpha1.work.karmada.io", "--all-namespaces"]);
        site.admits(host);
    }
    site.project.no_changes();
}

/// The kubeconfig leads to the load balancer; no component is in its way, and nothing of it runs with rights that it needs not.
pub(super) fn one_address_is_everybodys(site: &Site<'_>) {
    let Some(vip) = &site.vip else { return };
    assert_eq!(site.project.output("endpoint").trim(), url(vip, 6443));
    site.ask(EVERYBODYS, &["get", "clusters.cluster.karmada.io"]);
    assert_eq!(faults::holders(site, vip).len(), 1);
    let rights = site.lab.shell("a", "systemctl show --property=User --value karmada-demo-haproxy.service");
    assert_eq!(rights.trim(), "demo-haproxy");
}

/// Nobody but its user reads what a component has, and nothing of it is root's process.
fn files_are_the_components_own(site: &Site<'_>) {
    let host = &site.lab.hosts[0].0;
    let modes = site.lab.shell(host, "stat -c '%a %U %n' /etc/karmada/demo/*/*");
    // The load balancer has nothing to hide.
    for line in modes.lines().filter(|l| !l.contains("/load-balancer/")) {
        let component = line.split('/').nth(4).unwrap_or_default();
        let owner = if component == "authority" { "root".to_owned() } else { format!("demo-{component}") };
        assert!(line.starts_with(&format!("600 {owner} ")), "{line}");
    }
    let users = site.lab.shell(host, "systemctl show --property=User --value 'karmada-demo-*' | sort -u");
    assert_eq!(users.split_whitespace().filter(|u| u.starts_with("demo-") && *u != "demo-haproxy").count(), 6, "{users}");
    site.lab.shell(host, "grep -c 'demo-webhook.karmada-system.svc$' /etc/hosts | grep -qx 3");
}

fn addons_come_and_go(site: &Site<'_>) {
    site.values(3, "addons = [\"search\", \"descheduler\", \"metrics-adapter\"]");
    site.converge();
    for (host, _) in &site.lab.hosts {
        for api in ["search.karmada.io/v1alpha1", "metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2"] {
            // Each API server finds out for itself that somebody serves it now.
            site.answers_within(SERVED, host, &["get", "--raw", &format!("/apis/{api}")]);
        }
    }
    site.values(3, "");
    let text = site.converge();
    assert!(text.contains("removes the addon search"), "{text}");
    let units = site.lab.shell("a", "systemctl list-unit-files --plain --no-legend 'karmada-demo-*' | grep -vc 'haproxy\\|keepalived'");
    assert_eq!(units.trim(), "6");
}

/// Three people do three things on three hosts.
fn damage_is_repaired(site: &Site<'_>) {
    site.lab.shell("a", "systemctl stop karmada-demo-scheduler.service");
    site.lab.shell("b", "rm /etc/karmada/demo/webhook/tls.crt");
    site.lab.shell("c", "sed -i '/demo-apiserver/d' /etc/hosts");
    names_of_others_are_told(site);
    drift_is_only_told(site);
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    for expected in [
        "host[\"a\"]/unit[\"scheduler\"]",
        "host[\"b\"]/file[\"webhook/tls.crt\"]",
        "host[\"c\"]/names",
        "Plan: 1 to add, 2 to change, 0 to destroy",
    ] {
        assert!(plan.contains(expected), "{expected} is not in\n{plan}");
    }
    site.converge();
    site.admits("b");
    site.lab.shell("c", "grep -q demo-apiserver /etc/hosts");
}

/// haproxy is stopped everywhere, so no host has the address. All else answers when it is asked.
fn an_address_of_nobody_is_told(site: &Site<'_>) {
    if site.vip.is_none() {
        return;
    }
    for (host, _) in &site.lab.hosts {
        site.lab.shell(host, "systemctl stop karmada-demo-haproxy.service");
    }
    // Who was started within the last minute may still be on its way, and is not asked.
    for (host, _) in &site.lab.hosts {
        let ago = "$(( $(cut -d. -f1 /proc/uptime) - $(systemctl show -p ExecMainStartTimestampMonotonic --value karmada-demo-keepalived) / 1000000 ))";
        site.lab.shell(host, &format!("for i in $(seq 70); do [ {ago} -le 61 ] || exit 0; sleep 1; done; exit 1"));
    }
    let text = site.project.must(2, &["drift", "-json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let told = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|f| ["kind", "address"].map(|n| f[n].as_str().unwrap_or_default().to_owned()));
    let found: BTreeSet<_> = told.filter(|[_, address]| address.contains("/unit[")).collect();
    let unit =
        |kind: &str, host: &str, name: &str| [kind.to_owned(), format!("karmada_control_plane.main/host[\"{host}\"]/unit[\"{name}\"]")];
    let expected = ["a", "b", "c"].iter().flat_map(|host| [unit("changed", host, "haproxy"), unit("decay", host, "keepalived")]);
    assert_eq!(found, expected.collect(), "{text}");
    site.converge();
}

/// Whose keepalived hangs keeps the address, and another host takes it all the same.
fn an_address_of_two_is_told(site: &Site<'_>) {
    let Some(vip) = &site.vip else { return };
    let until = std::time::Instant::now() + Duration::from_secs(60);
    let holder = loop {
        if let [holder] = faults::holders(site, vip)[..] {
            break holder;
        }
        assert!(std::time::Instant::now() < until, "not one host has {vip}");
        std::thread::sleep(Duration::from_millis(200));
    };
    // All of its processes: who speaks to the others is not the main one.
    site.lab.shell(holder, "pkill -STOP -x keepalived");
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while faults::holders(site, vip).len() < 2 {
        assert!(std::time::Instant::now() < until, "nobody else takes {vip}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let other = faults::holders(site, vip).into_iter().find(|host| *host != holder).expect("another one");
    let text = site.project.must(2, &["drift", "-json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let told = report["findings"].as_array().expect("findings").iter();
    let told = told.map(|f| ["kind", "address"].map(|n| f[n].as_str().unwrap_or_default().to_owned()));
    let found: BTreeSet<_> = told.filter(|[_, address]| address.contains("/unit[")).collect();
    let unit = |kind: &str, host: &str| [kind.to_owned(), format!("karmada_control_plane.main/host[\"{host}\"]/unit[\"keepalived\"]")];
    assert_eq!(found, [unit("changed", holder), unit("decay", other)].into(), "{text}");
    assert!(text.contains(&format!("have the virtual IP {vip} at once")), "{text}");
    site.converge();
    assert_eq!(faults::holders(site, vip).len(), 1);
}

/// No apply takes a line of somebody else's away; who looks says whose names it takes.
fn names_of_others_are_told(site: &Site<'_>) {
    let name = "demo-webhook.karmada-system.svc";
    site.lab.shell("a", &format!("echo '10.9.9.9 {name}' >>/etc/hosts"));
    let text = site.project.run(&["drift", "-json"]).text;
    assert!(text.contains(&format!("a line of somebody else in /etc/hosts says that {name} is 10.9.9.9")), "{text}");
    site.lab.shell("a", "sed -i '/^10.9.9.9 /d' /etc/hosts");
}

/// Each by its right name and nothing else, and no host is touched by looking.
fn drift_is_only_told(site: &Site<'_>) {
    // But for what etcd writes all the time.
    let files = || -> Vec<String> {
        let all = site.lab.all_files().into_values().collect::<String>();
        all.lines().filter(|l| !l.contains("var/lib/etcd")).map(str::to_owned).collect()
    };
    let before = files();
    let text = site.project.must(2, &["drift", "-json", "-report=junit=drift.xml", "-ignore=*::kube_version"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    // An API that is not served without these names may be told of as well, as what it is.
    let found = report["findings"].as_array().expect("findings").iter().filter(|f| f["kind"] != "decay");
    let found: BTreeSet<_> = found.map(|f| ["kind", "address"].map(|n| f[n].as_str().unwrap_or_default().to_owned())).collect();
    let part = |kind: &str, host: &str, part: &str| [kind.to_owned(), format!("karmada_control_plane.main/host[\"{host}\"]/{part}")];
    let expected =
        [part("changed", "a", "unit[\"scheduler\"]"), part("missing", "b", "file[\"webhook/tls.crt\"]"), part("changed", "c", "names")];
    assert_eq!(found, expected.into(), "{text}");
    let junit = std::fs::read_to_string(site.project.path().join("drift.xml")).expect("a report");
    let (all, decay) = (junit.matches("<failure ").count(), junit.matches("type=\"decay\"").count());
    assert_eq!(all - decay, 3, "{junit}");
    let (before, after) = (before.join("\n"), files().join("\n"));
    assert!(after == before, "a host is not as it was:\n{}", crate::golden::difference(&before, &after));
}

/// A flag of the API server: one host after the other, and the other two serve all the time.
fn a_change_rolls(site: &Site<'_>) {
    site.with_block("component \"apiserver\" {\n  extra_args = { v = \"1\" }\n}");
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("one host at a time; the other 2 hosts serve"), "{plan}");
    let done = AtomicBool::new(false);
    let (fewest, missed, looks) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let (mut fewest, mut missed, mut looks) = (3, 0, 0);
            while !done.load(Ordering::SeqCst) {
                // All at the same time: what is asked one after the other may be away one after the other.
                let answers: Vec<_> =
                    site.lab.hosts.iter().map(|(h, _)| scope.spawn(|| site.answers(h, &["get", "--raw", "/readyz"]))).collect();
                // Not whether it is ready: one that is about to end says no, and serves for a while.
                let is_missed = site.vip.is_some() && !site.answers(EVERYBODYS, &["get", "namespaces"]);
                missed += usize::from(is_missed);
                fewest = fewest.min(answers.into_iter().map(|a| usize::from(a.join().expect("an answer"))).sum());
                looks += 1;
                // Who asks all the time takes the processor away from what is to answer.
                std::thread::sleep(Duration::from_millis(200));
            }
            (fewest, missed, looks)
        });
        let end = Finally(&done);
        site.project.apply();
        drop(end);
        watcher.join().expect("the watcher")
    });
    assert!(looks > 5 && fewest >= 2, "{looks} looks, and once only {fewest} of 3 API servers answered");
    assert_eq!(missed, 0, "of {looks} requests through the load balancer");
    site.project.no_changes();
    for (host, _) in &site.lab.hosts {
        site.lab.shell(host, "tr '\\0' '\\n' < /proc/$(systemctl show --property=MainPID --value karmada-demo-apiserver.service)/cmdline | grep -qx -- --v=1");
    }
}

/// What the program would not understand is said before anything is done; a program that does not understand its flags is not started.
fn what_can_not_start_takes_nothing_away(site: &Site<'_>) {
    site.with_block("component \"scheduler\" {\n  extra_args = { no-such-flag = \"1\" }\n}");
    let refused = site.project.must(1, &["plan"]);
    assert!(refused.contains("no-such-flag"), "{refused}");
    // Another program altogether.
    site.with_block("component \"scheduler\" {\n  source = \"/bin/false\"\n}");
    let refused = site.project.must(1, &["apply", "-auto-approve"]);
    assert!(refused.contains("Unit was not started") && refused.contains("left as it is"), "{refused}");
    for (host, _) in &site.lab.hosts {
        site.lab.shell(host, "systemctl is-active karmada-demo-scheduler.service");
    }
    site.with_block("component \"apiserver\" {\n  extra_args = { v = \"1\" }\n}");
    site.converge();
}
