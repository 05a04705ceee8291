//! `ssh_hosts_entries`: a block of lines in /etc/hosts, between two lines that say whose it is.
//!
//! The markers are all the note there is: a block with ours is ours, also when the state is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use karmaform_model::{
    Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, Schema, Type, Value, default_plan,
};

use super::placed::host;
use crate::checks::Checks;
use crate::client::{Act, Client};
use crate::look::{DAMAGED, HOSTS, Look, Seen, damaged, markers};
use crate::script::{here, quote};
use crate::typed::{SshType, comparable, finished};
use crate::values::{object, secrets, text};

const KIND: &str = "ssh_hosts_entries";

/// Changes the file, all but one block of which is somebody else's.
const EDIT: &str = include_str!("hosts_entries/edit.sh");

/// The type.
pub(crate) struct HostsEntries {
    schema: Schema,
}

impl HostsEntries {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            host(),
            Attribute::required(
                "name",
                Type::String,
                "What the block is called: letters, digits, \"-\", \"_\" and \".\". It begins with \"# BEGIN karmaform NAME\" and ends with \
                 \"# END karmaform NAME\".",
            )
            .identity(),
            Attribute::required(
                "entries",
                Type::list(entry_type()),
                "The lines of the block: an IP address each, and the names that stand for it. Several lines may have the same name.",
            ),
            Attribute::computed(
                "care",
                Type::list(Type::String),
                "What beside the block is in its way: lines of others that give a name of it another address, a file that only root can read.",
            )
            .volatile(),
            Attribute::computed("damaged", Type::String, "Why it can't be told which lines are ours: a marker is gone, or there twice.").volatile(),
        ];
        let doc = "A block of lines in /etc/hosts on a host. Nothing else in the file is changed.";
        Self { schema: Schema::new(doc, attributes).through("host") }
    }
}

fn entry_type() -> Type {
    Type::object([("address", Type::String), ("names", Type::list(Type::String))])
}

impl ResourceSpec for HostsEntries {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        // Which lines are ours and which are not can't be told, so none is touched.
        if let Some(why) = before.and_then(|b| text(b, "damaged")) {
            return Err(Diagnostic::error(DAMAGED, why.to_owned())
                .with_hint("Put that line back, or remove what is left of the block.")
                .into());
        }
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        let name_problem = |n: &str| {
            let good = (1..=100).contains(&n.len()) && n.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            (!good).then(|| "is no name of a block: 1 to 100 letters, digits, \"-\", \"_\" and \".\"".to_owned())
        };
        Checks::of(wanted).check("name", "Bad name", name_problem).done()?;
        check_entries(wanted)?;
        let before = before.map(|b| comparable(&self.schema, b, wanted));
        Ok(default_plan(&self.schema, before.as_ref(), Some(wanted)))
    }
}

/// What would not come back as it was written, or would be read as something else. What is not known yet is passed over.
fn check_entries(wanted: &Object) -> Result<(), Diagnostics> {
    let entries = wanted.get("entries").filter(|e| !e.is_unknown());
    let hidden = entries.is_some_and(|e| e.secret);
    let mut found = Diagnostics::new();
    for (index, entry) in entries.and_then(Value::as_items).unwrap_or_default().iter().enumerate() {
        let mut check = |part: &str, value: Option<&Value>, problem: &dyn Fn(&str) -> bool, summary: &str, what: &str| {
            let Some(value) = value.filter(|v| !v.is_unknown()) else { return };
            let said = match value.as_str() {
                Some(text) if !problem(text) => return,
                Some(text) if !hidden && !entry.secret && !value.secret && text.len() <= 300 => format!("\"{}\"", text.escape_debug()),
                _ => "The value".to_owned(),
            };
            found.push(Diagnostic::error(summary, format!("{said} in \"entries[{index}].{part}\" {what}.")));
        };
        let is_no_address = |a: &str| a.parse::<IpAddr>().is_err();
        check("address", entry.get("address"), &is_no_address, "Bad address", "is no IP address");
        let names = entry.get("names");
        for name in names.and_then(Value::as_items).unwrap_or_default() {
            check("names", Some(name), &|n| !is_host_name(n), "Bad name", "is no DNS name, as a host's is");
        }
        if names.is_none_or(|n| n.is_null() || n.as_items().is_some_and(<[Value]>::is_empty)) && !entry.is_unknown() {
            found.push(Diagnostic::error("No name", format!("\"entries[{index}]\" has no name for its address.")));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Labels of letters, digits, `-` and `_`. One without a dot at its end: /etc/hosts knows no such names.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The block as it stands in the file.
fn block(after: &Object) -> String {
    let (begin, end) = markers(text(after, "name").unwrap_or_default());
    let mut lines = format!("{begin}\n");
    for entry in after.get("entries").and_then(Value::as_items).unwrap_or_default() {
        lines.push_str(entry.get("address").and_then(Value::as_str).unwrap_or_default());
        for name in entry.get("names").and_then(Value::as_items).unwrap_or_default() {
            lines.push(' ');
            lines.push_str(name.as_str().unwrap_or_default());
        }
        lines.push('\n');
    }
    lines + &end + "\n"
}

/// The script that puts the block there, or takes it away. The block is a part of it: cut off on its way, it would not run at all.
fn edit(file: &str, name: &str, block: Option<&str>) -> String {
    // of all that a name may hold, the dot alone means something in a regular expression
    let pattern = quote(&name.replace('.', "[.]"));
    let put = block.is_some();
    let fed = block.map(|b| here(3, b)).unwrap_or_default();
    format!("hosts={}\npattern={pattern}\nput={put}\n{EDIT}\nlocked edit {fed}\n", quote(file))
}

/// What beside these lines keeps names from standing for the addresses that they say. `beside` is the mode of the file, what writes it anew, and its
/// other lines.
fn in_the_way(beside: &str, lines: &[&str]) -> Vec<String> {
    let words = |line: &str| line.split('#').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut ours: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in lines.iter().map(|l| words(l)) {
        for name in line.iter().skip(1) {
            ours.entry(name.clone()).or_default().extend(line.first().cloned());
        }
    }
    let mut found = Vec::new();
    for line in beside.lines() {
        if let Some(mode) = line.strip_prefix("mode ") {
            let bits = u32::from_str_radix(mode, 8).unwrap_or(0o644);
            if bits & 0o004 == 0 {
                found.push(format!("only root and its group can read {HOSTS} (mode {mode}), and components run as neither"));
            }
            if bits & 0o002 != 0 {
                found.push(format!("anybody may write {HOSTS} (mode {mode}), and lead its names elsewhere"));
            }
            continue;
        }
        if line == "rewritten" {
            found.push(format!(
                "cloud-init writes {HOSTS} anew at each boot, and the block is gone then: set `manage_etc_hosts` to false in its configuration, and take \
                 what it says of that out of the file"
            ));
            continue;
        }
        let line = words(line);
        let Some((address, names)) = line.split_first() else { continue };
        let others = names.iter().filter(|n| ours.get(*n).is_some_and(|addresses| !addresses.contains(address)));
        found.extend(others.map(|name| format!("a line of somebody else in {HOSTS} says that {name} is {address}")));
    }
    found
}

impl SshType for HostsEntries {
    fn looks(&self, _: &Object, _: Option<&Object>) -> Vec<Look> {
        vec![Look::HostsBlocks]
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let name = text(identity, "name").unwrap_or_default();
        let lines = match seen.hosts_block(name)? {
            None => return Ok(None),
            Some(Ok(lines)) => lines,
            // It was ours: somebody changed it, and nobody can say to what.
            Some(Err(damage)) if known.is_some() => {
                let entries = Value::null(Type::list(entry_type()))
                    .secret_if(known.and_then(|k| k.get("entries")).is_some_and(Value::contains_secret));
                return Ok(Some(object([("name", name.into()), ("entries", entries), ("damaged", damage.detail.as_str().into())])));
            }
            Some(Err(damage)) => return Err(damage),
        };
        // Whatever else stands there, a comment for one, is a line that should not be there.
        let entry = |line: &&str| {
            let mut words = line.split_whitespace();
            Value::object([("address", words.next().unwrap_or_default().into()), ("names", Value::strings(words))])
        };
        let secret = known.and_then(|k| k.get("entries")).is_some_and(Value::contains_secret);
        let entries = Value::list(entry_type(), lines.iter().map(entry).collect()).secret_if(secret);
        let care = if secret { Vec::new() } else { in_the_way(&seen.hosts_beside, &lines) };
        Ok(Some(object([("name", name.into()), ("entries", entries), ("care", Value::strings(&care))])))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(object) = change.after().or(change.before()) else { return Ok(None) };
            let name = text(object, "name").unwrap_or_default();
            let wanted = change.after().map(block);
            let what = if wanted.is_some() { "Writing" } else { "Deleting" };
            let act = Act::new(format!("{what} the block {name} in {HOSTS}"), edit(HOSTS, name, wanted.as_deref()))
                .with_secrets(secrets(object, &["entries"]))
                .then_look(self.looks(object, None));
            let attempt = client.attempt(act).await?;
            if attempt.output.reason().is_some_and(|(word, _)| word == "damaged") {
                return Err(damaged(&client.place(), name));
            }
            let seen = client.conclude(&attempt)?;
            match change.after() {
                Some(after) => finished(self, &seen, after),
                None => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests;
