//! A server that is late, absent, busy, elsewhere, or half there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use karmaform_http_state::{HttpBackend, Limits};
use karmaform_model::{BackendError, StateBackend as _, StoreError, Value};

use crate::server::{Act, Server, answer, open, state, who};

/// What a run is told.
fn said(error: &BackendError) -> (&'static str, String) {
    match error {
        BackendError::Store { source: StoreError::Unreachable(said), .. } => ("unreachable", said.clone()),
        BackendError::Store { source: StoreError::Refused(said), .. } => ("refused", said.clone()),
        other => panic!("{other:?}"),
    }
}

/// The n-th POST, from 0 on, gets this; all else is done.
fn post(number: usize, act: impl Fn() -> Act + Send + Sync + 'static) -> Server {
    let count = std::sync::atomic::AtomicUsize::new(0);
    Server::new(move |_, seen| {
        let is_it = seen.method == "POST" && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == number;
        if is_it { act() } else { Act::Do }
    })
}

#[tokio::test]
async fn errors_of_the_servers_own_are_tried_again() {
    for status in [500, 502, 503, 504, 429, 408] {
        let server = Server::new(move |n, _| if n < 2 { answer(status) } else { Act::Do });
        assert_eq!(server.open().read().await.unwrap(), None, "{status}");
        assert_eq!(server.count("GET"), 3);
        let server = post(0, move || answer(status));
        server.open().write(None, &state(1, "")).await.unwrap();
        assert_eq!(server.lines(), ["GET /state", "POST /state", "POST /state"]);
    }
}

#[tokio::test]
async fn no_more_tries_than_asked_for() {
    for (retries, tries) in [(0i64, 1), (2, 3)] {
        let server = Server::new(|_, _| Act::Answer(503, vec![], "{\"message\": \"down for repair\"}".to_owned()));
        let mut arguments = server.arguments();
        arguments.insert("retry_max".to_owned(), Value::from(retries));
        let error = open(&arguments).read().await.unwrap_err();
        let expected = format!(
            "The server at {}/state could not read the state: it answered 503: down for repair to every try; try again later.",
            server.endpoint
        );
        assert_eq!(said(&error), ("unreachable", expected));
        assert_eq!(server.count("GET"), tries);
    }
}

#[tokio::test]
async fn a_busy_server_is_left_alone_for_as_long_as_it_says_and_the_user_bears() {
    for asked_for in ["1", "600"] {
        let server = Server::new(move |n, _| match n {
            0 => Act::Answer(503, vec![("Retry-After", asked_for.to_owned())], String::new()),
            _ => Act::Do,
        });
        let start = Instant::now();
        server.open().read().await.unwrap();
        // retry_wait_max is one second.
        assert!((1..60).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn whatever_breaks_once_is_not_noticed() {
    let acts: [fn() -> Act; 4] = [|| Act::HangUp, || Act::DoAndHangUp, || Act::DoAndAnswer(500), || Act::DoAndCut];
    for act in acts {
        // At each request of a run.
        for at in 0..9 {
            let server = Server::new(move |n, _| if n == at { act() } else { Act::Do });
            let run = server.open();
            let id = run.lock(&who("first")).await.unwrap();
            assert_eq!(run.read().await.unwrap(), None);
            run.write(None, &state(1, "one")).await.unwrap();
            run.write(Some(1), &state(2, "two")).await.unwrap();
            run.unlock(&id).await.unwrap();
            assert_eq!(server.open().read().await.unwrap(), Some(state(2, "two")));
            assert_eq!(server.kept().lock, None);
        }
    }
}

#[tokio::test]
async fn a_lost_answer_is_made_up_for_by_looking() {
    // Written, and no try is answered: what is there tells.
    let server = Server::new(|_, seen| if seen.method == "POST" { Act::DoAndAnswer(502) } else { Act::Do });
    let run = server.open();
    run.write(None, &state(1, "")).await.unwrap();
    run.write(Some(1), &state(2, "")).await.unwrap();
    // GitLab keeps each serial once: the second try of the same write is refused.
    let gitlab = Server::new(|n, seen| match (seen.method.as_str(), n) {
        ("POST", 1) => Act::DoAndHangUp,
        ("POST", _) => answer(422),
        _ => Act::Do,
    });
    gitlab.open().write(None, &state(1, "")).await.unwrap();
    assert_eq!(gitlab.lines(), ["GET /state", "POST /state", "POST /state", "GET /state"]);
}

#[tokio::test]
async fn a_write_that_arrives_while_the_next_one_is_refused_is_nobody_elses() {
    // 0: all is done. 1: writes are refused. 2: the next one is, too, and from then on what was sent before is there.
    let phase = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let order = std::sync::atomic::Ordering::SeqCst;
    let seen_phase = std::sync::Arc::clone(&phase);
    let late = state(2, "late").to_text();
    let arrived = late.clone();
    let server = Server::new(move |_, seen| match (seen_phase.load(order), seen.method.as_str()) {
        (1, "POST") => answer(422),
        (2, "POST") => {
            seen_phase.store(3, order);
            answer(422)
        }
        (3, "GET") => Act::Answer(200, vec![], arrived.clone()),
        _ => Act::Do,
    });
    let run = server.open();
    assert_eq!(run.read().await.unwrap(), None);
    run.write(None, &state(1, "one")).await.unwrap();
    for now in [1, 2] {
        phase.store(now, order);
        let error = run.write(Some(1), &state(2, if now == 1 { "late" } else { "more" })).await.unwrap_err();
        assert_eq!(said(&error).0, "refused");
    }
    phase.store(0, order);
    server.kept().state = Some(late.into_bytes());
    run.write(Some(1), &state(2, "more")).await.unwrap();
    let kept = server.open().read().await.unwrap().unwrap();
    assert_eq!((kept.outputs["content"].value.as_str(), kept.serial), (Some("more"), 3));
}

#[tokio::test]
async fn a_write_of_which_nothing_is_known_is_ours_when_it_turns_up() {
    for is_refused in [false, true] {
        // Everything after the first POST fails, until it is over; the second try may be refused before, as the serial is there already.
        let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen_over = std::sync::Arc::clone(&over);
        let server = Server::new(move |n, seen| match (n, seen.method.as_str()) {
            (0 | 1, "GET") | (_, "LOCK") => Act::Do,
            (2, "POST") => Act::DoAndHangUp,
            (3, "POST") if is_refused => answer(422),
            _ if seen_over.load(std::sync::atomic::Ordering::SeqCst) => Act::Do,
            _ => Act::HangUp,
        });
        let run = server.open();
        assert_eq!(run.read().await.unwrap(), None);
        let error = run.write(None, &state(1, "unknown")).await.unwrap_err();
        assert_eq!(said(&error).0, if is_refused { "refused" } else { "unreachable" });
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        // Whoever calls knows of no state there, and tries the same serial with more in it.
        run.write(None, &state(1, "more")).await.unwrap();
        let kept = server.open().read().await.unwrap().unwrap();
        assert_eq!((kept.outputs["content"].value.as_str(), kept.serial), (Some("more"), 2));
        run.write(Some(1), &state(2, "even more")).await.unwrap();
        run.write(Some(2), &state(3, "all")).await.unwrap();
        assert_eq!(server.open().read().await.unwrap().map(|s| s.serial), Some(4));
    }
}

#[tokio::test]
async fn somebody_elses_write_after_an_unclear_one_is_a_conflict() {
    // It gets there between our look and our write.
    let gets = std::sync::atomic::AtomicUsize::new(0);
    let theirs = state(7, "theirs").to_text();
    let changed = Server::new(move |_, seen| match seen.method.as_str() {
        "GET" if gets.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 => Act::Answer(200, vec![], theirs.clone()),
        "POST" => answer(422),
        _ => Act::Do,
    });
    let conflict = changed.open().write(None, &state(1, "ours")).await.unwrap_err();
    assert!(matches!(conflict, BackendError::Conflict { expected: 0, found: 7 }), "{conflict}");
}

#[tokio::test]
async fn credentials_that_do_not_do_are_said_so() {
    let denied = |status| Server::new(move |_, _| answer(status));
    for (status, login, words) in [
        (401, true, "did not accept username and password"),
        (401, false, "TF_HTTP_USERNAME and TF_HTTP_PASSWORD"),
        (403, true, "does not allow this user to read the state"),
    ] {
        let server = denied(status);
        let mut arguments = server.arguments();
        if !login {
            arguments.remove("username");
        }
        let error = open(&arguments).read().await.unwrap_err();
        let (kind, text) = said(&error);
        assert!(kind == "refused" && text.contains(words) && text.contains("username") && !text.contains("hunter2"), "{text}");
        assert_eq!(server.count("GET"), 1, "no use in asking again");
        assert_eq!(said(&server.open().lock(&who("me")).await.unwrap_err()).0, "refused");
    }
    let large = Server::new(|_, seen| if seen.method == "POST" { answer(413) } else { Act::Do });
    let (_, text) = said(&large.open().write(None, &state(1, "")).await.unwrap_err());
    assert!(text.contains("too large"), "{text}");
}

#[tokio::test]
async fn nobody_there_and_nobody_who_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut arguments = Server::good().arguments();
    arguments.insert("address".to_owned(), Value::from(format!("{endpoint}/state").as_str()));
    let error = open(&arguments).read().await.unwrap_err();
    let expected =
        format!("The server at {endpoint}/state can't be reached (Connection refused (os error 111)); check address and the network.");
    assert_eq!(said(&error), ("unreachable", expected));

    let server = Server::new(|_, _| Act::Hang);
    let short = Limits { one_try: Duration::from_millis(300), ..Limits::default() };
    let mut arguments = server.arguments();
    arguments.insert("retry_max".to_owned(), Value::from(1i64));
    let run = HttpBackend::open_within(&arguments, &BTreeMap::new(), short).unwrap();
    let (kind, text) = said(&run.read().await.unwrap_err());
    assert!(kind == "unreachable" && text.contains("did not answer in time"), "{text}");
    // On a busy machine it may hear of it later than we gave up.
    let until = Instant::now() + Duration::from_secs(60);
    while server.count("GET") < 2 {
        assert!(Instant::now() < until, "{:?}", server.lines());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_moved_is_followed_on_the_same_server_and_nowhere_else() {
    let to = |place: String| {
        move |_: usize, seen: &crate::server::Seen| match seen.path.as_str() {
            "/old" => Act::Answer(307, vec![("Location", place.clone())], String::new()),
            _ => Act::Do,
        }
    };
    let at = |server: &Server| {
        let mut arguments = server.arguments();
        arguments.insert("address".to_owned(), Value::from(format!("{}/old", server.endpoint).as_str()));
        open(&arguments)
    };
    let server = Server::new(to("/state".to_owned()));
    server.kept().state = Some(state(3, "").to_text().into_bytes());
    assert_eq!(at(&server).read().await.unwrap().map(|s| s.serial), Some(3));
    // Nothing that is written goes where it was not sent.
    let (kind, text) = said(&at(&server).write(Some(3), &state(4, "")).await.unwrap_err());
    assert!(kind == "refused" && text.contains("sends one on to /state") && text.contains("address"), "{text}");

    let other = Server::good();
    let server = Server::new(to(format!("{}/state?X-Signature=secret", other.endpoint)));
    let (kind, text) = said(&at(&server).read().await.unwrap_err());
    assert!(kind == "refused" && text.contains(&other.endpoint) && !text.contains("secret"), "{text}");
    assert_eq!(other.lines().len(), 0, "no password goes to another host");

    // In a circle.
    let server = Server::new(to("/old".to_owned()));
    assert_eq!(said(&at(&server).read().await.unwrap_err()).0, "refused");
}
