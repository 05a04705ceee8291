//! `removed` blocks.

use crate::support::{load_text, show};

const KEEP: &str = "lifecycle { destroy = false }";

#[test]
fn a_removed_block_is_about_all_instances_and_parts() {
    let text = format!(
        "removed {{\n from = file.a\n {KEEP}\n}}\nremoved {{\n from = (file.b)\n lifecycle {{ destroy = true }}\n}}\nresource \"file\" \"c\" {{ path = \"c\" }}\n"
    );
    let (config, diagnostics, sources) = load_text(&text);
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    for (address, expected) in [
        ("file.a", true),
        ("file.a[3]", true),
        ("file.a[\"k\"]/part[\"x\"]", true),
        ("file.b", false),
        ("file.c", false),
        ("data.file.a", false),
    ] {
        assert_eq!(config.forgets(&address.parse().unwrap()), expected, "{address}");
    }
    assert_eq!(config.removed.len(), 2);
}

#[test]
fn what_says_nothing_of_destroying_destroys() {
    for text in ["removed { from = file.a }\n", "removed {\n  from = file.a\n  lifecycle {}\n}\n"] {
        let (config, diagnostics, sources) = load_text(text);
        assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
        assert!(config.removed.values().all(|r| r.destroy) && config.removed.len() == 1, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_removed_block_is_said_with_a_hint() {
    let from = |from: &str| format!("removed {{\n  from = {from}\n  {KEEP}\n}}\n");
    for (text, summary, hint) in [
        (from("file.a[0]"), "Key in a removed block", "Write from = file.a."),
        (from("file.a[\"k\"].path"), "Key in a removed block", "Write from = file.a."),
        (from("data.host.h"), "Data source in a removed block", "Delete this block"),
        (from("file.a.path"), "Invalid from", "Write from = file.a."),
        (from("\"file.a[1]\""), "Invalid from", "Write from = file.a."),
        (from("\"x ${1}\""), "Invalid from", "Write from = TYPE.NAME."),
        (from("file.a/part"), "Invalid from", "a composite goes with all its parts"),
        (from("file"), "Invalid from", "Write from = TYPE.NAME."),
        (from("var.x"), "Invalid from", "Write from = TYPE.NAME."),
        (from("[file.a]"), "Invalid from", "Write from = TYPE.NAME."),
        (from("fil.a"), "Unknown resource type", "Did you mean \"file\"?"),
        (from("file.a") + &from("file.a"), "Declared twice", "Delete one of the two."),
        (from("file.a") + "resource \"file\" \"a\" { path = \"a\" }\n", "Removed resource still exists", "Delete the resource block"),
        (
            from("file.a") + "resource \"file\" \"a\" {\n  count = 0\n  path = \"a\"\n}\n",
            "Removed resource still exists",
            "Delete the resource block",
        ),
        (from("file.a") + "output \"o\" { value = file.a.path }\n", "Unknown resource", "take this reference out"),
        (format!("removed {{\n  {KEEP}\n}}\n"), "Missing argument", "Write from = TYPE.NAME."),
        (format!("removed {{\n  from = file.a\n  to = file.b\n  {KEEP}\n}}\n"), "Unknown argument", "It may hold \"from\"."),
        (format!("removed {{\n  from = file.a\n  provisioner \"x\" {{}}\n  {KEEP}\n}}\n"), "Unknown block", "It may hold \"lifecycle\"."),
        (format!("removed \"x\" {{\n  from = file.a\n  {KEEP}\n}}\n"), "Wrong number of labels", "Write removed { ... }."),
        (
            "removed {\n  from = file.a\n  lifecycle { prevent_destroy = true }\n}\n".to_owned(),
            "Unknown argument",
            "It may hold \"destroy\".",
        ),
    ] {
        let (_, diagnostics, sources) = load_text(&text);
        let found = diagnostics.iter().find(|d| d.summary == summary && d.hints.iter().any(|h| h.contains(hint)));
        assert!(found.is_some_and(|d| d.is_error() && d.span.is_some()), "{summary}\n{text}\n{}", show(&sources, &diagnostics));
    }
    let (_, diagnostics, sources) = load_text("removed {\n  from = file.a\n  lifecycle { destroy = 1 + 1 }\n}\n");
    assert!(show(&sources, &diagnostics).contains("Literal needed"), "{}", show(&sources, &diagnostics));
}
