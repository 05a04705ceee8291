//! What a load balancer of ours is on a host: two programs, each with its configuration and its unit, and who runs haproxy.

use std::collections::BTreeMap;

use karmaform_model::{Arg, ChildStep};

use super::super::children::{At, Run};
use super::super::{Hosts, on_of, programs};
use super::{Balancer, Ours, Program, on, texts};
use crate::plane::arguments::Arguments;
use crate::plane::children::child;

/// How long starting or stopping may take, in seconds.
const START_TIMEOUT: i64 = 60;

/// All of it on one host, behind the folder of its control plane.
pub(in super::super) fn expand(plane: &Arguments, hosts: &Hosts, at: &mut At<'_>, config: &[ChildStep]) {
    let Some(balancer @ Balancer { ours: Some(ours), .. }) = &hosts.balancer else { return };
    if !on(plane, hosts).iter().any(|(name, _)| *name == at.name) {
        return;
    }
    let host = at.name;
    let folder = texts::folder(plane);
    let directory = at.directory("load-balancer", folder.clone(), ("root", "0755"), vec![config.to_vec()]);
    let file = |at: &mut At<'_>, name: &str, content: Arg, after: Option<&Vec<ChildStep>>| {
        let step = on_of(host, "file", &format!("load-balancer/{name}"));
        let arguments = [("path", format!("{folder}/{name}").into()), ("content", content), ("mode", "0644".into())];
        at.add(child(step, "ssh_file", arguments), after.into_iter().chain([&directory]).cloned().collect())
    };
    let haproxy_file = file(at, "haproxy.cfg", texts::haproxy(plane, hosts, balancer), None);
    let keepalived_file = file(at, "keepalived.conf", texts::keepalived(plane, hosts, balancer, ours, host), None);

    let (user, made) = at.user(plane, Program::Haproxy.name());

    let (path, origin) = program(plane, ours, at, Program::Haproxy);
    let content = texts::haproxy_unit(plane, balancer, &path, &user);
    let test = format!("{path} -c -q -f {folder}/haproxy.cfg");
    let run = run_of(content, test, (&haproxy_file, &origin), (vec![balancer.port], Vec::new()));
    let started = at.unit(plane, Program::Haproxy.name(), run, vec![made, haproxy_file, origin]);

    // What is asked every second changes when haproxy has: else the address would leave every host at once.
    let check = file(at, "check", texts::check(balancer).into(), Some(&started));
    let (path, origin) = program(plane, ours, at, Program::Keepalived);
    let content = texts::keepalived_unit(plane, &path);
    let test = format!("{path} --config-test -f {folder}/keepalived.conf");
    let run = run_of(content, test, (&keepalived_file, &origin), (Vec::new(), texts::claims(balancer, ours, at.host)));
    at.unit(plane, Program::Keepalived.name(), run, vec![check, keepalived_file, origin]);
}

/// Where a program is on its host, and the child that brings it there.
fn program(plane: &Arguments, ours: &Ours, at: &mut At<'_>, program: Program) -> (String, Vec<ChildStep>) {
    let name = program.name();
    let (source, sum) = ours.source(program);
    if source.is_null() {
        let made = child(on_of(at.name, "package", name), "ssh_package", [("name", name.into())]);
        return (format!("/usr/sbin/{name}"), at.add(made, Vec::new()));
    }
    let path = format!("{}/load-balancer/{name}", programs::root(plane));
    let architecture = at.host.architecture.as_str();
    let [source, sum] = [source, sum].map(|text| programs::filled(text, &[("{program}", name)], architecture));
    let origin = programs::taken(source, sum, name, architecture);
    (path.clone(), at.program(plane, name, path, origin, Vec::new()))
}

/// How it is run: it starts anew with another configuration or another program.
fn run_of(
    content: String,
    check: String,
    (configuration, origin): (&[ChildStep], &[ChildStep]),
    (ports, claims): (Vec<i64>, Vec<Arg>),
) -> Run {
    let mut triggers = BTreeMap::from([("configuration".to_owned(), Arg::child(configuration, "sha256"))]);
    if origin[1].name == "program" {
        triggers.insert("program".to_owned(), Arg::child(origin, "content_sha256"));
    }
    Run { content: content.into(), check: check.into(), triggers, ports, claims, limit: START_TIMEOUT }
}
