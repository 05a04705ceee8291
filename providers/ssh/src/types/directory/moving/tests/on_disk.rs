//! The script that moves, on this machine's file systems, killed wherever it can be.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::*;
use super::{ask, planned_for, seen, wanted};
use crate::script::Script;

mod others;

const UNIT: &str = "etcd-main.service";

/// A place of its own on some file system.
fn folder(on: &Path) -> tempfile::TempDir {
    tempfile::Builder::new().prefix("kf-move").tempdir_in(on).unwrap()
}

/// Two file systems of this machine; `None` if there is one alone.
fn two_file_systems() -> Option<(PathBuf, PathBuf)> {
    use std::os::unix::fs::MetadataExt;
    let (one, other) = (std::env::temp_dir(), PathBuf::from("/dev/shm"));
    let device = |path: &Path| path.metadata().map(|m| m.dev()).ok();
    (device(&other).is_some() && device(&one) != device(&other)).then_some((one, other))
}

/// Data with something beside it, and a list of what is ours.
fn fill(base: &Path) -> PathBuf {
    let from = base.join("from");
    for (path, content) in
        [("from/member/wal", "log"), ("from/member/snap", "db"), ("from.snapshots/one", "saved"), ("from.before-x/y", "old")]
    {
        let path = base.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::create_dir_all(base.join("kf")).unwrap();
    std::fs::write(base.join("kf/owned"), format!("ssh_directory\t{}\t\n", from.display())).unwrap();
    from
}

fn change(from: &Path, to: &Path) -> Change {
    change_from(&[from], to)
}

/// Where it may be is told.
fn change_from(from: &[&Path], to: &Path) -> Change {
    let text = |path: &Path| Value::from(path.to_string_lossy().into_owned());
    let mut after = wanted(&to.to_string_lossy());
    after.insert("moves_with".to_owned(), Value::strings(["snapshots", "before-*"]));
    after.insert("moves_from".to_owned(), Value::list(Type::String, from.iter().map(|place| text(place)).collect()));
    Change::Create { after }
}

/// Runs the script as a host would, after these lines. Everything of it is killed before its n-th command that changes something; one that copies
/// has then begun. Gives its status, and the word it failed with.
fn run_with(base: &Path, change: &Change, killed_before: Option<usize>, lines: &str) -> (Option<i32>, Option<String>) {
    let steps = folder(base);
    let stop = killed_before.map_or_else(|| "never".to_owned(), |n| n.to_string());
    let path = quote(text(change.after().unwrap(), "path").unwrap());
    let body = format!(
        r#"kf_directory={kf} kf_owned={kf}/owned kf_parts={kf}/parts kf_fstab={kf}/fstab kf_systemd={kf}/systemd kf_lock={kf}
count() {{ set -- {steps}/*; if [ -e "$1" ]; then n=$#; else n=0; fi; }}
step() {{
  count
  while ! command mkdir {steps}/$n 2>/dev/null; do n=$((n + 1)); done
  if [ $n = {stop} ]; then
    if [ "$1" = cp ]; then command mkdir -p "$4"; command cp -a -- "$3/member" "$4/" 2>/dev/null; fi
    kill -9 0
    sleep 9
  fi
}}
mv() {{ step mv; command mv "$@"; }}
rm() {{ step rm; command rm "$@"; }}
cp() {{ step cp "$@"; command cp "$@"; }}
rmdir() {{ step rmdir; command rmdir "$@"; }}
mkdir() {{ step mkdir; command mkdir "$@"; }}
sync() {{ :; }}
{lines}
path={path} owner=0:0
{}"#,
        script(change),
        kf = quote(&base.join("kf").to_string_lossy()),
        steps = quote(&steps.path().to_string_lossy()),
    );
    let script = Script::new(&body);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script.bootstrap(false)).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.spawn().unwrap();
    let text = script.text().to_owned();
    let mut stdin = child.stdin.take().unwrap();
    drop(std::io::Write::write_all(&mut stdin, text.as_bytes()));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    match script.output(&output.stdout, b"", false) {
        Some(Ok(output)) => (Some(output.status), output.reason().map(|(word, _)| word)),
        _ => (None, None),
    }
}

fn run(base: &Path, change: &Change, killed_before: Option<usize>) -> (Option<i32>, Option<String>) {
    run_with(base, change, killed_before, "")
}

/// All files below a directory with their content.
fn files(base: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![base.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(base).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
                found.insert(format!("{name}/"), String::new());
            } else {
                found.insert(name, std::fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    found
}

fn has_all(data: &Path) -> bool {
    let whole = [("member/", ""), ("member/wal", "log"), ("member/snap", "db")].map(|(n, c)| (n.to_owned(), c.to_owned()));
    files(data) == BTreeMap::from(whole)
}

/// It is there, with what stands beside it, and nothing else is anywhere.
fn is_at(to: &Path, others: &[&Path], base: &Path, what: &str) {
    let all_of = |place: &Path| {
        let name = place.file_name().unwrap().to_string_lossy().into_owned();
        let there = files(place.parent().unwrap()).into_keys().filter(|n| n.starts_with(&name));
        there.map(|n| n[name.len()..].to_owned()).collect::<Vec<_>>()
    };
    let whole = [".before-x/", ".before-x/y", ".snapshots/", ".snapshots/one", "/", "/member/", "/member/snap", "/member/wal"];
    assert!(has_all(to), "{what}");
    assert_eq!(all_of(to), whole, "{what}");
    others.iter().for_each(|other| assert!(all_of(other).is_empty(), "{what}: {:?}", all_of(other)));
    let owned = std::fs::read_to_string(base.join("kf/owned")).unwrap();
    // Where it was before may be remembered, and where it is now.
    let remembered: Vec<String> = others.iter().map(|other| format!("moved\t{}\t{}\t{UNIT}", other.display(), to.display())).collect();
    let lines: Vec<&str> = owned.lines().filter(|line| !remembered.iter().any(|r| r == line)).collect();
    assert_eq!(lines, [format!("ssh_directory\t{}\t", to.display())], "{what}");
}

/// Whoever may start finds all of it or nothing, and it is never lost.
fn is_safe(places: &[&Path], what: &str) {
    let at = |place: &Path, end: &str| PathBuf::from(format!("{}{end}", place.display()));
    let live: Vec<_> = places.iter().filter(|place| place.join("member").exists()).collect();
    assert!(live.iter().all(|place| has_all(place)) && live.len() <= 1, "{what}: {live:?}");
    let left = places.iter().filter(|place| has_all(&at(place, ".karmaform-moved"))).count();
    assert!(live.len() + left > 0, "{what}: all of it is gone");
}

/// What is planned by a state that has it at one place, and knows no more than that.
fn planned(base: &Path, at: &Path, from: &Path, to: &Path) -> Change {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let mut after = wanted(&name(to));
    after.insert("moves_with".to_owned(), Value::strings(["snapshots", "before-*"]));
    let there: Vec<(String, bool)> =
        [at, to].iter().filter_map(|place| Some((name(place), std::fs::read_dir(place).ok()?.next().is_none()))).collect();
    let there: Vec<(&str, bool)> = there.iter().map(|(place, is_empty)| (place.as_str(), *is_empty)).collect();
    let owned = std::fs::read_to_string(base.join("kf/owned")).unwrap_or_default();
    let mut change = planned_for(&seen(&there, &owned), &ask(None, &name(at), &after)).unwrap();
    // Where it was seen, and where the last whole apply had it.
    let places = change.before().and_then(|b| text(b, "path")).into_iter().map(str::to_owned).chain([name(from)]);
    let mut places: Vec<String> = places.filter(|place| *place != name(to)).collect();
    places.dedup();
    let told = Value::list(Type::String, places.iter().map(|place| place.as_str().into()).collect());
    if let Change::Create { after } | Change::Update { after, .. } = &mut change {
        after.insert("moves_from".to_owned(), told);
    }
    change
}

/// A way through places, killed in each of its moves at every command, and nobody hears of those that end; then it is moved to the last one.
fn check_kills(from_on: &Path, to_on: &Path, way: &[usize]) {
    let mut kills = vec![0; way.len()];
    let mut runs = 0;
    loop {
        let (base, other) = (folder(from_on), folder(to_on));
        let from = fill(base.path());
        let (to, third) = (other.path().join("to"), base.path().join("third"));
        let places = [from.as_path(), to.as_path(), third.as_path()];
        let mut ended = None;
        let what = format!("{way:?} killed before {kills:?}");
        for (n, (next, kill)) in way.iter().zip(&kills).enumerate() {
            let change = planned(base.path(), &from, &from, places[*next]);
            let (status, word) = run(base.path(), &change, Some(*kill));
            assert!(status.is_none() || status == Some(0), "{what}: {word:?}");
            if status == Some(0) {
                ended = ended.or(Some(n));
            }
            is_safe(&places, &what);
        }
        let last = *way.last().unwrap();
        for again in ["again", "once more"] {
            let change = planned(base.path(), &from, &from, places[last]);
            assert_eq!(run(base.path(), &change, None), (Some(0), None), "{what}, {again}");
            let others: Vec<&Path> = places.iter().enumerate().filter(|(n, _)| *n != last).map(|(_, p)| *p).collect();
            is_at(places[last], &others, base.path(), &format!("{what}, {again}"));
        }
        runs += 1;
        // The next of all ways to be killed: as an odometer counts.
        let Some(turn) = ended.map_or(Some(way.len() - 1), |n: usize| n.checked_sub(1)) else { break };
        // Each of the first kills with every eleventh of the second, others each time.
        kills[turn] += if turn == 0 { 1 } else { 11 };
        let first = kills[0] % 11;
        kills[turn + 1..].fill(first);
    }
    assert!(runs > 5 * way.len(), "{way:?}: it was killed {runs} times");
}

#[test]
fn killed_anywhere_it_ends_whole() {
    let one = std::env::temp_dir();
    let (from_on, to_on) = two_file_systems().unwrap_or((one.clone(), one.clone()));
    check_kills(&one, &one, &[1]);
    for way in [&[1][..], &[1, 0], &[1, 2]] {
        check_kills(&from_on, &to_on, way);
    }
}

#[test]
fn nothing_is_moved_upon_what_others_have() {
    let base = folder(&std::env::temp_dir());
    let (from, to) = (fill(base.path()), base.path().join("to"));
    for (taken, word) in [("to/x", "exists"), ("to.snapshots/x", "exists")] {
        let taken = base.path().join(taken);
        std::fs::create_dir_all(&taken).unwrap();
        assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some(word));
        std::fs::remove_dir_all(taken.parent().unwrap()).unwrap();
    }
    std::fs::write(&to, "").unwrap();
    assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("kind"));
    assert!(has_all(&from) && std::fs::read_to_string(base.path().join("kf/owned")).unwrap().lines().count() == 1);
    std::fs::remove_file(&to).unwrap();
    // Below where a disk will be.
    std::fs::write(base.path().join("kf/fstab"), format!("# disks\n/dev/sdx {} ext4 defaults 0 2\n", base.path().display())).unwrap();
    assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("unmounted"));
    std::fs::remove_file(base.path().join("kf/fstab")).unwrap();
    std::fs::remove_dir_all(from.join("member")).unwrap();
    assert_eq!(run(base.path(), &change(&from, &to), None).1.as_deref(), Some("nothing"));
}

/// Whoever uses it is stopped, and goes on where it was if it could not be moved.
#[test]
fn who_uses_it_is_stopped_and_started_again_if_that_fails() {
    let unit = r#"
systemctl() {
  case $1 in
  show) cat "$kf_directory/unit" ;;
  stop) echo "stop" >>"$kf_directory/calls"; echo "$after_stop" >"$kf_directory/unit" ;;
  start) echo "start" >>"$kf_directory/calls"; echo active >"$kf_directory/unit" ;;
  esac
}
ln() { return 1; }
after_stop=inactive
"#;
    // What happens, the word it fails with, and the calls.
    let cases = [
        ("", None, "stop"),
        ("after_stop=deactivating", Some("running"), "stop start"),
        ("after_stop=", Some("running"), "stop start"),
        // Somebody starts it when it has just stopped.
        ("sync() { if [ -e \"$live$kf_moved\" ]; then echo active >\"$kf_directory/unit\"; fi; }", Some("running"), "stop start"),
        ("cp() { command cp \"$@\"; case $3 in *-moved) return 1 ;; esac; }", Some("write"), "stop start"),
        // The disk takes nothing, which is seen late.
        ("sync() { case $2 in */to.karmaform-coming) return 1 ;; esac; }", Some("write"), "stop start"),
        // It is told to end. (Who began with hang-ups ignored can't be told by one.)
        ("cp() { command cp \"$@\"; case $3 in *-moved) read -r me _ </proc/self/stat; kill -TERM $me ;; esac; }", None, "stop start"),
    ];
    for (lines, word, calls) in cases {
        let base = folder(&std::env::temp_dir());
        let (from, to) = (fill(base.path()), base.path().join("to"));
        std::fs::create_dir(base.path().join("kf/systemd")).unwrap();
        std::fs::write(base.path().join("kf/unit"), "active\n").unwrap();
        let (_, failed) = run_with(base.path(), &change(&from, &to), None, &format!("{unit}{lines}"));
        assert_eq!(failed.as_deref(), word, "{lines}");
        let called = std::fs::read_to_string(base.path().join("kf/calls")).unwrap_or_default();
        assert_eq!(called.split_whitespace().collect::<Vec<_>>().join(" "), calls, "{lines}");
        if lines.is_empty() {
            is_at_new_place(&from, &to);
        } else {
            assert!(has_all(&from) && !to.exists(), "{lines}");
            std::fs::write(base.path().join("kf/unit"), "inactive\n").unwrap();
            assert_eq!(run_with(base.path(), &change(&from, &to), None, unit), (Some(0), None), "{lines}");
            is_at_new_place(&from, &to);
        }
    }
}

/// It is told to end when all of it has arrived: it is there, and nowhere else again.
#[test]
fn what_has_arrived_stays() {
    let lines = "ln() { return 1; }
sync() { if [ \"$2\" = \"$path\" ]; then read -r me _ </proc/self/stat; kill -TERM $me; command sleep 1; fi; }
systemctl() { case $1 in show) cat \"$kf_directory/unit\" ;; stop) echo inactive >\"$kf_directory/unit\" ;; start) touch \"$kf_directory/started\" ;; esac; }";
    let base = folder(&std::env::temp_dir());
    let (from, to) = (fill(base.path()), base.path().join("to"));
    std::fs::create_dir(base.path().join("kf/systemd")).unwrap();
    std::fs::write(base.path().join("kf/unit"), "active\n").unwrap();
    run_with(base.path(), &change(&from, &to), None, lines);
    assert!(has_all(&to) && !from.exists() && !base.path().join("kf/started").exists(), "{:?}", files(base.path()));
    assert_eq!(run(base.path(), &change(&from, &to), None), (Some(0), None));
    is_at(&to, &[&from], base.path(), "again");
}

fn is_at_new_place(from: &Path, to: &Path) {
    assert!(has_all(to) && !from.exists());
}
