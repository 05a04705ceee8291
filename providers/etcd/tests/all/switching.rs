//! The script that puts what was restored in the place of what was there: killed before and after each command that changes something, and run
//! again, also where the two are on different disks and are copied. Nothing is lost, and nothing is taken for what it is not.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use karmaform_etcd::EtcdCluster;
use karmaform_model::{Address, Arg, Composite, Key, Object, Value};

const TOKEN: &str = "11111111-2222";
/// What changes something; each is counted, and one of them is where the script is killed.
const PROGRAMS: [&str; 4] = ["mv", "cp", "rm", "sync"];

/// A script of a part of the restoration, of a member with its data here.
fn script(data: &Path, key: &str, attribute: &str) -> String {
    let connection = Value::object([("provider", "ssh".into()), ("id", "10.0.0.11:22".into())]);
    let host = Value::object([("address", "10.0.0.11".into()), ("connection", connection), ("clock_offset", 0i64.into())]);
    let block = Value::object([("from", "x.db".into()), ("sha256", "ab".repeat(32).into())]);
    let arguments = Object::from([
        ("version".to_owned(), "3.5.16".into()),
        ("hosts".to_owned(), Value::object([("a", host)])),
        ("source".to_owned(), "etcd.tar.gz".into()),
        ("restore".to_owned(), block),
    ]);
    let expansion = EtcdCluster.expand(&Address::managed("etcd_cluster", "main"), &arguments).expect("a cluster");
    let is_it =
        |c: &&karmaform_model::Child| c.path.last().is_some_and(|s| s.name == "restore" && s.key == Some(Key::Name(key.to_owned())));
    let child = expansion.children.iter().find(is_it).expect("the child");
    match &child.arguments[attribute] {
        Arg::Value(value) => value.as_str().expect("a text").replace("/var/lib/etcd/main", &data.to_string_lossy()),
        other => panic!("{other:?}"),
    }
}

struct Bench {
    folder: tempfile::TempDir,
    script: String,
}

impl Bench {
    /// `are_apart`: the data is on a disk of its own.
    fn new(are_apart: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = script(&folder.path().join("main"), "switch", "command");
        let bench = Self { folder, script };
        bench.puts("main/member/old", "old");
        bench.puts(&format!("main.restore/new-{TOKEN}/member/new"), "new");
        bench.puts(&format!("main.restore/new-{TOKEN}/member/restored"), &format!("{TOKEN}\n"));
        for program in PROGRAMS {
            // Killed before it, or after it.
            bench.program(
                program,
                &format!(
                    "n=$(($(cat {count}) + 1)); echo $n >{count}; fatal=$(cat {fatal})\n\
                     if [ \"$fatal\" = \"$n before\" ]; then kill -9 $PPID; exit 1; fi\n\
                     /usr/bin/{program} \"$@\"; code=$?\n\
                     if [ \"$fatal\" = \"$n after\" ]; then kill -9 $PPID; fi\nexit $code",
                    count = bench.at("count").display(),
                    fatal = bench.at("fatal").display(),
                ),
            );
        }
        // The state of a unit that has started at once.
        bench.program("systemctl", "case \"$*\" in *ActiveState*) echo \"$(cat \"$(dirname \"$0\")/../state\")\" ;; *LoadState*) echo loaded ;; *stop*) echo inactive >\"$(dirname \"$0\")/../state\" ;; *start*) echo active >\"$(dirname \"$0\")/../state\" ;; esac");
        if are_apart {
            bench.program("stat", "case $3 in */main | */main/*) echo 2 ;; *) echo 1 ;; esac");
        }
        bench.program("sleep", "exit 0");
        bench
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn puts(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn program(&self, name: &str, text: &str) {
        self.puts(&format!("bin/{name}"), &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(self.at(&format!("bin/{name}")), fs::Permissions::from_mode(0o755)).expect("rights");
    }

    /// Runs it; true if it ended well. Gives how many changes it made.
    fn runs(&self, fatal: &str) -> (bool, usize) {
        self.puts("count", "0");
        self.puts("fatal", fatal);
        self.puts("state", "active");
        let status = Command::new("sh")
            .args(["-c", &self.script])
            .env("PATH", format!("{}:/usr/bin:/bin", self.at("bin").display()))
            .envs([("TOKEN", TOKEN), ("KARMAFORM_RESTORE", "yes")])
            .status();
        let count = fs::read_to_string(self.at("count")).expect("a count").trim().parse().expect("a number");
        (status.is_ok_and(|s| s.success()), count)
    }

    /// All files, but for the bench's own.
    fn files(&self) -> BTreeMap<String, String> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                let name = path.strip_prefix(self.folder.path()).expect("in it").to_string_lossy().into_owned();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && name != "bin" => open.push(path),
                    Ok(kind) if kind.is_file() && name.starts_with("main") => {
                        drop(found.insert(name, fs::read_to_string(path).expect("a text")));
                    }
                    _ => {}
                }
            }
        }
        found
    }
}

#[test]
fn killed_anywhere_it_ends_the_same() {
    for are_apart in [false, true] {
        let calm = Bench::new(are_apart);
        let (is_well, steps) = calm.runs("");
        assert!(is_well);
        let expected = BTreeMap::from([
            (format!("main.before-{TOKEN}/old"), "old".to_owned()),
            ("main/member/new".to_owned(), "new".to_owned()),
            ("main/member/restored".to_owned(), format!("{TOKEN}\n")),
            (format!("main.restore/switched-{TOKEN}"), String::new()),
        ]);
        assert_eq!(calm.files(), expected);
        assert!(steps >= if are_apart { 9 } else { 4 }, "{steps}");
        for step in 1..=steps {
            for moment in ["before", "after"] {
                let bench = Bench::new(are_apart);
                let (is_well, _) = bench.runs(&format!("{step} {moment}"));
                assert!(!is_well, "step {step} was not reached");
                let (is_well, _) = bench.runs("");
                assert!(is_well, "killed {moment} step {step}, apart: {are_apart}: {:#?}", bench.files());
                assert_eq!(bench.files(), expected, "killed {moment} step {step}, apart: {are_apart}");
            }
        }
    }
}

/// A member that joined, or one that is asked again.
#[test]
fn who_is_not_told_changes_nothing() {
    let bench = Bench::new(false);
    let before = bench.files();
    let status = Command::new("sh").args(["-c", &bench.script]).env("TOKEN", TOKEN).status();
    assert!(status.is_ok_and(|s| s.success()));
    let mut after = bench.files();
    assert_eq!(after.remove(&format!("main.restore/switched-{TOKEN}")), Some(String::new()));
    assert_eq!(after.get("main/member/old"), before.get("main/member/old"));
}

/// What was before a restoration that has not ended stays, whatever is removed.
#[test]
fn only_what_was_before_ended_ones_is_removed() {
    let bench = Bench::new(false);
    let run = |attribute: &str, token: &str| {
        let text = script(&bench.at("main"), "before", attribute);
        let status = Command::new("sh").args(["-c", &text]).env("TOKEN", token).status();
        assert!(status.is_ok_and(|s| s.success()), "{attribute} {token}");
    };
    for token in ["1", "2", "unfinished-2"] {
        bench.puts(&format!("main.before-{token}/old"), token);
    }
    run("undo", "2");
    assert!(bench.at("main.before-1/old").exists(), "nothing has ended");
    for _ in 0..2 {
        run("command", "2");
    }
    bench.puts("main.before-3/old", "3");
    run("undo", "2");
    let left: Vec<String> = bench.files().into_keys().filter(|name| name.starts_with("main.before-")).collect();
    assert_eq!(left, ["main.before-3/old"]);
}
