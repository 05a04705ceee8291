//! `ssh_file`.

use karmaform_model::{Action, Change, Value};

use crate::lab::lab;

const KIND: &str = "ssh_file";

#[test]
fn the_life_of_a_file() {
    let Some(lab) = lab("the_life_of_a_file") else { return };
    let path = "/opt/kf test/deep/it's.conf";
    let wanted = |content: &str| {
        lab.arguments(KIND, [("path", path.into()), ("content", content.into()), ("mode", "640".into()), ("group", "adm".into())])
    };
    let state = lab.create(KIND, &wanted("one\nü 'x'\n"));
    assert_eq!(
        lab.shell("cat '/opt/kf test/deep/'*; stat -c '%a %U:%G' '/opt/kf test/deep/'* '/opt/kf test'"),
        "one\nü 'x'\n640 root:adm\n755 root:root"
    );
    assert_eq!(lab.shell("stat -c '%a' /var/lib/karmaform /var/lib/karmaform/owned"), "755\n644");

    // content without a newline, updated in place
    let state = lab.step(KIND, Some(&state), Some(&wanted("two")), Action::Update).unwrap();
    assert_eq!(lab.shell("cat '/opt/kf test/deep/'*"), "two");

    // drift: content, mode, owner, gone
    lab.shell("echo drifted > '/opt/kf test/deep/it'\\''s.conf'");
    let Change::Update { before, .. } = lab.plan(KIND, Some(&state), Some(&wanted("two"))).unwrap() else { panic!() };
    assert_eq!(before["content"], "drifted\n".into());
    let state = lab.step(KIND, Some(&state), Some(&wanted("two")), Action::Update).unwrap();
    for drift in ["chmod 600", "chown daemon", "chgrp root", "dd if=/dev/urandom bs=100k count=1 status=none of="] {
        let space = if drift.ends_with('=') { "" } else { " " };
        lab.shell(&format!("{drift}{space}'/opt/kf test/deep/it'\\''s.conf'"));
        lab.step(KIND, Some(&state), Some(&wanted("two")), Action::Update);
        lab.step(KIND, Some(&state), Some(&wanted("two")), Action::NoOp);
    }
    lab.shell("rm '/opt/kf test/deep/it'\\''s.conf'");
    let state = lab.step(KIND, Some(&state), Some(&wanted("two")), Action::Create).unwrap();

    lab.delete(KIND, &state);
    assert_eq!(lab.shell("ls -d '/opt/kf test' 2>/dev/null || echo gone"), "gone");
}

#[test]
fn a_foreign_file_stays_unless_it_may_be_overwritten() {
    let Some(lab) = lab("a_foreign_file_stays") else { return };
    lab.shell("echo theirs > /opt/kf-foreign");
    let wanted = |overwrite: bool| {
        lab.arguments(KIND, [("path", "/opt/kf-foreign".into()), ("content", "ours".into()), ("overwrite", overwrite.into())])
    };
    assert_eq!(lab.plan(KIND, None, Some(&wanted(false))).unwrap_err().summary, "Exists already");
    let blind = Change::Create { after: wanted(false) };
    let refusal = lab.apply(KIND, &blind).unwrap_err();
    assert!(refusal.summary == "Exists already" && refusal.hints.iter().any(|h| h.contains("overwrite = true")), "{refusal:?}");
    assert_eq!(lab.shell("cat /opt/kf-foreign"), "theirs");
    lab.assert_nothing_left();
    let state = lab.step(KIND, None, Some(&wanted(true)), Action::Update).unwrap();
    assert_eq!(lab.shell("cat /opt/kf-foreign"), "ours");
    lab.delete(KIND, &state);
}

#[test]
fn nothing_is_written_through_a_link_in_the_place_of_a_directory_of_ours() {
    let Some(lab) = lab("nothing_is_written_through_a_link") else { return };
    let wanted = |content: &str| lab.arguments(KIND, [("path", "/opt/kf-made/it.conf".into()), ("content", content.into())]);
    let state = lab.create(KIND, &wanted("one\n"));
    lab.shell("mv /opt/kf-made /opt/kf-theirs && ln -s kf-theirs /opt/kf-made");
    let error = lab.apply(KIND, &lab.plan(KIND, Some(&state), Some(&wanted("two\n"))).unwrap()).unwrap_err();
    assert_eq!(error.summary, "A link has taken a directory's place", "{error:?}");
    assert!(error.detail.contains("a symbolic link has taken the place of /opt/kf-made"), "{error:?}");
    let error = lab.apply(KIND, &lab.plan(KIND, Some(&state), None).unwrap()).unwrap_err();
    assert_eq!(error.summary, "A link has taken a directory's place", "{error:?}");
    assert_eq!(lab.shell("cat /opt/kf-theirs/it.conf; ls -A /opt/kf-theirs"), "one\nit.conf");
    lab.shell("rm /opt/kf-made && mv /opt/kf-theirs /opt/kf-made");
    let state = lab.step(KIND, Some(&state), Some(&wanted("two\n")), Action::Update).unwrap();
    lab.delete(KIND, &state);
}

#[test]
fn what_is_refused_does_not_take_its_place() {
    let Some(lab) = lab("what_is_refused_does_not_take_its_place") else { return };
    let path = "/opt/kf-tried/it.conf";
    let wanted = |content: Value| {
        let check = "echo \"in $FILE\"; stat -c '%a %n' \"$FILE\" >&2; grep -q good \"$FILE\"";
        lab.arguments(KIND, [("path", path.into()), ("content", content), ("mode", "0640".into()), ("check", check.into())])
    };
    let refused = |state: Option<&karmaform_model::Object>, content: Value| {
        let error = lab.apply(KIND, &lab.plan(KIND, state, Some(&wanted(content))).unwrap()).unwrap_err();
        assert_eq!(error.summary, "File was refused", "{error:?}");
        error.detail
    };
    // It is tried beside its place, as it will be there.
    let told = refused(None, "bad".into());
    assert!(told.contains("in /opt/kf-tried/.karmaform.it.conf.") && told.contains("640 /opt/"), "{told}");
    assert_eq!(lab.shell("ls -d /opt/kf-tried 2>/dev/null || echo none"), "none");
    lab.assert_nothing_left();
    let state = lab.step(KIND, None, Some(&wanted("good 1".into())), Action::Create).unwrap();
    assert!(!state.contains_key("check"));
    refused(Some(&state), "bad".into());
    // Nothing is said of what is secret.
    let told = refused(Some(&state), Value::from("bad").secret());
    assert!(!told.contains("/.karmaform."), "{told}");
    assert_eq!(lab.shell("ls -A /opt/kf-tried; cat /opt/kf-tried/it.conf"), "it.conf\ngood 1");
    let state = lab.step(KIND, Some(&state), Some(&wanted("good 2".into())), Action::Update).unwrap();
    // Another check alone is nothing to do.
    let mut other = wanted("good 2".into());
    other.insert("check".into(), "false".into());
    assert!(lab.plan(KIND, Some(&state), Some(&other)).unwrap().is_no_op());
    lab.delete(KIND, &state);
}

#[test]
fn what_a_host_refuses_is_said_clearly_and_cleaned_up() {
    let Some(lab) = lab("what_a_host_refuses") else { return };
    lab.shell("mkdir -p /mnt/kf-small /mnt/kf-ro && mount -t tmpfs -o size=64k none /mnt/kf-small && mount -t tmpfs -o ro none /mnt/kf-ro");
    let check = |path: &str, content: &str, owner: &str, summary: &str| {
        let wanted = lab.arguments(KIND, [("path", path.into()), ("content", content.into()), ("owner", owner.into())]);
        let change = lab.plan(KIND, None, Some(&wanted)).unwrap();
        let error = lab.apply(KIND, &change).unwrap_err();
        assert_eq!(error.summary, summary, "{}", error.detail);
        assert!(!error.detail.contains("hunter2"), "{}", error.detail);
        lab.assert_nothing_left();
    };
    check("/mnt/kf-small/a/big", &"hunter2 ".repeat(20_000), "root", "Disk is full");
    assert_eq!(lab.shell("ls -A /mnt/kf-small"), "");
    check("/mnt/kf-ro/x", "hunter2", "root", "File system is read-only");
    check("/opt/kf-owner", "hunter2", "nobody-here", "No such user or group");
    check("/proc/kf", "hunter2", "root", "Change failed on the host");
    lab.shell("umount /mnt/kf-small /mnt/kf-ro; rmdir /mnt/kf-small /mnt/kf-ro");

    // the disk where ownership is written down is full: a shell says nothing but "I/O error" then
    lab.shell("mkdir -p /var/lib/karmaform && mount -t tmpfs -o size=4k none /var/lib/karmaform; head -c 9000 /dev/zero >/var/lib/karmaform/x; true");
    let wanted = lab.arguments("ssh_user", [("name", "kffull".into())]);
    let error = lab.apply("ssh_user", &lab.plan("ssh_user", None, Some(&wanted)).unwrap()).unwrap_err();
    assert_eq!(error.summary, "Disk is full", "{error:?}");
    assert!(error.detail.contains("No space is left on the device") && error.detail.contains("at /var/lib/karmaform."), "{error:?}");
    lab.shell("umount /var/lib/karmaform; rmdir /var/lib/karmaform");

    let directory = lab.arguments(KIND, [("path", "/etc/ssh".into()), ("content", "x".into())]);
    assert_eq!(lab.plan(KIND, None, Some(&directory)).unwrap_err().summary, "Something else is at this path");
}

#[test]
fn secrets_are_in_no_argument_list() {
    let Some(lab) = lab("secrets_are_in_no_argument_list") else { return };
    lab.shell("nohup sh -c 'for i in $(seq 400); do cat /proc/[0-9]*/cmdline 2>/dev/null; sleep 0.005; done > /var/tmp/arguments' >/dev/null 2>&1 &");
    let content = Value::from("hunter2".repeat(1000)).secret();
    let wanted = lab.arguments(KIND, [("path", "/opt/kf-secret".into()), ("content", content), ("mode", "0600".into())]);
    let environment = Value::map(karmaform_model::Type::String, [("TOKEN".to_owned(), Value::from("hunter2").secret())].into());
    let command = lab.arguments("ssh_command", [("command", "sleep 0.3; test $TOKEN = hunter2".into()), ("environment", environment)]);
    for _ in 0..3 {
        let state = lab.create(KIND, &wanted);
        let ran = lab.create("ssh_command", &command);
        drop(ran);
        lab.delete(KIND, &state);
    }
    assert_eq!(lab.shell("sleep 2; test -s /var/tmp/arguments && grep -c '[h]unter2' /var/tmp/arguments; rm -f /var/tmp/arguments"), "0");
}
