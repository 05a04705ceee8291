//! Plans of changes to a control plane on hosts that come together, over hosts in memory: each has an order, can be carried out, and leaves
//! nothing to do.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use karmaform_memory::World;

use crate::parts::{command, memory_registry, root};

/// What a control plane is given: its hosts by name with the last part of their addresses, its version, and more of its block.
struct Given {
    hosts: &'static [(&'static str, u8)],
    version: &'static str,
    more: &'static str,
}

const THREE: &[(&str, u8)] = &[("a", 11), ("b", 12), ("c", 13)];
const FIRST: Given = Given { hosts: THREE, version: "1.18.0", more: "" };

fn configuration(given: &Given) -> String {
    let example = std::fs::read_to_string(root().join("examples/karmada-on-hosts/main.kf.hcl")).expect("the example");
    let block = example.find("resource \"karmada_control_plane\"").expect("the control plane");
    let etcd = example.find("resource \"etcd_cluster\"").expect("etcd");
    // etcd stays where it is: how its members change is not the question here.
    let mut text = example[..etcd].replace("\"ssh_host\" \"cp\"", "\"ssh_host\" \"etcd\"").replace("var.hosts", "{ e = \"10.0.0.15\" }");
    text.push_str(&example[..etcd]);
    text.push_str(&example[etcd..block].replace("data.ssh_host.cp", "data.ssh_host.etcd"));
    let _ = writeln!(text, "{}", example[block..].replacen("{\n", &format!("{{\n  {}\n", given.more), 1));
    text
}

fn values(given: &Given) -> String {
    let hosts: String = given.hosts.iter().map(|(n, i)| format!("  {n} = \"10.0.0.{i}\"\n")).collect();
    format!(
        "hosts = {{\n{hosts}}}\netcd_version = \"3.6.8\"\netcd_source = \"e.tar.gz\"\nkarmada_version = \"{}\"\nkube_version = \"1.35.2\"\n\
         crds = \"https://crds.example/crds.tar.gz\"\nkarmada_source = \"https://x.example/{{program}}\"\nkube_source = \"https://x.example/{{program}}\"\n\
         private_key_file = \"/root/.ssh/id_ed25519\"\nknown_hosts_file = \"/root/.ssh/known_hosts\"\n",
        given.version
    )
}

/// The command over hosts in memory, with a state in this place.
fn run(place: &Path, world: &Arc<World>, given: &Given, arguments: &[&str]) -> (i32, String) {
    let variables = root().join("examples/karmada-on-hosts/variables.kf.hcl");
    std::fs::copy(variables, place.join("variables.kf.hcl")).expect("copied");
    std::fs::write(place.join("main.kf.hcl"), configuration(given)).expect("written");
    std::fs::write(place.join("karmaform.kfvars.hcl"), values(given)).expect("written");
    let ran = command(place, &memory_registry(world), arguments, "");
    (ran.code, format!("{}{}", ran.stdout, ran.stderr))
}

fn hosts() -> Arc<World> {
    let world = World::new();
    world.preset(&crate::examples::hosts()).expect("hosts");
    world
}

/// Two configurations with one name, or a state that was lost.
#[test]
fn a_control_plane_that_the_state_does_not_know_is_not_taken_over() {
    let world = hosts();
    let [first, second] = [(), ()].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let (code, text) = run(first.path(), &world, &FIRST, &["apply", "-auto-approve"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(second.path(), &world, &FIRST, &["plan"]);
    assert!(code == 1 && text.contains("The API server of a control plane \"karmada\" is on a, b, c"), "{text}");
    let adopting = Given { more: "adopt_etcd_data = true", ..FIRST };
    for (given, arguments) in [(&FIRST, &["plan", "-var", "name=other"][..]), (&adopting, &["plan"])] {
        let (_, text) = run(second.path(), &world, given, arguments);
        assert!(!text.contains("This control plane exists"), "{arguments:?}: {text}");
    }
}

#[test]
fn changes_that_come_together_have_an_order() {
    for (what, next) in [
        ("nothing", Given { hosts: THREE, version: "1.18.0", more: "" }),
        ("a new version", Given { hosts: THREE, version: "1.19.0", more: "" }),
        ("a host more", Given { hosts: &[("a", 11), ("b", 12), ("c", 13), ("d", 14)], version: "1.18.0", more: "" }),
        ("a host less", Given { hosts: &[("a", 11), ("b", 12)], version: "1.18.0", more: "" }),
        ("a host less and a new version", Given { hosts: &[("b", 12), ("c", 13)], version: "1.19.0", more: "" }),
        ("another machine in a host's place", Given { hosts: &[("a", 14), ("b", 12), ("c", 13)], version: "1.18.0", more: "" }),
        ("two other machines and a new version", Given { hosts: &[("a", 14), ("b", 15), ("c", 13)], version: "1.19.0", more: "" }),
        ("another port", Given { hosts: THREE, version: "1.18.0", more: "ports = { apiserver = 6443, webhook = 8444 }" }),
        ("a name of one's own", Given { hosts: THREE, version: "1.19.0", more: "dns_name = \"karmada.internal\"" }),
        ("a component elsewhere", Given { hosts: THREE, version: "1.18.0", more: "component \"apiserver\" {\n hosts = [\"b\"]\n}" }),
        (
            "an addon and a host more",
            Given { hosts: &[("a", 11), ("b", 12), ("c", 13), ("d", 14)], version: "1.19.0", more: "addon \"search\" {}" },
        ),
    ] {
        let (place, world) = (tempfile::tempdir().expect("a temporary directory"), hosts());
        let run = |given: &Given, arguments: &[&str]| run(place.path(), &world, given, arguments);
        let done = |(code, text): (i32, String), words: &str| assert_eq!(code, 0, "{what}: {words}\n{text}");
        done(run(&FIRST, &["apply", "-auto-approve"]), "the first apply");
        done(run(&next, &["apply", "-auto-approve"]), "the change");
        done(run(&next, &["plan", "-detailed-exitcode"]), "the plan after it");
        done(run(&FIRST, &["plan", "-destroy"]), "a plan that destroys it");
        done(run(&next, &["destroy", "-auto-approve"]), "destroying it");
    }
}

#[test]
fn a_load_balancer_gets_other_programs_and_those_of_packages_again() {
    const PACKAGED: Given = Given { more: "load_balancer {\n vip = \"10.0.0.90\"\n}", ..FIRST };
    const OWN: Given = Given {
        more: "load_balancer {\n vip = \"10.0.0.90\"\n haproxy_source = \"https://x.example/{program}\"\n keepalived_source = \"https://x.example/{program}\"\n}",
        ..FIRST
    };
    let (place, world) = (tempfile::tempdir().expect("a temporary directory"), hosts());
    for given in [&PACKAGED, &OWN, &PACKAGED] {
        for arguments in [&["apply", "-auto-approve"][..], &["plan", "-detailed-exitcode"]] {
            let (code, text) = run(place.path(), &world, given, arguments);
            assert_eq!(code, 0, "{}: {arguments:?}\n{text}", given.more);
        }
    }
    let (code, text) = run(place.path(), &world, &PACKAGED, &["destroy", "-auto-approve"]);
    assert_eq!(code, 0, "{text}");
}
