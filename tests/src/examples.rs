//! Every folder of examples/ loads, is formatted, and gives the plan that stands in its `plan.txt` for its `example.kfvars.hcl`, over hosts
//! in memory. `BLESS=1` rewrites the plans.

use std::fs;
use std::path::Path;

use karmaform_memory::World;

use crate::parts::{command, memory_registry, root};

/// What `data "kubernetes_cluster"` says of the kubeconfigs that the examples use.
const CLUSTER: &str = r#"
data kubernetes_cluster {"kubeconfig_file":"/root/.kube/config"} = {"connection":{"provider":"kubernetes","id":"6a3e","version":"1.36.2"},"version":"1.36.2","nodes":[{"name":"node-1","ready":true,"architecture":"amd64"},{"name":"node-2","ready":true,"architecture":"amd64"},{"name":"node-3","ready":true,"architecture":"amd64"}],"storage_classes":[],"default_storage_class":null}
data kubernetes_cluster {"kubeconfig_file":"/root/.kube/karmada.config"} = {"connection":{"provider":"kubernetes","id":"k-1","version":"1.36.2","server":"https://karmada.example.org:6443"},"reachable":true,"version":"1.36.2"}
data kubernetes_cluster {"kubeconfig_file":"/root/.kube/eu1.config","required":false} = {"connection":{"provider":"kubernetes","id":"c-eu1","version":"1.36.2","server":"https://eu1.example.org:6443"},"reachable":true,"version":"1.36.2"}
data kubernetes_cluster {"kubeconfig_file":"/root/.kube/us1.config","required":false} = {"connection":{"provider":"kubernetes","id":"c-us1","version":"1.36.2","server":"https://us1.example.org:6443"},"reachable":true,"version":"1.36.2"}
"#;

/// What the data sources say of the addresses and the kubeconfig that the examples use.
pub(crate) fn hosts() -> String {
    let hosts: String = (11..16)
        .map(|i| {
            format!(
                "data ssh_host {{\"address\":\"10.0.0.{i}\"}} = {{\"connection\":{{\"provider\":\"ssh\",\"id\":\"10.0.0.{i}:22\"}},\
                 \"hostname\":\"host-{i}\",\"os\":\"debian\",\"os_version\":\"12\",\"architecture\":\"amd64\",\"systemd_version\":252,\"listening_ports\":[22],\"interfaces\":{{\"10.0.0.{i}\":\"eth0\"}},\"clock_offset\":0}}\n"
            )
        })
        .collect();
    hosts + CLUSTER
}

#[test]
fn examples_give_their_plans() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples")).expect("examples").flatten() {
        check(&entry.path(), bless);
        count += 1;
    }
    assert!(count > 1);
}

fn check(example: &Path, bless: bool) {
    let name = example.display();
    let place = tempfile::tempdir().expect("a temporary directory");
    for entry in fs::read_dir(example).expect("an example").flatten() {
        fs::copy(entry.path(), place.path().join(entry.file_name())).expect("copied");
    }
    let world = World::new();
    let registry = memory_registry(&world);
    world.preset(&hosts()).expect("hosts");
    let run = |arguments: &[&str]| command(place.path(), &registry, arguments, "");
    for arguments in [["fmt", "-check"], ["validate", "-no-color"]] {
        let ran = run(&arguments);
        assert_eq!(ran.code, 0, "{name}: {}\n{}{}", arguments.join(" "), ran.stdout, ran.stderr);
    }
    let plan = run(&["plan", "-var-file=example.kfvars.hcl"]);
    assert_eq!(plan.code, 0, "{name}: plan\n{}{}", plan.stdout, plan.stderr);
    let expected = fs::read_to_string(example.join("plan.txt")).unwrap_or_default();
    if bless {
        fs::write(example.join("plan.txt"), &plan.stdout).expect("a writable plan");
    } else {
        assert!(plan.stdout == expected, "{name}/plan.txt\n{}", crate::golden::difference(&expected, &plan.stdout));
    }
    // And that plan can be carried out, and leaves nothing to do.
    let applied = run(&["apply", "-auto-approve", "-var-file=example.kfvars.hcl"]);
    assert_eq!(applied.code, 0, "{name}: apply\n{}{}", applied.stdout, applied.stderr);
    let again = run(&["plan", "-detailed-exitcode", "-var-file=example.kfvars.hcl"]);
    assert_eq!(again.code, 0, "{name}: plan after apply\n{}{}", again.stdout, again.stderr);
}
