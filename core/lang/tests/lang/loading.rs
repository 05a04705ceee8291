//! What a configuration loads to: references, instances, arguments, outputs, variables.

use karmaform_lang::{Config, Evaluator, IgnoreChanges, Repetition, VariableOrigin};
use karmaform_model::{Key, Object, Type, Value};

use crate::support::{Known, evaluate, folded, load_all, load_text, registry, show};

fn loaded(text: &str) -> Config {
    let (config, diagnostics, sources) = load_text(text);
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    config
}

fn references(config: &Config, address: &str) -> Vec<String> {
    let block = &config.blocks[&address.parse().expect("an address")];
    let text = |r: &karmaform_lang::Reference| match &r.attribute {
        Some(attribute) => format!("{}.{attribute}", r.address),
        None => r.address.to_string(),
    };
    block.references.iter().map(text).collect()
}

fn arguments(config: &Config, known: &Known, address: &str) -> Object {
    let (object, diagnostics) = Evaluator::new(config, known).arguments(&address.parse().expect("an address"));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    object
}

#[test]
fn references_come_from_everywhere_and_once() {
    let config = loaded(
        r#"
        data "host" "h" {
          for_each = { a = "1", b = "2" }
          address  = each.value
        }
        locals {
          one = data.host.h["a"].connection
          two = [local.one, file.base.path]
        }
        resource "file" "base" { path = "x" }
        resource "file" "late" { path = "y" }
        resource "file" "f" {
          for_each = data.host.h
          path     = "${each.value.address}${file.base.path}"
          input    = [local.two, [for x in data.host.h : x.connection], file.base.path]
          content  = data.host.h[each.key].user
          option "o" { value = file.base.mode }
          depends_on = [file.late]
          lifecycle { ignore_changes = [content, tags["a"]] }
        }
        resource "terraform_data" "n" {
          count = 2
          input = count.index
          lifecycle {
            create_before_destroy = true
            replace_triggered_by  = [file.base.mode]
          }
        }
        output "o" { value = [terraform_data.n[0].output, terraform_data.n["1"].output] }
        "#,
    );
    assert_eq!(
        references(&config, "file.f"),
        ["data.host.h", "file.base.path", "data.host.h[\"a\"].connection", "data.host.h.user", "file.base.mode", "file.late"]
    );
    assert_eq!(references(&config, "terraform_data.n"), ["file.base.mode"]);
    let block = &config.blocks[&"terraform_data.n".parse().expect("an address")];
    assert!(block.lifecycle.create_before_destroy);
    assert_eq!(block.lifecycle.replace_triggered_by.len(), 1);
    assert_eq!(block.repetition, Repetition::Count(2));
    let IgnoreChanges::Paths(paths) = &config.blocks[&"file.f".parse().expect("an address")].lifecycle.ignore_changes else {
        panic!("paths")
    };
    assert_eq!(paths.iter().map(|p| p.path.to_string()).collect::<Vec<_>>(), ["content", "tags.a"]);
    let keys: Vec<_> = config.output_references("o").into_iter().map(|r| r.address.key).collect();
    assert_eq!(keys, [Some(Key::Index(0)), Some(Key::Index(1))]);
    let instances: Vec<_> = config.instances().iter().map(ToString::to_string).collect();
    assert_eq!(
        instances,
        [
            "file.base",
            "file.f[\"a\"]",
            "file.f[\"b\"]",
            "file.late",
            "terraform_data.n[0]",
            "terraform_data.n[1]",
            "data.host.h[\"a\"]",
            "data.host.h[\"b\"]"
        ]
    );
}

#[test]
fn arguments_are_complete_converted_and_marked() {
    let config = loaded(
        r#"
        variable "secret" {
          default   = "s"
          sensitive = true
        }
        resource "file" "a" {
          path  = 5
          size  = "7"
          key   = "k"
          tags  = { x = 1, y = var.secret }
          rule { port = "80" }
          rule {
            port = 443
            note = null
          }
          option "a" { token = "t" }
          dynamic "option" {
            for_each = { b = "1", c = "2" }
            labels   = [option.key]
            content { value = option.value }
          }
        }
        "#,
    );
    let found = arguments(&config, &Known::default(), "file.a");
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["content", "input", "key", "limit", "mode", "option", "owner", "path", "rule", "size", "tags"]);
    for (name, expected) in [
        ("path", "\"5\""),
        ("size", "7"),
        ("mode", "\"0644\""),
        ("content", "tostring(null)"),
        ("key", "(sensitive value)"),
        ("tags", "tomap({\"x\" = \"1\" \"y\" = (sensitive value)})"),
        ("rule", "tolist([{\"note\" = \"none\" \"port\" = 80}, {\"note\" = \"none\" \"port\" = 443}])"),
        ("limit", "null /* object */"),
    ] {
        assert_eq!(folded(&found[name]), expected, "{name}");
    }
    let options = found["option"].as_entries().expect("a map");
    assert_eq!(options.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(options["a"].get("token").expect("a token").secret);
    assert_eq!(found["option"].ty(), registry().resource("file").expect("a type").schema().type_of("option").expect("a block"));
}

#[test]
fn each_value_is_evaluated_again_when_it_is_known() {
    let config = loaded(
        r#"
        data "host" "h" {
          for_each = toset(["a", "b"])
          address  = each.key
        }
        resource "file" "f" {
          for_each = data.host.h
          path     = each.value.address
          input    = each.value.connection
        }
        "#,
    );
    let before = arguments(&config, &Known::default(), "file.f[\"a\"]");
    assert!(before["input"].is_unknown());
    let mut known = Known::default();
    for key in ["a", "b"] {
        let host = Value::object([("address", key.into()), ("connection", Value::object([("id", format!("{key}:22").into())]))]);
        known.0.insert(format!("data.host.h[\"{key}\"]"), host);
    }
    let after = arguments(&config, &known, "file.f[\"b\"]");
    assert_eq!(folded(&after["input"]), "{\"id\" = \"b:22\"}");
    assert_eq!(folded(&after["path"]), "\"b\"");
}

#[test]
fn variables_take_the_last_value() {
    let texts = [
        (
            "main.kf.hcl",
            "variable \"a\" {}\nvariable \"b\" { default = \"d\" }\nvariable \"l\" { type = list(any) }\nvariable \"n\" { type = number }\n",
        ),
        ("x.kfvars.hcl", "a = 1\nl = [1, \"x\"]\n"),
    ];
    let (config, diagnostics, sources) = load_all(&texts, &[], |inputs| {
        inputs.text("a", "[not parsed", VariableOrigin::Environment("KF_VAR_a".into()));
        inputs.text("undeclared", "silent", VariableOrigin::Environment("KF_VAR_undeclared".into()));
        inputs.text("n", "1e3", VariableOrigin::CommandLine);
    });
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let value = |name: &str| folded(&config.variables[name].value);
    assert_eq!(value("a"), "\"[not parsed\"", "text is taken literally without a type, and comes after the file");
    assert_eq!(value("b"), "\"d\"");
    assert_eq!(value("l"), "tolist([\"1\", \"x\"])");
    assert_eq!(value("n"), "1000");
    assert_eq!(config.variables["b"].origin, None);
    assert_eq!(config.variables["n"].origin, Some(VariableOrigin::CommandLine));
}

#[test]
fn settings_and_providers_are_evaluated() {
    let config = loaded(
        r#"
        variable "pass" {
          default   = "p"
          sensitive = true
        }
        karmaform {
          required_version = ">= 0.1, < 2"
          backend "s3" {
            bucket = "b-${terraform.workspace}"
            assume { role = "r" }
          }
          encryption { passphrase = var.pass }
        }
        provider "fake" { password = "x" }
        "#,
    );
    let backend = config.settings.backend.as_ref().expect("a backend");
    assert_eq!((backend.kind.as_str(), folded(&backend.arguments["bucket"])), ("s3", "\"b-default\"".to_owned()));
    assert_eq!(folded(&backend.arguments["assume"]), "{\"role\" = \"r\"}");
    assert!(config.settings.encryption.as_ref().expect("encryption").arguments["passphrase"].secret);
    let provider = &config.providers["fake"];
    assert!(provider["password"].secret);
    assert_eq!(provider["user"], "root".into());
}

#[test]
fn a_chain_of_locals_does_not_use_up_the_stack() {
    let mut text = String::from("locals {\n  l0 = 1\n");
    for i in 1..20_000 {
        text.push_str(&format!("  l{i} = local.l{} + 1\n", i - 1));
    }
    text.push_str("}\n");
    let config = loaded(&text);
    assert_eq!(evaluate(&config, &Known::default(), "local.l19999"), Ok(20_000i64.into()));
}

#[test]
fn a_secret_output_must_say_so() {
    let config = loaded("output \"a\" { value = sensitive(1) }\noutput \"b\" {\n  value = 2\n  sensitive = true\n}\n");
    let known = Known::default();
    let evaluator = Evaluator::new(&config, &known);
    assert!(evaluator.output("a").1.has_errors());
    let (value, diagnostics) = evaluator.output("b");
    assert!(value.secret && diagnostics.is_empty());
    assert_eq!(evaluator.output("none").0.ty(), Type::Any);
}

#[test]
fn messages_never_hold_a_secret() {
    let config = loaded(
        "variable \"p\" {\n  sensitive = true\n  default = { user = { name = \"hunter2\", keys = [\"hunter2\"] } }\n}\nlocals {\n  s = sensitive(\"hunter2\")\n}\n",
    );
    for text in [
        "var.p.user.name.x",
        "var.p.user.nme",
        "var.p.user.keys[3]",
        "var.p.user.keys.x",
        "local.s + 1",
        "local.s ? 1 : 2",
        "[for x in local.s : x]",
        "[for x in var.p.user.keys : x.y]",
        "{ for x in [1, 2] : local.s => x }",
        "tonumber(local.s)",
        "tonumber(\"${local.s}x\")",
        "templatefile(local.s, {})",
        "file(local.s)",
        "{ a = 1 }[local.s]",
        "[1][local.s]",
        "regex(\"x+\", local.s)",
        "jsondecode(local.s)",
        "\"x${[local.s]}\"",
        "templatestring(local.s, 1)",
        "templatestring(\"${local.s}$${\", {})",
        "templatestring(\"$${hunter2(1)}${local.s}\", {})",
        "max(local.s...)",
    ] {
        let error = evaluate(&config, &Known::default(), text).expect_err(text);
        assert!(!error.contains("hunter2") && !error.contains("\"name\""), "{text}: {error}");
    }
    let inputs = load_all(&[], &[], |inputs| {
        inputs.text("p", "hunter2", VariableOrigin::CommandLine);
        assert!(!format!("{inputs:?}").contains("hunter2"));
    });
    drop(inputs);
}
