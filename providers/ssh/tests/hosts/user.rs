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
    // Whoever made it was cut off between the user and its group.
    lab.shell("sed -i '/^kfuser:/d' /etc/group /etc/gshadow");
    let state = lab.step(KIND, Some(&state), Some(&wanted("/bin/sh")), Action::Create).unwrap();
    assert_eq!(lab.shell("id -gn kfuser"), "kfuser");
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

#[test]
fn a_user_that_others_need_stays_until_the_last_one_is_gone() {
    let Some(lab) = lab("a_user_that_others_need_stays") else { return };
    let state = lab.create(KIND, &lab.arguments(KIND, [("name", "kfshared".into())]));
    let data = lab.arguments("ssh_directory", [("path", "/opt/kfshared".into()), ("owner", "kfshared".into())]);
    let data = lab.create("ssh_directory", &data);
    let delete = || lab.apply(KIND, &Change::Delete { before: state.clone() }).unwrap();
    let left = || lab.shell("getent passwd kfshared >/dev/null && grep -c kfshared /var/lib/karmaform/owned || echo gone");
    lab.shell("nohup runuser -u kfshared -- sleep 1000 >/dev/null 2>&1 & sleep 0.3");
    delete();
    assert_eq!(left(), "2", "somebody's program runs, and somebody's data are there");
    lab.shell("pkill -u kfshared; sleep 0.3");
    delete();
    assert_eq!(left(), "2", "somebody's data are there");
    lab.shell("nohup runuser -u kfshared -- sleep 1000 >/dev/null 2>&1 & sleep 0.3");
    lab.apply("ssh_directory", &Change::Delete { before: data }).unwrap();
    delete();
    assert_eq!(left(), "1", "somebody's program runs");
    lab.shell("pkill -u kfshared; sleep 0.3");
    lab.delete(KIND, &state);
    assert_eq!(left(), "gone");
}

#[test]
fn a_user_of_ours_is_known_even_if_the_host_forgot_it() {
    let Some(lab) = lab("a_user_of_ours_is_known_even_if_the_host_forgot_it") else { return };
    let state = lab.create(KIND, &lab.arguments(KIND, [("name", "kflost".into())]));
    let directory = lab.create("ssh_directory", &lab.arguments("ssh_directory", [("path", "/opt/kf-lost".into())]));
    let there = || lab.shell("id -un kflost 2>/dev/null || echo gone");
    lab.shell("sed -i /kflost/d /var/lib/karmaform/owned");
    lab.apply(KIND, &Change::Delete { before: state.clone() }).unwrap();
    assert_eq!(there(), "kflost", "what is ours is written down, and it is not in it");
    lab.shell("rm -r /var/lib/karmaform");
    lab.delete(KIND, &state);
    assert_eq!(there(), "gone");
    lab.delete("ssh_directory", &directory);
    assert_eq!(lab.shell("ls -d /opt/kf-lost 2>/dev/null || echo gone"), "gone");
}
