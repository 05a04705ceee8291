//! What a cluster expands into: its CAs, a token, a client certificate, and for each member its user, directories, programs, certificates,
//! environment, guard, unit, and the member itself.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Child, ChildStep, Expansion, Object, Type, Value, source_on};

use super::arguments::Arguments;
use super::hosts::Host;
use super::kubernetes;
use super::places::{CLIENT_CA, PEER_CA, Places, authority, client_certificate, part, part_of, restoring, token};
use super::{authorities, moving, render, restore, snapshot};
use crate::versions::VERSION;

/// The kind of all keys. etcd and every client speak it, and it is small and quick.
pub(super) const ALGORITHM: &str = "ECDSA-P256";
/// How long starting a unit may take, in seconds. Not used up: members are started without waiting, and a gate waits for all of them.
const START_TIMEOUT: i64 = 90;

/// The children and outputs.
pub(crate) fn expand(cluster: &Arguments) -> Expansion {
    let mut children = authorities::expand(cluster);
    // Nothing but its id matters: it is new for each formation, so that no member of an earlier cluster is taken for one of this.
    children.push(child(token(), "terraform_data", []));
    children.extend(cluster.restore.iter().flat_map(|what| restore::records(cluster, what)));
    match &cluster.kubernetes {
        Some(place) => kubernetes::children::expand(cluster, place, &mut children),
        None => cluster.members.iter().for_each(|(name, host)| member(cluster, name, host, &mut children)),
    }
    Expansion { children, outputs: outputs(cluster) }
}

pub(crate) fn child<const N: usize>(path: Vec<ChildStep>, resource_type: &str, arguments: [(&str, Arg); N]) -> Child {
    let arguments = arguments.into_iter().map(|(n, a)| (n.to_owned(), a)).collect();
    Child { path, resource_type: resource_type.to_owned(), arguments, after: Vec::new(), apart: &[] }
}

pub(super) fn certificate(
    cluster: &Arguments,
    path: Vec<ChildStep>,
    ca: &str,
    common_name: &str,
    address: Option<&Value>,
    usages: &[&str],
) -> Child {
    // 127.0.0.1 and localhost: for whoever looks at a member on its own host, and for tunnels that end there.
    let (names, addresses) = match address {
        Some(address) if cluster.kubernetes.is_some() => (vec!["localhost".into(), address.clone()], vec!["127.0.0.1".into()]),
        Some(address) if address.as_str() == Some("127.0.0.1") => (vec!["localhost".into()], vec![address.clone()]),
        Some(address) => (vec!["localhost".into()], vec![address.clone(), "127.0.0.1".into()]),
        None => (Vec::new(), Vec::new()),
    };
    let ca = authority(ca, cluster.authorities.signs_with);
    child(
        path,
        "tls_certificate",
        [
            ("ca_certificate", Arg::child(&ca, "certificate")),
            ("ca_private_key", Arg::child(&ca, "private_key")),
            ("common_name", common_name.into()),
            ("dns_names", Value::list(Type::String, names).into()),
            ("ip_addresses", Value::list(Type::String, addresses).into()),
            ("usages", Value::strings(usages).into()),
            ("algorithm", ALGORITHM.into()),
            ("validity_hours", cluster.certificate_validity_hours.clone().into()),
            ("renew_before_hours", cluster.renew_before_hours.clone().into()),
        ],
    )
}

fn member(cluster: &Arguments, name: &str, host: &Host, children: &mut Vec<Child>) {
    let places = Places::of(cluster);
    let at = |mut child: Child, after: &[Vec<ChildStep>]| {
        child.arguments.insert("host".to_owned(), host.connection.clone().into());
        child.after = after.to_vec();
        child
    };
    let user = part(name, "user");
    let traces = part(name, "traces");
    let directory = |key: &str| part_of(name, "directory", key);
    let owner = cluster.user.as_str();

    children.push(at(
        child(user.clone(), "ssh_user", [("name", owner.into()), ("shell", "/usr/sbin/nologin".into()), ("system", true.into())]),
        &[],
    ));
    let mut directories = vec![
        ("config", &places.config, "0750", owner, false),
        ("pki", &places.pki, "0750", owner, false),
        ("programs", &places.programs, "0755", "root", false),
        ("data", &places.data, "0700", owner, !cluster.keeps_data),
    ];
    if cluster.keeps_authority {
        directories.push(("authority", &places.authority, "0700", "root", false));
    }
    for (key, path, mode, group, purge) in directories {
        let dir_owner = if key == "data" { owner } else { "root" };
        let mut made = child(
            directory(key),
            "ssh_directory",
            [
                ("path", path.as_str().into()),
                ("owner", dir_owner.into()),
                ("group", group.into()),
                ("mode", mode.into()),
                ("purge", purge.into()),
            ],
        );
        if key == "data" {
            made.arguments.insert("moves".to_owned(), true.into());
            made.arguments.insert("moves_with".to_owned(), Value::strings(moving::BESIDE).into());
            made.arguments.insert("stopped_unit".to_owned(), cluster.unit().into());
            // What its guard looks for, too: without its log etcd would begin anew, whatever else is left. Files that etcd prepares for it have
            // another ending, and hold nothing.
            made.arguments.insert("essential".to_owned(), "member/wal/*.wal".into());
        }
        let mut after = vec![user.clone()];
        match key {
            "pki" => after.push(directory("config")),
            "authority" => after.push(directory("pki")),
            _ => {}
        }
        children.push(at(made, &after));
    }
    children.push(at(self::traces(traces.clone(), &places, cluster.keeps_data), &[directory("config"), directory("data")]));
    for name_of_it in ["etcd", "etcdctl"] {
        children.push(at(program(cluster, &places, name, name_of_it), &[directory("programs")]));
    }
    // Both usages on both: etcd dials its own client port with the server certificate, and peers dial each other with the peer certificate.
    let both = ["server_auth", "client_auth"];
    let server = part_of(name, "certificate", "server");
    let peer = part_of(name, "certificate", "peer");
    children.push(certificate(cluster, server.clone(), CLIENT_CA, name, Some(&host.address), &both));
    children.push(certificate(cluster, peer.clone(), PEER_CA, name, Some(&host.address), &both));
    for (file, content, file_owner, mode) in [
        ("client-ca.crt", authorities::trusted(cluster, CLIENT_CA), "root", "0644"),
        ("peer-ca.crt", authorities::trusted(cluster, PEER_CA), "root", "0644"),
        ("server.crt", Arg::child(&server, "certificate"), "root", "0644"),
        ("server.key", Arg::child(&server, "private_key"), owner, "0600"),
        ("peer.crt", Arg::child(&peer, "certificate"), "root", "0644"),
        ("peer.key", Arg::child(&peer, "private_key"), owner, "0600"),
    ] {
        let group = if file_owner == "root" { "root" } else { owner };
        let made = self::file(part_of(name, "pki", file), format!("{}/{file}", places.pki), content, file_owner, group, mode);
        children.push(at(made, &[directory("pki")]));
    }
    for (file, from, attribute) in authorities::kept(cluster).into_iter().filter(|_| cluster.keeps_authority) {
        let content = Arg::child(&from, attribute);
        let made = self::file(part_of(name, "authority", &file), format!("{}/{file}", places.authority), content, "root", "root", "0600");
        children.push(at(made, &[directory("authority")]));
    }
    let environment = part(name, "environment");
    let guard = part(name, "guard");
    let content = render::environment(cluster, name, host, &token());
    let made = self::file(environment.clone(), places.environment.clone(), content, "root", owner, "0640");
    children.push(at(made, &[directory("config")]));
    let peers = part(name, "peers");
    children
        .push(at(self::file(peers.clone(), places.peers.clone(), render::peers(cluster), "root", owner, "0640"), &[directory("config")]));
    let content = render::guard(cluster, name).into();
    children.push(at(self::file(guard.clone(), places.guard.clone(), content, "root", "root", "0755"), &[directory("config")]));

    let keeper = snapshot::keeper(cluster).filter(|keeper| *keeper == name);
    if keeper.is_some() {
        children.push(at(snapshot::child(cluster, name), &[directory("data"), directory("pki"), directory("programs")]));
    }
    let mut after: Vec<_> = ["client-ca.crt", "peer-ca.crt", "server.crt", "server.key", "peer.crt", "peer.key"]
        .into_iter()
        .map(|f| part_of(name, "pki", f))
        .collect();
    after.extend([guard, peers, traces, part_of(name, "program", "etcd"), part_of(name, "program", "etcdctl")]);
    // That there is nothing to save it finds before the first start.
    after.extend(keeper.map(snapshot::of));
    if let Some(restore) = &cluster.restore {
        let needed = [&after[..], std::slice::from_ref(&environment)].concat();
        children.extend(restore::children(cluster, restore, name, &needed).into_iter().map(|(child, after)| at(child, &after)));
        after.push(part_of(name, "restore", "switch"));
    }
    let unit = part(name, "unit");
    let made = child(
        unit.clone(),
        "ssh_systemd_unit",
        [
            ("name", cluster.unit().into()),
            ("content", render::unit(cluster, name).into()),
            ("enabled", true.into()),
            ("active", true.into()),
            // For members it listens on its own address alone, where hosts may have several.
            ("ports", Arg::List(vec![i64::from(cluster.client_port).into()])),
            // What etcd reads only when it starts. Its own certificates are not among it.
            (
                "restart_triggers",
                Arg::object([
                    // Programs that are not of it are found at the restart.
                    ("version", cluster.version.text.as_str().into()),
                    ("environment", Arg::child(&environment, "sha256")),
                    ("client_ca", Arg::child(&part_of(name, "pki", "client-ca.crt"), "sha256")),
                    ("peer_ca", Arg::child(&part_of(name, "pki", "peer-ca.crt"), "sha256")),
                    ("program", Arg::child(&part_of(name, "program", "etcd"), "content_sha256")),
                ]),
            ),
            ("start_environment", Value::map(Type::String, [("ETCD_INITIAL_CLUSTER_STATE".to_owned(), "new".into())].into()).into()),
            // The first member of a new cluster is ready only when a second one is there: waiting for it would wait for ever.
            ("wait", false.into()),
            ("check", render::check(cluster).into()),
            ("drop_ins", Arg::List(Vec::new())),
            ("start_timeout", START_TIMEOUT.into()),
        ],
    );
    children.push(at(made, &after));

    let mut etcd = as_known(cluster, name);
    etcd.after = vec![unit];
    children.push(etcd);
}

/// The member as its cluster knows it.
pub(super) fn as_known(cluster: &Arguments, name: &str) -> Child {
    let mut etcd = child(part(name, "etcd"), "etcd_member", [("cluster", connection(cluster)), ("name", name.into())]);
    if let Some(restore) = &cluster.restore {
        etcd.arguments.insert("restoration".to_owned(), Arg::child(&restoring(restore), "id"));
    }
    etcd.arguments.insert("minor".to_owned(), i64::from(cluster.version.minor).into());
    if let Some(host) = cluster.members.get(name) {
        let peer = Arg::Text(cluster.url(host, cluster.peer_port).into_iter().map(Arg::Value).collect());
        etcd.arguments.insert("peer".to_owned(), peer);
    }
    if cluster.defragments {
        etcd.arguments.insert("defragment".to_owned(), true.into());
    }
    etcd
}

/// A program out of the cluster's archive, on a member's host.
pub(super) fn program(cluster: &Arguments, places: &Places, member: &str, program: &str) -> Child {
    let architecture = cluster.members.get(member).and_then(Host::architecture);
    let on = |text: &Value| source_on(text, &[(VERSION, &cluster.version.text)], architecture);
    child(
        part_of(member, "program", program),
        "ssh_artifact",
        [
            ("source", on(&cluster.source).into()),
            ("sha256", on(&cluster.source_sha256).into()),
            ("member", program.into()),
            ("path", format!("{}/{program}", places.programs).into()),
            ("previous", places.previous.as_str().into()),
            ("owner", "root".into()),
            ("group", "root".into()),
            ("mode", "0755".into()),
        ],
    )
}

/// What a member leaves behind while it runs is not written by karmaform, so this child has nothing to do but to remove it at the end:
/// after the unit is stopped, before the directories go. Data that is kept is moved aside, so that no later cluster starts on it.
fn traces(path: Vec<ChildStep>, places: &Places, keeps_data: bool) -> Child {
    let data = &places.data;
    let mut undo = format!("rm -f {} {}", places.marker, places.formation);
    if !keeps_data {
        // What a replaced member left, what there was before a restoration, and what was saved before upgrades; and the data itself, should it still
        // be where a move that was cut off was to take it away from.
        undo.push_str(&format!("\nrm -rf {data}/member {data}.replaced-* {data}.before-* {}", places.snapshots));
    } else {
        undo.push_str(&format!("\nif [ -n \"$(ls -A {data} 2>/dev/null)\" ]; then mv {data} {data}.kept-$(date -u +%Y%m%dT%H%M%SZ); fi"));
    }
    let done = "if [ ! -d /run/systemd/system ]; then echo 'this host does not run systemd' >&2; exit 1; fi";
    let environment = Value::map(Type::String, Object::new());
    with(command(path, done.to_owned(), environment.into(), 60), [("undo", undo)])
}

/// A command on a member's host, with its time limit in seconds. It runs again when its text or its environment is another one.
pub(super) fn command(path: Vec<ChildStep>, command: String, environment: Arg, limit: i64) -> Child {
    child(
        path,
        "ssh_command",
        [
            ("command", command.into()),
            ("triggers", Value::map(Type::String, Object::new()).into()),
            ("environment", environment),
            ("timeout", limit.into()),
        ],
    )
}

/// The child with more arguments that are texts.
pub(super) fn with<const N: usize>(mut child: Child, texts: [(&str, String); N]) -> Child {
    child.arguments.extend(texts.map(|(name, text)| (name.to_owned(), text.into())));
    child
}

pub(crate) fn file(path: Vec<ChildStep>, at: String, content: Arg, owner: &str, group: &str, mode: &str) -> Child {
    child(
        path,
        "ssh_file",
        [
            ("path", at.into()),
            ("content", content),
            ("owner", owner.into()),
            ("group", group.into()),
            ("mode", mode.into()),
            ("overwrite", false.into()),
        ],
    )
}

/// The connection value of the provider `etcd`: each member through its own host.
pub(crate) fn connection(cluster: &Arguments) -> Arg {
    connection_with(cluster, &BTreeMap::new())
}

/// The same with members that are not wanted any more, each with its way there. It is another connection then.
pub(crate) fn connection_with(cluster: &Arguments, more: &BTreeMap<String, Value>) -> Arg {
    let members = cluster.members.iter().map(|(name, host)| {
        let member = Arg::object([
            ("endpoint", endpoint(cluster, host)),
            ("host", host.address.clone().into()),
            ("port", i64::from(cluster.client_port).into()),
            ("via", host.connection.clone().into()),
        ]);
        (name.clone(), member)
    });
    let members = members.chain(more.iter().map(|(name, way)| (name.clone(), way.clone().into())));
    Arg::object([
        ("provider", "etcd".into()),
        ("id", if more.is_empty() { cluster.address.to_string() } else { format!("{} and those that leave", cluster.address) }.into()),
        ("quota_bytes", super::preflight::quota(cluster).into()),
        ("members", Arg::Object(members.collect())),
        ("ca_certificate", authorities::trusted(cluster, CLIENT_CA)),
        ("certificate", Arg::child(&client_certificate(), "certificate")),
        ("private_key", Arg::child(&client_certificate(), "private_key")),
    ])
}

fn endpoint(cluster: &Arguments, host: &Host) -> Arg {
    Arg::Text(cluster.url(host, cluster.client_port).into_iter().map(Arg::Value).collect())
}

fn outputs(cluster: &Arguments) -> BTreeMap<String, Arg> {
    let endpoints = Arg::List(cluster.members.values().map(|host| endpoint(cluster, host)).collect());
    let ids = cluster.members.keys().map(|name| (name.clone(), Arg::child(&part(name, "etcd"), "member_id"))).collect();
    let ca = authorities::trusted(cluster, CLIENT_CA);
    let certificate = Arg::child(&client_certificate(), "certificate");
    let key = Arg::child(&client_certificate(), "private_key");
    let first = cluster.members.keys().next();
    let cluster_id = first.map_or_else(|| Value::null(Type::String).into(), |name| Arg::child(&part(name, "etcd"), "cluster_id"));
    let client = Arg::object([
        ("endpoints", endpoints.clone()),
        ("ca_certificate", ca.clone()),
        ("certificate", certificate.clone()),
        ("private_key", key.clone()),
        ("cluster_id", cluster_id.clone()),
    ]);
    BTreeMap::from([
        ("endpoints".to_owned(), endpoints),
        ("ca_certificate".to_owned(), ca),
        ("client_certificate".to_owned(), certificate),
        ("client_key".to_owned(), key),
        ("client".to_owned(), client),
        ("cluster_id".to_owned(), cluster_id),
        ("members".to_owned(), Arg::Object(ids)),
    ])
}
