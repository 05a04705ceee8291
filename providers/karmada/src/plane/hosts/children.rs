//! What a control plane is on its hosts: for each component a user, a directory with its files, a program and a unit; and beside them the
//! names by which components find each other, the keys of the authorities, and a kubeconfig for whoever works there.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep};

use super::{Host, Hosts, balancer, entries, on, on_of, placed, programs, unit, unit_of};
use crate::api::ApiObject;
use crate::plane::arguments::Arguments;
use crate::plane::children::{child, needs};
use crate::plane::settings::Settings;
use crate::plane::{deployment, secrets, store};
use crate::versions::Component;

/// How long starting or stopping a unit may take, in seconds.
const START_TIMEOUT: i64 = 130;
/// Readable for whoever runs the component, and nobody else.
const SECRET: &str = "0600";

/// A host's children, one after the other.
pub(super) struct At<'a> {
    pub(super) name: &'a str,
    pub(super) host: &'a Host,
    children: &'a mut Vec<Child>,
}

impl At<'_> {
    pub(super) fn add(&mut self, mut made: Child, after: Vec<Vec<ChildStep>>) -> Vec<ChildStep> {
        made.arguments.insert("host".to_owned(), self.host.connection.clone().into());
        made.after = after;
        let path = made.path.clone();
        self.children.push(made);
        path
    }

    pub(super) fn directory(&mut self, key: &str, path: String, (group, mode): (&str, &str), after: Vec<Vec<ChildStep>>) -> Vec<ChildStep> {
        let arguments = [("path", path.into()), ("owner", "root".into()), ("group", group.into()), ("mode", mode.into())];
        self.add(child(on_of(self.name, "directory", key), "ssh_directory", arguments), after)
    }

    fn file(&mut self, step: Vec<ChildStep>, path: String, content: Arg, owner: &str, after: Vec<Vec<ChildStep>>) -> Vec<ChildStep> {
        let arguments =
            [("path", path.into()), ("content", content), ("owner", owner.into()), ("group", owner.into()), ("mode", SECRET.into())];
        self.add(child(step, "ssh_file", arguments), after)
    }
}

/// All of them. `objects` are those inside the Karmada API.
pub(crate) fn expand(plane: &Arguments, hosts: &Hosts, objects: &[ApiObject], children: &mut Vec<Child>) {
    for (name, host) in &hosts.all {
        let mut at = At { name, host, children };
        let root = plane.folder();
        let config = at.directory("config", root.clone(), ("root", "0755"), Vec::new());
        let mut folders = BTreeMap::new();
        let here = || plane.components.iter().filter(|(_, s)| placed(hosts, s).any(|(n, _)| n == name));
        for (component, _) in here() {
            let path = programs::folder(plane, *component);
            let key = programs::release(plane, *component);
            folders.entry(key.clone()).or_insert_with(|| at.directory(&key, path, ("root", "0755"), Vec::new()));
        }
        let known_names = hosts.dns_name.is_none().then(|| {
            let arguments = [("name", format!("karmada-{}", plane.name).into()), ("entries", entries::entries(plane, hosts, name))];
            at.add(child(on(name, "names"), "ssh_hosts_entries", arguments), Vec::new())
        });
        for (component, settings) in here() {
            let first = [config.clone(), folders[&programs::release(plane, *component)].clone()];
            let names = known_names.clone();
            of_component(plane, hosts, (*component, settings), &mut at, first, names, objects);
        }
        balancer::expand(plane, hosts, &mut at, &config);
        let place = format!("{root}/admin.kubeconfig");
        at.file(on(name, "kubeconfig"), place, secrets::admin_kubeconfig(plane), "root", vec![config.clone()]);
        if plane.certificates.keeps_authority {
            let folder = format!("{root}/authority");
            let directory = at.directory("authority", folder.clone(), ("root", "0700"), vec![config]);
            for (file, content) in secrets::authority(plane) {
                let step = on_of(name, "authority", &file);
                at.file(step, format!("{folder}/{file}"), content, "root", vec![directory.clone()]);
            }
        }
    }
}

fn of_component(
    plane: &Arguments,
    hosts: &Hosts,
    (component, settings): (Component, &Settings),
    at: &mut At<'_>,
    [config, programs]: [Vec<ChildStep>; 2],
    names: Option<Vec<ChildStep>>,
    objects: &[ApiObject],
) {
    let host = at.name;
    let owner = unit::user(plane, component.name());
    let arguments = [("name", owner.as_str().into()), ("shell", "/usr/sbin/nologin".into()), ("system", true.into())];
    let user = at.add(child(on_of(host, "user", component.name()), "ssh_user", arguments), Vec::new());
    let folder = plane.pki(component);
    let directory = at.directory(component.name(), folder.clone(), (&owner, "0750"), vec![config, user]);
    let mut files = secrets::files(plane, component);
    if matches!(component, Component::ApiServer) {
        files.extend(plane.extras.files.clone());
    }
    let mut after = Vec::new();
    for (file, content) in files {
        let step = on_of(host, "file", &format!("{}/{file}", component.name()));
        after.push(at.file(step, format!("{folder}/{file}"), content, &owner, vec![directory.clone()]));
    }
    let program = on_of(host, "program", &programs::key(plane, component));
    let path = programs::path(plane, component);
    let mut made = child(program.clone(), "ssh_artifact", [("path", path.into()), ("mode", "0755".into())]);
    made.arguments.extend(programs::origin(plane, hosts, at.host, component, settings).map(|(n, a)| (n.to_owned(), a)));
    after.push(at.add(made, vec![programs]));
    after.extend(names);
    after.extend(needs(plane, component, objects));
    if secrets::uses_etcd(component) {
        after.push(store::prefix_path());
    }
    let mut triggers: BTreeMap<String, Arg> =
        deployment::marks(plane, component).into_iter().map(|(name, mark)| (name.to_owned(), mark)).collect();
    // Its kubeconfig is read when it starts.
    triggers.insert("server".to_owned(), plane.inside().into());
    triggers.insert("program".to_owned(), Arg::child(&program, "content_sha256"));
    let command = unit::Command::of(plane, at.host, component, settings);
    // A unit is started and stopped as a whole; what it says of itself is told by gates.
    let made = child(
        unit_of(host, component),
        "ssh_systemd_unit",
        [
            ("name", unit::name(plane, component).into()),
            ("content", unit::content(plane, component, settings, &command)),
            ("check", command.check(&owner)),
            ("enabled", true.into()),
            ("active", true.into()),
            ("restart_triggers", Arg::Object(triggers)),
            ("start_timeout", START_TIMEOUT.into()),
        ],
    );
    at.add(made, after);
}
