//! What a cluster expands into: the texts on its hosts, the same children whatever is known, and arguments that are refused.

use std::collections::BTreeSet;

use karmaform_etcd::EtcdCluster;
use karmaform_model::{Action, Composite, Diagnostics, Expansion, Key, Kind, Object, Point, Type, Value};

use crate::golden::golden;
use crate::model;
use crate::steps::{self, Policy, Stop, address, arguments, with_setting};

/// A cluster on hosts.
type Lab = steps::Stage<model::World>;

fn expand(arguments: &Object) -> Result<Expansion, Diagnostics> {
    EtcdCluster.expand(&address(), arguments)
}

/// The content of a child of member `a`, with `TOKEN` for the formation's token.
fn content(arguments: &Object, child: &str) -> String {
    argument(arguments, child, "content")
}

fn argument(arguments: &Object, child: &str, argument: &str) -> String {
    let expansion = expand(arguments).unwrap();
    let wanted = format!("etcd_cluster.main/member[\"a\"]/{child}");
    let child = expansion.children.iter().find(|c| address().with_child(&c.path).to_string() == wanted).unwrap();
    let content = child.arguments[argument].resolve(&|_, attribute| if attribute == "id" { "TOKEN".into() } else { "?".into() });
    content.as_str().unwrap().to_owned()
}

#[test]
fn texts_on_hosts() {
    let plain = arguments(3);
    golden("etcd.env", &content(&plain, "environment"));
    golden("peers.env", &content(&plain, "peers"));
    golden("etcd.service", &content(&plain, "unit"));
    golden("guard.sh", &content(&plain, "guard"));
    // What a look at the directory takes for lost data is what the guard does.
    let essential = argument(&plain, "directory[\"data\"]", "essential");
    assert!(content(&plain, "guard").contains(&format!("\"$data\"/{essential};")), "{essential}");
    golden("snapshot.sh", &argument(&plain, "snapshot", "command"));
    golden("snapshot-check.sh", &argument(&plain, "snapshot", "check"));
    golden("unit-check.sh", &argument(&plain, "unit", "check"));
}

#[test]
fn settings_and_addresses_in_the_environment() {
    let line = |arguments: &Object, name: &str| {
        let text = content(arguments, "environment");
        text.lines().find_map(|l| l.strip_prefix(&format!("{name}=")).map(str::to_owned))
    };
    let quoted = with_setting(arguments(1), "cors", "https://a.example \"$x\"");
    assert_eq!(line(&quoted, "ETCD_CORS").as_deref(), Some(r#""https://a.example \"\$x\"""#));
    let six = with(arguments(1), "addresses", Value::object([("a", "fd00::1".into())]));
    assert_eq!(line(&six, "ETCD_LISTEN_CLIENT_URLS").as_deref(), Some("https://[fd00::1]:2379,https://127.0.0.1:2379"));
    let local = with(arguments(1), "addresses", Value::object([("a", "127.0.0.1".into())]));
    assert_eq!(line(&local, "ETCD_LISTEN_CLIENT_URLS").as_deref(), Some("https://127.0.0.1:2379"));
    assert_eq!(line(&arguments(3), "ETCD_INITIAL_CLUSTER_STATE").as_deref(), Some("existing"));
    let old = with(arguments(1), "version", "3.4.23");
    assert_eq!(line(&old, "ETCD_LOGGER").as_deref(), Some("zap"));
}

fn with(mut arguments: Object, name: &str, value: impl Into<Value>) -> Object {
    arguments.insert(name.to_owned(), value.into());
    arguments
}

#[test]
fn hosts_of_two_architectures_get_programs_of_their_own() {
    let of = |b: Value, source: &str, sum: &str| {
        let mut arguments = with(with(arguments(3), "source", source), "source_sha256", sum);
        let Kind::Object(hosts) = &mut arguments.get_mut("hosts").unwrap().kind else { panic!() };
        for (name, architecture) in [("a", "amd64".into()), ("b", b), ("c", "amd64".into())] {
            let Kind::Object(host) = &mut hosts.get_mut(name).unwrap().kind else { panic!() };
            host.insert("architecture".to_owned(), architecture);
        }
        arguments
    };
    let (template, sums) = ("https://x/v{version}/etcd-v{version}-linux-{arch}.tar.gz", "https://x/v{version}/SHA256SUMS");
    let sources = |arguments: &Object| {
        let program = |c: &&karmaform_model::Child| c.path.last().is_some_and(|s| s.key == Some(Key::Name("etcd".to_owned())));
        let expansion = expand(arguments).unwrap();
        let text = |value: Value| value.as_str().unwrap_or("?").replace("https://x/v3.5.16/", "");
        let one = |c: &karmaform_model::Child| ["source", "sha256"].map(|n| text(c.arguments[n].resolve(&|_, _| panic!()))).join(" ");
        expansion.children.iter().filter(program).map(one).collect::<Vec<_>>()
    };
    let (amd, arm) = ("etcd-v3.5.16-linux-amd64.tar.gz SHA256SUMS", "etcd-v3.5.16-linux-arm64.tar.gz SHA256SUMS");
    assert_eq!(sources(&of("arm64".into(), template, sums)), [amd, arm, amd]);
    assert_eq!(sources(&of(Value::unknown(Type::String), template, sums)), [amd, "? SHA256SUMS", amd]);
    let one = "One archive for several architectures";
    refused(of("arm64".into(), "etcd-v3.5.16-linux-amd64.tar.gz", sums), one);
    refused(of("arm64".into(), template, &"0f".repeat(32)), one);
    for alike in ["amd64", "made up"] {
        assert!(expand(&of(alike.into(), "etcd-v3.5.16-linux-amd64.tar.gz", &"0f".repeat(32))).is_ok(), "{alike}");
    }
}

fn shape(expansion: &Expansion) -> Vec<(String, String, BTreeSet<String>)> {
    let children = expansion.children.iter();
    children.map(|c| (address().with_child(&c.path).to_string(), c.resource_type.clone(), c.arguments.keys().cloned().collect())).collect()
}

#[test]
fn the_same_children_whatever_is_known() {
    let known = with_setting(arguments(3), "snapshot-count", "5000");
    let mut unknown = known.clone();
    for name in ["source", "source_sha256", "settings", "certificate_validity_hours", "addresses"] {
        unknown.insert(name.to_owned(), Value::unknown(Type::Any));
    }
    let Kind::Object(hosts) = &mut unknown.get_mut("hosts").unwrap().kind else { panic!() };
    hosts.insert("a".to_owned(), Value::unknown(Type::Any));
    hosts.insert("b".to_owned(), Value::object([("address", "10.0.0.12".into()), ("connection", Value::unknown(Type::Any))]));
    assert_eq!(shape(&expand(&known).unwrap()), shape(&expand(&unknown).unwrap()));
    assert_eq!(shape(&expand(&known).unwrap()).len(), 5 + 3 * 26);
}

#[test]
fn a_member_managed_by_name_takes_its_hosts_first_address() {
    let host = |addresses: Value| {
        let connection = Value::object([("id", "node1:22".into()), ("address", "node1".into())]);
        Value::object([("a", Value::object([("address", "node1".into()), ("connection", connection), ("addresses", addresses)]))])
    };
    let named = with(arguments(1), "hosts", host(Value::strings(["192.0.2.7", "172.17.0.1"])));
    assert!(content(&named, "environment").contains("ETCD_ADVERTISE_CLIENT_URLS=https://192.0.2.7:2379\n"));
    refused(with(arguments(1), "hosts", host(Value::strings::<&str>([]))), "A member without an address");
    assert!(expand(&with(arguments(1), "hosts", host(Value::unknown(Type::Any)))).is_ok());
}

fn refused(arguments: Object, expected: &str) {
    let Err(found) = expand(&arguments) else { panic!("not refused: {expected}") };
    assert!(found.iter().any(|d| d.summary == expected), "{expected}: {found:?}");
    for diagnostic in found.iter() {
        assert!(diagnostic.detail.ends_with('.') && !diagnostic.summary.ends_with('.'), "{diagnostic:?}");
        assert_eq!(diagnostic.address, Some(address()));
    }
}

/// The host of member a once more, under another name.
fn also(hosts: &mut Object, name: &str) {
    let a = hosts["a"].clone();
    hosts.insert(name.to_owned(), a);
}

/// The same host, by a name of its own.
fn alias(hosts: &mut Object) {
    let connection = Value::object([("provider", "ssh".into()), ("id", "one.example:22".into()), ("address", "one.example".into())]);
    hosts.insert("d".to_owned(), Value::object([("connection", connection), ("addresses", Value::strings(["10.0.0.11"]))]));
}

#[test]
fn arguments_that_can_not_be_served() {
    let hosts = |change: fn(&mut Object)| {
        let mut arguments = arguments(3);
        let Kind::Object(hosts) = &mut arguments.get_mut("hosts").unwrap().kind else { panic!() };
        change(hosts);
        arguments
    };
    refused(with(arguments(3), "hosts", Value::unknown(Type::Any)), "A value that must be known when planning");
    refused(with(arguments(3), "hosts", Value::tuple(Vec::new())), "No hosts");
    refused(with(arguments(3), "version", Value::unknown(Type::String)), "A value that must be known when planning");
    refused(with(arguments(3), "version", 3i64), "Not a text");
    refused(with(arguments(3), "version", "3.9.1"), "An etcd version that can't be used");
    refused(with(arguments(3), "client_port", 2380i64), "One port for two purposes");
    refused(with(arguments(3), "peer_port", 70_000i64), "Not a port");
    refused(with(arguments(3), "on_destroy", "burn"), "Unknown `on_destroy`");
    refused(with(arguments(3), "disk_limit", -1i64), "Bad `disk_limit`");
    refused(with(arguments(3), "user", "root"), "etcd as root");
    refused(with(arguments(3), "user", "a b"), "Not a user name");
    refused(with(arguments(3), "data_directory", "/home/etcd"), "A data directory that the unit can't see");
    refused(with(arguments(3), "data_directory", "/var/lib/../etc"), "A data directory that can't be used");
    refused(with(arguments(3), "data_directory", "/var/lib/etcd; rm -rf"), "A data directory that can't be used");
    refused(with(arguments(3), "certificate_validity_hours", 100i64), "Certificates that would be renewed at once");
    refused(with(arguments(3), "addresses", Value::object([("z", "10.0.0.1".into())])), "An address of no member");
    refused(with(arguments(3), "addresses", Value::object([("a", "node1".into())])), "Not an IP address");
    refused(with_setting(arguments(3), "data-dir", "/x"), "An etcd setting that can't be used");
    refused(hosts(|h| also(h, "a,b")), "Not a member name");
    refused(hosts(|h| also(h, "d")), "Two members on one host");
    refused(hosts(alias), "Two members at one address");
    refused(hosts(|h| drop(h.insert("a".to_owned(), Value::object([("address", "10.0.0.11".into())])))), "A host without a connection");
    refused(hosts(|h| h.clear()), "A number of members that etcd is not made for");
}

#[test]
fn keys_are_secret_and_only_for_their_readers() {
    let expansion = expand(&arguments(1)).unwrap();
    for child in expansion.children.iter().filter(|c| c.resource_type == "ssh_file") {
        let path = child.arguments["path"].resolve(&|_, _| "".into());
        let mode = child.arguments["mode"].resolve(&|_, _| "".into());
        let path = path.as_str().unwrap();
        let is_key = path.ends_with(".key") || path.contains("/authority/");
        assert_eq!(mode.as_str() == Some("0600"), is_key, "{path:?}");
    }
    let without = expand(&with(arguments(1), "keep_authority", false)).unwrap();
    let kept = |e: &Expansion| shape(e).iter().filter(|(address, ..)| address.contains("authority")).count();
    assert_eq!((kept(&expansion), kept(&without)), (5, 0));
    assert!(expansion.outputs["client"].resolve(&|_, a| Value::from("x").secret_if(a == "private_key")).contains_secret());
}

fn applied(members: usize) -> Lab {
    let mut lab = Lab::default();
    let plan = lab.plan(Some(&arguments(members))).unwrap();
    lab.run(&plan, Policy::UnitsFirst, &Stop::Never);
    lab.world.settle();
    lab
}

#[test]
fn the_impact_is_told_in_plain_words() {
    let check = |lab: &Lab, wanted: &Object, expected: &[&str]| assert_eq!(lab.plan(Some(wanted)).unwrap().choreography.impact, expected);
    let changed = |members| with_setting(arguments(members), "snapshot-count", "5000");
    check(&Lab::default(), &arguments(3), &["forms a cluster of 3 members: a, b, c"]);
    check(
        &Lab::default(),
        &arguments(2),
        &["forms a cluster of 2 members: a, b", "2 members tolerate no failure, no more than 1 member would; an odd number is better"],
    );
    check(&applied(3), &changed(3), &["rolling restart, one member at a time: b, c, then the leader a; quorum kept 2 of 3"]);
    check(&applied(1), &changed(1), &["restart of the only member: etcd is unavailable meanwhile"]);
    check(
        &applied(2),
        &changed(2),
        &[
            "rolling restart, one member at a time: b, then the leader a; 2 members have no spare, so etcd is unavailable during each restart",
        ],
    );
    let mut stopped = applied(3);
    stopped.world.stop("c");
    check(&stopped, &arguments(3), &["starts member c"]);
    let destroyed = applied(3).plan(None).unwrap().choreography.impact;
    assert_eq!(destroyed, ["stops the whole cluster: a, b, c", "data of the cluster will be deleted on a, b, c"]);
}

#[test]
fn a_rolling_restart_goes_from_gate_to_gate() {
    let lab = applied(3);
    let plan = lab.plan(Some(&with_setting(arguments(3), "snapshot-count", "5000"))).unwrap();
    let gates: Vec<_> = plan.choreography.gates.iter().map(|g| (g.name.as_str(), g.limit)).collect();
    assert_eq!(
        gates,
        [
            ("healthy before", 30),
            ("healthy after member[\"b\"]", 300),
            ("healthy after member[\"c\"]", 300),
            ("healthy after member[\"a\"]", 300)
        ]
    );
    let restarted: BTreeSet<_> = plan.changes.iter().filter(|(_, (_, c))| c.action() == Action::Update).map(|(p, _)| p.clone()).collect();
    for path in &restarted {
        let Some(Key::Name(member)) = &path[0].key else { panic!("{path:?} is of no member") };
        let gate = Point::Gate(format!("healthy after member[\"{member}\"]"));
        assert!(plan.choreography.orderings.contains(&(Point::Child(path.clone()), gate)));
    }
    assert_eq!(restarted.len(), 6, "an environment and a unit each");
    let formation = Lab::default().plan(Some(&arguments(3))).unwrap();
    let (disks, others): (Vec<_>, Vec<_>) = formation.choreography.gates.iter().partition(|g| g.gate == "ssh_disk");
    assert_eq!(others.iter().map(|g| (g.name.as_str(), g.limit)).collect::<Vec<_>>(), [("formed", 120)]);
    assert_eq!(disks.len(), 3, "a disk each");
    // Nothing is made on a host before its disk is known to be good.
    for path in formation.changes.iter().filter(|(p, (_, c))| p[0].name == "member" && c.action() == Action::Create).map(|(p, _)| p) {
        let Some(Key::Name(member)) = &path[0].key else { panic!("{path:?} is of no member") };
        let first = (Point::Gate(format!("the disk of member[\"{member}\"] is fast enough")), Point::Child(path.clone()));
        assert!(formation.choreography.orderings.contains(&first), "{path:?}");
    }
    let untried = Lab::default().plan(Some(&with(arguments(3), "disk_limit", 0i64))).unwrap();
    assert!(untried.choreography.gates.iter().all(|g| g.gate != "ssh_disk"));
}

#[test]
fn a_new_member_does_not_listen_where_something_else_does() {
    let listening = |ports: &[i64]| {
        let mut arguments = arguments(3);
        let mut hosts = arguments["hosts"].as_entries().unwrap().clone();
        let mut host = hosts["b"].as_entries().unwrap().clone();
        host.insert("listening_ports".to_owned(), Value::list(Type::Number, ports.iter().map(|p| Value::from(*p)).collect()));
        hosts.insert("b".to_owned(), host.into());
        arguments.insert("hosts".to_owned(), hosts.into());
        arguments
    };
    let refused: Vec<_> = Lab::default().plan(Some(&listening(&[22, 2379, 2380]))).err().unwrap().into_iter().collect();
    assert!(refused.iter().all(|d| d.summary == "A port that is taken" && d.detail.contains("\"b\"")), "{refused:?}");
    let hints: Vec<&str> = refused.iter().flat_map(|d| &d.hints).map(String::as_str).collect();
    assert!(hints.len() == 2 && hints[0].contains("`client_port`") && hints[1].contains("`peer_port`"), "{hints:?}");
    // Another cluster beside it, with ports of its own.
    let other = with(with(listening(&[22, 2379, 2380]), "client_port", 2479i64), "peer_port", 2480i64);
    assert!(Lab::default().plan(Some(&other)).is_ok());
    // What is there listens there itself.
    let mut lab = Lab::default();
    let formed = lab.plan(Some(&arguments(3))).unwrap();
    lab.run(&formed, steps::Policy::UnitsFirst, &steps::Stop::Never);
    lab.world.settle();
    assert!(lab.plan(Some(&listening(&[22, 2379, 2380]))).is_ok());
}
