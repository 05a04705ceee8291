//! `import` blocks: what is there already.

use karmaform_engine::Options;

use crate::fake::Fault;
use crate::lab::{Lab, changes};

fn import(id: &str) -> String {
    format!("import {{\n to = fake_local.a\n id = \"{id}\"\n}}\n")
}

const A: &str = "resource \"fake_local\" \"a\" { name = \"a\" }\n";

/// A world in which `a` is there and no state knows of it.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.converge(A);
    *lab.backend.stored.lock().unwrap() = None;
    lab
}

#[test]
fn what_is_there_is_taken_over_and_made_as_it_should_be() {
    for (text, is_alone) in [(A, true), ("resource \"fake_local\" \"a\" {\n name = \"a\"\n content = \"new\"\n}\n", false)] {
        let mut lab = lab();
        let text = import("a") + text;
        let planned = lab.plan(&text);
        assert_eq!(changes(&planned.plan), "~ fake_local.a");
        let resource = &planned.plan.resources[0];
        assert_eq!((resource.importing.as_deref(), resource.is_import_alone()), (Some("a"), is_alone));
        assert_eq!(planned.plan.counts(), (0, usize::from(!is_alone), 0));
        assert!(lab.apply_plan(&planned).is_success());
        // The block may stay.
        let again = lab.plan(&text);
        assert!(again.plan.is_empty() && again.plan.resources[0].importing.is_none());
    }
}

#[test]
fn what_was_cut_off_is_still_taken_over() {
    let mut lab = lab();
    let text = import("a") + "resource \"fake_local\" \"a\" {\n name = \"a\"\n content = \"new\"\n}\n";
    let planned = lab.plan(&text);
    let before = lab.world.lock().operations;
    lab.world.lock().fault = Some((before, Fault::Refused));
    assert!(!lab.apply_plan(&planned).is_success());
    let planned = lab.plan(&text);
    assert_eq!(planned.plan.resources[0].importing.as_deref(), Some("a"));
    assert!(lab.apply_plan(&planned).is_success());
    assert!(lab.plan(&text).plan.is_empty());
}

#[test]
fn what_can_t_be_taken_over_is_refused() {
    let check = |lab: &Lab, text: &str, options: &Options, expected: &str| {
        let planned = lab.try_plan(text, options);
        let error = planned.diagnostics.iter().find(|d| d.is_error()).unwrap_or_else(|| panic!("{}", changes(&planned.plan)));
        assert_eq!((error.summary.as_str(), error.span.is_some()), (expected, true));
    };
    let (lab, empty) = (lab(), Lab::new());
    check(&lab, &(import("b") + A), &Options::default(), "Import of another thing");
    check(&empty, &(import("a") + A), &Options::default(), "Cannot import non-existent remote object");
    check(&lab, &(import("a") + A), &Options { refresh: false, ..Options::default() }, "Import of something unseen");
}
