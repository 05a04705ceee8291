//! `check` blocks, and what became of other conditions.

use karmaform_lang::{Evaluator, Resolver, Verdict};
use karmaform_model::{Address, CheckStatus, Type, Value};

use crate::support::{load_text, show};

/// One file is there, and nothing else is known.
struct One;

impl Resolver for One {
    fn instance(&self, address: &Address) -> Value {
        match address.to_string().as_str() {
            "file.a" => Value::object([("path", "here".into())]),
            "file.a[\"x\"]" => Value::object([("path", "here".into()), ("size", Value::unknown(Type::Number))]),
            _ => Value::unknown(Type::Any),
        }
    }
}

fn said(condition: &str) -> (Vec<Verdict>, Vec<String>) {
    let text = format!(
        "variable \"secret\" {{\n  default   = \"hunter2\"\n  sensitive = true\n}}\nresource \"file\" \"a\" {{ path = \"x\" }}\n\
         resource \"file\" \"b\" {{ path = \"y\" }}\n\
         check \"c\" {{\n assert {{\n condition = {condition}\n error_message = \"no: ${{file.a.path}}\"\n }}\n}}\n"
    );
    let (config, diagnostics, sources) = load_text(&text);
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let evaluator = Evaluator::new(&config, &One);
    let [check] = <[_; 1]>::try_from(evaluator.check_blocks()).unwrap();
    assert_eq!(check.address.to_string(), "check.c");
    assert!(config.check(&check.address).is_some());
    assert!(!check.wrong.has_errors(), "what is wrong with a check only warns");
    let wrong = check.wrong.into_iter().map(|d| d.summary).collect();
    (check.asserts.into_iter().map(|(verdict, _)| verdict).collect(), wrong)
}

#[test]
fn what_is_asserted_is_judged_as_far_as_it_is_known() {
    assert_eq!(said("file.a.path == \"here\""), (vec![Verdict::Holds], vec![]));
    assert_eq!(said("file.a.path == \"there\""), (vec![Verdict::Broken("no: here".into())], vec![]));
    assert_eq!(said("file.b.path == \"here\""), (vec![Verdict::Unknown], vec![]));
    assert_eq!(said("tonumber(file.a.path) > 1").0, [Verdict::Wrong]);
    assert_eq!(said("tonumber(file.a.path) > 1").1.len(), 1);
    assert_eq!(said("var.secret == \"x\"").0, [Verdict::Broken("no: here".into())]);
}

#[test]
fn conditions_of_all_kinds_are_gathered() {
    let text = "variable \"v\" {\n default = 1\n validation {\n condition = var.v < 2\n error_message = \"x\"\n }\n}\n\
         resource \"file\" \"a\" {\n count = 2\n path = \"x\"\n lifecycle {\n precondition {\n condition = file.b.path != \"\"\n error_message = \"x\"\n }\n }\n}\n\
         resource \"file\" \"b\" { path = \"y\" }\n\
         output \"o\" {\n value = 1\n precondition {\n condition = var.v == 1\n error_message = \"x\"\n }\n}\n";
    let (config, diagnostics, sources) = load_text(text);
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let all = Evaluator::new(&config, &One).conditions();
    let told: Vec<_> = all.iter().map(|c| (c.address.to_string(), c.status)).collect();
    let expected = [
        ("file.a[0]", CheckStatus::Unknown),
        ("file.a[1]", CheckStatus::Unknown),
        ("output.o", CheckStatus::Pass),
        ("var.v", CheckStatus::Pass),
    ];
    assert_eq!(told, expected.map(|(a, s)| (a.to_owned(), s)));
}

#[test]
fn a_postcondition_knows_the_instance_that_it_is_about() {
    let text = |condition: &str| {
        format!(
            "resource \"file\" \"a\" {{\n for_each = toset([\"x\"])\n path = each.key\n lifecycle {{\n postcondition {{\n condition = {condition}\n \
             error_message = \"${{self.path}} of ${{each.key}}\"\n }}\n }}\n}}\n"
        )
    };
    let said = |condition: &str| {
        let (config, diagnostics, sources) = load_text(&text(condition));
        assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
        let evaluator = Evaluator::new(&config, &One);
        let address = "file.a[\"x\"]".parse().unwrap();
        let told: Vec<_> = evaluator.postconditions(&address).into_iter().map(|d| (d.summary, d.detail)).collect();
        assert!(evaluator.preconditions(&address).is_empty(), "it is asked when the instance is there");
        (told, evaluator.conditions()[0].status)
    };
    let broken = ("Postcondition failed".to_owned(), "here of x".to_owned());
    assert_eq!(said("self.path == \"here\""), (vec![], CheckStatus::Pass));
    assert_eq!(said("self.path == each.key"), (vec![broken], CheckStatus::Fail));
    assert_eq!(said("self.size == 1"), (vec![], CheckStatus::Unknown));
    assert_eq!(said("tonumber(self.path) == 1").1, CheckStatus::Error);
}
