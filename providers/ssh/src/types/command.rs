//! `ssh_command`: a command of the user's, for what no other type does.

use std::time::Duration;

use karmaform_model::{
    Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, Schema, Type, Value, default_plan, redact,
    same,
};

use super::placed::host;
use crate::checks::Checks;
use crate::client::{Act, Client};
use crate::failure::tail;
use crate::host::Output;
use crate::look::{Look, Run, Seen};
use crate::script::quote;
use crate::typed::{SshType, comparable};
use crate::values::{entries, number, secrets, text};

const KIND: &str = "ssh_command";

/// What is kept of an output.
const OUTPUT: usize = 64 << 10;

/// What may hold a secret.
const SECRET_PARTS: &[&str] = &["environment", "run_environment", "command", "check", "undo"];

/// Where variables are from.
const VARIABLES: [&str; 2] = ["environment", "run_environment"];

/// The type.
pub(crate) struct Command {
    schema: Schema,
}

impl Command {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let attributes = vec![
            host(),
            Attribute::required("command", Type::String, "Command for the host's `sh`; it should be safe to run again."),
            Attribute::optional(
                "check",
                Type::String,
                "Command whose exit status 0 says that nothing is to be done. Without it, the state is believed.",
            ),
            Attribute::optional("undo", Type::String, "Command to run when this is destroyed."),
            Attribute::optional("triggers", Type::map(Type::String), "Values whose change runs the command again."),
            Attribute::optional(
                "environment",
                Type::map(Type::String),
                "Environment of all three commands. It is in no argument list and no log.",
            ),
            Attribute::optional(
                "run_environment",
                Type::map(Type::String),
                "More of the environment, for `command` alone. It is not remembered, and another one runs nothing again.",
            )
            .write_only(),
            Attribute::optional("timeout", Type::Number, "Seconds after which a command is ended.").or(60i64),
            Attribute::computed(
                "output",
                Type::String,
                "What the command printed, without white space at the end; of much, the last 64 KiB.",
            ),
        ];
        Self { schema: Schema::new("A command run on a host.", attributes).through("host") }
    }
}

/// True if the difference is one that runs the command again.
fn runs_again(before: &Object, after: &Object) -> bool {
    ["command", "triggers", "environment"].iter().any(|name| !same(before.get(name), after.get(name)))
}

impl ResourceSpec for Command {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        Checks::of(wanted).no_zero_bytes("command").no_zero_bytes("check").no_zero_bytes("undo").done()?;
        for (from, name) in VARIABLES.into_iter().flat_map(|from| entries(wanted, from).into_iter().map(move |(name, _)| (from, name))) {
            let good = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !good {
                return Err(Diagnostic::error("Bad name", format!("\"{name}\" in \"{from}\" is no name of a variable.")).into());
            }
        }
        if number(wanted, "timeout").is_some_and(|t| !(1..=86400).contains(&t)) {
            return Err(Diagnostic::error("Bad timeout", "\"timeout\" must be 1 to 86400 seconds.").into());
        }
        let before = before.map(|b| comparable(&self.schema, b, wanted));
        let mut change = default_plan(&self.schema, before.as_ref(), Some(wanted));
        if let Change::Update { before, after } = &mut change
            && runs_again(before, after)
        {
            after.insert("output".to_owned(), Value::unknown(Type::String));
        }
        Ok(change)
    }

    /// Nothing on the host tells that it ran. Where it has a `check`, that will.
    fn recovered(&self, wanted: &Object, _: &Object) -> Result<Option<Object>, Diagnostic> {
        Ok(Some(wanted.clone()))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        let runs = match change {
            Change::Update { before, after } => runs_again(before, after),
            Change::Delete { before } => text(before, "undo").is_some(),
            _ => false,
        };
        let place = crate::connection::place_of(change.before().unwrap_or(&Object::new()));
        let what = if matches!(change, Change::Delete { .. }) { "runs the undo command" } else { "runs the command again" };
        if runs { vec![format!("{what} on {place}")] } else { Vec::new() }
    }
}

fn limit(object: &Object) -> Duration {
    Duration::from_secs(number(object, "timeout").and_then(|s| u64::try_from(s).ok()).unwrap_or(60))
}

fn run(object: &Object, command: &str) -> Run {
    Run {
        id: crate::sum::sha256(command.as_bytes()),
        command: command.to_owned(),
        environment: entries(object, "environment"),
        timeout: limit(object),
    }
}

impl SshType for Command {
    fn looks(&self, _: &Object, known: Option<&Object>) -> Vec<Look> {
        known.and_then(|k| Some(Look::Run(run(k, text(k, "check")?)))).into_iter().collect()
    }

    fn answer(&self, seen: &Seen, _: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        // nothing on the host names it: if the state does not know it, it has not run
        let Some(known) = known else { return Ok(None) };
        let Some(check) = text(known, "check") else { return Ok(Some(Object::new())) };
        match seen.runs.get(&run(known, check).id) {
            Some(0) => Ok(Some(Object::new())),
            Some(124 | 137) => Err(Diagnostic::error(
                "Check took too long",
                format!("The check of a command on {} did not end within {} s.", seen.place, limit(known).as_secs()),
            )),
            Some(_) => Ok(None),
            None => Err(Diagnostic::error("Check did not run", format!("The check of a command on {} gave no answer.", seen.place))),
        }
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(object) = change.after().or(change.before()) else { return Ok(None) };
            let (what, command) = match change {
                Change::Delete { before } => ("The undo command", text(before, "undo")),
                Change::Update { before, after } if !runs_again(before, after) => return Ok(Some(after.clone())),
                _ => ("The command", text(object, "command")),
            };
            let Some(command) = command else { return Ok(change.after().cloned()) };
            // an unfinished run, whose command is not known to have ended, is looked at like a new one
            let may_be_done = change.before().is_none_or(|b| text(b, "command").is_none());
            let check = text(object, "check").filter(|_| may_be_done);
            let printed = execute(client, object, what, command, check).await?;
            let Some(mut after) = change.after().cloned() else { return Ok(None) };
            let secret = SECRET_PARTS.iter().any(|n| after.get(n).is_some_and(Value::contains_secret));
            after.insert("output".to_owned(), Value::from(printed).secret_if(secret));
            Ok(Some(after))
        })
    }
}

/// Runs a command unless its check says that there is nothing to do. Gives what it printed.
async fn execute(client: &Client, object: &Object, what: &str, command: &str, check: Option<&str>) -> Result<String, Diagnostic> {
    let mut body = String::new();
    let mut time = limit(object) + Duration::from_secs(20);
    if let Some(check) = check {
        body.push_str(&format!("{{ {} }} >/dev/null 2>&1\nif [ $? = 0 ]; then exit 0; fi\n", run(object, check).script()));
        time += limit(object);
    }
    let mut act = run(object, command);
    act.environment.extend(entries(object, "run_environment"));
    body.push_str(&format!("section {}\n{}exit $?\n", quote("output"), act.script()));
    let hidden = secrets(object, SECRET_PARTS);
    let output = client.change(Act::new("Running a command", body).with_timeout(time).with_secrets(hidden.clone())).await?;
    let printed = String::from_utf8_lossy(output.section("output").unwrap_or_default()).trim_end().to_owned();
    if output.status == 0 {
        return Ok(last(&printed, OUTPUT).to_owned());
    }
    Err(failed(client, object, what, &output, &redact(&printed, &hidden), &redact(&output.stderr, &hidden)))
}

fn failed(client: &Client, object: &Object, what: &str, output: &Output, printed: &str, complained: &str) -> Diagnostic {
    let last = match tail(&format!("{printed}\n{complained}"), 15) {
        text if text.is_empty() => "It printed nothing.".to_owned(),
        text => format!("The last that it printed:\n{text}"),
    };
    let place = client.place();
    // The script itself gave up before the command.
    if output.reason().is_some() {
        return crate::failure::failed(&format!("Running a command on {place}"), output, &[]);
    }
    match output.status {
        124 | 137 => {
            let seconds = limit(object).as_secs();
            Diagnostic::error("Command took too long", format!("{what} on {place} did not end within {seconds} s and was ended. {last}"))
                .with_hint("Raise \"timeout\" if it needs longer.")
        }
        127 => Diagnostic::error("Command not found on the host", format!("{what} on {place} ended with status 127. {last}"))
            .with_hint("Install the program, or write its whole path."),
        status => Diagnostic::error("Command failed", format!("{what} on {place} ended with status {status}. {last}")),
    }
}

/// The end of a text, at a character's boundary.
fn last(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;
    use karmaform_model::Action;

    fn plan(before: &Object, change: (&str, Value)) -> (Action, bool, usize) {
        let mut wanted = before.clone();
        wanted.remove("output");
        wanted.insert(change.0.to_owned(), change.1);
        let change = Command::new().plan(&PlanContext { now: 0 }, Some(before), Some(&wanted)).unwrap();
        (change.action(), change.after().unwrap()["output"].is_unknown(), Command::new().impact(&change).len())
    }

    #[test]
    fn only_what_runs_again_has_a_new_output() {
        let before = object([("command", "a".into()), ("timeout", 60i64.into()), ("output", "x".into())]);
        assert_eq!(plan(&before, ("command", "b".into())), (Action::Update, true, 1));
        assert_eq!(plan(&before, ("timeout", 5i64.into())), (Action::Update, false, 0));
        assert_eq!(plan(&before, ("command", "a".into())), (Action::NoOp, false, 0));
    }

    #[test]
    fn bad_arguments_are_refused() {
        let check = |wanted: Object| assert!(Command::new().plan(&PlanContext { now: 0 }, None, Some(&wanted)).is_err());
        check(object([("command", "a\0".into())]));
        check(object([("command", "a".into()), ("timeout", 0i64.into())]));
        check(object([("command", "a".into()), ("environment", Value::map(Type::String, [("A-B".to_owned(), "x".into())].into()))]));
    }

    #[test]
    fn long_outputs_keep_their_end() {
        assert_eq!(last("abc", 2), "bc");
        assert_eq!(last("aü", 1), "");
    }

    #[test]
    fn a_check_without_an_answer_is_not_taken_for_one_that_failed() {
        let known = object([("command", "a".into()), ("check", "test -e /a".into()), ("timeout", 5i64.into())]);
        let answer = |status: Option<i32>| {
            let mut seen = Seen { place: "h".to_owned(), ..Seen::default() };
            seen.runs.extend(status.map(|s| (run(&known, "test -e /a").id, s)));
            Command::new().answer(&seen, &Object::new(), Some(&known)).map_err(|why| (why.summary, why.detail))
        };
        let told = |summary: &str, detail: &str| Err((summary.to_owned(), detail.to_owned()));
        assert_eq!(answer(Some(0)), Ok(Some(Object::new())));
        assert_eq!(answer(Some(1)), Ok(None));
        assert_eq!(answer(Some(124)), told("Check took too long", "The check of a command on h did not end within 5 s."));
        assert_eq!(answer(None), told("Check did not run", "The check of a command on h gave no answer."));
    }
}
