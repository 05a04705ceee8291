//! `ssh_command`.

use karmaform_model::{Action, Type, Value};

use crate::lab::{lab, map};

const KIND: &str = "ssh_command";

#[test]
fn the_life_of_a_command() {
    let Some(lab) = lab("the_life_of_a_command") else { return };
    let wanted = |trigger: &str| {
        lab.arguments(
            KIND,
            [
                ("command", "echo \"it's $WHO\"; echo $WHO >> /opt/kf-log; umask; pwd".into()),
                ("check", "test -e /opt/kf-log".into()),
                ("undo", "rm -f /opt/kf-log".into()),
                ("environment", map(&[("WHO", "me & 'you'")])),
                ("triggers", map(&[("v", trigger)])),
            ],
        )
    };
    let state = lab.create(KIND, &wanted("1"));
    assert_eq!(state["output"], "".into(), "the second time the check said that there is nothing to do");
    assert_eq!(lab.shell("cat /opt/kf-log"), "me & 'you'");
    let state = lab.step(KIND, Some(&state), Some(&wanted("2")), Action::Update).unwrap();
    assert_eq!(state["output"], "it's me & 'you'\n0022\n/".into());
    lab.shell("rm /opt/kf-log");
    let state = lab.step(KIND, Some(&state), Some(&wanted("2")), Action::Create).unwrap();
    lab.delete(KIND, &state);
    assert_eq!(lab.shell("ls /opt/kf-log 2>/dev/null || echo gone"), "gone");
}

#[test]
fn commands_that_fail_say_how() {
    let Some(lab) = lab("commands_that_fail_say_how") else { return };
    let check = |command: &str, summary: &str, words: &[&str]| {
        let environment = Value::map(Type::String, [("TOKEN".to_owned(), Value::from("hunter2").secret())].into());
        let wanted = lab.arguments(KIND, [("command", command.into()), ("timeout", 2i64.into()), ("environment", environment)]);
        let change = lab.plan(KIND, None, Some(&wanted)).unwrap();
        let error = lab.apply(KIND, &change).unwrap_err();
        assert_eq!(error.summary, summary, "{}", error.detail);
        assert!(words.iter().all(|w| error.detail.contains(w)), "{}", error.detail);
        assert!(!error.detail.contains("hunter2"), "{}", error.detail);
    };
    check("echo working with $TOKEN; echo no >&2; exit 5", "Command failed", &["status 5", "working with (sensitive)", "no"]);
    check("no-such-program", "Command not found on the host", &["127"]);
    check("echo begun; sleep 60", "Command took too long", &["2 s", "begun"]);
    check("echo 'unclosed", "Command failed", &[]);
}

#[test]
fn a_command_may_leave_something_running_and_print_a_lot() {
    let Some(lab) = lab("a_command_may_leave_something_running") else { return };
    let started = std::time::Instant::now();
    let wanted = lab.arguments(KIND, [("command", "sleep 20 & seq 200000".into())]);
    let state = lab.create(KIND, &wanted);
    assert!(started.elapsed().as_secs() < 10);
    let output = state["output"].as_str().unwrap();
    assert!(output.len() <= 64 << 10 && output.ends_with("\n199999\n200000"));
}
