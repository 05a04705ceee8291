//! Modules: instances, what goes in and out, and what needs what.

use std::collections::BTreeMap;

use karmaform_lang::{Config, Evaluator};
use karmaform_model::{Address, Diagnostics, Type, Value};

use crate::support::{Known, evaluate, folded, load_all, loaded, show};

#[track_caller]
fn is(config: &Config, text: &str, expected: &str) {
    let value = evaluate(config, &Known::default(), text).unwrap_or_else(|e| panic!("{text}: {e}"));
    assert_eq!(folded(&value), expected, "{text}");
}

fn needs(config: &Config, address: &str) -> Vec<String> {
    let block = &config.blocks[&address.parse().expect("an address")];
    let mut all: Vec<_> = block.references.iter().map(|r| r.address.to_string()).collect();
    all.sort();
    all
}

const SITE: &str = r#"
variable "name" { type = string }
variable "size" {
  type    = number
  default = 1
}
variable "token" {
  sensitive = true
  default   = "t"
}
variable "tags" {
  type     = map(string)
  nullable = false
  default  = { a = "default" }
}
locals {
  both = "${var.name}-${var.size}"
}
resource "file" "f" {
  count   = var.size
  path    = "/${local.both}/${count.index}"
  content = var.token
}
data "host" "h" { address = var.name }
output "paths" { value = file.f[*].path }
output "both" { value = local.both }
output "token" { value = var.token }
output "tags" { value = var.tags }
output "where" { value = [path.module, path.root, path.cwd] }
output "size" {
  value     = var.size
  sensitive = true
}
output "host" { value = data.host.h.connection }
"#;

#[test]
fn values_go_in_and_out() {
    let text = r#"
module "one" {
  source = "./mods/site"
  name   = "n"
  size   = "2"
  tags   = null
}
module "many" {
  source   = "./mods/../mods/site"
  for_each = { a = 1, b = 0 }
  name     = each.key
  size     = each.value
}
module "counted" {
  source = "./mods/site"
  count  = length(module.many)
  name   = "c${count.index}"
}
"#;
    let config = loaded(text, &[("mods/site/main.kf.hcl", SITE)]);
    assert_eq!(config.module_files.len(), 1, "a directory is read once");
    let instances: Vec<_> = config.instances().iter().map(ToString::to_string).filter(|a| !a.contains("data")).collect();
    let expected = [
        "module.counted[0].file.f[0]",
        "module.counted[1].file.f[0]",
        "module.many[\"a\"].file.f[0]",
        "module.one.file.f[0]",
        "module.one.file.f[1]",
    ];
    assert_eq!(instances, expected);
    is(&config, "module.one.both", "\"n-2\"");
    is(&config, "module.one[\"both\"]", "\"n-2\"");
    is(&config, "module.one.token", "(sensitive value)");
    is(&config, "module.one.size", "(sensitive value)");
    is(&config, "module.one.tags", "tomap({\"a\" = \"default\"})");
    is(&config, "module.one.where", "[\"mods/site\", \".\", \"/here\"]");
    is(&config, "module.many[\"a\"].both", "\"a-1\"");
    is(&config, "[for k, m in module.many : \"${k}=${m.both}\"]", "[\"a=a-1\", \"b=b-0\"]");
    is(&config, "module.counted[*].both", "[\"c0-1\", \"c1-1\"]");
    is(&config, "module.counted[1].both", "\"c1-1\"");
    is(&config, "keys(module.one)", "[\"both\", \"host\", \"paths\", \"size\", \"tags\", \"token\", \"where\"]");
    is(&config, "try(module.many[\"x\"].both, \"none\")", "\"none\"");
    is(&config, "length(module.one.paths)", "2");
    let (arguments, diagnostics) = Evaluator::new(&config, &Known::default()).arguments(&"module.one.file.f[1]".parse().unwrap());
    assert!(diagnostics.is_empty());
    assert_eq!(folded(&arguments["path"]), "\"/n-2/1\"");
    assert!(arguments["content"].secret);
}

#[test]
fn values_of_instances_come_through_modules() {
    let text = r#"
resource "file" "root" { path = module.inner["a"].id }
module "outer" {
  source = "./outer"
  path   = file.root.sha256
}
module "inner" {
  source   = "./inner"
  for_each = toset(["a", "b"])
  path     = each.key
}
output "o" { value = module.outer.id }
"#;
    let outer =
        "variable \"path\" {}\nmodule \"in\" {\n source = \"../inner\"\n path = var.path\n}\noutput \"id\" { value = module.in.id }\n";
    let inner =
        "variable \"path\" { type = string }\nresource \"file\" \"f\" { path = var.path }\noutput \"id\" { value = file.f.sha256 }\n";
    let config = loaded(text, &[("outer/main.kf.hcl", outer), ("inner/main.kf.hcl", inner)]);
    assert_eq!(needs(&config, "file.root"), ["module.inner[\"a\"].file.f"], "only the instance that is named");
    assert_eq!(needs(&config, "module.outer.module.in.file.f"), ["file.root"]);
    let output: Vec<_> = config.output_references("o").iter().map(|r| r.address.to_string()).collect();
    assert_eq!(output, ["module.outer.module.in.file.f"]);
    let sum = |text: &str| Value::object([("sha256", text.into())]);
    let known = Known(BTreeMap::from([("module.outer.module.in.file.f".to_owned(), sum("deep")), ("file.root".to_owned(), sum("r"))]));
    let (value, _) = Evaluator::new(&config, &known).output("o");
    assert_eq!(folded(&value), "\"deep\"");
    let (arguments, _) = Evaluator::new(&config, &known).arguments(&"module.outer.module.in.file.f".parse().unwrap());
    assert_eq!(folded(&arguments["path"]), "\"r\"");
}

#[test]
fn all_instances_of_a_module_are_one_name() {
    let text = r#"
module "m" {
  source = "./m"
  count  = 3
}
module "n" {
  source     = "./m"
  depends_on = [module.m, file.first]
}
resource "file" "first" { path = "p" }
resource "file" "all" { path = join("", module.m[*].id) }
resource "file" "one" {
  path       = module.m[1].id
  depends_on = [module.n]
}
resource "file" "each" {
  count = 3
  path  = module.m[count.index].id
}
"#;
    let m = "resource \"file\" \"f\" {\n count = 2\n path = \"x\"\n}\nresource \"file\" \"g\" { path = file.f[0].path }\noutput \"id\" { value = file.g.sha256 }\n";
    let config = loaded(text, &[("m/main.kf.hcl", m)]);
    assert_eq!(needs(&config, "file.all"), ["module.m.file.g"]);
    assert_eq!(needs(&config, "file.each"), ["module.m.file.g"]);
    assert_eq!(needs(&config, "file.one"), ["file.first", "module.m", "module.m[1].file.g", "module.n", "module.n.file.g"]);
    assert_eq!(needs(&config, "module.m[2].file.g"), ["module.m[2].file.f[0]"], "its own instance and no other");
    assert_eq!(needs(&config, "module.n.file.f"), ["file.first", "module.m"]);
}

#[test]
fn repetition_goes_through_modules() {
    let text = r#"
variable "keys" { default = ["x", "y"] }
module "names" {
  source = "./names"
  keys   = var.keys
}
module "m" {
  source   = "./m"
  for_each = toset(module.names.out)
  n        = length(module.names.out)
}
resource "file" "f" {
  for_each = module.m
  path     = each.value.all[0]
}
"#;
    let names = "variable \"keys\" {}\nlocals { upper = [for k in var.keys : upper(k)] }\noutput \"out\" { value = local.upper }\n";
    let m = "variable \"n\" {}\nresource \"file\" \"f\" {\n count = var.n\n path = \"x\"\n}\noutput \"all\" { value = file.f[*].path }\n";
    let config = loaded(text, &[("names/a.kf.hcl", names), ("m/a.kf.hcl", m)]);
    let instances: Vec<_> = config.instances().iter().map(ToString::to_string).collect();
    let expected = [
        "file.f[\"X\"]",
        "file.f[\"Y\"]",
        "module.m[\"X\"].file.f[0]",
        "module.m[\"X\"].file.f[1]",
        "module.m[\"Y\"].file.f[0]",
        "module.m[\"Y\"].file.f[1]",
    ];
    assert_eq!(instances, expected);
}

#[test]
fn conditions_are_checked_when_values_are_known() {
    let text = "resource \"file\" \"f\" { path = \"p\" }\nmodule \"m\" {\n source = \"./m\"\n sum = file.f.sha256\n}\n";
    let m = "variable \"sum\" {\n validation {\n  condition = var.sum != \"bad\"\n  error_message = \"Not ${var.sum}.\"\n }\n}\n";
    let config = loaded(text, &[("m/main.kf.hcl", m)]);
    let check = |sum: Value| -> Diagnostics {
        Evaluator::new(&config, &Known(BTreeMap::from([("file.f".to_owned(), Value::object([("sha256", sum)]))]))).check_modules(true, true)
    };
    assert!(check(Value::unknown(Type::String)).is_empty());
    assert!(check("good".into()).is_empty());
    let found = check("bad".into());
    let detail = found.iter().map(|d| d.detail.as_str()).collect::<String>();
    assert_eq!(detail, "The value of \"sum\" is refused: Not bad.");
}

#[test]
fn a_removed_block_is_about_whole_modules_and_what_is_in_them() {
    let text = "removed {\n from = module.a\n lifecycle { destroy = false }\n}\nremoved {\n from = module.a.module.b.file.f\n lifecycle { destroy = true }\n}\nmodule \"m\" { source = \"./m\" }\n";
    let m = "removed {\n from = file.old\n lifecycle { destroy = false }\n}\n";
    let config = loaded(text, &[("m/main.kf.hcl", m)]);
    for (address, expected) in [
        ("module.a.file.f", true),
        ("module.a[\"k\"].module.c.file.f[0]/part", true),
        ("module.a[0].module.b.file.f[1]", false),
        ("module.m.file.old[3]", true),
        ("file.old", false),
        ("module.b.file.f", false),
    ] {
        assert_eq!(config.forgets(&address.parse().unwrap()), expected, "{address}");
    }
}

#[test]
fn a_moved_block_in_a_module_is_about_each_of_its_instances() {
    let text = "module \"m\" {\n source = \"./m\"\n count = 2\n}\nmoved {\n from = module.old\n to = module.m[1]\n}\n";
    let m = "resource \"file\" \"b\" { path = \"p\" }\nmoved {\n from = file.a\n to = file.b\n}\n";
    let config = loaded(text, &[("m/main.kf.hcl", m)]);
    for (address, expected) in [
        ("module.m[0].file.a[\"k\"]", "module.m[0].file.b[\"k\"]"),
        ("module.old.file.a", "module.m[1].file.b"),
        ("module.n.file.a", "module.n.file.a"),
        ("file.a", "file.a"),
    ] {
        let mut found: Address = address.parse().unwrap();
        config.moved.iter().for_each(|m| found = m.unit(&found).map_or_else(|| found.clone(), |u| u.renamed(&found)));
        assert_eq!(found.to_string(), expected, "{address}");
    }
    let check = |text: &str, m: &str, summary: &str| {
        let (_, diagnostics, sources) = load_all(&[("main.kf.hcl", text)], &[("m/main.kf.hcl", m)], |_| {});
        assert!(diagnostics.iter().any(|d| d.summary == summary && d.span.is_some()), "{text}{m}{}", show(&sources, &diagnostics));
    };
    let call = "module \"m\" { source = \"./m\" }\n";
    let moved = |from: &str, to: &str| format!("moved {{\n from = {from}\n to = {to}\n}}\n");
    check(&(call.to_owned() + &moved("module.m", "module.n")), m, "Moved object still exists");
    check(&(call.to_owned() + &moved("module.m.file.b", "file.b")), m, "Moved object still exists");
    check(call, &(m.to_owned() + &moved("file.b", "file.c")), "Moved object still exists");
    check(&(call.to_owned() + &moved("module.m.file.a", "module.m.file.z")), m, "Ambiguous moved blocks");
}

#[test]
fn long_chains_of_modules_neither_overflow_nor_take_long() {
    let m = "variable \"in\" {}\nlocals { next = var.in + 1 }\noutput \"out\" { value = local.next }\n";
    let mut text = "module \"m0\" {\n source = \"./m\"\n in = 0\n}\n".to_owned();
    for i in 1..3_000 {
        text += &format!("module \"m{i}\" {{\n source = \"./m\"\n in = module.m{}.out\n}}\n", i - 1);
    }
    let config = loaded(&text, &[("m/main.kf.hcl", m)]);
    is(&config, "module.m2999.out", "3000");
}

#[test]
fn modules_that_double_at_every_level_are_refused() {
    let mut files = Vec::new();
    for i in 0..40 {
        let next = i + 1;
        files.push((
            format!("m{i}/a.kf.hcl"),
            format!("module \"a\" {{ source = \"../m{next}\" }}\nmodule \"b\" {{ source = \"../m{next}\" }}\n"),
        ));
    }
    files.push(("m40/a.kf.hcl".to_owned(), String::new()));
    let files: Vec<_> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let (_, diagnostics, _) = load_all(&[("main.kf.hcl", "module \"a\" { source = \"./m0\" }\n")], &files, |_| {});
    let summaries: Vec<_> = diagnostics.iter().map(|d| d.summary.as_str()).collect();
    assert_eq!(summaries, ["Too many modules"]);
}

#[test]
fn modules_are_called_inside_of_each_other_only_so_deep() {
    let call = |n: usize| format!("module \"m\" {{\n  source = \"{}/m{n}\"\n}}\n", if n == 0 { "." } else { ".." });
    let files: Vec<(String, String)> = (0..70).map(|n| (format!("m{n}/main.kf.hcl"), call(n + 1))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    let (config, diagnostics, mut sources) = load_all(&[("main.kf.hcl", &call(0))], &files, |_| {});
    sources.files.extend(config.module_files);
    let found = show(&sources, &diagnostics);
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(
        found.starts_with(
            "error m63/main.kf.hcl:2:12-20 Modules too deep: Modules are called inside of each other more than 64 levels deep."
        ),
        "{found}"
    );
}
