//! `status`: what is running and how it is, by composite: the facts of the moment that no plan compares.
//!
//! Exit codes: 0 all is well, 2 something is not, 1 something could not be looked at.

mod instances;
mod lists;

use std::collections::BTreeMap;
use std::sync::Arc;

use karmaform_engine::Pool;
use karmaform_model::{Address, Ask, Catalog, Connection, Diagnostic, Diagnostics, Mode, Object, Schema, Snapshot, Value};
use serde_json::{Value as Json, json};

use crate::app::{App, Ended};
use crate::backend::open_backend;
use crate::bundle::Use;
use crate::flags::{StateFlags, VariableFlags, boolean};
use crate::planning::{addresses, pool};
use crate::project::load_directory;
use crate::session::Session;
use crate::ui::json::known_object;
use crate::ui::json::state::attributes;
use crate::ui::resource::{path_text, schema_of};
use crate::ui::style::{Theme, Tone};
use crate::ui::table::table;
use crate::ui::values::{inline, shortened};

/// Something could not be looked at.
const COULD_NOT_LOOK: i32 = 1;
/// Something is there and not well, or not there.
const NOT_WELL: i32 = 2;

/// Arguments of `status`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only these, their instances and what is below them
    #[arg(value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// Also what says nothing about health
    #[arg(long)]
    all: bool,
    /// As JSON
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = clap::ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    json: bool,
    #[command(flatten)]
    variables: VariableFlags,
    #[command(flatten)]
    state: StateFlags,
}

/// As far as its facts say.
fn is_well(seen: &Seen) -> bool {
    match &seen.facts {
        Ok(Some(found)) => found.iter().filter(|(n, _)| HEALTH.contains(&n.as_str())).all(|(n, v)| cell(n, Some(v)).1 != Tone::Remove),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// One resource with what was seen of it.
struct Seen {
    address: Address,
    resource_type: String,
    known: Object,
    facts: Result<Option<Object>, Diagnostic>,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let wanted = addresses("ADDRESS", &args.addresses)?;
    let project = load_directory(app, &args.variables, true)?.readable()?;
    let open = open_backend(app, &project.config.settings, args.state.state.as_deref())?;
    let session = Session::shared(app, open)?;
    let pool = pool(app, &project, Use::Perhaps)?;
    let registry = Arc::clone(&app.wiring.registry);
    let seen = app.executor.block_on(look(&session.snapshot, &registry, &pool, &wanted, args.all));
    let has_failed = seen.iter().any(|s| s.facts.is_err());
    let (lists, parts): (Vec<&Seen>, Vec<&Seen>) = seen.iter().partition(|s| is_list(&registry, s));
    let lists = lists::lists(&lists);
    let is_all_well = parts.iter().all(|s| is_well(s)) && lists.iter().all(lists::Listed::is_well);
    let instances = instances::instances(&session.snapshot, &registry, &wanted, &parts);
    if args.json {
        let answer = json!({ "format_version": "1.0", "instances": instances::to_json(&instances, &lists), "resources": seen.iter().map(|s| seen_json(s, &registry)).collect::<Vec<_>>() });
        app.output.print(&format!("{answer:#}\n"));
    } else {
        let notes = session.notes().clone();
        app.show(&notes);
        let text = instances::text(&instances, &app.theme) + &text(&parts, &registry, &app.theme) + &lists::text(&lists, &app.theme);
        app.output.print(&text);
        let wrong: Diagnostics = seen.into_iter().filter_map(|s| s.facts.err().map(|e| e.at(&s.address))).collect();
        app.show(&once_each(wrong));
    }
    Ok(match (has_failed, is_all_well) {
        (true, _) => COULD_NOT_LOOK,
        (false, false) => NOT_WELL,
        (false, true) => 0,
    })
}

/// It is a list of things, which gets a table of its own.
fn is_list(registry: &Catalog, seen: &Seen) -> bool {
    schema_of(registry, Mode::Managed, &seen.resource_type).is_some_and(lists_things)
}

/// One unreachable host is said once, not for everything on it.
fn once_each(all: Diagnostics) -> Diagnostics {
    let mut kept = Diagnostics::new();
    for one in all {
        if !kept.iter().any(|k| k.summary == one.summary && k.detail == one.detail) {
            kept.push(one);
        }
    }
    kept
}

/// Facts by these names say how a thing is; others are only there for planning.
const HEALTH: [&str; 6] = ["healthy", "ready", "active_state", "state", "status", "phase"];

fn has_facts(schema: &Schema, all: bool) -> bool {
    lists_things(schema) || schema.attributes.iter().any(|a| a.volatile && (all || HEALTH.contains(&a.name)))
}

/// What it has to tell is a list of other things.
fn lists_things(schema: &Schema) -> bool {
    schema.attribute(lists::ITEMS).is_some_and(|a| a.volatile)
}

fn tells_health(facts: &Object) -> bool {
    HEALTH.iter().any(|name| facts.get(name).is_some_and(|v| !v.is_null()))
}

/// What is asked about one resource: its address, its type, what the state knows, and the question.
type Question = (Address, String, Object, Ask);

/// Asks every connection once for all that lies behind it, all connections at the same time.
async fn look(snapshot: &Snapshot, registry: &Catalog, pool: &Arc<Pool>, wanted: &[Address], all: bool) -> Vec<Seen> {
    let mut groups: BTreeMap<(String, String), (Object, Vec<Question>)> = BTreeMap::new();
    for (address, resource) in &snapshot.resources {
        let is_wanted = wanted.is_empty() || wanted.iter().any(|w| address.is_within(w));
        let Some(schema) = schema_of(registry, address.mode, &resource.resource_type).filter(|s| has_facts(s, all)) else { continue };
        if !is_wanted || address.mode == Mode::Data {
            continue;
        }
        let known = attributes(address, resource, registry);
        let connection = match schema.connection {
            Connection::Attribute(name) => known.get(name).and_then(Value::as_entries).cloned().unwrap_or_default(),
            Connection::None | Connection::Arguments => Object::new(),
        };
        let id = connection.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let ask = Ask {
            resource_type: resource.resource_type.clone(),
            identity: schema.identity(&known),
            known: Some(known.clone()),
            wanted: None,
            begun: false,
        };
        let group = groups.entry((resource.provider.clone(), id)).or_insert_with(|| (connection, Vec::new()));
        group.1.push((address.clone(), resource.resource_type.clone(), known, ask));
    }
    let mut tasks = Vec::new();
    for ((provider, _), (connection, items)) in groups {
        let (pool, driver) = (Arc::clone(pool), registry.provider(&provider).cloned());
        tasks.push(tokio::spawn(async move {
            let (asks, rest): (Vec<Ask>, Vec<_>) = items.into_iter().map(|(a, t, k, ask)| (ask, (a, t, k))).unzip();
            let client = pool.open(&provider, &connection).await;
            let answers = match (client, driver) {
                (Ok(client), Some(driver)) => driver.observe(&client, &asks).await,
                (Err(error), _) => asks.iter().map(|_| Err(error.clone())).collect(),
                (_, None) => {
                    asks.iter().map(|_| Err(Diagnostic::error("Unknown provider", "Its provider is not part of this version."))).collect()
                }
            };
            let together = rest.into_iter().zip(answers);
            together.map(|((address, resource_type, known), facts)| Seen { address, resource_type, known, facts }).collect::<Vec<_>>()
        }));
    }
    let mut seen: Vec<Seen> = Vec::new();
    for task in tasks {
        if let Ok(part) = task.await {
            seen.extend(part);
        }
    }
    // An object that is there and has nothing to tell (a Secret, for one) is no line in a table.
    seen.retain(|s| all || is_list(registry, s) || s.facts.as_ref().map_or(true, |f| f.as_ref().is_none_or(tells_health)));
    seen.sort_by(|a, b| a.address.cmp(&b.address));
    seen
}

fn text(seen: &[&Seen], registry: &Catalog, theme: &Theme) -> String {
    if seen.is_empty() {
        return "Nothing in the state tells how it is.\n".to_owned();
    }
    // One table for all instances of a block: a fleet of a thousand members is no thousand tables.
    let mut groups: BTreeMap<(Option<Address>, &str), Vec<&Seen>> = BTreeMap::new();
    for one in seen {
        let block = one.address.composite().map(|composite| Address { key: None, ..composite });
        groups.entry((block, one.resource_type.as_str())).or_default().push(one);
    }
    let mut out = String::new();
    for ((block, resource_type), members) in groups {
        let Some(schema) = schema_of(registry, Mode::Managed, resource_type) else { continue };
        let title = block.as_ref().map(|b| format!("{b}: ")).unwrap_or_default();
        out.push_str(&format!("\n{}\n", theme.strong(Tone::Plain, &format!("{title}{resource_type}"))));
        out.push_str(&one_table(&members, schema, theme));
    }
    out
}

fn one_table(members: &[&Seen], schema: &Schema, theme: &Theme) -> String {
    // A column that is empty, or "no", in every row says nothing.
    let is_told =
        |name: &str| members.iter().any(|m| matches!(&m.facts, Ok(Some(f)) if f.get(name).is_some_and(|v| says_something(name, v))));
    let told: Vec<&str> = schema.attributes.iter().filter(|a| a.volatile && is_told(a.name)).map(|a| a.name).collect();
    let facts = if told.is_empty() { schema.attributes.iter().filter(|a| a.volatile).map(|a| a.name).take(1).collect() } else { told };
    let place = match schema.connection {
        Connection::Attribute(name) if members.iter().any(|m| m.known.contains_key(name)) => Some(name),
        _ => None,
    };
    // Within one cluster every member goes through the same connection; then it says nothing.
    let place_of = |m: &Seen| place.and_then(|p| m.known.get(p)).map(shortened).and_then(|v| v.as_str().map(str::to_owned));
    let is_one_place = members.iter().map(|m| place_of(m)).collect::<std::collections::BTreeSet<_>>().len() == 1;
    let addresses: Vec<&str> = ["client_url", "endpoint"].into_iter().filter(|n| schema.attribute(n).is_some()).take(1).collect();
    let mut header = vec!["resource".to_owned()];
    header.extend(place.filter(|_| !is_one_place).map(str::to_owned));
    header.extend(addresses.iter().map(|n| words(n)));
    header.extend(facts.iter().map(|n| words(n)));
    let rows: Vec<Vec<(String, Tone)>> = members
        .iter()
        .map(|member| {
            let mut row = vec![(name(&member.address), Tone::Bold)];
            if place.is_some() && !is_one_place {
                row.push((place_of(member).unwrap_or_default(), Tone::Plain));
            }
            row.extend(addresses.iter().map(|n| cell(n, member.known.get(n))));
            match &member.facts {
                Ok(Some(found)) => row.extend(facts.iter().map(|n| cell(n, found.get(n)))),
                Ok(None) => row.extend(blank(facts.len(), "not there", Tone::Remove)),
                Err(_) => row.extend(blank(facts.len(), "can't be reached", Tone::Remove)),
            }
            row
        })
        .collect();
    table(&header, &rows, theme)
}

/// What it is called in a table of its block: its path, and before that its instance's key, if there are keys.
fn name(address: &Address) -> String {
    match (&address.key, address.is_child()) {
        (_, false) => address.to_string(),
        (Some(key), true) => format!("{key} {}", path_text(address)),
        (None, true) => path_text(address),
    }
}

fn blank(columns: usize, first: &str, tone: Tone) -> Vec<(String, Tone)> {
    (0..columns).map(|i| if i == 0 { (first.to_owned(), tone) } else { (String::new(), Tone::Plain) }).collect()
}

/// What is good is green, what is bad is red; names that speak of errors are bad when they hold something.
fn cell(name: &str, value: Option<&Value>) -> (String, Tone) {
    let Some(value) = value.filter(|v| !v.is_null()) else { return ("-".to_owned(), Tone::Faint) };
    let speaks_of_trouble = matches!(name, "error" | "alarms");
    let is_empty = is_empty(value);
    let text = match (value.as_bool(), value.as_str()) {
        _ if value.secret => return (crate::ui::values::SECRET.to_owned(), Tone::Faint),
        (Some(b), _) => if b { "yes" } else { "no" }.to_owned(),
        (_, Some(s)) => crate::ui::values::visible(s),
        _ => value.as_items().map_or_else(
            || inline(value).unwrap_or_else(|| karmaform_lang::render(value)),
            |items| {
                items.iter().map(|i| i.as_str().map_or_else(|| karmaform_lang::render(i), str::to_owned)).collect::<Vec<_>>().join(", ")
            },
        ),
    };
    let tone = match (value.as_bool(), text.as_str()) {
        _ if is_empty => return ("-".to_owned(), Tone::Faint),
        _ if speaks_of_trouble => Tone::Remove,
        (Some(true), _) if matches!(name, "healthy" | "ready" | "leader") => Tone::Add,
        (Some(false), _) if matches!(name, "healthy" | "ready") => Tone::Remove,
        // A condition, as Kubernetes has them.
        (_, "True") if name == "ready" => Tone::Add,
        (_, "False" | "Unknown") if name == "ready" => Tone::Remove,
        (_, "active" | "running" | "success") => Tone::Add,
        (_, "failed" | "inactive" | "dead") => Tone::Remove,
        (_, "activating" | "deactivating" | "reloading") => Tone::Change,
        _ => Tone::Plain,
    };
    (text, tone)
}

fn says_something(name: &str, value: &Value) -> bool {
    !is_empty(value) && (value.as_bool() != Some(false) || HEALTH.contains(&name) || name == "leader")
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_items().is_some_and(<[Value]>::is_empty) || value.as_str() == Some("")
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn seen_json(seen: &Seen, registry: &Catalog) -> Json {
    let schema = schema_of(registry, Mode::Managed, &seen.resource_type);
    let is_fact = |n: &str| schema.and_then(|s| s.attribute(n)).is_some_and(|a| a.volatile);
    let mut out = json!({ "address": seen.address.to_string(), "type": seen.resource_type });
    match &seen.facts {
        Ok(Some(found)) => {
            let mut facts: Object = found.iter().filter(|(n, _)| is_fact(n)).map(|(n, v)| (n.clone(), v.clone())).collect();
            if let Some(schema) = schema {
                schema.mark(&mut facts);
            }
            out["facts"] = Json::Object(known_object(&facts));
        }
        Ok(None) => out["missing"] = json!(true),
        Err(error) => out["error"] = json!({ "summary": error.summary, "detail": error.detail }),
    }
    out
}
