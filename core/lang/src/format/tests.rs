//! `fmt`: what it does to texts, and what must hold for every text.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::format;
use super::lexer::{Kind, Token, lex};
use super::rewrite::rewrite;

#[track_caller]
fn check(text: &str, expected: &str) {
    let formatted = format(text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    assert_eq!(formatted, expected, "\n--- from\n{text}\n--- came\n{formatted}\n--- expected\n{expected}");
    holds(text);
}

#[track_caller]
fn check_error(text: &str, line: usize, message: &str) {
    let error = format(text).expect_err(text);
    assert_eq!((error.line, error.message.as_str()), (line, message), "{text}");
}

/// Kinds and texts, without spaces.
fn meaning(tokens: Vec<Token>) -> Vec<(Kind, String)> {
    rewrite(tokens).into_iter().map(|t| (t.kind, t.text)).collect()
}

/// What must hold for every text: a second time changes nothing, no token is lost, and spaces between tokens don't matter.
#[track_caller]
fn holds(text: &str) {
    let text = text.replace("\r\n", "\n");
    let Ok(formatted) = format(&text) else { return };
    assert_eq!(format(&formatted).as_deref(), Ok(formatted.as_str()), "a second time changes\n{text}");
    assert!(text.lines().count() >= formatted.lines().count(), "lines were added to\n{text}");
    let tokens = lex(&text).expect("it was formatted");
    assert_eq!(meaning(lex(&formatted).expect("it lexes")), meaning(tokens.clone()), "the meaning changed of\n{text}");
    for seed in 1..4u32 {
        let mangled = mangle(&tokens, seed);
        assert_eq!(format(&mangled).as_deref(), Ok(formatted.as_str()), "other spaces matter in\n{mangled}");
    }
}

/// The same tokens with other spaces before them, wherever those are no content.
fn mangle(tokens: &[Token], seed: u32) -> String {
    let mut random = seed;
    let mut out = String::new();
    for token in tokens {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let fixed = matches!(token.kind, Kind::Literal | Kind::HeredocText | Kind::HeredocClose | Kind::QuoteClose);
        let template_start = token.kind == Kind::TemplateOpen;
        if fixed || template_start {
            out.push_str(&" ".repeat(token.spaces));
        } else {
            let least = usize::from(token.spaces > 0);
            out.push_str(&" ".repeat(least * (1 + (random >> 24) as usize % 3)));
        }
        out.push_str(&token.text);
    }
    out
}

#[test]
fn tokens_are_spaced() {
    check("a=1\n", "a = 1\n");
    check("a = [ 1,2 ]\n", "a = [1, 2]\n");
    check("a = foo ( a ,b... )\n", "a = foo(a, b...)\n");
    check("a = -  1*( - 1)\n", "a = -1 * (-1)\n");
    check("a = ! a&&b||c==d\n", "a = !a && b || c == d\n");
    check("a = x[ 0 ] [ \"a\" ].b . c\n", "a = x[0][\"a\"].b.c\n");
    check("a = a.*.b[*].c\n", "a = a.*.b[*].c\n");
    check("a = b ? c:d\n", "a = b ? c : d\n");
    check("a = {a:1,b =2}\n", "a = { a : 1, b = 2 }\n");
    check("a = { }\nb {\n}\nc { }\n", "a = {}\nb {\n}\nc {}\n");
    check("a = {for k,v in x:k=>-v}\n", "a = { for k, v in x : k => - v }\n");
    check("a = \"x${-b}${~-c}\"\n", "a = \"x${- b}${~- c}\"\n");
    check("a = [x,/*c*/-x,-x,/* d */!x]\n", "a = [x, /*c*/ - x, -x, /* d */ !x]\n");
    check("a = /* c */ -x\n\nb = [1, # d\n-x]\n", "a = /* c */ - x\n\nb = [1, # d\n-x]\n");
    check("a = [for x in [1]:x if (x>1)&&[1]==x]\n", "a = [for x in [1] : x if(x > 1) && [1] == x]\n");
    check("a = [for x in (y) : x if [1] == x]\n", "a = [for x in(y) : x if[1] == x]\n");
    check("a = [for x in {b=1}:x if !x]\n", "a = [for x in { b = 1 } : x if !x]\n");
    check("a = b -c\nd = b-c\n", "a = b - c\nd = b-c\n");
    check("a = provider::x::f(1)\n", "a = provider::x::f(1)\n");
    check("a = 1e-3+a.0.b\n", "a = 1e-3 + a.0.b\n");
    check("a = x[null]\n", "a = x[null]\n");
}

#[test]
fn templates_are_spaced_inside_only() {
    check("a = \"%{ if x }y%{ endif }${ a+b }  ${~ c ~}\"\n", "a = \"%{if x}y%{endif}${a + b}  ${~c~}\"\n");
    check("a = [\"${ {a=1} }\"]\n", "a = [\"${ { a = 1 } }\"]\n");
    check("a = \"$${ a+b } %%{ x } \\\" ${b}\"\n", "a = \"$${ a+b } %%{ x } \\\" ${b}\"\n");
    check("a = \"${x}${ y }\"\n", "a = \"${x}${y}\"\n");
}

/// At the end of a line they go.
#[test]
fn spaces_at_the_end_of_a_text_and_behind_a_marker_stay() {
    for (text, expected) in [
        ("a=1  ", "a = 1  "),
        ("b {\na=1\n}\t", "b {\n  a = 1\n} "),
        ("a=1 # c ", "a = 1 # c "),
        ("a=1\n ", "a = 1\n "),
        (" ", " "),
        ("a=[<<E\nx\nE  \n,1  \n]\n", "a = [<<E\nx\nE  \n  , 1\n]\n"),
    ] {
        assert_eq!(format(text).as_deref(), Ok(expected));
        assert_eq!(format(expected).as_deref(), Ok(expected), "twice");
    }
}

#[test]
fn lines_are_indented() {
    check("a {\nb {\nc = 1\n}\n   }\n", "a {\n  b {\n    c = 1\n  }\n}\n");
    check("q = [1, 2,\n3]\n", "q = [1, 2,\n3]\n");
    check("s = foo(a, {\nx = 1\n}, [\n1,\n2\n])\n", "s = foo(a, {\n  x = 1\n  }, [\n  1,\n  2\n])\n");
    check("y = [\n{ a = 1 },\n{\nbb = 2\n}]\n", "y = [\n  { a = 1 },\n  {\n    bb = 2\n}]\n");
    check("\n   \n\ta = 1   \n\n", "\n\na = 1\n\n");
    check("a {\r\nb = 1\r\n}\r\n", "a {\r\n  b = 1\r\n}\r\n");
    check("a=1\nb=<<E\r\nx\r\nE\r\n", "a = 1\nb = <<E\r\nx\r\nE\r\n");
    check("a = \"${[\r\n1\r\n]\r\n}\"\r\n", "a = ([\r\n  1\r\n])\r\n");
    check("a = \"${(b ?\n1 :\n2)}\"\n", "a = (b ?\n  1 :\n2)\n");
    assert_eq!(format("\u{feff}a=1").as_deref(), Ok("a = 1"));
    check("", "");
}

#[test]
fn neighbours_are_aligned() {
    check("a = 1\nbbb = 2 # c\ncc = 33 # d\n\nd = 4\n", "a   = 1\nbbb = 2  # c\ncc  = 33 # d\n\nd = 4\n");
    check("a = 1\n# x\nbb = 2\n", "a = 1\n# x\nbb = 2\n");
    check("a = {\n}\nbbb = 1\n", "a = {\n}\nbbb = 1\n");
    check("é = 1\nbb = 2\n", "é  = 1\nbb = 2\n");
    check("a = 1 /* x */\nbb = 2\n", "a  = 1 /* x */\nbb = 2\n");
    check("a = <<X\nX\nbbb = 1\n", "a   = <<X\nX\nbbb = 1\n");
    check("{ # a\n}\nx=1// b  \n", "{ # a\n}\nx = 1 // b  \n");
    check("a = { # x\n} /* y */", "a = { # x\n}     /* y */");
    check("a = 1 # x\nbcd = 2/* y */", "a   = 1 # x\nbcd = 2 /* y */");
    check("a = 1 # x\n/* y */", "a = 1 # x\n/* y */");
}

#[test]
fn texts_of_heredocs_and_comments_are_left_alone() {
    check("o = <<-EOT\n    hello ${ a+b }\n  ${a}\n  $${ x }\n     EOT\n", "o = <<-EOT\n    hello ${a + b}\n  ${a}\n  $${ x }\n     EOT\n");
    check("b {\np = f(<<EOT\n  x  \n# y\nEOT\n)\n}\n", "b {\n  p = f(<<EOT\n  x  \n# y\nEOT\n  )\n}\n");
    check("  /* multi\n     line */\na = 1 /* x */ + 2\n", "/* multi\n     line */\na = 1 /* x */ + 2\n");
    check("/*///// b=[ 1 ]; */\na=1/*//*/\n", "/*///// b=[ 1 ]; */\na = 1 /*//*/\n");
    check("/*/ b=[ 1 ]; */ a=1\n", "/*/ b=[ 1 ]; */ a = 1\n");
    check("a = <<E\nE", "a = <<E\nE");
    check("a = 1 << 2\n", "a = 1 < < 2\n");
}

#[test]
fn lines_of_interpolations_in_heredocs_are_laid_out_as_in_terraform() {
    check("a = <<E\n${ {\n x = 1\n} }\nE\n", "a = <<E\n${ {\nx = 1\n} }\nE\n");
    check(
        "b {\na = <<E\n  x ${f(\n1,\n2\n)} y\n z\nE\nc = 1\n}\nd {\ne=1\n}\n",
        "b {\n  a = <<E\n  x ${f(\n  1,\n  2\n)} y\n z\nE\nc = 1\n}\nd {\n  e = 1\n}\n",
    );
    check(
        "b {\na = <<E\n  x ${ {\na=1\n    bbb=2 # c\n   c = [\n1]\n} } y\nE\nd = 1\nee = 1\n}\n",
        "b {\n  a = <<E\n  x ${ {\n  a   = 1\n  bbb = 2 # c\n  c = [\n  1]\n} } y\nE\nd  = 1\nee = 1\n}\n",
    );
    check(
        "b {\na = [<<E\n%{ if x ~}\n y\n%{ endif ~}\n${f(\n [1,\n2])}\nE\n,\n2\n]\nc {\nd=1\n}\n}\n",
        "b {\n  a = [<<E\n%{if x~}\n y\n%{endif~}\n${f(\n    [1,\n2])}\nE\n,\n2\n]\nc {\n  d = 1\n}\n}\n",
    );
}

/// What ends a line of the text counts as a column of the line that the interpolations around make of it.
#[test]
fn comments_in_interpolations_of_heredocs_are_aligned() {
    check(
        "a = [<<E\n%{ if x\n}yy%{ endif } v\n${{ # c\nb = { # c\n} # c\n}}\nE\n]\n",
        "a = [<<E\n%{if x\n  }yy%{endif} v\n${ { # c\n    b = {            # c\n    }                # c\n} }\nE\n]\n",
    );
}

#[test]
fn old_ways_are_rewritten() {
    check("resource terraform_data \"x\" {}\n", "resource \"terraform_data\" \"x\" {}\n");
    check("a = \"${ foo }\"\n", "a = foo\n");
    check("a = \"${foo(\"${b}\")}\"\n", "a = foo(\"${b}\")\n");
    check("a = \"${\n foo\n }\"\n", "a = foo\n");
    check("a = \"${b ?\n c :\n d}\"\n", "a = (b ?\n  c :\nd)\n");
    check("a = \"${b}\" /* x */ # y\n", "a = b /* x */ # y\n");
    check("a /* x */ = /* y */ \"${b}\"\n", "a /* x */ = /* y */ b\n");
    check("a = \"${/* x */ b + /* y */ c /* z */}\"\n", "a = /* x */ b + /* y */ c /* z */\n");
    check("a = \"${b # x\n}\"\n", "a = \"${b # x\n}\"\n");
    check("a = \"${b(c, # x\n d # y\n)}\"\n", "a = b(c, # x\n  d      # y\n)\n");
    check("a = \"${b(\n  c, # x\n  d\n)}\"\nb  = 1 # x\n", "a = (b(\n  c, # x\n  d\n))\nb = 1 # x\n");
    check("a = \"${b(/* x\n */c)}\"\n", "a = b(/* x\n */ c)\n");
    check("a = \"${\nb ? [ # x\nc\n] : []\n}\"\n", "a = (b ? [ # x\n  c\n] : [])\n");
    check("a = \"${b(\nc) # x\n}\"\n", "a = (b(\n  c) # x\n)\n");
    check("variable \"x\" {\n  type /* x */ = \"string\"\n}\n", "variable \"x\" {\n  type /* x */ = string\n}\n");
    check("a = [\"${b}\"]\n", "a = [\"${b}\"]\n");
    check("a = \"${b}${c}\"\nd = \"${b}x\"\ne = \"${~ b }\"\n", "a = \"${b}${c}\"\nd = \"${b}x\"\ne = b\n");
    check("a = \"${b}\" == \"${c}\"\n", "a = \"${b}\" == \"${c}\"\n");
    check("variable \"x\" {\n  type = \"list\"\n}\n", "variable \"x\" {\n  type = list(string)\n}\n");
    check("variable \"x\" { type = list }\n", "variable \"x\" { type = list(any) }\n");
    check("variable \"x\" { type = \"string\" }\n", "variable \"x\" { type = string }\n");
    check("variable \"x\" { type = \"list(string)\" }\n", "variable \"x\" { type = \"list(string)\" }\n");
    check("block \"x\" { type = \"list\" }\n", "block \"x\" { type = \"list\" }\n");
}

#[test]
fn broken_texts_are_refused() {
    check_error("a = [\n1\n", 1, "this `[` is never closed");
    check_error("a = {\n]\n", 2, "this `]` does not close the `{` of line 1");
    check_error("\n}\n", 2, "this `}` closes nothing");
    check_error("a = \"x\n", 1, "a string must end on the line it begins on; write \\n for a line break");
    check_error("a = \"x", 1, "a string is never closed");
    check_error("a = \"${x", 1, "an interpolation in a string is never closed");
    check_error("a = \"${x]\"", 1, "this `]` does not close the interpolation of line 1");
    check_error("a = <<EOT\nx\n", 1, "the heredoc `EOT` is never closed");
    check_error("a = 1 /* x\n", 1, "a comment is never closed");
    check_error("a = 1 /*/\n", 1, "a comment is never closed");
    check_error("a = 'x'\n", 1, "the character '\\'' can't stand here");
}

#[test]
fn any_bytes_do_no_harm() {
    let parts = [
        "a", "\"", "${", "%{", "}", "{", "[", "]", "(", ")", "\n", " ", "=", "<<E\n", "E\n", "\\", "#", "/*", "*/", "é", "1", ".", "~",
        "$", "-", ",",
    ];
    let mut random = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(parts[(random >> 33) as usize % parts.len()]);
        }
        let Ok(formatted) = format(&text) else { continue };
        assert_eq!(format(&formatted).as_deref(), Ok(formatted.as_str()), "a second time changes\n{text}");
        let tokens = lex(&text).expect("it was formatted");
        assert_eq!(meaning(lex(&formatted).expect("it lexes")), meaning(tokens), "the meaning changed of\n{text}");
    }
}

#[test]
fn a_long_text_takes_linear_time() {
    let block = "resource \"a\" \"b\" {\n  a = 1 # c\n  b = { x = [1, 2], y = \"${z}\" }\n}\n";
    assert!(format(&block.repeat(5_000)).is_ok());
    let deep = format!("a = {}{}\n", "[".repeat(50_000), "]".repeat(50_000));
    assert!(format(&deep).is_ok());
}

#[allow(clippy::disallowed_methods)]
fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            files_below(&entry, found);
        } else if entry.extension().is_some_and(|e| ["hcl", "hcldec", "t", "tf"].iter().any(|x| e == *x)) {
            found.push(entry);
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods)]
fn the_spec_suite_keeps_its_meaning() {
    let Some(data) = std::env::var_os("KARMAFORM_SHARED_DATA") else {
        let _ = writeln!(std::io::stderr(), "SKIPPED the_spec_suite_keeps_its_meaning: KARMAFORM_SHARED_DATA is not set");
        return;
    };
    let mut files = Vec::new();
    files_below(&Path::new(&data).join("hcl"), &mut files);
    assert!(files.len() > 40, "the suite has more than {} files", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        holds(&text);
    }
}
