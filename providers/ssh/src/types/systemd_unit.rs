//! `ssh_systemd_unit`: a unit file, whether it starts at boot, and whether it runs now.

use std::time::Duration;

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, Schema, Type, Value, default_plan,
};

use self::address::{own_address, problem as address_problem};
use self::care::{PERMISSIONS, care, permissions};
use self::turn::{Turn, strangers, turn};
use super::file::content_seen;
use super::placed::{foreign, host, refuse};
use crate::checks::{Checks, unit_problem};
use crate::client::{Act, Client};
use crate::connection::place_of;
use crate::failure;
use crate::host::Payload;
use crate::look::{Content, Look, PathKind, Seen};
use crate::sum::plan_sum;
use crate::typed::{SshType, comparable, finished, is_foreign};
use crate::values::{boolean, number, object, text};

mod address;
mod care;
mod scripts;
mod starters;
mod turn;

const KIND: &str = "ssh_systemd_unit";

/// The type.
pub(crate) struct SystemdUnit {
    schema: Schema,
}

impl SystemdUnit {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let text_map = || Type::map(Type::String);
        let attributes = vec![
            host(),
            Attribute::required("name", Type::String, "Name of the unit with its ending: \"etcd.service\".").identity(),
            Attribute::required("content", Type::String, "The unit file. It is written to /etc/systemd/system."),
            Attribute::optional("enabled", Type::Bool, "Whether it starts at boot, as its [Install] section says.").or(true),
            Attribute::optional("active", Type::Bool, "Whether it runs now.").or(true),
            Attribute::optional(
                "restart_triggers",
                text_map(),
                "Values whose change restarts it: sums of files that it reads when it starts.",
            ),
            Attribute::optional(
                "start_environment",
                text_map(),
                "Variables for a start by karmaform: written to /run/karmaform/NAME.env, which the unit may read as an EnvironmentFile.",
            )
            .write_only(),
            Attribute::optional(
                "check",
                Type::String,
                "Command for the host's `sh` that must succeed before it is started or restarted. If it fails, what runs goes on running.",
            )
            .write_only(),
            Attribute::optional(
                "ports",
                Type::list(Type::Number),
                "Ports that it listens on. Two units on one host with the same one are an error of the plan, also where one of them is not `active`.",
            )
            .write_only(),
            Attribute::optional(
                "claims",
                Type::list(Type::String),
                "What only one unit on a host can have besides ports, each in words of yours (\"the device /dev/ttyS0\"). Two units on one host with the same one are an error of the plan.",
            )
            .write_only(),
            Attribute::optional(
                "drop_ins",
                Type::list(Type::String),
                "Names of files below /etc/systemd/system/NAME.d that may change it. Others are removed, those of `systemctl set-property` and \
                 of /run/systemd/system/NAME.d, too. Unless given, nobody looks at them.",
            ),
            Attribute::optional(
                "health",
                Type::String,
                "Address at which it says how it is, as the host itself reaches it: \"http://127.0.0.1:10351/healthz\". While it runs it is asked there, by \
                 curl if the host has it; that it does not answer, or that it is not well, is `care`.",
            )
            .write_only(),
            Attribute::optional("wait", Type::Bool, "Whether to wait until it has started.").or(true),
            Attribute::optional("start_timeout", Type::Number, "Seconds that a start or stop may take.").or(90i64),
            Attribute::computed("sha256", Type::String, "SHA-256 sum of the unit file."),
            Attribute::computed("active_state", Type::String, "State as systemd says it: \"active\", \"failed\".").volatile(),
            Attribute::computed(
                "sub_state",
                Type::String,
                "More exactly: \"running\", \"auto-restart\"; \"stopped\" if somebody stopped its process (SIGSTOP).",
            )
            .volatile(),
            Attribute::computed("result", Type::String, "How its last run ended: \"success\", \"exit-code\".").volatile(),
            Attribute::computed(
                "care",
                Type::list(Type::String),
                "What it is in need of though it runs, a sentence each: it ends again and again, it does not answer at `health`, it runs as it was before a \
                 change, it is started by more than its file says.",
            )
            .volatile(),
            Attribute::computed("unlisted_drop_ins", Type::list(Type::String), "Files that may change it where nobody said which may.")
                .volatile(),
            Attribute::computed("interrupted", Type::Bool, "True if it was changed and not restarted since: it runs as it was before.").volatile(),
            Attribute::computed(
                "permissions",
                Type::String,
                "Owner, group and mode of its file where others than root may write it: \"root:root 0666\"; else null. A plan makes it root's again, with the mode 0644.",
            )
            .volatile(),
            Attribute::computed(
                "own_address",
                Type::String,
                "The IP address in `health`, if its host has it just now; empty if the host has it not, null if there is none or the host can't tell.",
            )
            .volatile(),
            foreign(),
        ];
        let schema = Schema::new("A unit of systemd on a host.", attributes).through("host").leaves_note();
        Self { schema: schema.claims("ports", Some("port")).claims("claims", None) }
    }
}

impl ResourceSpec for SystemdUnit {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        Checks::of(wanted).check("name", "Bad name of a unit", unit_problem).check("health", "Bad address", address_problem).done()?;
        if number(wanted, "start_timeout").is_some_and(|t| !(1..=86400).contains(&t)) {
            return Err(Diagnostic::error("Bad timeout", "\"start_timeout\" must be 1 to 86400 seconds.").into());
        }
        scripts::check_environment(wanted)?;
        if let Some(before) = before.filter(|b| is_foreign(b)) {
            return Err(refuse(wanted, &format!("the unit {}", text(before, "name").unwrap_or_default()), None));
        }
        let before = before.map(|b| {
            let mut before = comparable(&self.schema, b, wanted);
            // A file that may be there need not be.
            if b.contains_key("drop_ins") && strangers(b, wanted).is_empty() {
                before.insert("drop_ins".to_owned(), wanted.get("drop_ins").cloned().unwrap_or_else(|| Value::null(Type::Any)));
            }
            // it must not go on trying where it is to be stopped
            let loops = is_looping(text(b, "active_state").unwrap_or_default(), text(b, "sub_state").unwrap_or_default());
            let is_stopped = text(b, "sub_state") == Some("stopped");
            if (loops || is_stopped) && boolean(wanted, "active") == Some(false) {
                before.insert("active".to_owned(), true.into());
            }
            before
        });
        let change = default_plan(&self.schema, before.as_ref(), Some(&plan_sum(wanted, "content")));
        match (change, before) {
            (Change::NoOp { object: after }, Some(before))
                if boolean(&before, "interrupted") == Some(true) || text(&before, "permissions").is_some() =>
            {
                Ok(Change::Update { before, after })
            }
            (change, _) => Ok(change),
        }
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        let Some(object) = change.before().or(change.after()) else { return Vec::new() };
        let created_stopped = matches!(change, Change::Create { .. }) && turn(change) == Turn::Stop;
        let (name, place) = (text(object, "name").unwrap_or("the unit"), place_of(object));
        let gone = change.before().zip(change.after()).map(|(before, after)| strangers(before, after)).unwrap_or_default();
        let mut lines: Vec<String> = gone.iter().map(|file| format!("removes {file}, which changes {name} on {place}")).collect();
        let is_loose = change.after().and(change.before()).is_some_and(|before| text(before, "permissions").is_some());
        lines.extend(is_loose.then(|| format!("makes {} root's again on {place}, with the mode 0644", path_of(name))));
        let word = match turn(change) {
            Turn::Nothing => None,
            Turn::Stop if created_stopped => None,
            Turn::Start => Some("starts"),
            Turn::Restart => Some("restarts"),
            Turn::Stop => Some("stops"),
        };
        lines.extend(word.map(|word| format!("{word} {name} on {place}")));
        lines
    }
}

/// Is there from before the file is written until the unit runs with it. A reboot starts everything anew, so it may vanish with one.
fn pending_of(name: &str) -> String {
    format!("/run/karmaform/{name}.pending")
}

/// It ended, and systemd will start it again.
fn is_looping(active_state: &str, sub_state: &str) -> bool {
    active_state == "activating" && matches!(sub_state, "auto-restart" | "auto-restart-queued" | "failed")
}

fn path_of(name: &str) -> String {
    format!("/etc/systemd/system/{name}")
}

impl SshType for SystemdUnit {
    fn looks(&self, identity: &Object, known: Option<&Object>) -> Vec<Look> {
        let Some(name) = text(identity, "name") else { return Vec::new() };
        let known_sum = known.and_then(|k| text(k, "sha256")).map(str::to_owned);
        let file = |path, content| Look::File { path, content };
        let unit = Look::Unit { name: name.to_owned() };
        vec![file(path_of(name), Content::Unless(known_sum)), file(pending_of(name), Content::Never), unit]
    }

    fn looks_for(&self, ask: &Ask) -> Vec<Look> {
        let mut looks = self.looks(&ask.identity, ask.known.as_ref());
        // Only of what is there already: what is wanted says where.
        let url = ask.known.as_ref().and(ask.wanted.as_ref()).and_then(|wanted| text(wanted, "health"));
        if let (Some(unit), Some(url)) = (text(&ask.identity, "name"), url.filter(|url| address_problem(url).is_none())) {
            looks.push(Look::Health { unit: unit.to_owned(), url: url.to_owned() });
        }
        looks
    }

    fn answer_for(&self, seen: &Seen, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
        let Some(mut object) = self.answer(seen, &ask.identity, ask.known.as_ref())? else { return Ok(None) };
        // Where it is not to start at a boot any link is one too many, wherever it is.
        if ask.wanted.as_ref().is_some_and(|wanted| boolean(wanted, "enabled") == Some(false))
            && seen.unit(text(&ask.identity, "name").unwrap_or_default())?.file_state == "enabled"
        {
            object.insert("enabled".to_owned(), true.into());
        }
        let url = ask.wanted.as_ref().and_then(|wanted| text(wanted, "health"));
        object.insert("own_address".to_owned(), own_address(&seen.addresses, url).map_or_else(|| Value::null(Type::String), Value::from));
        Ok(Some(object))
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let name = text(identity, "name").unwrap_or_default();
        let path = path_of(name);
        let unit = seen.unit(name)?;
        let ours = known.is_some() || seen.owned.has(KIND, name);
        let file = seen.path(&path)?;
        if file.is_none() && (ours || unit.fragment_path.is_empty()) {
            return Ok(None);
        }
        // one that waits for its next attempt does not run, and one that was stopped does nothing; one that is still starting may well
        let is_active = matches!(unit.active_state.as_str(), "active" | "activating" | "reloading")
            && !is_looping(&unit.active_state, &unit.sub_state)
            && !unit.is_stopped;
        let is_cut_off = seen.path(&pending_of(name))?.is_some();
        let is_interrupted = is_cut_off || (is_active && unit.is_older);
        let mut care = if is_active { care(unit, is_cut_off) } else { Vec::new() };
        care.extend(starters::beside(unit, file, known));
        let permissions = file.filter(|file| known.is_some() && file.kind == PathKind::File).and_then(permissions);
        care.extend(permissions.iter().map(|is| format!("somebody gave its file away: it is {is}, and should be {PERMISSIONS}")));
        let mut object = object([
            ("name", name.into()),
            ("active", is_active.into()),
            ("active_state", unit.active_state.as_str().into()),
            ("sub_state", if unit.is_stopped { "stopped" } else { unit.sub_state.as_str() }.into()),
            ("result", unit.result.as_str().into()),
            ("care", Value::strings(care)),
            ("interrupted", is_interrupted.into()),
            ("permissions", permissions.map_or_else(|| Value::null(Type::String), Value::from)),
            ("foreign", (!ours).into()),
        ]);
        let listed = known.and_then(|k| k.get("drop_ins")).filter(|d| !d.is_null());
        match listed.and_then(Value::as_items) {
            // Which of those that may be there are there is not what anybody asked for.
            Some(may) if unit.drop_ins.iter().all(|file| may.contains(&Value::from(file.as_str()))) => {
                object.extend(listed.map(|d| ("drop_ins".to_owned(), d.clone())));
            }
            Some(_) => drop(object.insert("drop_ins".to_owned(), Value::strings(&unit.drop_ins))),
            None => drop(object.insert("unlisted_drop_ins".to_owned(), Value::strings(&unit.drop_ins))),
        }
        match file {
            Some(file) if file.kind == PathKind::File => content_seen(file, known, &mut object),
            // masked, or a link to somewhere: not what we wrote, whatever it is
            _ => {
                object.insert("content".to_owned(), Value::null(Type::String));
                object.insert("sha256".to_owned(), Value::null(Type::String));
            }
        }
        // "static" and the like: without an [Install] section a unit is neither enabled nor disabled
        match unit.file_state.as_str() {
            "enabled" if starters::lacks(unit, file, known) => drop(object.insert("enabled".to_owned(), false.into())),
            "enabled" => drop(object.insert("enabled".to_owned(), true.into())),
            // what is enabled in /run alone no boot starts
            "enabled-runtime" | "disabled" | "masked" | "masked-runtime" => drop(object.insert("enabled".to_owned(), false.into())),
            _ => {}
        }
        Ok(Some(object))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(object) = change.after().or(change.before()) else { return Ok(None) };
            let name = text(object, "name").unwrap_or_default();
            let limit = number(object, "start_timeout").and_then(|s| u64::try_from(s).ok()).unwrap_or(90);
            let (what, body) = match change.after() {
                Some(after) => (format!("Setting up the unit {name}"), scripts::set_up(after, change, turn(change), limit)),
                None => (format!("Deleting the unit {name}"), scripts::remove(name, limit)),
            };
            let mut act = Act::new(what, body)
                // twice: a restart stops and starts
                .with_timeout(Duration::from_secs(2 * limit + 30))
                .with_secrets(crate::values::secrets(object, &["start_environment", "content", "check"]));
            if let Some(after) = change.after() {
                let content = text(after, "content").unwrap_or_default().as_bytes().to_vec();
                act = act
                    .with_payload(Payload::Bytes(content))
                    .then_look(vec![Look::File { path: path_of(name), content: Content::Never }, Look::Unit { name: name.to_owned() }]);
            }
            let seen = scripts::run(client, act, name, limit).await?;
            match change.after() {
                Some(after) => finished(self, &seen, after),
                None => Ok(None),
            }
        })
    }
}

/// A start or stop that did not work, with what systemd and the journal say.
fn start_failed(what: &str, name: &str, limit: u64, said: (&str, &str), text: &str) -> Diagnostic {
    let (status, journal) = said;
    let (summary, sentence) = match text {
        "timeout" => ("Unit did not start in time", format!("{name} was still starting after {limit} s.")),
        "stop" => ("Unit did not stop", format!("{name} could not be stopped within {limit} s.")),
        "check" => ("Unit was not started", format!("The command \"check\" failed, so {name} was left as it is.")),
        "died" => ("Unit did not stay up", format!("{name} started and ended again at once.")),
        _ => ("Unit did not start", format!("{name} could not be started.")),
    };
    // The C library's words, and Go's.
    let is_full = journal.to_lowercase().contains("no space left on device");
    let (status, journal) = (failure::tail(status, 20), failure::tail(&without_traces(journal), 10));
    let mut detail = format!("{what}: {sentence}");
    for (word, text) in [("systemd says", status), ("The journal says", journal)] {
        if !text.is_empty() {
            detail.push_str(&format!(" {word}:\n{text}\n"));
        }
    }
    let failed = Diagnostic::error(summary, detail.trim_end());
    let failed = if is_full { failed.with_hint(failure::MAKE_ROOM) } else { failed };
    failed.with_hint(format!("On the host, \"journalctl -u {name}\" shows more."))
}

/// A text without the stack traces of Go, as etcd and all of Kubernetes end with: after each come only a few lines of systemd's, and the reason stands
/// before it. A trace is `goroutine 1 [running]:`, and then two lines for each frame, the second one indented.
fn without_traces(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (mut kept, mut is_trace) = (Vec::new(), false);
    for (i, line) in lines.iter().enumerate() {
        let is_frame = [Some(line), lines.get(i + 1)].into_iter().flatten().any(|l| l.starts_with('\t'));
        is_trace = (line.starts_with("goroutine ") && line.ends_with("]:")) || (is_trace && is_frame);
        if !is_trace {
            kept.push(*line);
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests;
