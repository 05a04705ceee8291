//! What a plan does with members by what was seen of them, and what is told of them.

use karmaform_model::Action;

use super::*;

/// What a plan does with a member that was seen like this, besides being healthy.
fn planned(defragments: bool, seen: &[(&str, Value)]) -> Action {
    let object = |entries: &[(&str, Value)]| -> Object { entries.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect() };
    let mut before = object(&[("name", "a".into()), ("nonvoter", false.into()), ("healthy", true.into())]);
    before.extend(["member_id", "cluster_id", "peer_url", "client_url"].map(|name| (name.to_owned(), "x".into())));
    before.extend(object(seen));
    let wanted = object(&[("name", "a".into()), ("defragment", defragments.into())]);
    EtcdMember.plan(&PlanContext { now: 0 }, Some(&before), Some(&wanted)).unwrap().action()
}

#[test]
fn where_its_cluster_has_it_is_compared_with_where_it_is() {
    let mut look = Look::of_version("3.5.16", None, None);
    look.member_id = 0xa1;
    assert_eq!(elsewhere(&look, "https://a:2380"), None, "nobody could be asked");
    let own = |urls: &[&str]| Known {
        id: 0xa1,
        name: "a".to_owned(),
        peer_urls: urls.iter().map(|u| (*u).to_owned()).collect(),
        client_urls: Vec::new(),
        learner: false,
    };
    look.members = vec![own(&["https://x:2380", "https://a:2380"])];
    assert_eq!(elsewhere(&look, "https://a:2380"), None, "one of several is enough");
    look.members = vec![own(&["https://x:2380"])];
    let said = elsewhere(&look, "https://a:2380").unwrap();
    assert_eq!(
        said,
        "its cluster has it at https://x:2380, and it is at https://a:2380: `etcdctl member update a1 --peer-urls=https://a:2380` says so"
    );
}

#[test]
fn an_alarm_of_several_is_told_once() {
    let told = |own: &[&str], more: &[&str]| {
        let object = Object::from([("alarms".to_owned(), Value::strings(own))]);
        with_alarms(object, more.iter().copied()).remove("alarms")
    };
    assert_eq!(told(&["NOSPACE"], &["NOSPACE"]), Some(Value::strings(["NOSPACE"])));
    assert_eq!(told(&[], &["NOSPACE", "CORRUPT", "NOSPACE"]), Some(Value::strings(["CORRUPT", "NOSPACE"])));
    assert_eq!(told(&[], &[]), Some(Value::strings(Vec::<String>::new())));
}

#[test]
fn a_way_down_that_nobody_wants_is_given_up() {
    let object = |entries: &[(&str, Value)]| -> Object { entries.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect() };
    let told = |to: i64| object(&[("healthy", true.into()), ("goes_down_to", to.into())]);
    let wanted = object(&[("minor", 6i64.into())]);
    assert!(goes_too_far_down(&wanted, &told(5)));
    assert!(!goes_too_far_down(&wanted, &told(6)));
    assert!(!goes_too_far_down(&wanted, &object(&[("healthy", true.into()), ("goes_down_to", Value::null(Type::Number))])));
    assert!(!goes_too_far_down(&object(&[]), &told(5)));
}

#[test]
fn room_is_made_where_it_is_asked_for_and_needed() {
    let sizes = |size: i64, in_use: i64| vec![("size_bytes", size.into()), ("size_in_use_bytes", in_use.into())];
    assert_eq!(planned(true, &sizes(300 << 20, 100 << 20)), Action::Update);
    assert_eq!(planned(false, &sizes(300 << 20, 100 << 20)), Action::NoOp);
    assert_eq!(planned(true, &sizes(300 << 20, 200 << 20)), Action::NoOp);
    let alarms = |names: &[&str]| vec![("alarms", Value::strings(names))];
    assert_eq!(planned(true, &alarms(&["NOSPACE"])), Action::Update);
    assert_eq!(planned(false, &alarms(&["NOSPACE"])), Action::NoOp);
    assert_eq!(planned(true, &alarms(&["NOSPACE", "CORRUPT"])), Action::NoOp);
    let away = [sizes(300 << 20, 1), vec![("healthy", false.into())]].concat();
    assert_eq!(planned(true, &away), Action::NoOp);
}
