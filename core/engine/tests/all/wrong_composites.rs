//! Composites with mistakes in them: a plan or an apply says whose mistake it is, and does not panic.

use std::sync::{Arc, LazyLock};

use karmaform_engine::Options;
use karmaform_model::{
    Adapter, Address, Arg, Attribute, Child, ChildStep, Choreography, Composite, Diagnostics, Driver, Expansion, GateSpec, Object, Point,
    Registry, Scene, Schema, Type,
};

use crate::fake::Fake;
use crate::lab::Lab;

/// What it does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Twice,
    NoType,
    NoSibling,
    NoSiblingOfOutput,
    NoArgument,
    OtherArgument,
    NoGate,
}

struct Odd(Wrong);

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new("", vec![Attribute::computed("id", Type::String, "")]));

fn path(name: &str) -> Vec<ChildStep> {
    vec![ChildStep::new(name)]
}

fn child(name: &str, resource_type: &str, arguments: Vec<(&str, Arg)>) -> Child {
    Child {
        path: path(name),
        resource_type: resource_type.to_owned(),
        arguments: arguments.into_iter().map(|(n, a)| (n.to_owned(), a)).collect(),
        after: Vec::new(),
        apart: &[],
    }
}

impl Composite for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }
    fn schema(&self) -> &Schema {
        &SCHEMA
    }
    fn expand(&self, _: &Address, _: &Object) -> Result<Expansion, Diagnostics> {
        let mut one = child("one", "fake_local", vec![("name", "one".into())]);
        let mut all = Expansion::default();
        all.outputs.insert("id".into(), Arg::child(&path("one"), "id"));
        match self.0 {
            Wrong::Twice => all.children.push(one.clone()),
            Wrong::NoType => all.children.push(child("two", "nope", Vec::new())),
            Wrong::NoSibling => one.after.push(path("two")),
            Wrong::NoSiblingOfOutput => drop(all.outputs.insert("id".into(), Arg::child(&path("two"), "id"))),
            Wrong::NoArgument => drop(one.arguments.insert("nope".into(), "x".into())),
            Wrong::OtherArgument => drop(one.arguments.insert("tags".into(), "x".into())),
            Wrong::NoGate => {}
        }
        all.children.insert(0, one);
        Ok(all)
    }
    fn choreograph(&self, _: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        let mut dance = Choreography::default();
        if self.0 == Wrong::NoGate {
            let gate = GateSpec { name: "done".into(), gate: "nope".into(), arguments: [].into(), limit: 1, acts: false };
            dance.orderings.push((Point::Child(path("one")), Point::Gate("done".into())));
            dance.gates.push(gate);
        }
        Ok(dance)
    }
}

const TEXT: &str = "resource \"odd\" \"o\" {}";

fn lab(wrong: Wrong) -> Lab {
    let mut lab = Lab::new();
    let driver: Arc<dyn Driver> = Arc::new(Adapter(Fake(lab.world.clone())));
    lab.registry = Arc::new(Registry::new(vec![driver], vec![Arc::new(Odd(wrong))]));
    lab
}

#[test]
fn what_it_expands_into_must_fit_together() {
    for (wrong, summary, detail) in [
        (
            Wrong::Twice,
            "Composite expands wrongly",
            "The composite \"odd\" names the child \"odd.o/one\" twice or not at all. This is a bug.",
        ),
        (Wrong::NoType, "Composite expands wrongly", "The composite \"odd\" wants a \"nope\", which no provider has. This is a bug."),
        (
            Wrong::NoSibling,
            "Composite expands wrongly",
            "The composite \"odd\" refers to a child \"odd.o/two\" that it does not make. This is a bug.",
        ),
        (
            Wrong::NoSiblingOfOutput,
            "Composite expands wrongly",
            "The composite \"odd\" refers to a child \"odd.o/two\" that it does not make. This is a bug.",
        ),
        (
            Wrong::NoArgument,
            "Composite gives wrong arguments",
            "It gives the argument \"nope\", which does not exist. This is a bug of the composite.",
        ),
    ] {
        let planned = lab(wrong).try_plan(TEXT, &Options::default());
        let error = planned.diagnostics.iter().find(|d| d.is_error()).expect("an error");
        assert_eq!((error.summary.as_str(), error.detail.as_str()), (summary, detail));
        assert!(error.address.is_some(), "{error:?}");
    }
    let planned = lab(Wrong::OtherArgument).try_plan(TEXT, &Options::default());
    let error = planned.diagnostics.iter().find(|d| d.is_error()).expect("an error");
    assert_eq!(error.summary, "Composite gives wrong arguments");
    assert!(error.detail.starts_with("Its argument \"tags\" does not fit: "), "{}", error.detail);
}

#[test]
fn a_gate_that_there_is_none_of_is_a_failure_of_the_composite() {
    let mut lab = lab(Wrong::NoGate);
    let outcome = lab.run(TEXT);
    let error = outcome.diagnostics.iter().find(|d| d.is_error()).expect("an error");
    assert_eq!((error.summary.as_str(), error.detail.as_str()), ("Unknown gate", "There is no gate \"nope\" in this version."));
    assert_eq!(error.address.as_ref().map(ToString::to_string).as_deref(), Some("odd.o"));
    assert_eq!(outcome.failed, 1);
}
