//! What the fuzzers kept, once more: each text that reached something new, and each that was a find.

// The fence against files is for the library.
#![allow(clippy::disallowed_methods)]

#[path = "../../fuzz/targets.rs"]
mod targets;

/// All texts of a target, each through what must hold of any text.
fn replay(name: &str, target: fn(&str)) {
    let path = format!("{}/fuzz/corpus/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let read = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let texts: Vec<String> = serde_json::from_str(&read).unwrap_or_else(|e| panic!("{path}: {e}"));
    assert!(texts.len() > 20, "{path} has {} texts", texts.len());
    for text in texts {
        // Whoever reads of a failure wants the text as well.
        let tried = std::panic::catch_unwind(|| target(&text));
        assert!(tried.is_ok(), "{name}: {text:?}");
    }
}

#[test]
fn kept_texts_of_fuzzers_pass() {
    replay("configuration", targets::configuration);
    replay("conversion", targets::conversion);
    replay("expression", targets::expression);
    replay("formatting", targets::formatting);
    replay("json", targets::json);
    replay("template", targets::template);
}

/// Finds of before. What takes long shows as a test that doesn't end.
#[test]
fn finds_of_fuzzers_stay_mended() {
    targets::expression("900790071992547*9007199524740993/99254740993*9007199524740993");
    targets::expression("yamldecode(\"a: \u{6dd}\")");
    targets::formatting("a = 1\r\r\nb = \"x\ry\"\n");
    targets::formatting("a = <<-EOT\n    x\n  EOT# the end\n");
    targets::configuration("locals {\n  a = 1 + # not ASCII: \u{e9}\n}\n");
    targets::configuration("locals {\n  a = <<E\nE\n  b = <<E\nE; x\nE\n}\n");
    targets::json("{\"locals\":{\"a\":\"${1+U%{UUU\u{2c2}\"}}");
    targets::json(&format!("{{\"locals\":{{\"a\":\"{}\"}}}}", "${3*3%{".to_owned() + &"3*3%{3/3*3%{".repeat(25)));
    targets::template(&("${3*3%{".to_owned() + &"3*3%{3/3*3%{".repeat(25)));
}
