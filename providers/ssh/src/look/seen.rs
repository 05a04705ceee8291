//! What was seen on a host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use karmaform_model::Diagnostic;

use crate::owned::Owned;

/// The answers to all questions of one script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The host, for messages.
    pub(crate) place: String,
    /// By path; those that do not exist are absent, those that could not be looked at hold the reason.
    pub(crate) paths: BTreeMap<String, Result<PathSeen, String>>,
    /// Paths that nobody may change, not even root.
    pub(crate) sealed: BTreeSet<String>,
    /// Where the host mounts a file system when it starts, and none is.
    pub(crate) unmounted: Vec<String>,
    /// By name. Units that do not exist are in it, too.
    pub(crate) units: BTreeMap<String, UnitSeen>,
    /// Why units could not be looked at.
    pub(crate) units_failed: Option<String>,
    /// By name.
    pub(crate) users: BTreeMap<String, UserSeen>,
    /// Users could not be looked at.
    pub(crate) users_failed: bool,
    /// The blocks of ours in the hosts file, with their markers; or why it can't be read.
    pub(crate) hosts: String,
    /// Its mode (`mode 644`), and the lines beside our blocks.
    pub(crate) hosts_beside: String,
    /// Its own addresses; empty if nobody asked, or nobody could tell.
    pub(crate) addresses: BTreeSet<IpAddr>,
    /// Exit statuses by id.
    pub(crate) runs: BTreeMap<String, i32>,
    /// What is karmaform's.
    pub(crate) owned: Owned,
    /// That is all the host remembers: who looks reads what root keeps, and not what only this user does.
    pub(crate) is_all_owned: bool,
}

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Something else, in the host's words: "symbolic link".
    Other(String),
}

/// Something at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathSeen {
    /// What it is.
    pub(crate) kind: PathKind,
    /// Its owner's name.
    pub(crate) owner: String,
    /// Its group's name.
    pub(crate) group: String,
    /// Its owner's number.
    pub(crate) uid: String,
    /// Its group's number.
    pub(crate) gid: String,
    /// Its permission bits.
    pub(crate) mode: u32,
    /// Bytes.
    pub(crate) size: u64,
    /// The sum of a file.
    pub(crate) sha256: Option<String>,
    /// The text of a file, if it was wanted and can be shown.
    pub(crate) content: Option<String>,
    /// Whether a directory is empty.
    pub(crate) empty: bool,
}

/// A unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitSeen {
    /// "loaded", "not-found", "masked".
    pub(crate) load_state: String,
    /// Where its file is.
    pub(crate) fragment_path: String,
    /// "enabled", "disabled", "static".
    pub(crate) file_state: String,
    /// "active", "failed".
    pub(crate) active_state: String,
    /// "running", "dead".
    pub(crate) sub_state: String,
    /// "success", "exit-code".
    pub(crate) result: String,
    /// systemd runs an older version of the file.
    pub(crate) needs_reload: bool,
    /// Names of files below /etc/systemd/system/NAME.d, and whole paths of others that change it.
    pub(crate) drop_ins: Vec<String>,
    /// Files for all units that are called alike, which change it.
    pub(crate) for_many: Vec<String>,
    /// Folders in which a link starts it: "multi-user.target.wants".
    pub(crate) starters: Vec<String>,
    /// Its main process is there, and somebody has stopped it.
    pub(crate) is_stopped: bool,
    /// Its main process was started with other arguments than its file has, which was changed since.
    pub(crate) is_older: bool,
    /// Its program is another one by now.
    pub(crate) is_replaced: bool,
    /// How often systemd has started it again by itself, since somebody started it.
    pub(crate) restarts: u64,
    /// How many seconds ago its main process was started, if it ever was.
    pub(crate) started_ago: Option<u64>,
    /// The HTTP status with which it says how it is, 0 where it does not answer; none if it was not asked.
    pub(crate) health: Option<u16>,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserSeen {
    /// Its number.
    pub(crate) uid: i64,
    /// Its group's number.
    pub(crate) gid: i64,
    /// What is said of it.
    pub(crate) comment: String,
    /// Its home.
    pub(crate) home: String,
    /// Its shell.
    pub(crate) shell: String,
    /// Groups that it is in, but for the one of its name; sorted.
    pub(crate) groups: Vec<String>,
    /// Its own group is called otherwise, or has no name any more.
    pub(crate) is_elsewhere: bool,
}

impl Seen {
    /// What is at a path; `None` if nothing is.
    pub(crate) fn path(&self, path: &str) -> Result<Option<&PathSeen>, Diagnostic> {
        match self.paths.get(path) {
            None => Ok(None),
            Some(Ok(seen)) => Ok(Some(seen)),
            Some(Err(why)) => Err(Diagnostic::error("Path can't be looked at", format!("{path} on {}: {why}.", self.place))
                .with_hint("Log in as root, or as a user that may use \"sudo\" without a password.")),
        }
    }

    /// A unit.
    pub(crate) fn unit(&self, name: &str) -> Result<&UnitSeen, Diagnostic> {
        self.units.get(name).ok_or_else(|| {
            let why = self.units_failed.as_deref().unwrap_or("there was no answer");
            Diagnostic::error("Units can't be looked at", format!("The state of {name} on {} is not known: {why}.", self.place))
                .with_hint("Units need systemd as the host's init.")
        })
    }

    /// A user; `None` if there is none of this name.
    pub(crate) fn user(&self, name: &str) -> Result<Option<&UserSeen>, Diagnostic> {
        match self.users.get(name) {
            None if self.users_failed => {
                Err(Diagnostic::error("Users can't be looked at", format!("\"getent passwd\" failed on {}.", self.place)))
            }
            found => Ok(found),
        }
    }
}

/// Of the lines of `ip -o addr`, each "2: eth0    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0", the addresses.
pub(super) fn addresses(lines: &str) -> BTreeSet<IpAddr> {
    let address = |line: &str| -> Option<IpAddr> {
        let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "inet" | "inet6"));
        words.nth(1)?.split('/').next()?.parse().ok()
    };
    lines.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_looked_at_is_not_taken_for_absent() {
        let mut seen = Seen { place: "h".to_owned(), users_failed: true, ..Seen::default() };
        let unit = seen.unit("a.service").unwrap_err();
        assert_eq!(unit.summary, "Units can't be looked at");
        assert_eq!(unit.detail, "The state of a.service on h is not known: there was no answer.");
        seen.units_failed = Some("no systemd".to_owned());
        assert!(seen.unit("a.service").unwrap_err().detail.ends_with("is not known: no systemd."));
        let user = seen.user("etcd").unwrap_err();
        assert_eq!(user.summary, "Users can't be looked at");
        assert_eq!(user.detail, "\"getent passwd\" failed on h.");
        seen.users_failed = false;
        assert!(seen.user("etcd").unwrap().is_none());
    }
}
