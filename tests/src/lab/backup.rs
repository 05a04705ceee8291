//! `etcd_backup` on hosts: one of them makes each backup and proves it, old ones go, what fails or grows old is decay; and from a bucket they come back.

use std::collections::BTreeSet;

use super::Lab;
use super::drift::finds;
use super::project::{Etcdctl, Given};
use crate::parts::{block_on, identity, stripped, tell};
use crate::project::Project;
use crate::s3::Server;

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
  program     = "PROGRAM"
MORE}
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
    block(&project, "");
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
        ["700", "600", "600", "600"]
    );

    all_at_once(lab);
    old_ones_go(lab);
    what_is_taken_away_is_told(lab, &project);
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

fn block(project: &Project, more: &str) {
    project.write("backup.kf.hcl", &BLOCK.replace("PROGRAM", &stripped().to_string_lossy()).replace("MORE", more));
}

#[test]
fn backups_in_a_bucket_are_encrypted_and_come_back() {
    let Some(server) = Server::seaweedfs() else { return tell("SKIPPED (no S3 server): backups_in_a_bucket_are_encrypted_and_come_back") };
    let Some(lab) = Lab::fresh("backups_in_a_bucket_are_encrypted_and_come_back") else { return };
    let etcd = lab.etcd.last().expect("an etcd");
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd, more: "" });
    let (recipient, secret) = identity();
    project.write("identity", &secret);
    let prefix = server.key("backups");
    let (reached, way) = server.reached_from(lab.hosts[0].1.parse().expect("an address"));
    let bucket = |server: &Server| server.backups(&prefix) + &format!("  age_recipients = [\"{recipient}\"]\n");
    block(&project, &bucket(&reached));
    project.apply();
    project.no_changes();
    finds(&project, &[]);
    let ctl = Etcdctl::new(&project, &etcd.1);
    // Nothing of it is left where it was made, and nothing in the bucket says what is in it.
    assert_eq!(lab.shell("a", &format!("ls -A {DIRECTORY}")).trim(), "");
    let names: Vec<String> = block_on(server.objects(&prefix).list()).expect("a list").into_iter().map(|o| o.name).collect();
    assert!(names.len() == 3 && names[0].ends_with(".db.age") && names[1].ends_with(".db.json") && names[2] == "main.owner", "{names:?}");
    let (mut data, mut manifest_bytes) = (Vec::new(), Vec::new());
    block_on(server.objects(&prefix).get(&names[0], &mut data)).expect("the data");
    block_on(server.objects(&prefix).get(&names[1], &mut manifest_bytes)).expect("the manifest");
    assert!(data.starts_with(b"age-encryption.org/v1") && !data.windows(13).any(|w| w == b"karmaform.io/"));
    let manifest: serde_json::Value = serde_json::from_slice(&manifest_bytes).expect("JSON");
    assert_eq!(manifest["encrypted"]["size"], data.len());
    // The same from long ago: of one hour only the newest stays.
    let old = "main-20260101T000000Z";
    let file = project.path().join("old");
    for (ending, bytes) in [("db.age", data), ("db.json", manifest_bytes)] {
        std::fs::write(&file, bytes).expect("written");
        block_on(server.objects(&prefix).put(&format!("{old}.{ending}"), &file)).expect("put");
    }

    // A second one, with something new in it; the state says where they are.
    ctl.run(&["put", "greeting", "hello"]);
    again(&lab, "b");
    let listed: serde_json::Value =
        serde_json::from_str(&project.must(0, &["etcd", "backup", "list", "etcd_backup.main", "-json"])).expect("JSON");
    let found: Vec<_> =
        listed["backups"].as_array().expect("a list").iter().map(|b| b["name"].as_str().expect("a name").to_owned()).collect();
    assert!(found.len() == 2 && found[0] != old && listed["backups"][0]["encrypted"] == true, "{listed}");
    let text = project.must(0, &["etcd", "backup", "list", "etcd_backup.main"]);
    assert!(text.contains(&found[0]) && text.contains("encrypted") && text.contains("s3://"), "{text}");

    comes_back(&project, &found);
    // The bucket's place is another cluster's: nothing is put there, and nothing removed.
    std::fs::write(&file, "another one").expect("written");
    block_on(server.objects(&prefix).put("main.owner", &file)).expect("put");
    std::thread::sleep(std::time::Duration::from_secs(6));
    lab.shell("b", &format!("! systemctl start {UNIT}"));
    let text = finds(&project, &[("decay".to_owned(), "etcd_backup.main/record".to_owned())]);
    assert!(text.contains("A place of another cluster"), "{text}");
    block_on(server.objects(&prefix).remove("main.owner")).expect("removed");
    // One that is told to end says so; and the next one works.
    let begun = format!("for i in $(seq 200); do test -e {DIRECTORY}/.work-main && break; sleep 0.05; done");
    lab.shell("a", &format!("systemctl start --no-block {UNIT}; {begun}; systemctl stop {UNIT}"));
    let text = finds(&project, &[("decay".to_owned(), "etcd_backup.main/record".to_owned())]);
    assert!(text.contains("A backup was ended"), "{text}");
    again(&lab, "a");
    finds(&project, &[]);
    // The newest is written over, and then taken away: told until there is a newer one.
    let listed = || block_on(server.objects(&prefix).list()).expect("a list");
    let newest = listed().into_iter().rfind(|o| o.name.ends_with(".db.age")).expect("a backup").name;
    block_on(server.objects(&prefix).put(&newest, &file)).expect("put");
    let record = [("decay".to_owned(), "etcd_backup.main/record".to_owned())];
    assert!(finds(&project, &record).contains("its newest backup has 11 bytes, and "));
    block_on(server.objects(&prefix).remove(&newest)).expect("removed");
    let text = finds(&project, &record);
    assert!(text.contains("its newest backup is gone: s3://") && text.contains(&newest), "{text}");
    again(&lab, "a");
    finds(&project, &[]);
    // Somebody else took one away by hand, half of it; and the store is not there for a while.
    let listed = listed();
    let victim = listed.iter().find(|o| o.name.ends_with(".db.age")).expect("a backup");
    block_on(server.objects(&prefix).remove(&victim.name)).expect("removed");
    let text = project.must(0, &["etcd", "backup", "list", "etcd_backup.main"]);
    assert!(text.contains("without its data"), "{text}");
    drop(way);
    std::thread::sleep(std::time::Duration::from_secs(6));
    lab.shell("a", &format!("! systemctl start {UNIT}"));
    let text = finds(&project, &[("decay".to_owned(), "etcd_backup.main/record".to_owned())]);
    assert!(text.contains("the newest try failed on host a") && text.contains(&reached.endpoint), "{text}");
    assert!(text.contains("Backups could not be looked at"), "{text}");
    assert!(!text.contains(&server.secret_key) && !project.must(0, &["plan"]).contains(&server.secret_key));
    // It is somewhere else then: known to the state when it was tried.
    let (reached, _way) = server.reached_from(lab.hosts[0].1.parse().expect("an address"));
    block(&project, &bucket(&reached));
    project.apply();
    finds(&project, &[]);
    assert_eq!(lab.shell("a", "ls -l /etc/karmaform/etcd-backup-main | grep -vc -e '^-rw-------' -e '^total' || true").trim(), "0");
    project.must(0, &["destroy", "-auto-approve"]);
    assert!(block_on(server.objects(&prefix).list()).expect("a list").len() >= 3);
    begins_with_the_newest(&project, etcd, &server, &prefix);
}

/// A new cluster begins with what is in the bucket, and nobody got it before.
fn begins_with_the_newest(project: &Project, etcd: &(String, String), server: &Server, prefix: &str) {
    project.remove("backup.kf.hcl");
    let main = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("what is written");
    let head = "resource \"etcd_cluster\" \"main\" {\n";
    assert!(main.contains(head));
    let from = format!("{}/main", server.objects(prefix).place());
    project.write("main.kf.hcl", &main.replace(head, &format!("{head}  restore {{\n    from = \"{from}\"\n  }}\n")));
    let store = [
        ("AWS_ACCESS_KEY_ID", server.access_key.as_str()),
        ("AWS_SECRET_ACCESS_KEY", server.secret_key.as_str()),
        ("AWS_ENDPOINT_URL_S3", server.endpoint.as_str()),
        ("AWS_REGION", "us-east-1"),
    ];
    let apply = |more: &[(&str, &str)]| project.start_with(&["apply", "-auto-approve"], &[&store[..], more].concat()).end();
    let locked = apply(&[]);
    assert!(locked.code == Some(1) && locked.text.contains("Let KF_AGE_IDENTITY_FILE name"), "{}", locked.text);
    let ended = apply(&[("KF_AGE_IDENTITY_FILE", "identity")]);
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    assert!(ended.text.contains(&from) && ended.text.contains("encrypted, SHA-256"), "{}", ended.text);
    // Neither the store nor the identity is needed from then on.
    project.no_changes();
    let ctl = Etcdctl::new(project, &etcd.1);
    assert_eq!(ctl.run(&["get", "greeting", "--print-value-only"]).trim(), "hello");
    project.must(0, &["destroy", "-auto-approve"]);
}

/// What `list` names is got, is whole, serves, and is what a cluster can be restored from.
fn comes_back(project: &Project, found: &[String]) {
    let refused = project.must(1, &get(&[]));
    assert!(refused.contains("No identity") && refused.contains("is encrypted, and nothing was given"), "{refused}");
    let (_, other) = identity();
    project.write("other", &other);
    let refused = project.must(1, &get(&["-identity", "other"]));
    assert!(refused.contains("None of the identities"), "{refused}");
    assert!(!project.path().join("got.db").exists() && !project.path().join("got.db.json").exists());
    let got = project.must(0, &get(&["-identity", "identity"]));
    assert!(got.contains(&found[0]), "{got}");
    // Its programs were unpacked there for etcdctl.
    let proven = project.must(0, &["etcd", "verify", "got.db", "-drill", "-programs", "."]);
    assert!(proven.contains("with the keys and values that the member had"), "{proven}");
    let refused = project.must(1, &get(&["-identity", "identity"]));
    assert!(refused.contains("is there already"), "{refused}");
    project.remove("got.db");
    project.remove("got.db.json");
    // The moment of the first one is in its name.
    let stamp = found[1].rsplit('-').next().expect("a time");
    let time = format!("{}-{}-{}T{}:{}:{}Z", &stamp[..4], &stamp[4..6], &stamp[6..8], &stamp[9..11], &stamp[11..13], &stamp[13..15]);
    let got = project.must(0, &get(&["-identity", "identity", "-before", &time]));
    assert!(got.contains(&found[1]), "{got}");
    project.remove("got.db");
    project.remove("got.db.json");
    let refused = project.must(1, &get(&["-name", "main-20200101T000000Z"]));
    assert!(refused.contains("No such backup") && refused.contains("There is none with the name"), "{refused}");
    let refused = project.must(1, &["etcd", "backup", "get", "etcd_backup.main", "-identity", "identity", "-out", "nowhere/got.db"]);
    assert!(refused.contains("The file can't be written") && refused.contains("its folder is not there"), "{refused}");
}

fn get<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["etcd", "backup", "get", "etcd_backup.main", "-out", "got.db"][..], more].concat()
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
    assert!(said.contains("another one has done it"), "{said}");
}

fn old_ones_go(lab: &Lab) {
    for stamp in ["20200101T100000Z", "20200101T090000Z", "20190101T090000Z"] {
        lab.shell("a", &format!("touch {DIRECTORY}/main-{stamp}.db {DIRECTORY}/main-{stamp}.db.json"));
    }
    again(lab, "a");
    let left = backups(lab, "a");
    // Two hours: this one, and the newest of those from long ago unless two of ours are of different hours.
    assert!(!left.iter().any(|f| f.contains("20190101") || f.contains("T090000Z")), "{left:?}");
    assert!(left.iter().any(|f| !f.contains("2020")), "{left:?}");
    lab.shell("a", &format!("rm -f {DIRECTORY}/main-2020*"));
}

/// Whoever looks may read the directory; who may not is told that nobody knows.
fn what_is_taken_away_is_told(lab: &Lab, project: &Project) {
    let record = || [("decay".to_owned(), "etcd_backup.main/record".to_owned())];
    let newest = backups(lab, "a").pop().expect("a backup");
    let place = format!("a:{DIRECTORY}/{newest}");
    for (command, said) in [
        (format!("mv {newest} kept"), format!("its newest backup is gone: {place}")),
        (format!("mv {newest}.json kept"), format!("its newest backup has no manifest any more: {place}")),
        (format!("cp -p {newest} kept && echo more >>{newest}"), "its newest backup has".to_owned()),
    ] {
        lab.shell("a", &format!("cd {DIRECTORY} && {command}"));
        let text = finds(project, &record());
        assert!(text.contains(&said) && text.contains(&place), "{said}: {text}");
        lab.shell(
            "a",
            &format!(
                "cd {DIRECTORY} && if [ -e {newest} ] && ! [ -e {newest}.json ]; then mv kept {newest}.json; else mv kept {newest}; fi"
            ),
        );
        finds(project, &[]);
    }
    lab.shell("a", &format!("mv {DIRECTORY} {DIRECTORY}.kept"));
    let text = finds(project, &record());
    assert!(text.contains("its newest backup is gone"), "{text}");
    lab.shell("a", &format!("mv {DIRECTORY}.kept {DIRECTORY}"));
    finds(project, &[]);
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
        assert!(text.contains("the newest try failed on host a: A program is missing"), "{text}");
        assert!(!lab.shell("a", &format!("ls -A {DIRECTORY}")).contains(".work"));
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
    let mut note: serde_json::Value = serde_json::from_str(last.trim()).expect("JSON");
    note["epoch"] = (note["epoch"].as_i64().expect("a number") - 10 * 3_600).into();
    ctl.run(&["put", "/karmaform.io/backups/main/last", &note.to_string()]);
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
