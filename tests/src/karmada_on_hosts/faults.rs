//! A host dies: what the others do meanwhile.

use std::time::Duration;

use super::site::Site;
use crate::parts::tell;

/// How long the API may be away for those who reach another host.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a host that comes back may take to have everything up.
const BACK: Duration = Duration::from_secs(60);

/// The first host, which karmaform itself goes through.
pub(super) fn a_host_dies(site: &Site<'_>) {
    site.lab.act("kill", "a");
    for host in ["b", "c"] {
        let took = site.answers_within(AGAIN, host, &["get", "--raw", "/readyz"]);
        tell(&format!("without a, {host} answered after {:.1} s", took.as_secs_f64()));
        site.answers_within(AGAIN, host, &["get", "clusters.cluster.karmada.io"]);
        site.admits(host);
    }
    // Nothing is done by halves: the plan says what is wrong, and nobody takes the host for one that is to be made anew.
    let refused = site.project.must(1, &["plan"]);
    assert!(refused.contains("10.") && refused.contains("data.ssh_host.cp[\"a\"]"), "{refused}");
    site.lab.act("start", "a");
    site.answers_within(BACK, "a", &["get", "clusters.cluster.karmada.io"]);
    site.admits("a");
    site.project.no_changes();
}
