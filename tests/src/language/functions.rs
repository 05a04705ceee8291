//! docs/language/functions: every function has one heading with its signature and an example of it, and nothing else has one. What Terraform
//! has and karmaform has not stands in a table.

use std::collections::BTreeMap;
use std::fs;

use karmaform_lang::{ELSEWHERE, ParameterSignature, Signature, function_signatures};

use super::page::{Block, Page};
use super::pages;

/// The block `signature` below the heading of a function, as it must be; as it is, below another heading.
pub(super) fn signature(block: &Block) -> Vec<String> {
    function_signatures().iter().find(|f| f.name == block.heading).map_or_else(|| block.lines.clone(), |f| vec![written(f)])
}

fn written(function: &Signature) -> String {
    let parameters: Vec<_> = function.parameters.iter().map(parameter).collect();
    format!("{}({}) -> {}", function.name, parameters.join(", "), function.result)
}

fn parameter(p: &ParameterSignature) -> String {
    let form = format!("{}: {}{}", p.name, p.ty, if p.nullable { " or null" } else { "" });
    match (p.repeated, p.optional) {
        (true, _) => format!("{form}, ..."),
        (false, true) => format!("[{form}]"),
        (false, false) => form,
    }
}

#[test]
fn every_function_has_its_heading_and_an_example() {
    let functions = function_signatures();
    let mut headings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in pages().iter().filter(|p| p.parent().is_some_and(|d| d.ends_with("functions")) && !p.ends_with("README.md")) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let page = Page::parse(&fs::read_to_string(path).expect("a readable page"));
        for heading in page.headings() {
            headings.entry(heading.to_owned()).or_default().push(name.clone());
            let call = format!("{heading}(");
            let blocks: Vec<_> = page.blocks().filter(|b| b.heading == heading).collect();
            let signatures = blocks.iter().filter(|b| b.info == "signature").count();
            let is_shown =
                blocks.iter().filter(|b| b.info == "console").flat_map(|b| &b.lines).any(|l| l.starts_with("> ") && l.contains(&call));
            if !functions.iter().any(|f| f.name == heading) {
                wrong.push(format!("{name}: there is no function {heading}"));
            } else if signatures != 1 || !is_shown {
                wrong.push(format!("{name}: {heading} needs one signature and an example of it"));
            }
        }
    }
    for function in &functions {
        match headings.get(function.name).map_or(&[][..], Vec::as_slice) {
            [] => wrong.push(format!("{} is on no page", function.name)),
            [_] => {}
            several => wrong.push(format!("{} is on several pages: {}", function.name, several.join(", "))),
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn all_are_listed_and_so_is_what_is_elsewhere() {
    let path = pages().into_iter().find(|p| p.ends_with("functions/README.md")).expect("a page about all functions");
    let page = Page::parse(&fs::read_to_string(path).expect("a readable page"));
    let unlisted: Vec<_> =
        function_signatures().iter().map(|f| format!("`{}`", f.name)).filter(|f| !page.lines().any(|l| l.contains(f))).collect();
    assert!(unlisted.is_empty(), "not in the list of all functions: {}", unlisted.join(" "));
    let wanted: Vec<_> = ELSEWHERE.iter().map(|e| format!("| `{}` | {} | {} |", e.name, e.why, e.instead)).collect();
    let found: Vec<_> = page.lines().skip_while(|l| !l.starts_with("| not here |")).skip(2).take_while(|l| l.starts_with('|')).collect();
    assert_eq!(found.join("\n"), wanted.join("\n"), "the table of functions that are not here");
}

#[test]
fn signatures_are_written() {
    let of = |name: &str| function_signatures().iter().find(|f| f.name == name).map(written).unwrap_or_default();
    assert_eq!(of("log"), "log(num: number, base: number) -> number");
    assert_eq!(of("uuid"), "uuid() -> string");
    assert!(of("lookup").contains("[default: any"), "{}", of("lookup"));
    assert!(of("coalesce").contains("or null, ..."), "{}", of("coalesce"));
}
