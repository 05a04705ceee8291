//! Two planes have the same member under the same name, and neither takes anything from the other. In one of them a Secret with a dead token
//! is left of an earlier try.

use serde_json::json;

use super::fleet::Fleet;
use super::life::rights;
use super::planes::{Cluster, Planes};

const NAMESPACE: &str = "/api/v1/namespaces/karmada-cluster";

/// Runs it all.
pub(super) fn two_planes_share_a_member(planes: &Planes) {
    let Planes { p1, p2, m1, .. } = planes;
    let before = m1.inventory();
    p1.has_namespace();
    let before_p1 = p1.inventory();
    let stale = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "m1", "namespace": "karmada-cluster" },
        "stringData": { "token": "dead", "caBundle": "none" } });
    p1.create(&stale);
    let fleets = [p1, p2].map(|plane| {
        let fleet = Fleet::new(plane);
        fleet.members(&[("m1", &m1.kubeconfig, json!({}))]);
        fleet
    });
    // At the same time: what is shared is made by whoever comes first.
    let joining = fleets.each_ref().map(|fleet| fleet.project.start(&["apply", "-auto-approve"]));
    for ended in joining.map(crate::project::Running::end) {
        assert_eq!(ended.code, Some(0), "{}", ended.text);
    }
    for fleet in &fleets {
        fleet.project.no_changes();
        // What the other has in the same member, and Karmada's namespace has of it, is not left behind by anybody.
        fleet.drifts(&[]);
    }
    for plane in [p1, p2] {
        assert_eq!(rights(plane, "m1", "m1"), Some(true), "{}", plane.name);
    }
    let [first, second] = &fleets;
    let (namespace, accounts) = (m1.object(NAMESPACE)["metadata"]["uid"].clone(), ours(m1));
    assert_eq!(accounts.len(), 2 * 7, "{accounts:#?}");

    first.members(&[]);
    first.project.apply();
    first.project.no_changes();
    assert_eq!(rights(p2, "m1", "m1"), Some(true));
    assert_eq!(m1.object(NAMESPACE)["metadata"]["uid"], namespace);
    let left = ours(m1);
    assert!(left.len() == 7 && left.iter().all(|path| accounts.contains(path)), "{left:#?}");
    second.project.no_changes();
    p1.is_as_before(&before_p1);

    second.members(&[]);
    second.project.apply();
    second.project.no_changes();
    m1.is_as_before(&before);
}

/// Another control plane is a move: the member leaves the one and joins the other, with other accounts. And another word is another token.
pub(super) fn a_member_moves_and_gets_new_tokens(planes: &Planes) {
    let Planes { p1, p2, m1, .. } = planes;
    p1.has_namespace();
    p2.has_namespace();
    let before = [p1, p2, m1].map(|cluster| cluster.inventory());
    let fleet = Fleet::new(p1);
    fleet.members(&[("m1", &m1.kubeconfig, json!({}))]);
    fleet.converge();
    let accounts = ours(m1);

    fleet.plane(&p2.kubeconfig);
    let planned = fleet.plan(&[]);
    let impact = planned.impact("m1");
    assert!(impact.first().is_some_and(|line| line.starts_with("moves: it leaves the control plane it is in")), "{impact:?}");
    fleet.converge();
    assert_eq!(rights(p2, "m1", "m1"), Some(true));
    p1.is_as_before(&before[0]);
    let moved = ours(m1);
    assert!(moved.len() == accounts.len() && !moved.iter().any(|path| accounts.contains(path)), "{moved:#?}");

    let token = || p2.object("/api/v1/namespaces/karmada-cluster/secrets/m1")["data"]["token"].clone();
    let old = token();
    fleet.members(&[("m1", &m1.kubeconfig, json!({ "rotation": "2" }))]);
    fleet.converge();
    assert_ne!(token(), old);
    assert_eq!(rights(p2, "m1", "m1"), Some(true));

    fleet.members(&[]);
    fleet.converge();
    p2.is_as_before(&before[1]);
    m1.is_as_before(&before[2]);
}

/// What is called after a plane in a member. What old servers make for each account by themselves does not count.
fn ours(member: &Cluster) -> Vec<String> {
    let is_ours = |path: &String| path.contains("/karmada-m1-") && !path.contains("-token-");
    member.inventory().into_keys().filter(is_ours).collect()
}
