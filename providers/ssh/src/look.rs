//! Questions about a host as a value, all of them as one script, and its output read back.
//!
//! Starting a process costs a host about a millisecond, so questions of one kind share one process: one `stat` for all paths, one
//! `systemctl show` for all units. Knows paths, units, users, the hosts file; no resource types.

mod hosts;
mod parse;
mod seen;

use std::time::Duration;

pub(crate) use self::hosts::{DAMAGED, HOSTS, damaged, markers};
pub(crate) use self::parse::is_absence;
#[cfg(test)]
pub(crate) use self::seen::UserSeen;
pub(crate) use self::seen::{PathKind, PathSeen, Seen, UnitSeen};
use crate::script::{here, quote, words};

/// Files larger than this are never read into a plan.
pub(crate) const LARGEST_CONTENT: u64 = 64 << 10;

/// Arguments of one process; keeps far below any limit of a kernel.
const CHUNK: usize = 400;

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Look {
    /// A file: what is it like, and its SHA-256 sum.
    File {
        /// Where.
        path: String,
        /// Whether its content is wanted.
        content: Content,
    },
    /// A directory: what is it like, and is it empty.
    Directory {
        /// Where.
        path: String,
    },
    /// A directory: what is it like, and is there anything in it with such a name. Nobody asks for the same one otherwise.
    Among {
        /// Where.
        path: String,
        /// How the name ends.
        ending: String,
    },
    /// A unit of systemd.
    Unit {
        /// Its name.
        name: String,
    },
    /// What a unit says of itself.
    Health {
        /// Its name.
        unit: String,
        /// Where it is asked, from the host itself.
        url: String,
    },
    /// A user.
    User {
        /// Its name.
        name: String,
    },
    /// The blocks of ours in the hosts file.
    HostsBlocks,
    /// A command; its exit status is the answer.
    Run(Run),
}

/// Whether the content of a file is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// No.
    Never,
    /// Unless it has this sum (`None`: always), if it is text and not large.
    Unless(Option<String>),
}

/// A user's command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    /// What finds the answer again.
    pub(crate) id: String,
    /// The command, for `sh`.
    pub(crate) command: String,
    /// Its environment.
    pub(crate) environment: Vec<(String, String)>,
    /// After which it is ended.
    pub(crate) timeout: Duration,
}

impl Run {
    /// Shell text that runs it under its time limit, with nothing of it in any argument list.
    pub(crate) fn script(&self) -> String {
        let mut text = String::from("exec 3<&- 8<&-\nunset LC_ALL kf\numask 022\n");
        for (name, value) in &self.environment {
            text.push_str(&format!("{name}={}\nexport {name}\n", quote(value)));
        }
        text.push_str(&self.command);
        let limit = self.timeout.as_secs();
        format!(
            "if command -v timeout >/dev/null 2>&1; then kf_limit='timeout -k 5 {limit}'; else kf_limit=; fi\n\
             $kf_limit sh -c 'eval \"$(cat <&3)\"' </dev/null {}\n",
            here(3, &text)
        )
    }
}

/// How long the questions may take: they hash files, and run checks of users.
pub(crate) fn time_needed(looks: &[Look]) -> Duration {
    const USUAL: Duration = Duration::from_secs(120);
    let checks = looks.iter().filter_map(|l| if let Look::Run(run) = l { Some(run.timeout + Duration::from_secs(6)) } else { None });
    USUAL + checks.sum::<Duration>()
}

/// The script that asks all of them.
pub(crate) fn script(looks: &[Look]) -> String {
    let mut script = String::new();
    let mut ask = |name: &str, items: Vec<&str>, command: &dyn Fn(&str) -> String| {
        if !items.is_empty() {
            script.push_str(&format!("section {name}\n"));
            for chunk in items.chunks(CHUNK) {
                script.push_str(&command(&words(chunk)));
                script.push('\n');
            }
        }
    };
    let pick = |f: &dyn Fn(&'_ Look) -> Option<&'_ str>| -> Vec<String> {
        let mut items: Vec<_> = looks.iter().filter_map(f).map(str::to_owned).collect();
        items.sort();
        items.dedup();
        items
    };
    let paths = pick(&|l| match l {
        Look::File { path, .. } | Look::Directory { path } | Look::Among { path, .. } => Some(path),
        _ => None,
    });
    let files = pick(&|l| if let Look::File { path, .. } = l { Some(path) } else { None });
    let directories = pick(&|l| if let Look::Directory { path } = l { Some(path) } else { None });
    let units = pick(&|l| if let Look::Unit { name } = l { Some(name) } else { None });
    let users = pick(&|l| if let Look::User { name } = l { Some(name) } else { None });
    ask("paths", refs(&paths), &|p| format!("stat -c '%F|%U|%G|%u|%g|%a|%s|%n' -- {p} 2>&1"));
    ask("sealed", refs(&paths), &|p| format!("sealed {p}"));
    ask("sums", refs(&files), &|p| format!("sums {p}"));
    ask("full", refs(&directories), &|p| format!("full {p}"));
    if !directories.is_empty() {
        ask("unmounted", vec![""], &|_| "unmounted".to_owned());
    }
    ask("units", refs(&units), &|u| {
        let facts = "LoadState,FragmentPath,DropInPaths,UnitFileState,ActiveState,SubState,Result,NeedDaemonReload,NRestarts,ExecMainStartTimestampMonotonic";
        format!("systemctl show -p {facts} -- {u} 2>&1; echo")
    });
    ask("drop_ins", refs(&units), &|u| format!("drop_ins {u}"));
    ask("starters", refs(&units), &|u| format!("starters {u}"));
    ask("processes", refs(&units), &|u| format!("processes {u}"));
    ask("users", refs(&users), &|u| format!("users {u}"));
    ask("user_groups", refs(&users), &|u| format!("user_groups {u}"));
    let health: Vec<&str> = looks
        .iter()
        .filter_map(|l| if let Look::Health { unit, url } = l { Some([unit.as_str(), url.as_str()]) } else { None })
        .flatten()
        .collect();
    let among: Vec<&str> = looks
        .iter()
        .filter_map(|l| if let Look::Among { path, ending } = l { Some([path.as_str(), ending.as_str()]) } else { None })
        .flatten()
        .collect();
    if !among.is_empty() {
        script.push_str(&format!("section among\namong {}\n", words(&among)));
    }
    if !health.is_empty() {
        script.push_str(&format!("section health\nhealth {}\nsection addresses\nip -o addr 2>/dev/null\n", words(&health)));
    }
    // What systemd says of times it counts from the boot.
    if !units.is_empty() {
        script.push_str("section uptime\nread -r kf_up _rest </proc/uptime && echo \"$kf_up\"\n");
    }
    // After the paths: another run may be at work, and what it takes away it has noted before.
    script.push_str("section owned\nif [ -f \"$kf_owned\" ]; then cat \"$kf_owned\"; fi\nsection remembers\necho \"$kf_directory\"\n");
    if looks.contains(&Look::HostsBlocks) {
        script.push_str(&format!("section hosts\nhosts_blocks {HOSTS}\nsection hosts_beside\nhosts_beside {HOSTS}\n"));
    }
    for look in looks {
        if let Look::Run(run) = look {
            // what it prints is nobody's business here, only its status
            script.push_str(&format!("section 'run {}'\n{{ {} }} >/dev/null 2>&1\necho $?\n", run.id, run.script()));
        }
    }
    script.push_str("section end\n");
    format!("{}\n{script}", include_str!("script/looks.sh"))
}

/// The script that reads the contents of these files.
pub(crate) fn content_script(paths: &[String]) -> String {
    let reads = paths.iter().enumerate().map(|(i, p)| format!("section 'content {i}'\nbase64 <{}\n", quote(p)));
    reads.collect::<String>() + "section end\n"
}

fn refs(items: &[String]) -> Vec<&str> {
    items.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_a_kind_share_a_process() {
        let file = |p: &str| Look::File { path: p.to_owned(), content: Content::Never };
        let looks = [file("/b"), file("/a"), file("/a"), Look::Directory { path: "/d".to_owned() }];
        let script = script(&looks);
        assert_eq!(script.matches("stat -c '%F").count(), 1);
        assert!(script.contains("-- '/a' '/b' '/d'") && script.contains("sums '/a' '/b'\n") && script.contains("full '/d'\n"));
        assert!(script.contains("sealed '/a' '/b' '/d'\n"));
        assert!(
            !script.contains("systemctl show -p LoadState")
                && !["users", "processes", "starters"].iter().any(|f| script.contains(&format!("\n{f} ")))
        );
    }

    #[test]
    fn names_are_asked_for_beside_their_directory() {
        let log = Look::Among { path: "/d/wal".to_owned(), ending: ".wal".to_owned() };
        let asked = script(&[log, Look::Directory { path: "/d".to_owned() }]);
        assert!(asked.contains("-- '/d' '/d/wal'") && asked.contains("full '/d'\n"), "{asked}");
        assert!(asked.contains("section among\namong '/d/wal' '.wal'\n"), "{asked}");
    }

    #[test]
    fn units_are_asked_at_their_addresses() {
        let unit = |name: &str| Look::Unit { name: name.to_owned() };
        let health = Look::Health { unit: "a.service".to_owned(), url: "http://127.0.0.1:1/healthz".to_owned() };
        let asked = script(&[unit("a.service"), health, unit("b.service")]);
        assert!(asked.contains("section health\nhealth 'a.service' 'http://127.0.0.1:1/healthz'\n") && asked.contains("section uptime\n"));
        assert!(asked.contains("section addresses\nip -o addr "));
        assert!(!script(&[unit("b.service")]).contains("section health"));
    }

    #[test]
    fn checks_have_time_of_their_own() {
        let run = Run { id: "0".to_owned(), command: "true".to_owned(), environment: Vec::new(), timeout: Duration::from_secs(30) };
        assert_eq!(time_needed(&[Look::Run(run)]), Duration::from_secs(156));
    }
}
