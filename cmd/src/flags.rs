//! Flags that several commands share. What they mean is told once, here.

use clap::{ArgAction, ArgMatches, Args, FromArgMatches};

use crate::policies::Overrides;

/// `-var` and `-var-file`, in the order they were given: the last one wins, mixed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VariableFlags(pub(crate) Vec<VariableFlag>);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VariableFlag {
    /// `-var NAME=VALUE`
    Value(String, String),
    /// `-var-file FILE`
    File(String),
}

impl Args for VariableFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let var = clap::Arg::new("var").long("var").value_name("NAME=VALUE").action(ArgAction::Append).allow_hyphen_values(true);
        let file = clap::Arg::new("var-file").long("var-file").value_name("FILE").action(ArgAction::Append);
        command
            .arg(var.value_parser(assignment).help("Give a variable a value. May be repeated"))
            .arg(file.help("Read values of variables from this file. May be repeated"))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for VariableFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let indices = |id: &str| matches.indices_of(id).into_iter().flatten().collect::<Vec<_>>();
        let values = matches.get_many::<(String, String)>("var").into_iter().flatten();
        let values = values.map(|(n, v)| VariableFlag::Value(n.clone(), v.clone())).zip(indices("var"));
        let files = matches.get_many::<String>("var-file").into_iter().flatten();
        let files = files.map(|f| VariableFlag::File(f.clone())).zip(indices("var-file"));
        let mut all: Vec<_> = values.chain(files).collect();
        all.sort_by_key(|(_, index)| *index);
        Ok(Self(all.into_iter().map(|(flag, _)| flag).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        // What stands behind would begin with a space, too, and nobody means that. Nothing is quoted: it may be a secret.
        Some((name, _)) if name != name.trim() && !name.trim().is_empty() => {
            let place = if name.ends_with(char::is_whitespace) { "end" } else { "beginning" };
            Err(format!("the name has a space at its {place}; write NAME=VALUE without spaces around \"=\""))
        }
        Some((name, value)) if !name.trim().is_empty() => Ok((name.to_owned(), value.to_owned())),
        // The text is not quoted: it may be a secret.
        _ => Err("it must have the form NAME=VALUE".to_owned()),
    }
}

/// Which state.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct StateFlags {
    /// The state file of the backend "local"
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
}

/// Which state, for commands that plan nothing.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PlaceFlags {
    #[command(flatten)]
    pub(crate) file: StateFlags,
    /// What the blocks `backend` and `encryption` may be made of.
    #[command(flatten)]
    pub(crate) variables: VariableFlags,
}

/// How to lock it.
#[derive(Args, Clone, Debug)]
pub(crate) struct LockFlags {
    /// Lock the state while it may be written
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) lock: bool,
    /// Try so long to get the lock: 30s, 5m
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = go_duration)]
    pub(crate) lock_timeout: u64,
}

/// What to plan.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanningFlags {
    /// Plan to destroy everything
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) destroy: bool,
    /// Only take what is seen into the state
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) refresh_only: bool,
    /// Look at what is there before planning; false trusts the state
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) refresh: bool,
    /// Only this resource and what it needs. May be repeated
    #[arg(long, value_name = "ADDRESS", action = ArgAction::Append)]
    pub(crate) target: Vec<String>,
    /// All but this resource and what depends on it; for destroying, and what it depends on. May be repeated
    #[arg(long, value_name = "ADDRESS", action = ArgAction::Append)]
    pub(crate) exclude: Vec<String>,
    /// Replace this resource. May be repeated
    #[arg(long, value_name = "ADDRESS", action = ArgAction::Append)]
    pub(crate) replace: Vec<String>,
    #[command(flatten)]
    pub(crate) policies: OverrideFlags,
    #[command(flatten)]
    pub(crate) parallelism: ParallelismFlags,
}

/// Which policies don't count.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OverrideFlags {
    /// Go on though this policy is broken, for this reason, which is recorded. May be repeated
    #[arg(long, value_name = "NAME=REASON", action = ArgAction::Append, value_parser = reasoned)]
    pub(crate) override_policy: Vec<(String, String)>,
}

/// So many operations at once, if nobody says how many.
const USUAL: u16 = 10;

/// How much at once.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ParallelismFlags {
    /// At most so many operations at once
    #[arg(long = "parallelism", value_name = "N", default_value_t = USUAL, value_parser = count)]
    pub(crate) most: u16,
}

/// What a command takes that looks at the world and writes the state, and nothing else.
#[derive(Args, Clone, Debug)]
pub(crate) struct WritingFlags {
    #[command(flatten)]
    pub(crate) parallelism: ParallelismFlags,
    #[command(flatten)]
    pub(crate) variables: VariableFlags,
    #[command(flatten)]
    pub(crate) state: StateFlags,
    #[command(flatten)]
    pub(crate) lock: LockFlags,
    /// Ask for what is missing; false never asks
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) input: bool,
}

/// How to show it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ViewFlags {
    /// Lines of JSON instead of text
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) json: bool,
    /// The same lines of JSON into this file, beside the text
    #[arg(long, value_name = "FILE")]
    pub(crate) json_into: Option<String>,
    /// Warnings as one line each
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) compact_warnings: bool,
    /// Ask for what is missing; false never asks
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "true",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) input: bool,
    /// Show every part of every composite in full
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false",
          action = ArgAction::Set, value_parser = boolean, hide_default_value = true)]
    pub(crate) verbose: bool,
}

impl PlanningFlags {
    /// True if one of them was given; they can't go with a saved plan.
    pub(crate) fn were_given(&self) -> bool {
        self.destroy
            || self.refresh_only
            || !self.refresh
            || !self.target.is_empty()
            || !self.exclude.is_empty()
            || !self.replace.is_empty()
    }
}

impl OverrideFlags {
    /// Their names, with the reasons.
    pub(crate) fn all(&self) -> Overrides {
        self.override_policy.iter().cloned().collect()
    }
}

/// `NAME=REASON`; why is not for others to guess.
fn reasoned(text: &str) -> Result<(String, String), String> {
    let (name, reason) = text.split_once('=').map(|(n, r)| (n.trim(), r.trim())).unwrap_or_default();
    if name.is_empty() || reason.is_empty() {
        return Err("it must have the form NAME=REASON".to_owned());
    }
    Ok((name.to_owned(), reason.to_owned()))
}

/// The words for true and false that Terraform takes.
///
/// # Errors
/// For any other word.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it must be true or false".to_owned()),
    }
}

/// How many at once.
///
/// As in Terraform 0 is as if nothing was said.
///
/// # Errors
/// For anything else than a number that makes sense.
fn count(text: &str) -> Result<u16, String> {
    let wrong = |_| "it must be a whole number from 1 to 65535, or 0, which is as without it".to_owned();
    text.parse::<u16>().map(|n| if n == 0 { USUAL } else { n }).map_err(wrong)
}

/// `1h30m`, `90s`, `0` as milliseconds.
///
/// # Errors
/// For anything else.
pub(crate) fn go_duration(text: &str) -> Result<u64, String> {
    let wrong = || "it must be a duration like 30s, 5m or 1h30m".to_owned();
    if text == "0" {
        return Ok(0);
    }
    let (mut rest, mut total) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(wrong)?;
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        let unit_end = rest[end..].find(|c: char| c.is_ascii_digit() || c == '.').map_or(rest.len(), |n| end + n);
        total += number
            * match &rest[end..unit_end] {
                "ms" => 1.0,
                "s" => 1_000.0,
                "m" => 60_000.0,
                "h" => 3_600_000.0,
                _ => return Err(wrong()),
            };
        rest = &rest[unit_end..];
    }
    if text.is_empty() || !(0.0..1e12).contains(&total) {
        return Err(wrong());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(total as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_switches() {
        assert_eq!(go_duration("1h30m"), Ok(5_400_000));
        assert_eq!(go_duration("1.5s"), Ok(1_500));
        assert_eq!(go_duration("0"), Ok(0));
        for text in ["", "5", "x", "5x", "-5s", "s"] {
            assert!(go_duration(text).is_err(), "{text}");
        }
        assert_eq!((boolean("T"), boolean("0")), (Ok(true), Ok(false)));
        assert!(boolean("yes").is_err());
        assert_eq!((count("1"), count("65535")), (Ok(1), Ok(65535)));
        assert_eq!(count("0"), Ok(USUAL));
        for text in ["x", "-1", "70000", ""] {
            assert!(count(text).is_err_and(|why| why.contains("from 1 to 65535")), "{text}");
        }
    }

    #[test]
    fn a_wrong_assignment_is_not_quoted() {
        assert_eq!(assignment("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(!assignment("hunter2").unwrap_err().contains("hunter2"));
        let refused = assignment("x = hunter2").unwrap_err();
        assert!(refused.contains("has a space at its end") && !refused.contains("hunter2"), "{refused}");
        assert!(assignment(" x=1").is_err() && assignment(" =1").is_err());
    }
}
