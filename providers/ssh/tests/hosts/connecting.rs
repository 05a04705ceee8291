//! The ways to a host, and all the ways in which they fail.

use std::process::Command;
use std::time::{Duration, Instant};

use karmaform_model::{Ask, Change, Diagnostic, Object, Severity, Value};

use crate::lab::{Lab, lab, lab_of_all, object, say};

fn refusal(lab: &Lab, connection: &Object) -> Diagnostic {
    let error = lab.connect(connection).expect_err("a refusal");
    for secret in ["hunter2", "PRIVATE"] {
        assert!(!format!("{error:?}").contains(secret), "{error:?}");
    }
    error
}

fn keygen(lab: &Lab, name: &str, arguments: &[&str]) -> String {
    let path = lab.folder.path().join(name).to_string_lossy().into_owned();
    let status = Command::new("ssh-keygen").args(["-q", "-f", &path]).args(arguments).status().unwrap();
    assert!(status.success());
    path
}

#[test]
fn facts_of_a_host() {
    let Some(lab) = lab("facts_of_a_host") else { return };
    let arguments = lab.connection_with([("user", Value::null(karmaform_model::Type::String))]);
    let facts = lab.runtime.block_on(lab.driver.read(lab.client(), "ssh_host", &arguments)).unwrap();
    let id = format!("{}:22", lab.address(0));
    assert_eq!(facts["connection"].get("id").and_then(Value::as_str), Some(id.as_str()));
    assert_eq!(facts["hostname"].as_str().unwrap(), lab.shell("hostname"));
    assert_eq!(facts["machine_id"].as_str().unwrap(), lab.shell("cat /etc/machine-id"));
    assert!(facts["clock_offset"].as_number().unwrap().as_f64().abs() < 0.5, "{:?}", facts["clock_offset"]);
    assert!(facts["addresses"].as_items().unwrap().contains(&lab.address(0).into()));
    assert!(facts["systemd_version"].as_i64().unwrap() > 200);
    assert!(facts["memory_bytes"].as_i64().unwrap() > 1 << 28 && facts["disk_free_bytes"].as_i64().unwrap() > 1 << 20);
    assert!(facts["disks"].as_entries().unwrap().get("/").and_then(Value::as_i64).unwrap() > 1 << 20, "{:?}", facts["disks"]);
    assert!(facts["swap_bytes"].as_i64().is_some() && facts["concerns"].as_items().is_some(), "{facts:?}");
    assert!(facts["firewall"].is_null(), "{:?}", facts["firewall"]);
    // the connection value leads to the same host, over the connection that is open already
    let sessions = || lab.shell("pgrep -fc '[s]shd: root@notty'").parse::<usize>().unwrap();
    let before = sessions();
    let _second = lab.connect(facts["connection"].as_entries().unwrap()).unwrap();
    assert!(sessions() <= before);
}

#[test]
fn host_keys_are_always_checked() {
    let Some(lab) = lab("host_keys_are_always_checked") else { return };
    let known = std::fs::read_to_string(&lab.known_hosts).unwrap();
    let ours: Vec<_> =
        known.lines().filter(|l| l.split(' ').next() == Some(lab.address(0))).map(|l| l.split_once(' ').unwrap().1).collect();
    let ed25519 = ours.iter().find(|k| k.starts_with("ssh-ed25519")).expect("an ed25519 key");
    for key in &ours {
        lab.connect(&lab.connection_with([("host_key", (*key).into())])).unwrap();
    }
    let empty = lab.local("empty", b"");
    let unknown = refusal(&lab, &lab.connection_with([("known_hosts_file", empty.as_str().into())]));
    assert_eq!(unknown.summary, "Host key is not known");
    assert!(unknown.detail.contains("SHA256:") && unknown.hints.iter().any(|h| h.contains("ssh-keyscan")), "{unknown:?}");
    assert_eq!(refusal(&lab, &lab.connection_with([("known_hosts_file", "/no/such/file".into())])).summary, "Host key is not known");

    let other = std::fs::read_to_string(format!("{}.pub", keygen(&lab, "other", &["-t", "ed25519", "-N", ""]))).unwrap();
    let changed = lab.local("changed", format!("{} {other}", lab.address(0)).as_bytes());
    for connection in
        [lab.connection_with([("known_hosts_file", changed.as_str().into())]), lab.connection_with([("host_key", other.as_str().into())])]
    {
        let error = refusal(&lab, &connection);
        assert_eq!(error.summary, "Host key has changed");
        assert_eq!(error.detail.matches("SHA256:").count(), 2, "{error:?}");
    }
    let revoked = lab.local("revoked", format!("@revoked {} {ed25519}\n{} {ed25519}\n", lab.address(0), lab.address(0)).as_bytes());
    assert_eq!(refusal(&lab, &lab.connection_with([("known_hosts_file", revoked.as_str().into())])).summary, "Host key is revoked");
    let hashed = lab.local("hashed", format!("{} {ed25519}\n", lab.address(0)).as_bytes());
    assert!(Command::new("ssh-keygen").args(["-q", "-H", "-f", &hashed]).output().unwrap().status.success());
    lab.connect(&lab.connection_with([("known_hosts_file", hashed.as_str().into())])).unwrap();
}

#[test]
fn log_ins_that_fail_say_what_was_tried() {
    let Some(lab) = lab("log_ins_that_fail_say_what_was_tried") else { return };
    let other = keygen(&lab, "other", &["-t", "ed25519", "-N", ""]);
    let locked = keygen(&lab, "locked", &["-t", "ed25519", "-N", "hunter2"]);
    let old = keygen(&lab, "old", &["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "hunter2"]);
    let junk = lab.local("junk", b"no key");
    let check = |parts: [(&str, Value); 2], summary: &str, word: &str| {
        let error = refusal(&lab, &lab.connection_with(parts));
        assert_eq!(error.summary, summary, "{error:?}");
        assert!(error.detail.contains(word), "{error:?}");
    };
    let key = |path: &str| ("private_key_file", Value::from(path));
    let none = || ("passphrase", Value::null(karmaform_model::Type::String));
    check([key(&other), ("password", "hunter2".into())], "Log-in refused", "the password");
    check([key(&other), none()], "Log-in refused", &other);
    check([key("/no/such/key"), none()], "Private key can't be used", "does not exist");
    check([key(&junk), none()], "Private key can't be used", "no private key");
    check([key(&locked), none()], "Private key needs a passphrase", &locked);
    check([key(&locked), ("passphrase", "hunter3".into())], "Passphrase is wrong", &locked);
    check([key(&old), ("passphrase", "hunter3".into())], "Passphrase is wrong", &old);
    check([key(&locked), ("passphrase", "hunter2".into())], "Log-in refused", &locked);
    check([key(&lab.key), ("user", "nobody-here".into())], "Log-in refused", "nobody-here");
}

#[test]
fn keys_with_passphrases_and_users_with_sudo() {
    let Some(mut lab) = lab("keys_with_passphrases_and_users_with_sudo") else { return };
    let locked = keygen(&lab, "locked", &["-t", "ed25519", "-N", "hunter2"]);
    let public = std::fs::read_to_string(format!("{locked}.pub")).unwrap();
    lab.shell(&format!(
        "for u in kfops kfplain; do id $u >/dev/null 2>&1 || useradd -m -s /bin/bash $u; mkdir -p /home/$u/.ssh; echo '{}' > /home/$u/.ssh/authorized_keys; \
         chown -R $u /home/$u; done; echo 'kfops ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/kfops; echo 'echo noise; echo noise >&2' > /home/kfops/.bashrc",
        public.trim()
    ));
    let user = |name: &str| {
        lab.connection_with([("user", name.into()), ("private_key_file", locked.as_str().into()), ("passphrase", "hunter2".into())])
    };
    let (ops, plain) = (user("kfops"), user("kfplain"));
    let mut unprivileged = plain.clone();
    unprivileged.insert("sudo".into(), false.into());

    lab.use_client(lab.connect(&ops).unwrap());
    let wanted = lab.arguments("ssh_file", [("path", "/opt/kf-sudo".into()), ("content", "x".into()), ("mode", "0600".into())]);
    let state = lab.create("ssh_file", &wanted);
    assert_eq!(lab.shell("stat -c '%U %a' /opt/kf-sudo"), "root 600");
    lab.delete("ssh_file", &state);
    let facts = lab.runtime.block_on(lab.driver.read(lab.client(), "ssh_host", &ops)).unwrap();
    assert_eq!(facts["hostname"].as_str().unwrap(), lab.shell("hostname"));

    lab.use_client(lab.connect(&plain).unwrap());
    let error = lab.observe("ssh_file", &wanted, None).unwrap_err();
    assert_eq!(error.summary, "Sudo asks for a password", "{error:?}");

    lab.use_client(lab.connect(&unprivileged).unwrap());
    let change = lab.plan("ssh_file", None, Some(&wanted)).unwrap();
    assert_eq!(lab.apply("ssh_file", &change).unwrap_err().summary, "Permission denied");
    let own = lab.arguments(
        "ssh_file",
        [("path", "/home/kfplain/a/b".into()), ("content", "x".into()), ("owner", "kfplain".into()), ("group", "kfplain".into())],
    );
    let state = lab.create("ssh_file", &own);
    assert_eq!(lab.shell("stat -c %U /home/kfplain/a/b /home/kfplain/.local/state/karmaform/owned"), "kfplain\nkfplain");
    lab.delete("ssh_file", &state);
    assert_eq!(lab.shell("ls -d /home/kfplain/a /home/kfplain/.local/state/karmaform 2>/dev/null || echo gone"), "gone");
    let hidden = lab.arguments("ssh_file", [("path", "/root/x".into()), ("content", "x".into())]);
    assert_eq!(lab.observe("ssh_file", &hidden, None).unwrap_err().summary, "Path can't be looked at");
    lab.shell("userdel -rf kfops 2>/dev/null; userdel -rf kfplain 2>/dev/null; rm -f /etc/sudoers.d/kfops");
}

#[test]
fn hosts_that_can_not_be_reached_cost_little() {
    let Some(lab) = lab("hosts_that_can_not_be_reached_cost_little") else { return };
    let refused = refusal(&lab, &lab.connection_with([("port", 1i64.into())]));
    assert_eq!(refused.summary, "Connection refused");
    let unresolved = refusal(&lab, &lab.connection_with([("address", "no-such-host.invalid".into())]));
    assert_eq!(unresolved.summary, "Host name can't be resolved");
    // a server that accepts and then says nothing
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = i64::from(silent.local_addr().unwrap().port());
    let mut holes = vec![lab.connection_with([("address", "127.0.0.1".into()), ("port", port.into()), ("connect_timeout", 2i64.into())])];
    match std::env::var("KARMAFORM_TEST_BLACKHOLE") {
        Ok(address) => holes.push(lab.connection_with([("address", address.into()), ("connect_timeout", 2i64.into())])),
        Err(_) => say("SKIPPED: the black hole: KARMAFORM_TEST_BLACKHOLE is not set"),
    }
    for hole in holes {
        let started = Instant::now();
        assert_eq!(refusal(&lab, &hole).summary, "Host can't be reached");
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
}

#[test]
fn a_host_that_may_be_away_is_worth_a_warning() {
    let Some(lab) = lab("a_host_that_may_be_away_is_worth_a_warning") else { return };
    let away = lab.connection_with([("port", 1i64.into()), ("required", false.into())]);
    let client = lab.connect(&away).unwrap();
    let facts = lab.runtime.block_on(lab.driver.read(&client, "ssh_host", &away)).unwrap();
    assert_eq!(facts["reachable"], false.into());
    assert!(facts["architecture"].is_unknown() && facts["connection"].get("id").is_some_and(Value::is_wholly_known));
    let ask = Ask {
        resource_type: "ssh_file".to_owned(),
        identity: object([("path", "/etc/hostname".into())]),
        known: None,
        wanted: None,
        begun: false,
    };
    let answer = lab.runtime.block_on(lab.driver.rehearse(&client, &[ask])).pop().unwrap().unwrap_err();
    assert!(answer.severity == Severity::Warning && answer.detail.contains("is taken to be so"), "{answer:?}");
    // Who does not let us in is there.
    let locked = lab.connection_with([("user", "nobody-there".into()), ("required", false.into())]);
    assert!(!refusal(&lab, &locked).retryable);
}

#[test]
fn through_a_bastion() {
    let Some(lab) = lab_of_all("through_a_bastion") else { return };
    if lab.hosts.len() < 2 {
        return say("SKIPPED: through_a_bastion: it needs a second host");
    }
    let bastion = |parts: Object| {
        let mut bastion = object([("address", lab.address(1).into())]);
        bastion.extend(parts);
        lab.connection_with([("bastion", bastion.into())])
    };
    let connection = bastion(Object::new());
    let client = lab.connect(&connection).unwrap();
    let seen = lab.runtime.block_on(lab.driver.read(&client, "ssh_host", &connection)).unwrap();
    assert_eq!(seen["hostname"].as_str().unwrap(), lab.shell("hostname"));
    let change =
        Change::Create { after: lab.arguments("ssh_file", [("path", "/opt/kf-b".into()), ("content", "b".repeat(1_000_000).into())]) };
    let state = lab.runtime.block_on(lab.driver.apply(&client, "ssh_file", &change)).unwrap().unwrap();
    lab.delete("ssh_file", &state);
    let error = refusal(&lab, &bastion(object([("port", 1i64.into())])));
    assert!(error.summary == "Connection refused" && error.detail.contains("At the bastion"), "{error:?}");
    let mut beyond = connection;
    beyond.insert("port".into(), 1i64.into());
    assert_eq!(refusal(&lab, &beyond).summary, "Host can't be reached from the bastion");
}
