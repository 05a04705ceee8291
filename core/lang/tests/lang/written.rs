//! What stands in blocks, as the text alone tells.

use karmaform_lang::Said;
use karmaform_model::{Type, Value};

use crate::support::{load_all, load_text, show};

fn made(references: &[&str]) -> Said {
    Said::Made(references.iter().map(|r| (*r).to_owned()).collect())
}

#[test]
fn arguments_are_constants_or_say_what_they_are_made_of() {
    let text = r#"
variable "v" { default = { a = "x" } }
locals { l = "x" }
data "host" "h" {
  for_each = toset(["a"])
  address  = each.key
}
resource "file" "a" {
  count   = 2
  path    = "a"
  content = "${var.v.a} ${local.l} ${upper(var.v["a"])} ${data.host.h["a"].address}"
  lifecycle {
    create_before_destroy = true
  }
}
resource "file" "b" {
  for_each = toset(["k"])
  path     = upper("b")
  content  = join("", concat(file.a[*].path, [for f in file.a : f.path], [file.a[0].path, file.a[length("x")].path]))
}
output "constant" { value = [1, { a = true, "b" = null }] }
output "made" { value = file.b["k"].path }
"#;
    let (config, diagnostics, sources) = load_text(text);
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let block = |address: &str| config.block(&address.parse().expect("an address")).expect("a block");
    let a = block("file.a").written(&config);
    assert_eq!(a.arguments.keys().collect::<Vec<_>>(), ["content", "path"]);
    assert!(a.blocks.is_empty(), "{a:?}");
    assert_eq!(a.arguments["path"], Said::Constant("a".into()));
    let references =
        ["var.v.a", "var.v", "local.l", "var.v[\"a\"]", "var.v", "data.host.h[\"a\"].address", "data.host.h[\"a\"]", "data.host.h"];
    assert_eq!(a.arguments["content"], made(&references));
    assert_eq!(block("file.a").written_repeats(&config), (Some(Said::Constant(2i64.into())), None));

    let b = block("file.b").written(&config);
    assert_eq!(b.arguments["path"], made(&[]), "a function of constants");
    let references = ["file.a", "file.a", "file.a[0].path", "file.a[0]", "file.a", "file.a"];
    assert_eq!(b.arguments["content"], made(&references), "names that a for binds are none, and all is told as often as it stands there");
    assert_eq!(block("file.b").written_repeats(&config), (None, Some(made(&[]))));

    let inner = Value::object([("a", true.into()), ("b", Value::null(Type::Any))]);
    assert_eq!(config.outputs["constant"].written(&config), Said::Constant(Value::tuple(vec![1i64.into(), inner])));
    assert_eq!(config.outputs["made"].written(&config), made(&["file.b[\"k\"].path", "file.b[\"k\"]", "file.b"]));
}

#[test]
fn modules_say_what_they_are_given() {
    let root = r#"
module "m" {
  source = "./m"
  count  = 1
  name   = "x"
  path   = module.n.path

  depends_on = [module.n.path]
}
module "n" {
  source = "./m"
}
"#;
    let module = "variable \"name\" { default = null }\nvariable \"path\" { default = null }\noutput \"path\" { value = var.path }\n";
    let (config, diagnostics, sources) = load_all(&[("main.kf.hcl", root)], &[("m/main.kf.hcl", module)], |_| {});
    assert!(diagnostics.is_empty(), "{}", show(&sources, &diagnostics));
    let given = config.calls["m"].written(&config);
    assert_eq!(given["name"], Said::Constant("x".into()));
    assert_eq!(given["path"], made(&["module.n.path", "module.n"]));
    assert_eq!(config.calls["m"].written_repeats(&config), (Some(Said::Constant(1i64.into())), None));
    assert_eq!(config.calls["m"].written_needs(), ["module.n.path"]);
    assert!(config.calls["n"].written(&config).is_empty());
}

#[test]
fn quoted_names_are_needed_too() {
    let text = r#"
resource "terraform_data" "a" {
  depends_on = ["terraform_data.b", terraform_data.c]
}
resource "terraform_data" "b" {}
resource "terraform_data" "c" {}
"#;
    let (config, _, _) = load_all(&[("main.kf.hcl", text)], &[], |_| {});
    assert_eq!(config.blocks[&"terraform_data.a".parse().unwrap()].written_needs(), ["terraform_data.b", "terraform_data.c"]);
}

const RELEVANT: &str = r#"
resource "terraform_data" "t" {}
resource "terraform_data" "u" {}
resource "terraform_data" "whole" {
  input = terraform_data.t.id
}
output "whole" {
  value = terraform_data.whole
}
resource "terraform_data" "counted" {
  count = terraform_data.t.id == "x" ? 1 : 1
  input = 1
}
resource "terraform_data" "numbered" {
  count = terraform_data.t.id == "x" ? 1 : 1
  input = count.index
}
resource "terraform_data" "each" {
  for_each = { a = terraform_data.t.id }
  input    = each.value
}
module "m" {
  for_each = { a = terraform_data.t.id }
  source   = "./m"
  v        = each.value
}
"#;

/// Measured on Terraform 1.11.4.
#[test]
fn what_matters_is_followed_as_far_as_it_is_used() {
    let module = "variable \"v\" {}\nresource \"terraform_data\" \"x\" {\n  input = var.v\n}\n";
    let (config, diagnostics, sources) = load_all(&[("main.kf.hcl", RELEVANT)], &[("m/main.kf.hcl", module)], |_| {});
    assert!(!diagnostics.has_errors(), "{}", show(&sources, &diagnostics));
    let found = |address: &str, outputs: &[String]| -> Vec<String> {
        let address: karmaform_model::Address = address.parse().unwrap();
        let found = config.relevant([&address].into_iter(), outputs.iter(), config.outputs_of_modules());
        found.into_iter().map(|(address, way)| format!("{address} {}", way.len())).collect()
    };
    assert_eq!(found("terraform_data.u", &["whole".to_owned()]), ["terraform_data.t 1", "terraform_data.whole 0"]);
    assert_eq!(found("terraform_data.counted[0]", &[]), [""; 0]);
    assert_eq!(found("terraform_data.numbered[0]", &[]), ["terraform_data.t 1"]);
    assert_eq!(found("terraform_data.each[\"a\"]", &[]), ["terraform_data.t 1"]);
    assert_eq!(found("module.m[\"a\"].terraform_data.x", &[]), [""; 0]);
}

const ASKED: &str = r#"
resource "terraform_data" "s" {}
module "a" {
  source = "./m"
  x      = terraform_data.s.id
}
module "b" {
  source = "./m"
}
module "c" {
  source   = "./m"
  for_each = toset(["k", "l"])
  x        = local.given
}
module "d" {
  source     = "./m"
  count      = length(module.b.j) > 0 ? 1 : 1
  depends_on = [module.a]
}
locals {
  given = module.a.i
}
resource "terraform_data" "one" {
  input = module.c["k"].i
}
resource "terraform_data" "waits" {
  depends_on = [module.b]
}
resource "terraform_data" "asks" {
  lifecycle {
    precondition {
      condition     = module.a.j != ""
      error_message = "Without."
    }
  }
}
output "b" {
  value = module.b.j
}
output "waits" {
  value      = 1
  depends_on = [module.b]
}
"#;

const ASKED_MODULE: &str = r#"
variable "x" {
  default = 1
}
resource "terraform_data" "i" {
  input = var.x
}
output "i" {
  value = terraform_data.i.output
}
output "j" {
  value = terraform_data.i.id
}
"#;

/// Measured on Terraform 1.11.4, by `relevant_attributes` of plans with targets.
#[test]
fn what_a_part_asks_of_modules_is_found_without_keys() {
    let (config, diagnostics, sources) = load_all(&[("main.kf.hcl", ASKED)], &[("m/main.kf.hcl", ASKED_MODULE)], |_| {});
    assert!(!diagnostics.has_errors(), "{}", show(&sources, &diagnostics));
    let asked = |address: &str, outputs: &[String]| -> Vec<String> {
        let address: karmaform_model::Address = address.parse().unwrap();
        let found = config.asked_of_modules([&address].into_iter(), outputs.iter());
        found.into_iter().map(|(way, name)| format!("{}.{name}", way.into_iter().map(|s| s.name).collect::<Vec<_>>().join("."))).collect()
    };
    assert_eq!(asked("terraform_data.s", &[]), [""; 0]);
    assert_eq!(asked("terraform_data.one", &[]), ["c.i"]);
    assert_eq!(asked("terraform_data.waits", &[]), ["b.i", "b.j"]);
    assert_eq!(asked("terraform_data.asks", &[]), ["a.j"]);
    assert_eq!(asked("module.a.terraform_data.i", &[]), [""; 0]);
    assert_eq!(asked("module.c[\"k\"].terraform_data.i", &[]), ["a.i"]);
    assert_eq!(asked("module.d[0].terraform_data.i", &[]), ["a.i", "a.j", "b.j"]);
    assert_eq!(asked("module.b.terraform_data.i", &["b".to_owned()]), ["b.j"]);
    assert_eq!(asked("module.b.terraform_data.i", &["waits".to_owned()]), ["b.i", "b.j"]);
}
