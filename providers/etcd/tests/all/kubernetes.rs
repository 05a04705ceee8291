//! Every change of every small cluster on Kubernetes, stopped at every step, in many orders: quorum is never given up, a formed cluster is
//! never formed a second time, and planning again always gets there.

use karmaform_model::{Object, Type, Value};

use crate::pods::World;
use crate::pods_lab::{
    CLASS, Lab, POLICIES, STORAGES, arguments, changed, check, check_subsets, check_with, converge, delete_pod, formed, member, nothing,
    placed, refused, sane, subsets, try_to_converge, with, worlds,
};
use crate::steps::{Policy, State, Stop, with_setting};

#[test]
fn clusters_are_formed() {
    for storage in STORAGES {
        for members in 1..=5 {
            let what = format!("forming {members} on {storage}");
            check_with(&Lab::default(), Some(&arguments(members, storage)), storage != "emptyDir", &what, nothing);
        }
    }
}

#[test]
fn members_that_crash_while_a_cluster_is_formed() {
    for storage in [CLASS, "hostPath"] {
        for members in 1..=4 {
            let wanted = arguments(members, storage);
            let start = Lab::default();
            let plan = start.plan(Some(&wanted)).unwrap();
            for policy in POLICIES {
                start.halts(&plan, policy, |halt| {
                    for crashing in (0..members).map(member) {
                        let what = format!("forming {members} on {storage}, {policy:?}, {crashing} crashed after step {}", halt.at);
                        converge(&mut halt.crashed(&crashing), Some(&wanted), policy, &what);
                    }
                });
            }
        }
    }
}

#[test]
fn a_formation_that_stopped_halfway_goes_on_with_other_settings() {
    for storage in [CLASS, "hostPath"] {
        for members in 1..=4 {
            let wanted = arguments(members, storage);
            let start = Lab::default();
            let plan = start.plan(Some(&wanted)).unwrap();
            for policy in POLICIES {
                start.halts(&plan, policy, |halt| {
                    let what = format!("forming {members} on {storage} stopped after step {}, then a setting", halt.at);
                    for second in [Policy::UnitsFirst, Policy::Shuffled(3)] {
                        converge(&mut halt.killed(), Some(&changed(wanted.clone())), second, &what);
                    }
                });
            }
        }
    }
}

#[test]
fn a_setting_is_changed() {
    for storage in [CLASS, "hostPath"] {
        for members in 1..=5 {
            let what = format!("a setting of {members} on {storage}");
            check(&formed(members, storage), Some(&changed(arguments(members, storage))), &what, nothing);
        }
    }
}

#[test]
fn resources_are_changed() {
    let more = Value::object([("requests", Value::object([("memory", "2Gi".into())]))]);
    for members in [1, 3] {
        let wanted = placed(arguments(members, CLASS), "resources", more.clone());
        check(&formed(members, CLASS), Some(&wanted), &format!("resources of {members}"), nothing);
    }
}

#[test]
fn deleted_pods_come_back() {
    for members in 1..=4 {
        let wanted = arguments(members, CLASS);
        check_subsets(members, delete_pod, &wanted, "pod deleted");
        check_subsets(members, delete_pod, &changed(wanted), "pod deleted, and a setting");
    }
}

#[test]
fn crashed_pods_come_back() {
    let crash = |w: &mut World, m: &str| {
        w.soft_crash = true;
        w.crash(m);
    };
    for members in 1..=3 {
        let wanted = arguments(members, "hostPath");
        check_subsets(members, crash, &changed(wanted), "crashed, and a setting");
    }
}

fn delete_secret(world: &mut World, member: &str) {
    world.remove("Secret", &format!("{member}-tls"));
}

#[test]
fn deleted_secrets_are_put_back() {
    for members in 1..=3 {
        let wanted = arguments(members, CLASS);
        check_subsets(members, delete_secret, &wanted, "Secret deleted");
        check_subsets(members, delete_secret, &changed(wanted), "Secret deleted, and a setting");
    }
}

#[test]
fn pods_without_secrets_that_crash_are_repaired() {
    let both = |w: &mut World, m: &str| {
        delete_secret(w, m);
        delete_pod(w, m);
    };
    for members in 1..=3 {
        let wanted = arguments(members, CLASS);
        check_subsets(members, both, &wanted, "Secret and pod deleted");
        check_subsets(members, both, &changed(wanted), "Secret and pod deleted, and a setting");
    }
}

#[test]
fn objects_of_the_whole_cluster_are_put_back() {
    for members in [1, 3] {
        for (kind, name) in [
            ("ConfigMap", "etcd-main-formed"),
            ("ConfigMap", "etcd-main-members"),
            ("Service", "etcd-main"),
            ("Service", "etcd-main-client"),
            ("StatefulSet", "etcd-main"),
            ("PodDisruptionBudget", "etcd-main"),
        ] {
            if members == 1 && kind == "PodDisruptionBudget" {
                continue;
            }
            for with_pods in [false, true] {
                let mut lab = formed(members, CLASS);
                lab.world.remove(kind, name);
                if with_pods {
                    lab.world.pods.clear();
                }
                let what = format!("{kind} {name} of {members} deleted{}", if with_pods { " with all pods" } else { "" });
                check(&lab, Some(&arguments(members, CLASS)), &what, nothing);
                check(&lab, Some(&changed(arguments(members, CLASS))), &format!("{what}, and a setting"), nothing);
            }
        }
    }
}

#[test]
fn a_stateful_set_that_was_scaled_by_hand_is_put_back() {
    for replicas in [0i64, 1, 2] {
        let mut lab = formed(3, CLASS);
        lab.world.edit("StatefulSet", "etcd-main", &["spec", "replicas"], replicas.into());
        lab.world.settle();
        check(&lab, Some(&arguments(3, CLASS)), &format!("scaled to {replicas}"), nothing);
        check(&lab, Some(&changed(arguments(3, CLASS))), &format!("scaled to {replicas}, and a setting"), nothing);
    }
}

/// While the note is away and volumes are lost with it, nothing may be started before the note is back.
#[test]
fn a_lost_note_does_not_let_members_form_another_cluster() {
    for members in 1..=4 {
        for lost in subsets(members) {
            let mut lab = formed(members, CLASS);
            lab.world.remove("ConfigMap", "etcd-main-formed");
            lab.world.remove("StatefulSet", "etcd-main");
            lab.world.pods.clear();
            lost.iter().for_each(|m| lab.world.wipe(m));
            for mut lab in worlds(&lab) {
                for policy in POLICIES {
                    let what = format!("note, StatefulSet and the data of {lost:?} of {members} lost");
                    if 2 * lost.len() < members {
                        converge(&mut lab, Some(&arguments(members, CLASS)), policy, &what);
                        continue;
                    }
                    if let Ok(plan) = lab.plan(Some(&arguments(members, CLASS))) {
                        lab.run(&plan, policy, &Stop::Never);
                    }
                    lab.world.settle();
                    lab.world.settle();
                    sane(&lab, &what);
                }
            }
        }
    }
}

/// A template that etcd does not start with stops a rolling change at the first member; pods that are made anew meanwhile get it too.
#[test]
fn a_setting_that_etcd_does_not_take_is_taken_back() {
    for members in 1..=4 {
        let good = arguments(members, CLASS);
        let broken = with_setting(good.clone(), "max-snapshots", "broken");
        for evicted in std::iter::once(Vec::new()).chain(subsets(members)) {
            let mut lab = formed(members, CLASS);
            let plan = lab.plan(Some(&broken)).unwrap();
            lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
            evicted.iter().for_each(|m| delete_pod(&mut lab.world, m));
            lab.world.settle();
            let what = format!("a bad setting of {members}, {evicted:?} evicted");
            check_with(&lab, Some(&good), false, &format!("{what}, taken back"), nothing);
            check_with(&lab, Some(&changed(good.clone())), false, &format!("{what}, then a good one"), nothing);
        }
    }
}

/// Nothing is touched while a member is not well: not even the template, which pods would get that are made anew.
#[test]
fn the_template_waits_until_all_are_well() {
    let mut lab = formed(3, CLASS);
    let plan = lab.plan(Some(&changed(arguments(3, CLASS)))).unwrap();
    let before = lab.world.stateful_set().cloned();
    delete_secret(&mut lab.world, &member(1));
    for policy in POLICIES {
        let mut lab = lab.clone();
        let (_, failures) = lab.run(&plan, policy, &Stop::Never);
        assert!(!failures.is_empty());
        assert_eq!(lab.world.stateful_set(), before.as_ref());
    }
}

#[test]
fn certificates_are_renewed_without_a_restart() {
    for members in 1..=4 {
        let wanted = with(arguments(members, CLASS), "certificate_validity_hours", 9000i64);
        let mut lab = formed(members, CLASS);
        let plan = lab.plan(Some(&wanted)).unwrap();
        let uids = |lab: &Lab| lab.world.pods.values().map(|p| p.uid.clone()).collect::<Vec<_>>();
        let before = uids(&lab);
        assert!(plan.choreography.impact.iter().any(|l| l.starts_with("no restart")), "{:?}", plan.choreography.impact);
        lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
        assert_eq!(uids(&lab), before);
        check(&formed(members, CLASS), Some(&wanted), &format!("renewal of {members}"), nothing);
    }
}

#[test]
fn certificates_and_a_setting_change_together() {
    for members in [1, 3] {
        let wanted = with(changed(arguments(members, CLASS)), "certificate_validity_hours", 9000i64);
        check(&formed(members, CLASS), Some(&wanted), "certificates and a setting", nothing);
    }
}

#[test]
fn other_cas_take_the_place_of_the_first() {
    for members in 1..=3 {
        let mut lab = formed(members, CLASS);
        let of = |trusted: &[i64], signs_with: i64| {
            let trusted = Value::list(Type::Number, trusted.iter().map(|n| (*n).into()).collect());
            with(arguments(members, CLASS), "authorities", Value::object([("trusted", trusted), ("signs_with", signs_with.into())]))
        };
        refused(&lab, &of(&[1, 2], 2), "Nobody trusts that CA yet");
        for (trusted, signs_with) in [(&[1, 2][..], 1), (&[1, 2], 2), (&[2], 2)] {
            let (wanted, what) = (of(trusted, signs_with), format!("{members} members, {trusted:?} signing with {signs_with}"));
            check(&lab, Some(&wanted), &what, nothing);
            converge(&mut lab, Some(&wanted), Policy::Shuffled(3), &what);
        }
        assert!(lab.state.children.keys().all(|path| path[0].to_string() != "client_ca"), "the first is still there");
    }
}

/// What a destroyed cluster leaves, without numbers.
fn leftovers(lab: &Lab) -> Vec<String> {
    let plain = |line: String| line.split("-terraform_data").next().unwrap_or_default().to_owned();
    lab.world.leftovers().into_iter().map(plain).collect()
}

#[test]
fn clusters_are_destroyed_and_nothing_is_left() {
    for storage in STORAGES {
        for members in 1..=3 {
            let disks = |i: usize| format!("data on node /var/lib/karmaform/etcd/karmada/{}", member(i));
            let expected: Vec<_> = if storage == "hostPath" { (0..members).map(disks).collect() } else { Vec::new() };
            let gone = |lab: &Lab, what: &str| assert_eq!(leftovers(lab), expected, "{what}");
            check(&formed(members, storage), None, &format!("destroying {members} on {storage}"), gone);
            let mut lab = formed(members, storage);
            delete_pod(&mut lab.world, &member(0));
            check(&lab, None, &format!("destroying {members} on {storage} with one down"), gone);
        }
    }
}

#[test]
fn destroying_can_keep_the_data() {
    for storage in [CLASS, "hostPath"] {
        let mut lab = formed(2, storage);
        let wanted = with(arguments(2, storage), "on_destroy", "keep");
        converge(&mut lab, Some(&wanted), Policy::UnitsFirst, "keeping");
        let line = if storage == CLASS {
            "data of the cluster is kept in its volumes"
        } else {
            "data of the cluster stays on the disks of its nodes"
        };
        let plan = lab.plan(None).unwrap();
        assert_eq!(plan.choreography.impact, ["stops the whole cluster: etcd-main-0, etcd-main-1", line]);
        check(&lab, None, &format!("keeping the data on {storage}"), |lab, what| {
            let left: Vec<_> = leftovers(lab).iter().map(|l| l.split(' ').next().unwrap_or_default().to_owned()).collect();
            let volumes: &[&str] = if storage == CLASS { &[] } else { &["PersistentVolume"; 2] };
            assert_eq!(left, [volumes, &["PersistentVolumeClaim"; 2], &["data"; 2]].concat(), "{what}");
        });
        converge(&mut lab, None, Policy::UnitsFirst, "destroying");
        refused(&lab, &arguments(2, storage), "There is data of another cluster already");
    }
}

/// Who changes their mind in the middle of a destruction gets the cluster back, or is told that data is gone.
#[test]
fn a_destruction_that_stopped_halfway() {
    for storage in STORAGES {
        let start = formed(3, storage);
        let plan = start.plan(None).unwrap();
        for policy in POLICIES {
            let steps = start.clone().run(&plan, policy, &Stop::Never).0;
            for at in 0..steps {
                let what = format!("destroying on {storage}, {policy:?}, stopped after step {at}, then wanted again");
                let mut lab = start.clone();
                lab.run(&plan, policy, &Stop::After(at));
                let result = try_to_converge(&mut lab.clone(), Some(&arguments(3, storage)), policy, &what);
                if let Err(refused) = result {
                    let known = [
                        "The token of a formed cluster can't change",
                        "The cluster has lost its majority",
                        "Members come and go only together with the cluster",
                        "A CA of a formed cluster can't be replaced in place",
                        "A member's volume can't be replaced",
                    ];
                    assert!(refused.iter().any(|d| known.contains(&d.summary.as_str())), "{what}: {refused:#?}");
                }
                converge(&mut lab, None, policy, &what);
            }
        }
    }
}

/// Nobody is restarted, whatever happens on the way.
#[test]
fn volumes_grow() {
    for members in [1, 3] {
        let start = formed(members, CLASS);
        let uids = |lab: &Lab| lab.world.pods.values().map(|p| p.uid.clone()).collect::<Vec<_>>();
        let wanted = placed(arguments(members, CLASS), "storage_size", "20Gi");
        let plan = start.plan(Some(&wanted)).unwrap();
        let told = "volumes grow from 10Gi to 20Gi; nobody is restarted for it, and the StatefulSet is made anew around its pods";
        assert_eq!(plan.choreography.impact, [told]);
        assert!(plan.choreography.gates.iter().any(|g| g.gate == "kubernetes_grown"));
        let mut lab = start.clone();
        converge(&mut lab, Some(&wanted), Policy::Shuffled(2), "larger");
        assert_eq!(uids(&lab), uids(&start));
        let claim = |lab: &Lab| lab.world.manifest("PersistentVolumeClaim", "data-etcd-main-0").cloned().unwrap();
        assert_eq!(claim(&lab)["spec"]["resources"]["requests"]["storage"], "20Gi");
        check(&start, Some(&wanted), &format!("volumes of {members} grow"), nothing);
        check(&start, Some(&changed(wanted)), &format!("volumes of {members} grow, and a setting"), nothing);
    }
    let lab = formed(3, CLASS);
    let larger = |members: usize| placed(arguments(members, CLASS), "storage_size", "20Gi");
    refused(&lab, &larger(5), "Volumes grow in a plan of their own");
    refused(&lab, &placed(arguments(3, CLASS), "storage_size", "5Gi"), "A volume can't be made smaller");
    refused(&lab, &placed(arguments(3, CLASS), "storage_size", "much"), "Not a size");
    let on_nodes = placed(arguments(3, "hostPath"), "storage_size", "20Gi");
    refused(&formed(3, "hostPath"), &on_nodes, "The size of a folder on a node can't be changed");
}

#[test]
fn what_needs_more_care_is_refused() {
    let lab = formed(3, CLASS);
    let plain = arguments(3, CLASS);
    refused(&lab, &with(plain.clone(), "ca_validity_hours", 80_000i64), "A CA of a formed cluster can't be replaced in place");
    for (name, value) in [("name", "other"), ("namespace", "other")] {
        refused(&lab, &placed(plain.clone(), name, value), &format!("`{name}` of a formed cluster can't be changed yet"));
    }
    let on_nodes = formed(3, "hostPath");
    for (name, value) in [("nodes", Value::strings(["node1", "node2", "node4"])), ("host_path", "/data".into())] {
        refused(&on_nodes, &placed(arguments(3, "hostPath"), name, value), &format!("`{name}` of a formed cluster can't be changed yet"));
    }
    refused(&lab, &placed(plain.clone(), "image", "registry.k8s.io/etcd:3.6.9-0"), "The image is of another version");
    refused(&lab, &placed(plain.clone(), "image", "registry.k8s.io/etcd:newest"), "An image of an unknown version");
    check(&lab, Some(&placed(plain.clone(), "image", "registry.k8s.io/etcd:3.6.8-1")), "built anew", nothing);
    check(&lab, Some(&placed(plain.clone(), "registry", "mirror.example/k8s")), "another registry", nothing);
    check(&lab, Some(&placed(plain.clone(), "image", "mirror.example:5000/x/etcd:3.6.8-0")), "another place for the image", nothing);

    let mut other = lab.clone();
    other.world.edit("StatefulSet", "etcd-main", &["spec", "serviceName"], "other".into());
    refused(&other, &plain, "The StatefulSet of a formed cluster can't be replaced");

    let mut lost = lab.clone();
    lost.state = State::default();
    refused(&lost, &plain, "This cluster exists, but the state does not know it");
}

/// Their pods' data goes with the pods, so no plan may delete a pod of them.
#[test]
fn members_without_lasting_data_are_not_restarted() {
    for members in [1, 3] {
        let lab = formed(members, "emptyDir");
        let plain = arguments(members, "emptyDir");
        refused(&lab, &changed(plain.clone()), "Members in emptyDir volumes can't be restarted");
        check_with(&lab, Some(&with(plain.clone(), "certificate_validity_hours", 9000i64)), false, "renewal", nothing);
        let mut gone = lab.clone();
        delete_pod(&mut gone.world, &member(0));
        if members == 1 {
            refused(&gone, &plain, "The cluster has lost its majority");
        }
        gone.world.settle();
        gone.world.settle();
        sane(&gone, "a pod is gone");
        converge(&mut gone, None, Policy::UnitsFirst, "destroying what lost data");
    }
}

#[test]
fn a_cluster_that_was_partly_formed_keeps_its_members() {
    for storage in STORAGES {
        let plan = Lab::default().plan(Some(&arguments(3, storage))).unwrap();
        let steps = Lab::default().run(&plan, Policy::UnitsFirst, &Stop::Never).0;
        let (mut changed, mut kept) = (0, 0);
        for at in 0..steps {
            let mut lab = Lab::default();
            lab.run(&plan, Policy::UnitsFirst, &Stop::After(at));
            let what = format!("on {storage} stopped after step {at}");
            if lab.world.stateful_set().is_none() {
                converge(&mut lab, Some(&arguments(2, storage)), Policy::UnitsFirst, &format!("{what}, fewer members"));
                changed += 1;
            } else if lab.state.children.values().all(|(t, _)| t != "etcd_member")
                && lab.world.manifest("ConfigMap", "etcd-main-formed").is_none()
            {
                let partly = "A cluster that was partly formed can't be changed like this";
                refused(&lab, &arguments(2, storage), partly);
                refused(&lab, &placed(arguments(3, storage), "name", "other"), partly);
                refused(&lab, &placed(arguments(3, storage), "namespace", "other"), partly);
                if storage != "emptyDir" {
                    refused(&lab, &arguments(3, "emptyDir"), partly);
                }
                kept += 1;
            }
        }
        assert!(changed > 3 && kept > 1, "{storage}: {changed} {kept}");
    }
}

#[test]
fn the_impact_is_told_in_plain_words() {
    let told = |lab: &Lab, wanted: Option<&Object>| lab.plan(wanted).unwrap().choreography.impact;
    let forms = "forms a cluster of 3 members: etcd-main-0, etcd-main-1, etcd-main-2";
    assert_eq!(told(&Lab::default(), Some(&arguments(3, CLASS))), [forms]);
    assert_eq!(told(&Lab::default(), Some(&arguments(3, "emptyDir"))).len(), 2);
    let rolling = "rolling restart, one member at a time: etcd-main-1, etcd-main-2, then the leader etcd-main-0; quorum kept 2 of 3";
    assert_eq!(told(&formed(3, CLASS), Some(&changed(arguments(3, CLASS)))), [rolling]);
    let mut down = formed(3, CLASS);
    delete_pod(&mut down.world, &member(2));
    assert_eq!(told(&down, Some(&arguments(3, CLASS))), ["starts member etcd-main-2"]);
    let stops = "stops the whole cluster: etcd-main-0, etcd-main-1, etcd-main-2";
    assert_eq!(told(&formed(3, CLASS), None), [stops, "data of the cluster will be deleted with its volumes"]);
    assert_eq!(told(&formed(3, "emptyDir"), None), [stops, "data of the cluster will be deleted with its pods"]);
}

#[test]
fn no_secret_is_in_the_pods() {
    let lab = formed(3, CLASS);
    for (kind, name) in lab.world.objects.keys().filter(|(kind, _)| kind != "Secret") {
        let text = lab.world.objects[&(kind.clone(), name.clone())].manifest().to_string();
        assert!(!text.contains("private_key"), "{kind} {name}");
    }
    assert!(lab.world.objects.values().all(|o| !o.manifest().is_null()));
}
