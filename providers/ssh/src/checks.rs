//! Arguments that no host would take, refused when planning.

use karmaform_model::{Diagnostic, Diagnostics, Object};

use crate::values::text;

/// Directories whose contents are never deleted, whatever a configuration says.
const PROTECTED: &[&str] = &[
    "/etc/ssh",
    "/etc/systemd",
    "/etc/systemd/system",
    "/etc/ssl",
    "/etc/pam.d",
    "/etc/default",
    "/etc/network",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/usr/sbin",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/share",
    "/usr/lib/systemd",
    "/lib/systemd",
    "/var/lib",
    "/var/log",
    "/var/cache",
    "/var/spool",
    "/var/tmp",
    "/var/run",
    "/var/lock",
    "/var/mail",
    "/var/backups",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/apt",
    "/var/lib/systemd",
    "/var/lib/karmaform",
    "/root/.ssh",
    "/boot/efi",
    "/boot/grub",
    "/run/systemd",
];

/// Collects what is wrong with an object's arguments. Unknown and null ones are passed over.
pub(crate) struct Checks<'a> {
    object: &'a Object,
    found: Diagnostics,
}

impl<'a> Checks<'a> {
    /// Of these arguments.
    pub(crate) fn of(object: &'a Object) -> Self {
        Self { object, found: Diagnostics::new() }
    }

    /// An absolute path without detours.
    pub(crate) fn path(self, name: &'static str) -> Self {
        self.check(name, "Bad path", path_problem)
    }

    /// A path whose contents may be deleted.
    pub(crate) fn deletable(self, name: &'static str) -> Self {
        self.check(name, "Protected path", |p| {
            is_protected(p).then(|| "is part of the system, so \"purge\" is not allowed there".to_owned())
        })
    }

    /// Permission bits.
    pub(crate) fn mode(self) -> Self {
        self.check("mode", "Bad mode", |m| {
            let octal = (3..=4).contains(&m.len()) && m.bytes().all(|b| (b'0'..=b'7').contains(&b));
            (!octal).then(|| "is no mode; a mode is three or four octal digits in quotes, as \"0644\"".to_owned())
        })
    }

    /// Names of users and groups, or their numbers.
    pub(crate) fn names(self, names: &[&'static str]) -> Self {
        names.iter().fold(self, |checks, name| {
            checks.check(name, "Bad name", |n| {
                let good = !n.is_empty()
                    && n.len() <= 32
                    && !n.starts_with('-')
                    && n.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@'));
                (!good).then(|| "is no name of a user or group".to_owned())
            })
        })
    }

    /// Text that a shell can hold.
    pub(crate) fn no_zero_bytes(self, name: &'static str) -> Self {
        self.check(name, "Bad text", |t| t.contains('\0').then(|| "holds a zero byte".to_owned()))
    }

    /// Any rule: `problem` completes the sentence that begins with the value.
    pub(crate) fn check(mut self, name: &'static str, summary: &str, problem: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(value) = text(self.object, name)
            && let Some(problem) = problem(value)
        {
            let secret = self.object.get(name).is_some_and(|v| v.secret);
            let shown = if secret || value.len() > 200 { "The value".to_owned() } else { format!("\"{}\"", value.escape_debug()) };
            self.found.push(Diagnostic::error(summary, format!("{shown} in \"{name}\" {problem}.")));
        }
        self
    }

    /// All is well, or what is not.
    pub(crate) fn done(self) -> Result<(), Diagnostics> {
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}

pub(crate) fn path_problem(path: &str) -> Option<String> {
    let problem = if !path.starts_with('/') {
        "is not absolute; paths on a host begin with \"/\""
    } else if path == "/" {
        "is the root directory"
    } else if path.ends_with('/') || path.contains("//") {
        "has an empty part; leave out the doubled or last \"/\""
    } else if path.split('/').any(|p| p == "." || p == "..") {
        "has a part \".\" or \"..\""
    } else if path.chars().any(char::is_control) {
        "holds a control character"
    } else if path.len() > 4000 || path.split('/').any(|p| p.len() > 230) {
        "is too long"
    } else {
        return None;
    };
    Some(problem.to_owned())
}

/// True for places where deleting everything would break the host. At least two parts, and none of the well-known ones.
pub(crate) fn is_protected(path: &str) -> bool {
    path_problem(path).is_some()
        || path.matches('/').count() < 2
        || PROTECTED.contains(&path)
        || (path.starts_with("/home/") && path.matches('/').count() == 2)
}

/// True for a name that systemd takes for a unit.
pub(crate) fn unit_problem(name: &str) -> Option<String> {
    const KINDS: [&str; 7] = ["service", "socket", "timer", "path", "mount", "target", "slice"];
    let good = name.rsplit_once('.').is_some_and(|(stem, kind)| {
        !stem.is_empty()
            && name.len() <= 200
            && KINDS.contains(&kind)
            && !stem.starts_with(['-', '.'])
            && stem.chars().all(|c| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c))
    });
    (!good).then(|| format!("is no name of a unit; one ends with .{}", KINDS.join(", .")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;

    #[test]
    fn paths() {
        let check = |path: &str, good: bool| assert_eq!(path_problem(path).is_none(), good, "{path}");
        check("/etc/motd", true);
        check("/opt/a b/ü", true);
        check("etc/motd", false);
        check("/", false);
        check("/etc/", false);
        check("/etc//motd", false);
        check("/etc/../motd", false);
        check("/etc/a\nb", false);
        check(&format!("/{}", "x".repeat(300)), false);
    }

    #[test]
    fn system_directories_are_never_purged() {
        let check = |path: &str, protected: bool| assert_eq!(is_protected(path), protected, "{path}");
        for path in
            ["/", "/etc", "/var", "/home", "/data", "/usr/bin", "/var/lib", "/home/ops", "relative", "/var/lib/..", "/etc/systemd/system"]
        {
            check(path, true);
        }
        check("/var/lib/etcd", false);
        check("/srv/etcd", false);
        check("/home/ops/data", false);
    }

    #[test]
    fn units_modes_and_names() {
        assert!(unit_problem("etcd@main.service").is_none() && unit_problem("a\\x2db.timer").is_none());
        assert!(unit_problem("etcd").is_some() && unit_problem("../a.service").is_some() && unit_problem(".service").is_some());
        let check = |mode: &str, owner: &str, problems: usize| {
            let object = object([("mode", mode.into()), ("owner", owner.into())]);
            assert_eq!(
                Checks::of(&object).mode().names(&["owner", "group"]).done().err().map_or(0, |d| d.len()),
                problems,
                "{mode} {owner}"
            );
        };
        check("0644", "root", 0);
        check("644", "1000", 0);
        check("u+x", "ro:ot", 2);
        check("0999", "", 2);
    }

    #[test]
    fn a_bad_secret_is_not_shown() {
        let object = object([("content", karmaform_model::Value::from("hunter2\0").secret())]);
        let found = Checks::of(&object).no_zero_bytes("content").done().unwrap_err();
        assert!(!found.iter().next().unwrap().detail.contains("hunter2"));
    }
}
