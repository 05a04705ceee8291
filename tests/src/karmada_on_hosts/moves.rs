//! A control plane goes to another etcd, with all that it keeps: while somebody writes to it, killed in the middle, and back again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::for_test;
use super::site::Site;
use crate::lab::client::Finally;
use crate::lab::secrets;
use crate::parts::tell;

/// How long nobody can write, at most: all API servers stop, what has changed is copied, and the first one starts.
const LONGEST_GAP: Duration = Duration::from_secs(60);
/// Another etcd beside the example's, with more in its block.
fn etcd(name: &str, port: u16, more: &str) -> String {
    let peers = port + 1;
    format!(
        r#"
resource "etcd_cluster" "{name}" {{
  version     = var.etcd_version
  source      = var.etcd_source
  hosts       = data.ssh_host.cp
  client_port = {port}
  peer_port   = {peers}
{more}}}
"#
    )
}

#[test]
fn a_control_plane_goes_to_another_etcd_with_all_that_it_keeps() {
    let Some((lab, parts)) = for_test("a_control_plane_goes_to_another_etcd_with_all_that_it_keeps") else { return };
    let before = lab.all_files();
    let site = Site::example(&lab, &parts, 2);
    site.converge();
    let main = std::fs::read_to_string(site.project.path().join("main.kf.hcl")).expect("the example");
    let next = main.replace("etcd_cluster.main.client", "etcd_cluster.next.client");
    let both = |text: &str| site.project.write("main.kf.hcl", &format!("{text}{}", etcd("next", 12_379, "")));
    let uid = || site.ask("a", &["get", "namespace", "default", "-o=jsonpath={.metadata.uid}"]);
    let identity = uid();

    // The new one is made by the same plan.
    both(&next);
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    for expected in [
        "moves everything below /registry from the etcd at",
        "the Karmada API is unavailable from then until they have started",
        "0 to destroy",
    ] {
        assert!(plan.contains(expected), "{expected} is not in\n{plan}");
    }
    let (applied, seen) =
        secrets::watching_processes(|| site.writes_while("a move to an etcd that is made by it", || site.project.apply()));
    secrets::none_in(&site.project, &[("plan", &plan), ("apply", &applied), ("process list", &seen)]);
    site.project.no_changes();
    assert_eq!(uid(), identity);

    // By a plan that was saved, and killed when all API servers have stopped.
    both(&main);
    site.project.must(2, &["plan", "-out=back.kfplan", "-detailed-exitcode"]);
    // The key that the old one is asked with is in none of it.
    let saved = std::fs::read(site.project.path().join("back.kfplan")).expect("a plan");
    secrets::none_in(&site.project, &[("the saved plan", &String::from_utf8_lossy(&saved))]);
    let mut running = site.project.start(&["apply", "back.kfplan"]);
    assert!(running.says("what uses etcd on a has stopped"), "{}", running.text());
    running.kill();
    // Whatever had been done by then: it is not given up half-way without a word.
    let again = site.project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(again.contains("moves everything below /registry"), "{again}");
    site.project.apply();
    site.settles();
    assert_eq!(uid(), identity);

    // Killed when the new one counts, the old one is not gone back to as if nothing had been.
    both(&next);
    let mut running = site.project.start(&["apply", "-auto-approve"]);
    assert!(running.says("(the new etcd has everything): passed"), "{}", running.text());
    running.kill();
    both(&main);
    let told = site.project.must(1, &["plan"]);
    assert!(told.contains("An etcd that was left") && told.contains("was moved to another one"), "{told}");
    both(&next);
    site.project.apply();
    site.settles();
    assert_eq!(uid(), identity);

    // One that is away might go on with the old one.
    both(&main);
    lab.act("kill", "b");
    let told = site.project.must(1, &["plan"]);
    assert!(told.contains("A move to another etcd while a host is away") && told.contains("b can't be reached"), "{told}");
    lab.act("start", "b");
    both(&next);
    site.settles();

    // One that begins with a snapshot takes its place, and the old ones go in the same plan: of what was written since nothing is missing.
    site.project.must(0, &["etcd", "snapshot", "etcd_cluster.next", "-out=seed.db"]);
    let manifest = std::fs::read_to_string(site.project.path().join("seed.db.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let restore = format!("  restore {{\n    from   = \"seed.db\"\n    sha256 = {}\n  }}\n", manifest["sha256"]);
    let alone = main.replace(&block_of(&main), "").replace("etcd_cluster.main", "etcd_cluster.last");
    site.project.write("main.kf.hcl", &format!("{alone}{}", etcd("last", 22_379, &restore)));
    site.writes_while("a move to an etcd that was restored, in place of two others", || site.project.apply());
    site.settles();
    assert_eq!(uid(), identity);
    let processes = lab.shell("a", "systemctl list-units --state=running --plain --no-legend 'etcd-*' | cut -d' ' -f1");
    assert_eq!(processes.trim(), "etcd-last.service");
    site.project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
}

/// The block of the first etcd.
fn block_of(main: &str) -> String {
    let start = main.find("resource \"etcd_cluster\" \"main\"").expect("the block");
    let end = main[start..].find("\n}\n").expect("its end") + start + 3;
    main[start..end].to_owned()
}

impl Site<'_> {
    /// Somebody makes objects until the work is done: what was acknowledged is there afterwards.
    #[track_caller]
    fn writes_while<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        let (result, acknowledged, longest) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut last, mut longest, mut acknowledged) = (Instant::now(), Duration::ZERO, Vec::new());
                for i in 0.. {
                    if done.load(Ordering::SeqCst) {
                        break;
                    }
                    let name = format!("written-{i}");
                    if self.answers("a", &["create", "configmap", &name, &format!("--from-literal=n={i}")]) {
                        longest = longest.max(last.elapsed());
                        last = Instant::now();
                        acknowledged.push(name);
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
                (acknowledged, longest)
            });
            let end = Finally(&done);
            let result = work();
            // One write at least comes after it.
            self.answers_within(LONGEST_GAP, "a", &["get", "--raw", "/readyz"]);
            std::thread::sleep(Duration::from_secs(2));
            drop(end);
            let (acknowledged, longest) = writer.join().expect("the writer");
            (result, acknowledged, longest)
        });
        tell(&format!("{what}: {} writes, the longest gap between two was {:.1} s", acknowledged.len(), longest.as_secs_f64()));
        let there = self.ask("a", &["get", "configmaps", "-o=name"]);
        let lost: Vec<&String> = acknowledged.iter().filter(|name| !there.lines().any(|l| l == format!("configmap/{name}"))).collect();
        assert!(lost.is_empty() && acknowledged.len() > 1, "{what}: of {} writes these are lost: {lost:?}", acknowledged.len());
        assert!(longest < LONGEST_GAP, "{what}: nobody could write for {longest:?}");
        result
    }

    /// Until there is nothing to do, and there is not for a while: what misses an API at its start, or lost its lease, starts again and again until it has one.
    #[track_caller]
    fn settles(&self) {
        let (until, mut well) = (Instant::now() + Duration::from_secs(120), 0);
        while well < 3 && Instant::now() < until {
            std::thread::sleep(Duration::from_secs(3));
            well = if self.project.run(&["plan", "-detailed-exitcode"]).code == Some(0) { well + 1 } else { 0 };
        }
        self.project.no_changes();
    }
}
