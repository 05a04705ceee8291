//! `moved` blocks.

use crate::support::{load_text, show};

fn moved(from: &str, to: &str) -> String {
    format!("moved {{\n  from = {from}\n  to   = {to}\n}}\n")
}

fn file(name: &str, more: &str) -> String {
    format!("resource \"file\" \"{name}\" {{\n  path = \"{name}\"\n  {more}\n}}\n")
}

/// Where an address ends up, block after block.
fn follow(text: &str, address: &str) -> String {
    let (config, diagnostics, sources) = load_text(text);
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let mut address = address.parse().unwrap();
    for moved in &config.moved {
        if let Some(unit) = moved.unit(&address) {
            address = unit.renamed(&address);
        }
    }
    address.to_string()
}

#[test]
fn both_ends_say_what_moves() {
    for (from, to, address, expected) in [
        ("file.a", "file.b", "file.a", "file.b"),
        ("file.a", "file.b", "file.a[3]", "file.b[3]"),
        ("file.a", "file.b", "file.a[\"k\"]/part[\"x\"]", "file.b[\"k\"]/part[\"x\"]"),
        ("file.a", "file.b", "file.c", "file.c"),
        ("file.a", "file.b", "module.m.file.a", "module.m.file.a"),
        ("file.a", "file.b", "data.file.a", "data.file.a"),
        ("file.a", "file.b[\"x\"]", "file.a/part", "file.b[\"x\"]/part"),
        ("file.a", "file.b[\"x\"]", "file.a[0]", "file.a[0]"),
        ("(file.a[0])", "file.a[1]", "file.a[0]", "file.a[1]"),
        ("file.a[\"x\"]", "file.b", "file.a[\"x\"]", "file.b"),
        ("file.a[\"x\"]", "file.b", "file.a[\"y\"]", "file.a[\"y\"]"),
        ("resource.file.a", "resource.file.b[\"x\"]", "file.a", "file.b[\"x\"]"),
        ("file.a", "module.m.file.a", "file.a[0]", "module.m.file.a[0]"),
        ("file.a", "module.m.resource.file.a", "file.a[0]", "module.m.file.a[0]"),
        ("module.m.file.a", "file.a", "module.m.file.a", "file.a"),
        ("module.m.file.a", "file.a", "module.m[0].file.a", "module.m[0].file.a"),
        ("module.m[\"k\"].file.a", "file.a[1]", "module.m[\"k\"].file.a", "file.a[1]"),
        ("module.m", "module.n", "module.m[\"k\"].module.o.file.a[0]", "module.n[\"k\"].module.o.file.a[0]"),
        ("module.m", "module.n[0]", "module.m.file.a", "module.n[0].file.a"),
        ("module.m", "module.n[0]", "module.m[1].file.a", "module.m[1].file.a"),
        ("module.m[0]", "module.n.module.o", "module.m[0].file.a/part", "module.n.module.o.file.a/part"),
    ] {
        assert_eq!(follow(&moved(from, to), address), expected, "{from} {to} {address}");
    }
}

#[test]
fn chains_and_what_lies_in_another_go_in_their_order() {
    for (blocks, address, expected) in [
        (vec![("file.b", "file.c"), ("file.a", "file.b")], "file.a", "file.c"),
        (vec![("file.c", "file.d"), ("file.b[0]", "file.c"), ("file.a", "file.b[0]")], "file.a", "file.d"),
        (vec![("module.n.file.a", "module.n.file.b"), ("module.m", "module.n")], "module.m.file.a", "module.n.file.b"),
        (vec![("module.m", "module.n"), ("module.m.file.a", "file.a")], "module.m.file.a", "file.a"),
        (vec![("file.a", "file.b"), ("file.a[0]", "file.first")], "file.a[0]", "file.first"),
        (vec![("file.a", "file.b"), ("file.a", "file.b")], "file.a", "file.b"),
    ] {
        let text: String = blocks.iter().map(|(from, to)| moved(from, to)).collect();
        assert_eq!(follow(&text, address), expected, "{blocks:?}");
    }
}

#[test]
fn what_is_wrong_with_a_moved_block_is_said_with_a_hint() {
    for (text, summary, hint) in [
        ("moved {}\n".to_owned(), "Missing arguments", ""),
        ("moved {\n  from = file.a\n}\n".to_owned(), "Missing argument", ""),
        ("moved \"x\" {\n  from = file.a\n  to = file.b\n}\n".to_owned(), "Wrong number of labels", "Write moved { ... }."),
        ("moved {\n  from = file.a\n  to = file.b\n  id = 1\n}\n".to_owned(), "Unknown argument", "It may hold \"from\", \"to\"."),
        (moved("file.a.path", "file.b"), "Invalid from", "Write from = file.a."),
        (moved("\"file.a\"", "file.b"), "Invalid from", "Write from = file.a."),
        (moved("file.a", "\"x ${1}\""), "Invalid to", "Write to = TYPE.NAME"),
        (moved("file.a/part", "file.b"), "Invalid from", "a composite moves with all its parts"),
        (moved("file.a", "[file.b]"), "Invalid to", "Write to = TYPE.NAME"),
        (moved("file", "file.b"), "Invalid from", "Write from = TYPE.NAME"),
        (moved("resource.file", "file.b"), "Invalid from", "Write from = TYPE.NAME"),
        (moved("resource.file.a.path", "file.b"), "Invalid from", "Write from = file.a."),
        (moved("file.a[*]", "file.b"), "Key not written out", "one block for each instance"),
        (moved("file.a[each.key]", "file.b"), "Key not written out", "one block for each instance"),
        (moved("data.host.h", "data.host.i"), "Data source in a moved block", "Delete this block"),
        (moved("file.a", "file.a"), "Redundant moved block", "Delete it."),
        (moved("file.a", "module.m"), "Invalid move", "Move a module to the address of a module"),
        (moved("file.a", "terraform_data.a"), "Resource type mismatch", "Only the name"),
        (moved("fil.a", "fil.b"), "Unknown resource type", "Did you mean \"file\"?"),
        (moved("file.a", "file.b") + &moved("file.a", "file.c"), "Ambiguous moved blocks", "Delete one of the two"),
        (moved("file.a", "file.c") + &moved("file.b", "file.c"), "Ambiguous moved blocks", "Delete one of the two"),
        (moved("file.a", "file.b") + &moved("file.b", "file.a"), "Moves in a circle", "not true any more"),
        (moved("module.a", "module.b") + &moved("module.b", "module.a"), "Moves in a circle", "not true any more"),
        (moved("file.a", "file.b") + &file("a", ""), "Moved object still exists", "Rename the resource block"),
        (moved("file.a[0]", "file.b") + &file("a", "count = 1"), "Moved object still exists", "Rename the resource block"),
        (file("b", "") + &moved("file.a", "file.b") + "output \"o\" { value = file.a.path }\n", "Unknown resource", "it is file.b now"),
    ] {
        let (_, diagnostics, sources) = load_text(&text);
        let found = diagnostics.iter().find(|d| d.summary == summary && (hint.is_empty() || d.hints.iter().any(|h| h.contains(hint))));
        assert!(found.is_some_and(|d| d.is_error() && d.span.is_some()), "{summary}\n{text}\n{}", show(&sources, &diagnostics));
    }
    // Another instance than those that are there may have moved.
    for text in [moved("file.a[1]", "file.b") + &file("a", "count = 1"), moved("file.a", "file.a[0]") + &file("a", "count = 1")] {
        let (config, diagnostics, sources) = load_text(&text);
        assert!(diagnostics.is_empty() && config.moved.len() == 1, "{}", show(&sources, &diagnostics));
    }
}
