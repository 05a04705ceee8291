//! What `drift` says of files that somebody changed, and what it is told that does not matter.

use super::Place;

/// Files in the place's own directory; `AT` stands for that.
fn files(config: &str) -> Place {
    let place = Place::new("");
    place.write("main.kf.hcl", &config.replace("AT", &place.path().to_string_lossy()));
    place.check(&["apply", "-auto-approve"], 0);
    place
}

#[test]
fn what_follows_from_what_does_not_matter_does_not_matter_either() {
    let place = files(
        "resource \"local_file\" \"a\" {\n  filename = \"AT/a\"\n  content = \"one\"\n  lifecycle {\n    ignore_drift = [content]\n  }\n}\n",
    );
    place.write("a", "two");
    let done = place.check(&["drift"], 0);
    assert!(done.stdout.contains("content_sha256: is ") && done.stdout.contains("ignored by lifecycle.ignore_drift"), "{done:#?}");
    std::fs::remove_file(place.path().join("a")).unwrap();
    place.check(&["drift"], 2);
}

#[test]
fn an_address_takes_all_that_is_below_it() {
    let place = files(
        "resource \"local_file\" \"many\" {\n  for_each = toset([\"x\", \"y\"])\n  filename = \"AT/${each.key}\"\n  content = \"one\"\n}\n",
    );
    for name in ["x", "y"] {
        place.write(name, "two");
    }
    place.check(&["drift"], 2);
    let done = place.check(&["drift", "-ignore=local_file.many"], 0);
    assert_eq!(done.stdout.matches("ignored by -ignore=local_file.many").count(), 2, "{done:#?}");
    place.check(&["drift", "-ignore=local_file.many::content"], 0);
    place.check(&["drift", "-ignore=local_file.man"], 2);
    place.check(&["drift", "-ignore=local_file.many[\"x\"]"], 2);
}

#[test]
fn each_test_result_has_a_name_of_its_own() {
    let place = files("resource \"local_file\" \"a\" {\n  filename = \"AT/a\"\n  content = \"one\"\n}\n");
    place.write("a", "two");
    // A part of it counts, and another one does not.
    place.check(&["drift", "-ignore=*::content", "-report=junit=one.xml"], 0);
    place.check(&["drift", "-ignore=*::id", "-report=junit=two.xml"], 2);
    let names = |file: &str| -> Vec<String> {
        let text = place.read(file);
        let cases = text.lines().filter_map(|line| line.trim().strip_prefix("<testcase name=\"")).skip(1);
        cases.filter_map(|rest| rest.split('"').next().map(str::to_owned)).collect()
    };
    assert_eq!(names("one.xml"), ["changed local_file.a"]);
    assert_eq!(names("two.xml"), ["changed local_file.a", "changed local_file.a (2)"]);
}

#[test]
fn what_somebody_changed_and_what_is_not_wanted_any_more_is_told_as_both() {
    let place = files("resource \"local_file\" \"a\" {\n  filename = \"AT/a\"\n  content = \"one\"\n}\n");
    place.write("a", "two");
    place.write("main.kf.hcl", "");
    let done = place.check(&["drift"], 2);
    assert!(done.stdout.contains("\nDrift: 1 changed, 1 unapplied; 1 resource in all.\n"), "{done:#?}");
    assert!(done.stdout.contains("  local_file.a\n      it is not in the configuration any more, and still there\n"), "{done:#?}");
}

#[test]
fn what_is_said_does_nothing_to_a_terminal() {
    let place = Place::new(
        "resource \"terraform_data\" \"a\" {}\ncheck \"c\" {\n  assert {\n    condition = terraform_data.a.id == \"\"\n    \
         error_message = \"\\u001b[31mred\\nand more\"\n  }\n}\n",
    );
    place.check(&["apply", "-auto-approve"], 0);
    let done = place.check(&["drift"], 3);
    assert!(done.stdout.contains("\n      \u{fffd}[31mred\n      and more\n") && !done.stdout.contains('\u{1b}'), "{done:#?}");
}
