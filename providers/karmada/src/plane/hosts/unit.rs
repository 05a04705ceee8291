//! The unit of a component on a host, and who runs it.

use karmaform_model::{Arg, Type, Value};

use super::programs;
use crate::plane::arguments::Arguments;
use crate::plane::flags::{self, Flags};
use crate::plane::hosts::Host;
use crate::plane::places::{extends_api, short_sum};
use crate::plane::settings::Settings;
use crate::systemd::{SANDBOX, awaits, each_text, escape, quote};
use crate::versions::Component;

/// The longest name of a user. Source: useradd(8).
const LONGEST_USER: usize = 31;
/// How often it is looked whether a component listens, each a tenth of a second after the last.
const LOOKS: i64 = 600;

/// Who runs a component: somebody of its own, so that none reads another's keys.
pub(super) fn user(plane: &Arguments, component: &str) -> String {
    let name = format!("{}-{component}", plane.name);
    if name.len() <= LONGEST_USER {
        return name;
    }
    let sum: String = short_sum(&plane.name).chars().take(6).collect();
    format!("k{sum}-{component}")
}

/// What the unit is called.
pub(super) fn name(plane: &Arguments, component: &str) -> String {
    format!("karmada-{}-{component}.service", plane.name)
}

/// How long a component may take to end, in seconds. API servers wait for watches, which others hold as long as they can (up to a minute:
/// `ShutdownTimeout` in `k8s.io/apiserver`); what was asked besides is answered long before.
const STOP: i64 = 10;
/// With the seconds that it goes on answering for a load balancer.
const API_STOP: i64 = 20;

/// True for what tells systemd when it serves: API servers do, once they listen. Source: `NonBlockingRunWithContext` in `k8s.io/apiserver`.
fn notifies(component: Component) -> bool {
    matches!(component, Component::ApiServer) || extends_api(component)
}

/// How a component is called.
pub(super) struct Command {
    program: String,
    /// Not known before the names of all flags are.
    flags: Option<Flags>,
}

impl Command {
    /// With what is written of it.
    pub(super) fn of(plane: &Arguments, host: &Host, component: Component, settings: &Settings) -> Self {
        Self { program: programs::path(plane, component), flags: flags::of(plane, component, settings, Some(host)) }
    }

    /// For a unit, each word in double quotes.
    fn in_unit(&self) -> Arg {
        self.with(String::new(), (" \\\n  \"--", "\""), &escape, "")
    }

    /// For a shell: the program reads the flags that it will be started with, and ends. One that does not know them never takes the place of
    /// one that works.
    pub(super) fn check(&self, owner: &str) -> Arg {
        self.with(format!("setpriv --reuid={owner} --regid={owner} --clear-groups "), (" '--", "'"), &quote, " --help >/dev/null")
    }

    fn with(&self, before: String, (opens, closes): (&str, &str), change: &impl Fn(&str) -> String, behind: &str) -> Arg {
        let Some(flags) = &self.flags else { return Value::unknown_not_null(Type::String).into() };
        let mut text = vec![Arg::from(before + &self.program)];
        for (name, value) in flags {
            text.extend([format!("{opens}{name}=").into(), each_text(value.clone(), change), closes.into()]);
        }
        text.push(behind.into());
        Arg::Text(text)
    }
}

/// The unit file.
pub(super) fn content(plane: &Arguments, component: Component, settings: &Settings, command: &Command) -> Arg {
    let user = user(plane, component.name());
    let listens = plane.listens(component);
    let stop = if matches!(component, Component::ApiServer) { API_STOP } else { STOP };
    let mut text = vec![
        format!(
            "# Written by karmaform; it undoes changes made here.
[Unit]
Description={program} of {name}
Documentation=https://karmada.io/docs/
Wants=network-online.target
After=network-online.target time-sync.target
# Whatever it needs may come up later than it does, on this host or on another one.
StartLimitIntervalSec=0

[Service]
Type={kind}
User={user}
Group={user}
ExecStart=",
            program = component.binary(),
            name = plane.name,
            kind = if notifies(component) { "notify" } else { "exec" },
        )
        .into(),
        command.in_unit(),
    ];
    if !notifies(component) {
        let otherwise = format!("echo \"it does not listen on port {listens}\" >&2; exit 1");
        text.push(format!("\n{}", awaits(listens, LOOKS, &otherwise)).into());
    }
    text.push(
        format!(
            "
Restart=always
RestartSec=2
TimeoutStartSec=120
TimeoutStopSec={stop}
{SANDBOX}"
        )
        .into(),
    );
    match settings.entries("unit") {
        // At the end, where a setting takes the place of an earlier one of its name.
        Some(own) => {
            for (name, value) in own.into_iter().filter(|(_, v)| !v.is_null()) {
                text.extend([format!("{name}=").into(), value.into(), "\n".into()]);
            }
        }
        None => text.push(Value::unknown_not_null(Type::String).into()),
    }
    text.push("\n[Install]\nWantedBy=multi-user.target\n".into());
    Arg::Text(text)
}
