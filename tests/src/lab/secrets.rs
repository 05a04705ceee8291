//! No secret in output, plan, log, process list or a temporary file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::Finally;
use crate::project::Project;

/// How often a process is looked at before it is left alone for a moment: reading those that stay all the time would take a core.
const LOOKS: u32 = 10;

/// Runs `work` and gives, with its result, the arguments and environments of every process that ran meanwhile, here and on the hosts
/// (their processes are this machine's too).
pub(crate) fn watching_processes<T>(work: impl FnOnce() -> T) -> (T, String) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            let (mut looks, mut since) = (BTreeMap::new(), Instant::now());
            while !done.load(Ordering::SeqCst) {
                if since.elapsed() > Duration::from_millis(300) {
                    (looks, since) = (BTreeMap::new(), Instant::now());
                }
                for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
                    let looks = looks.entry(entry.file_name()).or_insert(0);
                    *looks += 1;
                    if *looks > LOOKS {
                        continue;
                    }
                    for file in ["cmdline", "environ"] {
                        let text = fs::read(entry.path().join(file)).unwrap_or_default();
                        if !text.is_empty() {
                            seen.insert(String::from_utf8_lossy(&text).replace('\0', " "));
                        }
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            seen.into_iter().collect::<Vec<_>>().join("\n")
        });
        let end = Finally(&done);
        let result = work();
        drop(end);
        (result, watcher.join().expect("the watcher"))
    })
}

/// None of the private keys in the state stands in these texts, nor in any file of the project but the state itself.
pub(crate) fn none_in(project: &Project, texts: &[(&str, &str)]) {
    let state = fs::read_to_string(project.path().join("karmaform.tfstate")).expect("a state");
    // The second line of each key: the first lines of PEM are all the same.
    let keys: BTreeSet<&str> =
        state.split("PRIVATE KEY-----\\n").skip(1).map(|k| k.split("\\n").next().unwrap_or_default()).filter(|k| k.len() > 20).collect();
    assert!(keys.len() > 3, "the state holds the keys");
    let shell: Vec<_> = ["plan", "show", "state list", "output", "graph", "status"]
        .into_iter()
        .map(|c| (c, project.run(&c.split(' ').collect::<Vec<_>>()).text))
        .collect();
    project.must(0, &["plan", "-destroy", "-out=saved.kfplan"]);
    let saved = String::from_utf8_lossy(&fs::read(project.path().join("saved.kfplan")).expect("a plan")).into_owned();
    let shown = project.must(0, &["show", "saved.kfplan"]);
    let texts = texts.iter().map(|(n, t)| (*n, (*t).to_owned())).chain(shell).chain([("a saved plan", saved), ("show of it", shown)]);
    for (name, text) in texts {
        for key in &keys {
            assert!(!text.contains(key), "a private key stands in: {name}");
        }
        assert!(!text.contains("PRIVATE KEY"), "a private key stands in: {name}");
    }
    let _ = fs::remove_file(project.path().join("saved.kfplan"));
}
