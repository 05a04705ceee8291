//! Commands from arguments to exit codes, in-process, in a directory of their own.

mod drift;
mod drift_of_files;
mod encryption;
mod exclude;
mod imports;
mod in_the_way;
mod interrupted;
mod leniency;
mod locks;
mod moved;
mod policies;
mod profile;
mod rebuild;
mod refused;
mod removed;
mod reports;
mod secrets;
mod shown;
mod state;
mod traces;
mod workspaces;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use karmaform_engine::Runtime;
use karmaform_memory::{Memory, World};
use karmaform_model::{LockInfo, Registry};

use crate::runtime::SystemClock;
use crate::wiring::backends;
use crate::{Output, Wiring, run};

/// A directory with a configuration.
struct Place {
    directory: tempfile::TempDir,
    environment: BTreeMap<String, String>,
    stdin: String,
    is_terminal: bool,
    registry: Arc<Registry>,
    clock: Arc<dyn Runtime>,
}

/// Who holds a lock elsewhere.
fn somebody() -> LockInfo {
    LockInfo {
        id: "the-lock".into(),
        operation: "OperationTypeApply".into(),
        info: String::new(),
        who: "somebody@elsewhere".into(),
        version: "0.1.0".into(),
        created: "2026-01-01T00:00:00Z".into(),
        path: String::new(),
        lease: None,
        renewed: None,
    }
}

/// What a command did.
#[derive(Debug)]
struct Done {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("main.kf.hcl"), config).unwrap();
        Self {
            directory,
            environment: BTreeMap::new(),
            stdin: String::new(),
            is_terminal: false,
            registry: Wiring::real().registry,
            clock: Arc::new(SystemClock),
        }
    }

    /// The same with all that lies outside in this world.
    fn over(mut self, world: &Arc<World>) -> Self {
        let real = Wiring::real().registry;
        let mut drivers: Vec<_> = real
            .drivers()
            .map(|d| {
                if matches!(d.name(), "ssh" | "etcd" | "kubernetes") {
                    Memory::over(Arc::clone(d), Arc::clone(world))
                } else {
                    Arc::clone(d)
                }
            })
            .collect();
        drivers.extend(karmaform_memory::drivers(Arc::clone(world)));
        self.registry = Arc::new(Registry::new(drivers, real.composites().cloned().collect()));
        self
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.into(), value.into());
    }

    fn wiring(&self) -> Wiring {
        static IDS: AtomicU64 = AtomicU64::new(1);
        Wiring {
            registry: Arc::clone(&self.registry),
            backends: backends(),
            directory: self.path().to_owned(),
            environment: self.environment.clone(),
            home: None,
            who: "user@host".into(),
            clock: Arc::clone(&self.clock),
            ids: Arc::new(|| format!("id-{}", IDS.fetch_add(1, Ordering::SeqCst))),
            enter: |_| Ok(()),
            signals: false,
        }
    }

    fn run(&self, arguments: &[&str]) -> Done {
        let wiring = self.wiring();
        let (mut output, captured) = Output::captured(&self.stdin);
        output.terminal.stdin = self.is_terminal;
        let code = run(std::iter::once(&"karmaform").chain(arguments).map(Into::into).collect(), wiring, output);
        Done { code, stdout: captured.stdout(), stderr: captured.stderr() }
    }

    fn check(&self, arguments: &[&str], code: i32) -> Done {
        let done = self.run(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {done:#?}");
        done
    }
}

const TWO: &str = r#"
resource "terraform_data" "a" {
  input = "one"
}
resource "terraform_data" "b" {
  input = terraform_data.a.output
}
output "b" {
  value = terraform_data.b.output
}
"#;

#[test]
fn from_nothing_to_something_and_back() {
    let place = Place::new(TWO);
    place.check(&["init", "-input=false"], 0);
    place.check(&["validate"], 0);
    place.check(&["plan", "-detailed-exitcode"], 2);
    let done = place.check(&["apply", "-auto-approve"], 0);
    assert!(done.stdout.contains("\nPlan: 2 to add, 0 to change, 0 to destroy.\n"), "{}", done.stdout);
    assert!(done.stdout.contains("terraform_data.a: Creating...\n"), "{}", done.stdout);
    assert!(done.stdout.contains("\nApply complete! Resources: 2 added, 0 changed, 0 destroyed.\n"), "{}", done.stdout);
    assert!(done.stdout.ends_with("\nOutputs:\n\nb = \"one\"\n"), "{}", done.stdout);
    let done = place.check(&["plan", "-detailed-exitcode"], 0);
    assert!(done.stdout.contains("\nNo changes. Your infrastructure matches the configuration.\n"), "{}", done.stdout);
    assert_eq!(place.check(&["output", "-raw", "b"], 0).stdout, "one");
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.a\nterraform_data.b\n");
    place.write("main.kf.hcl", &TWO.replace("one", "two"));
    let done = place.check(&["plan", "-detailed-exitcode"], 2);
    assert!(done.stdout.contains("      ~ input  = \"one\" -> \"two\"\n"), "{}", done.stdout);
    place.check(&["apply", "-auto-approve"], 0);
    let done = place.check(&["destroy", "-auto-approve"], 0);
    assert!(done.stdout.contains("\nDestroy complete! Resources: 2 destroyed.\n"), "{}", done.stdout);
    assert_eq!(place.check(&["state", "list"], 0).stdout, "");
}

#[test]
fn only_yes_approves() {
    let mut place = Place::new(TWO);
    place.stdin = "y\n".into();
    let done = place.check(&["apply"], 1);
    assert!(done.stdout.ends_with("\nApply cancelled.\n"), "{}", done.stdout);
    place.stdin = String::new();
    place.check(&["apply"], 1);
    let done = place.check(&["apply", "-input=false"], 1);
    assert!(done.stderr.contains("Error: Plan not approved"), "{}", done.stderr);
    place.check(&["apply", "-json"], 1);
    place.stdin = "yes\n".into();
    place.check(&["apply"], 0);
}

#[test]
fn wrong_command_lines() {
    let place = Place::new(TWO);
    assert!(place.check(&[], 127).stdout.contains("Commands:"));
    assert!(place.check(&["-help"], 0).stdout.contains("Commands:"));
    assert!(place.check(&["plan", "-help"], 0).stdout.contains("-detailed-exitcode"));
    let done = place.check(&["plann"], 1);
    assert!(done.stderr.contains("Error: Unknown command") && done.stderr.contains("Did you mean plan?"), "{}", done.stderr);
    place.check(&["plan", "-nope"], 1);
    place.check(&["plan", "-destroy", "-refresh-only"], 1);
    place.check(&["-chdir=nowhere", "plan"], 1);
    place.check(&["-version"], 0);
    let version: serde_json::Value = serde_json::from_str(&place.check(&["version", "-json"], 0).stdout).unwrap();
    assert_eq!((&version["terraform_version"], &version["karmaform_version"]), (&"1.11.4".into(), &env!("CARGO_PKG_VERSION").into()));
    assert!(place.check(&["completion", "bash"], 0).stdout.contains("karmaform"));
}

#[test]
fn an_error_names_its_place() {
    let place = Place::new("output \"z\" {\n  value = nope.x.y\n}\n");
    let done = place.check(&["plan"], 1);
    assert!(done.stderr.contains("Error: ") && done.stderr.contains("--> main.kf.hcl:2:11"), "{}", done.stderr);
    let done = place.check(&["validate", "-json"], 1);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["diagnostics"][0]["range"]["start"]["line"], 2);
    assert_eq!(json["valid"], false);
    let empty = tempfile::tempdir().unwrap();
    let done = place.check(&[&format!("-chdir={}", empty.path().display()), "plan"], 1);
    assert!(done.stderr.contains("Error: No configuration files"), "{}", done.stderr);
}

#[test]
fn variables_by_their_precedence() {
    let mut place = Place::new("variable \"v\" {\n  type = string\n}\noutput \"o\" {\n  value = var.v\n}\n");
    let done = place.check(&["plan", "-input=false"], 1);
    assert!(done.stderr.contains("Error: No value for a required variable"), "{}", done.stderr);
    place.check(&["validate"], 0);
    let check = |place: &Place, flags: &[&str], expected: &str| {
        let done = place.check(&[&["plan"], flags].concat(), 0);
        assert!(done.stdout.contains(&format!("+ o = \"{expected}\"")), "{}", done.stdout);
    };
    place.set("KF_VAR_v", "environment");
    check(&place, &[], "environment");
    place.write("karmaform.kfvars.hcl", "v = \"default file\"\n");
    check(&place, &[], "default file");
    place.write("b.auto.kfvars.hcl", "v = \"automatic b\"\n");
    place.write("a.auto.kfvars.hcl", "v = \"automatic a\"\n");
    check(&place, &[], "automatic b");
    place.write("x.kfvars.hcl", "v = \"named file\"\n");
    check(&place, &["-var-file=x.kfvars.hcl"], "named file");
    check(&place, &["-var", "v=line", "-var-file", "x.kfvars.hcl"], "named file");
    check(&place, &["-var-file", "x.kfvars.hcl", "-var", "v=line"], "line");
}

#[test]
fn a_missing_variable_is_asked_for_on_a_terminal() {
    let mut place = Place::new("variable \"v\" {\n  description = \"What it is.\"\n}\noutput \"o\" {\n  value = var.v\n}\n");
    place.stdin = "typed\n".into();
    place.is_terminal = true;
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("var.v\n  What it is.\n\n  Enter a value: "), "{}", done.stdout);
    assert!(done.stdout.contains("+ o = \"typed\""), "{}", done.stdout);
    place.check(&["plan", "-input=false"], 1);
    place.set("KF_INPUT", "0");
    place.check(&["plan"], 1);
}

#[test]
fn fmt_changes_what_it_says() {
    let place = Place::new("resource \"terraform_data\" \"a\" {\n    input=1\n}\n");
    assert_eq!(place.check(&["fmt", "-check"], 3).stdout, "main.kf.hcl\n");
    // However its path is written, it is one file, and is called as it is seen from here.
    std::fs::create_dir(place.path().join("sub")).unwrap();
    assert_eq!(place.check(&["fmt", "-check", ".", "main.kf.hcl", "./sub/../main.kf.hcl"], 3).stdout, "main.kf.hcl\n");
    let done = place.check(&["fmt", "-check", "-diff", "-list=false"], 3);
    assert!(done.stdout.contains("\n-    input=1\n+  input = 1\n"), "{}", done.stdout);
    assert_eq!(place.check(&["fmt", "-check", "-list=false"], 3).stdout, "");
    let done = place.check(&["fmt", "-list=false", "-write=false"], 0);
    assert_eq!(done.stdout, "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n");
    place.check(&["fmt"], 0);
    assert!(place.read("main.kf.hcl").contains("\n  input = 1\n"));
    assert_eq!(place.check(&["fmt", "-list=false", "-write=false"], 0).stdout, done.stdout);
    place.check(&["fmt", "-check"], 0);
    place.write("bad.kf.hcl", "a = [\n");
    place.check(&["fmt", "-check"], 2);
    place.check(&["fmt", "nope.txt"], 2);
    let mut place = place;
    place.stdin = "a=1\n".into();
    assert_eq!(place.check(&["fmt", "-"], 0).stdout, "a = 1\n");
    std::fs::create_dir(place.path().join("tests")).unwrap();
    place.write("tests/a.kftest.hcl", "run \"a\" {\ncommand=plan\n}\n");
    place.check(&["fmt", "tests"], 0);
    assert_eq!(place.read("tests/a.kftest.hcl"), "run \"a\" {\n  command = plan\n}\n");
}

#[test]
fn console_and_graph() {
    let mut place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    place.stdin = "terraform_data.b.output\n1 + \n[1,\n2]\nexit\n".into();
    let done = place.run(&["console"]);
    assert!(done.stdout.starts_with("\"one\"\n"), "{done:#?}");
    assert!(done.stdout.contains("[\n  1,\n  2,\n]\n"), "{done:#?}");
    assert_eq!(done.code, 1, "one of them was wrong");
    let done = place.check(&["graph"], 0);
    assert!(done.stdout.contains("\"terraform_data.b\" -> \"terraform_data.a\";"), "{}", done.stdout);
    assert!(place.check(&["graph", "-format=svg"], 0).stdout.contains("<svg"));
    assert!(place.check(&["graph", "-full"], 0).stdout.contains("terraform_data.a"));
    place.check(&["graph", "-format=png"], 1);
}

#[test]
fn an_unknown_backend_is_refused() {
    let place = Place::new("karmaform {\n  backend \"consul\" {\n    path = \"p\"\n  }\n}\n");
    let done = place.check(&["plan"], 1);
    assert!(done.stderr.contains("Error: Unsupported backend") && done.stderr.contains("main.kf.hcl:2"), "{}", done.stderr);
    let place = Place::new("karmaform {\n  backend \"local\" {\n    path = \"other.tfstate\"\n  }\n}\noutput \"o\" {\n  value = 1\n}\n");
    place.check(&["apply", "-auto-approve"], 0);
    assert!(place.read("other.tfstate").contains("\"lineage\""));
    assert_eq!(place.check(&["output", "-json", "o"], 0).stdout, "1\n");
}

#[test]
fn json_lines_are_json() {
    let place = Place::new(TWO);
    for arguments in [&["plan", "-json"] as &[&str], &["apply", "-json", "-auto-approve"], &["destroy", "-json", "-auto-approve"]] {
        let done = place.check(arguments, 0);
        let types: Vec<String> = done
            .stdout
            .lines()
            .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["type"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(types[0], "version");
        assert!(types.iter().any(|t| t == "change_summary"), "{types:?}");
        assert_eq!(done.stderr, "");
    }
    let broken = Place::new("output \"o\" { value = nope }\n");
    let done = broken.check(&["plan", "-json"], 1);
    assert!(done.stdout.lines().any(|l| l.contains("\"type\":\"diagnostic\"")) && done.stderr.is_empty(), "{done:#?}");
}

#[test]
fn in_automation_the_words_are_those_that_tools_search_for() {
    let mut place = Place::new(TWO);
    place.set("TF_IN_AUTOMATION", "1");
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("\nTerraform will perform the following actions:\n"), "{}", done.stdout);
    assert!(!done.stdout.contains("Note: You didn't use the -out option"), "{}", done.stdout);
    // Whoever runs it as Terraform compares this.
    let version = place.check(&["version"], 0).stdout;
    assert!(version.starts_with("Terraform v1.11.4\non ") && version.contains("\n+ karmaform v"), "{version}");
}

#[test]
fn the_last_line_is_that_of_the_command() {
    let place = Place::new(TWO);
    for (last, commands) in [
        ("Apply complete! Resources: 0 added, 0 changed, 2 destroyed.", vec![vec!["apply", "-destroy", "-auto-approve"]]),
        (
            "Apply complete! Resources: 0 added, 0 changed, 2 destroyed.",
            vec![vec!["plan", "-destroy", "-out=saved"], vec!["apply", "saved"]],
        ),
        ("Destroy complete! Resources: 2 destroyed.", vec![vec!["destroy", "-auto-approve"]]),
    ] {
        place.check(&["apply", "-auto-approve"], 0);
        let printed: Vec<String> = commands.iter().map(|c| place.check(c, 0).stdout).collect();
        assert!(printed.last().is_some_and(|p| p.ends_with(&format!("\n{last}\n"))), "{commands:?}: {printed:?}");
    }
}
