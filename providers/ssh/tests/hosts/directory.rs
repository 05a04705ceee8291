//! `ssh_directory`.

use karmaform_model::Action;

use crate::lab::lab;

const KIND: &str = "ssh_directory";

#[test]
fn the_life_of_a_directory() {
    let Some(lab) = lab("the_life_of_a_directory") else { return };
    let wanted = |mode: &str| lab.arguments(KIND, [("path", "/opt/kf-a/b".into()), ("mode", mode.into()), ("owner", "daemon".into())]);
    let state = lab.create(KIND, &wanted("0700"));
    assert_eq!(lab.shell("stat -c '%a %U' /opt/kf-a/b /opt/kf-a"), "700 daemon\n755 root");
    let state = lab.step(KIND, Some(&state), Some(&wanted("1777")), Action::Update).unwrap();
    lab.shell("chown root /opt/kf-a/b");
    let state = lab.step(KIND, Some(&state), Some(&wanted("1777")), Action::Update).unwrap();

    lab.shell("for i in 1 2 3 4 5 6 7; do touch /opt/kf-a/b/.f$i; done");
    let change = lab.plan(KIND, Some(&state), None).unwrap();
    let error = lab.apply(KIND, &change).unwrap_err();
    assert_eq!(error.summary, "Directory is not empty");
    assert!(error.detail.contains(".f1, .f2, .f3, .f4, .f5 and 2 more"), "{}", error.detail);
    lab.shell("rm /opt/kf-a/b/.f*");
    lab.delete(KIND, &state);
    assert_eq!(lab.shell("ls -d /opt/kf-a 2>/dev/null || echo gone"), "gone");
}

#[test]
fn data_is_purged_only_when_asked_for_and_said_so() {
    let Some(lab) = lab("data_is_purged_only_when_asked_for") else { return };
    let wanted = lab.arguments(KIND, [("path", "/opt/kf-data".into()), ("purge", true.into())]);
    let state = lab.create(KIND, &wanted);
    let change = lab.plan(KIND, Some(&state), None).unwrap();
    assert!(lab.spec(KIND).impact(&change).is_empty(), "nothing is in it");
    lab.shell("mkdir -p /opt/kf-data/x/y; touch /opt/kf-data/x/y/z");
    let change = lab.plan(KIND, Some(&state), None).unwrap();
    assert_eq!(lab.spec(KIND).impact(&change), [format!("data in /opt/kf-data on {} will be deleted", lab.address(0))]);
    lab.delete(KIND, &state);
}

#[test]
fn a_foreign_directory_is_left_alone() {
    let Some(lab) = lab("a_foreign_directory_is_left_alone") else { return };
    lab.shell("mkdir -p /opt/kf-theirs; touch /opt/kf-theirs/x");
    let wanted = lab.arguments(KIND, [("path", "/opt/kf-theirs".into())]);
    assert_eq!(lab.plan(KIND, None, Some(&wanted)).unwrap_err().summary, "Exists already");
    assert_eq!(lab.apply(KIND, &karmaform_model::Change::Create { after: wanted.clone() }).unwrap_err().summary, "Exists already");
    lab.shell("rm -r /opt/kf-theirs; touch /opt/kf-theirs");
    assert_eq!(lab.plan(KIND, None, Some(&wanted)).unwrap_err().summary, "Something else is at this path");
    assert_eq!(lab.apply(KIND, &karmaform_model::Change::Create { after: wanted }).unwrap_err().summary, "Something else is at this path");
    lab.shell("rm /opt/kf-theirs");
    lab.assert_nothing_left();
}

#[test]
fn directories_made_for_a_file_become_resources_and_stay_while_needed() {
    let Some(lab) = lab("directories_made_for_a_file") else { return };
    let file = lab.create("ssh_file", &lab.arguments("ssh_file", [("path", "/opt/kf-p/q/f".into()), ("content", "x".into())]));
    // made for the file, so it is ours to take over
    let wanted = lab.arguments(KIND, [("path", "/opt/kf-p/q".into()), ("mode", "0750".into())]);
    let state = lab.step(KIND, None, Some(&wanted), Action::Update).unwrap();
    let other = lab.create("ssh_file", &lab.arguments("ssh_file", [("path", "/opt/kf-p/g".into()), ("content", "x".into())]));
    lab.apply("ssh_file", &karmaform_model::Change::Delete { before: file }).unwrap();
    assert_eq!(lab.shell("ls /opt/kf-p"), "g\nq");
    lab.apply(KIND, &karmaform_model::Change::Delete { before: state }).unwrap();
    assert_eq!(lab.shell("ls /opt/kf-p"), "g");
    lab.delete("ssh_file", &other);
    assert_eq!(lab.shell("ls -d /opt/kf-p 2>/dev/null || echo gone"), "gone");
}

#[test]
fn an_empty_mount_point_is_used_emptied_and_left() {
    let Some(lab) = lab("an_empty_mount_point_is_used_emptied_and_left") else { return };
    lab.shell("mkdir -p /opt/kf-disk && mount -t tmpfs -o size=1m,mode=755 none /opt/kf-disk && mkdir /opt/kf-disk/lost+found");
    let wanted =
        |purge: bool, owner: &str| lab.arguments(KIND, [("path", "/opt/kf-disk".into()), ("purge", purge.into()), ("owner", owner.into())]);
    // also if there is nothing to change about it
    for (purge, owner) in [(false, "root"), (true, "daemon")] {
        let state = lab.step(KIND, None, Some(&wanted(purge, owner)), Action::Update).unwrap();
        lab.step(KIND, Some(&state), Some(&wanted(purge, owner)), Action::NoOp);
        lab.step(KIND, None, Some(&wanted(purge, owner)), Action::NoOp);
        lab.shell("mkdir -p /opt/kf-disk/member/.x; touch /opt/kf-disk/.y");
        let state = lab.step(KIND, Some(&state), Some(&wanted(purge, "bin")), Action::Update).unwrap();
        if !purge {
            let error = lab.apply(KIND, &karmaform_model::Change::Delete { before: state.clone() }).unwrap_err();
            assert!(error.summary == "Directory is not empty" && error.detail.contains("member, .y"), "{error:?}");
            lab.shell("rm -r /opt/kf-disk/member /opt/kf-disk/.y");
        }
        lab.delete(KIND, &state);
        assert_eq!(lab.shell("ls -A /opt/kf-disk; chown root /opt/kf-disk"), "lost+found");
    }
    // made blindly, as after a race
    let after = wanted(false, "root");
    let state = lab.apply(KIND, &karmaform_model::Change::Create { after }).unwrap().unwrap();
    lab.delete(KIND, &state);
    assert_eq!(lab.shell("umount /opt/kf-disk; ls -d /opt/kf-disk; rmdir /opt/kf-disk"), "/opt/kf-disk");
}
