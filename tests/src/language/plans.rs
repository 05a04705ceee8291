//! How plans show differences, as Terraform 1.11.4 shows them: `plans.txt` holds what it was seen to print for one `terraform_data` whose input changes.
//! A section is headed `-- BEFORE | AFTER` or `-- BEFORE | AFTER | IGNORED`, with what an `ignore_changes` says. The id and the output, which follows
//! the input, are left out.

use std::fs;

use crate::golden::difference;
use crate::parts::{command, real_registry};

const MEASURED: &str = include_str!("plans.txt");
/// What stands for a plan without changes.
const NOTHING: &str = "No changes.";

#[test]
fn differences_look_as_in_terraform() {
    let mut now = String::new();
    for section in MEASURED.split("-- ").filter(|s| !s.is_empty()) {
        let (head, _) = section.split_once('\n').expect("a head");
        let mut parts = head.split(" | ");
        let (before, after) = (parts.next().expect("a value"), parts.next().expect("another"));
        let ignored = parts.next();
        now.push_str(&format!("-- {head}\n{}\n", seen(before, after, ignored)));
    }
    assert!(now == MEASURED, "\n{}", difference(MEASURED, &now));
    assert!(MEASURED.lines().filter(|l| l.starts_with("-- ")).count() > 40);
}

/// What a plan says of the input.
fn seen(before: &str, after: &str, ignored: Option<&str>) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str]| {
        let done = command(place.path(), &real_registry(), args, "");
        assert_eq!(done.code, 0, "{before} -> {after}: {}{}", done.stdout, done.stderr);
        done.stdout
    };
    let write = |value: &str| {
        let lifecycle = ignored.map(|path| format!("  lifecycle {{\n    ignore_changes = [{path}]\n  }}\n")).unwrap_or_default();
        let text = format!("resource \"terraform_data\" \"a\" {{\n  input = {value}\n{lifecycle}}}\n");
        fs::write(place.path().join("main.kf.hcl"), text).expect("a file");
    };
    write(before);
    run(&["apply", "-auto-approve", "-no-color"]);
    write(after);
    let plan = run(&["plan", "-no-color"]);
    let inside = plan.split_once("  ~ resource \"terraform_data\" \"a\" {\n").and_then(|(_, rest)| rest.split_once("\n    }\n"));
    let Some((body, _)) = inside else { return if plan.contains(NOTHING) { NOTHING.to_owned() } else { plan } };
    let is_output = |line: &&str| line.starts_with("      ") && line[8..].trim_start().starts_with("output ");
    let lines: Vec<&str> = body.lines().map(str::trim_end).filter(|l| !l.starts_with("        id ")).collect();
    let input: Vec<&str> = lines.iter().copied().take_while(|l| !is_output(l)).collect();
    match (input.is_empty(), lines.last()) {
        (true, Some(last)) => (*last).to_owned(),
        _ => input.join("\n"),
    }
}

/// All of what is not known yet is taken to be secret, of which a part is. When it is known only that part is, and nothing has changed.
#[test]
fn a_secret_part_of_what_was_not_known_is_no_change() {
    let place = tempfile::tempdir().expect("a directory");
    let text = "resource \"terraform_data\" \"a\" {\n  input = { p = sensitive(\"x\"), q = 1 }\n}\nresource \"terraform_data\" \"b\" {\n  \
                input = { of = terraform_data.a.output }\n}\n";
    fs::write(place.path().join("main.kf.hcl"), text).expect("a file");
    for args in [&["apply", "-auto-approve"][..], &["plan", "-detailed-exitcode"]] {
        let done = command(place.path(), &real_registry(), args, "");
        assert_eq!(done.code, 0, "{args:?}: {}{}", done.stdout, done.stderr);
    }
}
