//! Strings, heredocs and template files.

use crate::support::{Known, evaluate, folded, load_all, load_text, show};

/// The value of `local.x`, which `text` defines.
fn check(text: &str, expected: &str) {
    let (config, diagnostics, sources) = load_text(&format!("locals {{\n  n = null\n  s = \"  pad\"\n  x = {text}\n}}\n"));
    assert!(diagnostics.is_empty(), "{text}\n{}", show(&sources, &diagnostics));
    let value = evaluate(&config, &Known::default(), "local.x").unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(folded(&value), format!("{expected:?}"), "{text}");
}

#[test]
fn heredocs_keep_their_text() {
    check("<<EOT\n  a\n    b\n  EOT", "  a\n    b\n");
    check("<<EOT\nEOT", "");
    check("<<EOT\n\nEOT", "\n");
    check("<<EOT\n\"q\" \\n $${x} %%{y} $x 100%\nEOT", "\"q\" \\n ${x} %{y} $x 100%\n");
    check("<<EOT\nx EOT\nEOTX\nEOT", "x EOT\nEOTX\n");
}

#[test]
fn flush_heredocs_lose_the_common_indentation() {
    check("<<-EOT\n    a\n      b\n    EOT", "a\n  b\n");
    check("<<-EOT\n      a\n    b\n        EOT", "  a\nb\n");
    check("<<-EOT\n    a\n\n    b\n    EOT", "a\n\nb\n");
    check("<<-EOT\n    a\n  \n    b\n    EOT", "a\n  \nb\n");
    check("<<-EOT\n    ${local.s}\n    b\n    EOT", "  pad\nb\n");
    check("<<-EOT\n${local.s}\n    b\n    EOT", "  pad\n    b\n");
    check("<<-EOT\n    a ${local.s}\n      b\n    EOT", "a   pad\n  b\n");
    check("<<-EOT\n\ta\n\t\tb\n\tEOT", "a\n\tb\n");
}

#[test]
fn strip_markers_take_the_neighbouring_space() {
    check("\"a ${~ \"x\" ~} b\"", "axb");
    check("<<-EOT\n    %{ for i in [1, 2] ~}\n    - ${i}\n    %{ endfor ~}\n    end\n    EOT", "    - 1\n    - 2\n    end\n");
    check("<<EOT\n%{ for i in [1, 2] ~}\n  - ${i}\n%{ endfor ~}\nend\nEOT", "  - 1\n  - 2\nend\n");
    check("<<EOT\na\n  %{~ if true }\nb\n%{ endif }\nEOT", "a\n\nb\n\n");
    check("\"%{ if false }a%{ else ~} b%{ endif }\"", "b");
    check("\"%{ for k, v in { b = 1, a = 2 } }${k}${v},%{ endfor }\"", "a2,b1,");
}

#[test]
fn line_breaks_inside_of_interpolations_are_fine() {
    check("\"x${\n  1\n}\"", "x1");
    check("\"\\u00e9\\U0001F600\\\"\"", "é😀\"");
}

#[test]
fn escapes_are_read_inside_of_directives() {
    check("\"%{ if true }x\\ty\\n\\\"q\\\"\\\\%{ endif }\"", "x\ty\n\"q\"\\");
    check("\"%{ if true ~}\\nb\\t%{~ endif }\"", "b");
    check("\"%{ if false }a%{ else }\\ny\\u00e9\\U0001F600%{ endif }\"", "\nyé😀");
    check("\"%{ for x in [\"a\", \"b\"] }$${x}\\\\${x}%%{\\t%{ endfor }\"", "${x}\\a%{\t${x}\\b%{\t");
    check("\"%{ for x in [1] }%{ if true }\\\"${\"\\\"${x}\"}\\\"%{ endif }%{ endfor }\"", "\"\"1\"");
    check("<<EOT\n%{ if true }a\\n%{ endif }\nEOT", "a\\n\n");
}

#[test]
fn text_is_normalised() {
    check("\"e\\u0301\"", "\u{e9}");
    check("\"e\u{301}\"", "\u{e9}");
    check("\"${1}e\u{301}\"", "1\u{e9}");
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    let (config, diagnostics, sources) = load_text("\u{feff}locals {\r\n  a = 1\r\n  b = [\r\n    2,\r\n  ]\r\n}\r\n");
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    assert_eq!(evaluate(&config, &Known::default(), " \n local.a + local.b[0] \n"), Ok(3i64.into()));
    let (_, diagnostics, sources) = load_text("\u{feff}locals {\n  a = foo\n}\n");
    assert!(show(&sources, &diagnostics).starts_with("error 2:7-10"), "places are those of the file");
}

#[test]
fn template_files_see_only_their_variables() {
    let files = [
        ("a.tftpl", "%{ for x in list ~}\n  - ${upper(x)}\n%{ endfor ~}\n"),
        ("b.tftpl", "${lst}"),
        ("c.tftpl", "${x"),
        ("d.tftpl", "${templatefile(\"d.tftpl\", { n = n + 1 })}"),
        ("e.tftpl", "${templatefile(\"a.tftpl\", { list = l })}!"),
        ("f.tftpl", "${nope(x)}"),
    ];
    let (config, _, _) = load_all(&[("main.kf.hcl", "locals {\n  t = \"<$${x}>\"\n  u = \"$${x}\"\n}\n")], &files, |_| {});
    let run = |text: &str| evaluate(&config, &Known::default(), text).map(|v| folded(&v));
    assert_eq!(run("templatefile(\"a.tftpl\", { list = [\"x\", \"y\"] })"), Ok("\"  - X\\n  - Y\\n\"".to_owned()));
    assert_eq!(run("templatefile(\"e.tftpl\", { l = [\"x\"] })"), Ok("\"  - X\\n!\"".to_owned()));
    assert_eq!(run("templatestring(local.t, { x = 1 })"), Ok("\"<1>\"".to_owned()));
    assert_eq!(run("try(templatefile(\"none\", {}), 0)"), Ok("0".to_owned()));
    assert_eq!(run("issensitive(templatestring(local.t, { x = 1, y = sensitive(2) }))"), Ok("true".to_owned()));
    assert_eq!(run("issensitive(templatestring(local.t, { x = 1, y = [sensitive(2)] }))"), Ok("true".to_owned()));
    for (text, part) in [
        ("templatefile(\"b.tftpl\", { list = [] })", "Did you mean \"list\"?"),
        ("templatefile(\"c.tftpl\", { x = 1 })", "Line 1 of the template"),
        ("templatefile(\"d.tftpl\", { n = 1 })", "16 levels"),
        ("templatefile(\"f.tftpl\", { x = 1 })", "no function \"nope\""),
        ("templatefile(\"none\", {})", "no such file"),
        ("templatestring(local.t, { x = 1, \"a b\" = 2 })", "\"a b\" can't be the name of a variable"),
        ("templatestring(local.t, { x = 1, \"a b\" = sensitive(2) })", "One of them (they are secret) can't be"),
        ("templatestring(local.u, { x = null })", "The result is null"),
        ("templatestring(local.u, { x = [1] })", "must be a string"),
    ] {
        let error = run(text).expect_err(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn a_mark_of_the_byte_order_is_no_part_of_a_template() {
    let files = [("one.tpl", "\u{feff}${x}"), ("two.tpl", "\u{feff}\u{feff}${x}")];
    let (config, diagnostics, sources) = load_all(&[("main.kf.hcl", "")], &files, |_| {});
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let length = |text: &str| evaluate(&config, &Known::default(), text).unwrap().as_i64();
    assert_eq!(length("length(templatefile(\"one.tpl\", { x = \"a\" }))"), Some(1));
    assert_eq!(length("length(templatefile(\"two.tpl\", { x = \"a\" }))"), Some(2), "as in Terraform, one is dropped");
    assert_eq!(length("length(file(\"one.tpl\"))"), Some(5));
}
