//! What must hold of any text, of whatever it is made. Run by the fuzzers, and over what they kept by the tests.

use karmaform_lang::{Config, Evaluator, Sources, format, render, syntax_errors, validate};
use karmaform_model::{Diagnostics, FileId, convert};

use crate::support::{Known, evaluate, load_all};

/// Files that functions may read.
const FILES: [(&str, &str); 2] = [("plain", "some text\n"), ("names", "${join(\", \", names)}%{ if on } on%{ endif }\n")];

/// What expressions and templates may refer to.
const AROUND: &str = r#"
variable "secret" {
  default   = "s3cret"
  sensitive = true
}
variable "short" {
  default   = ["a"]
  ephemeral = true
}
locals {
  a = [1, { b = "x" }, null, true]
  m = { k = "v", "k 2" = 0.5 }
  s = toset(["x", "y"])
  n = -12345678901234567890
}
resource "terraform_data" "r" {
  for_each = { one = 1, two = "2" }
  input    = each.value
}
"#;

/// A file of a configuration: read, checked, and what can be told of it evaluated.
pub(crate) fn configuration(text: &str) {
    all_of(&[("main.kf.hcl", text)]);
}

/// The same as JSON.
pub(crate) fn json(text: &str) {
    all_of(&[("main.kf.json", text)]);
}

fn all_of(texts: &[(&str, &str)]) {
    let (config, diagnostics, sources) = load_all(texts, &FILES, |_| {});
    can_be_drawn(&diagnostics, &sources);
    if diagnostics.has_errors() {
        return;
    }
    can_be_drawn(&validate(&config), &sources);
    let known = Known::default();
    let evaluator = Evaluator::new(&config, &known);
    for address in config.instances() {
        can_be_drawn(&evaluator.arguments(&address).1, &sources);
    }
    for name in config.outputs.keys() {
        can_be_drawn(&evaluator.output(name).1, &sources);
    }
}

/// Every place is in its text, and the parser gave up nowhere.
fn can_be_drawn(diagnostics: &Diagnostics, sources: &Sources) {
    for diagnostic in diagnostics.iter() {
        assert_ne!(diagnostic.summary, "Text could not be read", "{diagnostic:?}");
        let labels = diagnostic.labels.iter().map(|(span, _)| *span);
        for span in diagnostic.span.into_iter().chain(labels) {
            let text = &sources.get(span.file).text;
            let is_place = |at: u32| text.is_char_boundary(at as usize);
            assert!(span.start <= span.end && is_place(span.start) && is_place(span.end), "{diagnostic:?}");
            sources.position(span.file, span.start);
        }
    }
}

/// What `fmt` makes of a file is a file like it, and `fmt` leaves it as it is.
pub(crate) fn formatting(text: &str) {
    let is_valid = syntax_errors(FileId(0), text).is_empty();
    let Ok(once) = format(text) else {
        assert!(!is_valid, "valid, and refused by fmt");
        return;
    };
    if is_valid {
        let wrong = syntax_errors(FileId(0), &once);
        assert!(wrong.is_empty(), "fmt broke it: {wrong:?}\n{once}");
        assert_eq!(format(&once).as_deref(), Ok(once.as_str()));
    }
}

/// An expression, as typed into the console. What is shown of its value is no other expression: read again, it is shown like that, but for nulls that
/// have a type, texts of several lines and what looks like a template.
pub(crate) fn expression(text: &str) {
    let config = around();
    let known = Known::default();
    let Ok(value) = evaluate(&config, &known, text) else { return };
    let shown = render(&value);
    let is_plain = value.is_wholly_known() && !value.contains_secret() && !value.contains_ephemeral() && !value.contains_infinity();
    if is_plain && !["null /*", "<<", "${", "%{"].iter().any(|word| shown.contains(word)) {
        let again = evaluate(&config, &known, &shown).map(|again| render(&again));
        assert!(again.is_err() || again.as_ref() == Ok(&shown), "{shown}\n{again:?}");
    }
}

/// A template file.
pub(crate) fn template(text: &str) {
    let given = "{ names = [\"a\", \"b\"], on = true, nothing = null, m = { k = 1.5 }, secret = var.secret }";
    let config = in_files(&[("t.tpl", text)]);
    let _ = evaluate(&config, &Known::default(), &format!("templatefile(\"t.tpl\", {given})"));
}

/// A type in the first line and a value in the others: a converted value is of its type, and converted again it is what it was.
pub(crate) fn conversion(text: &str) {
    let Some((ty, value)) = text.split_once('\n') else { return };
    let text = format!("variable \"v\" {{\n  type = {ty}\n  default = {value}\n}}\n");
    let (config, diagnostics, sources) = load_all(&[("main.kf.hcl", &text)], &[], |_| {});
    can_be_drawn(&diagnostics, &sources);
    let Some(variable) = config.variables.get("v").filter(|_| !diagnostics.has_errors()) else { return };
    assert_eq!(convert(&variable.value, &variable.ty).as_ref(), Ok(&variable.value), "{:?}", variable.ty);
}

fn around() -> Config {
    in_files(&FILES)
}

fn in_files(files: &[(&str, &str)]) -> Config {
    let (config, diagnostics, _) = load_all(&[("main.kf.hcl", AROUND)], files, |_| {});
    assert!(!diagnostics.has_errors());
    config
}
