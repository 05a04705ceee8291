//! `etcd_backup` on hosts: one of them makes each backup and proves it, old ones go, and what fails or grows old is decay.

use std::collections::BTreeSet;

use super::Lab;
use super::drift::finds;
use super::project::{Etcdctl, Given};
use crate::project::Project;

const BLOCK: &str = r#"
resource "etcd_backup" "main" {
  cluster     = etcd_cluster.main.client
  version     = var.etcd_version
  source      = var.etcd_source
  hosts       = data.ssh_host.etcd
  schedule    = "*-*-* 03:00"
  keep_hourly = 2
  keep_daily  = 1
  keep_weekly = 1
}
"#;
const DIRECTORY: &str = "/var/backups/etcd/main";
const UNIT: &str = "etcd-backup-main.service";

#[test]
fn backups_are_made_proven_and_told_of() {
    let Some(lab) = Lab::fresh("backups_are_made_proven_and_told_of") else { return };
    // The newest: of one that gets no patches any more, drift would tell that, too.
    lives(&lab, lab.etcd.last().expect("an etcd"));
}

fn lives(lab: &Lab, etcd: &(String, String)) {
    let project = Project::etcd_with(lab, &Given { hosts: &lab.hosts, etcd, more: "" });
    project.write("backup.kf.hcl", BLOCK);
    project.apply();
    project.no_changes();
    finds(&project, &[]);
    let ctl = Etcdctl::new(&project, &etcd.1);
    // The first host made the first one, in the apply; nobody else may read it.
    let first = backups(lab, "a");
    assert!(first.len() == 1 && backups(lab, "b").is_empty() && backups(lab, "c").is_empty(), "{first:?}");
    let file = &first[0];
    lab.shell(
        "a",
        &format!("cd {DIRECTORY} && grep -q \"$(sha256sum {file} | cut -c1-64)\" {file}.json && grep -q '\"hash_kv\": {{' {file}.json"),
    );
    assert_eq!(
        lab.shell("a", &format!("stat -c %a {DIRECTORY} {DIRECTORY}/*")).split_whitespace().collect::<Vec<_>>(),
        ["700", "600", "600"]
    );

    all_at_once(lab);
    old_ones_go(lab);
    trouble_is_told(lab, &project, &ctl);

    project.must(0, &["destroy", "-auto-approve"]);
    // Backups outlive what made them.
    assert!(!backups(lab, "a").is_empty());
    for host in ["a", "b", "c"] {
        lab.shell(
            host,
            &format!(
                "! systemctl cat etcd-backup-main.timer >/dev/null 2>&1 && ! test -e /etc/karmaform/etcd-backup-main && rm -rf {DIRECTORY}"
            ),
        );
    }
}

/// As their timers do it: one acts, the others find it done.
fn all_at_once(lab: &Lab) {
    std::thread::sleep(std::time::Duration::from_secs(6));
    let all = || ["a", "b", "c"].iter().flat_map(|h| backups(lab, h)).collect::<BTreeSet<_>>();
    let before = all();
    std::thread::scope(|scope| {
        for host in ["a", "b", "c"] {
            scope.spawn(move || start(lab, host));
        }
    });
    assert_eq!(all().difference(&before).count(), 1);
    let said = lab.shell("b", &format!("journalctl -q --no-pager -o cat -u {UNIT}"));
    assert!(said.contains("another host has done it"), "{said}");
}

fn old_ones_go(lab: &Lab) {
    for stamp in ["20200101T100000Z", "20200101T090000Z", "20190101T090000Z"] {
        lab.shell("a", &format!("touch {DIRECTORY}/main-{stamp}.db {DIRECTORY}/main-{stamp}.db.json"));
    }
    again(lab, "a");
    let left = backups(lab, "a");
    // Two hours: this one, and the newest of those from long ago unless two of ours are of different hours.
    assert!(!left.iter().any(|f| f.contains("20190101") || f.contains("T090000Z")), "{left:?}");
    lab.shell("a", &format!("rm -f {DIRECTORY}/main-2020*"));
}

fn trouble_is_told(lab: &Lab, project: &Project, ctl: &Etcdctl<'_>) {
    // A program that restores nothing: no backup counts, and why is told.
    let restore = if lab.shell("a", "ls /opt/karmaform/etcd-backup-main").contains("etcdutl") { "etcdutl" } else { "etcdctl" };
    let program = format!("/opt/karmaform/etcd-backup-main/{restore}");
    if restore == "etcdutl" {
        lab.shell("a", &format!("sleep 6; chmod 0644 {program}; ! systemctl start {UNIT}"));
        let record = ("decay".to_owned(), "etcd_backup.main/record".to_owned());
        let changed = ("changed".to_owned(), format!("etcd_backup.main/host[\"a\"]/program[\"{restore}\"]"));
        let text = finds(project, &[changed, record]);
        assert!(text.contains("the newest try failed on host a: the snapshot does not restore"), "{text}");
        assert!(!lab.shell("a", &format!("ls -A {DIRECTORY}")).contains(".part"));
        project.apply();
        again(lab, "a");
        finds(project, &[]);
    }
    // A member is away: another one gives it. Its own unit and its health are drift of the cluster.
    lab.shell("c", "systemctl stop etcd-main");
    again(lab, "a");
    project.apply();
    finds(project, &[]);
    // Old ones are told of.
    let last = ctl.run(&["get", "/karmaform.io/backups/main/last", "--print-value-only"]);
    let epoch = last.split(',').next().and_then(|e| e.split(':').nth(1)).expect("an epoch").trim().parse::<i64>().expect("a number");
    ctl.run(&["put", "/karmaform.io/backups/main/last", &last.trim().replace(&epoch.to_string(), &(epoch - 10 * 3_600).to_string())]);
    let text = finds(project, &[("decay".to_owned(), "etcd_backup.main/record".to_owned())]);
    assert!(text.contains("the newest backup is 10 hours old, and 3 are allowed"), "{text}");
    again(lab, "a");
    finds(project, &[]);
}

fn again(lab: &Lab, host: &str) {
    std::thread::sleep(std::time::Duration::from_secs(6));
    start(lab, host);
}

/// Tried twice: systemd in a container can be too late with taking away what an earlier run left, and then fails before it runs anything.
fn start(lab: &Lab, host: &str) {
    let start = format!("systemctl start {UNIT}");
    lab.shell(host, &format!("{start} || {{ sleep 2; {start}; }} || {{ journalctl -q --no-pager -o cat -n 20 -u {UNIT}; exit 1; }}"));
}

/// Names of backups on a host.
fn backups(lab: &Lab, host: &str) -> Vec<String> {
    lab.shell(host, &format!("cd {DIRECTORY} && ls | grep 'db$' || true")).lines().map(str::to_owned).collect()
}
