//! `ssh_systemd_unit`.

use karmaform_model::{Action, Change, Type, Value};

use crate::lab::{lab, map};

const KIND: &str = "ssh_systemd_unit";

const UNIT: &str = "[Service]\nEnvironmentFile=-/run/karmaform/kf-test.service.env\nExecStart=/bin/sh -c 'echo \"$START\" >> /run/kf-starts; exec sleep 1000'\n\
                    [Install]\nWantedBy=multi-user.target\n";

#[test]
fn the_life_of_a_unit() {
    let Some(lab) = lab("the_life_of_a_unit") else { return };
    let wanted = |extra: &str, trigger: &str, active: bool, enabled: bool| {
        let environment = Value::map(Type::String, [("START".to_owned(), Value::from("a \"b\" $c \\ `d`").secret())].into());
        lab.arguments(
            KIND,
            [
                ("name", "kf-test.service".into()),
                ("content", format!("{UNIT}{extra}").into()),
                ("restart_triggers", map(&[("t", trigger)])),
                ("start_environment", environment),
                ("active", active.into()),
                ("enabled", enabled.into()),
            ],
        )
    };
    let starts = || lab.shell("cat /run/kf-starts | wc -l");
    let state = lab.create(KIND, &wanted("", "1", true, true));
    assert_eq!(lab.shell("cat /run/kf-starts"), "a \"b\" $c \\ `d`", "started once though applied twice, with its variables");
    assert_eq!(lab.shell("systemctl is-active kf-test; systemctl is-enabled kf-test"), "active\nenabled");
    assert_eq!(
        lab.shell("stat -c '%a' /etc/systemd/system/kf-test.service /run/karmaform /run/karmaform/kf-test.service.env"),
        "644\n700\n600"
    );
    assert!(!state.contains_key("start_environment"));

    // each is applied twice, so a restart happens twice
    let state = lab.step(KIND, Some(&state), Some(&wanted("", "2", true, true)), Action::Update).unwrap();
    assert_eq!(starts(), "3");
    let state = lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", true, true)), Action::Update).unwrap();
    assert_eq!(starts(), "5");
    let state = lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", true, false)), Action::Update).unwrap();
    assert_eq!(lab.shell("systemctl is-enabled kf-test || true"), "disabled");
    let state = lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", false, true)), Action::Update).unwrap();
    assert_eq!((starts(), lab.shell("systemctl is-active kf-test || true")), ("5".into(), "inactive".into()));
    let state = lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", true, true)), Action::Update).unwrap();
    assert_eq!(starts(), "6", "the second start found it running");

    // cut off after the file was written: what is there looks right, but the unit still runs without it
    lab.shell("mkdir -p /run/karmaform; touch /run/karmaform/kf-test.service.pending");
    let state = lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", true, true)), Action::Update).unwrap();
    assert_eq!(starts(), "8");
    lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", true, true)), Action::NoOp);

    // drift: stopped, changed, disabled, gone
    for drift in [
        "systemctl stop kf-test",
        "echo '# x' >> /etc/systemd/system/kf-test.service",
        "systemctl disable kf-test",
        "systemctl mask --runtime kf-test; rm -f /etc/systemd/system/kf-test.service; systemctl daemon-reload; systemctl unmask --runtime kf-test",
    ] {
        lab.shell(&format!("{drift} 2>/dev/null"));
        let change = lab.plan(KIND, Some(&state), Some(&wanted("# more\n", "2", true, true))).unwrap();
        assert!(!change.is_no_op(), "{drift}");
        lab.apply(KIND, &change).unwrap();
        lab.step(KIND, Some(&state), Some(&wanted("# more\n", "2", true, true)), Action::NoOp);
    }
    lab.delete(KIND, &state);
    assert_eq!(
        lab.shell("systemctl show -p LoadState --value kf-test; ls /etc/systemd/system/*/kf-test.service 2>/dev/null || echo none"),
        "not-found\nnone"
    );
    lab.shell("rm /run/kf-starts");
}

#[test]
fn a_check_that_fails_leaves_what_runs_as_it_is() {
    let Some(lab) = lab("a_check_that_fails_leaves_what_runs_as_it_is") else { return };
    let wanted = |seconds: u32, check: &str| {
        lab.arguments(
            KIND,
            [
                ("name", "kf-checked.service".into()),
                ("content", format!("[Service]\nExecStart=/bin/sleep {seconds}\n").into()),
                ("check", check.into()),
            ],
        )
    };
    // Before the first start there is nothing to leave, and nothing is written.
    let refused = lab.apply(KIND, &lab.plan(KIND, None, Some(&wanted(1000, "echo no hope >&2; exit 3"))).unwrap()).unwrap_err();
    assert!(refused.summary == "Unit was not started" && refused.detail.contains("no hope"), "{refused:?}");
    assert_eq!(lab.shell("ls /etc/systemd/system/kf-checked.service 2>/dev/null || echo none"), "none");
    let state = lab.step(KIND, None, Some(&wanted(1000, "true")), Action::Create).unwrap();
    let pid = || lab.shell("systemctl show -p MainPID --value kf-checked.service");
    let before = pid();
    let change = lab.plan(KIND, Some(&state), Some(&wanted(2000, "exit 1"))).unwrap();
    assert_eq!(lab.apply(KIND, &change).unwrap_err().summary, "Unit was not started");
    assert_eq!((pid(), lab.shell("grep -c 'sleep 1000' /etc/systemd/system/kf-checked.service")), (before.clone(), "1".to_owned()));
    // With another check alone there is nothing to do.
    assert!(lab.plan(KIND, Some(&state), Some(&wanted(1000, "exit 1"))).unwrap().is_no_op());
    let state = lab.step(KIND, Some(&state), Some(&wanted(2000, "true")), Action::Update).unwrap();
    assert_ne!(pid(), before);
    lab.delete(KIND, &state);
}

#[test]
fn a_unit_that_does_not_start_says_why() {
    let Some(lab) = lab("a_unit_that_does_not_start_says_why") else { return };
    lab.shell("nohup python3 -c 0 2>/dev/null; true");
    let check = |service: &str, wait: bool, timeout: i64, summary: Option<&str>, word: &str| {
        let content = format!("[Service]\n{service}\n");
        let environment = Value::map(Type::String, [("S".to_owned(), Value::from("hunter2").secret())].into());
        let wanted = lab.arguments(
            KIND,
            [
                ("name", "kf-bad.service".into()),
                ("content", content.into()),
                ("wait", wait.into()),
                ("start_timeout", timeout.into()),
                ("start_environment", environment),
            ],
        );
        let change = lab.plan(KIND, None, Some(&wanted)).unwrap();
        let done = lab.apply(KIND, &change);
        assert_eq!(done.as_ref().err().map(|e| e.summary.as_str()), summary, "{done:?}");
        if let Err(error) = done {
            assert!(error.detail.contains(word) && !error.detail.contains("hunter2"), "{}", error.detail);
        }
        let state = lab.observe(KIND, &wanted, Some(&wanted)).unwrap().unwrap();
        lab.delete(KIND, &state);
    };
    let port = "ExecStart=/bin/sh -c 'echo \"bind: address already in use, hunter2\"; exit 1'";
    check(port, true, 10, Some("Unit did not stay up"), "address already in use");
    check(&format!("{port}\nRestart=always\nRestartSec=5"), true, 10, Some("Unit did not stay up"), "address already in use");
    check(&format!("Type=notify\n{port}"), true, 10, Some("Unit did not start"), "address already in use");
    check("Type=notify\nExecStart=/bin/sleep 100", true, 2, Some("Unit did not start in time"), "2 s");
    check("Type=notify\nExecStart=/bin/sleep 100", false, 2, None, "");
    check("Type=oneshot\nExecStart=/bin/true\nRemainAfterExit=yes", true, 5, None, "");
    check("ExecStart=/no/such/program", true, 5, Some("Unit did not stay up"), "/no/such/program");
    check("Rubbish", true, 5, Some("Unit did not start"), "kf-bad.service");
}

#[test]
fn a_unit_that_is_started_again_and_again_is_drift() {
    let Some(lab) = lab("a_unit_that_is_started_again_and_again_is_drift") else { return };
    let wanted = |active: bool| {
        let content = "[Service]\nExecStart=/bin/sh -c 'test -e /run/kf-good && exec sleep 1000'\nRestart=always\nRestartSec=1000\n";
        lab.arguments(
            KIND,
            [("name", "kf-loop.service".into()), ("content", content.into()), ("active", active.into()), ("enabled", false.into())],
        )
    };
    lab.shell("touch /run/kf-good");
    let state = lab.apply(KIND, &lab.plan(KIND, None, Some(&wanted(true))).unwrap()).unwrap().unwrap();
    lab.step(KIND, Some(&state), Some(&wanted(true)), Action::NoOp);
    lab.shell("rm /run/kf-good; systemctl kill kf-loop; sleep 0.5");
    assert_eq!(lab.shell("systemctl show -p SubState --value kf-loop"), "auto-restart");
    let change = lab.plan(KIND, Some(&state), Some(&wanted(true))).unwrap();
    assert_eq!(change.action(), Action::Update);
    assert_eq!(lab.apply(KIND, &change).unwrap_err().summary, "Unit did not stay up");
    lab.step(KIND, Some(&state), Some(&wanted(false)), Action::Update);
    assert_eq!(lab.shell("systemctl show -p ActiveState --value kf-loop"), "inactive");
    lab.delete(KIND, &state);
}

/// The script of a run that was killed goes on with its part, and asks systemd for the opposite in the middle of ours.
#[test]
fn a_start_from_elsewhere_does_not_spoil_a_stop() {
    let Some(lab) = lab("a_start_from_elsewhere_does_not_spoil_a_stop") else { return };
    let wanted = |seconds: u32, active: bool| {
        let content = format!("[Service]\nExecStart=/bin/sleep {seconds}\nExecStop=/bin/sleep 2\n");
        lab.arguments(KIND, [("name", "kf-slow.service".into()), ("content", content.into()), ("active", active.into())])
    };
    let state = lab.step(KIND, None, Some(&wanted(1000, true)), Action::Create).unwrap();
    let change = lab.plan(KIND, Some(&state), Some(&wanted(1000, false))).unwrap();
    lab.shell("(sleep 1; systemctl --no-block start kf-slow) >/dev/null 2>&1 &");
    let state = lab.apply(KIND, &change).unwrap().expect("it stays");
    lab.step(KIND, Some(&state), Some(&wanted(1000, false)), Action::NoOp);
    assert_eq!(lab.shell("systemctl is-active kf-slow || true"), "inactive");
    lab.delete(KIND, &state);
}

/// Whoever restarts it is cut off while the old process takes its time.
#[test]
fn a_restart_that_is_cut_off_leaves_nothing_stopped() {
    let Some(lab) = lab("a_restart_that_is_cut_off_leaves_nothing_stopped") else { return };
    let wanted = |trigger: &str| {
        let content = "[Service]\nExecStart=/bin/sleep 1000\nExecStop=/bin/sleep 8\n";
        let arguments = [
            ("name", "kf-slow.service".into()),
            ("content", content.into()),
            ("wait", false.into()),
            ("restart_triggers", map(&[("t", trigger)])),
        ];
        lab.arguments(KIND, arguments)
    };
    let state = lab.apply(KIND, &lab.plan(KIND, None, Some(&wanted("1"))).unwrap()).unwrap().unwrap();
    let process = || lab.shell("systemctl show -p MainPID --value kf-slow");
    let before = process();
    let change = lab.plan(KIND, Some(&state), Some(&wanted("2"))).unwrap();
    // Sessions are looked for by the script, for this command has a connection of its own.
    let cut = "for i in $(seq 400); do [ \"$(systemctl show -p ActiveState --value kf-slow)\" != deactivating ] || break; sleep 0.05; done\n\
               for p in $(pgrep -f '[s]shd: root'); do [ $p = $PPID ] || kill $p; done 2>/dev/null; true";
    let error = std::thread::scope(|scope| {
        let restart = scope.spawn(|| lab.apply(KIND, &change));
        lab.shell(cut);
        restart.join().unwrap().unwrap_err()
    });
    assert_eq!(error.summary, "Connection to the host was lost", "{error:?}");
    lab.shell("for i in $(seq 60); do sleep 0.5; systemctl is-active kf-slow >/dev/null && exit 0; done; exit 1");
    assert_ne!(process(), before);
    lab.delete(KIND, &state);
}

#[test]
fn a_units_of_a_package_is_left_alone() {
    let Some(lab) = lab("a_units_of_a_package_is_left_alone") else { return };
    let wanted = lab.arguments(KIND, [("name", "ssh.service".into()), ("content", UNIT.into())]);
    assert_eq!(lab.plan(KIND, None, Some(&wanted)).unwrap_err().summary, "Exists already");
    assert_eq!(lab.apply(KIND, &Change::Create { after: wanted }).unwrap_err().summary, "Exists already");
    lab.assert_nothing_left();
}
