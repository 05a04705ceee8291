//! Who holds the lock, and what becomes of one that is lost.

use karmaform_model::{BackendError, LockId, StateBackend as _, StoreError};

use crate::server::{Act, Server, answer, state, who};

#[tokio::test]
async fn a_lock_that_is_held_is_told_with_its_holder() {
    for status in [423, 409] {
        let server = Server::good();
        server.kept().held = status;
        let first = server.open();
        first.lock(&who("first")).await.unwrap();
        match server.open().lock(&who("second")).await {
            Err(BackendError::Locked(Some(holder))) => assert_eq!(*holder, who("first")),
            other => panic!("{other:?}"),
        }
        first.unlock(&LockId("first".into())).await.unwrap();
        server.open().lock(&who("second")).await.unwrap();
    }
}

#[tokio::test]
async fn little_or_nothing_may_be_known_of_a_holder() {
    let locked = |body: &'static str| Server::new(move |_, _| Act::Answer(409, vec![], body.to_owned()));
    for body in ["", "locked", "[1]", "{}", "{\"message\": \"no\"}", "{\"ID\": \"\"}", "{\"ID\": 7}"] {
        let error = locked(body).open().lock(&who("me")).await.unwrap_err();
        assert!(matches!(error, BackendError::Locked(None)), "{body}: {error:?}");
    }
    // GitLab's user and time, and a lease that nobody here could renew.
    let server = locked("{\"ID\": \"x\", \"Who\": \"ann\", \"Created\": \"2026-01-01 00:00:00 UTC\", \"Operation\": null, \"Lease\": 5}");
    let Err(BackendError::Locked(Some(holder))) = server.open().lock(&who("me")).await else { panic!("it is locked") };
    assert_eq!((holder.id.as_str(), holder.who.as_str(), holder.operation.as_str(), holder.lease), ("x", "ann", "", None));
}

#[tokio::test]
async fn a_lost_answer_to_a_lock_is_no_lost_lock() {
    let server = Server::new(|n, _| if n == 0 { Act::DoAndHangUp } else { Act::Do });
    let run = server.open();
    run.lock(&who("first")).await.unwrap();
    assert_eq!(server.count("LOCK"), 2);
    run.unlock(&LockId("first".into())).await.unwrap();
    assert_eq!(server.kept().lock, None);
}

#[tokio::test]
async fn a_lost_answer_to_an_unlock_is_no_error() {
    // The second try is refused, as GitLab does; the lock is free, or another run has it already.
    for taken in [false, true] {
        let server = Server::new(move |n, seen| match (seen.method.as_str(), n) {
            ("UNLOCK", 1) => Act::DoAndHangUp,
            ("UNLOCK", 2) => answer(409),
            ("LOCK", 3) if taken => Act::Answer(409, vec![], String::from_utf8(content("second")).unwrap()),
            _ => Act::Do,
        });
        let run = server.open();
        run.lock(&who("first")).await.unwrap();
        run.unlock(&LockId("first".into())).await.unwrap();
        assert_eq!(server.kept().lock, None, "nothing is left locked by looking");
    }
}

fn content(id: &str) -> Vec<u8> {
    serde_json::to_vec(&who(id)).unwrap()
}

#[tokio::test]
async fn a_lock_that_may_be_ours_without_our_knowing_is_released() {
    let server = Server::new(|_, seen| if seen.method == "LOCK" { Act::DoAndAnswer(500) } else { Act::Do });
    let error = server.open().lock(&who("first")).await.unwrap_err();
    assert!(matches!(error, BackendError::Store { source: StoreError::Unreachable(_), .. }), "{error}");
    assert_eq!(server.kept().lock, None);
}

#[tokio::test]
async fn a_lock_is_broken_by_its_id_alone() {
    let server = Server::good();
    assert!(matches!(server.open().unlock(&LockId("first".into())).await, Err(BackendError::NotLocked)));
    assert_eq!(server.kept().lock, None, "nothing is left locked by looking");
    server.open().lock(&who("first")).await.unwrap();
    match server.open().unlock(&LockId("second".into())).await {
        Err(BackendError::OtherLock { given, held }) => assert_eq!((given.as_str(), held.as_str()), ("second", "first")),
        other => panic!("{other:?}"),
    }
    assert!(server.kept().lock.is_some(), "this server would have released any");
    server.open().unlock(&LockId("first".into())).await.unwrap();
    let kept = server.kept();
    let body: serde_json::Value = serde_json::from_slice(&kept.seen.last().unwrap().body).unwrap();
    assert_eq!((body["ID"].as_str(), kept.lock.as_ref()), (Some("first"), None));
}

#[tokio::test]
async fn a_lock_that_nobody_describes_is_broken_all_the_same() {
    let server = Server::new(|_, seen| if seen.method == "LOCK" { answer(423) } else { answer(200) });
    server.open().unlock(&LockId("first".into())).await.unwrap();
    assert_eq!(server.kept().seen.last().unwrap().body, b"{\"ID\":\"first\"}");
}

#[tokio::test]
async fn a_run_that_lost_its_lock_is_told_who_took_it() {
    // Whatever a server says to the wrong id; GitLab's words are 500.
    for status in [409, 423, 500] {
        let server = Server::new(move |_, seen| match seen.method == "POST" && seen.path.ends_with("ID=first") {
            true => answer(status),
            false => Act::Do,
        });
        let run = server.open();
        run.lock(&who("first")).await.unwrap();
        assert_eq!(run.read().await.unwrap(), None);
        server.kept().lock = Some(content("second"));
        match run.write(None, &state(1, "")).await {
            Err(BackendError::LockLost(Some(holder))) => assert_eq!(holder.id, "second"),
            other => panic!("{status}: {other:?}"),
        }
        // From then on it leaves state and lock alone, though this server would let it.
        let asked = server.lines().len();
        assert!(matches!(run.write(None, &state(1, "")).await, Err(BackendError::LockLost(Some(_)))));
        assert_eq!(server.lines().len(), asked);
        assert!(matches!(run.unlock(&LockId("first".into())).await, Err(BackendError::OtherLock { .. })));
        assert_eq!(server.kept().lock, Some(content("second")));
        server.kept().lock = None;
        run.lock(&who("third")).await.unwrap();
        run.write(None, &state(1, "")).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_whose_lock_was_removed_is_told_so() {
    let server = Server::new(|_, seen| if seen.method == "POST" { answer(500) } else { Act::Do });
    let run = server.open();
    run.lock(&who("first")).await.unwrap();
    let told = |error: BackendError| match error {
        BackendError::Store { source: StoreError::Unreachable(said), .. } => said,
        other => panic!("{other:?}"),
    };
    let said = told(run.write(None, &state(1, "")).await.unwrap_err());
    assert!(said.contains("answered 500") && !said.contains("lock"), "{said}");
    server.kept().lock = None;
    let said = told(run.write(None, &state(1, "")).await.unwrap_err());
    assert!(said.contains("answered 500") && said.contains("The lock was not held by this run any more"), "{said}");
    // Looking took it, and it is released like any other.
    run.unlock(&LockId("first".into())).await.unwrap();
    assert_eq!(server.kept().lock, None);
}

#[tokio::test]
async fn a_refusal_that_has_nothing_to_do_with_the_lock_stays_one() {
    let server = Server::new(|_, seen| match seen.method.as_str() {
        "POST" => Act::Answer(422, vec![], "{\"message\": \"No serial in payload\"}".to_owned()),
        _ => Act::Do,
    });
    let run = server.open();
    run.lock(&who("first")).await.unwrap();
    let error = run.write(None, &state(1, "")).await.unwrap_err();
    let BackendError::Store { source: StoreError::Refused(said), .. } = &error else { panic!("{error:?}") };
    assert!(said.contains("422: No serial in payload"), "{said}");
    run.unlock(&LockId("first".into())).await.unwrap();
}

#[tokio::test]
async fn a_server_without_locks_is_said() {
    for status in [404, 405, 501] {
        let server = Server::new(move |_, _| answer(status));
        let error = server.open().lock(&who("me")).await.unwrap_err();
        let BackendError::Store { source: StoreError::Refused(said), .. } = &error else { panic!("{error:?}") };
        assert!(said.contains("does not know how to lock the state") && said.contains("lock_address and lock_method"), "{said}");
    }
}
