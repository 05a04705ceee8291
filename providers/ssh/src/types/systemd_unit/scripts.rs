//! What is run on the host for a unit.

use karmaform_model::{Change, Diagnostic, Diagnostics, Object, Value, redact, same};

use super::{KIND, Turn, path_of, pending_of, start_failed};
use crate::checks::unit_problem;
use crate::client::{Act, Client};
use crate::host::Output;
use crate::look::Seen;
use crate::script::{here, quote};
use crate::sum::sha256;
use crate::values::{boolean, entries, text};

/// Functions of both scripts: `name`, `path`, `pending` and `limit` are set.
const FUNCTIONS: &str = include_str!("unit.sh");

/// The variables of a start must have names that systemd takes.
pub(super) fn check_environment(wanted: &Object) -> Result<(), Diagnostics> {
    let bad = |n: &str| {
        !(n.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    match entries(wanted, "start_environment").into_iter().find(|(n, v)| bad(n) || v.contains('\0')) {
        Some((name, _)) => {
            Err(Diagnostic::error("Bad name", format!("\"{name}\" in \"start_environment\" is no variable that systemd takes.")).into())
        }
        None => Ok(()),
    }
}

/// One line of an EnvironmentFile.
pub(super) fn environment_line(name: &str, value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    format!("{name}=\"{escaped}\"\n")
}

fn head(name: &str, limit: u64) -> String {
    format!("name={}\npath={}\npending={}\nlimit={limit}\n{FUNCTIONS}\n", quote(name), quote(&path_of(name)), quote(&pending_of(name)))
}

/// Writes the file, enables or disables, starts, restarts or stops.
pub(super) fn set_up(after: &Object, change: &Change, turn: Turn, limit: u64) -> String {
    let name = text(after, "name").unwrap_or_default();
    let mut script = head(name, limit);
    script.push_str("need_systemd\n");
    if matches!(change, Change::Create { .. }) {
        script.push_str("refuse_foreign_unit\n");
    }
    if matches!(turn, Turn::Start | Turn::Restart)
        && let Some(check) = text(after, "check")
    {
        script.push_str(&format!("check_start {}\n", quote(check)));
    }
    script.push_str(&format!("claim {KIND} \"$name\" \"$path\"\n"));
    let sum = sha256(text(after, "content").unwrap_or_default().as_bytes());
    let mark = match turn {
        Turn::Restart => "mark_pending\n",
        Turn::Start => "if $newer; then mark_pending; fi\n",
        Turn::Nothing | Turn::Stop => "",
    };
    // standard input is the unit file; nothing before may read from it
    script.push_str(&format!(
        "old=; if [ -f \"$path\" ]; then old=$(sha256sum \"$path\" 2>/dev/null </dev/null); fi\n\
         if [ \"${{old%% *}}\" = {sum} ] && [ ! -e \"$pending\" ]; then newer=false; else newer=true; fi\n\
         {mark}install_file \"$path\" {sum} root:root 0644\n"
    ));
    if let Some(allowed) = after.get("drop_ins").and_then(Value::as_items) {
        let allowed: Vec<String> = allowed.iter().filter_map(Value::as_str).map(quote).collect();
        script.push_str(&format!("keep_drop_ins {}\n", allowed.join(" ")));
    }
    let enabled = boolean(after, "enabled").unwrap_or(true);
    // also after a change of the file: its [Install] section may be another one; where that was cut off, nobody knows how far it came
    let is_other_file = matches!(change, Change::Update { before, .. }
        if !same(before.get("sha256"), after.get("sha256")) || boolean(before, "interrupted") == Some(true));
    let settled = !is_other_file && matches!(change, Change::Update { before, .. } if same(before.get("enabled"), after.get("enabled")));
    match (settled, enabled, is_other_file) {
        (true, ..) => {}
        (false, true, true) => script.push_str("reenable_unit\n"),
        (false, true, false) => script.push_str("enable_unit\n"),
        (false, false, _) => script.push_str("disable_unit\n"),
    }
    script.push_str("reload\n");
    if matches!(turn, Turn::Start | Turn::Restart) {
        script.push_str(&environment(after));
    }
    let wait = boolean(after, "wait").unwrap_or(true);
    match turn {
        Turn::Nothing => {}
        Turn::Start => script.push_str(&format!("if $newer; then start_unit restart {wait}; else start_unit start {wait}; fi\n")),
        Turn::Restart => script.push_str(&format!("start_unit restart {wait}\n")),
        Turn::Stop => script.push_str("stop_unit\n"),
    }
    // Where nothing is started nothing of an earlier start is open any more.
    script.push_str(if matches!(turn, Turn::Start | Turn::Restart) { "clear_pending own\n" } else { "clear_pending all\n" });
    script
}

fn environment(after: &Object) -> String {
    let lines: String = entries(after, "start_environment").iter().map(|(n, v)| environment_line(n, v)).collect();
    if lines.is_empty() { "drop_environment\n".to_owned() } else { format!("write_environment {}\n", here(3, &lines)) }
}

/// Stops it and removes everything of it.
pub(super) fn remove(name: &str, limit: u64) -> String {
    // never with a name that is no unit's: it becomes part of paths
    if unit_problem(name).is_some() {
        return format!("fail kind {}", quote(name));
    }
    format!("{}need_systemd\nremove_unit\nrelease {KIND} \"$name\" \"$path\"\n", head(name, limit))
}

/// Runs it; a start that failed is told with what systemd says.
pub(super) async fn run(client: &Client, act: Act, name: &str, limit: u64) -> Result<Seen, Diagnostic> {
    let attempt = client.attempt(act).await?;
    match failed(&attempt.what, &attempt.output, &attempt.secrets, (name, limit)) {
        Some(why) => Err(why),
        None => client.conclude(&attempt),
    }
}

/// What only the scripts of units fail of.
pub(super) fn failed(what: &str, output: &Output, secrets: &[String], (name, limit): (&str, u64)) -> Option<Diagnostic> {
    let (word, text) = output.reason()?;
    match word.as_str() {
        "unit" => {
            let section = |n: &str| redact(&String::from_utf8_lossy(output.section(n).unwrap_or_default()), secrets);
            Some(start_failed(what, name, limit, (&section("status"), &section("journal")), &text))
        }
        "systemd" => Some(
            Diagnostic::error("Host does not run systemd", format!("{what}: systemd is not the init of this host."))
                .with_hint("Units need systemd as the host's init: take a host that runs it."),
        ),
        _ => None,
    }
}
