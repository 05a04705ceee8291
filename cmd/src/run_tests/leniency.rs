//! What must work though something else is broken, and what must not be taken though it nearly fits.

use super::{Place, TWO};

#[test]
fn the_state_is_shown_whatever_else_is_wrong_in_the_configuration() {
    let place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    place.write("main.kf.hcl", &format!("{TWO}\nlocals {{ x = var.nope }}\nkarmaform {{ required_version = \">= 99\" }}\n"));
    place.check(&["plan"], 1);
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.a\nterraform_data.b\n");
    assert_eq!(place.check(&["output", "-raw", "b"], 0).stdout, "one");
    place.check(&["show"], 0);
    // But where the state is must be known for sure.
    place.write("other.kf.hcl", "karmaform {\n  backend \"local\" { path = var.nope }\n}\n");
    let done = place.check(&["state", "list"], 1);
    assert!(done.stderr.contains("other.kf.hcl:2"), "{}", done.stderr);
    place.write("other.kf.hcl", "locals {");
    place.check(&["state", "list"], 1);
}

#[test]
fn what_is_left_of_a_deleted_configuration_can_be_destroyed() {
    let place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    std::fs::remove_file(place.path().join("main.kf.hcl")).unwrap();
    let done = place.check(&["plan"], 1);
    assert!(done.stderr.contains("Error: No configuration files"), "{}", done.stderr);
    place.check(&["plan", "-destroy"], 0);
    let done = place.check(&["destroy", "-auto-approve"], 0);
    assert!(done.stdout.contains("\nDestroy complete! Resources: 2 destroyed.\n"), "{}", done.stdout);
}

#[test]
fn fmt_leaves_alone_what_does_not_parse() {
    let place = Place::new(TWO);
    for text in ["locals {\n  a = 0x10\n}\n", "locals {\n  n   = 1_000\n}\n", "= 4\n", "foo bar baz\n", "locals {\n  a = 1 = 2\n}\n"] {
        place.write("z.kf.hcl", text);
        let done = place.check(&["fmt"], 2);
        assert!(done.stderr.contains("z.kf.hcl:"), "{}", done.stderr);
        assert_eq!(place.read("z.kf.hcl"), text);
    }
    std::fs::write(place.path().join("z.kf.hcl"), b"# ok\n# \xff\n").unwrap();
    let done = place.check(&["fmt"], 2);
    assert!(done.stderr.contains("line 2 is not UTF-8"), "{}", done.stderr);
}

#[test]
fn an_edited_plan_file_is_refused() {
    let place = Place::new(TWO);
    place.check(&["plan", "-out=p"], 0);
    let whole: serde_json::Value = serde_json::from_str(&place.read("p")).unwrap();
    for (pointer, value) in [
        ("/plan/resources", serde_json::json!([])),
        ("/plan/steps/0/do", serde_json::json!({"change": {"resource": 9, "part": "create"}})),
        ("/plan/steps/0/after", serde_json::json!([99])),
        ("/plan/steps/0/after", serde_json::json!([0])),
        ("/sources/0/text", serde_json::json!("locals {}\n")),
    ] {
        let mut edited = whole.clone();
        *edited.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} in {whole:#}")) = value;
        place.write("edited", &edited.to_string());
        let done = place.check(&["apply", "edited"], 1);
        assert!(done.stderr.contains("can't be used"), "{pointer}: {}", done.stderr);
    }
    assert_eq!(place.read("karmaform.tfstate"), "");
}

#[test]
fn what_is_no_regular_file_holds_no_state() {
    let place = Place::new(TWO);
    std::fs::create_dir(place.path().join("folder")).unwrap();
    let done = place.check(&["plan", "-state=folder"], 1);
    assert!(done.stderr.contains("it is a directory"), "{}", done.stderr);
}

#[test]
fn the_console_says_what_is_wrong_with_what_was_begun() {
    let mut place = Place::new(TWO);
    place.stdin = "1 + 1\nbad(\n1".to_owned();
    let done = place.check(&["console"], 1);
    assert!(done.stdout.starts_with("2\n") && done.stderr.contains("Error"), "{done:#?}");
}

#[test]
fn the_console_says_what_an_expression_lacks() {
    let mut place = Place::new(TWO);
    let mut check = |typed: &str, said: &str| {
        place.stdin = format!("{typed}\n");
        let done = place.check(&["console"], 1);
        assert!(done.stderr.contains(said), "{typed}: {done:#?}");
    };
    check("# only this", "Here a value must stand, but there is nothing.");
    check(", 1", "A value is missing before this comma.");
    check("1 +", "Nothing follows after \"+\".");
    check("1 ? 2 :", "Nothing follows after \":\".");
    check("var.", "After a dot a name must follow, but the line ends.");
}

#[test]
fn an_expression_in_the_console_has_as_many_lines_as_it_needs() {
    let mut place = Place::new(TWO);
    place.stdin = "\"${upper(\"(\")}\"\n[1,\n]\n<<EOT\nhi\nEOT\nupper(<<EOT\nho\nEOT\n)\n2".to_owned();
    assert_eq!(place.check(&["console"], 0).stdout, "\"(\"\n[\n  1,\n]\n<<EOT\nhi\n\nEOT\n<<EOT\nHO\n\nEOT\n2\n");
}

#[test]
fn the_console_says_what_can_be_done_in_it() {
    let mut place = Place::new(TWO);
    place.stdin = "help\n[\nhelp\n]\nexit\n1\n".to_owned();
    let done = place.check(&["console"], 1);
    assert!(done.stdout.starts_with("Type an expression to see its value.") && done.stdout.ends_with("Ctrl-D.\n"), "{done:#?}");
    assert!(done.stderr.contains("\"help\" alone refers to nothing."), "{done:#?}");
}

#[test]
fn the_console_tells_types_in_bare_words() {
    let mut place = Place::new(TWO);
    place.stdin = "type(sensitive([1]))\n(type(null))\ntrue ? type(1) : type(\"\")\nupper(type(1))\n\"${type(1)}\"\n".to_owned();
    assert_eq!(place.check(&["console"], 0).stdout, "tuple([\n    number,\n])\ndynamic\nnumber\n\"NUMBER\"\n\"number\"\n");
}

#[test]
fn the_console_knows_the_time() {
    let mut place = Place::new(TWO);
    place.stdin = "timestamp() == plantimestamp()\nlength(uuid())\nuuid() == uuid()\n".to_owned();
    assert_eq!(place.check(&["console"], 0).stdout, "true\n36\nfalse\n");
}

/// Measured on Terraform 1.11.4.
#[test]
fn the_console_shows_the_instances_that_the_state_has() {
    let text = |count: u32, keys: &str| {
        format!(
            "resource \"terraform_data\" \"x\" {{\n  count = {count}\n  input = count.index\n}}\n\
             resource \"terraform_data\" \"y\" {{\n  for_each = toset({keys})\n  input    = each.key\n}}\n"
        )
    };
    let mut place = Place::new(&text(2, "[\"a\"]"));
    place.stdin = "length(terraform_data.x)\nkeys(terraform_data.y)\n".to_owned();
    assert_eq!(place.check(&["console"], 0).stdout, "(known after apply)\n(known after apply)\n");
    place.check(&["apply", "-auto-approve"], 0);
    for text in [text(3, "[\"a\", \"b\"]"), text(1, "[]")] {
        place.write("main.kf.hcl", &text);
        place.stdin = "terraform_data.x[*].input\nterraform_data.x[1].input\nkeys(terraform_data.y)\n".to_owned();
        assert_eq!(place.check(&["console"], 0).stdout, "[\n  0,\n  1,\n]\n1\n[\n  \"a\",\n]\n");
        place.stdin = "terraform_data.x[2]\n".to_owned();
        place.check(&["console"], 1);
    }
}

#[test]
fn in_the_console_a_variable_without_a_value_is_not_known_yet() {
    let mut place = Place::new("variable \"n\" {\n  type = number\n}\n\nlocals {\n  a = 1\n}\n");
    place.stdin = "local.a + 1\nvar.n\nvar.n + 1\n".to_owned();
    assert_eq!(place.check(&["console"], 0).stdout, "2\n(known after apply)\n(known after apply)\n");
    let done = place.check(&["plan", "-input=false"], 1);
    assert!(done.stderr.contains("No value for a required variable"), "{done:#?}");
}
