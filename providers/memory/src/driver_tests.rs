use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::executor::block_on;
use karmaform_model::{Action, PlanContext, Type, Value};

use super::*;
use crate::{Fault, Moment, Place};

struct NoConnections;

impl Connections for NoConnections {
    fn forward<'a>(&'a self, _: &'a Object, _: &'a str, _: u16) -> BoxFuture<'a, Result<SocketAddr, Diagnostic>> {
        Box::pin(async { Err(Diagnostic::error("no", "")) })
    }
}

fn object(parts: &[(&str, Value)]) -> Object {
    parts.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect()
}

fn connect(driver: &Arc<dyn Driver>, connection: &Object) -> Result<AnyClient, Diagnostic> {
    block_on(driver.connect(&Object::new(), connection, Arc::new(NoConnections)))
}

fn host(id: &str) -> Value {
    Value::object([("provider", "memory".into()), ("id", id.into())])
}

/// Looks, plans and applies as the engine does: one instance, no state but what `known` says.
struct Run<'a> {
    driver: &'a Arc<dyn Driver>,
    kind: &'a str,
    client: AnyClient,
}

impl<'a> Run<'a> {
    fn new(driver: &'a Arc<dyn Driver>, kind: &'a str, wanted: &Object) -> Self {
        let connection = wanted.get("host").and_then(Value::as_entries).cloned().unwrap_or_default();
        Self { driver, kind, client: connect(driver, &connection).unwrap() }
    }

    fn plan(&self, wanted: Option<&Object>, identity: &Object) -> Change {
        let specs = self.driver.specs();
        let spec = specs.iter().find(|s| s.name() == self.kind).unwrap();
        let ask = Ask {
            resource_type: self.kind.to_owned(),
            identity: spec.schema().identity(identity),
            known: None,
            wanted: None,
            begun: false,
        };
        let before = block_on(self.driver.observe(&self.client, &[ask])).remove(0).unwrap();
        spec.plan(&PlanContext { now: 0 }, before.as_ref(), wanted).unwrap()
    }

    fn apply(&self, change: &Change) -> Result<Option<Object>, Diagnostic> {
        block_on(self.driver.apply(&self.client, self.kind, change))
    }
}

fn thing(name: &str, value: &str) -> Object {
    object(&[("name", name.into()), ("value", value.into())])
}

#[test]
fn a_thing_comes_changes_and_goes() {
    let world = World::new();
    let driver = driver(world.clone());
    let wanted = thing("a", "one");
    let run = Run::new(&driver, "memory_thing", &wanted);
    let create = run.plan(Some(&wanted), &wanted);
    let made = run.apply(&create).unwrap().unwrap();
    assert_eq!(made["id"], "computed-1:a.id".into());
    assert_eq!(world.text(), "memory_thing - a = {\"id\":\"computed-1:a.id\",\"value\":\"one\"}\n");
    assert_eq!(run.plan(Some(&wanted), &wanted).action(), Action::NoOp);
    let other = thing("a", "two");
    let update = run.plan(Some(&other), &other);
    assert_eq!(update.action(), Action::Update);
    assert_eq!(run.apply(&update).unwrap().unwrap()["id"], made["id"]);
    assert_eq!(run.apply(&run.plan(None, &other)).unwrap(), None);
    assert_eq!(world.text(), "");
    let again = run.apply(&run.plan(Some(&wanted), &wanted)).unwrap().unwrap();
    assert_eq!(again["id"], "computed-2:a.id".into(), "a new one is another one");
    let calls = ["create memory_thing - a", "update memory_thing - a", "delete memory_thing - a", "create memory_thing - a"];
    assert_eq!(world.log().iter().filter(|l| !l.starts_with("observe") && !l.starts_with("connect")).collect::<Vec<_>>(), calls);
    assert_eq!(world.applies(), 4);
}

#[test]
fn each_host_has_its_own_things() {
    let world = World::new();
    let driver = driver(world.clone());
    for id in ["h1", "h2"] {
        let mut wanted = thing("a", id);
        wanted.insert("host".into(), host(id));
        let run = Run::new(&driver, "memory_item", &wanted);
        run.apply(&run.plan(Some(&wanted), &wanted)).unwrap();
        assert_eq!(run.plan(Some(&wanted), &wanted).action(), Action::NoOp, "the connection is seen again");
    }
    let lines: Vec<_> = world.text().lines().map(|l| l.split(" = ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["memory_item h1 a", "memory_item h2 a"]);
    world.fail_host("h1");
    assert!(connect(&driver, host("h1").as_entries().unwrap()).is_err());
    assert!(connect(&driver, host("h2").as_entries().unwrap()).is_ok());
    world.heal();
    assert!(connect(&driver, host("h1").as_entries().unwrap()).is_ok());
}

#[test]
fn failures_come_before_or_after_the_deed() {
    for (moment, done) in [(Moment::Before, false), (Moment::After, true), (Moment::HangBefore, false), (Moment::HangAfter, true)] {
        for fault in [Fault::apply(1), Fault::apply_to("memory_thing", "a")] {
            let world = World::new();
            let driver = driver(world.clone());
            world.inject(fault.at(moment).retryable());
            let wanted = thing("a", "x");
            let run = Run::new(&driver, "memory_thing", &wanted);
            let create = run.plan(Some(&wanted), &wanted);
            match driver.apply(&run.client, "memory_thing", &create).now_or_never() {
                Some(result) => assert!(result.unwrap_err().retryable && matches!(moment, Moment::Before | Moment::After)),
                None => assert!(matches!(moment, Moment::HangBefore | Moment::HangAfter)),
            }
            assert_eq!(!world.text().is_empty(), done, "{moment:?}");
            world.heal();
            let made = run.apply(&create).unwrap().unwrap();
            assert_eq!(made["id"], "computed-1:a.id".into(), "what was there is adopted");
        }
    }
    let world = World::new();
    let driver = driver(world.clone());
    world.inject(Fault::observe(2));
    let run = Run::new(&driver, "memory_thing", &thing("a", ""));
    let ask = |name: &str| Ask {
        resource_type: "memory_thing".into(),
        identity: object(&[("name", name.into())]),
        known: None,
        wanted: None,
        begun: false,
    };
    let answers = block_on(driver.observe(&run.client, &[ask("a"), ask("b"), ask("c")]));
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn twice_is_once() {
    let texts: Vec<_> = [false, true]
        .into_iter()
        .map(|repeat| {
            let world = World::new();
            world.repeat_applies(repeat);
            let driver = driver(world.clone());
            let mut text = String::new();
            for (wanted, fresh) in [(thing("a", "1"), false), (thing("a", "2"), true), (thing("a", "2"), true)] {
                let run = Run::new(&driver, "memory_thing", &wanted);
                let mut change = run.plan(Some(&wanted), &wanted);
                if let (true, Some(after)) = (fresh, change.after().cloned()) {
                    let before = change.before().unwrap().clone();
                    change =
                        Change::Update { before, after: after.into_iter().chain([("id".into(), Value::unknown(Type::String))]).collect() };
                }
                run.apply(&change).unwrap();
                text += &world.text();
            }
            text
        })
        .collect();
    assert_eq!(texts[0], texts[1]);
    assert!(texts[0].contains("computed-3:a.id"), "{}", texts[0]);
}

#[test]
fn a_world_is_preset_read_and_drifts() {
    let world = World::new();
    let driver = driver(world.clone());
    let lines = "memory_item h1 a = {\"id\":\"x\",\"mood\":\"good\",\"value\":[1,true]}\nmemory_thing - a = {\"id\":\"y\",\"secret_value\":\"pw\"}\n";
    world.preset(&format!("# a comment\n\n{lines}data memory_host {{\"address\":\"h1\"}} = {{\"hostname\":\"one\"}}\n")).unwrap();
    assert_eq!(world.text(), lines);
    for wrong in ["memory_thing - a = {\"nme\":1}", "memory_thing - a = {\"secret_value\":{}}", "memory_thing = {}"] {
        assert!(world.preset(wrong).is_err(), "{wrong}");
    }
    let client = connect(&driver, &object(&[("address", "h1".into())])).unwrap();
    let facts = block_on(driver.read(&client, "memory_host", &object(&[("address", "h1".into())]))).unwrap();
    assert_eq!(facts["hostname"], "one".into());
    assert_eq!(facts["connection"].get("id"), Some(&"h1".into()));
    assert_eq!(facts["connection"].get("provider"), Some(&"memory".into()));
    assert_eq!(block_on(driver.read(&client, "memory_host", &object(&[("address", "h9".into())]))).unwrap_err().summary, "Nothing there");

    let at = connect(&driver, facts["connection"].as_entries().unwrap()).unwrap();
    let ask =
        Ask { resource_type: "memory_item".into(), identity: object(&[("name", "a".into())]), known: None, wanted: None, begun: false };
    let seen = || block_on(driver.observe(&at, std::slice::from_ref(&ask))).remove(0).unwrap();
    let first = seen().unwrap();
    assert_eq!((&first["mood"], &first["host"]), (&"good".into(), &facts["connection"]));
    let place = Place::new("memory_item", "h1", "a");
    assert!(world.change(&place, |o| drop(o.insert("value".into(), 7i64.into()))));
    assert_eq!(seen().unwrap()["value"], 7i64.into());
    world.on_observe(|_, _, object| drop(object.insert("mood".into(), "bad".into())));
    assert_eq!(seen().unwrap()["mood"], "bad".into());
    assert!(world.remove(&place).is_some() && seen().is_none());
    assert!(!world.change(&place, |_| {}));
}

#[test]
fn hooks_play_the_outside() {
    let world = World::new();
    let driver = driver(world.clone());
    world.on_fill(|blank| (blank.attribute == "id").then(|| format!("{}#{}", blank.identity, blank.round).into()));
    world.on_apply(|world, applied| {
        if applied.place.identity == "bad" {
            return Err(Diagnostic::error("It does not start", ""));
        }
        world.change(applied.place, |o| drop(o.insert("value".into(), "made of it".into())));
        Ok(())
    });
    let run = Run::new(&driver, "memory_thing", &thing("a", ""));
    let create = |name: &str| run.plan(Some(&thing(name, "x")), &thing(name, "x"));
    let made = run.apply(&create("a")).unwrap().unwrap();
    assert_eq!((&made["id"], &made["value"]), (&"a#1".into(), &"made of it".into()));
    assert_eq!(run.apply(&create("bad")).unwrap_err().summary, "It does not start");

    let asked = AtomicUsize::new(0);
    let check = || block_on(driver.check(&run.client, "memory_ready", &object(&[("what", "w".into())]))).unwrap();
    assert!(matches!(check(), GateAnswer::Passed(_)));
    world.on_gate(move |world, gate, arguments| {
        assert_eq!((gate, &arguments["what"]), ("memory_ready", &"w".into()));
        let things = world.list("memory_thing").len();
        Ok(match asked.fetch_add(1, Ordering::SeqCst) {
            0 => GateAnswer::Waiting(format!("{things} things")),
            _ => GateAnswer::Passed("now".into()),
        })
    });
    assert_eq!([check(), check()], [GateAnswer::Waiting("2 things".into()), GateAnswer::Passed("now".into())]);
}

#[test]
fn a_call_with_something_unknown_is_refused() {
    let world = World::new();
    let driver = driver(world.clone());
    let mut wanted = thing("a", "x");
    wanted.insert("value".into(), Value::tuple(vec![Value::unknown(Type::String)]));
    let run = Run::new(&driver, "memory_thing", &wanted);
    let error = run.apply(&Change::Create { after: wanted }).unwrap_err();
    assert!(error.detail.contains("not known: value"), "{}", error.detail);
    assert!(run.apply(&Change::NoOp { object: thing("a", "x") }).is_err());
    assert_eq!(world.text(), "");
}

#[test]
fn marks_stay_with_what_was_wanted_and_leave_what_is_seen() {
    let world = World::new();
    let driver = driver(world.clone());
    let mut wanted = thing("a", "pw");
    wanted.insert("value".into(), Value::from("pw").secret());
    wanted.insert("secret_value".into(), "s3".into());
    let run = Run::new(&driver, "memory_thing", &wanted);
    let made = run.apply(&run.plan(Some(&wanted), &wanted)).unwrap().unwrap();
    assert!(made["value"].secret && made["secret_value"].secret);
    let Change::Delete { before } = run.plan(None, &wanted) else { panic!() };
    assert!(!before["value"].secret && before["secret_value"].secret);
}

#[test]
fn a_delay_is_a_delay() {
    let world = World::new();
    world.set_delay(20);
    let driver = driver(world);
    let start = std::time::Instant::now();
    connect(&driver, &Object::new()).unwrap();
    assert!(start.elapsed().as_millis() >= 20);
}

#[test]
fn who_uses_it_wrongly_is_told_with_what() {
    let world = World::new();
    let driver = driver(world.clone());
    let client = connect(&driver, &Object::new()).unwrap();
    let create = Change::Create { after: thing("a", "one") };
    let why = block_on(driver.apply(&client, "memory_other", &create)).unwrap_err();
    assert_eq!((why.summary.as_str(), why.detail.as_str()), ("Wrong use of a provider", "\"memory\" has no \"memory_other\"."));
    let foreign: AnyClient = Arc::new("another provider's".to_owned());
    let why = block_on(driver.apply(&foreign, "memory_thing", &create)).unwrap_err();
    assert_eq!(why.detail, "\"memory\" was given a connection that it did not open.");
    let no_op = Change::NoOp { object: thing("a", "one") };
    assert!(block_on(driver.apply(&client, "memory_thing", &no_op)).unwrap_err().detail.contains("no single change"));
    assert_eq!(world.text(), "", "nothing was done");
}
