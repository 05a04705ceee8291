//! Broken texts of all kinds: nothing may panic, nothing may take long. Seeded, so that a failure comes back.

use karmaform_lang::validate;

use crate::support::{Known, evaluate, load_all};

const SEEDS: [&str; 4] = [
    "resource \"file\" \"a\" {\n  for_each = { a = 1, b = [2, \"x\"] }\n  path = \"${each.key}-${upper(each.value)}\"\n  rule { port = 80 }\n  dynamic \"rule\" {\n    for_each = [1, 2]\n    content { port = rule.value }\n  }\n  lifecycle { ignore_changes = [tags[\"x\"]] }\n}\n",
    "locals {\n  a = [for k, v in { x = 1 } : \"${k}=${v}\" if v > 0]\n  b = <<-EOT\n    %{ for x in local.a ~}\n    ${x}\n    %{ endfor ~}\n  EOT\n  c = true ? local.a[*].x : try(local.b.c[0], null)\n  d = { for x in [\"a\"] : x => 1e3... }\n}\n",
    "variable \"v\" {\n  type = object({ a = optional(list(string), [\"x\"]) })\n  default = {}\n  validation {\n    condition = length(var.v.a) > 0\n    error_message = \"no\"\n  }\n}\noutput \"o\" {\n  value = -var.v.a[0] + !file.a[\"a\"].size / 3 % 2\n  sensitive = true\n}\n",
    "data \"host\" \"h\" {\n  count = 2\n  address = \"\\u00e9\\n${count.index}\" # comment\n}\n/* x */ provider \"fake\" { user = data.host.h[0].user }\nkarmaform {\n  required_version = \"~> 0.1\"\n}\n",
];

const PIECES: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "${",
    "%{",
    "~}",
    "<<EOT\n",
    "<<-X\n",
    "\n",
    "\r\n",
    "=",
    "==",
    "=>",
    "...",
    ".",
    "*",
    "?",
    ":",
    ",",
    "-",
    "!",
    "for",
    "if",
    "endif",
    "in",
    "null",
    "true",
    "0",
    "1e400",
    "99999999999999999999",
    "é",
    "\u{301}",
    "\u{feff}",
    "\\",
    "$${",
    "#",
    "//",
    "/*",
    "local.a",
    "each.value",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap_or(0)
    }
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn mutate(text: &mut String, random: &mut Random) {
    let from = boundary(text, random.below(text.len() + 1));
    let to = boundary(text, (from + random.below(12)).min(text.len()));
    match random.below(5) {
        0 => text.replace_range(from..to, ""),
        1 => text.replace_range(from..to, PIECES[random.below(PIECES.len())]),
        2 => text.insert_str(from, &text.clone()[from..to]),
        3 => text.truncate(from),
        _ => text.insert_str(from, PIECES[random.below(PIECES.len())]),
    }
}

#[test]
fn mutated_configurations_never_panic() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..1200 {
        let mut text = SEEDS[random.below(SEEDS.len())].to_owned();
        if random.below(3) == 0 {
            text.push_str(SEEDS[random.below(SEEDS.len())]);
        }
        for _ in 0..=random.below(4) {
            mutate(&mut text, &mut random);
        }
        let (config, diagnostics, sources) = load_all(&[("main.kf.hcl", &text), ("v.kfvars.hcl", "v = {}\n")], &[], |_| {});
        for diagnostic in diagnostics.iter() {
            assert_ne!(diagnostic.summary, "Text could not be read", "the parser panicked on\n{text}");
            // Every place can be drawn.
            if let Some(span) = diagnostic.span {
                assert!(span.start <= span.end && (span.end as usize) <= sources.get(span.file).text.len(), "{diagnostic:?}\n{text}");
                sources.position(span.file, span.start);
            }
        }
        if !diagnostics.has_errors() {
            validate(&config);
        }
    }
}

#[test]
fn mutated_expressions_never_panic() {
    let (config, _, _) = load_all(&[("main.kf.hcl", "locals {\n  a = [1, { b = \"x\" }]\n}\n")], &[], |_| {});
    let seeds = [
        "[for x in local.a : \"${x}\" if x != null]",
        "{ a = 1, (local.a[0]) = [2][0] }.a",
        "try(local.a[1].b, null) == \"x\" ? -1 : max(1, 2...)",
        "\"%{ if true }a%{ else }b%{ endif }${[1][*]}\"",
    ];
    let mut random = Random(42);
    for _ in 0..1500 {
        let mut text = seeds[random.below(seeds.len())].to_owned();
        for _ in 0..=random.below(3) {
            mutate(&mut text, &mut random);
        }
        let _ = evaluate(&config, &Known::default(), &text);
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    for (open, middle, close) in [
        ("[", "1", "]"),
        ("(", "1", ")"),
        ("{a=", "1", "}"),
        ("\"${", "1", "}\""),
        ("!", "true", ""),
        ("-", "1", ""),
        ("upper(", "1", ")"),
        ("true ? 1 : ", "1", ""),
        ("[for x in ", "[]", " : x]"),
        ("local.a[", "0", "]"),
        ("1 + ", "1", ""),
        ("1 == ", "1", ""),
    ] {
        for depth in [10, 60, 130, 5000] {
            let text = format!("locals {{\n  a = [1]\n  x = {}{middle}{}\n}}\n", open.repeat(depth), close.repeat(depth));
            let (config, diagnostics, _) = load_all(&[("main.kf.hcl", &text)], &[], |_| {});
            if !diagnostics.has_errors() {
                validate(&config);
            } else if depth > 200 {
                let limit = diagnostics.iter().any(|d| d.summary.contains("too deeply") || d.summary.contains("Too many operators"));
                assert!(limit, "{open} {:?}", diagnostics.iter().next());
            }
        }
    }
}
