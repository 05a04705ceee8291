//! A composite in small: a note as its "CA", and a file and a unit on each host. Changed one member at a time, each behind a gate.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use karmaform_model::{
    Address, Arg, Attribute, Child, ChildStep, Choreography, Composite, Diagnostic, Diagnostics, Expansion, GateSpec, Leg, LegHint, Object,
    Point, Renewed, Scene, Schema, Type, Value,
};

/// How it orders its changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// One member after the other, with a gate between.
    #[default]
    Rolling,
    /// The first member before a member that does not change before the last member.
    Through,
    /// A before B before A.
    Contradicting,
    /// It refuses every change.
    Refusing,
    /// Files need no deletion.
    Forgetting,
    /// A unit after those of all members before it, and nobody waits for who does not answer.
    Apart,
    /// A unit comes to be another one where its file is made.
    Renewing,
    /// As `Rolling`, and each unit that was seen is in need of care.
    Caring,
}

#[derive(Clone, Default)]
pub struct Cluster {
    pub style: Arc<Mutex<Style>>,
    /// What it saw when it was asked last: children with action and whether they were seen.
    pub scene: Arc<Mutex<Vec<String>>>,
    /// How old what changes was, in the changes that it was last shown.
    pub ages: Arc<Mutex<Vec<i64>>>,
    pub limit: Arc<Mutex<u64>>,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "",
        vec![
            Attribute::required("hosts", Type::map(Type::Any), ""),
            Attribute::optional("version", Type::String, "").or("1"),
            Attribute::optional("label", Type::String, ""),
            Attribute::computed("ids", Type::map(Type::String), ""),
            Attribute::computed("token", Type::String, "").secret(),
        ],
    )
});

pub fn member(key: &str, part: &str) -> Vec<ChildStep> {
    vec![ChildStep::keyed("member", key), ChildStep::new(part)]
}

fn ca() -> Vec<ChildStep> {
    vec![ChildStep::new("ca")]
}

impl Composite for Cluster {
    fn name(&self) -> &'static str {
        "fake_cluster"
    }
    fn schema(&self) -> &Schema {
        &SCHEMA
    }
    fn expand(&self, address: &Address, arguments: &Object) -> Result<Expansion, Diagnostics> {
        let Some(hosts) = arguments["hosts"].as_entries() else {
            return Err(Diagnostic::error("Hosts are not known", "How many there are has to be known.").into());
        };
        let mut expansion = Expansion::default();
        // With this label files are called after the address, as units of real clusters are.
        let is_named = arguments.get("label").and_then(Value::as_str) == Some("named");
        let file = if is_named { format!("file-{}{}", address.name, address.key.as_ref().map_or("", |_| "-0")) } else { "file".to_owned() };
        let child = |path: Vec<ChildStep>, ty: &str, arguments: Vec<(&str, Arg)>, after: Vec<Vec<ChildStep>>| Child {
            resource_type: ty.into(),
            arguments: arguments.into_iter().map(|(n, a)| (n.to_owned(), a)).collect(),
            after,
            apart: if path.last().is_some_and(|step| step.name == "unit") { &[] } else { &["label"] },
            path,
        };
        expansion.children.push(child(ca(), "fake_note", vec![("input", Value::from("ca").into())], vec![]));
        let mut ids = BTreeMap::new();
        let mut before: Vec<Vec<ChildStep>> = Vec::new();
        for (key, host) in hosts {
            let way: Arg = host.get("connection").cloned().unwrap_or_else(|| Value::unknown(Type::Any)).into();
            let content = Arg::Text(vec![Value::from("ca ").into(), Arg::child(&ca(), "id")]);
            expansion.children.push(child(
                member(key, "file"),
                "fake_thing",
                vec![("host", way.clone()), ("name", Value::from(file.clone()).into()), ("content", content)],
                vec![],
            ));
            let version = Arg::Text(vec![Value::from("version ").into(), arguments["version"].clone().into()]);
            expansion.children.push(child(
                member(key, "unit"),
                "fake_thing",
                vec![("host", way), ("name", Value::from("unit").into()), ("content", version)],
                before.iter().cloned().chain([member(key, "file")]).collect(),
            ));
            if *self.style.lock().unwrap() == Style::Apart {
                before.push(member(key, "unit"));
            }
            ids.insert(key.clone(), Arg::child(&member(key, "unit"), "id"));
        }
        expansion.outputs.insert("ids".into(), Arg::Object(ids));
        expansion.outputs.insert("token".into(), Arg::child(&ca(), "id"));
        Ok(expansion)
    }

    /// From `leg-1` to `leg-3` it goes over `leg-2`, with a label of its own.
    fn first_leg(&self, before: &Object, wanted: &Object) -> Option<Leg> {
        let number = |object: &Object| object.get("version")?.as_str()?.strip_prefix("leg-")?.parse::<u32>().ok();
        let (from, to) = (number(before)?, number(wanted)?);
        let next = Some(from + 1).filter(|next| *next < to)?;
        let mut leg = wanted.clone();
        leg.insert("version".to_owned(), format!("leg-{next}").into());
        leg.insert("label".to_owned(), "on the way".into());
        let hint = LegHint { kind: "fake_thing", text: format!("Get {next}, which is between {from} and {to}.") };
        Some(Leg { wanted: leg, rest: format!("{next} first, then {to}"), hint: Some(hint) })
    }

    fn choreograph(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        let text = |(path, c): (&Vec<ChildStep>, &karmaform_model::ChildChange<'_>)| {
            let path: Vec<String> = path.iter().map(ToString::to_string).collect();
            let seen = c.observed.map_or("unseen".to_owned(), |o| o.get("age").map_or("seen".into(), |a| format!("age {a:?}")));
            format!("{} {:?} {seen} {}", path.join("/"), c.change.action(), c.in_state)
        };
        *self.scene.lock().unwrap() = scene.children.iter().map(text).collect();
        let age = |c: &karmaform_model::ChildChange<'_>| c.change.before().filter(|_| !c.change.is_no_op())?.get("age")?.as_i64();
        *self.ages.lock().unwrap() = scene.children.values().filter_map(age).collect();
        let units: Vec<String> = scene
            .children
            .iter()
            .filter(|(path, _)| path.len() == 2 && path[1].name == "unit")
            .filter_map(|(path, _)| match &path[0].key {
                Some(karmaform_model::Key::Name(key)) => Some(key.clone()),
                _ => None,
            })
            .collect();
        let mut dance = Choreography::default();
        let point = |key: &str| Point::Child(member(key, "unit"));
        match *self.style.lock().unwrap() {
            Style::Renewing => {
                let is_made = |c: &karmaform_model::ChildChange<'_>| c.change.action() == karmaform_model::Action::Create;
                let made = units.iter().filter(|key| is_made(&scene.children[&member(key, "file")]));
                dance.renewed = made.map(|key| Renewed { child: member(key, "unit"), attributes: &["id"] }).collect();
            }
            Style::Refusing => return Err(Diagnostic::error("Not safe", "This change can't be made safely.").into()),
            Style::Contradicting => {
                dance.orderings.push((point(&units[0]), point(&units[1])));
                dance.orderings.push((point(&units[1]), point(&units[0])));
            }
            Style::Apart => dance.away = scene.children.iter().filter(|(_, c)| c.unseen).map(|(path, _)| path.clone()).collect(),
            Style::Forgetting => {
                dance.forgotten = scene.children.keys().filter(|p| p.last().is_some_and(|s| s.name == "file")).cloned().collect()
            }
            Style::Through => {
                dance.orderings.push((point(&units[0]), point(&units[1])));
                dance.orderings.push((point(&units[1]), point(&units[2])));
            }
            Style::Rolling | Style::Caring => {
                let changed: Vec<&String> = units.iter().filter(|k| !scene.children[&member(k, "unit")].change.is_no_op()).collect();
                let mut last: Option<String> = None;
                for key in changed {
                    let gate = format!("ready after {key}");
                    dance.gates.push(GateSpec {
                        name: gate.clone(),
                        gate: "fake_ready".into(),
                        // The child's way and not its value now: that may be known after apply only.
                        arguments: [
                            ("host".to_owned(), Arg::child(&member(key, "unit"), "host")),
                            ("name".to_owned(), Value::from(key.as_str()).into()),
                        ]
                        .into(),
                        limit: match *self.limit.lock().unwrap() {
                            0 => 60,
                            limit => limit,
                        },
                        acts: false,
                    });
                    dance.orderings.push((point(key), Point::Gate(gate.clone())));
                    if let Some(last) = last.replace(gate) {
                        dance.orderings.push((Point::Gate(last.clone()), point(key)));
                        dance.orderings.push((Point::Gate(last.clone()), Point::Child(member(key, "file"))));
                        // Children that are not there pass on what is said of them, each for itself.
                        dance.orderings.push((Point::Gate(last), Point::Child(member(key, "absent"))));
                        dance.orderings.push((Point::Child(member(key, "absent")), Point::Gate(format!("ready after {key}"))));
                    }
                }
                dance.impact.push("one member at a time".into());
            }
        }
        Ok(dance)
    }

    fn care(&self, seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
        if *self.style.lock().unwrap() != Style::Caring {
            return Vec::new();
        }
        let units = seen.iter().filter(|(path, _)| path.last().is_some_and(|step| step.name == "unit"));
        let told = units.filter(|(_, facts)| !facts.is_empty());
        told.map(|(path, _)| (path.to_vec(), Diagnostic::warning("A unit is in need of care", "It was seen."))).collect()
    }

    fn recover(&self, scene: &Scene<'_>) -> Result<Choreography, Diagnostics> {
        let gates = scene.children.keys().find(|path| path.len() == 2).into_iter().map(|path| GateSpec {
            name: "recovered".to_owned(),
            gate: "fake_ready".to_owned(),
            arguments: [("host".to_owned(), Arg::child(path, "host")), ("name".to_owned(), Value::from("recovered").into())].into(),
            limit: 60,
            acts: false,
        });
        Ok(Choreography { gates: gates.collect(), ..Choreography::default() })
    }
}
