//! What is found in balanced and unbalanced texts.

use super::*;

fn check(text: &str, items: &[&str], problems: &[&str]) {
    let found = scan(text);
    assert_eq!(found.items.iter().map(|r| &text[r.clone()]).collect::<Vec<_>>(), items, "{text:?}");
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let seen: Vec<_> = found.problems.iter().map(|p| format!("{:?} line {} {:?}", p.kind, line(p.at.start), &text[p.at.clone()])).collect();
    assert_eq!(seen, problems, "{text:?}");
}

#[test]
fn items_are_found_in_balanced_texts() {
    check("# c\na = 1\nb {\n x = \"}\"\n}\n", &["a = 1", "b {\n x = \"}\"\n}"], &[]);
    check("a = <<EOT\n }\nEOT\nb = 2", &["a = <<EOT\n }\nEOT", "b = 2"], &[]);
    check("a = \"x${{ a = \"}\" }}y\"\n", &["a = \"x${{ a = \"}\" }}y\""], &[]);
    check("a = \"$${\" # {\n/* { */ b = 1\n", &["a = \"$${\" # {", "b = 1"], &[]);
    check("run \"a\" {\nvariables {\n}\nmodule {\n}\n}\n", &["run \"a\" {\nvariables {\n}\nmodule {\n}\n}"], &[]);
    check("a = <<-EOT\n  EOTX\n  ${x}\n  EOT\n", &["a = <<-EOT\n  EOTX\n  ${x}\n  EOT"], &[]);
}

#[test]
fn the_unclosed_one_is_blamed_and_the_rest_goes_on() {
    check("a {\n  b = [1, 2\n}\nc = 1\n", &["c = 1"], &["Bracket(91) line 2 \"[\""]);
    check(
        "resource \"a\" \"b\" {\n  x = {\n    y = 1\n}\ndata \"c\" \"d\" {\n}\n",
        &["data \"c\" \"d\" {\n}"],
        &["Bracket(123) line 2 \"{\""],
    );
    check("a = \"x\nb = 1\n", &["b = 1"], &["Quote line 1 \"\\\"\""]);
    check("a = \"x${foo\"\nb = 1\n", &["b = 1"], &["Interpolation line 1 \"${\""]);
    check("a = <<EOT\n x\nresource \"x\" \"y\" {\n}\n", &["resource \"x\" \"y\" {\n}"], &["Heredoc line 1 \"<<EOT\""]);
    check("a = 1 }\nb = 2\n", &["b = 2"], &["Closer(125) line 1 \"}\""]);
    check("a = 1 /* x\nb = 2\n", &[], &["Comment line 1 \"/*\""]);
}

#[test]
fn what_goes_on_is_told_from_what_is_wrong() {
    let unfinished = |text: &str| scan(&format!("{text}\n")).unfinished;
    for text in ["[1,", "{ a = \"}\"", "upper(\"a\",", "\"${upper(", "<<EOT", "<<EOT\nhi", "f(<<EOT\nhi\nEOT"] {
        assert!(unfinished(text), "{text}");
    }
    for text in ["[1]", "\"[\"", "]", "\"${upper(\"(\")}\"", "\"abc", "\"${f(\"x", "[1)", "<<EOT\nhi\nEOT", "1 # ("] {
        assert!(!unfinished(text), "{text}");
    }
}
