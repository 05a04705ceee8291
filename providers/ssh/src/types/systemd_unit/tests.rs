use super::*;

fn unit(content: &str, active: bool) -> Object {
    let host = Value::object([("address", "10.0.0.1".into()), ("id", "10.0.0.1:22".into())]);
    object([("host", host), ("name", "a.service".into()), ("content", content.into()), ("active", active.into()), ("enabled", true.into())])
}

#[test]
fn a_change_says_what_it_does_to_the_running_unit() {
    let check = |change: Change, expected: &str| assert_eq!(SystemdUnit::new().impact(&change).join(), expected);
    let update = |before: Object, after: Object| Change::Update { before, after };
    check(Change::Create { after: unit("x", true) }, "starts a.service on 10.0.0.1");
    check(Change::Create { after: unit("x", false) }, "");
    check(update(unit("x", true), unit("y", true)), "restarts a.service on 10.0.0.1");
    check(update(unit("x", false), unit("x", true)), "starts a.service on 10.0.0.1");
    check(update(unit("x", false), unit("y", false)), "");
    check(update(unit("x", true), unit("y", false)), "stops a.service on 10.0.0.1");
    check(Change::Delete { before: unit("x", true) }, "stops a.service on 10.0.0.1");
    check(Change::Delete { before: unit("x", false) }, "");
    let mut disabled = unit("x", true);
    disabled.insert("enabled".into(), false.into());
    check(update(unit("x", true), disabled), "");
    let mut triggered = unit("x", true);
    triggered.insert("restart_triggers".into(), Value::map(Type::String, [("a".to_owned(), "1".into())].into()));
    check(update(unit("x", true), triggered), "restarts a.service on 10.0.0.1");
}

trait Join {
    fn join(&self) -> String;
}

impl Join for Vec<String> {
    fn join(&self) -> String {
        self.as_slice().join("; ")
    }
}

#[test]
fn names_and_variables_are_checked() {
    let plan = |wanted: &Object| SystemdUnit::new().plan(&PlanContext { now: 0 }, None, Some(wanted));
    assert!(plan(&unit("x", true)).is_ok());
    let mut bad = unit("x", true);
    bad.insert("name".into(), "../../etc/passwd".into());
    assert!(plan(&bad).is_err());
    let mut bad = unit("x", true);
    bad.insert("start_environment".into(), Value::map(Type::String, [("A=B".to_owned(), "1".into())].into()));
    assert!(plan(&bad).is_err());
    assert!(scripts::remove("../../x", 9).starts_with("fail kind"));
}

#[test]
fn variables_are_written_as_systemd_reads_them() {
    assert_eq!(scripts::environment_line("A", "a \"b\" \\ $c `d`"), "A=\"a \\\"b\\\" \\\\ \\$c \\`d\\`\"\n");
}

#[test]
fn states_are_read() {
    use crate::look::UnitSeen;
    let check = |active_state: &str, file_state: &str, active: bool, enabled: Option<bool>| {
        let mut seen = Seen::default();
        let unit = UnitSeen {
            active_state: active_state.into(),
            file_state: file_state.into(),
            fragment_path: "/lib/a".into(),
            ..UnitSeen::default()
        };
        seen.units.insert("a.service".into(), unit);
        let identity = object([("name", "a.service".into())]);
        let found = SystemdUnit::new().answer(&seen, &identity, None).unwrap().unwrap();
        assert_eq!((boolean(&found, "active"), boolean(&found, "enabled")), (Some(active), enabled), "{active_state} {file_state}");
        assert_eq!(boolean(&found, "foreign"), Some(true), "a package's unit");
        assert_eq!(SystemdUnit::new().answer(&seen, &identity, Some(&found)).unwrap(), None, "our file is gone");
    };
    check("active", "enabled", true, Some(true));
    check("activating", "static", true, None);
    check("failed", "disabled", false, Some(false));
    check("inactive", "masked", false, Some(false));
    check("active", "enabled-runtime", true, Some(false));
}

#[test]
fn a_unit_that_is_started_again_and_again_does_not_run() {
    use crate::look::UnitSeen;
    let look = |sub_state: &str| {
        let mut seen = Seen::default();
        let unit =
            UnitSeen { active_state: "activating".into(), sub_state: sub_state.into(), fragment_path: "/a".into(), ..UnitSeen::default() };
        seen.units.insert("a.service".into(), unit);
        SystemdUnit::new().answer(&seen, &object([("name", "a.service".into())]), None).unwrap().unwrap()
    };
    assert_eq!(boolean(&look("start"), "active"), Some(true), "still starting");
    for sub_state in ["auto-restart", "failed"] {
        let seen = look(sub_state);
        assert_eq!(boolean(&seen, "active"), Some(false), "{sub_state}");
        let plan = |was: bool, active: bool| {
            let mut before = unit("x", was);
            before.insert("sha256".into(), crate::sum::sha256(b"x").as_str().into());
            for name in ["active", "active_state", "sub_state"] {
                before.insert(name.into(), seen[name].clone());
            }
            turn(&SystemdUnit::new().plan(&PlanContext { now: 0 }, Some(&before), Some(&unit("x", active))).unwrap())
        };
        assert_eq!(plan(true, true), Turn::Start);
        assert_eq!(plan(true, false), Turn::Stop, "it must not go on trying");
    }
}

#[test]
fn a_unit_that_ends_again_and_again_is_in_need_of_care_while_it_runs() {
    use crate::look::UnitSeen;
    let care = |restarts: u64, started_ago: Option<u64>| -> Option<String> {
        let mut seen = Seen::default();
        let unit = UnitSeen { active_state: "active".into(), fragment_path: "/a".into(), restarts, started_ago, ..UnitSeen::default() };
        seen.units.insert("a.service".into(), unit);
        let found = SystemdUnit::new().answer(&seen, &object([("name", "a.service".into())]), None).unwrap().unwrap();
        assert_eq!(boolean(&found, "active"), Some(true));
        found["care"].as_items().unwrap().first().and_then(|v| v.as_str().map(str::to_owned))
    };
    let told = "it ends again and again: systemd has started it again 7 times, the last time 4 seconds ago";
    assert_eq!(care(7, Some(4)).as_deref(), Some(told));
    assert_eq!(care(2, Some(4)), None, "it waited for something");
    assert_eq!(care(7, Some(7200)), None, "it runs by now");
    assert_eq!(care(7, None), None);
    let mut seen = Seen::default();
    let ended =
        UnitSeen { active_state: "inactive".into(), fragment_path: "/a".into(), restarts: 7, started_ago: Some(4), ..UnitSeen::default() };
    seen.units.insert("a.service".into(), ended);
    let found = SystemdUnit::new().answer(&seen, &object([("name", "a.service".into())]), None).unwrap().unwrap();
    assert_eq!(found["care"].as_items().map(<[Value]>::len), Some(0), "that it does not run says it all");
}

#[test]
fn whether_its_address_is_its_hosts_is_told() {
    let told = |own: &[&str], url: Option<&str>| own_address(&own.iter().map(|a| a.parse().unwrap()).collect(), url);
    let own = ["127.0.0.1", "10.0.0.1", "fd00::1"];
    for (url, expected) in [
        ("https://10.0.0.1:6443/readyz", Some("10.0.0.1")),
        ("https://10.0.0.9:6443/readyz", Some("")),
        ("https://[fd00:0::1]:6443/readyz", Some("fd00::1")),
        ("https://[fd00::9]:6443/readyz", Some("")),
        ("http://10.0.0.1/healthz", Some("10.0.0.1")),
        ("https://karmada.example:6443/readyz", None),
    ] {
        assert_eq!(told(&own, Some(url)).as_deref(), expected, "{url}");
    }
    assert_eq!(told(&[], Some("https://10.0.0.1:6443/readyz")), None, "nobody could tell");
    assert_eq!(told(&own, None), None);
}

#[test]
fn a_unit_is_asked_how_it_is_where_that_is_wanted() {
    use crate::look::UnitSeen;
    let care = |health: Option<u16>, ago: u64| -> String {
        let unit = UnitSeen { health, started_ago: Some(ago), ..UnitSeen::default() };
        super::care(&unit, false).join()
    };
    assert_eq!(care(Some(0), 90), "it runs, and does not answer when it is asked how it is");
    assert_eq!(care(Some(500), 90), "it says that it is not well (HTTP 500)");
    assert_eq!(care(Some(0), 10), "", "it is only just started");
    // Who is not let in knows no more than that somebody answers.
    for health in [None, Some(200), Some(401)] {
        assert_eq!(care(health, 90), "");
    }
    let ask = |known: bool, health: &str| {
        let mut wanted = unit("x", true);
        wanted.insert("health".into(), health.into());
        let identity = object([("name", "a.service".into())]);
        let known = known.then(|| unit("x", true));
        Ask { resource_type: KIND.to_owned(), identity, known, wanted: Some(wanted), begun: false }
    };
    let url = "https://127.0.0.1:5443/readyz";
    let asked = |known: bool, url: &str| {
        SystemdUnit::new().looks_for(&ask(known, url)).into_iter().any(|l| matches!(l, Look::Health { url: at, .. } if at == url))
    };
    assert!(asked(true, url) && !asked(false, url) && !asked(true, "file:///etc/shadow"));
    assert!(address_problem("http://h/{1,2}").is_some() && address_problem("https://").is_some() && address_problem(url).is_none());
}

#[test]
fn a_change_that_was_cut_off_is_finished() {
    let mut before = unit("x", true);
    before.insert("sha256".into(), crate::sum::sha256(b"x").as_str().into());
    let plan = |before: &Object| SystemdUnit::new().plan(&PlanContext { now: 0 }, Some(before), Some(&unit("x", true))).unwrap();
    assert!(plan(&before).is_no_op());
    before.insert("interrupted".into(), true.into());
    let change = plan(&before);
    assert_eq!(turn(&change), Turn::Restart);
    // of an unfinished change only what is seen counts: triggers are not, so they count as changed
    let mut seen = unit("x", true);
    seen.insert("sha256".into(), crate::sum::sha256(b"x").as_str().into());
    let mut wanted = unit("x", true);
    wanted.insert("restart_triggers".into(), Value::map(Type::String, [("a".to_owned(), "1".into())].into()));
    let change = SystemdUnit::new().plan(&PlanContext { now: 0 }, Some(&seen), Some(&wanted)).unwrap();
    assert_eq!(turn(&change), Turn::Restart);
}

#[test]
fn a_mark_is_cleared_by_whoever_set_it_or_when_nothing_is_started() {
    let last = |change: Change| {
        let after = change.after().cloned().unwrap();
        let script = scripts::set_up(&after, &change, turn(&change), 30);
        script.trim_end().lines().last().unwrap().to_owned()
    };
    let update = |before: Object, after: Object| last(Change::Update { before, after });
    assert_eq!(last(Change::Create { after: unit("x", true) }), "clear_pending own");
    assert_eq!(update(unit("x", true), unit("y", true)), "clear_pending own");
    // A start that failed left it, and now the unit is to be stopped, or is.
    assert_eq!(update(unit("x", true), unit("x", false)), "clear_pending all");
    assert_eq!(update(unit("x", false), unit("y", false)), "clear_pending all");
}

#[test]
fn links_of_a_file_that_was_there_before_go() {
    let with = |content: &str, enabled: bool| {
        let mut object = unit(content, true);
        object.insert("sha256".into(), crate::sum::sha256(content.as_bytes()).as_str().into());
        object.insert("enabled".into(), enabled.into());
        object
    };
    let does = |change: Change| {
        let after = change.after().cloned().unwrap();
        let script = scripts::set_up(&after, &change, turn(&change), 30);
        let word = |line: &&str| ["enable_unit", "reenable_unit", "disable_unit", "reload"].contains(line);
        script.lines().filter(word).collect::<Vec<_>>().join(" ")
    };
    let update = |before: Object, after: Object| does(Change::Update { before, after });
    // systemd reads once, when all is there.
    assert_eq!(does(Change::Create { after: with("x", true) }), "enable_unit reload");
    assert_eq!(update(with("x", true), with("x", true)), "reload");
    assert_eq!(update(with("x", false), with("x", true)), "enable_unit reload");
    assert_eq!(update(with("x", true), with("y", true)), "reenable_unit reload");
    let mut cut_off = with("x", true);
    cut_off.insert("interrupted".into(), true.into());
    assert_eq!(update(cut_off, with("x", true)), "reenable_unit reload");
    assert_eq!(update(with("x", true), with("y", false)), "disable_unit reload");
}

#[test]
fn files_that_change_it_go_unless_they_are_allowed() {
    let with = |mut object: Object, name: &str, files: &[&str]| {
        object.insert(name.into(), Value::strings(files));
        object.insert("sha256".into(), crate::sum::sha256(b"x").as_str().into());
        object
    };
    let plan = |before: &Object, wanted: &Object| SystemdUnit::new().plan(&PlanContext { now: 0 }, Some(before), Some(wanted)).unwrap();
    let told = |before: &Object, wanted: &Object| {
        let change = plan(before, wanted);
        (change.is_no_op(), SystemdUnit::new().impact(&change).join())
    };
    let removed = "removes x.conf, which changes a.service on 10.0.0.1; restarts a.service on 10.0.0.1".to_owned();
    let unit = || unit("x", true);
    // Nobody said anything of them.
    assert_eq!(told(&with(unit(), "unlisted_drop_ins", &["x.conf"]), &unit()), (true, String::new()));
    // It was said just now, or before.
    for name in ["unlisted_drop_ins", "drop_ins"] {
        assert_eq!(told(&with(unit(), name, &["x.conf"]), &with(unit(), "drop_ins", &[])), (false, removed.clone()), "{name}");
    }
    assert_eq!(told(&with(unit(), "drop_ins", &["a.conf"]), &with(unit(), "drop_ins", &["b.conf", "a.conf"])), (true, String::new()));
    assert_eq!(told(&with(unit(), "drop_ins", &[]), &with(unit(), "drop_ins", &["a.conf"])), (true, String::new()));
}

#[test]
fn a_file_that_others_may_write_is_told_and_taken_back() {
    use crate::look::{PathKind, PathSeen, UnitSeen};
    let sum = crate::sum::sha256(b"x");
    let look = |ids: &str, mode: u32, known: bool| {
        let (uid, gid) = ids.split_once(':').unwrap();
        let mut seen = Seen::default();
        let state =
            UnitSeen { active_state: "active".into(), file_state: "enabled".into(), fragment_path: "/a".into(), ..UnitSeen::default() };
        seen.units.insert("a.service".into(), state);
        let name = |id: &str| String::from(if id == "0" { "root" } else { "theirs" });
        let (owner, group) = (name(uid), name(gid));
        let [uid, gid] = [uid, gid].map(str::to_owned);
        let sha256 = Some(sum.clone());
        let file = PathSeen { kind: PathKind::File, owner, group, uid, gid, mode, size: 1, sha256, content: None, empty: false };
        seen.paths.insert("/etc/systemd/system/a.service".into(), Ok(file));
        let mut memory = unit("x", true);
        memory.insert("sha256".into(), sum.as_str().into());
        let found = SystemdUnit::new().answer(&seen, &object([("name", "a.service".into())]), known.then_some(&memory)).unwrap().unwrap();
        let care = found["care"].as_items().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
        let mut before = memory.clone();
        before.extend(found);
        let change = SystemdUnit::new().plan(&PlanContext { now: 0 }, Some(&before), Some(&unit("x", true)));
        (care.join(), change.map(|change| (turn(&change), change.is_no_op(), SystemdUnit::new().impact(&change).join())))
    };
    for (ids, mode) in [("0:0", 0o644), ("0:0", 0o600), ("0:0", 0o664), ("0:1000", 0o640)] {
        let (care, change) = look(ids, mode, true);
        assert_eq!(
            (care.as_str(), change.unwrap()),
            ("", (Turn::Nothing, true, String::new())),
            "{ids} {mode:o}: nobody else may write it"
        );
    }
    let back = "makes /etc/systemd/system/a.service root's again on 10.0.0.1, with the mode 0644";
    let loose = [("0:0", 0o666, "root:root 0666"), ("1000:0", 0o644, "theirs:root 0644"), ("0:1000", 0o664, "root:theirs 0664")];
    for (ids, mode, is) in loose {
        let (care, change) = look(ids, mode, true);
        assert_eq!(care, format!("somebody gave its file away: it is {is}, and should be root:root 0644"));
        // It runs on as it is.
        assert_eq!(change.unwrap(), (Turn::Nothing, false, back.to_owned()));
    }
    assert_eq!(look("0:0", 0o666, false).0, "", "somebody else's");
}

#[test]
fn which_of_the_allowed_files_are_there_is_no_drift() {
    use crate::look::{PathKind, PathSeen, UnitSeen};
    let look = |there: &[&str], known: Option<&[&str]>| -> (Option<Value>, Option<Value>) {
        let mut seen = Seen::default();
        let drop_ins = there.iter().map(|f| (*f).to_owned()).collect();
        seen.units.insert("a.service".into(), UnitSeen { fragment_path: "/a".into(), drop_ins, ..UnitSeen::default() });
        let [owner, group, uid, gid] = ["root", "root", "0", "0"].map(str::to_owned);
        let file =
            PathSeen { kind: PathKind::File, owner, group, uid, gid, mode: 0o644, size: 1, sha256: None, content: None, empty: false };
        seen.paths.insert("/etc/systemd/system/a.service".into(), Ok(file));
        let mut memory = unit("x", true);
        memory.extend(known.map(|files| ("drop_ins".to_owned(), Value::strings(files))));
        let found = SystemdUnit::new().answer(&seen, &object([("name", "a.service".into())]), Some(&memory)).unwrap().unwrap();
        (found.get("drop_ins").cloned(), found.get("unlisted_drop_ins").cloned())
    };
    assert_eq!(look(&["x.conf"], None), (None, Some(Value::strings(["x.conf"]))));
    assert_eq!(look(&["x.conf"], Some(&[])), (Some(Value::strings(["x.conf"])), None));
    assert_eq!(look(&["a.conf"], Some(&["b.conf", "a.conf"])), (Some(Value::strings(["b.conf", "a.conf"])), None));
    assert_eq!(look(&[], Some(&["a.conf"])), (Some(Value::strings(["a.conf"])), None));
}

#[test]
fn a_host_without_systemd_is_told_as_such() {
    let failed = |said: &str| {
        let stdout = format!("\nkfx fail {said}\n").into_bytes();
        let output = crate::host::Output { status: 3, stdout, mark: "kfx".to_owned(), ..crate::host::Output::default() };
        scripts::failed("Setting up the unit a.service on h", &output, &[], ("a.service", 90))
    };
    let why = failed("systemd").unwrap();
    assert_eq!(why.summary, "Host does not run systemd");
    assert_eq!(why.detail, "Setting up the unit a.service on h: systemd is not the init of this host.");
    assert!(why.hints[0].contains("systemd as the host's init"), "{:?}", why.hints);
    assert_eq!(failed("unit died").unwrap().summary, "Unit did not stay up");
    assert_eq!(failed("exists /etc/systemd/system/a.service"), None, "others' words are left to others");
}

/// By what etcd 3.5 says of a disk without room for its log.
#[test]
fn a_start_that_failed_is_told_by_its_reason_and_not_by_where_a_program_was() {
    let frames: String =
        (0..20).map(|i| format!("go.etcd.io/etcd/server.f{i}(0x1, 0x2)\n\tgo.etcd.io/etcd/server/f.go:{i} +0x1\n")).collect();
    let journal = |frames: &str| {
        let says = "{\"level\":\"panic\",\"msg\":\"failed to create WAL\",\"error\":\"write 0.tmp: no space left on device\"}";
        format!("{says}\npanic: failed to create WAL\ngoroutine 1 [running]:\n{frames}a.service: Main process exited\nCaused by:\n\tthis\n")
    };
    let stdout = format!("\nkfx journal\n{}\nkfx fail unit start\n", journal(&frames)).into_bytes();
    let output = crate::host::Output { status: 3, stdout, mark: "kfx".to_owned(), ..crate::host::Output::default() };
    let why = scripts::failed("Setting up the unit a.service on h", &output, &[], ("a.service", 90)).unwrap();
    assert_eq!(why.summary, "Unit did not start");
    let told = journal("").replace("goroutine 1 [running]:\n", "");
    assert!(why.detail.ends_with(told.trim_end()), "{}", why.detail);
    assert!(why.hints.len() == 2 && why.hints[0].starts_with("Make room on the host"), "{:?}", why.hints);
}

#[test]
fn a_unit_that_is_started_elsewhere_than_its_file_says_is_not_enabled() {
    use crate::look::{PathSeen, UnitSeen};
    let content = "[Service]\nExecStart=/bin/sleep inf\n[Install]\nWantedBy=multi-user.target\n";
    let sum = crate::sum::sha256(content.as_bytes());
    let mut known = unit(content, true);
    known.insert("sha256".into(), sum.as_str().into());
    known.insert("drop_ins".into(), Value::strings(Vec::<String>::new()));
    let seen = |starters: &[&str], drop_ins: &[&str]| {
        let [owner, group, uid, gid] = ["root", "root", "0", "0"].map(str::to_owned);
        let sha256 = Some(sum.clone());
        let file = PathSeen { kind: PathKind::File, owner, group, uid, gid, mode: 0o644, size: 9, sha256, content: None, empty: false };
        let owned = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let (starters, drop_ins) = (owned(starters), owned(drop_ins));
        let state = UnitSeen { active_state: "active".into(), file_state: "enabled".into(), starters, drop_ins, ..UnitSeen::default() };
        let mut seen = Seen::default();
        seen.paths.insert(path_of("a.service"), Ok(file));
        seen.units.insert("a.service".into(), state);
        seen
    };
    let identity = object([("name", "a.service".into())]);
    let answer = |seen: &Seen, known: &Object| {
        let found = SystemdUnit::new().answer(seen, &identity, Some(known)).unwrap().unwrap();
        (boolean(&found, "enabled"), found["care"].as_items().map_or(0, <[Value]>::len))
    };
    let look = |starters: &[&str], known: &Object| answer(&seen(starters, &[]), known);
    assert_eq!(look(&["multi-user.target.wants"], &known), (Some(true), 0));
    assert_eq!(look(&["rescue.target.wants"], &known), (Some(false), 1));
    assert_eq!(look(&["multi-user.target.wants", "rescue.target.wants"], &known), (Some(true), 1));
    assert_eq!(look(&[], &known), (Some(true), 0), "systemd knows better");
    // Another file may have an [Install] section, too.
    assert_eq!(answer(&seen(&["rescue.target.wants"], &["x.conf"]), &known), (Some(true), 0));
    let mut off = known.clone();
    off.insert("enabled".into(), false.into());
    assert_eq!(look(&["rescue.target.wants"], &off), (Some(true), 1), "somebody has enabled it");
    // It is not to start at a boot any more, and does so from elsewhere.
    let asked = |wanted: &Object| {
        let (known, wanted) = (Some(known.clone()), Some(wanted.clone()));
        let ask = Ask { resource_type: KIND.to_owned(), identity: identity.clone(), known, wanted, begun: false };
        boolean(&SystemdUnit::new().answer_for(&seen(&["rescue.target.wants"], &[]), &ask).unwrap().unwrap(), "enabled")
    };
    assert_eq!((asked(&off), asked(&known)), (Some(true), Some(false)));
    known.remove("drop_ins");
    assert_eq!(look(&["multi-user.target.wants", "rescue.target.wants"], &known), (Some(true), 0), "nobody said what may change it");
}

#[test]
fn what_has_run_for_a_while_is_not_waited_for() {
    let functions = [include_str!("../../script/prelude.sh"), include_str!("unit.sh")].join("\n");
    // Where this machine is busy a process may be old when it is looked at.
    let script = format!(
        "{functions}\nproperty() {{ echo \"$main\"; }}\n\
         for try in 1 2 3 4 5; do sleep 30 & main=$!; if is_settled; then kill \"$main\"; else echo young; break; fi; done\n\
         sleep 0.8\nif is_settled; then echo settled; fi\nkill \"$main\"\nmain=0\nif ! is_settled; then echo none; fi"
    );
    let said = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "young\nsettled\nnone\n");
}
