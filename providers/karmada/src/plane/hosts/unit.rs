//! The unit of a component on a host, and who runs it.

use karmaform_model::{Arg, Type, Value};

use super::programs;
use crate::plane::arguments::Arguments;
use crate::plane::places::{extends_api, short_sum};
use crate::plane::settings::Settings;
use crate::plane::{flags, hosts::Host};
use crate::versions::Component;

/// The longest name of a user. Source: useradd(8).
const LONGEST_USER: usize = 31;
/// How often it is looked whether a component listens, each a tenth of a second after the last.
const LOOKS: i64 = 600;

/// Who runs a component: somebody of its own, so that none reads another's keys.
pub(super) fn user(plane: &Arguments, component: Component) -> String {
    let name = plane.object_name(component);
    if name.len() <= LONGEST_USER {
        return name;
    }
    let sum: String = short_sum(&plane.name).chars().take(6).collect();
    format!("k{sum}-{}", component.name())
}

/// What the unit is called.
pub(super) fn name(plane: &Arguments, component: Component) -> String {
    format!("karmada-{}.service", plane.object_name(component))
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

/// The command line, each word in double quotes. Not known before the names of all flags are.
pub(super) fn command(plane: &Arguments, host: &Host, component: Component, settings: &Settings) -> Arg {
    let Some(flags) = flags::of(plane, component, settings, Some(host)) else {
        return Value::unknown_not_null(Type::String).into();
    };
    let mut text = vec![programs::path(plane, component).into()];
    for (name, value) in flags {
        text.extend([format!(" \\\n  \"--{name}=").into(), escaped(value), "\"".into()]);
    }
    Arg::Text(text)
}

/// The unit file.
pub(super) fn content(plane: &Arguments, host: &Host, component: Component, settings: &Settings) -> Arg {
    let user = user(plane, component);
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
        command(plane, host, component, settings),
    ];
    if !notifies(component) {
        text.push(
            format!(
                "
# A port is written there in hexadecimal, and 0A is \"listens\".
ExecStartPost=/bin/sh -c 'for i in $$(seq {LOOKS}); do grep -qs \":{listens:04X} [0-9A-F]*:0000 0A\" /proc/net/tcp /proc/net/tcp6 && exit; sleep 0.1; done; echo \"it does not listen on port {listens}\" >&2; exit 1'"
            )
            .into(),
        );
    }
    text.push(
        format!(
            "
Restart=always
RestartSec=2
TimeoutStartSec=120
TimeoutStopSec={stop}
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=true
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=true
PrivateTmp=true
PrivateDevices=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
LockPersonality=true
SystemCallArchitectures=native
"
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

/// A text between double quotes in a unit, where some characters are not what they are.
fn escaped(arg: Arg) -> Arg {
    match arg {
        Arg::Value(value) => match value.as_str() {
            Some(text) => {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
                Value::from(text).secret_if(value.contains_secret()).into()
            }
            None => value.into(),
        },
        Arg::Text(parts) => Arg::Text(parts.into_iter().map(escaped).collect()),
        other => other,
    }
}
