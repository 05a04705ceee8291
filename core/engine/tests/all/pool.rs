//! Connections: opened once, failures remembered, tried anew only when asked to.

use futures::executor::block_on;
use futures::future::join_all;
use karmaform_engine::Pool;
use karmaform_model::{Connections as _, Object, Value};

use crate::lab::Lab;

fn host(id: &str) -> Object {
    [("provider".to_owned(), "fake".into()), ("id".to_owned(), id.into())].into()
}

#[test]
fn a_connection_is_opened_once_for_all_who_ask() {
    let lab = Lab::new();
    let pool = Pool::new(lab.registry.catalog().clone(), Default::default());
    let (one, two) = (host("h1"), host("h2"));
    let clients = block_on(join_all([pool.open("fake", &one), pool.open("fake", &one), pool.open("fake", &two)]));
    assert!(clients.iter().all(Result::is_ok));
    assert_eq!(lab.world.lock().connects, ["h1", "h2"]);
    // Other credentials are another connection, though it leads to the same place.
    let mut other = host("h1");
    other.insert("password".into(), "p".into());
    assert!(block_on(pool.open("fake", &other)).is_ok());
    assert_eq!(lab.world.lock().connects.len(), 3);
}

#[test]
fn a_failure_is_remembered_until_someone_tries_anew() {
    let lab = Lab::new();
    let pool = Pool::new(lab.registry.catalog().clone(), Default::default());
    lab.world.lock().unreachable.insert("h1".into());
    let connection = host("h1");
    for _ in 0..3 {
        assert_eq!(block_on(pool.open("fake", &connection)).err().unwrap().summary, "Host can't be reached");
    }
    assert_eq!(lab.world.lock().connects.len(), 1);
    assert!(block_on(pool.reopen("fake", &connection)).is_err());
    lab.world.lock().unreachable.clear();
    assert!(block_on(pool.reopen("fake", &connection)).is_ok());
    assert!(block_on(pool.reopen("fake", &connection)).is_ok());
    assert_eq!(lab.world.lock().connects.len(), 3, "what is open stays open");
}

#[test]
fn a_way_through_a_host_that_failed_once_is_tried_anew() {
    let lab = Lab::new();
    let pool = Pool::new(lab.registry.catalog().clone(), Default::default());
    lab.world.lock().unreachable.insert("h1".into());
    let connection = host("h1");
    let summary = || block_on(pool.forward(&connection, "10.0.0.1", 22)).unwrap_err().summary;
    assert_eq!(summary(), "Host can't be reached");
    // At the same time it is tried once for all.
    let together = block_on(join_all([pool.forward(&connection, "10.0.0.1", 22), pool.forward(&connection, "10.0.0.2", 22)]));
    assert!(together.iter().all(|t| t.as_ref().is_err_and(|e| e.summary == "Host can't be reached")));
    lab.world.lock().unreachable.clear();
    assert_eq!(summary(), "No way through this connection", "the host is there, and now its provider answers");
    let opened = lab.world.lock().connects.len();
    assert_eq!(summary(), "No way through this connection");
    assert_eq!(lab.world.lock().connects.len(), opened, "what is open stays open");
}

#[test]
fn of_several_ways_the_first_that_works_is_taken() {
    let lab = Lab::new();
    let pool = Pool::new(lab.registry.catalog().clone(), Default::default());
    lab.world.lock().unreachable.insert("h1".into());
    let ways = Value::tuple(["h1", "h2", "h3"].map(|h| host(h).into()).into());
    let any: Object = [("provider".to_owned(), "fake".into()), ("any_of".to_owned(), ways)].into();
    // The hosts of this world lead nowhere, so that all are tried; the dead one no more often than it must be.
    let error = block_on(pool.forward(&any, "10.0.0.1", 22)).unwrap_err();
    assert_eq!(error.summary, "No way through this connection");
    assert_eq!(lab.world.lock().connects, ["h1", "h2", "h3", "h1"], "what failed is tried anew when no other is left");
    let none: Object = [("provider".to_owned(), "fake".into()), ("any_of".to_owned(), Value::tuple(Vec::new()))].into();
    assert_eq!(block_on(pool.forward(&none, "10.0.0.1", 22)).unwrap_err().summary, "No way there");
}

#[test]
fn wrong_connections_are_explained() {
    let lab = Lab::new();
    let pool = Pool::new(lab.registry.catalog().clone(), Default::default());
    let summary = |connection: Object| block_on(pool.forward(&connection, "10.0.0.1", 22)).unwrap_err().summary;
    assert_eq!(summary(Object::new()), "Not a connection");
    assert_eq!(summary([("provider".to_owned(), "zzz".into())].into()), "Unknown provider");
    assert_eq!(summary(host("h1")), "No way through this connection");
}

#[test]
fn what_a_client_keeps_leads_nowhere_after_the_run() {
    let lab = Lab::new();
    let pool = Pool::new(lab.registry.catalog().clone(), Default::default());
    assert!(block_on(pool.open("fake", &host("h1"))).is_ok());
    let through = lab.world.lock().through.take().expect("what it was given");
    assert_eq!(block_on(through.forward(&host("h2"), "10.0.0.1", 22)).unwrap_err().summary, "No way through this connection");
    drop(pool);
    let error = block_on(through.forward(&host("h2"), "10.0.0.1", 22)).unwrap_err();
    assert_eq!(
        (error.summary.as_str(), error.detail.as_str()),
        ("Connections are closed", "A connection was asked for after the end of the run. This is a bug.")
    );
}
