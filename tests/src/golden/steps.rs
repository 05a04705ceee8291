//! Runs the sections of a case, one after the other, and gives the case back as it is now.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use karmaform_memory::{Fault, World};
use karmaform_model::Registry;

use super::case::{Case, Section, trimmed};
use super::{annotations, state};
use crate::parts::{command, memory_registry};

/// What a case runs in.
struct Scene {
    directory: tempfile::TempDir,
    world: Arc<World>,
    registry: Arc<Registry>,
    commands: usize,
}

/// # Errors
/// What is wrong with the case itself.
pub(super) fn run(case: &Case) -> Result<Case, String> {
    let world = World::new();
    let registry = memory_registry(&world);
    if !case.sections.iter().any(|s| s.name.starts_with('$')) {
        return annotations::run(case, &registry);
    }
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut scene = Scene { directory, world, registry, commands: 0 };
    let mut now = case.clone();
    for section in &mut now.sections {
        section.body = scene.section(section).map_err(|e| format!("-- {} --: {e}", section.name))?;
    }
    Ok(now)
}

impl Scene {
    /// Does a section, and gives its text as it is now.
    fn section(&mut self, section: &Section) -> Result<String, String> {
        let body = &section.body;
        if let Some(line) = section.name.strip_prefix("$ ") {
            self.commands += 1;
            return Ok(brief(&self.command(line)));
        }
        if let Some(line) = section.name.strip_prefix("$$ ") {
            self.commands += 1;
            return Ok(self.command(line));
        }
        if let Some(what) = section.name.strip_prefix("fails ") {
            self.fails(what)?;
            return Ok(body.clone());
        }
        match section.name.as_str() {
            "world" if self.commands > 0 => return Ok(self.world.text()),
            "world" => self.world.preset(body)?,
            "someone changes" => self.someone_changes(body)?,
            "state" => {
                let text = state::snapshot(body, &self.registry)?.to_text();
                fs::write(self.path().join("karmaform.tfstate"), text).map_err(|e| e.to_string())?;
            }
            file => {
                let path = self.path().join(file);
                let parent = path.parent().unwrap_or(self.path());
                fs::create_dir_all(parent).and_then(|()| fs::write(&path, body)).map_err(|e| e.to_string())?;
            }
        }
        Ok(body.clone())
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn command(&self, line: &str) -> String {
        let words = words(line);
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        // Nobody sits there to say yes; `-input` cases say what they want themselves.
        if matches!(arguments.first(), Some(&("apply" | "destroy"))) && !line.contains("-auto-approve") {
            arguments.insert(1, "-auto-approve");
        }
        let ran = command(self.path(), &self.registry, &arguments, "");
        let mut text = ran.stdout;
        if !ran.stderr.is_empty() {
            text.push_str(&ran.stderr);
        }
        if ran.code != 0 {
            text.push_str(&format!("\n(exit code {})\n", ran.code));
        }
        trimmed(&steady(&text.replace(&self.path().display().to_string(), "DIR")))
    }

    fn fails(&self, what: &str) -> Result<(), String> {
        let words: Vec<_> = what.splitn(2, ' ').collect();
        let number = || words.get(1).and_then(|n| n.parse().ok()).ok_or("a number is missing");
        match (words[0], words.get(1)) {
            ("nothing", _) => self.world.heal(),
            ("apply", _) => self.world.inject(Fault::apply(number()?)),
            ("observe", _) => self.world.inject(Fault::observe(number()?)),
            ("host", Some(id)) => self.world.fail_host(id),
            (kind, Some(identity)) => self.world.inject(Fault::apply_to(kind, identity)),
            (_, None) => return Err("say what fails".to_owned()),
        }
        Ok(())
    }

    /// Lines as in a world; only the attributes they name change.
    fn someone_changes(&self, body: &str) -> Result<(), String> {
        for line in body.lines() {
            let other = World::new();
            let (name, gone) = line.strip_suffix(" = null").map_or((line, false), |name| (name, true));
            other.preset(&if gone { format!("{name} = {{}}") } else { line.to_owned() })?;
            let kind = name.split(' ').next().unwrap_or_default();
            for (place, changes) in other.list(kind) {
                let mut object = self.world.get(&place).unwrap_or_default();
                object.extend(changes);
                if gone {
                    self.world.remove(&place).ok_or("there is no such thing")?;
                } else {
                    self.world.set(place, object)?;
                }
            }
        }
        Ok(())
    }
}

/// What every plan and apply says in the same words; a case that is about these says `$$`.
const ALWAYS_THE_SAME: [&str; 16] = [
    "karmaform used the linked providers",
    "karmaform will perform the following actions",
    "karmaform has compared your real infrastructure",
    "karmaform detected the following changes made outside",
    "Unless you have made equivalent changes",
    "───",
    "Note: You didn't use the -out option",
    "Saved the plan to:",
    "To perform exactly these actions",
    "  + create",
    "  ~ update in-place",
    "  - destroy",
    "-/+ destroy and then create replacement",
    "+/- create replacement and then destroy",
    " <= read (data resources)",
    "with the following symbols:",
];

/// What is random or of today in certificates, by a word for it.
fn steady(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if line.contains("-----END ") {
            is_inside = false;
        } else if line.contains("-----BEGIN ") && !line.contains("-----BEGIN CERTIFICATE-----\"") {
            is_inside = true;
        } else if is_inside {
            continue;
        }
        let line: String = line.split_inclusive('"').map(steady_word).collect();
        lines.push(if line.contains(" fingerprint ") { without_sum(&line) } else { line });
    }
    lines.join("\n")
}

/// A time or a serial number that stands alone in quotes; the day that a certificate expires.
fn steady_word(word: &str) -> String {
    let Some(bare) = word.strip_suffix('"') else {
        return match word.split_once("that expires on ") {
            Some((before, _)) => format!("{before}that expires on (a day)"),
            None => word.to_owned(),
        };
    };
    let is_time = bare.len() == 20 && bare.ends_with('Z') && bare.as_bytes()[10] == b'T';
    let is_serial = (38..=40).contains(&bare.len()) && bare.bytes().all(|b| b.is_ascii_hexdigit());
    if is_time {
        "(a time)\"".to_owned()
    } else if is_serial {
        "(a serial number)\"".to_owned()
    } else {
        word.to_owned()
    }
}

/// The fingerprint of a key, which is another one in every run.
fn without_sum(line: &str) -> String {
    let word =
        |w: &str| if w.len() == 64 && w.bytes().all(|b| b.is_ascii_hexdigit()) { "(a fingerprint)".to_owned() } else { w.to_owned() };
    line.split('"').map(word).collect::<Vec<_>>().join("\"")
}

/// Without what is always the same, and without double blank lines.
pub(crate) fn brief(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut is_dropped = false;
    for line in text.lines() {
        // What is dropped goes with the rest of its paragraph; what is indented, and a rule, is none.
        is_dropped = ALWAYS_THE_SAME.iter().any(|s| line.starts_with(s)) || is_dropped && line.starts_with(char::is_alphabetic);
        if is_dropped {
            continue;
        }
        if !(line.is_empty() && lines.last().is_none_or(|l| l.is_empty())) {
            lines.push(line);
        }
    }
    trimmed(&lines.join("\n"))
}

/// Words as a shell would split them: blanks outside of quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut fresh) = (Vec::<String>::new(), None, true);
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => {
                (quote, fresh) = (Some(c), {
                    if fresh {
                        words.push(String::new())
                    };
                    false
                })
            }
            (c, Some(q)) if c == q => quote = None,
            (' ', None) => fresh = true,
            (c, _) => {
                if fresh && quote.is_none() {
                    words.push(String::new());
                }
                fresh = false;
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}

#[test]
fn words_are_split_as_a_shell_does() {
    assert_eq!(words(r#"plan -var 'a=b c' -out="x y"  z"#), ["plan", "-var", "a=b c", "-out=x y", "z"]);
}
