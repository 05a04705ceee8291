//! docs/reference: one page for each resource type and data source, written from its schema; `make reference` writes them, and this test
//! fails if one is not as its schema says. The example on a page is the one of its case.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use karmaform::Wiring;
use karmaform_model::{Attribute, Connection, Nesting, Presence, Schema, to_json};

use crate::parts::{real_registry, root};

#[test]
fn pages_say_what_schemas_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let directory = root().join("docs/reference");
    let pages = pages();
    let mut wrong = Vec::new();
    for (name, text) in &pages {
        let path = directory.join(name);
        if fs::read_to_string(&path).ok().as_ref() != Some(text) {
            wrong.push(format!("docs/reference/{name}"));
            if bless {
                fs::create_dir_all(&directory).and_then(|()| fs::write(&path, text)).expect("a writable page");
            }
        }
    }
    for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !pages.contains_key(&name) {
            wrong.push(format!("docs/reference/{name} is of nothing"));
            if bless {
                fs::remove_file(entry.path()).expect("a page that can go");
            }
        }
    }
    assert!(bless || wrong.is_empty(), "\n{}\n`make reference` writes them\n", wrong.join("\n"));
}

fn pages() -> BTreeMap<String, String> {
    let registry = real_registry();
    let mut pages = BTreeMap::new();
    let mut index = String::from(
        "# Reference\n\nResources, data sources, backends and settings, written from the schemas by `make reference`. Blocks, expressions and functions are in \
         [the language](../language/README.md).\n",
    );
    let list = |index: &mut String, title: &str, items: &[(&str, &Schema)]| {
        let _ = write!(index, "\n## {title}\n\n| name | what it is |\n|---|---|\n");
        for (name, schema) in items {
            let _ = writeln!(index, "| [`{name}`]({name}.md) | {} |", cell(schema.doc));
        }
    };
    let composites: Vec<_> = registry.composites().map(|c| (c.name(), c.schema())).collect();
    for (name, schema) in &composites {
        let provider = name.split('_').next().unwrap_or_default();
        pages.insert(format!("{name}.md"), page(name, "resource", "A composite: it expands into smaller resources.", provider, schema));
    }
    list(&mut index, "Composites", &composites);
    for driver in registry.drivers() {
        let specs: Vec<_> = driver.specs().into_iter().map(|s| (s.name(), s.schema())).collect();
        let data = driver.data_schemas();
        for (name, schema) in &specs {
            pages.insert(format!("{name}.md"), page(name, "resource", "", driver.name(), schema));
        }
        for (name, schema) in &data {
            pages.insert(format!("{name}.md"), page(name, "data", "", driver.name(), schema));
        }
        list(&mut index, &format!("Provider `{}`", driver.name()), &[specs, data].concat());
        if !driver.schema().attributes.is_empty() {
            let of_modules = "in a [module](../behaviour/modules.md#defaults-of-providers) those that connections carry";
            let _ =
                write!(index, "\n`provider \"{}\" {{}}` holds defaults, {of_modules}:\n\n{}", driver.name(), attributes(driver.schema()));
        }
    }
    let backends: Vec<_> = Wiring::real().backends.iter().map(|b| (b.name, (b.schema)())).collect();
    let _ = write!(index, "\n## Backends\n\n| name | what it is |\n|---|---|\n");
    for (name, schema) in &backends {
        let file = format!("backend_{name}.md");
        let _ = writeln!(index, "| [`{name}`]({file}) | {} |", cell(schema.doc));
        let text = format!(
            "# backend `{name}`\n\n{}\n\nWhat the block leaves open can be given with `karmaform init -backend-config=NAME=VALUE`.\n\n## Arguments\n\n{}",
            schema.doc,
            attributes(schema)
        );
        pages.insert(file, text);
    }
    let schema = karmaform_encryption::schema();
    let _ = write!(index, "\n## Settings\n\n| name | what it is |\n|---|---|\n| [`encryption`](encryption.md) | {} |\n", cell(schema.doc));
    pages.insert(
        "encryption.md".to_owned(),
        format!("# Block `encryption` of `karmaform`, at most one\n\n{}\n\n## Arguments\n\n{}", schema.doc, attributes(schema)),
    );
    pages.insert("README.md".to_owned(), index);
    pages
}

fn page(name: &str, block: &str, more: &str, provider: &str, schema: &Schema) -> String {
    let mut text = format!("# {block} `{name}`\n\n{}\n", schema.doc);
    if !more.is_empty() {
        let _ = write!(text, "\n{more}\n");
    }
    match schema.connection {
        Connection::Attribute(attribute) => {
            let _ = write!(text, "\nIt is reached through the connection in `{attribute}`.\n");
        }
        Connection::Arguments => text.push_str("\nIt gives a `connection` that other blocks are reached through.\n"),
        Connection::None => {}
    }
    if schema.state_only {
        text.push_str("\nIt lives in the state alone.\n");
    }
    if let Some(example) = example(provider, name) {
        let _ = write!(text, "\n## Example\n\n```hcl\n{example}```\n");
    }
    let _ = write!(text, "\n## Attributes\n\n{}", attributes(schema));
    blocks(schema, "", &mut text);
    text
}

/// The blocks, and those within them: `tls_route.gateway`.
fn blocks(schema: &Schema, within: &str, text: &mut String) {
    for nested in &schema.blocks {
        let how = match nested.nesting {
            Nesting::Single => "at most one",
            Nesting::List => "any number",
            Nesting::Map => "any number, each with a label",
        };
        let name = format!("{within}{}", nested.name);
        let _ = write!(text, "\n## Block `{name}`, {how}\n\n{}\n\n{}", nested.schema.doc, attributes(&nested.schema));
        blocks(&nested.schema, &format!("{name}."), text);
    }
}

fn attributes(schema: &Schema) -> String {
    let mut text = String::new();
    for (title, is_configurable) in [("given", true), ("result", false)] {
        let chosen: Vec<_> = schema.attributes.iter().filter(|a| a.is_configurable() == is_configurable).collect();
        if !chosen.is_empty() {
            let _ = writeln!(text, "{}| {title} | type | | meaning |\n|---|---|---|---|", if text.is_empty() { "" } else { "\n" });
            for a in chosen {
                let _ = writeln!(text, "| `{}` | `{}` | {} | {} |", a.name, cell(&a.ty.to_string()), facts(a), cell(a.doc));
            }
        }
    }
    text
}

fn facts(a: &Attribute) -> String {
    let mut facts = Vec::new();
    match (a.presence, &a.default) {
        (Presence::Required, _) => facts.push("required".to_owned()),
        (_, Some(default)) => facts.push(format!("default `{}`", cell(&to_json(default).to_string()))),
        _ => {}
    }
    for (is, word) in [
        (a.identity, "names it"),
        (a.forces_replace, "a change replaces"),
        (a.secret, "secret"),
        (a.write_only, "not stored"),
        (a.volatile, "a fact of the moment"),
    ] {
        if is {
            facts.push(word.to_owned());
        }
    }
    facts.join(", ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The configuration of the type's case.
fn example(provider: &str, name: &str) -> Option<String> {
    let case = fs::read_to_string(root().join(format!("tests/cases/{provider}/{name}.txt"))).ok()?;
    let body = case.split("-- main.kf.hcl --\n").nth(1)?;
    body.split("\n-- ").next().map(|b| format!("{}\n", b.trim_end()))
}
