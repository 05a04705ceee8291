//! `provider` blocks of modules: what data sources take from them.

use std::collections::BTreeMap;

use karmaform_lang::{Config, Evaluator};
use karmaform_model::{Object, Type, Value};

use crate::support::{Known, folded, loaded};

#[track_caller]
fn arguments(config: &Config, known: &Known, address: &str) -> Object {
    let (object, diagnostics) = Evaluator::new(config, known).arguments(&address.parse().expect("an address"));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    object
}

#[track_caller]
fn is(config: &Config, address: &str, name: &str, expected: &str) {
    assert_eq!(folded(&arguments(config, &Known::default(), address)[name]), expected, "{name} of {address}");
}

fn needs(config: &Config, address: &str) -> Vec<String> {
    let references = &config.blocks[&address.parse().expect("an address")].references;
    references.iter().map(|r| r.address.to_string()).collect()
}

const ROOT: &str = r#"
provider "fake" { port = 1 }
data "machine" "root" { address = "r" }
module "outer" {
  source   = "./outer"
  for_each = { a = 10, b = 20 }
  port     = each.value
}
"#;

const OUTER: &str = r#"
variable "port" { type = number }
locals { jump = { address = "jump-${var.port}" } }
provider "fake" {
  port     = var.port
  password = "outer"
  bastion  = local.jump
}
data "machine" "plain" { address = "p" }
data "machine" "own" {
  address  = "o"
  port     = 99
  password = null
}
data "host" "h" { address = "h" }
module "inner" { source = "../inner" }
module "silent" { source = "../silent" }
"#;

const INNER: &str = r#"
provider "fake" {
  password = "inner"
  port     = null
}
data "machine" "m" {
  count   = 2
  address = "i${count.index}"
}
"#;

const SILENT: &str = "data \"machine\" \"m\" { address = \"s\" }\n";

#[test]
fn what_a_data_source_does_not_say_the_nearest_module_says() {
    let files = [("outer/a.kf.hcl", OUTER), ("inner/a.kf.hcl", INNER), ("silent/a.kf.hcl", SILENT)];
    let config = loaded(ROOT, &files);
    // What the root says stays with the provider.
    assert_eq!(config.providers["fake"]["port"], 1i64.into());
    assert!(arguments(&config, &Known::default(), "data.machine.root")["port"].is_null());
    // Each instance of a module has its own.
    is(&config, "module.outer[\"a\"].data.machine.plain", "port", "10");
    is(&config, "module.outer[\"b\"].data.machine.plain", "port", "20");
    is(&config, "module.outer[\"b\"].data.machine.plain", "bastion", "{\"address\" = \"jump-20\"}");
    // What it says itself counts, and null is nothing said.
    is(&config, "module.outer[\"a\"].data.machine.own", "port", "99");
    is(&config, "module.outer[\"a\"].data.machine.own", "password", "(sensitive value)");
    // Argument by argument: a module without a block of its own, or with one that leaves something open, has what the one around it says.
    is(&config, "module.outer[\"b\"].module.silent.data.machine.m", "port", "20");
    is(&config, "module.outer[\"b\"].module.inner.data.machine.m[1]", "port", "20");
    is(&config, "module.outer[\"b\"].module.inner.data.machine.m[1]", "bastion", "{\"address\" = \"jump-20\"}");
    let password = |address: &str| arguments(&config, &Known::default(), address)["password"].as_str().map(str::to_owned);
    assert_eq!(password("module.outer[\"b\"].module.inner.data.machine.m[1]").as_deref(), Some("inner"));
    assert_eq!(password("module.outer[\"b\"].module.silent.data.machine.m").as_deref(), Some("outer"));
    // What gives no connection takes nothing.
    is(&config, "module.outer[\"a\"].data.host.h", "user", "\"root\"");
    assert!(config.defaults().next().is_none());
}

#[test]
fn what_is_taken_is_needed_and_may_be_unknown() {
    let text = r#"
resource "file" "key" { path = "k" }
resource "file" "other" { path = "o" }
module "m" {
  source   = "./m"
  password = file.key.sha256
  unused   = file.other.sha256
}
"#;
    let m = r#"
variable "password" {}
variable "unused" {}
locals { password = "p-${var.password}" }
provider "fake" { password = local.password }
data "machine" "a" { address = "a" }
data "host" "h" { address = "h" }
module "n" { source = "../n" }
"#;
    let config = loaded(text, &[("m/a.kf.hcl", m), ("n/a.kf.hcl", SILENT)]);
    assert_eq!(needs(&config, "module.m.data.machine.a"), ["file.key"]);
    assert_eq!(needs(&config, "module.m.module.n.data.machine.m"), ["file.key"]);
    assert!(needs(&config, "module.m.data.host.h").is_empty());
    let sum = |sum: Value| Known(BTreeMap::from([("file.key".to_owned(), Value::object([("sha256", sum)]))]));
    for address in ["module.m.data.machine.a", "module.m.module.n.data.machine.m"] {
        let open = arguments(&config, &sum(Value::unknown(Type::String)), address);
        assert!(open["password"].is_unknown() && open["password"].secret, "{address}");
        let told = arguments(&config, &sum("s".into()), address);
        assert_eq!((told["password"].as_str(), told["password"].secret), (Some("p-s"), true), "{address}");
    }
}
