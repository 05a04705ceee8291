//! How often things stand where the text does not say it.

use karmaform_lang::{Config, NothingKnown, Repetition, Resolver, SourceFile, Sources, VariableInputs, load, load_with};
use karmaform_model::{Address, Type, Value};

use crate::support::{context, registry};

const TEXT: &str = r#"
    resource "file" "a" { path = "x" }
    resource "file" "b" {
      for_each = { for tag in file.a.tags : tag => "${tag}!" }
      path     = each.value
    }
    resource "file" "c" {
      count = length(file.b)
      path  = "x"
    }
    resource "file" "d" {
      for_each = file.b
      path     = each.value.path
    }"#;

/// One file has two tags.
struct Tags;

impl Resolver for Tags {
    fn instance(&self, address: &Address) -> Value {
        match address.to_string().as_str() {
            "file.a" => Value::object([("tags", Value::tuple(vec!["k".into(), "l".into()]))]),
            _ => Value::unknown(Type::Any),
        }
    }
}

fn loaded(known: &dyn Resolver) -> Config {
    let mut sources = Sources::default();
    sources.add(SourceFile { path: "main.kf.hcl".into(), text: TEXT.into() });
    let (config, wrong) = load_with(&sources, &VariableInputs::default(), &context(&[]), &registry(), known);
    assert!(wrong.is_empty(), "{wrong:?}");
    config
}

fn instances(config: &Config) -> Vec<String> {
    config.instances().iter().map(ToString::to_string).collect()
}

#[test]
fn what_the_text_does_not_say_is_open_and_no_error_yet() {
    let config = loaded(&NothingKnown);
    let open: Vec<_> = config.open.iter().filter_map(|d| d.address.as_ref().map(ToString::to_string)).collect();
    assert_eq!(open, ["file.b", "file.c", "file.d"]);
    assert_eq!(instances(&config), ["file.a"]);
    let block = &config.blocks[&"file.b".parse().unwrap()];
    assert_eq!(block.repetition, Repetition::Open);
    assert!(block.repetition.has(Some(&karmaform_model::Key::Name("k".into()))), "it may be");
    assert!(!block.repetition.has(None));
}

#[test]
fn who_goes_by_the_text_alone_is_told_all_of_it() {
    let mut sources = Sources::default();
    sources.add(SourceFile { path: "main.kf.hcl".into(), text: TEXT.into() });
    let (_, wrong) = load(&sources, &VariableInputs::default(), &context(&[]), &registry());
    let told: Vec<_> = wrong.iter().map(|d| d.summary.as_str()).collect();
    assert_eq!(told, ["Invalid for_each", "Invalid count", "Invalid for_each"]);
}

#[test]
fn what_is_known_opens_what_hangs_on_it() {
    let config = loaded(&Tags);
    assert!(config.open.is_empty());
    let expected = ["file.a", "file.b[\"k\"]", "file.b[\"l\"]", "file.c[0]", "file.c[1]", "file.d[\"k\"]", "file.d[\"l\"]"];
    assert_eq!(instances(&config), expected);
    assert!(config.is_expanded_like(&loaded(&Tags)));
    assert!(!config.is_expanded_like(&loaded(&NothingKnown)));
    let Repetition::ForEach(entries) = &config.blocks[&"file.b".parse().unwrap()].repetition else { panic!("for_each") };
    assert!(entries["k"].is_unknown(), "values are those of the pass that asks");
}

#[test]
fn an_import_is_open_until_its_id_is_known() {
    let text = format!(
        "{TEXT}\nimport {{\n  to = file.new\n  id = join(\"-\", [for tag in file.a.tags : tag])\n}}\nresource \"file\" \"new\" {{ path = \"n\" }}\n"
    );
    let read = |known: &dyn Resolver| {
        let mut sources = Sources::default();
        sources.add(SourceFile { path: "main.kf.hcl".into(), text: text.clone() });
        let (config, wrong) = load_with(&sources, &VariableInputs::default(), &context(&[]), &registry(), known);
        assert!(wrong.is_empty(), "{wrong:?}");
        config
    };
    let address: Address = "file.new".parse().unwrap();
    let (open, known) = (read(&NothingKnown), read(&Tags));
    assert!(open.imports.is_empty());
    assert!(open.open_import(&address).is_some_and(|open| open.told.summary == "Invalid id" && open.told.detail.ends_with("file.a.")));
    assert_eq!(known.imports.get(&address).map(|import| import.id.as_str()), Some("k-l"));
    assert!(known.open_import(&address).is_none());
}
