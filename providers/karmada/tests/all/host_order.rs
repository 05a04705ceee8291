//! What changes on hosts comes in an order, and what would go wrong there is said before: the choreography of a control plane on hosts.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Change, ChildChange, ChildStep, Choreography, Diagnostics, Object, Point, Scene, Value};
use serde_json::json;

use crate::common::{self, address, composite, expand, later, path};
use crate::on_hosts::{on, plain};

/// A scene in which these units change so.
fn choreograph(before: Option<&Object>, wanted: &Object, changes: &BTreeMap<String, (Change, bool)>) -> Result<Choreography, Diagnostics> {
    choreograph_without("nobody", before, wanted, changes)
}

/// The same while a host is away.
fn choreograph_without(
    away: &str,
    before: Option<&Object>,
    wanted: &Object,
    changes: &BTreeMap<String, (Change, bool)>,
) -> Result<Choreography, Diagnostics> {
    let address = address();
    let all = expand(wanted).unwrap();
    let unchanged = Change::NoOp { object: Object::new() };
    let mut scene = Scene { address: &address, before, wanted: Some(wanted), children: BTreeMap::new() };
    let extra: Vec<(Vec<ChildStep>, String)> = changes
        .keys()
        .filter(|n| !all.children.iter().any(|c| path(&c.path) == **n))
        .map(|n| {
            let part = |text: &str| text.split('"').nth(1).unwrap().to_owned();
            let (host, own) = n.split_once('/').unwrap();
            let name = own.split('[').next().unwrap();
            (vec![ChildStep::keyed("host", &part(host)), ChildStep::keyed(name, &part(own))], "ssh_systemd_unit".to_owned())
        })
        .collect();
    let listed: Vec<_> = all.children.iter().map(|c| (c.path.clone(), c.resource_type.clone())).chain(extra).collect();
    for (child, kind) in &listed {
        let (change, in_state) = changes.get(&path(child)).map_or((&unchanged, before.is_some()), |(c, s)| (c, *s));
        let unseen = path(child).starts_with(&format!("host[\"{away}\"]"));
        scene.children.insert(child.clone(), ChildChange { resource_type: kind, change, observed: None, in_state, unseen });
    }
    composite().choreograph(&scene)
}

fn point(point: &Point) -> String {
    match point {
        Point::Child(steps) => path(steps),
        Point::Gate(name) => format!("<{name}>"),
    }
}

#[test]
fn hosts_change_one_after_the_other_and_api_servers_first() {
    let unit = |host: &str, component: &str| format!("host[\"{host}\"]/unit[\"{component}\"]");
    let update = || {
        let object = Object::from([("content".to_owned(), Value::from("x"))]);
        (Change::Update { before: object.clone(), after: object }, true)
    };
    let changes: BTreeMap<_, _> = ["a", "b", "c"].iter().flat_map(|h| ["apiserver", "scheduler"].map(|c| (unit(h, c), update()))).collect();
    let made = choreograph(Some(&plain()), &plain(), &changes).unwrap();
    let orderings: Vec<_> = made.orderings.iter().map(|(a, b)| format!("{} -> {}", point(a), point(b))).collect();
    for expected in [
        "host[\"a\"]/unit[\"apiserver\"] -> <the Karmada API on a answers>",
        "<the Karmada API on a answers> -> host[\"b\"]/unit[\"apiserver\"]",
        "<the Karmada API on b answers> -> host[\"c\"]/unit[\"apiserver\"]",
        "<the Karmada API on c answers> -> host[\"a\"]/unit[\"scheduler\"]",
        "host[\"a\"]/unit[\"scheduler\"] -> host[\"b\"]/unit[\"scheduler\"]",
        "host[\"b\"]/unit[\"scheduler\"] -> host[\"c\"]/unit[\"scheduler\"]",
        "<the Karmada API on c answers> -> <the Karmada API answers>",
    ] {
        assert!(orderings.iter().any(|o| o == expected), "no {expected} in\n{}", orderings.join("\n"));
    }
    assert!(
        made.impact.iter().any(|l| l.contains("restarts the Karmada API, one host at a time; the other 2 hosts serve")),
        "{:?}",
        made.impact
    );
    // Each gate asks its own host.
    let ways: BTreeSet<_> = made
        .gates
        .iter()
        .filter(|g| g.name.contains(" on "))
        .map(|g| {
            let cluster = g.arguments["cluster"].resolve(&|_, _| later());
            cluster.get("via").and_then(|v| v.get("id")).and_then(Value::as_str).unwrap().to_owned()
        })
        .collect();
    assert_eq!(ways.len(), 3);
    let single = on(&["a"], &json!({}));
    let alone = choreograph(Some(&single), &single, &BTreeMap::from([(unit("a", "apiserver"), update())])).unwrap();
    assert!(alone.impact.iter().any(|l| l.contains("1 host, so it is unavailable for moments")), "{:?}", alone.impact);
}

#[test]
fn nobody_waits_for_a_host_that_is_away() {
    let object = || Object::from([("content".to_owned(), Value::from("x"))]);
    let unit = |host: &str, component: &str| format!("host[\"{host}\"]/unit[\"{component}\"]");
    let update = || (Change::Update { before: object(), after: object() }, true);
    let changes: BTreeMap<_, _> =
        ["a", "b", "c"].iter().flat_map(|h| ["apiserver", "scheduler", "haproxy"].map(|c| (unit(h, c), update()))).collect();
    let vip = on(&["a", "b", "c"], &json!({ "load_balancer": { "vip": "10.0.0.9" } }));
    let made = choreograph_without("a", Some(&vip), &vip, &changes).unwrap();
    let orderings: Vec<_> = made.orderings.iter().map(|(a, b)| (point(a), point(b))).collect();
    // What comes after anything of the host that is away, or after its gates, is of that host.
    let of_a = |p: &str| p.starts_with("host[\"a\"]") || p.contains(" on a ");
    let waiting: Vec<_> = orderings.iter().filter(|(first, then)| of_a(first) && !of_a(then)).collect();
    assert!(waiting.is_empty(), "{waiting:?}");
    for expected in [
        (unit("b", "apiserver"), "<the Karmada API on b answers>".to_owned()),
        ("<the Karmada API on c answers>".to_owned(), unit("a", "apiserver")),
        ("<the Karmada API on c answers>".to_owned(), unit("b", "scheduler")),
        (unit("c", "scheduler"), unit("a", "scheduler")),
    ] {
        assert!(orderings.contains(&expected), "no {expected:?} in {orderings:?}");
    }
}

#[test]
fn a_virtual_ip_that_a_host_has_is_refused_where_nobody_is_led_to_it_yet() {
    let with = |block: serde_json::Value, held: serde_json::Value| {
        on(&["a", "b"], &json!({ "hosts": { "b": { "interfaces": held } }, "load_balancer": block }))
    };
    let (vip, held) = (|| json!({ "vip": "10.0.0.9" }), || json!({ "10.0.0.9": "eth1" }));
    let told = |before: Option<&Object>, wanted: &Object| match choreograph(before, wanted, &BTreeMap::new()) {
        Ok(_) => String::new(),
        Err(found) => found.iter().map(|d| format!("{}: {}", d.summary, d.detail)).collect(),
    };
    let wanted = with(vip(), held());
    let why = "A virtual IP that a host has for itself: `load_balancer.vip` is 10.0.0.9, which the host \"b\" has. \
               It must be one that nobody has, so that it can go from host to host.";
    for before in [None, Some(plain()), Some(with(json!({ "vip": "10.0.0.8" }), json!({})))] {
        assert_eq!(told(before.as_ref(), &wanted), why);
    }
    // It is there already, by whomever, or somebody else's load balancer becomes ours.
    for before in [with(vip(), json!({})), with(vip(), held()), with(json!({ "address": "10.0.0.9" }), json!({}))] {
        assert_eq!(told(Some(&before), &wanted), "");
    }
    assert_eq!(told(None, &with(vip(), json!({}))), "");
    assert_eq!(told(None, &with(json!({ "address": "10.0.0.9" }), held())), "", "it is theirs");
}

#[test]
fn hosts_that_get_other_keys_change_one_after_the_other() {
    let vip = |hosts: &[&str]| on(hosts, &json!({ "load_balancer": { "vip": "10.0.0.9" } }));
    let object = || Object::from([("content".to_owned(), Value::from("x"))]);
    let unit = |host: &str, what: &str| format!("host[\"{host}\"]/unit[\"{what}\"]");
    // The state knows what is there by the keys of before.
    let update = || (Change::Update { before: object(), after: object() }, false);
    let changes: BTreeMap<_, _> = ["x", "y", "z"].iter().flat_map(|h| ["apiserver", "haproxy"].map(|c| (unit(h, c), update()))).collect();
    let made = choreograph(Some(&vip(&["a", "b", "c"])), &vip(&["x", "y", "z"]), &changes).unwrap();
    let orderings: Vec<_> = made.orderings.iter().map(|(a, b)| (point(a), point(b))).collect();
    for expected in [
        ("<the Karmada API on x answers>".to_owned(), unit("y", "apiserver")),
        ("<the Karmada API on y answers>".to_owned(), unit("z", "apiserver")),
        (unit("x", "haproxy"), unit("y", "haproxy")),
        (unit("y", "haproxy"), unit("z", "haproxy")),
    ] {
        assert!(orderings.contains(&expected), "no {expected:?} in {orderings:?}");
    }
    assert!(made.impact.iter().any(|l| l.starts_with("restarts haproxy on x, y, z, one host after the other")), "{:?}", made.impact);
}

#[test]
fn nobody_waits_for_what_comes_when_all_of_it_runs() {
    let unit = |host: &str| format!("host[\"{host}\"]/unit[\"aggregated-apiserver\"]");
    let object = || Object::from([("content".to_owned(), Value::from("x"))]);
    let mut changes = BTreeMap::from(["a", "b"].map(|h| (unit(h), (Change::Update { before: object(), after: object() }, true))));
    let gates = |changes: &BTreeMap<String, (Change, bool)>| {
        let made = choreograph(None, &plain(), changes).unwrap();
        let one_after_the_other = made.orderings.iter().any(|(first, then)| point(first) == unit("a") && point(then) == unit("b"));
        (made.gates.iter().filter(|g| g.name.ends_with("serves clusters")).count(), one_after_the_other)
    };
    assert_eq!(gates(&changes), (2, false), "the gate of a is between them");
    // It is made when all of them run, so no API server serves clusters before.
    let found_by = "api[\"apiservice v1alpha1.cluster.karmada.io\"]".to_owned();
    changes.insert(found_by.clone(), (Change::Create { after: Object::new() }, false));
    assert_eq!(gates(&changes), (0, true));
    // Nor is it trusted before where its CA is another one.
    changes.insert(found_by, (Change::Update { before: Object::new(), after: Object::new() }, true));
    assert_eq!(gates(&changes), (0, true));
}

#[test]
fn a_host_that_leaves_goes_last() {
    let (three, two) = (plain(), on(&["a", "b"], &json!({})));
    let object = || Object::from([("content".to_owned(), Value::from("x"))]);
    let changes = BTreeMap::from([
        ("host[\"c\"]/unit[\"apiserver\"]".to_owned(), (Change::Delete { before: object() }, true)),
        ("host[\"b\"]/unit[\"apiserver\"]".to_owned(), (Change::Update { before: object(), after: object() }, true)),
    ]);
    let made = choreograph(Some(&three), &two, &changes).unwrap();
    let ordered = made.orderings.iter().map(|(a, b)| (point(a), point(b)));
    let expected = ("host[\"b\"]/unit[\"apiserver\"]".to_owned(), "host[\"c\"]/unit[\"apiserver\"]".to_owned());
    assert!(ordered.into_iter().any(|o| o == expected));
    assert!(made.impact.iter().any(|l| l.contains("stops the Karmada API server on c")), "{:?}", made.impact);
}

#[test]
fn programs_of_before_go_when_nothing_runs_them() {
    let object = || Object::from([("content".to_owned(), Value::from("x"))]);
    let unit = "host[\"b\"]/unit[\"scheduler\"]".to_owned();
    let program = "host[\"b\"]/program[\"karmada-1.18.0/karmada-scheduler\"]".to_owned();
    let changes = BTreeMap::from([
        (unit.clone(), (Change::Update { before: object(), after: object() }, true)),
        (program.clone(), (Change::Delete { before: object() }, true)),
    ]);
    let made = choreograph(Some(&plain()), &plain(), &changes).unwrap();
    assert!(made.orderings.iter().any(|(a, b)| point(a) == unit && point(b) == program), "{:?}", made.orderings);
}

#[test]
fn clocks_that_are_off_are_in_the_way_of_certificates_alone() {
    let (good, late) = (plain(), on(&["a", "b", "c"], &json!({ "hosts": { "b": { "clock_offset": -95 } } })));
    let object =
        |serial: &str, certificate: Value| Object::from([("serial".to_owned(), serial.into()), ("certificate".to_owned(), certificate)]);
    let changes = |name: &str, change: Change| BTreeMap::from([(name.to_owned(), (change, true))]);
    let admin = |certificate: Value| {
        let (before, after) = (object("1", "old".into()), object("2", certificate));
        changes("certificate[\"admin\"]", Change::Update { before, after })
    };
    let unit = || changes("host[\"b\"]/unit[\"scheduler\"]", Change::Update { before: Object::new(), after: object("1", "new".into()) });
    let summaries = |before: Option<&Object>, changes: &BTreeMap<String, (Change, bool)>| match choreograph(before, &late, changes) {
        Ok(_) => Vec::new(),
        Err(found) => found.iter().map(|d| (d.summary.clone(), d.detail.clone())).collect(),
    };
    let detail = "The clock of the host \"b\" is 95 s off; at most 60 s are allowed where certificates are made. \
                  They would not be valid there yet, or end early.";
    let refused = vec![("A host's clock is wrong".to_owned(), detail.to_owned())];
    assert_eq!(summaries(None, &BTreeMap::new()), refused, "it is only being made");
    assert_eq!(summaries(Some(&good), &admin(later())), refused, "one is renewed");
    let first = changes("ca", Change::Create { after: object("1", later()) });
    assert_eq!(summaries(Some(&good), &first), refused, "one is made");
    // What needs none goes on, and so do repairs.
    let gone = changes("certificate[\"admin\"]", Change::Delete { before: object("1", "old".into()) });
    for changes in [unit(), admin("old".into()), gone, BTreeMap::new()] {
        let made = choreograph(Some(&good), &late, &changes).unwrap();
        let line = "clocks of hosts are off, b by 95 s: plans that make certificates are refused until they are right";
        assert!(made.impact.iter().any(|l| l == line), "{:?}", made.impact);
        let made = choreograph(Some(&good), &good, &changes).unwrap();
        assert!(!made.impact.iter().any(|l| l.contains("clocks")), "{:?}", made.impact);
    }
}

#[test]
fn ports_that_are_taken_are_told_before_anything_is_done() {
    let taken = on(&["a", "b"], &json!({ "hosts": { "b": { "listening_ports": [22, 8443] } } }));
    let refused = choreograph(None, &taken, &BTreeMap::new()).unwrap_err();
    let text: String = refused.iter().map(|d| format!("{} {}", d.detail, d.hints.join(" "))).collect();
    assert!(text.contains("webhook is to listen on port 8443 of the host \"b\"") && text.contains("ss -ltnp"), "{text}");
    let vip = json!({ "load_balancer": { "vip": "10.0.0.9" }, "hosts": { "b": { "listening_ports": [6443] } } });
    let refused = choreograph(None, &on(&["a", "b"], &vip), &BTreeMap::new()).unwrap_err();
    assert!(refused.iter().any(|d| d.detail.contains("haproxy is to listen on port 6443 of the host \"b\"")), "{refused:?}");
    // What listens there is ours, unless it is another port.
    assert!(choreograph(Some(&taken), &taken, &BTreeMap::new()).is_ok());
    let moved = on(&["a", "b"], &json!({ "ports": { "webhook": 9000 }, "hosts": { "b": { "listening_ports": [22, 9000] } } }));
    assert!(choreograph(Some(&taken), &moved, &BTreeMap::new()).is_err());
}

#[test]
fn the_network_is_asked_for_a_virtual_ip_that_is_new() {
    let with = |vip: &str| on(&["a", "b"], &json!({ "load_balancer": { "vip": vip, "interface": "eth7" } }));
    let create = || (Change::Create { after: Object::new() }, false);
    let unit = |host: &str| format!("host[\"{host}\"]/unit[\"keepalived\"]");
    let new: BTreeMap<_, _> = ["a", "b"].map(|h| (unit(h), create())).into();
    let asked =
        |made: &Choreography| -> Vec<String> { made.gates.iter().filter(|g| g.gate == "ssh_unused").map(|g| g.name.clone()).collect() };
    let made = choreograph_without("a", None, &with("10.0.0.9"), &new).unwrap();
    assert_eq!(asked(&made), ["nobody else has 10.0.0.9"]);
    for host in ["a", "b"] {
        let waits = |(first, then): &(Point, Point)| point(first) == "<nobody else has 10.0.0.9>" && point(then) == unit(host);
        assert!(made.orderings.iter().any(waits), "{host}: {:?}", made.orderings);
    }
    let gate = made.gates.iter().find(|g| g.gate == "ssh_unused").unwrap();
    let value = |name: &str| gate.arguments[name].resolve(&|_, _| later());
    assert_eq!((value("address"), value("interface")), ("10.0.0.9".into(), "eth7".into()));
    // Who is away asks nobody.
    assert_eq!(value("host").get("id").and_then(Value::as_str), Some("10.0.0.12:22"));
    assert_eq!(value("owners").as_items().map(<[Value]>::len), Some(2));
    // Another one is asked for, one that people are led to is not; nor one that nobody is about to take.
    assert_eq!(asked(&choreograph(Some(&with("10.0.0.8")), &with("10.0.0.9"), &new).unwrap()).len(), 1);
    assert!(asked(&choreograph(Some(&with("10.0.0.9")), &with("10.0.0.9"), &new).unwrap()).is_empty());
    assert!(asked(&choreograph(None, &with("10.0.0.9"), &BTreeMap::new()).unwrap()).is_empty());
}

#[test]
fn a_control_plane_does_not_move_between_places() {
    let refused = choreograph(Some(&common::arguments()), &plain(), &BTreeMap::new()).unwrap_err();
    assert!(refused.iter().any(|d| d.detail.contains("It is \"kubernetes\" and would be \"hosts\"")));
}

#[test]
fn a_load_balancer_changes_one_host_after_the_other() {
    let with = |hosts: &[&str]| on(hosts, &json!({ "load_balancer": { "vip": "10.0.0.100" } }));
    let object = || Object::from([("content".to_owned(), Value::from("x"))]);
    let update = || (Change::Update { before: object(), after: object() }, true);
    let unit = |host: &str, program: &str| format!("host[\"{host}\"]/unit[\"{program}\"]");
    let changes = BTreeMap::from([
        (unit("a", "haproxy"), update()),
        (unit("b", "haproxy"), update()),
        (unit("c", "haproxy"), (Change::Delete { before: object() }, true)),
    ]);
    let made = choreograph(Some(&with(&["a", "b", "c"])), &with(&["a", "b"]), &changes).unwrap();
    let orderings: Vec<_> = made.orderings.iter().map(|(a, b)| format!("{} -> {}", point(a), point(b))).collect();
    for expected in [
        "host[\"a\"]/unit[\"haproxy\"] -> host[\"b\"]/unit[\"haproxy\"]",
        "host[\"b\"]/unit[\"haproxy\"] -> host[\"c\"]/unit[\"haproxy\"]",
        "host[\"b\"]/unit[\"haproxy\"] -> <the Karmada API answers at 10.0.0.100>",
    ] {
        assert!(orderings.iter().any(|o| o == expected), "no {expected} in\n{}", orderings.join("\n"));
    }
    let expected =
        ["restarts haproxy on a, b, one host after the other: connections through it are made anew", "takes the load balancer away from c"];
    assert!(expected.iter().all(|e| made.impact.iter().any(|l| l == e)), "{:?}", made.impact);
    // What is refused on one host is not tried on the next one.
    let own = on(&["a", "b"], &json!({ "load_balancer": { "vip": "10.0.0.100", "haproxy_source": "/srv/haproxy" } }));
    let all = |host: &str| {
        let parts = ["unit[\"haproxy\"]", "program[\"haproxy\"]", "file[\"load-balancer/haproxy.cfg\"]"];
        parts.map(|part| format!("host[\"{host}\"]/{part}"))
    };
    let package = "host[\"b\"]/package[\"haproxy\"]".to_owned();
    let mut changes: BTreeMap<_, _> = ["a", "b"].iter().flat_map(|h| all(h).map(|name| (name, update()))).collect();
    changes.insert(package.clone(), (Change::Delete { before: object() }, true));
    let made = choreograph(Some(&own), &own, &changes).unwrap();
    let orderings: Vec<_> = made.orderings.iter().map(|(a, b)| (point(a), point(b))).collect();
    let waits = |first: String, then: &String| orderings.contains(&(first, then.clone()));
    assert!(all("b").iter().all(|then| waits(unit("a", "haproxy"), then)), "{orderings:?}");
    assert!(waits(unit("b", "haproxy"), &package), "{orderings:?}");
    let gone = BTreeMap::from([(unit("a", "haproxy"), (Change::Delete { before: object() }, true))]);
    let made = choreograph(Some(&with(&["a"])), &on(&["a"], &json!({})), &gone).unwrap();
    assert!(made.gates.is_empty() && made.impact.iter().any(|l| l.starts_with("removes the load balancer")), "{:?}", made.impact);
}

#[test]
fn what_components_would_suffer_from_is_said_before_they_come() {
    let create = || (Change::Create { after: Object::new() }, false);
    let units = |hosts: &[&str]| hosts.iter().map(|h| (format!("host[\"{h}\"]/unit[\"apiserver\"]"), create())).collect::<BTreeMap<_, _>>();
    let facts = |free: i64| json!({ "disks": { "/": free, "/var": 1 }, "concerns": ["swap is on"], "firewall": "ufw" });
    let some = on(&["a", "b", "c"], &json!({ "hosts": { "a": facts(1 << 40), "c": facts(1 << 40) } }));
    let made = choreograph(None, &some, &units(&["a", "b", "c"])).unwrap();
    let has = |start: &str| made.impact.iter().any(|l| l.starts_with(start));
    assert!(has("on a, c: swap is on") && has("firewalls on a (ufw), c (ufw) must let"), "{:?}", made.impact);
    assert!(
        made.impact.iter().any(|l| l.contains("TCP ports 5443, 7443, 8443, and people and members TCP port 5443")),
        "{:?}",
        made.impact
    );
    // Nor is anything in front of them.
    let expected = "the kubeconfig leads to the API server on a, and by contexts of their own to those on b, c;";
    assert!(has(expected), "{:?}", made.impact);
    // Said once, when it comes to a host, and not of hosts where nothing comes.
    let later = choreograph(Some(&some), &some, &units(&["b"])).unwrap();
    assert!(!later.impact.iter().any(|l| l.contains("swap") || l.contains("firewall")), "{:?}", later.impact);

    let programs = |n: usize| {
        let names = ["scheduler", "webhook", "controller-manager"].map(|c| format!("host[\"a\"]/program[\"karmada-1.19.0/karmada-{c}\"]"));
        names.into_iter().take(n).map(|name| (name, create())).collect::<BTreeMap<_, _>>()
    };
    let small = on(&["a", "b", "c"], &json!({ "hosts": { "a": facts(130 << 20) } }));
    assert!(choreograph(None, &small, &programs(2)).is_ok());
    let refused = choreograph(None, &small, &programs(3)).unwrap_err();
    let detail = &refused.iter().next().unwrap().detail;
    assert!(detail.contains("130 MiB are free where /opt/karmaform/karmada-prod is to be; 3 programs need at least 192 MiB"), "{detail}");
}
