//! What the units of everything that runs on hosts have in common.

use karmaform_model::{Arg, Value};

/// The end of a [Service] section: what such a program never needs is out of its reach. Whatever needs more says so below it.
pub(crate) const SANDBOX: &str = "LimitNOFILE=65536
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
";

/// The condition, for a shell, that somebody listens on a TCP port of this host.
pub(crate) fn is_listening(port: i64) -> String {
    format!("grep -qs \":{port:04X} [0-9A-F]*:0000 0A\" /proc/net/tcp /proc/net/tcp6")
}

/// Counts as started once it listens; what then, in a shell, if its process ends before, or if it does not within so many tenths of a second.
pub(crate) fn awaits(port: i64, tenths: i64, otherwise: &str) -> String {
    let look = is_listening(port);
    format!(
        "# A port is written there in hexadecimal, and 0A is \"listens\".\n\
         ExecStartPost=/bin/sh -c 'for i in $$(seq {tenths}); do {look} && exit; [ -d /proc/$$MAINPID ] || break; sleep 0.1; done; {otherwise}'"
    )
}

/// The text with all its known parts changed.
pub(crate) fn each_text(arg: Arg, change: &impl Fn(&str) -> String) -> Arg {
    match arg {
        Arg::Value(value) => match value.as_str() {
            Some(text) => Value::from(change(text)).secret_if(value.contains_secret()).into(),
            None => value.into(),
        },
        Arg::Text(parts) => Arg::Text(parts.into_iter().map(|part| each_text(part, change)).collect()),
        other => other,
    }
}

/// A text between double quotes in a unit, where some characters are not what they are.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$")
}

/// A text between single quotes of a shell.
pub(crate) fn quote(text: &str) -> String {
    text.replace('\'', "'\\''")
}
