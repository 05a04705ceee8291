//! docs/language: what the pages say of the language is run. On a page
//!
//! | a fenced block | is |
//! |---|---|
//! | ` ```console ` | lines `> EXPRESSION`, each with what `karmaform console` prints for it below, and lines `$ karmaform ARGUMENTS` |
//! | ` ```hcl NAME ` | a file in the directory in which all examples of the page run; any word will do in place of `hcl` |
//! | ` ```hcl ` | nothing that is run |
//! | ` ```signature ` | of a page of functions: how the function below whose heading it stands is called |
//!
//! Each example is run by itself, without what every plan says in the same words. All HCL must be well-formed and in its usual form, and a
//! configuration that examples run with must be valid. `BLESS=1` rewrites what is printed, and the signatures; read that diff.

mod functions;
mod links;
mod page;
mod plans;

use std::fs;
use std::path::{Path, PathBuf};

use karmaform_model::FileId;

use crate::golden::{brief, difference};
use crate::parts::{command, real_registry, root};
use page::{Block, Page};

#[test]
fn examples_of_the_language_give_what_pages_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in pages() {
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).expect("a readable page");
        let page = Page::parse(&text);
        count += page.blocks().filter(|b| b.word() == "console").count();
        wrong.extend(page.blocks().filter(|b| b.word() == "hcl").filter_map(|b| ill_formed(&name, b)));
        let place = place(&page);
        if fs::read_dir(place.path()).expect("a directory").flatten().any(|e| e.file_name().to_string_lossy().contains(".kf.")) {
            // Else each example would say what is wrong with the configuration, and that would be what is expected.
            let valid = command(place.path(), &real_registry(), &["validate", "-no-color"], "");
            assert_eq!(valid.code, 0, "{name}: {}{}", valid.stdout, valid.stderr);
        }
        let now = page.with(|block| match block.word() {
            "console" => examples(&block.lines, |of| run(place.path(), of)),
            "signature" => functions::signature(block),
            _ => block.lines.clone(),
        });
        if now != text && bless {
            fs::write(&path, now).expect("a writable page");
        } else if now != text {
            wrong.push(format!("{name}:\n{}", difference(&text, &now)));
        }
    }
    assert!(wrong.is_empty(), "\n\n{}\n`make bless` takes what is now\n", wrong.join("\n"));
    assert!(count > 0, "no examples");
}

/// All pages, in order.
fn pages() -> Vec<PathBuf> {
    let top = root().join("docs/language");
    let mut pages = Vec::new();
    for directory in [top.join("functions"), top] {
        pages.extend(
            fs::read_dir(directory).expect("pages").flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "md")),
        );
    }
    pages.sort();
    pages
}

/// The directory in which the examples of a page run, with its files.
fn place(page: &Page) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    for block in page.blocks() {
        let Some((_, name)) = block.info.split_once(' ') else { continue };
        let path = place.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a writable directory");
        fs::write(path, block.lines.iter().map(|l| format!("{l}\n")).collect::<String>()).expect("a writable file");
    }
    place
}

/// What is wrong with the form of a block of configuration that is not run.
fn ill_formed(page: &str, block: &Block) -> Option<String> {
    let text: String = block.lines.iter().map(|l| format!("{l}\n")).collect();
    let place = format!("{page}:{}", block.line);
    match karmaform_lang::format(&text) {
        Err(error) => Some(format!("{place}: {error}")),
        Ok(usual) if usual != text => Some(format!("{place}: not in its usual form\n{}", difference(&text, &usual))),
        Ok(_) => karmaform_lang::syntax_errors(FileId(0), &text).iter().next().map(|d| format!("{place}: {}", d.detail)),
    }
}

/// A block of examples with what they print now.
fn examples(lines: &[String], mut run: impl FnMut(&str) -> String) -> Vec<String> {
    let mut now = Vec::new();
    for line in lines.iter().filter(|l| is_example(l)) {
        now.push(line.clone());
        now.extend(run(line).lines().map(str::to_owned));
    }
    now
}

fn is_example(line: &str) -> bool {
    line.starts_with("> ") || line.starts_with("$ karmaform ")
}

/// What an example prints, without empty lines around it; what is wrong with it too.
fn run(place: &Path, example: &str) -> String {
    let registry = real_registry();
    let ran = match example.strip_prefix("> ") {
        Some(expression) => command(place, &registry, &["console", "-no-color"], &format!("{expression}\n")),
        None => {
            let arguments: Vec<_> = example.split_whitespace().skip(2).collect();
            command(place, &registry, &arguments, "")
        }
    };
    let printed: String = format!("{}{}", ran.stderr, ran.stdout).lines().map(|l| format!("{}\n", l.trim_end())).collect();
    if example.starts_with('$') { brief(&printed) } else { printed }.trim_matches('\n').to_owned()
}

#[test]
fn examples_are_found() {
    let lines = ["> 1 + 1", "old", "> 2", "$ karmaform version"].map(str::to_owned);
    let now = examples(&lines, |of| format!("of {of}\n\nmore"));
    assert_eq!(now.join("|"), "> 1 + 1|of > 1 + 1||more|> 2|of > 2||more|$ karmaform version|of $ karmaform version||more");
}
