//! `ssh_user`.

use karmaform_model::{Action, Change};

use crate::lab::lab;

const KIND: &str = "ssh_user";

#[test]
fn the_life_of_a_user() {
    let Some(lab) = lab("the_life_of_a_user") else { return };
    let wanted =
        |shell: &str| lab.arguments(KIND, [("name", "kfuser".into()), ("home", "/var/lib/kfuser".into()), ("shell", shell.into())]);
    let before = lab.shell("cat /etc/passwd /etc/group");
    let state = lab.create(KIND, &wanted("/usr/sbin/nologin"));
    let uid = lab.shell("id -u kfuser");
    assert_eq!(state["uid"].as_i64().unwrap().to_string(), uid);
    assert!(state["uid"].as_i64().unwrap() < 1000);
    assert_eq!(lab.shell("ls -d /var/lib/kfuser 2>/dev/null || echo none"), "none");
    let state = lab.step(KIND, Some(&state), Some(&wanted("/bin/sh")), Action::Update).unwrap();
    lab.shell("usermod -s /bin/false kfuser");
    let state = lab.step(KIND, Some(&state), Some(&wanted("/bin/sh")), Action::Update).unwrap();
    lab.shell("userdel kfuser");
    let state = lab.step(KIND, Some(&state), Some(&wanted("/bin/sh")), Action::Create).unwrap();
    lab.delete(KIND, &state);
    assert_eq!(lab.shell("cat /etc/passwd /etc/group"), before);
}

#[test]
fn a_foreign_user_is_used_and_left() {
    let Some(lab) = lab("a_foreign_user_is_used_and_left") else { return };
    let wanted = |shell: &str| lab.arguments(KIND, [("name", "games".into()), ("shell", shell.into())]);
    let Change::NoOp { object } = lab.plan(KIND, None, Some(&wanted("/usr/sbin/nologin"))).unwrap() else { panic!() };
    assert_eq!(lab.plan(KIND, None, Some(&wanted("/bin/sh"))).unwrap_err().summary, "Exists already");
    lab.delete(KIND, &object);
    assert_eq!(lab.shell("id -un games"), "games");
}
