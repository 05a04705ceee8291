//! What a load balancer of ours is on a host: two programs, each with its configuration and its unit, and who runs haproxy.

use std::collections::BTreeMap;

use karmaform_model::{Arg, ChildStep, Type, Value, source_on};

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
    let folder = texts::folder(plane);
    let directory = at.directory("load-balancer", folder.clone(), ("root", "0755"), vec![config.to_vec()]);
    let (user, made) = at.user(plane, Program::Haproxy.name());

    let text = texts::haproxy(plane, hosts, balancer);
    let (path, [origin, haproxy_file]) = pair(plane, ours, at, Program::Haproxy, text, &directory);
    let content = texts::haproxy_unit(plane, balancer, &path, &user);
    let run = run_of(content, (Program::Haproxy, &path, &folder), (&haproxy_file, &origin), (vec![balancer.port], Vec::new()));
    let started = at.unit(plane, Program::Haproxy.name(), run, vec![made, haproxy_file, origin]);

    // What is asked every second changes when haproxy has: else the address would leave every host at once.
    let untried = Value::null(Type::String).into();
    let check = file(at, &folder, "check", texts::check(balancer).into(), untried, vec![started, directory.clone()]);
    let text = texts::keepalived(plane, hosts, balancer, ours, at.name);
    let (path, [origin, keepalived_file]) = pair(plane, ours, at, Program::Keepalived, text, &directory);
    let content = texts::keepalived_unit(plane, &path);
    // Whether it has the address itself or another host has: behind it the API answers.
    let health = Some(texts::readyz(balancer));
    let run = run_of(
        content,
        (Program::Keepalived, &path, &folder),
        (&keepalived_file, &origin),
        (Vec::new(), texts::claims(balancer, ours, at.host)),
    );
    at.unit(plane, Program::Keepalived.name(), Run { health, ..run }, vec![check, keepalived_file, origin]);
}

/// A file in the load balancer's folder; `check` tries it before it takes its place.
fn file(at: &mut At<'_>, folder: &str, name: &str, content: Arg, check: Arg, after: Vec<Vec<ChildStep>>) -> Vec<ChildStep> {
    let arguments = [("path", format!("{folder}/{name}").into()), ("content", content), ("mode", "0644".into()), ("check", check)];
    at.add(child(on_of(at.name, "file", &format!("load-balancer/{name}")), "ssh_file", arguments), after)
}

/// Where a program is on its host, and the children that bring it and its configuration there. Each is tried before it takes a place: a
/// new program with the configuration that it will have, and a new configuration by the program that will read it. So what is refused leaves
/// what works as it is.
fn pair(
    plane: &Arguments,
    ours: &Ours,
    at: &mut At<'_>,
    program: Program,
    configuration: Arg,
    directory: &[ChildStep],
) -> (String, [Vec<ChildStep>; 2]) {
    let name = program.name();
    let (source, sum) = ours.source(program);
    let (path, origin) = if source.is_null() {
        let made = child(on_of(at.name, "package", name), "ssh_package", [("name", name.into())]);
        (format!("/usr/sbin/{name}"), at.add(made, Vec::new()))
    } else {
        let path = format!("{}/load-balancer/{name}", programs::root(plane));
        let architecture = at.host.architecture.as_str();
        let [source, sum] = [source, sum].map(|text| Arg::from(source_on(text, &[("{program}", name)], architecture)));
        let trial = texts::trial(program, configuration.clone());
        let origin = programs::taken(source, sum, name, architecture);
        (path.clone(), at.program(plane, name, path, origin, Some(trial), Vec::new()))
    };
    let test = texts::test(program, &path, "\"$FILE\"");
    let after = vec![origin.clone(), directory.to_vec()];
    let file = file(at, &texts::folder(plane), program.configuration(), configuration, test.into(), after);
    (path, [origin, file])
}

/// How it is run: it starts anew with another configuration or another program.
fn run_of(
    content: String,
    (program, path, folder): (Program, &str, &str),
    (configuration, origin): (&[ChildStep], &[ChildStep]),
    (ports, claims): (Vec<i64>, Vec<Arg>),
) -> Run {
    let mut triggers = BTreeMap::from([("configuration".to_owned(), Arg::child(configuration, "sha256"))]);
    if origin[1].name == "program" {
        triggers.insert("program".to_owned(), Arg::child(origin, "content_sha256"));
    }
    let check = texts::test(program, path, &format!("{folder}/{}", program.configuration()));
    Run { content: content.into(), check: check.into(), triggers, ports, claims, limit: START_TIMEOUT, health: None }
}
