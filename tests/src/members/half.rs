//! A join that ends after any of its writes, refused or killed: the next one goes on from there, and leaving leaves nothing.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::fleet::Fleet;
use super::life::rights;
use super::planes::{Cluster, Planes};
use crate::kubernetes_proxy::Proxy;
use crate::parts::{kills, tell};
use crate::proxy::{Asked, Fault};

/// Joining writes at least so often: a role, two accounts with rights and tokens, two Secrets with owners, a Cluster. The namespaces are there.
const FEWEST: usize = 12;

/// And leaving takes all of that away but the two Secrets and their owners, which go with the Cluster.
const FEWEST_OF_LEAVING: usize = 8;

/// Runs that end somewhere and are followed by one that does not; `KARMAFORM_KILLS` says how many, up to one for each write.
const ROUNDS: usize = 2;

/// True for a request that is to change something.
fn writes(asked: &Asked) -> bool {
    let only_asks = asked.path.contains("dryRun=All") || asked.path.contains("/authorization.k8s.io/");
    asked.method != "GET" && !only_asks
}

/// How a join ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The server refuses the write, and all that follow.
    Refused,
    /// The write is done, and whoever asked for it is killed before it hears of that.
    Killed,
}

/// Ways to plane and member on which so many writes get through.
struct Ways {
    ways: [Proxy; 2],
    written: Arc<AtomicUsize>,
}

impl Ways {
    fn new(clusters: [&Cluster; 2]) -> Self {
        Self { ways: clusters.map(|c| Proxy::new(&c.kubeconfig)), written: Arc::default() }
    }

    /// From now on this write, counted over both ways from 0 on, is the last. `None`: all get through.
    fn end_at(&self, last: Option<(usize, End)>) {
        self.written.store(0, Ordering::SeqCst);
        for way in &self.ways {
            let written = Arc::clone(&self.written);
            way.rule(move |asked| {
                let (last, end) = last.filter(|_| writes(asked))?;
                match (written.fetch_add(1, Ordering::SeqCst).cmp(&last), end) {
                    (Less, _) => None,
                    (_, End::Refused) => Some(Fault::Answer(403)),
                    (Equal, End::Killed) => Some(Fault::CutAfter),
                    (Greater, End::Killed) => Some(Fault::CutBefore),
                }
            });
        }
    }
}

/// A member on ways on which it ends.
struct Half<'a> {
    planes: &'a Planes,
    ways: Ways,
    fleet: Fleet,
}

/// Runs it all.
pub(super) fn a_join_goes_on_after_every_step(planes: &Planes) {
    let Planes { p1, m1, .. } = planes;
    // Somebody else's: a namespace takes its server five seconds to take away, each time.
    let whole = m1.inventory();
    for cluster in [p1, m1] {
        cluster.has_namespace();
    }
    let before = [p1, m1].map(|c| c.inventory());
    let ways = Ways::new([p1, m1]);
    let fleet = Fleet::new(p1);
    fleet.plane(&ways.ways[0].kubeconfig());
    let half = Half { planes, ways, fleet };
    let as_before = || {
        p1.is_as_before(&before[0]);
        m1.is_as_before(&before[1]);
    };

    // Each run gets one write further than the one before it; and so it leaves.
    let joining = half.step_by_step(true);
    assert!(joining >= FEWEST - 1, "joined in {joining} runs of one write each");
    half.is_member();
    let leaving = half.step_by_step(false);
    assert!(leaving >= FEWEST_OF_LEAVING - 1, "left in {leaving} runs of one write each");
    half.leaves();
    as_before();
    tell(&format!("members, half: joined in {joining} runs, left in {leaving}"));

    // And the one after a run that ended goes all the way.
    let (rounds, _) = kills(ROUNDS);
    for round in 0..rounds.min(FEWEST) {
        let started = Instant::now();
        let last = round * FEWEST / rounds.min(FEWEST);
        let end = if round % 2 == 0 { End::Killed } else { End::Refused };
        assert!(!half.runs(true, (last, end)), "not ended at write {last}, {end:?}");
        half.ways.end_at(None);
        half.fleet.project.apply();
        half.is_member();
        half.leaves();
        as_before();
        tell(&format!("members, half: {end:?} at write {last}: {:.1?}", started.elapsed()));
    }
    m1.run(&["delete", "namespace", "karmada-cluster"]);
    m1.is_as_before(&whole);
}

impl Half<'_> {
    /// Runs of which each gets one write through, by turns refused and killed, until one comes to its own end: how many did not.
    #[track_caller]
    fn step_by_step(&self, is_wanted: bool) -> usize {
        let mut runs = 0;
        while !self.runs(is_wanted, if runs % 2 == 0 { (1, End::Refused) } else { (0, End::Killed) }) {
            runs += 1;
            assert!(runs < 4 * FEWEST, "no run gets any further");
        }
        runs
    }

    /// A run that may end like this; true if it came to its own end.
    #[track_caller]
    fn runs(&self, is_wanted: bool, last: (usize, End)) -> bool {
        let way = self.ways.ways[1].kubeconfig();
        let member = ("m1", way.as_str(), json!({ "api_endpoint": self.planes.m1.server() }));
        self.fleet.members(if is_wanted { std::slice::from_ref(&member) } else { &[] });
        self.ways.end_at(Some(last));
        let mut running = self.fleet.project.start(&["apply", "-auto-approve"]);
        if last.1 == End::Killed {
            while running.child.try_wait().expect("a process").is_none() {
                if self.ways.written.load(Ordering::SeqCst) > last.0 {
                    running.kill();
                    return false;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        let ended = running.end();
        let is_done = ended.code == Some(0);
        let is_refused = ended.code == Some(1) && last.1 == End::Refused && ended.text.contains("Error: ");
        assert!(is_done || is_refused, "{last:?}: {:?}\n{}", ended.code, ended.text);
        is_done
    }

    /// It is one, and there is nothing to do.
    #[track_caller]
    fn is_member(&self) {
        self.ways.end_at(None);
        self.fleet.project.no_changes();
        assert_eq!(rights(&self.planes.p1, "m1", "m1"), Some(true));
    }

    #[track_caller]
    fn leaves(&self) {
        self.ways.end_at(None);
        self.fleet.members(&[]);
        self.fleet.project.apply();
        self.fleet.project.no_changes();
    }
}
