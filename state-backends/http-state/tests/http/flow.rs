//! What is asked when all goes well, and what counts as no state.

use karmaform_http_state::HttpBackend;
use karmaform_model::{BackendError, LockId, StateBackend as _, Value};

use crate::server::{Act, Server, answer, open, state, who};

#[tokio::test]
async fn a_run_is_a_few_requests_as_terraform_makes_them() {
    let server = Server::good();
    let run = server.open();
    assert!(run.locks() && run.is_shared() && run.lease().is_none());
    assert_eq!(run.place(), format!("{}/state", server.endpoint));
    let id = run.lock(&who("first")).await.unwrap();
    assert_eq!(run.read().await.unwrap(), None);
    run.write(None, &state(1, "one")).await.unwrap();
    run.write(Some(1), &state(2, "two")).await.unwrap();
    run.unlock(&id).await.unwrap();
    assert_eq!(run.read().await.unwrap(), Some(state(2, "two")));
    assert_eq!(
        server.lines(),
        [
            "LOCK /lock",
            "GET /state",
            "GET /state",
            "POST /state?ID=first",
            "GET /state",
            "POST /state?ID=first",
            "UNLOCK /lock",
            "GET /state"
        ]
    );
    let kept = server.kept();
    let (lock, post, unlock) = (&kept.seen[0], &kept.seen[3], &kept.seen[6]);
    for seen in &kept.seen {
        assert_eq!(seen.header("authorization"), "Basic bWU6aHVudGVyMg==");
    }
    assert_eq!(lock.body, unlock.body);
    assert!(String::from_utf8_lossy(&lock.body).contains("\"ID\":\"first\""), "{:?}", lock.body);
    assert_eq!(post.header("content-type"), "application/json");
    assert_eq!(post.body, state(1, "one").to_text().into_bytes());
    assert_eq!(kept.seen[1].header("cache-control"), "no-cache");
}

#[tokio::test]
async fn what_is_written_has_its_md5() {
    let server = Server::good();
    server.open().write(None, &state(1, "")).await.unwrap();
    let seen = server.kept().seen[1].clone();
    use base64::Engine as _;
    use md5::Digest as _;
    assert_eq!(seen.header("content-md5"), base64::engine::general_purpose::STANDARD.encode(md5::Md5::digest(&seen.body)));
    // Without a lock there is no id to send.
    assert_eq!(seen.path, "/state");
}

#[tokio::test]
async fn a_server_has_several_ways_to_say_that_there_is_no_state() {
    for status in [404, 204, 200] {
        let server = Server::new(move |_, seen| if seen.method == "GET" { answer(status) } else { Act::Do });
        assert_eq!(server.open().read().await.unwrap(), None, "{status}");
        server.open().write(None, &state(1, "")).await.unwrap();
        let conflict = server.open().write(Some(1), &state(2, "")).await.unwrap_err();
        assert!(matches!(conflict, BackendError::Conflict { expected: 1, found: 0 }), "{conflict}");
    }
}

#[tokio::test]
async fn methods_and_addresses_are_the_users() {
    let server = Server::new(|_, seen| match seen.method.as_str() {
        "GET" => answer(204),
        _ => answer(200),
    });
    let mut arguments = server.arguments();
    for (name, value) in [("update_method", "PUT"), ("lock_method", "POST"), ("unlock_method", "DELETE")] {
        arguments.insert(name.to_owned(), Value::from(value));
    }
    for (name, path) in [("address", "/?type=git&state=a%2Fb"), ("unlock_address", "/u")] {
        arguments.insert(name.to_owned(), Value::from(format!("{}{path}", server.endpoint).as_str()));
    }
    let run = open(&arguments);
    let id = run.lock(&who("an id")).await.unwrap();
    run.write(None, &state(1, "")).await.unwrap();
    run.unlock(&id).await.unwrap();
    assert_eq!(server.lines(), ["POST /lock", "GET /?type=git&state=a%2Fb", "PUT /?type=git&state=a%2Fb&ID=an+id", "DELETE /u"]);
}

#[tokio::test]
async fn proxies_are_gone_through_but_not_to_this_machine() {
    let proxy = Server::new(|_, _| answer(204));
    let near = Server::good();
    let read = async |address: &str| {
        let arguments = [("address".to_owned(), Value::from(address)), ("retry_max".to_owned(), Value::from(0i64))].into();
        let environment = [("HTTP_PROXY".to_owned(), proxy.endpoint.clone())].into();
        HttpBackend::open(&arguments, &environment).unwrap().read().await
    };
    assert_eq!(read("http://gitlab.invalid/state").await.unwrap(), None);
    assert_eq!(proxy.lines(), ["GET http://gitlab.invalid/state"]);
    assert_eq!(read(&format!("{}/state", near.endpoint)).await.unwrap(), None);
    assert_eq!((proxy.lines().len(), near.lines().len()), (1, 1));
}

#[tokio::test]
async fn without_addresses_for_it_nothing_is_locked() {
    let server = Server::good();
    let mut arguments = server.arguments();
    arguments.retain(|name, _| !name.contains("lock"));
    let (one, other) = (open(&arguments), open(&arguments));
    assert!(!one.locks());
    let id = one.lock(&who("one")).await.unwrap();
    other.lock(&who("other")).await.unwrap();
    one.write(None, &state(1, "")).await.unwrap();
    one.unlock(&id).await.unwrap();
    assert!(matches!(one.unlock(&LockId("one".into())).await, Err(BackendError::NotLocked)));
    assert_eq!(server.lines(), ["GET /state", "POST /state"]);
}

#[tokio::test]
async fn what_another_run_wrote_is_not_written_over() {
    let server = Server::good();
    let (one, other) = (server.open(), server.open());
    one.write(None, &state(1, "one")).await.unwrap();
    assert_eq!(other.read().await.unwrap().map(|s| s.serial), Some(1));
    one.write(Some(1), &state(2, "one")).await.unwrap();
    let conflict = other.write(Some(1), &state(2, "other")).await.unwrap_err();
    assert!(matches!(conflict, BackendError::Conflict { expected: 1, found: 2 }), "{conflict}");

    // The same serial, and other things in it: two without a lock do that. Or another history altogether.
    one.read().await.unwrap();
    let changed = [state(2, "somebody else's"), karmaform_model::Snapshot { lineage: "another".into(), ..state(2, "one") }];
    for theirs in changed {
        server.kept().state = Some(theirs.to_text().into_bytes());
        let conflict = one.write(Some(2), &state(3, "one")).await.unwrap_err();
        assert!(matches!(conflict, BackendError::Conflict { expected: 2, found: 2 }), "{conflict}");
    }
    // Gone altogether.
    server.kept().state = None;
    let conflict = one.write(Some(2), &state(3, "one")).await.unwrap_err();
    assert!(matches!(conflict, BackendError::Conflict { expected: 2, found: 0 }), "{conflict}");
}

#[tokio::test]
async fn a_server_may_spell_the_state_anew() {
    let server = Server::good();
    let run = server.open();
    run.write(None, &state(1, "one")).await.unwrap();
    let spell = || {
        let mut kept = server.kept();
        let json: serde_json::Value = serde_json::from_slice(kept.state.as_deref().unwrap()).unwrap();
        kept.state = Some(json.to_string().into_bytes());
    };
    spell();
    run.write(Some(1), &state(2, "two")).await.unwrap();
    spell();
    assert_eq!(run.read().await.unwrap(), Some(state(2, "two")));
    run.write(Some(2), &state(3, "three")).await.unwrap();
}

#[tokio::test]
async fn what_is_no_state_is_not_taken_for_none() {
    for body in ["<html>welcome</html>", "{\"version\": 5}", "\u{fffd}"] {
        let server = Server::new(move |_, _| Act::Answer(200, vec![], body.to_owned()));
        let error = server.open().read().await.unwrap_err();
        assert!(matches!(&error, BackendError::Damaged { place, .. } if *place == server.open().place()), "{error}");
        assert!(server.open().write(None, &state(1, "")).await.is_err());
        assert_eq!(server.count("POST"), 0);
    }
}
