//! Big configurations: time must grow with their size and not faster. The limits are generous, for slow machines and builds without
//! optimisation; something quadratic misses them by far.

// The fence against clocks is for the library.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Instant;

use karmaform_lang::Evaluator;

use crate::support::{Known, evaluate, folded, load_text, show};

#[test]
fn ten_thousand_blocks_load_in_time() {
    let mut text = String::new();
    for i in 0..10_000 {
        text.push_str(&format!(
            "resource \"file\" \"f{i}\" {{\n  path    = \"/srv/data/{i}/${{local.base}}/config\"\n  content = <<-EOT\n    name = {i}\n    \
             {}\n  EOT\n  mode    = \"0644\"\n  tags    = {{ index = {i}, next = terraform_data.x.output }}\n  rule {{\n    port = {i}\n  }}\n}}\n\n",
            "filler ".repeat(45)
        ));
    }
    text.push_str("locals {\n  base = \"x\"\n}\nresource \"terraform_data\" \"x\" {}\n");
    let started = Instant::now();
    let (config, diagnostics, _) = load_text(&text);
    let loaded = started.elapsed();
    assert!(diagnostics.is_empty());
    assert_eq!(config.instances().len(), 10_001);
    let started = Instant::now();
    let known = Known::default();
    let evaluator = Evaluator::new(&config, &known);
    for address in config.instances() {
        assert!(!evaluator.arguments(&address).1.has_errors());
    }
    let evaluated = started.elapsed();
    assert!(loaded.as_secs() < 20 && evaluated.as_secs() < 20, "loaded in {loaded:?}, evaluated in {evaluated:?}");
}

#[test]
fn a_big_object_is_not_quadratic() {
    let entries: String = (0..60_000).map(|i| format!("    k{i} = {{ id = {i}, name = \"n{i}\" }} # {i}\n")).collect();
    let text = format!("locals {{\n  # before\n  big = {{\n{entries}  }}\n  after = length(local.big)\n}}\n");
    let started = Instant::now();
    let (config, diagnostics, _) = load_text(&text);
    assert!(diagnostics.is_empty(), "{:?}", diagnostics.iter().next());
    assert_eq!(
        evaluate(&config, &Known::default(), "[local.after, local.big.k59999.name, local.big.k0.id]").map(|v| folded(&v)),
        Ok("[60000, \"n59999\", 0]".into())
    );
    let took = started.elapsed();
    assert!(took.as_secs() < 20, "{took:?}");

    let (_, diagnostics, sources) = load_text(&text.replace("k30000 = {", "k30000 { "));
    let found = show(&sources, &diagnostics);
    assert!(found.starts_with("error 30004:12-13 Missing equals sign"), "{found}");
}

#[test]
fn ten_thousand_instances_evaluate_in_time() {
    let (config, diagnostics, _) = load_text(
        "locals {\n  big = { for i in range(1000) : \"k${i}\" => { id = i } }\n}\n\
         resource \"terraform_data\" \"l1\" {\n  count = 100\n  input = count.index\n}\n\
         resource \"terraform_data\" \"l2\" {\n  count = 10000\n  input = [terraform_data.l1[count.index % 100].output, local.big[\"k${count.index % 1000}\"].id]\n}\n",
    );
    assert!(diagnostics.is_empty());
    let started = Instant::now();
    let known = Known::default();
    let evaluator = Evaluator::new(&config, &known);
    for address in config.instances() {
        assert!(!evaluator.arguments(&address).1.has_errors());
    }
    let evaluated = started.elapsed();
    assert!(evaluated.as_secs() < 10, "evaluated in {evaluated:?}");
}

#[test]
fn a_file_that_nobody_would_wait_for_is_refused_at_its_beginning() {
    let text = format!("# {}\n", "x".repeat(16 << 20));
    let (_, diagnostics, sources) = load_text(&text);
    assert_eq!(
        show(&sources, &diagnostics),
        "error 1:1-1 File too large: It has 16 MiB; one of a configuration, of values or of tests may have 16 MiB. (Put large data into a file \
         of its own and read it with file(), jsondecode(file()) or csvdecode(file()).)\n"
    );
}

#[test]
fn a_try_in_loops_over_secrets_that_fail_is_evaluated_a_few_times_however_deep_it_is() {
    let (config, _, _) = load_text("");
    let mut text = "tonumber(\"a\")".to_owned();
    for _ in 0..28 {
        text = format!("[for x in sensitive([1]) : try({text})]");
    }
    let started = Instant::now();
    let error = evaluate(&config, &Known::default(), &text).expect_err("nothing to fall back to");
    assert!(error.contains("can't become a number"), "{error}");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
