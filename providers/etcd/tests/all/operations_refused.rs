//! Operations, the gate and members where etcd says no, or where somebody was at the cluster since the plan: told at once instead of waited for.

use std::sync::Arc;

use karmaform_model::{Ask, Change, Diagnostic, GateAnswer, Object, Value};

use crate::fake::{Fakes, INVALID, Listed, Straight, asking, closed, connection, tells};

/// Where the member d is to be, which is none yet.
const NEW: &str = "http://d:2380";

fn through(names: &[&str]) -> (&'static str, Value) {
    ("through", Value::strings(names.iter().copied()))
}

async fn refused(fakes: &Fakes, operation: &str, arguments: &[(&str, Value)]) -> Diagnostic {
    fakes.asking().await.operate(operation, arguments).await.unwrap_err()
}

/// Why it waits.
async fn waits(fakes: &Fakes, operation: &str, arguments: &[(&str, Value)]) -> String {
    match fakes.asking().await.operate(operation, arguments).await.unwrap() {
        GateAnswer::Waiting(why) => why,
        GateAnswer::Passed(what) => panic!("{what}"),
    }
}

fn listed(id: u64, name: &str, learner: bool) -> Listed {
    Listed { id, name: name.into(), learner, peer: NEW.into(), client: "http://d:2379".into() }
}

#[tokio::test]
async fn who_can_not_join_is_not_waited_for() {
    let fakes = Fakes::start(3).await;
    let arguments = [("peer_url", NEW.into()), through(&["a", "b", "c"]), ("is_new", true.into())];
    let told = refused(&fakes, "etcd_join", &arguments[1..]).await;
    assert_eq!(
        (told.summary.as_str(), told.detail.as_str()),
        ("An argument is missing", "`peer_url` is needed for this, and is not known by now.")
    );

    fakes.all(|says| says.refuses = vec![("MemberAdd", INVALID, "etcdserver: given member URLs are invalid")]);
    let told = refused(&fakes, "etcd_join", &arguments).await;
    let why = "Adding a member of etcd_cluster.main was refused: given member URLs are invalid.";
    tells(&told, "etcd refuses a change of its members", why, "etcdctl member list");
    // What passes is waited for.
    fakes.all(|says| says.refuses = vec![("MemberAdd", 14, "etcdserver: unhealthy cluster")]);
    assert_eq!(waits(&fakes, "etcd_join", &arguments).await, "unhealthy cluster, as a, b, c saw it a moment ago");

    fakes.all(|says| says.list.push(listed(4, "d", true)));
    let told = refused(&fakes, "etcd_join", &arguments).await;
    tells(&told, "A member has started meanwhile", "the member 4 had not started, and now it has", "Plan and apply again");
}

/// Each judges by connections of its own, and one may go on to take another for away.
#[tokio::test]
async fn what_one_refuses_as_others_are_away_another_is_asked() {
    let joins = [("peer_url", NEW.into()), through(&["a", "b", "c"])];
    let leaves = [("name", "c".into()), ("peer_url", "http://c:2380".into()), through(&["a", "b"]), ("member_id", "3".into())];
    for (operation, method, arguments) in [("etcd_join", "MemberAdd", &joins[..]), ("etcd_leave", "MemberRemove", &leaves[..])] {
        let fakes = Fakes::start(3).await;
        fakes.0[0].says().refuses = vec![(method, 14, "etcdserver: unhealthy cluster")];
        let answer = fakes.asking().await.operate(operation, arguments).await.unwrap();
        assert!(!format!("{answer:?}").contains("unhealthy"), "{answer:?}");
        let asked: Vec<bool> = fakes.0.iter().map(|member| member.says().asked.iter().any(|asked| asked == method)).collect();
        assert_eq!(asked, [true, true, false], "{operation}");
        // Another reason is everybody's.
        let fakes = Fakes::start(3).await;
        fakes.0[0].says().refuses = vec![(method, 14, "etcdserver: too many requests")];
        assert_eq!(waits(&fakes, operation, arguments).await, "too many requests");
        assert_eq!(fakes.asked().iter().filter(|asked| *asked == method).count(), 1, "{operation}");
    }
}

/// A member that is killed while it is asked says nothing any more, and may have done it.
#[tokio::test]
async fn a_lost_answer_is_no_refusal() {
    let fakes = Fakes::start(3).await;
    fakes.all(|says| says.breaks = vec!["MemberAdd", "MemberRemove"]);
    let joins = [("peer_url", NEW.into()), through(&["a", "b", "c"])];
    let leaves = [("name", "c".into()), ("peer_url", "http://c:2380".into()), through(&["a", "b"]), ("member_id", "3".into())];
    for (operation, arguments) in [("etcd_join", &joins[..]), ("etcd_leave", &leaves[..])] {
        assert!(!waits(&fakes, operation, arguments).await.starts_with("it was removed"), "{operation}");
    }
    // What became of it the next look tells.
    fakes.all(|says| says.list[2] = listed(4, "d", true));
    let done = [("etcd_join", &joins[..], "learner 4 is known"), ("etcd_leave", &leaves[..], "c is not a part of it")];
    for (operation, arguments, found) in done {
        let answer = fakes.asking().await.operate(operation, arguments).await.unwrap();
        assert!(matches!(&answer, GateAnswer::Passed(what) if what == found), "{answer:?}");
    }
}

#[tokio::test]
async fn who_is_killed_while_it_defragments_is_asked_again() {
    let fakes = Fakes::start(1).await;
    fakes.all(|says| says.alarms = vec![(1, 1)]);
    for (method, summary) in [("Compact", "The history could not be dropped"), ("Defragment", "Defragmentation failed")] {
        fakes.all(|says| says.breaks = vec![method]);
        let told = refused(&fakes, "etcd_make_room", &[]).await;
        assert!(told.summary == summary && told.retryable, "{told:?}");
    }
    fakes.all(|says| (says.breaks, says.refuses) = (Vec::new(), vec![("Defragment", INVALID, "no space left on device")]));
    let told = refused(&fakes, "etcd_make_room", &[]).await;
    assert!(told.summary == "Defragmentation failed" && !told.retryable, "{told:?}");
    fakes.all(|says| says.refuses = Vec::new());
    let done = fakes.asking().await.operate("etcd_make_room", &[]).await.unwrap();
    assert!(matches!(&done, GateAnswer::Passed(what) if what.ends_with("the alarm NOSPACE is off")), "{done:?}");
}

#[tokio::test]
async fn who_is_not_to_be_promoted_any_more_is_told_of() {
    let fakes = Fakes::start(3).await;
    let told = refused(&fakes, "etcd_promote", &[("name", "d".into()), ("peer_url", NEW.into()), through(&["a"])]).await;
    tells(&told, "A member is not known to its cluster", "etcd_cluster.main knows no member at http://d:2380", "who changes the members");
}

#[tokio::test]
async fn who_works_again_does_not_leave() {
    let fakes = Fakes::start(3).await;
    let leaves = |id: &str, is_lost: bool| {
        let peer = ("peer_url", "http://c:2380".into());
        [("name", "c".into()), peer, through(&["a", "b"]), ("member_id", id.into()), ("is_lost", is_lost.into())]
    };
    let told = refused(&fakes, "etcd_leave", &leaves("c's", true)).await;
    tells(&told, "Not a member's id", "\"c's\" is no number in hexadecimal digits", "Plan again");
    let told = refused(&fakes, "etcd_leave", &leaves("3", true)).await;
    tells(&told, "A member that was lost is there again", "the data of c was gone, and now it works", "Plan again");
    assert!(!fakes.asked().contains(&"MemberRemove".to_owned()));
    // Who is to leave all the same does.
    assert!(waits(&fakes, "etcd_leave", &leaves("3", false)).await.starts_with("it was removed"));
}

#[tokio::test]
async fn a_restored_database_that_is_too_large_is_told_of() {
    let fakes = Fakes::start(1).await;
    fakes.all(|says| (says.alarms, says.size, says.quota) = (vec![(1, 1)], 3 << 30, 2 << 30));
    let told = refused(&fakes, "etcd_disarm", &[through(&["a"])]).await;
    tells(&told, "What was restored is too large", "Member a has 3.0 GiB of the 2.0 GiB", "quota-backend-bytes");
    fakes.all(|says| says.size = 1 << 30);
    assert_eq!(waits(&fakes, "etcd_disarm", &[through(&["a"])]).await, "alarms that came with the snapshot were ended");
}

#[tokio::test]
async fn a_downgrade_that_etcd_refuses_is_told_of() {
    let fakes = Fakes::start(1).await;
    fakes.all(|says| {
        (says.version, says.storage) = ("3.6.14".into(), "3.6.0".into());
        says.refuses = vec![("Downgrade", INVALID, "etcdserver: invalid downgrade target version")];
    });
    let told = refused(&fakes, "etcd_downgrade", &[through(&["a"]), ("to", 5i64.into())]).await;
    let why = "A downgrade to 3.5 of etcd_cluster.main was refused: invalid downgrade target version.";
    tells(&told, "etcd refuses a downgrade", why, "log of the leader");
}

#[tokio::test]
async fn nobody_waits_for_a_member_that_somebody_has_removed() {
    let fakes = Fakes::start(2).await;
    let ports: Vec<u16> = fakes.0.iter().map(|member| member.address.port()).chain([closed()]).collect();
    let asking = asking(&connection(ports)).await;
    let check = async || asking.driver.check(&asking.client, "etcd_healthy", &Object::new()).await;
    let told = check().await.unwrap_err();
    tells(&told, "A member is none any more", "Somebody has removed \"c\" from etcd_cluster.main", "joins as a new member");
    fakes.all(|says| says.list.push(listed(3, "c", false)));
    assert!(matches!(check().await.unwrap(), GateAnswer::Waiting(_)));
}

#[tokio::test]
async fn ids_are_those_of_a_member_that_works() {
    let fakes = Fakes::start(1).await;
    let asking = fakes.asking().await;
    let member = |name: &[(&str, Value)]| Change::Create { after: name.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect() };
    let apply = async |change: Change| asking.driver.apply(&asking.client, "etcd_member", &change).await;
    let told = apply(member(&[])).await.unwrap_err();
    assert!(told.summary == "An etcd member without a name" && told.detail.contains("must be known"), "{told:?}");

    fakes.all(|says| says.leader = 0);
    let told = apply(member(&[("name", "a".into())])).await.unwrap_err();
    let why = "member \"a\" of etcd_cluster.main can only be read while it takes part in its cluster: it sees no leader.";
    tells(&told, "An etcd member is not healthy", why, "journalctl");
    fakes.all(|says| says.leader = 1);
    let made = apply(member(&[("name", "a".into())])).await.unwrap().unwrap();
    assert_eq!(made["member_id"].as_str(), Some("1"));
}

/// `etcdctl auth enable`: a cluster that works, and refuses whoever has a certificate alone. Later versions refuse the list of members, too.
#[tokio::test]
async fn authentication_is_told_as_what_it_is() {
    const REFUSED: &str = "authentication was enabled in etcd, and it refuses the certificate that it is asked with";
    let fakes = Fakes::start(3).await;
    let known = Object::from([("member_id", "1"), ("peer_url", "http://a:2380")].map(|(name, value)| (name.to_owned(), value.into())));
    let seen = async || {
        let asking = fakes.asking().await;
        let ask = |name: &str| Ask {
            resource_type: "etcd_member".into(),
            identity: Object::from([("name".to_owned(), name.into())]),
            known: Some(known.clone()),
            wanted: None,
            begun: false,
        };
        let asked = asking.driver.observe(&asking.client, &["a", "b", "c"].map(ask)).await;
        asked.into_iter().map(|seen| seen.unwrap().unwrap()).collect::<Vec<Object>>()
    };
    let care = |seen: &[Object]| -> Vec<usize> { seen.iter().map(|o| o["care"].as_items().map_or(0, <[Value]>::len)).collect() };
    let before = seen().await;
    assert_eq!(care(&before), [0, 0, 0]);
    assert!(before.iter().all(|o| o.contains_key("peer_url")), "{before:?}");
    for (code, why) in [(7, "etcdserver: permission denied"), (INVALID, "etcdserver: user name is empty")] {
        fakes.all(|says| says.refuses = vec![("Range", code, why), ("MemberAdd", code, why), ("HashKV", code, why)]);
        let found = seen().await;
        assert_eq!(care(&found), [1, 0, 0], "{found:?}");
        let said = found[0]["care"].as_items().and_then(|lines| lines.first()).and_then(Value::as_str).unwrap();
        assert!(said.contains("`etcdctl --user=root auth disable` ends that"), "{said}");
        // It works all the same, and nothing of it is another.
        assert!(found.iter().all(|o| o["healthy"].as_bool() == Some(true) && o["error"].is_null()), "{found:?}");
        assert!(found.iter().zip(&before).all(|(now, was)| now["peer_url"] == was["peer_url"]), "{found:?}");
        let joins = [("peer_url", NEW.into()), through(&["a", "b", "c"])];
        let told = refused(&fakes, "etcd_join", &joins).await;
        tells(&told, "etcd refuses a change of its members", REFUSED, "etcdctl member list");

        fakes.all(|says| says.refuses.extend([("MemberList", code, why), ("Alarm", code, why)]));
        let found = seen().await;
        assert_eq!(care(&found), [1, 0, 0], "{found:?}");
        assert!(found.iter().all(|o| o["healthy"].as_bool() == Some(true) && !o.contains_key("peer_url")), "{found:?}");
        // Nobody is taken for one who has left.
        let leaves = [("name", "c".into()), ("peer_url", "http://c:2380".into()), through(&["a", "b"])];
        assert_eq!(waits(&fakes, "etcd_leave", &leaves).await, format!("no member can be asked: member a: {REFUSED}; member b: {REFUSED}"));
        let asking = fakes.asking().await;
        let after = Object::from([("name".to_owned(), "a".into())]);
        let told = asking.driver.apply(&asking.client, "etcd_member", &Change::Create { after }).await.unwrap_err();
        tells(&told, "An etcd member is not healthy", REFUSED, "journalctl");
    }
}

/// Where the certificate that asks is called as one of them, nothing else tells that authentication was enabled.
#[tokio::test]
async fn users_that_somebody_made_are_told_by_who_only_looks() {
    let fakes = Fakes::start(2).await;
    fakes.all(|says| says.users = vec!["root".into(), "theirs".into()]);
    let care = async |only_looks: bool| -> Vec<Vec<String>> {
        let driver = karmaform_etcd::driver();
        let client = driver.connect(&Object::new(), &fakes.connection(), Arc::new(Straight { only_looks })).await.unwrap();
        let known = Some(Object::from([("member_id".to_owned(), "1".into())]));
        let ask = |name: &str| Ask {
            resource_type: "etcd_member".into(),
            identity: Object::from([("name".to_owned(), name.into())]),
            known: known.clone(),
            wanted: None,
            begun: false,
        };
        let seen = driver.observe(&client, &["a", "b"].map(ask)).await;
        let lines = |object: Object| -> Vec<String> {
            object["care"].as_items().unwrap().iter().filter_map(|line| line.as_str().map(str::to_owned)).collect()
        };
        seen.into_iter().map(|seen| lines(seen.unwrap().unwrap())).collect()
    };
    let told = care(true).await;
    assert!(told[0].len() == 1 && told[0][0].contains("users that nobody configured (root, theirs)") && told[1].is_empty(), "{told:?}");
    assert_eq!(care(false).await, [Vec::<String>::new(), Vec::new()]);
    // One of a version that does not answer hides nothing else.
    fakes.all(|says| says.refuses = vec![("UserList", 12, "unknown method UserList")]);
    assert_eq!(care(true).await, [Vec::<String>::new(), Vec::new()]);
}
