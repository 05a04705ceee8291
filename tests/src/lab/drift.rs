//! What `drift` finds of an etcd cluster on hosts: what is done to files, users and units there, and what the cluster itself is in need of, each
//! by its right name, nothing else, and nothing touched by looking; then that apply repairs what can be.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Lab;
use super::project::{Etcdctl, Given};
use crate::project::Project;

/// A host, what is done there, and the kind and part that it must be found as.
type Deed = (&'static str, &'static str, &'static str, &'static str);

/// The cluster works all the while. Drop-ins: one that systemd has read, one that it has not.
const DEEDS: &[Deed] = &[
    ("a", "echo '# theirs' >>/etc/etcd/main/etcd.env", "changed", "environment"),
    ("a", "chmod 0644 /etc/etcd/main/pki/server.key", "changed", "pki[\"server.key\"]"),
    ("a", "systemctl -q disable etcd-main 2>/dev/null", "changed", "unit"),
    ("a", "rm /etc/etcd/main/guard", "missing", "guard"),
    ("a", "sed -i '/^etcd:/s#/usr/sbin/nologin#/bin/bash#' /etc/passwd", "changed", "user"),
    ("a", "chmod 0755 /etc/etcd/main/pki", "changed", "directory[\"pki\"]"),
    ("b", "echo | tee -a /opt/karmaform/etcd-main/etcdctl", "changed", "program[\"etcdctl\"]"),
    ("b", "rm /etc/etcd/main/pki/peer-ca.crt", "missing", "pki[\"peer-ca.crt\"]"),
    ("b", "chmod 0755 /var/lib/etcd/main", "changed", "directory[\"data\"]"),
    // Its connections stand, and it could make no new one: a restart of another before this is repaired would cost the quorum.
    ("b", "chown root /etc/etcd/main/pki/peer.key", "changed", "pki[\"peer.key\"]"),
    ("b", "cd /etc/etcd/main/pki && mv server.crt theirs.crt && ln -s theirs.crt server.crt", "changed", "pki[\"server.crt\"]"),
    (
        "b",
        "mkdir /etc/systemd/system/etcd-main.service.d && cd /etc/systemd/system/etcd-main.service.d && printf '[Service]\\nNice=5\\n' >x.conf && systemctl daemon-reload",
        "changed",
        "unit",
    ),
    ("c", "sed -i 's/^Description=.*/Description=theirs/' /etc/systemd/system/etcd-main.service", "changed", "unit"),
    ("c", "rm -r /etc/etcd/main/pki/authority/client.key", "missing", "authority[\"client.key\"]"),
    ("c", "echo >>/etc/etcd/main/pki/server.crt", "changed", "pki[\"server.crt\"]"),
    // Of `set-property`, and what is gone with the next boot.
    ("c", "systemctl set-property etcd-main CPUWeight=50", "changed", "unit"),
    (
        "a",
        "mkdir -p /run/systemd/system/etcd-main.service.d && printf '[Service]\\nNice=5\\n' >/run/systemd/system/etcd-main.service.d/x.conf",
        "changed",
        "unit",
    ),
    // Something else in the place of a file gives way to it again.
    ("b", "cd /etc/etcd/main && rm etcd.env && mkfifo etcd.env", "changed", "environment"),
    ("c", "cd /opt/karmaform/etcd-main && rm etcdctl && mkfifo etcdctl", "changed", "program[\"etcdctl\"]"),
    // What is not ours is nobody's business.
    ("c", "touch /etc/etcd/main/theirs /opt/theirs; useradd -M theirs; echo 10.9.9.9 theirs >>/etc/hosts", "", ""),
];

#[test]
fn what_was_done_to_hosts_and_to_etcd_is_found() {
    let Some(lab) = Lab::fresh("what_was_done_to_hosts_and_to_etcd_is_found") else { return };
    let etcd = lab.etcd.last().expect("an etcd");
    let project = Project::etcd_with(&lab, &Given { hosts: &lab.hosts, etcd, more: "" });
    // A database that can be filled in seconds.
    project.settings("quota-backend-bytes = \"167772160\"");
    project.must(0, &["init"]);
    project.apply();
    finds(&project, &[]);

    deeds(&lab, &project);
    let ctl = Etcdctl::new(&project, &etcd.1);
    what_stands_above_is_looked_at(&lab, &project, &ctl);
    who_lets_nobody_in_hides_nobody_else(&lab, &project);
    users_are_looked_at(&lab, &project);
    a_host_forgets(&lab, &project);
    what_runs_is_looked_at(&lab, &project);
    left_behind(&lab, &project);
    who_may_not_read_everything_is_told_what(&project);
    a_member_is_away(&lab, &project);
    the_cluster_needs_care(&lab, &project, &ctl);
    a_member_runs_without_its_data(&lab, &project);
    // A directory with something of others in it stays.
    lab.shell("b", "rm /etc/etcd/main/pki/theirs.crt");
    lab.shell("c", "rm /etc/etcd/main/theirs");
    project.must(0, &["destroy", "-auto-approve"]);
}

fn deeds(lab: &Lab, project: &Project) {
    for (host, command, ..) in DEEDS {
        lab.shell(host, command);
    }
    let files =
        || lab.all_files().into_values().collect::<String>().lines().filter(|l| !l.contains("var/lib/etcd")).collect::<Vec<_>>().join("\n");
    let before = files();
    let expected: Vec<(String, String)> = DEEDS
        .iter()
        .filter(|(.., kind, _)| !kind.is_empty())
        .map(|(host, _, kind, part)| ((*kind).to_owned(), format!("etcd_cluster.main/member[\"{host}\"]/{part}")))
        .collect();
    finds(project, &expected);
    assert!(files() == before, "a host is not as it was:\n{}", crate::golden::difference(&before, &files()));
    project.apply();
    finds(project, &[]);
    project.no_changes();
    lab.shell("b", "! test -e /etc/systemd/system/etcd-main.service.d && systemctl show -p Nice --value etcd-main | grep -qx 0");
    lab.shell("c", "! test -e /etc/systemd/system.control/etcd-main.service.d");
    lab.shell("a", "! test -e /run/systemd/system/etcd-main.service.d");
    lab.shell("c", "test -e /opt/theirs && grep -q theirs /etc/passwd && grep -q theirs /etc/hosts");
}

/// What goes before a unit of ours is taken away; what is for many units, directories that others may write to, and a wrong address in etcd are told.
fn what_stands_above_is_looked_at(lab: &Lab, project: &Project, ctl: &Etcdctl<'_>) {
    let other = "/etc/systemd/system.control/etcd-main.service";
    lab.shell("a", &format!("mkdir -p /etc/systemd/system.control && printf '[Service]\\nExecStart=/bin/sleep inf\\n' >{other}"));
    let text = finds(project, &[of("changed", "a", "unit")]);
    assert!(text.contains(other), "{text}");
    project.apply();
    lab.shell("a", &format!("! test -e {other}"));
    finds(project, &[]);

    // What would take minutes to read is no file of ours.
    lab.shell("c", "truncate -s 60G /etc/etcd/main/guard");
    let began = Instant::now();
    finds(project, &[of("changed", "c", "guard")]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    project.apply();
    finds(project, &[]);

    // A directory in the place of a file gives way to nothing, as something may be in it.
    lab.shell("c", "cd /etc/etcd/main && mv guard aside && mkdir guard");
    finds(project, &[of("changed", "c", "guard")]);
    let refused = project.must(1, &["plan"]);
    assert!(
        refused.contains("Something else is at this path") && refused.contains("is a directory, but should be a regular file"),
        "{refused}"
    );
    lab.shell("c", "cd /etc/etcd/main && rmdir guard && mv aside guard");
    finds(project, &[]);

    let listed = ctl.run(&["member", "list", "-w", "json"]);
    let all: Value = serde_json::from_str(&listed).unwrap_or_else(|e| panic!("{e}: {listed}"));
    let member = all["members"].as_array().expect("members").iter().find(|m| m["name"] == "c").expect("c");
    let (id, url) = (format!("{:x}", member["ID"].as_u64().expect("an id")), member["peerURLs"][0].as_str().expect("its URL").to_owned());
    for (deed, undo, found, said) in [
        (
            "chmod 0777 /opt/karmaform",
            "chmod 0755 /opt/karmaform",
            &["directory[\"programs\"]"][..],
            "anybody may put something else into its place",
        ),
        (
            "chmod 0700 /etc/etcd",
            "chmod 0755 /etc/etcd",
            &["directory[\"config\"]", "etcd"],
            "only root gets to it: /etc/etcd has the mode 0700",
        ),
        (
            "d=/etc/systemd/system/etcd-.service.d; mkdir $d && printf '[Service]\\nNice=3\\n' >$d/x.conf && systemctl daemon-reload",
            "rm -r /etc/systemd/system/etcd-.service.d && systemctl daemon-reload",
            &["unit"],
            "it is changed by /etc/systemd/system/etcd-.service.d/x.conf, as all units that begin so",
        ),
        (
            "chmod 0666 /etc/systemd/system/etcd-main.service",
            "chmod 0644 /etc/systemd/system/etcd-main.service",
            &["unit"],
            "somebody gave its file away: it is root:root 0666",
        ),
        (
            "cd /etc/systemd/system && mkdir -p kf.target.wants && ln -s ../etcd-main.service kf.target.wants/",
            "rm -r /etc/systemd/system/kf.target.wants && systemctl daemon-reload",
            &["unit"],
            "a link in kf.target.wants starts it, too, of which its file says nothing",
        ),
    ] {
        lab.shell("c", deed);
        let text = finds(project, &found.iter().map(|part| of("decay", "c", part)).collect::<Vec<_>>());
        assert!(text.contains(said), "{text}");
        lab.shell("c", undo);
    }
    // systemd calls it enabled, and does not start it at a boot.
    lab.shell("c", "cd /etc/systemd/system && mkdir kf.target.wants && mv multi-user.target.wants/etcd-main.service kf.target.wants/");
    finds(project, &[of("changed", "c", "unit")]);
    project.apply();
    lab.shell(
        "c",
        "cd /etc/systemd/system && test -h multi-user.target.wants/etcd-main.service && rm -r kf.target.wants && systemctl daemon-reload",
    );
    finds(project, &[]);
    ctl.run(&["member", "update", &id, "--peer-urls=https://127.0.0.9:2380"]);
    let text = finds(project, &[of("decay", "c", "etcd")]);
    assert!(
        text.contains("its cluster has it at https://127.0.0.9:2380, and it is at")
            && text.contains(&format!("update {id} --peer-urls={url}")),
        "{text}"
    );
    ctl.run(&["member", "update", &id, &format!("--peer-urls={url}")]);
    finds(project, &[]);
}

/// Of one host that refuses who looks, nothing is known; of all others everything.
fn who_lets_nobody_in_hides_nobody_else(lab: &Lab, project: &Project) {
    lab.shell("c", "mv /root/.ssh/authorized_keys /root/.ssh/kept");
    let report = report(project);
    lab.shell("c", "mv /root/.ssh/kept /root/.ssh/authorized_keys");
    let told: Vec<&Value> = report["findings"].as_array().expect("findings").iter().collect();
    assert!(told.len() > 9 && told.iter().all(|f| f["address"].as_str().is_some_and(|a| a.contains("[\"c\"]"))), "{report:#}");
    assert!(
        told.iter().filter(|f| f["kind"] != "unreachable").all(|f| f["address"] == "etcd_cluster.main/member[\"c\"]/etcd"),
        "{report:#}"
    );
    finds(project, &[]);
}

/// No apply takes a user out of a group: who put it there may have had a reason. And what is a user's own is told of the user alone, where that is gone.
fn users_are_looked_at(lab: &Lab, project: &Project) {
    lab.shell("c", "usermod -aG disk etcd");
    let text = finds(project, &[of("decay", "c", "user")]);
    assert!(text.contains("somebody put it into the group disk"), "{text}");
    lab.shell("c", "gpasswd -d etcd disk >/dev/null");
    lab.shell("b", "grep -v '^etcd:' /etc/passwd >/tmp/passwd && cat /tmp/passwd >/etc/passwd && rm /tmp/passwd");
    finds(project, &[of("missing", "b", "user")]);
    project.apply();
    finds(project, &[]);
}

/// What a host remembers as karmaform's, somebody deletes: then a destroy would leave all sorts of things, and what a run left there would be nobody's.
fn a_host_forgets(lab: &Lab, project: &Project) {
    let remembered = "/var/lib/karmaform/owned";
    lab.shell("a", &format!("cp {remembered} /root/owned && rm {remembered}"));
    let parts = project.must(0, &["state", "list"]);
    let of_a = |l: &&str| l.contains("member[\"a\"]/directory[") || l.ends_with("member[\"a\"]/user");
    let expected: Vec<(String, String)> = parts.lines().filter(of_a).map(|l| ("decay".to_owned(), l.trim().to_owned())).collect();
    assert!(expected.len() > 1, "{parts}");
    let text = finds(project, &expected);
    assert!(text.contains("the host does not remember any more that it is karmaform's"), "{text}");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("the host is told again that it is karmaform's") && !plan.contains("restarts"), "{plan}");
    project.apply();
    finds(project, &[]);
    project.no_changes();
    lab.shell("a", &format!("grep -q '^ssh_directory.*/etc/etcd/main/pki' {remembered} && grep -q '^ssh_user' {remembered}"));
    // For the end, with the directories above, which nobody else knows of.
    lab.shell("a", &format!("sort -u /root/owned {remembered} >/root/both && cat /root/both >{remembered} && rm /root/owned /root/both"));
}

/// All files are as they should be, and what runs was started with others.
fn what_runs_is_looked_at(lab: &Lab, project: &Project) {
    // A run that was cut off before it had restarted what it had changed: the next one does.
    let process = || lab.shell("a", "systemctl show -p MainPID --value etcd-main");
    let before = process();
    lab.shell("a", "mkdir -p -m 0700 /run/karmaform && echo somebody >/run/karmaform/etcd-main.service.pending");
    let text = finds(project, &[of("decay", "a", "unit")]);
    assert!(text.contains("a change to it was cut off before it was restarted"), "{text}");
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(plan.contains("restarts etcd-main.service on "), "{plan}");
    project.apply();
    assert_ne!(process(), before);
    finds(project, &[]);
    // Somebody starts it with something else, and puts the file back.
    let unit = "/etc/systemd/system/etcd-main.service";
    lab.shell("a", &format!("cp -p {unit} /root/unit && sed -i '/^ExecStart=/s/$/ --logger=zap/' {unit} && systemctl daemon-reload && systemctl restart etcd-main && sleep 1.2 && cp -p /root/unit {unit} && rm /root/unit && systemctl daemon-reload"));
    let text = finds(project, &[of("decay", "a", "unit")]);
    assert!(text.contains("it runs with other arguments than its file says"), "{text}");
    project.apply();
    finds(project, &[]);
    // And another program, of the same version and not the same.
    let program = "/opt/karmaform/etcd-main/etcd";
    lab.shell("a", &format!("cp -p {program} /root/etcd && cp -p {program} {program}.x && echo >>{program}.x && mv {program}.x {program} && systemctl restart etcd-main && mv /root/etcd {program}"));
    let text = finds(project, &[of("decay", "a", "unit")]);
    assert!(text.contains("it runs with another program than the one that is there now"), "{text}");
    // Nobody restarts it for that: it may be on purpose.
    project.no_changes();
    lab.shell("a", "systemctl restart etcd-main");
    finds(project, &[]);
}

/// What the host remembers as ours, beside what is ours: by a run that nobody remembers. What is elsewhere may be another state's.
fn left_behind(lab: &Lab, project: &Project) {
    let remember = |path: &str| format!("printf 'ssh_file\\t{path}\\t\\n' >>/var/lib/karmaform/owned");
    lab.shell("b", &format!("touch /etc/etcd/main/left /opt/left; {}; {}", remember("/etc/etcd/main/left"), remember("/opt/left")));
    lab.shell("b", &remember("/etc/etcd/main/gone"));
    let extra = [("extra".to_owned(), "etcd_cluster.main".to_owned())];
    let text = finds(project, &extra);
    assert!(text.contains(&format!("/etc/etcd/main/left on {} has its marks", lab.hosts[1].1)) && !text.contains("/opt/left"), "{text}");
    // An apply has nothing to do with it.
    project.no_changes();
    lab.shell("b", "rm /etc/etcd/main/left /opt/left; sed -i '/\\/left/d; /\\/gone/d' /var/lib/karmaform/owned");
    finds(project, &[]);
}

/// A user without sudo: what it may look at is looked at, the cluster itself among it, and what it may not is named, and never gone or changed.
fn who_may_not_read_everything_is_told_what(project: &Project) {
    let path = project.path().join("main.kf.hcl");
    let text = std::fs::read_to_string(&path).expect("the example");
    let user = "user             = var.ssh_user";
    assert!(text.contains(user), "{text}");
    project.write("main.kf.hcl", &text.replace(user, "user = \"guest\"\n  sudo = false"));
    let report = report(project);
    let told = report["findings"].as_array().expect("findings").iter();
    let unseen: BTreeSet<&str> =
        told.map(|f| if f["kind"] == "unreachable" { f["address"].as_str() } else { None }.expect("only that")).collect();
    let part = |name: &str| format!("etcd_cluster.main/member[\"b\"]/{name}");
    assert!(unseen.contains(&*part("authority[\"client.key\"]")) && unseen.contains(&*part("environment")), "{report:#}");
    assert!(!["etcd", "unit", "user", "program[\"etcd\"]"].iter().any(|n| unseen.contains(&*part(n))), "{report:#}");
    let said = report.to_string();
    assert!(said.contains("/etc/etcd/main/pki/authority/client-ca.key on ") && said.contains("Permission denied"), "{report:#}");
    assert_eq!(report["exit_code"], 1);
    project.write("main.kf.hcl", &text);
    project.must(0, &["drift"]);
}

/// It is its unit that was stopped; that the member is not healthy is said beside it. Nobody calls it a stranger.
fn a_member_is_away(lab: &Lab, project: &Project) {
    // To systemd one runs that somebody has stopped with a signal.
    for deed in ["systemctl stop etcd-main", "kill -STOP $(systemctl show -p MainPID --value etcd-main)"] {
        lab.shell("c", deed);
        finds(project, &[of("changed", "c", "unit"), of("decay", "c", "etcd")]);
        project.apply();
        finds(project, &[]);
    }
}

fn the_cluster_needs_care(lab: &Lab, project: &Project, ctl: &Etcdctl<'_>) {
    // Near its quota, of which four fifths are 128 MiB; then most of that is free pages. Members lay out the same in files of different sizes.
    lab.shell("a", "head -c 1000000 /dev/urandom | base64 -w 0 | head -c 1000000 >/tmp/value");
    let endpoint = "ETCDCTL_API=3 /opt/karmaform/etcd-main/etcdctl --cacert=/etc/etcd/main/pki/client-ca.crt \
                    --cert=/etc/etcd/main/pki/authority/client.crt --key=/etc/etcd/main/pki/authority/client.key --endpoints=https://10.211.0.11:2379";
    let endpoint = endpoint.replace("10.211.0.11", &lab.hosts[0].1);
    let sizes = |of: &str| -> Vec<u64> {
        let all: Value = serde_json::from_str(&ctl.run(&["endpoint", "status", "--write-out=json"])).expect("JSON");
        let sizes: Vec<u64> = all.as_array().into_iter().flatten().map(|m| m["Status"][of].as_u64().expect("a size")).collect();
        assert_eq!(sizes.len(), 3, "{all:#}");
        sizes
    };
    let mut keys = 0;
    while sizes("dbSize").iter().any(|size| *size < 129 << 20) {
        lab.shell("a", &format!("for i in $(seq 4); do {endpoint} put key{keys}-$i </tmp/value >/dev/null || exit 1; done"));
        keys += 4;
    }
    let text = finds(project, &["a", "b", "c"].map(|m| of("decay", m, "etcd")));
    assert!(text.contains("of the 160.0 MiB that it may grow to"), "{text}");
    ctl.run(&["del", "key", "--prefix"]);
    let json: Value = serde_json::from_str(&ctl.run(&["get", "nothing", "--write-out=json"])).expect("JSON");
    ctl.run(&["compact", "--physical", &json["header"]["revision"].to_string()]);
    // Each member compacts in its own time.
    let until = Instant::now() + Duration::from_secs(60);
    while sizes("dbSizeInUse").iter().any(|size| *size > 10_000_000) {
        assert!(Instant::now() < until, "no compaction");
        std::thread::sleep(Duration::from_millis(200));
        ctl.run(&["put", "tick", "tock"]);
    }
    let text = finds(project, &["a", "b", "c"].map(|m| of("decay", m, "etcd")));
    assert!(text.contains("it is to be defragmented"), "{text}");
    // A plan gives it back where that is asked for; until it is applied it is as before.
    let written = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the example");
    let block = "resource \"etcd_cluster\" \"main\" {";
    project.write("main.kf.hcl", &written.replace(block, &format!("{block}\n  defragment = true")));
    let asked = ("unapplied".to_owned(), "etcd_cluster.main".to_owned());
    finds(project, &[of("decay", "a", "etcd"), of("decay", "b", "etcd"), of("decay", "c", "etcd"), asked]);
    let plan = project.must(2, &["plan", "-detailed-exitcode"]);
    assert!(
        plan.contains("gives free pages back to the disk, seconds for each GiB: a (") && plan.contains("one at a time, the leader last"),
        "{plan}"
    );
    let client = super::client::Client::of(project, lab, lab.etcd.last().expect("an etcd"));
    client.works_while("free pages go back", || drop(project.apply()));
    project.no_changes();
    finds(project, &[]);

    // Somebody adds a member that nobody configured.
    let added = ctl.run(&["member", "add", "stranger", "--learner", "--peer-urls=https://10.211.0.99:2380"]);
    let text = finds(project, &[of("decay", "a", "etcd")]);
    assert!(text.contains("a member that is not in the configuration: (not started) at https://10.211.0.99:2380"), "{text}");
    let id = added.split_whitespace().nth(1).expect("its id");
    ctl.run(&["member", "remove", id]);
    finds(project, &[]);

    // Somebody has the cluster ask for names. All who ask with the cluster's certificate are called root in it, and are refused nothing.
    for words in [&["user", "add", "root:secret"][..], &["user", "grant-role", "root", "root"], &["auth", "enable"]] {
        ctl.run(words);
    }
    let text = finds(project, &[of("decay", "a", "etcd")]);
    assert!(text.contains("users that nobody configured (root)"), "{text}");
    project.no_changes();
    ctl.run(&["put", "tick", "tock"]);
    ctl.run(&["auth", "disable"]);
    ctl.run(&["user", "delete", "root"]);
    let _ = ctl.tries(&["role", "delete", "root"]);
    finds(project, &[]);

    // The file of one has other data than those of the others, of the same length.
    ctl.run(&["put", "greeting", "hello-from-the-majority"]);
    lab.shell("c", "systemctl stop etcd-main && sed -i 's/hello-from-the-majority/hello-from-a-minority!!/g' /var/lib/etcd/main/member/snap/db && systemctl start etcd-main");
    let text = finds(project, &[of("decay", "c", "etcd")]);
    assert!(text.contains("its data are not those of most members"), "{text}");
    lab.shell("c", "systemctl stop etcd-main && sed -i 's/hello-from-a-minority!!/hello-from-the-majority/g' /var/lib/etcd/main/member/snap/db && systemctl start etcd-main");

    // It is let go from outside, and its process ends.
    let list = ctl.run(&["member", "list"]);
    let id = list.lines().find(|l| l.contains(", c, ")).and_then(|l| l.split(',').next()).expect("its id").to_owned();
    ctl.removes(&id);
    lab.shell(
        "c",
        "for i in $(seq 50); do [ \"$(systemctl show -p SubState --value etcd-main)\" = running ] || exit 0; sleep 0.2; done; exit 0",
    );
    // It is no member any more, and ended by itself; apply brings it back.
    let text = finds(project, &[of("changed", "c", "etcd"), of("changed", "c", "unit")]);
    assert!(text.contains("\"path\":\"nonvoter\""), "{text}");
    project.apply();
    its_copy_gets_small(project);
}

/// It works until it has to start again, which nobody would have noticed before.
fn a_member_runs_without_its_data(lab: &Lab, project: &Project) {
    lab.shell("c", "find /var/lib/etcd/main -mindepth 1 -delete && systemctl -q is-active etcd-main");
    let text = finds(project, &[of("decay", "c", "directory[\"data\"]")]);
    assert!(text.contains("Somebody has removed what was in /var/lib/etcd/main while c ran."), "{text}");
    let text = project.must(0, &["plan", "-detailed-exitcode"]);
    assert!(text.contains("No changes") && text.contains("Warning: A member runs without its data"), "{text}");
    assert!(text.contains("`systemctl stop etcd-main.service`"), "{text}");
    lab.shell("c", "systemctl stop etcd-main");
    let old = member_id(project);
    let text = project.apply();
    assert!(text.contains("replaces member c"), "{text}");
    // It is another member, and the state knows it as such.
    assert!(member_id(project) != old, "{old}");
    let text = project.must(0, &["state", "show", "etcd_cluster.main"]);
    assert!(!text.contains(&old), "{text}");
    its_copy_gets_small(project);
}

fn member_id(project: &Project) -> String {
    let text = project.must(0, &["state", "show", "etcd_cluster.main/member[\"c\"]/etcd"]);
    let line = text.lines().find(|l| l.trim_start().starts_with("member_id")).unwrap_or_else(|| panic!("{text}"));
    line.rsplit('"').nth(1).unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// Who joins gets the database with its free pages, which a plan gives back.
fn its_copy_gets_small(project: &Project) {
    project.apply();
    finds(project, &[]);
}

fn of(kind: &str, member: &str, part: &str) -> (String, String) {
    (kind.to_owned(), format!("etcd_cluster.main/member[\"{member}\"]/{part}"))
}

fn report(project: &Project) -> Value {
    let ended = project.run(&["drift", "-json"]);
    serde_json::from_str(&ended.text).unwrap_or_else(|e| panic!("{e}\n{}", ended.text))
}

/// The report says exactly this, and ends with the code for it.
#[track_caller]
pub(super) fn finds(project: &Project, expected: &[(String, String)]) -> String {
    let report = report(project);
    let found = report["findings"].as_array().expect("findings").iter();
    let found: BTreeSet<(String, String)> =
        found.map(|f| ["kind", "address"].map(|n| f[n].as_str().unwrap_or_default().to_owned()).into()).collect();
    assert_eq!(found, expected.iter().cloned().collect(), "{report:#}");
    let code = if expected.is_empty() {
        0
    } else if expected.iter().all(|(kind, _)| kind == "decay") {
        3
    } else {
        2
    };
    assert_eq!(report["exit_code"], code, "{report:#}");
    report.to_string()
}
