//! Flags with one dash and with two are the same; here one becomes the other. Knows of commands only which of them answer programs in JSON.

use std::ffi::OsString;

/// `-auto-approve` becomes `--auto-approve`. Left alone: one letter (`-h`), negative numbers, `-`, and all behind `--`.
pub(crate) fn normalised(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut all_plain = false;
    arguments
        .into_iter()
        .map(|argument| {
            all_plain |= argument == "--";
            match argument.to_str() {
                Some(text) if !all_plain && has_one_dash(text) => OsString::from(format!("-{text}")),
                _ => argument,
            }
        })
        .collect()
}

/// Puts the flags of `KF_CLI_ARGS` and `KF_CLI_ARGS_<command>` right behind the command's name. The first argument is the program.
pub(crate) fn with_environment(arguments: Vec<OsString>, variable: impl Fn(&str) -> Option<String>) -> Vec<OsString> {
    let at = place_of_command(&arguments);
    let Some(command) = arguments.get(at).and_then(|a| a.to_str()) else { return arguments };
    let (mut name, mut end) = (command.replace('-', "_"), at + 1);
    if command == "state"
        && let Some(next) = arguments.get(end).and_then(|a| a.to_str()).filter(|a| !a.starts_with('-'))
    {
        name = format!("{name}_{}", next.replace('-', "_"));
        end += 1;
    }
    let more = ["KF_CLI_ARGS".to_owned(), format!("KF_CLI_ARGS_{name}")];
    let more = more.iter().filter_map(|n| variable(n)).flat_map(|text| words(&text)).map(OsString::from);
    let (head, tail) = arguments.split_at(end.min(arguments.len()));
    head.iter().cloned().chain(more).chain(tail.iter().cloned()).collect()
}

/// Where the command's name stands, behind the flags that all commands have.
fn place_of_command(arguments: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(text) = arguments.get(at).and_then(|a| a.to_str()).filter(|a| a.starts_with('-')) {
        // Only -chdir has a value of its own.
        at += if text.trim_start_matches('-') == "chdir" { 2 } else { 1 };
    }
    at
}

/// Who reads what is wrong with the arguments of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Somebody who reads text.
    Human,
    /// A program that reads lines of JSON.
    Lines,
    /// A program that reads one document, the answer of `validate -json`.
    Document,
}

/// Who asks, by arguments that are wrong in some way, so that a command can't have told them apart.
pub(crate) fn reader(arguments: &[OsString]) -> Reader {
    let mut rest = arguments.iter().skip(place_of_command(arguments)).map(|a| a.to_str().unwrap_or_default());
    let by_json = match rest.next() {
        Some("plan" | "apply" | "destroy" | "refresh" | "test") => Reader::Lines,
        Some("validate") => Reader::Document,
        _ => return Reader::Human,
    };
    let flags = rest.take_while(|a| *a != "--").filter_map(|a| a.strip_prefix("--").or_else(|| a.strip_prefix('-')));
    match flags.filter(|flag| flag.split('=').next() == Some("json")).last() {
        Some("json" | "json=true" | "json=1") => by_json,
        _ => Reader::Human,
    }
}

/// As a shell splits words: at spaces, but not within quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn has_one_dash(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-') else { return false };
    let name = rest.split('=').next().unwrap_or_default();
    name.len() > 1 && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Help speaks of flags with one dash, as people write them.
pub(crate) fn with_one_dash(help: &str) -> String {
    let mut out = String::with_capacity(help.len());
    let mut rest = help;
    while let Some(at) = rest.find("--") {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let starts_word = out.chars().last().is_none_or(|c| c.is_whitespace() || matches!(c, '[' | '(' | '`' | '\'' | 'm'));
        let names_flag = after[2..].starts_with(|c: char| c.is_ascii_alphabetic());
        out.push_str(if starts_word && names_flag { "-" } else { "--" });
        rest = &after[2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: &[&str]) {
        let given = given.iter().map(OsString::from).collect();
        assert_eq!(normalised(given), expected.iter().map(OsString::from).collect::<Vec<_>>());
    }

    #[test]
    fn one_dash_becomes_two() {
        check(&["apply", "-auto-approve", "--input=false"], &["apply", "--auto-approve", "--input=false"]);
        check(&["-chdir=x", "plan", "-var", "a=-b", "-refresh=false"], &["--chdir=x", "plan", "--var", "a=-b", "--refresh=false"]);
        check(&["-h", "-v", "-5", "-1.5", "-", "fmt"], &["-h", "-v", "-5", "-1.5", "-", "fmt"]);
        check(&["output", "--", "-raw"], &["output", "--", "-raw"]);
    }

    #[test]
    fn programs_are_told_in_json() {
        let check = |given: &[&str], expected: Reader| {
            let given: Vec<_> = given.iter().map(OsString::from).collect();
            assert_eq!(reader(&given), expected, "{given:?}");
        };
        check(&["kf", "-chdir", "d", "plan", "-foo", "-json"], Reader::Lines);
        check(&["kf", "test", "--json=true", "-var", "a"], Reader::Lines);
        check(&["kf", "validate", "-json", "nope"], Reader::Document);
        check(&["kf", "plan", "-json", "-json=false", "-foo"], Reader::Human);
        check(&["kf", "plan", "-foo", "--", "-json"], Reader::Human);
        check(&["kf", "output", "-json", "-foo"], Reader::Human);
        check(&["kf"], Reader::Human);
    }

    #[test]
    fn the_environment_adds_flags_behind_the_command() {
        let variables = |name: &str| match name {
            "KF_CLI_ARGS" => Some("-no-color".to_owned()),
            "KF_CLI_ARGS_plan" => Some("-var 'a=b c'".to_owned()),
            "KF_CLI_ARGS_state_list" => Some("-id=x".to_owned()),
            _ => None,
        };
        let check = |given: &[&str], expected: &[&str]| {
            let given = given.iter().map(OsString::from).collect();
            assert_eq!(with_environment(given, variables), expected.iter().map(OsString::from).collect::<Vec<_>>());
        };
        check(&["kf", "-chdir", "d", "plan", "-out=p"], &["kf", "-chdir", "d", "plan", "-no-color", "-var", "a=b c", "-out=p"]);
        check(&["kf", "-chdir=d", "state", "list"], &["kf", "-chdir=d", "state", "list", "-no-color", "-id=x"]);
        check(&["kf", "-version"], &["kf", "-version"]);
        check(&["kf"], &["kf"]);
    }

    #[test]
    fn help_shows_one_dash() {
        assert_eq!(with_one_dash("  --json   JSON (see --help) a--b -- \n"), "  -json   JSON (see -help) a--b -- \n");
    }
}
