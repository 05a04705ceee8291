//! A scratch folder for one pipeline: a repository with a configuration, the programs of the image, and scripts out of the files as they stand there.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::parts::root;

/// Not in any output.
pub(super) const TOKEN: &str = "tok3n-tok3n";

/// A folder, and what is set there.
pub(super) struct Scratch {
    folder: tempfile::TempDir,
    /// The environment of scripts; nothing of our own gets there.
    pub(super) environment: BTreeMap<String, String>,
}

/// How a script ended.
pub(super) struct Done {
    pub(super) code: Option<i32>,
    /// Both streams.
    pub(super) text: String,
}

impl Done {
    /// It ended with this.
    #[track_caller]
    pub(super) fn with(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.text);
        self.text
    }
}

impl Scratch {
    /// A folder with `bin` (the command, `drift.sh`) and `repository`, in which there is a configuration in `fleet` whose state is beside both.
    pub(super) fn new() -> Self {
        let scratch = Self { folder: tempfile::tempdir().expect("a folder"), environment: BTreeMap::new() };
        let bin = scratch.folder("bin");
        symlink(env!("CARGO_BIN_EXE_karmaform-under-test"), bin.join("karmaform")).expect("a link");
        symlink(root().join("docs/pipelines/drift.sh"), bin.join("drift.sh")).expect("a link");
        let repository = scratch.folder("repository");
        fs::create_dir_all(repository.join("fleet")).expect("a folder");
        fs::create_dir_all(repository.join("ci")).expect("a folder");
        fs::copy(root().join("docs/pipelines/drift.sh"), repository.join("ci/drift.sh")).expect("copied");
        scratch.configure("one");
        scratch.git(&["init", "--quiet", "--initial-branch=main", "."]);
        scratch.commit();
        let path = std::env::var("PATH").unwrap_or_default();
        let given = [
            ("PATH", format!("{}:{path}", bin.display())),
            ("HOME", scratch.folder("home").display().to_string()),
            ("CONFIGURATION", "fleet".to_owned()),
            ("KF_IN_AUTOMATION", "1".to_owned()),
            ("KF_INPUT", "0".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("KF_VAR_token", TOKEN.to_owned()),
        ];
        Self { environment: given.map(|(n, v)| (n.to_owned(), v)).into(), ..scratch }
    }

    /// A place in it.
    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same as text.
    pub(super) fn text_at(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// A folder in it, made if need be.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.at(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// Writes the configuration: one resource that says this, and one that has the token.
    pub(super) fn configure(&self, input: &str) {
        let state = self.at("state/fleet.tfstate");
        let text = format!(
            r#"karmaform {{
  backend "local" {{
    path = "{}"
  }}
}}
variable "private_key_file" {{ type = string }}
variable "kubeconfig" {{ default = null }}
variable "token" {{
  type      = string
  sensitive = true
}}
resource "terraform_data" "a" {{
  input = "{input}"
}}
resource "terraform_data" "b" {{
  input = [var.token, var.private_key_file == "" ? "no key" : "a key"]
}}
"#,
            state.display()
        );
        fs::create_dir_all(self.at("state")).expect("a folder");
        fs::write(self.at("repository/fleet/main.kf.hcl"), text).expect("written");
    }

    pub(super) fn git(&self, arguments: &[&str]) {
        let names = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let output = Command::new("git").args(names).args(arguments).current_dir(self.at("repository")).output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Commits all that there is.
    pub(super) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=x"]);
    }

    /// Runs a program in a folder, with the environment and more of it.
    pub(super) fn run(&self, folder: &Path, command: &[&str], more: &[(&str, &str)]) -> Done {
        let output = Command::new(command[0])
            .args(&command[1..])
            .current_dir(folder)
            .env_clear()
            .envs(&self.environment)
            .envs(more.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("a program");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!text.contains(TOKEN), "the token is in what was printed: {text}");
        Done { code: output.status.code(), text }
    }

    /// Runs a script of the lab in the repository that keeps programs of others in the cache: the home of pipelines has none.
    pub(super) fn run_fetched(&self, command: &[&str]) -> Done {
        let usual = || std::env::var("HOME").map(|home| format!("{home}/.cache/karmaform"));
        let cache = std::env::var("KARMAFORM_CACHE").or_else(|_| usual()).unwrap_or_default();
        self.run(&self.at("repository"), command, &[("KARMAFORM_CACHE", &cache)])
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    /// The mode of a file, as `0o600`.
    pub(super) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.at(name)).expect("a file").permissions().mode() & 0o777
    }
}

/// The text of a file of `docs/pipelines`.
pub(super) fn file(name: &str) -> String {
    fs::read_to_string(root().join("docs/pipelines").join(name)).expect("the file")
}

/// All texts that stand in blocks after a line that ends in this, as `run: |`, in their order, each without its indentation.
pub(super) fn blocks(text: &str, head: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    let depth = |l: &str| l.len() - l.trim_start().len();
    while let Some(line) = lines.next() {
        if !line.ends_with(head) || line.trim_start().starts_with('#') {
            continue;
        }
        let outer = depth(line);
        let mut block = Vec::new();
        while let Some(next) = lines.next_if(|l| l.trim().is_empty() || depth(l) > outer) {
            block.push(next);
        }
        let common = block.iter().filter(|l| !l.trim().is_empty()).map(|l| depth(l)).min().unwrap_or(0);
        found.push(
            block.iter().map(|l| format!("{}\n", l.get(common..).unwrap_or_default())).collect::<String>().trim_end().to_owned() + "\n",
        );
    }
    found
}

#[test]
fn scripts_are_taken_as_they_stand() {
    let text = "a:\n  # x: run: |\n  - run: |\n      one\n        two\n\n      three\n  - b: c\n  - run: |\n      four\n";
    assert_eq!(blocks(text, "run: |"), ["one\n  two\n\nthree\n", "four\n"]);
}
