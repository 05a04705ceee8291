//! One life of a small configuration, planned and applied by the real command as a pipeline does it; done once for all tests here.

use std::sync::LazyLock;

use serde_json::Value;

use crate::project::{Ended, Project};

/// In no output may this be.
pub(super) const SECRET: &str = "hunter2hunter2";

const START: &str = r#"
variable "n" { default = 2 }
variable "t" { default = 1 }
variable "password" {
  default   = "hunter2hunter2"
  sensitive = true
}
resource "terraform_data" "base" {
  input            = { n = var.n, list = [1, 2, "x"], text = "a\nb\nc\n" }
  triggers_replace = var.t
}
resource "terraform_data" "first" {
  input            = var.n
  triggers_replace = [var.t]
  lifecycle {
    create_before_destroy = true
  }
}
resource "terraform_data" "many" {
  count = var.n
  input = terraform_data.base.output
}
resource "terraform_data" "each" {
  for_each = toset(["a", "b.c", "d]e"])
  input    = { key = each.key, password = var.password }
}
output "list" { value = [1, true, { a = "b" }] }
output "password" {
  value     = var.password
  sensitive = true
}
output "many" { value = terraform_data.many[*].id }
check "few" {
  assert {
    condition     = var.n < 3
    error_message = "n is ${var.n}, and should be less than 3."
  }
}
"#;
const FILE: &str = "resource \"local_file\" \"f\" {\n  filename = \"out/f.txt\"\n  content  = \"hello ${var.n}\\nworld\\n\"\n}\n";
const MOVED: &str = "moved {\n  from = terraform_data.first\n  to   = terraform_data.renamed\n}\n";
const FORGOTTEN: &str = "removed {\n  from = local_file.f\n  lifecycle {\n    destroy = false\n  }\n}\n";
const LATE: &str = r#"
resource "terraform_data" "late" {
  for_each = toset([for x in terraform_data.many : x.id])
  input    = each.key
}
resource "terraform_data" "triggered" {
  lifecycle {
    replace_triggered_by = [terraform_data.base]
  }
}
"#;

/// A plan, what there is of it, and its apply.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// The exit code with `-detailed-exitcode`.
    pub(super) code: i32,
    /// What `plan` printed, both streams.
    pub(super) text: String,
    /// `show -json` of the plan; none where planning failed.
    pub(super) plan: Option<Value>,
    /// Exit code and text of `apply`.
    pub(super) apply: Option<(i32, String)>,
    /// `show -json` afterwards.
    pub(super) state: Option<Value>,
}

/// All steps, in their order.
pub(super) static STEPS: LazyLock<Vec<Step>> = LazyLock::new(live);

/// The step of a name.
pub(super) fn step(name: &str) -> &'static Step {
    STEPS.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("no step {name}"))
}

/// As a pipeline runs it.
pub(super) fn automated(project: &Project, arguments: &[&str]) -> Ended {
    project.start_with(arguments, &[("KF_IN_AUTOMATION", "1")]).end()
}

fn live() -> Vec<Step> {
    let project = Project::new();
    let out = project.path().join("out/f.txt");
    let mut steps = Vec::new();
    let mut go = |name: &'static str, more: &[&str]| {
        let _ = std::fs::remove_file(project.path().join("saved"));
        let ended = automated(&project, &[&["plan", "-input=false", "-detailed-exitcode", "-out=saved"], more].concat());
        let json = |arguments: &[&str]| {
            let ended = automated(&project, arguments);
            assert_eq!(ended.code, Some(0), "{name}: {}", ended.text);
            // Both streams: tools that start the command take them together.
            Some(serde_json::from_str(&ended.text).unwrap_or_else(|e| panic!("{name}: {e}\n{}", ended.text)))
        };
        let mut step = Step { name, code: ended.code.expect("a code"), text: ended.text, plan: None, apply: None, state: None };
        if step.code != 1 {
            step.plan = json(&["show", "-json", "saved"]);
            let applied = automated(&project, &["apply", "-input=false", "saved"]);
            step.apply = Some((applied.code.expect("a code"), applied.text));
            step.state = json(&["show", "-json"]);
        }
        steps.push(step);
    };
    let configure = |parts: &[&str]| project.write("main.kf.hcl", &parts.concat());
    configure(&[START, FILE]);
    go("made", &[]);
    go("nothing", &[]);
    go("changed", &["-var=n=3"]);
    go("replaced", &["-var=n=3", "-var=t=2"]);
    go("replaced on request", &["-var=n=3", "-var=t=2", "-replace=terraform_data.each[\"a\"]"]);
    go("fewer", &["-var=t=2", "-var=n=1"]);
    std::fs::remove_file(&out).expect("the file");
    go("gone", &["-var=t=2", "-var=n=1"]);
    std::fs::write(&out, "other\n").expect("written");
    go("drifted", &["-var=t=2", "-var=n=1"]);
    let renamed = START.replace("\"terraform_data\" \"first\"", "\"terraform_data\" \"renamed\"");
    configure(&[&renamed, FILE, MOVED]);
    go("moved", &["-var=t=2", "-var=n=1"]);
    let told = format!("{renamed}output \"more\" {{ value = \"only an output\" }}\n");
    configure(&[&told, FILE]);
    go("outputs alone", &["-var=t=2", "-var=n=1"]);
    configure(&[&told, FORGOTTEN]);
    go("forgotten", &["-var=t=2", "-var=n=1"]);
    configure(&[&told, LATE]);
    go("deferred", &["-var=t=2"]);
    go("what was deferred", &["-var=t=2"]);
    go("triggered", &["-var=t=2", "-var=n=3"]);
    project.write("bad.kf.hcl", "resource \"terraform_data\" \"bad\" { input = nope.x }\n");
    go("wrong", &["-var=t=2"]);
    project.write("bad.kf.hcl", "resource \"local_file\" \"bad\" {\n  filename = \"/proc/nope/x\"\n  content  = \"x\"\n}\n");
    go("failed", &["-var=t=2", "-var=n=3"]);
    project.remove("bad.kf.hcl");
    go("destroyed", &["-destroy", "-var=t=2"]);
    steps
}

#[test]
fn no_secret_is_in_what_tools_read() {
    for step in STEPS.iter() {
        let all = format!("{}{:?}{:?}{:?}", step.text, step.plan, step.apply, step.state);
        assert!(!all.contains(SECRET), "{}: {all}", step.name);
    }
}
