//! `ssh_hosts_entries`.

use karmaform_model::{Action, Change, Object, Type, Value};

use crate::lab::{Lab, lab};

const KIND: &str = "ssh_hosts_entries";

/// As bytes, so that an end without a newline shows.
const DUMP: &str = "od -An -c /etc/hosts; stat -c '%a %U:%G' /etc/hosts";

fn wanted(lab: &Lab, name: &str, lines: &[(&str, &[&str])]) -> Object {
    let entry = |(address, names): &(&str, &[&str])| Value::object([("address", (*address).into()), ("names", Value::strings(*names))]);
    let ty = Type::object([("address", Type::String), ("names", Type::list(Type::String))]);
    lab.arguments(KIND, [("name", name.into()), ("entries", Value::list(ty, lines.iter().map(entry).collect()))])
}

/// Puts the file back as it was, whatever becomes of the test.
fn with_hosts(lab: &Lab, content: &str, test: impl FnOnce()) {
    lab.shell(&format!("cp -a /etc/hosts /root/kf-hosts; printf '{content}' >/etc/hosts; chmod 0664 /etc/hosts; chgrp adm /etc/hosts"));
    let before = lab.shell(DUMP);
    test();
    assert_eq!(lab.shell(DUMP), before, "what was there is there again, to the byte");
    lab.shell("cat /root/kf-hosts >/etc/hosts; chmod 0644 /etc/hosts; chgrp root /etc/hosts; rm /root/kf-hosts");
}

#[test]
fn the_life_of_a_block() {
    let Some(lab) = lab("the_life_of_a_block") else { return };
    with_hosts(&lab, "127.0.0.1 localhost\\n# no end", || {
        let one = wanted(&lab, "kf.one", &[("192.0.2.1", &["kf-api.test", "kf-api"]), ("192.0.2.2", &["kf-api"])]);
        let state = lab.create(KIND, &one);
        assert_eq!(lab.shell("getent ahostsv4 kf-api | awk '{ print $1 }' | sort -u"), "192.0.2.1\n192.0.2.2");
        assert_eq!(lab.shell("getent hosts 192.0.2.1; tail -c 8 /etc/hosts"), "192.0.2.1       kf-api.test kf-api\n# no end");
        assert_eq!(lab.shell("stat -c '%a %U:%G' /etc/hosts"), "664 root:adm");
        let two = wanted(&lab, "kf.two", &[("2001:db8::1", &["kf-two"])]);
        let second = lab.step(KIND, None, Some(&two), Action::Create).unwrap();

        // changed here, and changed there
        let more = wanted(&lab, "kf.one", &[("192.0.2.3", &["kf-api"]), ("192.0.2.1", &["kf-api.test"])]);
        let state = lab.step(KIND, Some(&state), Some(&more), Action::Update).unwrap();
        for drift in ["s/^192.0.2.3 .*/192.0.2.4 kf-api/", "/^192.0.2.3 /d", "s/^192.0.2.3 .*/# &/", "/^192.0.2.3 /{p;s/3/5/}"] {
            lab.shell(&format!("sed -i '{drift}' /etc/hosts"));
            lab.step(KIND, Some(&state), Some(&more), Action::Update);
            lab.step(KIND, Some(&state), Some(&more), Action::NoOp);
        }
        // somebody else's line is nobody's drift
        lab.shell("sed -i '1s/$/ kf-theirs/' /etc/hosts");
        lab.step(KIND, Some(&state), Some(&more), Action::NoOp);
        lab.shell("sed -i '1s/ kf-theirs//' /etc/hosts");
        lab.shell("sed -i '/BEGIN karmaform kf.one/,/END karmaform kf.one/d' /etc/hosts");
        let state = lab.step(KIND, Some(&state), Some(&more), Action::Create).unwrap();

        // half a block is not guessed at
        lab.shell("sed -i.kf '/END karmaform kf.one/d' /etc/hosts");
        assert_eq!(lab.plan(KIND, Some(&state), Some(&more)).unwrap_err().summary, "Block in the hosts file is damaged");
        let delete = Change::Delete { before: state.clone() };
        assert_eq!(lab.apply(KIND, &delete).unwrap_err().summary, "Block in the hosts file is damaged");
        lab.step(KIND, Some(&second), Some(&two), Action::NoOp);
        lab.shell("mv /etc/hosts.kf /etc/hosts");

        lab.delete(KIND, &state);
        lab.step(KIND, Some(&second), Some(&two), Action::NoOp);
        lab.delete(KIND, &second);
    });
}

#[test]
fn a_file_that_is_a_mount_of_its_own_is_written_in_place() {
    let Some(lab) = lab("a_hosts_file_that_is_a_mount") else { return };
    with_hosts(&lab, "127.0.0.1 localhost\\n", || {
        lab.shell("printf '127.0.0.1 localhost\\n::1 ip6' >/run/kf-hosts; mount --bind /run/kf-hosts /etc/hosts");
        let before = lab.shell(DUMP);
        let long = wanted(&lab, "kf", &[("192.0.2.1", &["kf-api.test"]), ("192.0.2.2", &["kf-api.test"])]);
        let state = lab.create(KIND, &long);
        let short = wanted(&lab, "kf", &[("192.0.2.1", &["kf"])]);
        let state = lab.step(KIND, Some(&state), Some(&short), Action::Update).unwrap();
        assert_eq!(lab.shell("cat /run/kf-hosts"), "127.0.0.1 localhost\n# BEGIN karmaform kf\n192.0.2.1 kf\n# END karmaform kf\n::1 ip6");
        lab.delete(KIND, &state);
        assert_eq!(lab.shell(DUMP), before);
        lab.shell("umount /etc/hosts; rm /run/kf-hosts");
    });
}

#[test]
fn blocks_that_are_written_at_once_are_all_there() {
    let Some(lab) = lab("blocks_that_are_written_at_once") else { return };
    with_hosts(&lab, "127.0.0.1 localhost", || {
        let at_once = |change: &dyn Fn(Object) -> Change| {
            lab.runtime.block_on(async {
                let mut running = tokio::task::JoinSet::new();
                for i in 0..12 {
                    let change = change(wanted(&lab, &format!("kf{i}"), &[("192.0.2.1", &["kf-api"])]));
                    let (driver, client) = (lab.driver.clone(), lab.client().clone());
                    running.spawn(async move { driver.apply(&client, KIND, &change).await });
                }
                while let Some(result) = running.join_next().await {
                    result.unwrap().unwrap();
                }
            });
        };
        at_once(&|after| Change::Create { after });
        assert_eq!(lab.shell("grep -c 'BEGIN karmaform kf' /etc/hosts; tail -c 9 /etc/hosts"), "12\nlocalhost");
        at_once(&|before| Change::Delete { before });
    });
    lab.assert_nothing_left();
}
