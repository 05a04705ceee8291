//! What goes wrong on hosts: one clear diagnostic each, in time, and the other hosts' work is kept.

use std::time::Duration;

use super::Lab;
use super::project::Given;
use crate::project::Project;

/// More than the connect timeout's default of ten seconds, less than two of them.
const ONE_TIMEOUT: Duration = Duration::from_secs(18);

/// Files `f` on these hosts, keyed by name; `more` goes into each data source.
fn files(lab: &Lab, hosts: &[(&str, &str)], more: &str) -> Project {
    let project = Project::new();
    let hosts: Vec<_> = hosts.iter().map(|(n, a)| format!("{n} = \"{a}\"")).collect();
    project.write(
        "main.kf.hcl",
        &format!(
            "data \"ssh_host\" \"x\" {{\n  for_each = {{ {} }}\n  address = each.value\n  private_key_file = \"{}\"\n  known_hosts_file = \"{}\"\n{more}\n}}\n\
             resource \"ssh_file\" \"f\" {{\n  for_each = data.ssh_host.x\n  host = each.value.connection\n  path = \"/etc/karmaform-test\"\n  content = \"x\\n\"\n}}\n",
            hosts.join(", "),
            lab.key,
            lab.known_hosts
        ),
    );
    project
}

/// Applies; it must fail with one error that says all of `words`.
#[track_caller]
fn one_error(project: &Project, words: &[&str]) -> (String, Duration) {
    let ended = project.run(&["apply", "-auto-approve"]);
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    assert_eq!(ended.text.matches("Error:").count(), 1, "{}", ended.text);
    for word in words {
        assert!(ended.text.contains(word), "{word:?} is not in\n{}", ended.text);
    }
    (ended.text, ended.took)
}

#[test]
fn a_black_hole_costs_one_connect_timeout() {
    let Some(lab) = Lab::fresh("a_black_hole_costs_one_connect_timeout") else { return };
    let project = files(&lab, &[("a", &lab.hosts[0].1), ("nobody", &lab.black_hole)], "");
    let (text, took) = one_error(&project, &[&lab.black_hole, "data.ssh_host.x[\"nobody\"]"]);
    assert!(took > Duration::from_secs(9) && took < ONE_TIMEOUT, "{took:?}\n{text}");
    let project = files(&lab, &[("nobody", &lab.black_hole)], "  connect_timeout = 2");
    let (text, took) = one_error(&project, &[&lab.black_hole]);
    assert!(took < Duration::from_secs(5), "{took:?}\n{text}");
}

#[test]
fn a_host_that_hangs_costs_one_connect_timeout() {
    let Some(lab) = Lab::fresh("a_host_that_hangs_costs_one_connect_timeout") else { return };
    lab.act("freeze", "a");
    let project = files(&lab, &[("a", &lab.hosts[0].1)], "  connect_timeout = 3");
    let (text, took) = one_error(&project, &[&lab.hosts[0].1]);
    lab.act("thaw", "a");
    assert!(took < Duration::from_secs(8), "{took:?}\n{text}");
}

#[test]
fn a_wrong_host_key_is_refused() {
    let Some(lab) = Lab::fresh("a_wrong_host_key_is_refused") else { return };
    let address = &lab.hosts[0].1;
    let known = std::fs::read_to_string(&lab.known_hosts).expect("known hosts");
    // b's key under a's address, then nobody's.
    let other = known.lines().find(|l| l.starts_with(&lab.hosts[1].1)).expect("b").replace(&lab.hosts[1].1, address);
    for (text, words) in [(other, "key"), (String::new(), "known")] {
        let project = files(&lab, &[("a", address)], "");
        project.write("known", &text);
        let hcl = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("a file").replace(&lab.known_hosts, "known");
        project.write("main.kf.hcl", &hcl);
        one_error(&project, &[address, words]);
    }
    lab.shell("a", "test ! -e /etc/karmaform-test");
}

#[test]
fn a_wrong_key_is_said() {
    let Some(lab) = Lab::fresh("a_wrong_key_is_said") else { return };
    let project = files(&lab, &[("a", &lab.hosts[0].1)], "");
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", "other"])
        .current_dir(project.path())
        .status();
    assert!(made.is_ok_and(|s| s.success()));
    let hcl = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("a file").replace(&lab.key, "other");
    project.write("main.kf.hcl", &hcl);
    one_error(&project, &[&lab.hosts[0].1, "root"]);
}

#[test]
fn a_full_disk_stops_one_host_only() {
    let Some(lab) = Lab::fresh("a_full_disk_stops_one_host_only") else { return };
    let project = Project::etcd(&lab);
    // 20 MB are left: not enough for etcd, which is said before anything is done.
    let fill = "free=$(df --output=avail -k / | tail -1); fallocate -l $((free - 20000))K /var/tmp/fill";
    lab.shell("b", fill);
    one_error(&project, &["No room for a member", "member \"b\""]);
    lab.shell("b", "rm /var/tmp/fill; test ! -e /var/lib/karmaform");
    // It fills up when the work there has begun: whoever makes a file finds nothing left, and again when what was written in part is away.
    let fill = "free=$(df --output=avail -k / | tail -1); fallocate -l $((free - 300000))K /var/tmp/fill; \
                printf '#!/bin/sh\\ncat /dev/zero >>/var/tmp/fill2 2>/dev/null\\nexec /usr/bin/mktemp \"$@\"\\n' >/usr/local/bin/mktemp; \
                chmod +x /usr/local/bin/mktemp";
    lab.shell("b", fill);
    let ended = project.run(&["apply", "-auto-approve"]);
    lab.shell("b", "rm /usr/local/bin/mktemp; truncate -s -20M /var/tmp/fill2");
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    // Its two programs are unpacked side by side, and small files are written meanwhile: each may meet the end of the disk, and says so.
    let errors = ended.text.matches("Error: ").count();
    let said = &ended.text[ended.text.find("Error: ").unwrap_or(0)..];
    assert!(errors >= 1 && ended.text.matches("Error: Disk is full").count() == errors, "{errors} errors\n{said}");
    for host in ["a", "c"] {
        lab.shell(host, "test -x /opt/karmaform/etcd-main/etcd");
    }
    lab.shell("b", "rm /var/tmp/fill /var/tmp/fill2; ! ls /opt/karmaform/*/.??* 2>/dev/null");
    project.apply();
    project.no_changes();
}

#[test]
fn a_taken_port_is_said_and_healed() {
    let Some(lab) = Lab::fresh("a_taken_port_is_said_and_healed") else { return };
    let project = Project::etcd(&lab);
    // Something else listens on the peer port of one host.
    lab.shell("c", "systemd-run --unit=squatter --property=RuntimeDirectory=sshd --property=RuntimeDirectoryPreserve=yes /usr/sbin/sshd -D -p 2380 2>/dev/null; sleep 1; systemctl is-active squatter");
    let ended = project.run(&["apply", "-auto-approve"]);
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    assert!(ended.text.contains("2380") || ended.text.contains("address already in use"), "{}", ended.text);
    lab.shell("c", "systemctl stop squatter");
    project.apply();
    project.no_changes();
}

#[test]
fn an_archive_with_another_checksum_touches_no_host() {
    let Some(lab) = Lab::fresh("an_archive_with_another_checksum_touches_no_host") else { return };
    let project = Project::etcd(&lab);
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("a file");
    project.write(
        "main.kf.hcl",
        &main.replace("source   = var.etcd_source", &format!("source = var.etcd_source\n  source_sha256 = \"{}\"", "0".repeat(64))),
    );
    let ended = project.run(&["apply", "-auto-approve"]);
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    assert!(ended.text.contains("sha256") || ended.text.contains("SHA-256"), "{}", ended.text);
    for (host, _) in &lab.hosts {
        assert_eq!(lab.shell(host, "find /opt -type f | wc -l").trim(), "0");
    }
}

#[test]
fn a_clock_two_days_off_is_said_before_certificates_fail() {
    let Some(lab) = Lab::fresh("a_clock_two_days_off_is_said_before_certificates_fail") else { return };
    // The machine's one clock can't be moved for one host; what its `date` says can.
    lab.shell("b", "printf '#!/bin/sh\\nexec /usr/bin/date -d @$(($(/usr/bin/date +%%s) + 172800)) \"$@\"\\n' > /usr/local/bin/date && chmod +x /usr/local/bin/date");
    let ended = Project::etcd(&lab).run(&["plan"]);
    assert!(ended.text.contains("clock"), "{}", ended.text);
    assert!(ended.text.contains("\"b\""), "{}", ended.text);
}

#[test]
fn a_host_that_dies_in_the_middle_ends_the_wait_and_is_repaired() {
    let Some(lab) = Lab::fresh("a_host_that_dies_in_the_middle_ends_the_wait_and_is_repaired") else { return };
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd: &lab.etcd[0], more: "" });
    let mut running = project.start(&["apply", "-auto-approve"]);
    assert!(running.says("member[\"b\"]/directory[\"data\"]"), "{}", running.text());
    lab.act("kill", "b");
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.text);
    assert!(ended.took < Duration::from_secs(150), "{:?}\n{}", ended.took, ended.text);
    lab.act("start", "b");
    project.apply();
    project.no_changes();
    project.must(0, &["destroy", "-auto-approve"]);
}
