//! The same configuration in both forms is the same tree, and places are those of the text.

use karmaform_model::{Catalog, FileId};

use super::super::parse::parse_body;
use super::parse_body as parse_json;

/// A tree without the places in it.
fn tree(parsed: &crate::syntax::parse::Parsed) -> String {
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let text = format!("{:?}", parsed.body);
    let spans = regex::Regex::new(r"Span \{[^}]*\}").unwrap();
    // Keys of objects may be names in HCL, and are texts in JSON, where each of them may be there once.
    let names = regex::Regex::new(r#"Name\(("[^"]*")\), Expr"#).unwrap();
    let text = names.replace_all(&spans.replace_all(&text, "_"), "Once(Expr { kind: Literal($1), span: _ }), Expr").into_owned();
    text.replace("(Expr(Expr {", "(Once(Expr {")
}

fn check(json: &str, hcl: &str) {
    let (json, hcl) = (parse_json(FileId(0), json, &Catalog::default()), parse_body(FileId(0), hcl));
    assert_eq!(tree(&json), tree(&hcl));
}

#[test]
fn both_forms_are_one_tree() {
    check(r#"{"resource": {"a": {"b": {"x": 1, "y": [true, null]}}}}"#, "resource \"a\" \"b\" {\n x = 1\n y = [true, null]\n}");
    check(r#"{"resource": [{"a": [{"b": {}}, {"c": {}}]}]}"#, "resource \"a\" \"b\" {}\nresource \"a\" \"c\" {}");
    check(
        r#"{"locals": {"x": "${var.a}", "y": "a ${b.c}!", "z": {"k": "v"}}}"#,
        "locals {\n x = \"${var.a}\"\n y = \"a ${b.c}!\"\n z = { k = \"v\" }\n}",
    );
    check(r#"{"locals": [{"x": 1}, {"y": -1.5e1}], "//": 1}"#, "locals {\n x = 1\n}\nlocals {\n y = -15\n}");
    check(r#"{"moved": [{"from": "a.b[\"k\"]", "to": "${c.d}"}]}"#, "moved {\n from = a.b[\"k\"]\n to = c.d\n}");
    check(
        r#"{"variable": {"v": {"type": "object({a = string})", "default": null}}}"#,
        "variable \"v\" {\n type = object({a = string})\n default = null\n}",
    );
    check(
        r#"{"data": {"a": {"b": {"depends_on": ["c.d"], "lifecycle": {"precondition": [{"condition": "${x.y}"}]}}}}}"#,
        "data \"a\" \"b\" {\n depends_on = [c.d]\n lifecycle {\n precondition {\n condition = \"${x.y}\"\n}\n}\n}",
    );
    check(
        r#"{"resource": {"a": {"b": {"lifecycle": {"ignore_changes": "all", "ignore_drift": ["x", "m[*]/u"]}}}}}"#,
        "resource \"a\" \"b\" {\n lifecycle {\n ignore_changes = all\n ignore_drift = [x, \"m[*]/u\"]\n}\n}",
    );
    check(
        r#"{"check": {"c": {"data": {"a": {"b": {"x": 1}}}, "assert": {}}}}"#,
        "check \"c\" {\n data \"a\" \"b\" {\n x = 1\n}\n assert {}\n}",
    );
    check(r#"{"karmaform": {"backend": {"s3": {"bucket": "b"}}}}"#, "karmaform {\n backend \"s3\" {\n bucket = \"b\"\n}\n}");
    check(r#"{"output": {"o": {"value": "$${x} %%{y}"}}}"#, "output \"o\" {\n value = \"$${x} %%{y}\"\n}");
    check(r#"{"output": {"o": null, "p": {"value": "\u0022"}}}"#, "output \"p\" {\n value = \"\\\"\"\n}");
}

/// What is marked of a text: `summary: text at the place`.
fn marked(json: &str) -> Vec<String> {
    let parsed = parse_json(FileId(0), json, &Catalog::default());
    assert!(parsed.broken);
    let at = |d: &karmaform_model::Diagnostic| d.span.map(|s| json[s.start as usize..s.end as usize].to_owned()).unwrap_or_default();
    parsed.diagnostics.iter().map(|d| format!("{}: {}", d.summary, at(d))).collect()
}

#[test]
fn places_are_those_of_the_text() {
    assert_eq!(marked(r#"{"output": 1}"#), ["Object needed: 1"]);
    assert_eq!(marked("null"), ["Object needed: null"]);
    assert_eq!(marked("[{}, null]"), ["Object needed: null"]);
    assert_eq!(marked(r#"{"output": null}"#), ["Object needed: null"]);
    assert_eq!(marked(r#"{"resource": {"a": [null]}}"#), ["Object needed: null"]);
    assert_eq!(marked("\u{feff}{\"output\": 1}"), ["Object needed: 1"]);
    assert_eq!(marked(r#"{"output": {"o": {"value": 1, "value": 2}}}"#), [r#"Key written twice: "value""#]);
    assert_eq!(marked(r#"{"output": {"o": {"depends_on": ["a..b"]}}}"#).len(), 1);
    let json = "{\"output\": {\"o\": {\"value\": \"\\u00e9\\n ${a.b} ${\\\"k\\\"}\"}}}";
    let parsed = parse_json(FileId(0), json, &Catalog::default());
    let crate::syntax::ExprKind::Template(parts) = &parsed.body.blocks[0].body.attributes[0].expr.kind else { panic!() };
    let places: Vec<_> = parts
        .iter()
        .filter_map(|p| {
            if let crate::syntax::Part::Interpolation(e) = p { Some(&json[e.span.start as usize..e.span.end as usize]) } else { None }
        })
        .collect();
    assert_eq!(places, ["a.b", "\\\"k\\\""]);
}

#[test]
fn a_comment_in_a_value_and_a_default_with_an_expression_are_taken_as_they_are() {
    check(r#"{"output": {"o": {"//": "c", "value": {"//": "c", "a": 1}}}}"#, "output \"o\" {\n value = {\"//\" = \"c\", \"a\" = 1}\n}");
    check(r#"{"variable": {"v": {"default": {"a": "${b}"}}}}"#, "variable \"v\" {\n default = {\"a\" = \"$${b}\"}\n}");
}

#[test]
fn values_of_variables_are_taken_as_they_are() {
    let parsed = super::parse_values(FileId(0), r#"{"a": "${b}", "c": {"${d}": "%{"}}"#, &Catalog::default());
    assert!(parsed.diagnostics.is_empty() && parsed.body.blocks.is_empty());
    let text = format!("{:?}", parsed.body);
    assert!(!text.contains("Template") && text.contains("\"${d}\""), "{text}");
}

#[test]
fn tests_have_blocks_and_references_where_they_mean_some() {
    let json = r#"{
        "variables": {"n": "${upper(\"x\")}", "o": {"a": 1}},
        "mock_provider": {"p": {"override_during": "plan", "mock_data": {"d": {"defaults": {"id": "x"}}}}},
        "override_resource": [{"target": "a.b[0]", "values": {"id": "a.b"}}, {"target": "c.d"}],
        "run": {"r": {"command": "plan", "expect_failures": ["var.n"], "assert": {"condition": "${var.n == 1}", "error_message": "No."}}}
    }"#;
    let parsed = super::parse_tests(FileId(0), json, &Catalog::default());
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let kinds: Vec<_> = parsed.body.blocks.iter().map(|b| (b.kind.as_str(), b.labels.len(), b.body.blocks.len())).collect();
    let wanted = [("variables", 0, 0), ("mock_provider", 1, 1), ("override_resource", 0, 0), ("override_resource", 0, 0), ("run", 1, 1)];
    assert_eq!(kinds, wanted);
    let is_reference = |block: usize, name: &str| {
        let kind = &parsed.body.blocks[block].body.attribute(name).unwrap().expr.kind;
        matches!(kind, crate::syntax::ExprKind::Traversal(..) | crate::syntax::ExprKind::Name(_))
    };
    assert!(is_reference(2, "target") && is_reference(4, "command") && is_reference(1, "override_during") && !is_reference(2, "values"));
}

#[test]
fn damaged_text_is_refused_and_never_a_panic() {
    let text = r#"{"a": {"b": ["${c.d[\"é\"]}", -1.5e3, true, null, "\u00e9\ud83d\ude00"]}, "variable": {"x": {"type": "map(string)"}}}"#;
    for end in (0..text.len()).filter(|n| text.is_char_boundary(*n)) {
        assert!(parse_json(FileId(0), &text[..end], &Catalog::default()).broken, "{}", &text[..end]);
        for put in ["\"", "\\", "{", "]", "${", "\u{0}", "é", ","] {
            let changed = format!("{}{put}{}", &text[..end], text.get(end + 1..).unwrap_or_default());
            let parsed = parse_json(FileId(0), &changed, &Catalog::default());
            assert_eq!(parsed.broken, parsed.diagnostics.has_errors(), "{changed}");
        }
    }
}
