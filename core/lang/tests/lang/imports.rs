//! `import` blocks.

use crate::support::{load_all, load_text, show};

fn import(to: &str, id: &str) -> String {
    format!("import {{\n  to = {to}\n  id = {id}\n}}\n")
}

const FILE: &str = "resource \"file\" \"a\" { path = \"/a\" }\n";
const MANY: &str =
    "locals { names = { x = \"/x\", y = \"/y\" } }\nresource \"file\" \"many\" {\n  for_each = local.names\n  path = each.value\n}\n";

#[test]
fn each_block_says_what_becomes_whose() {
    let check = |text: &str, expected: &[(&str, &str)]| {
        let (config, diagnostics, sources) = load_text(text);
        assert!(diagnostics.is_empty(), "{text}{}", show(&sources, &diagnostics));
        let found: Vec<_> = config.imports.iter().map(|(a, i)| (a.to_string(), i.id.clone())).collect();
        let expected: Vec<_> = expected.iter().map(|(a, i)| ((*a).to_owned(), (*i).to_owned())).collect();
        assert_eq!(found, expected, "{text}");
    };
    check(&(import("file.a", "\"/a\"") + FILE), &[("file.a", "/a")]);
    check(&("variable \"v\" { default = 7 }\n".to_owned() + &import("(file.a)", "var.v") + FILE), &[("file.a", "7")]);
    check(&(import("resource.file.a", "\"/a\"") + FILE), &[("file.a", "/a")]);
    check(&(import("resource.file.many[\"x\"]", "\"/x\"") + MANY), &[("file.many[\"x\"]", "/x")]);
    let all = "import {\n  for_each = local.names\n  to = file.many[each.key]\n  id = \"of ${each.value}\"\n}\n";
    check(&(all.to_owned() + MANY), &[("file.many[\"x\"]", "of /x"), ("file.many[\"y\"]", "of /y")]);
    check(&(import("file.many[\"x\"]", "\"/x\"") + MANY), &[("file.many[\"x\"]", "/x")]);
    let list = "import {\n  for_each = [\"x\", \"y\"]\n  to = file.many[each.value]\n  id = \"of ${each.key}\"\n}\n";
    check(&(list.to_owned() + MANY), &[("file.many[\"x\"]", "of 0"), ("file.many[\"y\"]", "of 1")]);
    let counted = "resource \"file\" \"c\" {\n  count = 2\n  path = \"/${count.index}\"\n}\n";
    check(&(import("file.c[1]", "\"/1\"") + counted), &[("file.c[1]", "/1")]);
    let numbers = "import {\n  for_each = toset([1, 0])\n  to = file.c[each.key]\n  id = \"/${each.value}\"\n}\n";
    check(&(numbers.to_owned() + counted), &[("file.c[0]", "/0"), ("file.c[1]", "/1")]);
}

#[test]
fn what_is_wrong_with_an_import_block_is_said() {
    for (text, summary) in [
        ("import {}\n".to_owned(), "Missing arguments"),
        (import("file.a", "\"/a\"") + "import \"x\" {\n  to = file.a\n  id = \"x\"\n}\n" + FILE, "Wrong number of labels"),
        (import("file.a", "\"/a\"") + &import("file.a", "\"/b\"") + FILE, "Declared twice"),
        (import("file.b", "\"/a\"") + FILE, "Configuration for import target does not exist"),
        (import("file.a[0]", "\"/a\"") + FILE, "No such instance"),
        (import("file.many", "\"/a\"") + MANY, "No such instance"),
        (import("data.host.h", "\"/a\"") + FILE, "Import of a data source"),
        (import("\"file.a\"", "\"/a\"") + FILE, "Invalid to"),
        (import("file.a.path", "\"/a\"") + FILE, "Invalid to"),
        (import("file.a[*]", "\"/a\"") + FILE, "Invalid to"),
        (import("file.a", "\"\"") + FILE, "Invalid id"),
        (import("file.a", "[]") + FILE, "Invalid id"),
        (import("file.a", "sensitive(\"x\")") + FILE, "Invalid id"),
        (import("file.a", "nothing.there") + FILE, ""),
        (import("file.a", "each.key") + FILE, ""),
        (import("file.a", "file.a.sha256") + FILE, ""),
        ("import {\n  to = file.a\n  id = \"x\"\n  provider = x\n}\n".to_owned() + FILE, "Unknown argument"),
    ] {
        let (_, diagnostics, sources) = load_text(&text);
        let found = diagnostics.iter().find(|d| d.is_error() && (summary.is_empty() || d.summary == summary));
        assert!(found.is_some_and(|d| d.span.is_some()), "{summary}\n{text}\n{}", show(&sources, &diagnostics));
    }
}

#[test]
fn the_root_module_says_it_of_modules_too() {
    let call = "module \"m\" {\n  source = \"./m\"\n  count  = 2\n}\n";
    let load = |text: &str, more: &str| {
        let (config, diagnostics, sources) =
            load_all(&[("main.kf.hcl", &(text.to_owned() + call))], &[("m/main.kf.hcl", &(FILE.to_owned() + more))], |_| {});
        (config, show(&sources, &diagnostics))
    };
    let (config, said) = load(&import("module.m[1].file.a", "\"/a\""), "");
    assert_eq!((said.as_str(), config.imports.len()), ("", 1));
    let summary = |text: &str, more: &str| {
        load_all(&[("main.kf.hcl", &(text.to_owned() + call))], &[("m/main.kf.hcl", &(FILE.to_owned() + more))], |_| {})
            .1
            .iter()
            .next()
            .map(|d| d.summary.clone())
    };
    assert_eq!(summary(&import("module.m.file.a", "\"/a\""), "").as_deref(), Some("Configuration for import target does not exist"));
    assert_eq!(summary("", &import("file.a", "\"/a\"")).as_deref(), Some("Import in a module"));
}

#[test]
fn one_thing_is_imported_by_hand_and_nothing_else() {
    let (mut config, ..) = load_text(&(import("file.a", "\"/a\"") + FILE + MANY));
    let refused = config.import_by_hand(&"file.many".parse().unwrap(), "/x").unwrap_err();
    assert_eq!((refused.summary.as_str(), refused.hints), ("No such instance", vec!["Import file.many[\"x\"].".to_owned()]));
    let refused = config.import_by_hand(&"file.b".parse().unwrap(), "/b").unwrap_err();
    assert!(refused.span.is_none(), "there is no place to show");
    config.import_by_hand(&"file.many[\"x\"]".parse().unwrap(), "/x").unwrap();
    let found: Vec<_> = config.imports.iter().map(|(a, i)| (a.to_string(), i.id.as_str(), i.by_hand)).collect();
    assert_eq!(found, [("file.many[\"x\"]".to_owned(), "/x", true)]);
}
