//! Golden texts of whole plans.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{
    Action, Address, Arg, Ask, Attribute, BoxFuture, Change, Child, Choreography, Composite, Diagnostics, DriftedResource, Expansion,
    GateSpec, ModeOfPlan, Object, OutputChange, Path, Reason, ReplaceOrder, ResourceSpec as _, Scene, Schema, Step, StepKind, Type, Value,
};

use super::*;
use crate::ui::json;

/// A composite that nobody asks anything but its schema.
struct Cluster(Schema);

impl Composite for Cluster {
    fn name(&self) -> &'static str {
        "cluster"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
    fn expand(&self, _: &Address, _: &Object) -> Result<Expansion, Diagnostics> {
        Ok(Expansion { children: Vec::<Child>::new(), outputs: BTreeMap::<String, Arg>::new() })
    }
    fn choreograph(&self, _: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        Ok(Choreography::default())
    }
}

/// A provider with one type, `thing`.
struct Fake(Thing);
struct Thing(Schema);

impl karmaform_model::ResourceSpec for Thing {
    fn name(&self) -> &'static str {
        "thing"
    }
    fn schema(&self) -> &Schema {
        &self.0
    }
}

impl karmaform_model::ResourceType<()> for Thing {
    fn observe<'a>(&'a self, (): &'a (), _: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, karmaform_model::Diagnostic>> {
        Box::pin(async { Ok(None) })
    }
    fn apply<'a>(&'a self, _: &'a (), _: &'a Change) -> BoxFuture<'a, Result<Option<Object>, karmaform_model::Diagnostic>> {
        Box::pin(async { Ok(None) })
    }
}

impl karmaform_model::Provider for Fake {
    type Client = ();
    fn name(&self) -> &'static str {
        "fake"
    }
    fn schema(&self) -> &Schema {
        self.0.schema()
    }
    fn types(&self) -> Vec<&dyn karmaform_model::ResourceType<()>> {
        vec![&self.0]
    }
    fn connect<'a>(
        &'a self,
        _: &'a Object,
        _: &'a Object,
        _: std::sync::Arc<dyn karmaform_model::Connections>,
    ) -> BoxFuture<'a, Result<(), karmaform_model::Diagnostic>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) fn registry() -> karmaform_model::Registry {
    let thing = Schema::new(
        "",
        vec![
            Attribute::optional("host", Type::Any, ""),
            Attribute::required("path", Type::String, "").identity(),
            Attribute::optional("content", Type::String, ""),
            Attribute::optional("password", Type::String, "").secret(),
            Attribute::computed("id", Type::String, ""),
        ],
    )
    .through("host");
    let cluster = Schema::new("", vec![Attribute::required("version", Type::String, ""), Attribute::required("hosts", Type::Any, "")]);
    karmaform_model::Registry::new(
        vec![std::sync::Arc::new(karmaform_model::Adapter(Fake(Thing(thing))))],
        vec![std::sync::Arc::new(Cluster(cluster))],
    )
}

pub(crate) fn thing(path: &str, content: &str) -> Object {
    let host = Value::object([("provider", "ssh".into()), ("id", "10.0.0.1:22".into()), ("key", Value::from("hunter2").secret())]);
    [
        ("host".to_owned(), host),
        ("path".to_owned(), path.into()),
        ("content".to_owned(), content.into()),
        ("password".to_owned(), "hunter2".into()),
        ("id".to_owned(), "i-1".into()),
    ]
    .into()
}

pub(crate) fn planned(address: &str, change: Change) -> PlannedResource {
    let address: Address = address.parse().unwrap();
    let is_record = address.kind == "cluster" && !address.is_child();
    PlannedResource {
        resource_type: if is_record { "cluster" } else { "thing" }.to_owned(),
        provider: (!is_record).then(|| "fake".to_owned()),
        address,
        deposed: None,
        change,
        facts: Object::new(),
        importing: None,
        reason: None,
        impact: vec![],
        dependencies: vec![],
        create_before_destroy: false,
        protected: false,
        secret_paths: vec![],
        newly_secret: vec![],
    }
}

pub(crate) fn plan(resources: Vec<PlannedResource>) -> Plan {
    Plan {
        format: Plan::FORMAT,
        tool_version: "0.1.0".into(),
        created: 0,
        errored: false,
        refreshed: true,
        mode: ModeOfPlan::Normal,
        lineage: None,
        serial: 0,
        resources,
        steps: vec![],
        outputs: BTreeMap::new(),
        kept_outputs: BTreeMap::new(),
        drift: vec![],
        renews: false,
        impact: BTreeMap::new(),
        risks: BTreeMap::new(),
        away: BTreeSet::new(),
        judgements: BTreeMap::new(),
        checks: vec![],
        moved: BTreeMap::new(),
        targets: vec![],
        excludes: vec![],
        deferred: vec![],
        variables: BTreeMap::new(),
        warnings: Diagnostics::new(),
    }
}

fn text(plan: &Plan) -> String {
    let text = plan_text(plan, &registry(), &Theme::plain(), PlanOptions::default());
    assert!(!text.contains("hunter2"), "{text}");
    let json = json::plan::plan(plan, &empty_config(), None, &registry()).to_string();
    assert!(!json.contains("hunter2"), "{json}");
    text
}

fn empty_config() -> karmaform_lang::Config {
    let context = karmaform_lang::Context::alone();
    karmaform_lang::load(&karmaform_lang::Sources::default(), &karmaform_lang::VariableInputs::default(), &context, &registry()).0
}

/// `BLESS=1` writes what is; read that diff.
fn golden(name: &str, text: &str) {
    let path = format!("{}/src/ui/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap());
}

#[test]
fn create_update_replace_delete() {
    let mut delete = planned("thing.gone[\"k\"]", Change::Delete { before: thing("/d", "d") });
    delete.reason = Some(Reason::DeleteBecauseEachKey);
    let replace = Change::Replace {
        before: thing("/old", "x"),
        after: thing("/new", "x"),
        order: ReplaceOrder::DestroyFirst,
        because: vec![Path::attribute("path")],
    };
    let mut created = thing("/a", "hi");
    created.insert("id".into(), Value::unknown(Type::String));
    let resources = vec![
        delete,
        planned("thing.new", Change::Create { after: created }),
        planned("thing.other", replace),
        planned("thing.same", Change::NoOp { object: thing("/s", "s") }),
        planned("thing.updated", Change::Update { before: thing("/u", "one"), after: thing("/u", "two") }),
    ];
    let mut plan = plan(resources);
    plan.outputs.insert("o".into(), OutputChange { before: None, after: Some("x".into()), sensitive: false });
    plan.outputs.insert("secret".into(), OutputChange { before: Some("hunter2".into()), after: Some("hunter2!".into()), sensitive: true });
    golden("plan", &text(&plan));
}

#[test]
fn a_composite_with_its_parts_and_steps() {
    let hosts = Value::object([("a", thing("", "")["host"].clone())]);
    let record = |version: &str| -> Object { [("version".to_owned(), version.into()), ("hosts".to_owned(), hosts.clone())].into() };
    let resources = vec![
        planned("cluster.main", Change::Update { before: record("1"), after: record("2") }),
        planned("cluster.main/ca", Change::NoOp { object: thing("/ca", "ca") }),
        planned("cluster.main/member[\"a\"]/data", Change::Create { after: thing("/data-a", "") }),
        planned("cluster.main/member[\"a\"]/unit", Change::Update { before: thing("/unit-a", "v1"), after: thing("/unit-a", "v2") }),
        planned("cluster.main/member[\"b\"]/data", Change::Create { after: thing("/data-b", "") }),
        planned("cluster.main/member[\"b\"]/old", Change::Delete { before: thing("/old-b", "") }),
    ];
    let mut plan = plan(resources);
    plan.resources[5].impact = vec!["data will be deleted".into()];
    plan.impact.insert("cluster.main".parse().unwrap(), vec!["rolling restart, quorum kept 2 of 3".into()]);
    let change = |resource, part, after: &[usize]| Step { kind: StepKind::Change { resource, part }, after: after.to_vec() };
    let gate =
        GateSpec { name: "healthy after member[\"a\"]".into(), gate: "g".into(), arguments: BTreeMap::new(), limit: 300, acts: false };
    plan.steps = vec![
        change(2, Action::Create, &[]),
        change(4, Action::Create, &[]),
        Step { kind: StepKind::Join, after: vec![0, 1] },
        change(3, Action::Update, &[2]),
        Step { kind: StepKind::Gate { composite: "cluster.main".parse().unwrap(), gate: Box::new(gate) }, after: vec![3] },
        change(5, Action::Delete, &[4]),
        Step { kind: StepKind::Finish { resource: 0 }, after: vec![5] },
    ];
    golden("composite", &text(&plan));
}

#[test]
fn a_composite_that_is_let_go() {
    let record: Object =
        [("version".to_owned(), "1".into()), ("hosts".to_owned(), Value::object([("a", thing("", "")["host"].clone())]))].into();
    let mut plan = plan(vec![
        planned("cluster.main", Change::Forget { before: record }),
        planned("cluster.main/ca", Change::Forget { before: thing("/ca", "ca") }),
        planned("cluster.main/unit", Change::Forget { before: thing("/unit", "v1") }),
        planned("thing.alone", Change::Forget { before: thing("/alone", "x") }),
    ]);
    plan.steps = (0..4).map(|resource| Step { kind: StepKind::Change { resource, part: Action::Forget }, after: vec![] }).collect();
    golden("forgotten", &text(&plan));
}

#[test]
fn lines_that_other_tools_search_for() {
    let check = |plan: &Plan, expected: &str| {
        let text = text(plan);
        assert!(text.lines().any(|l| l == expected), "{expected} is not a line of\n{text}");
    };
    check(&plan(vec![]), "No changes. Your infrastructure matches the configuration.");
    let mut nothing = plan(vec![]);
    nothing.mode = ModeOfPlan::Destroy;
    check(&nothing, "No changes. No objects need to be destroyed.");
    nothing.mode = ModeOfPlan::RefreshOnly;
    check(&nothing, "No changes. Your infrastructure still matches the configuration.");
    let mut some = plan(vec![planned("thing.new", Change::Create { after: thing("/a", "hi") })]);
    check(&some, "Plan: 1 to add, 0 to change, 0 to destroy.");
    check(&some, "  # thing.new will be created");
    check(&some, "karmaform will perform the following actions:");
    let deposed =
        PlannedResource { deposed: Some("deadbeef".into()), ..planned("thing.old", Change::Delete { before: thing("/a", "hi") }) };
    some.resources = vec![deposed];
    check(&some, "  # thing.old (deposed object deadbeef) will be destroyed");
    check(&some, "  # (left over from a partially-failed replacement of this instance)");
    some.resources.clear();
    some.outputs.insert("o".into(), OutputChange { before: None, after: Some(1i64.into()), sensitive: false });
    check(&some, "Changes to Outputs:");
    check(&some, "  + o = 1");
}

#[test]
fn drift_that_matters_is_shown_first() {
    let mut plan = plan(vec![planned("thing.a", Change::Update { before: thing("/a", "edited"), after: thing("/a", "wanted") })]);
    let drifted = |address: &str, after| DriftedResource {
        address: address.parse().unwrap(),
        resource_type: "thing".into(),
        before: thing("/a", "wanted"),
        after,
    };
    plan.drift = vec![drifted("thing.a", Some(thing("/a", "edited"))), drifted("thing.b", None)];
    let shown = text(&plan);
    assert!(shown.starts_with("\nNote: Objects have changed outside of karmaform\n"), "{shown}");
    assert!(
        shown.contains("  # thing.a has changed\n  ~ resource \"thing\" \"a\" {\n      ~ content  = \"wanted\" -> \"edited\"\n"),
        "{shown}"
    );
    assert!(!shown.contains("thing.b"), "drift that no change follows is not shown");
    plan.mode = ModeOfPlan::RefreshOnly;
    assert!(text(&plan).contains("  # thing.b has been deleted\n  - resource \"thing\" \"b\" {\n      - id   = \"i-1\" -> null\n"));
}
