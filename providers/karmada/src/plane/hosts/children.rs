//! What a control plane is on its hosts: for each component a user, a directory with its files, a program and a unit; and beside them the
//! names by which components find each other, the keys of the authorities, and a kubeconfig for whoever works there.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep};

use super::programs::Origin;
use super::{Host, Hosts, balancer, entries, on, on_of, placed, programs, unit};
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

    /// Somebody who runs this alone, by name and as a child.
    pub(super) fn user(&mut self, plane: &Arguments, what: &str) -> (String, Vec<ChildStep>) {
        let name = unit::user(plane, what);
        let arguments = [("name", name.as_str().into()), ("shell", "/usr/sbin/nologin".into()), ("system", true.into())];
        let path = self.add(child(on_of(self.name, "user", what), "ssh_user", arguments), Vec::new());
        (name, path)
    }

    /// A program from where it comes from. `check` tries it before it takes the place of one that works.
    pub(super) fn program(
        &mut self,
        plane: &Arguments,
        key: &str,
        path: String,
        origin: Origin,
        check: Option<Arg>,
        after: Vec<Vec<ChildStep>>,
    ) -> Vec<ChildStep> {
        let previous = format!("{}/previous", programs::root(plane));
        let arguments = [("path", path.into()), ("mode", "0755".into()), ("previous", previous.into())];
        let mut made = child(on_of(self.name, "program", key), "ssh_artifact", arguments);
        made.arguments.extend(origin.map(|(n, a)| (n.to_owned(), a)));
        made.arguments.extend(check.map(|check| ("check".to_owned(), check)));
        self.add(made, after)
    }

    /// A unit that runs, also after a boot.
    pub(super) fn unit(&mut self, plane: &Arguments, what: &str, run: Run, after: Vec<Vec<ChildStep>>) -> Vec<ChildStep> {
        let arguments = [
            ("name", unit::name(plane, what).into()),
            ("content", run.content),
            ("check", run.check),
            ("enabled", true.into()),
            ("active", true.into()),
            ("ports", Arg::List(run.ports.into_iter().map(Arg::from).collect())),
            ("claims", Arg::List(run.claims)),
            ("restart_triggers", Arg::Object(run.triggers)),
            ("drop_ins", Arg::List(Vec::new())),
            ("start_timeout", run.limit.into()),
        ];
        let mut made = child(on_of(self.name, "unit", what), "ssh_systemd_unit", arguments);
        made.arguments.extend(run.health.map(|url| ("health".to_owned(), url.into())));
        self.add(made, after)
    }

    fn file(&mut self, step: Vec<ChildStep>, path: String, content: Arg, owner: &str, after: Vec<Vec<ChildStep>>) -> Vec<ChildStep> {
        let arguments =
            [("path", path.into()), ("content", content), ("owner", owner.into()), ("group", owner.into()), ("mode", SECRET.into())];
        self.add(child(step, "ssh_file", arguments), after)
    }
}

/// How a program is run: what its unit is, what tries it before, and what starts it anew.
pub(super) struct Run {
    pub(super) content: Arg,
    pub(super) check: Arg,
    pub(super) triggers: BTreeMap<String, Arg>,
    /// Those that it listens on.
    pub(super) ports: Vec<i64>,
    /// What else only one on a host can have.
    pub(super) claims: Vec<Arg>,
    /// How long starting or stopping may take, in seconds.
    pub(super) limit: i64,
    /// Where it says how it is, if it does.
    pub(super) health: Option<String>,
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
    let (owner, user) = at.user(plane, component.name());
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
    let origin = programs::origin(plane, hosts, at.host, component, settings);
    let program = at.program(plane, &programs::key(plane, component), programs::path(plane, component), origin, None, vec![programs]);
    after.push(program.clone());
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
    let content = unit::content(plane, component, settings, &command);
    let run = Run {
        content,
        check: command.check(&owner),
        triggers,
        ports: hosts.ports.all(component),
        claims: Vec::new(),
        limit: START_TIMEOUT,
        health: health(hosts, component),
    };
    at.unit(plane, component.name(), run, after);
}

/// Where a component is asked how it is, from its host: as its pods are. What serves an API that others have to find first is well only when they
/// do, so that is told of the API.
fn health(hosts: &Hosts, component: Component) -> Option<String> {
    let ports = &hosts.ports;
    Some(match component {
        Component::ApiServer | Component::AggregatedApiServer | Component::Webhook => {
            format!("https://127.0.0.1:{}/readyz", ports.of(component))
        }
        Component::KubeControllerManager => format!("https://127.0.0.1:{}/healthz", ports.of(component)),
        Component::ControllerManager | Component::Scheduler | Component::Descheduler => {
            format!("http://127.0.0.1:{}/healthz", ports.health(component))
        }
        Component::Search | Component::MetricsAdapter => return None,
    })
}
