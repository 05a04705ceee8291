//! Reports of a plan, and events beside the text.

use serde_json::Value as Json;

use super::{Place, TWO};

/// A secret that changes, a text that means something in every form, and a thing that comes.
const BEFORE: &str = r#"
variable "secret" {
  default   = "hunter2"
  sensitive = true
}
resource "terraform_data" "hostile" {
  input = "```</pre><script>one()</script>"
}
resource "terraform_data" "secret" {
  input = var.secret
}
output "secret" {
  value     = var.secret
  sensitive = true
}
"#;

const FORMATS: [&str; 4] = ["human", "json", "markdown", "html"];

fn reports() -> Vec<String> {
    FORMATS.iter().map(|f| format!("-report={f}={f}.out")).collect()
}

/// A place with changes to make.
fn changed() -> Place {
    let place = Place::new(BEFORE);
    place.check(&["apply", "-auto-approve"], 0);
    let after = BEFORE.replace("one()", "two()").replace("hunter2", "hunter3");
    place.write("main.kf.hcl", &format!("{after}resource \"terraform_data\" \"new\" {{\n}}\n"));
    place
}

fn with_reports(place: &Place, arguments: &[&str]) {
    let reports = reports();
    let all: Vec<&str> = arguments.iter().copied().chain(reports.iter().map(String::as_str)).collect();
    place.check(&all, 0);
}

#[test]
fn a_plan_and_the_same_plan_saved_have_the_same_reports() {
    let place = changed();
    with_reports(&place, &["plan", "-out=p"]);
    let read = || FORMATS.map(|f| place.read(&format!("{f}.out")));
    let before = read();
    assert!(before.iter().all(|text| text.contains("terraform_data.new")), "{before:#?}");
    FORMATS.iter().for_each(|f| std::fs::remove_file(place.path().join(format!("{f}.out"))).unwrap());
    with_reports(&place, &["show", "p"]);
    // For programs, a secret that is left out of the file can't be told from one that is not known yet; people see the same.
    for (name, (planned, shown)) in FORMATS.iter().zip(before.iter().zip(read())).filter(|(name, _)| **name != "json") {
        assert_eq!(*planned, shown, "{name}");
    }
    assert_eq!(place.check(&["show", "-json", "p"], 0).stdout, place.read("json.out"));
    let place = Place::new(TWO);
    with_reports(&place, &["plan", "-out=p"]);
    assert_eq!(place.check(&["show", "-json", "p"], 0).stdout, place.read("json.out"));
}

#[test]
fn a_plan_that_fails_leaves_no_older_report() {
    let place = Place::new(TWO);
    with_reports(&place, &["plan"]);
    std::fs::rename(place.path().join("html.out"), place.path().join("page")).unwrap();
    std::os::unix::fs::symlink("page", place.path().join("html.out")).unwrap();
    let all = reports();
    let plan: Vec<&str> = std::iter::once("plan").chain(all.iter().map(String::as_str)).collect();
    // One that is not whole is told as such.
    let condition = "lifecycle {\n precondition {\n condition = terraform_data.a.input == \"x\"\n error_message = \"no\"\n }\n }";
    place.write("more.kf.hcl", &format!("resource \"terraform_data\" \"c\" {{\n {condition}\n}}\n"));
    place.check(&plan, 1);
    let json: Json = serde_json::from_str(&place.read("json.out")).unwrap();
    assert_eq!((&json["errored"], &json["complete"]), (&Json::Bool(true), &Json::Bool(false)));
    assert!(place.read("page").contains("not whole since errors were met") && place.read("markdown.out").contains("not whole"));
    // Of one that does not even begin nothing is told, and nothing of an older one.
    place.write("more.kf.hcl", "locals {");
    place.check(&plan, 1);
    let left: Vec<&str> = FORMATS.into_iter().filter(|f| place.path().join(format!("{f}.out")).exists()).collect();
    assert_eq!((left, place.read("page").as_str()), (vec!["html"], ""), "where a link leads is for who made it to say");
}

#[test]
fn nothing_in_a_report_is_a_secret_or_markup_of_somebody_else() {
    let place = changed();
    with_reports(&place, &["plan"]);
    for format in FORMATS {
        let text = place.read(&format!("{format}.out"));
        assert!(!text.contains("hunter"), "{format}:\n{text}");
    }
    let html = place.read("html.out");
    assert!(html.contains("two()") && !html.contains("<script>two()"), "{html}");
    // A fence that the text can't close.
    let markdown = place.read("markdown.out");
    assert!(markdown.starts_with("## Plan: 1 to add, 2 to change, 0 to destroy.\n"), "{markdown}");
    assert_eq!(markdown.matches("````\n").count(), 2, "{markdown}");
}

#[test]
fn steps_and_impact_stand_under_a_key_of_our_own() {
    let place = Place::new(TWO);
    place.check(&["plan", "-report=json=p.json"], 0);
    let json: Json = serde_json::from_str(&place.read("p.json")).unwrap();
    let steps = json["karmaform"]["steps"].as_array().unwrap();
    let of = |address: &str| steps.iter().position(|s| s["address"] == address).unwrap();
    assert_eq!(steps[of("terraform_data.a")]["do"], "create");
    assert_eq!(steps[of("terraform_data.b")]["after"], serde_json::json!([of("terraform_data.a")]));
}

#[test]
fn a_long_plan_still_fits_into_a_comment() {
    let place = Place::new("resource \"terraform_data\" \"many\" {\n  count = 2000\n  input = \"some text\"\n}\n");
    place.check(&["plan", "-report=markdown=p.md"], 0);
    let text = place.read("p.md");
    assert!(text.chars().count() < 65_536 && text.contains("the rest is too long"), "{}", text.len());
    assert!(text.trim_end().ends_with("</details>"));
}

#[test]
fn a_wrong_report_of_a_plan_is_refused() {
    let place = Place::new(TWO);
    let done = place.check(&["plan", "-report=junit=x"], 1);
    assert!(done.stderr.contains("there is no format \"junit\"; there are human, json, markdown, html"), "{done:#?}");
    place.check(&["apply", "-auto-approve"], 0);
    let done = place.check(&["show", "-report=html=x"], 1);
    assert!(done.stderr.contains("Reports are of plans"), "{done:#?}");
}

#[test]
fn events_go_into_a_file_beside_the_text() {
    let place = Place::new(TWO);
    let alone = place.check(&["apply", "-auto-approve"], 0).stdout;
    place.check(&["destroy", "-auto-approve"], 0);
    let done = place.check(&["apply", "-auto-approve", "-json-into=events"], 0);
    let plain = |text: &str| text.lines().filter(|l| !l.contains("[id=")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(plain(&done.stdout), plain(&alone), "the text is as without");
    let lines: Vec<Json> = place.read("events").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|l| l["type"].as_str().unwrap()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"version"), Some(&"outputs")), "{kinds:?}");
    for kind in ["planned_change", "apply_start", "apply_complete", "change_summary"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    // Diagnostics are there, too, and in the text.
    place.write("main.kf.hcl", "resource \"terraform_data\" \"a\" {\n  inptu = 1\n}\n");
    let done = place.check(&["plan", "-json-into=events"], 1);
    assert!(done.stderr.contains("inptu") && place.read("events").contains("inptu"), "{done:#?}");
    let done = place.check(&["plan", "-json-into=nowhere/x"], 1);
    assert!(done.stderr.contains("Events can't be written"), "{done:#?}");
}
