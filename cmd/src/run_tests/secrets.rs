//! Saved plans, and where secrets may be: nowhere in clear but in the state and where they are asked for by name.

use super::{Done, Place, TWO};

#[test]
fn a_saved_plan_is_applied_once() {
    let place = Place::new(TWO);
    let done = place.check(&["plan", "-out=p.kfplan"], 0);
    assert!(done.stdout.contains("\nSaved the plan to: p.kfplan\n"), "{}", done.stdout);
    let shown = place.check(&["show", "p.kfplan"], 0).stdout;
    assert!(shown.contains("\nPlan: 2 to add, 0 to change, 0 to destroy.\n"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&place.check(&["show", "-json", "p.kfplan"], 0).stdout).unwrap();
    assert_eq!(json["format_version"], "1.2");
    assert_eq!(json["resource_changes"][0]["change"]["actions"], serde_json::json!(["create"]));
    assert_eq!(json["resource_changes"][0]["change"]["after_unknown"]["id"], true);
    let done = place.check(&["apply", "-destroy", "p.kfplan"], 1);
    assert!(done.stderr.contains("Can't set planning options"), "{}", done.stderr);
    // The plan brings its configuration along.
    place.write("main.kf.hcl", "");
    place.check(&["apply", "-input=false", "p.kfplan"], 0);
    let done = place.check(&["apply", "p.kfplan"], 1);
    assert!(done.stderr.contains("Error: Saved plan is stale"), "{}", done.stderr);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(place.path().join("p.kfplan")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let done = place.check(&["apply", "main.kf.hcl"], 1);
    assert!(done.stderr.contains("Error: Not a saved plan"), "{}", done.stderr);
}

const SECRET: &str = r#"
variable "password" {
  type      = string
  sensitive = true
}
variable "color" {
  type    = string
  default = "red"
}
resource "terraform_data" "s" {
  input = { password = var.password, color = var.color, both = "${var.color}-${var.password}" }
}
output "s" {
  value     = terraform_data.s.output.password
  sensitive = true
}
"#;

#[test]
fn a_secret_is_nowhere_in_clear() {
    let mut place = Place::new(SECRET);
    let secret = "hunter2-is-secret";
    let clean = |done: Done| {
        assert!(!done.stdout.contains(secret) && !done.stderr.contains(secret), "{done:#?}");
        done
    };
    place.set("KF_VAR_password", secret);
    for arguments in [
        &["validate", "-json"] as &[&str],
        &["plan"],
        &["plan", "-json"],
        &["plan", "-out=p"],
        &["show", "p"],
        &["show", "-json", "p"],
        &["apply", "p"],
        &["plan"],
        &["show"],
        &["show", "-json"],
        &["state", "show", "terraform_data.s"],
        &["output"],
        &["graph"],
        &["status"],
        &["plan", "-var=color=blue", "-out=q"],
        &["show", "q"],
        &["show", "-json", "q"],
        &["apply", "-auto-approve", "-json", "-var=color=green"],
        &["refresh"],
    ] {
        let done = clean(place.run(arguments));
        assert_eq!(done.code, 0, "{arguments:?} {done:#?}");
    }
    assert!(!place.read("p").contains(secret) && !place.read("q").contains(secret));
    // Whoever asks by name gets it.
    assert_eq!(place.check(&["output", "-raw", "s"], 0).stdout, secret);
    // A wrong value on the command line is not repeated.
    clean(place.run(&["plan", &format!("-var={secret}")]));
    clean(place.run(&["plan", &format!("-var=nope={secret}")]));
    place.write("karmaform.kfvars.hcl", &format!("password = [\"{secret}\"]\n"));
    clean(place.check(&["plan"], 1));
}

#[test]
fn sensitive_variables_of_a_saved_plan_are_given_again() {
    let mut place = Place::new(SECRET);
    place.check(&["plan", "-input=false", "-var=password=first", "-var=color=blue", "-out=p"], 0);
    let done = place.check(&["apply", "-input=false", "p"], 1);
    assert!(done.stderr.contains("No value for a required variable"), "{}", done.stderr);
    let done = place.check(&["apply", "-var=password=first", "-var=color=green", "p"], 1);
    assert!(done.stderr.contains("Error: Can't change variable when applying a saved plan"), "{}", done.stderr);
    place.set("KF_VAR_color", "green");
    place.check(&["apply", "-var=password=first", "p"], 0);
    let state: serde_json::Value = serde_json::from_str(&place.read("karmaform.tfstate")).unwrap();
    assert_eq!(state["resources"][0]["instances"][0]["attributes"]["output"]["value"]["color"], "blue");
    assert_eq!(state["resources"][0]["instances"][0]["attributes"]["output"]["value"]["both"], "blue-first");
}

#[test]
fn a_secret_in_the_configuration_stays_there() {
    let place = Place::new("resource \"terraform_data\" \"s\" {\n  input = sensitive(\"hunter2\")\n}\n");
    place.check(&["plan", "-out=p"], 0);
    assert!(!place.read("p").contains("hunter2"));
    place.check(&["show", "-json", "p"], 0);
    place.write("main.kf.hcl", "");
    let done = place.check(&["apply", "p"], 1);
    assert!(done.stderr.contains("A file changed since the plan was made"), "{}", done.stderr);
}

#[test]
fn defaults_of_secret_variables_stay_in_the_configuration_whether_they_are_used_or_not() {
    let module = "variable \"m\" {\n  default   = \"hunter4\"\n  sensitive = true\n}\n";
    for given in [&["-var", "pw=other"][..], &["-var", "o={a=\"other\"}"], &[]] {
        let place = Place::new(
            "variable \"pw\" {\n  default   = \"hunter2\"\n  sensitive = true\n}\nvariable \"o\" {\n  type      = object({ a = optional(string, \"hunter3\") })\n  \
             default   = {}\n  sensitive = true\n}\nmodule \"m\" {\n  source = \"./m\"\n  m      = \"clear\"\n}\nresource \"terraform_data\" \"a\" {\n  \
             input = nonsensitive(length(var.o.a) > 3)\n}\n",
        );
        std::fs::create_dir(place.path().join("m")).unwrap();
        place.write("m/main.kf.hcl", module);
        let args: Vec<&str> = ["plan", "-out=p"].iter().chain(given).copied().collect();
        place.check(&args, 0);
        assert!(!place.read("p").contains("hunter"), "{given:?}");
        assert!(!place.check(&["show", "-json", "p"], 0).stdout.contains("hunter"), "{given:?}");
    }
}

#[test]
fn a_file_that_was_read_must_be_the_same() {
    let place = Place::new("resource \"terraform_data\" \"f\" {\n  input = file(\"f.txt\")\n}\n");
    place.write("f.txt", "one");
    place.check(&["plan", "-out=p"], 0);
    place.write("f.txt", "two");
    let done = place.check(&["apply", "p"], 1);
    assert!(done.stderr.contains("A file changed since the plan was made"), "{}", done.stderr);
}

#[test]
fn a_secret_that_stands_in_a_manifest_is_in_no_json() {
    let object = |kind: &str| {
        format!(
            "resource \"kubernetes_object\" \"{kind}\" {{\n  cluster  = {{ provider = \"kubernetes\", id = \"c\" }}\n  manifest = {{\n    apiVersion = \"v1\", kind = \"{kind}\", \
             metadata = {{ name = \"a\" }}\n    {} = {{ password = \"hunter22\" }}\n  }}\n}}\n",
            if kind == "Secret" { "stringData" } else { "data" }
        )
    };
    let shown = |config: &str| {
        let place = Place::new(config).over(&karmaform_memory::World::new());
        place.check(&["plan", "-out=p"], 0);
        place.check(&["show", "-json", "p"], 0).stdout
    };
    let text = shown(&object("Secret"));
    assert!(text.contains("constant_value") && !text.contains("hunter22"), "{text}");
    // What is none is shown as it stands there.
    assert!(shown(&object("ConfigMap")).contains("hunter22"));
}

/// What goes through everything that is written: a plan, its reports, the state, the journal, what the directory remembers.
const EPHEMERAL: &str = r#"
variable "token" {
  ephemeral = true
}
resource "memory_thing" "a" {
  name  = "a"
  hint  = "Bearer ${var.token}"
  value = ephemeralasnull({ token = file("${var.token}.key") })
}
output "kept" {
  value = ephemeralasnull(var.token) == null
}
"#;

#[test]
fn what_is_ephemeral_is_in_no_file() {
    let world = karmaform_memory::World::new();
    let place = Place::new(EPHEMERAL).over(&world);
    place.write("hunter2.key", "a key");
    let reports = ["human", "json", "markdown", "html"].map(|f| format!("-report={f}={f}.out"));
    let args: Vec<&str> = ["plan", "-var=token=hunter2", "-out=p"].into_iter().chain(reports.iter().map(String::as_str)).collect();
    let mut said = place.check(&args, 0).stdout;
    said += &place.check(&["show", "-json", "p"], 0).stdout;
    place.check(&["apply", "p"], 1);
    said += &place.check(&["apply", "-var=token=hunter2", "p"], 0).stdout;
    said += &place.check(&["show", "-json"], 0).stdout;
    assert!(!said.contains("hunter2"), "{said}");
    let mut open = vec![place.path().to_owned()];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
                assert!(!text.contains("hunter2"), "{}: {text}", entry.path().display());
                seen += 1;
            }
        }
    }
    assert!(seen > 6, "{seen} files");
    let backend =
        format!("karmaform {{\n  backend \"http\" {{\n    address = \"http://127.0.0.1:9/${{var.token}}\"\n  }}\n}}\n{EPHEMERAL}");
    let done = Place::new(&backend).over(&world).check(&["init", "-var=token=hunter2"], 1);
    assert!(done.stderr.contains("is made of an ephemeral one") && !done.stderr.contains("hunter2"), "{}", done.stderr);
}

#[test]
fn only_the_secret_part_of_an_output_is_secret() {
    let place = Place::new(
        r#"
variable "s" {
  default   = "hunter2"
  sensitive = true
}
resource "terraform_data" "a" {
  input = { pw = var.s, name = "db" }
}
resource "terraform_data" "b" {
  input = [terraform_data.a.output.name, terraform_data.a.output.pw]
}
output "name" {
  value = terraform_data.a.output.name
}
"#,
    );
    let done = place.check(&["apply", "-auto-approve"], 0);
    assert!(done.stdout.contains("name = \"db\"") && !done.stdout.contains("hunter2"), "{done:#?}");
    place.check(&["plan", "-detailed-exitcode"], 0);
    place.check(&["plan", "-refresh=false", "-detailed-exitcode"], 0);
}

/// A text that is public stays so where a secret beside it is the same: nothing but the place tells which is which.
#[test]
fn what_is_the_same_as_a_secret_is_not_secret_for_that() {
    let place = Place::new(
        r#"
        variable "password" {
          default   = "postgres"
          sensitive = true
        }
        resource "terraform_data" "db" {
          input            = { user = "postgres", password = var.password, list = ["postgres", "x"] }
          triggers_replace = var.password
        }
        resource "terraform_data" "app" {
          for_each = toset([terraform_data.db.input.user])
          input    = terraform_data.db.output.user
        }
        output "user" { value = [terraform_data.db.output.user, terraform_data.db.output.list] }
        output "password" {
          value     = terraform_data.db.output.password
          sensitive = true
        }"#,
    );
    place.check(&["apply", "-auto-approve"], 0);
    place.check(&["plan", "-detailed-exitcode"], 0);
    assert_eq!(place.check(&["output", "-json", "user"], 0).stdout.trim(), r#"["postgres",["postgres","x"]]"#);
    assert!(place.check(&["show"], 0).stdout.contains("password = (sensitive value)"));
}

#[test]
fn what_becomes_secret_is_not_shown_as_it_was() {
    let text = |sensitive: bool| {
        format!(
            "variable \"v\" {{\n  default   = \"hunter22\"\n  sensitive = {sensitive}\n}}\nresource \"terraform_data\" \"a\" {{\n  input = var.v\n}}\n"
        )
    };
    let place = Place::new(&text(false));
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &text(true));
    place.check(&["plan", "-out=p"], 0);
    let shown = place.check(&["show", "-json", "p"], 0).stdout;
    assert!(shown.contains("\"prior_state\"") && !shown.contains("hunter22"), "{shown}");
}
