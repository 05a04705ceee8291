use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use karmaform_model::Action;

use super::*;
use crate::host::Output;
use crate::script::Script;

fn entries(lines: &[(&str, &[&str])]) -> Value {
    let entry = |(address, names): &(&str, &[&str])| Value::object([("address", (*address).into()), ("names", Value::strings(*names))]);
    Value::list(entry_type(), lines.iter().map(entry).collect())
}

fn wanted(name: &str, lines: &[(&str, &[&str])]) -> Object {
    object([("name", name.into()), ("entries", entries(lines))])
}

fn plan(before: Option<&Object>, wanted: &Object) -> Result<Action, Vec<Diagnostic>> {
    let change = HostsEntries::new().plan(&PlanContext { now: 0 }, before, Some(wanted));
    change.map(|c| c.action()).map_err(|d| d.into_iter().collect())
}

#[test]
fn what_no_hosts_file_can_hold_is_refused() {
    let check = |address: &str, names: &[&str], expected: &[&str]| {
        let summaries = plan(None, &wanted("a", &[("10.0.0.1", &["x"]), (address, names)])).err().unwrap_or_default();
        let summaries: Vec<_> = summaries.iter().map(|d| d.summary.as_str()).collect();
        assert_eq!(summaries, expected, "{address} {names:?}");
    };
    check("10.0.0.1", &["x", "api.karmada-system.svc", "a_b"], &[]);
    check("fd00::1", &["x"], &[]);
    check("10.0.0.300", &["x"], &["Bad address"]);
    check("10.0.0.1 y", &["x"], &["Bad address"]);
    check("10.0.0.0/8", &["x"], &["Bad address"]);
    check("h", &["x."], &["Bad address", "Bad name"]);
    check("10.0.0.1", &["x y", "", "-x", "x\n# END karmaform a", "x#", "a..b", &"x".repeat(64)], &["Bad name"; 7]);
    check("10.0.0.1", &[], &["No name"]);
}

#[test]
fn names_of_blocks_are_plain() {
    let check = |name: &str, good: bool| assert_eq!(plan(None, &wanted(name, &[])).is_ok(), good, "{name}");
    check("Karmada_main.v1-a", true);
    check("", false);
    check("a b", false);
    check("a/b", false);
    check(&"x".repeat(101), false);
}

#[test]
fn a_message_names_the_line_and_no_secret() {
    let found = plan(None, &wanted("a", &[("10.0.0.1", &["x"]), ("10.0.0.2", &["bad name"])])).unwrap_err();
    assert_eq!(found[0].detail, "\"bad name\" in \"entries[1].names\" is no DNS name, as a host's is.");
    let mut secret = wanted("a", &[("hunter2 ", &["x"])]);
    let marked = secret["entries"].clone().secret();
    secret.insert("entries".to_owned(), marked);
    assert!(!plan(None, &secret).unwrap_err()[0].detail.contains("hunter2"));
}

#[test]
fn what_is_not_known_yet_is_no_mistake() {
    let unknown = || Value::unknown(Type::String);
    let partly = Value::object([("address", unknown()), ("names", Value::list(Type::String, vec!["x".into(), unknown()]))]);
    let all = Value::object([("address", "10.0.0.1".into()), ("names", Value::unknown(Type::list(Type::String)))]);
    let lists = [Value::list(entry_type(), vec![partly, all, Value::unknown(entry_type())]), Value::unknown(Type::list(entry_type()))];
    for entries in lists {
        assert_eq!(plan(None, &object([("name", "a".into()), ("entries", entries)])), Ok(Action::Create));
    }
}

#[test]
fn what_was_seen_is_compared_line_by_line() {
    let line: (&str, &[&str]) = ("10.0.0.1", &["x", "y"]);
    let other: (&str, &[&str]) = ("10.0.0.2", &["x"]);
    let check = |lines: &str, expected: Action| {
        let seen = Seen { hosts: format!("# BEGIN karmaform a\n{lines}# END karmaform a\n"), ..Seen::default() };
        let before = HostsEntries::new().answer(&seen, &wanted("a", &[]), None).unwrap();
        assert_eq!(plan(before.as_ref(), &wanted("a", &[line, other])), Ok(expected), "{lines}");
    };
    check("10.0.0.1 x y\n10.0.0.2 x\n", Action::NoOp);
    check("10.0.0.1\tx  y\n10.0.0.2 x\n", Action::NoOp);
    check("10.0.0.2 x\n10.0.0.1 x y\n", Action::Update);
    check("10.0.0.1 x\n10.0.0.2 x\n", Action::Update);
    check("10.0.0.1 x y\n# note\n10.0.0.2 x\n", Action::Update);
    check("", Action::Update);
}

/// Runs the script on a file here, as it would run there.
fn run(file: &str, name: &str, block: Option<&str>) -> Output {
    let script = Script::new(&edit(file, name, block));
    let mut shell = Command::new("sh");
    shell.args(["-c", &script.bootstrap(false)]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.text().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    script.output(&output.stdout, &output.stderr, false).unwrap().unwrap()
}

#[test]
fn only_the_block_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    let file = path.to_string_lossy().into_owned();
    let a = |lines: &[(&str, &[&str])]| block(&wanted("a.b", lines));
    let (one, two) = (a(&[("10.0.0.1", &["x"])]), a(&[("10.0.0.1", &["x", "y"]), ("fd00::1", &["x"])]));
    let other = block(&wanted("aXb", &[("10.0.0.9", &["z"])]));
    let act = |name: &str, block: Option<&str>| {
        let output = run(&file, name, block);
        assert_eq!((output.status, output.stderr.as_str()), (0, ""));
        String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
    };
    for (whole, rest) in
        [("127.0.0.1 localhost\n", ""), ("127.0.0.1 localhost\n", "::1 localhost"), ("", "h"), ("\n\n", "\0\u{fc}"), ("", "")]
    {
        let original = format!("{whole}{rest}");
        fs::write(&path, &original).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(act("a.b", None), original, "nothing to take away");
        assert_eq!(act("a.b", Some(&one)), format!("{whole}{one}{rest}"));
        assert_eq!(act("aXb", Some(&other)), format!("{whole}{one}{other}{rest}"));
        assert_eq!(act("a.b", Some(&two)), format!("{whole}{two}{other}{rest}"), "in its place");
        assert_eq!(act("a.b", Some(&two)), format!("{whole}{two}{other}{rest}"), "done twice");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o604);
        assert_eq!(act("a.b", None), format!("{whole}{other}{rest}"));
        assert_eq!(act("aXb", None), original);
    }
    // one that is not there is made, and read by all
    fs::remove_file(&path).unwrap();
    assert_eq!(act("a.b", Some(&one)), one);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o644);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["hosts"]);
}

#[test]
fn a_link_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("real"), folder.path().join("hosts"));
    fs::write(&path, "x\n").unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    assert_eq!(run(&link.to_string_lossy(), "a", Some("# BEGIN karmaform a\n# END karmaform a\n")).status, 0);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), "x\n# BEGIN karmaform a\n# END karmaform a\n");
}

#[test]
fn a_block_without_an_end_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    let original = "# END karmaform a\n# BEGIN karmaform a\n10.0.0.1 x\n127.0.0.1 localhost\n";
    fs::write(&path, original).unwrap();
    for block in [None, Some("# BEGIN karmaform a\n# END karmaform a\n")] {
        let output = run(&path.to_string_lossy(), "a", block);
        assert_eq!(output.reason().unwrap().0, "damaged");
        assert_eq!(fs::read_to_string(&path).unwrap(), original);
    }
}

#[test]
fn many_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    fs::write(&path, "127.0.0.1 localhost").unwrap();
    let each = |act: &(dyn Fn(&str) -> Output + Sync)| {
        std::thread::scope(|scope| {
            for i in 0..8 {
                scope.spawn(move || assert_eq!(act(&format!("b{i}")).status, 0));
            }
        });
    };
    let file = path.to_string_lossy();
    each(&|name| run(&file, name, Some(&block(&wanted(name, &[("10.0.0.1", &[name])])))));
    let text = fs::read_to_string(&path).unwrap();
    assert!((0..8).all(|i| text.contains(&format!("10.0.0.1 b{i}\n"))) && text.lines().count() == 25, "{text}");
    each(&|name| run(&file, name, None));
    assert_eq!(fs::read_to_string(&path).unwrap(), "127.0.0.1 localhost");
}

#[test]
fn what_is_in_the_way_of_a_block_is_told() {
    let told = |beside: &str| in_the_way(beside, &["127.0.0.1 a.svc", "10.0.0.1 a.svc"]).join("; ");
    assert_eq!(told("mode 644\n127.0.0.1 localhost\n10.0.0.1 a.svc # the same\n10.9.9.9 # a.svc\n"), "");
    assert_eq!(told("10.9.9.9 b a.svc"), "a line of somebody else in /etc/hosts says that a.svc is 10.9.9.9");
    assert_eq!(told("mode 666"), "anybody may write /etc/hosts (mode 666), and lead its names elsewhere");
    assert!(
        told("mode 644\nrewritten\n127.0.0.1 localhost\n").starts_with("cloud-init writes /etc/hosts anew at each boot, and the block")
    );
    assert_eq!(told("mode 600"), "only root and its group can read /etc/hosts (mode 600), and components run as neither");
}

#[test]
fn a_cloud_init_that_writes_the_file_anew_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let hosts = root.join("hosts");
    fs::write(&hosts, "# Your system has configured 'manage_etc_hosts' as True.\n127.0.0.1 localhost\n").unwrap();
    fs::set_permissions(&hosts, fs::Permissions::from_mode(0o644)).unwrap();
    let functions = [include_str!("../../script/prelude.sh"), include_str!("../../script/looks.sh")].join("\n");
    let script = format!("kf_root={}\n{functions}\nhosts_beside {}\n", root.display(), hosts.display());
    let told = || String::from_utf8(Command::new("sh").args(["-c", &script]).output().unwrap().stdout).unwrap();
    assert_eq!(told(), "mode 644\n127.0.0.1 localhost\n", "there is none");
    fs::create_dir_all(root.join("var/lib/cloud")).unwrap();
    assert_eq!(told(), "mode 644\nrewritten\n127.0.0.1 localhost\n");
    fs::create_dir_all(root.join("etc/cloud")).unwrap();
    fs::write(root.join("etc/cloud/cloud-init.disabled"), "").unwrap();
    assert_eq!(told(), "mode 644\n127.0.0.1 localhost\n", "it is switched off");
}
