//! The gate `ssh_disk`.

use karmaform_model::GateAnswer;

use crate::lab::{lab, object};

#[test]
fn a_disk_is_tried_and_left_as_it_was() {
    let Some(lab) = lab("a_disk_is_tried_and_left_as_it_was") else { return };
    let check = |path: &str, limit: i64| {
        let arguments =
            object([("host", lab.connection().into()), ("path", path.into()), ("limit", limit.into()), ("advice", "Wait.".into())]);
        lab.runtime.block_on(lab.driver.check(lab.client(), "ssh_disk", &arguments))
    };
    let GateAnswer::Passed(seen) = check("/var/lib/not/there yet", 10_000).unwrap() else { panic!("it waits") };
    assert!(seen.contains(" ms until a write is on the disk"), "{seen}");
    let error = check("/var/lib/etcd", 0).unwrap_err();
    assert!(error.summary == "A disk is too slow" && error.hints.iter().any(|h| h == "Wait."), "{error:?}");
    // A place that nobody can write to says nothing of its speed; what comes next there says what is wrong.
    let GateAnswer::Passed(seen) = check("/proc/etcd", 10_000).unwrap() else { panic!("it waits") };
    assert!(seen.contains("can't be told"), "{seen}");
    assert_eq!(lab.shell("ls -d /var/lib/not 2>/dev/null || echo none"), "none");
    lab.assert_nothing_left();
}
