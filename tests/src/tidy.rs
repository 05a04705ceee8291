//! Tidiness is a plain test: who imports whom, how long files are, and that nothing is without its case, its page or its words.
//!
//! Knows nothing of how anything works; it reads the tree as text.

mod diagnostics;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::parts::{real_registry, root, tell};

/// Files may be so long before this test talks about it, and before it fails.
const TALK_AT: usize = 400;
const STOP_AT: usize = 800;

/// The arrows: a folder, and which of our packages it may import. Whoever adds one opens an issue first.
const ARROWS: &[(&str, &[&str])] = &[
    ("core/model", &[]),
    ("core/lang", &["model"]),
    ("core/engine", &["model", "lang"]),
    ("providers/", &["model"]),
    ("state-backends/", &["model"]),
    (
        "cmd",
        &[
            "model",
            "lang",
            "engine",
            "ssh",
            "tls",
            "builtin",
            "etcd",
            "kubernetes",
            "karmada",
            "local",
            "remote",
            "s3",
            "encryption",
            "etcd-state",
            "kubernetes-state",
            "http-state",
        ],
    ),
    ("tests/stand-in", &[]),
    (
        "tests",
        &[
            "",
            "model",
            "lang",
            "engine",
            "ssh",
            "tls",
            "builtin",
            "etcd",
            "karmada",
            "memory",
            "local",
            "remote",
            "s3",
            "encryption",
            "etcd-state",
            "kubernetes-state",
            "http-state",
        ],
    ),
];

/// Libraries with few users: the files (or folders) that may name them.
const USERS: &[(&str, &[&str])] = &[
    ("petgraph", &["core/engine/src/graph"]),
    ("ssh2", &["providers/ssh/src/host"]),
    ("rcgen", &["providers/tls/src/"]),
    ("etcd_client", &["providers/etcd/src/", "state-backends/etcd-state/src/"]),
    ("kube", &["providers/kubernetes/src/", "state-backends/kubernetes-state/src/"]),
    ("object_store", &["state-backends/s3/src/"]),
    ("reqwest", &["state-backends/s3/src/", "state-backends/http-state/src/", "cmd/src/profile/collector.rs"]),
    ("quick_xml", &["state-backends/s3/src/"]),
    ("clap", &["cmd/src/"]),
];

/// What core never touches: it is pure, and these are the outside.
const NOT_IN_CORE: &[&str] = &["tokio", "std::fs", "std::env", "std::process", "std::net::Tcp", "SystemTime", "Instant::now", "HashMap"];

/// All files below `directory` with this ending, as paths relative to the root, sorted.
fn files(directory: &str, ending: &str) -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut left = vec![root.join(directory)];
    while let Some(here) = left.pop() {
        for entry in fs::read_dir(&here).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let hidden = name.to_string_lossy().starts_with('.') && name != ".ci";
            if path.is_dir() && !hidden && name != "target" {
                left.push(path);
            } else if path.is_file() && name.to_string_lossy().ends_with(ending) {
                found.push(path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// True for modules that are only built for tests: by their name, or because their parent says so.
fn is_test(file: &str) -> bool {
    let stem = |path: &str| path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
    let parent = Path::new(file).parent().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
    let above = [format!("{parent}.rs"), format!("{parent}/lib.rs"), format!("{parent}/mod.rs")];
    let declared = |text: String| {
        let mods = text.split("#[cfg(test)]").skip(1).filter_map(|t| t.split_once(';').map(|(head, _)| head.to_owned()));
        mods.into_iter().any(|head| head.contains(&format!("mod {}", stem(file))) || head.contains(&format!("{}.rs\"", stem(file))))
    };
    file.starts_with("tests/")
        || file.contains("tests/")
        || file.ends_with("tests.rs")
        || above.iter().any(|a| fs::read_to_string(root().join(a)).is_ok_and(declared))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Packages of the workspace. What has a workspace of its own, as the fuzzers, is compiled apart.
fn members() -> Vec<String> {
    let is_apart = |file: &String| read(file).lines().any(|line| line == "[workspace]");
    let found = files("", "Cargo.toml");
    let members: Vec<_> = found.iter().filter_map(|f| Some(f.strip_suffix("/Cargo.toml").filter(|_| !is_apart(f))?.to_owned())).collect();
    assert!(members.len() > 8, "{members:?}");
    members
}

fn allowed(member: &str) -> &'static [&'static str] {
    let arrow = ARROWS.iter().find(|(folder, _)| member == *folder || (folder.ends_with('/') && member.starts_with(folder)));
    arrow.unwrap_or_else(|| panic!("{member} has no line in ARROWS")).1
}

fn none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Where the code of a file ends and its own tests begin.
fn end_of_code(text: &str) -> usize {
    text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len())
}

/// The code of a file, without comments and without what stands in `mod tests`.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text[..end_of_code(text)].lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//"))
}

#[test]
fn packages_import_only_along_the_arrows() {
    let mut problems = Vec::new();
    for member in members() {
        let mut for_tests = false;
        for line in read(&format!("{member}/Cargo.toml")).lines() {
            if line.starts_with('[') {
                for_tests = line == "[dev-dependencies]";
            }
            let Some(name) = line.strip_prefix("karmaform").and_then(|l| l.split(['.', ' ', '=']).next()) else { continue };
            let name = name.trim_start_matches('-');
            // Tests of any part may put a world in memory under it.
            let is_arrow = allowed(&member).contains(&name) || (for_tests && name == "memory");
            if !is_arrow {
                problems.push(format!("{member}/Cargo.toml: karmaform-{name} is no arrow of docs/architecture.md"));
            }
        }
    }
    none(problems);
}

#[test]
fn libraries_with_few_users_have_no_others() {
    let mut problems = Vec::new();
    for file in files("", ".rs").iter().filter(|f| !is_test(f)) {
        let text = read(file);
        for (number, line) in code(&text) {
            for (library, users) in USERS {
                let named = line.contains(&format!("{library}::")) || line.contains(&format!("use {library}"));
                if named && !users.iter().any(|user| file.starts_with(user)) {
                    problems.push(format!("{file}:{}: {library} belongs to {} alone", number + 1, users.join(" and ")));
                }
            }
            for word in NOT_IN_CORE.iter().filter(|w| file.starts_with("core/") && line.contains(**w)) {
                problems.push(format!("{file}:{}: {word} has no place in core", number + 1));
            }
        }
    }
    none(problems);
}

#[test]
fn files_are_short() {
    let mut problems = Vec::new();
    for file in files("", ".rs") {
        let lines = read(&file).lines().count();
        if lines > STOP_AT {
            problems.push(format!("{file}: {lines} lines, at most {STOP_AT}"));
        } else if lines > TALK_AT {
            tell(&format!("{file} has {lines} lines; think of splitting it"));
        }
    }
    none(problems);
}

#[test]
fn every_module_says_what_it_is() {
    let headless = files("", ".rs").into_iter().filter(|f| !is_test(f) && !read(f).trim_start().starts_with("//!"));
    none(headless.map(|f| format!("{f}: no `//!` header")).collect());
}

#[test]
fn no_test_is_switched_off_and_no_path_of_a_machine_is_written() {
    // Split, so that this file does not find itself.
    let words = [
        concat!("#[ig", "nore"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("/work", "/main"),
        concat!("/tmp", "/kf/"),
        concat!("/home", "/runner"),
    ];
    let mut problems = Vec::new();
    for ending in [".rs", ".hcl", ".md", ".sh", ".toml", ".txt", "Makefile", "run"] {
        for file in files("", ending) {
            let Ok(text) = fs::read_to_string(root().join(&file)) else { continue };
            for (number, line) in text.lines().enumerate() {
                problems.extend(words.iter().filter(|w| line.contains(*w)).map(|w| format!("{file}:{}: {w}", number + 1)));
            }
        }
    }
    none(problems);
}

#[test]
fn every_crate_has_its_fences() {
    let mut problems = Vec::new();
    for member in members() {
        let text = read(&format!("{member}/Cargo.toml"));
        for wanted in ["[lints]\nworkspace = true", "license.workspace = true", "rust-version.workspace = true"] {
            if !text.contains(wanted) {
                problems.push(format!("{member}/Cargo.toml: no `{}`", wanted.replace('\n', " ")));
            }
        }
        if member.starts_with("core/") && !root().join(&member).join("clippy.toml").exists() {
            problems.push(format!("{member}: no clippy.toml that fences off the outside"));
        }
    }
    none(problems);
}

#[test]
fn every_resource_type_has_its_case_and_its_page() {
    let registry = real_registry();
    let mut providers: BTreeMap<&str, &str> = BTreeMap::new();
    for driver in registry.drivers() {
        providers.extend(driver.specs().iter().map(|s| (s.name(), driver.name())));
        providers.extend(driver.data_schemas().iter().map(|(n, _)| (*n, driver.name())));
    }
    providers.extend(registry.composites().map(|c| (c.name(), c.name().split('_').next().unwrap_or_default())));
    let missing = |path: String| (!root().join(&path).exists()).then_some(format!("{path} is missing"));
    none(
        providers
            .into_iter()
            .flat_map(|(name, provider)| [format!("tests/cases/{provider}/{name}.txt"), format!("docs/reference/{name}.md")])
            .filter_map(missing)
            .collect(),
    );
}

#[test]
fn the_books_are_there() {
    let books =
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs/architecture.md", "docs/glossary.md", "deny.toml", "Cargo.lock"];
    none(books.iter().filter(|b| !root().join(b).exists()).map(|b| format!("{b} is missing")).collect());
    assert!(read("CHANGELOG.md").contains("## "), "CHANGELOG.md has no entry");
}
