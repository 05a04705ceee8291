//! From the output of a script of questions to what was seen.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::seen::{UserSeen, addresses};
use super::{Content, LARGEST_CONTENT, Look, PathKind, PathSeen, Seen, UnitSeen};
use crate::host::Output;
use crate::owned::{Owned, PLACE};
use crate::sum::is_sum;

/// A tool's complaint that only says that nothing is there.
pub(crate) fn is_absence(complaint: &str) -> bool {
    complaint.ends_with("No such file or directory") || complaint.ends_with("Not a directory")
}

impl Seen {
    /// From the output of [`super::script`]. `None` if it is incomplete.
    pub(crate) fn parse(output: &Output, looks: &[Look], place: &str) -> Option<Self> {
        if output.truncated || output.section("end").is_none() {
            return None;
        }
        let lines = |name: &str| output.section(name).map(|s| String::from_utf8_lossy(s).into_owned()).unwrap_or_default();
        let (owned, hosts) = (Owned::parse(&lines("owned")), lines("hosts"));
        let hosts_beside = lines("hosts_beside");
        let is_all_owned = lines("remembers").trim() == PLACE;
        let mut seen = Self { place: place.to_owned(), owned, is_all_owned, hosts, hosts_beside, ..Self::default() };
        seen.read_paths(&lines("paths"), looks);
        seen.read_sums(&lines("sums"), looks);
        for line in lines("full").lines().chain(lines("among").lines()) {
            if let Some(Ok(path)) = seen.paths.get_mut(line) {
                path.empty = false;
            }
        }
        seen.sealed = lines("sealed").lines().filter(|line| line.starts_with('/')).map(str::to_owned).collect();
        seen.unmounted = lines("unmounted").lines().filter(|line| line.starts_with('/')).map(str::to_owned).collect();
        let uptime = lines("uptime").split('.').next().and_then(|s| s.trim().parse().ok());
        seen.read_units(&lines("units"), looks, uptime);
        for line in lines("drop_ins").lines() {
            if let Some((name, file)) = line.split_once('/')
                && let Some(unit) = seen.units.get_mut(name)
            {
                unit.drop_ins.push(file.to_owned());
            }
        }
        for line in lines("starters").lines() {
            if let Some((name, folder)) = line.split_once(' ')
                && let Some(unit) = seen.units.get_mut(name)
            {
                unit.starters.push(folder.to_owned());
            }
        }
        for line in lines("processes").lines() {
            match line.split_once(' ').and_then(|(word, name)| Some((word, seen.units.get_mut(name)?))) {
                Some(("stopped", unit)) => unit.is_stopped = true,
                Some(("older", unit)) => unit.is_older = true,
                Some(("replaced", unit)) => unit.is_replaced = true,
                _ => {}
            }
        }
        for line in lines("health").lines() {
            if let Some((name, status)) = line.split_once(' ')
                && let Some(unit) = seen.units.get_mut(name)
            {
                unit.health = status.parse().ok();
            }
        }
        seen.addresses = addresses(&lines("addresses"));
        seen.read_users(&lines("users"));
        for line in lines("user_groups").lines() {
            if let Some((name, groups)) = line.split_once(':')
                && let Some(user) = seen.users.get_mut(name)
            {
                user.groups = groups.split_whitespace().filter(|g| *g != name).map(str::to_owned).collect();
                user.groups.sort();
                // The first is its own.
                user.is_elsewhere = groups.split_whitespace().next().is_some_and(|own| own != name);
            }
        }
        for look in looks {
            if let Look::Run(run) = look
                && let Ok(status) = lines(&format!("run {}", run.id)).trim().parse()
            {
                seen.runs.insert(run.id.clone(), status);
            }
        }
        Some(seen)
    }

    fn read_paths(&mut self, text: &str, looks: &[Look]) {
        let mut complaints = Vec::new();
        for line in text.lines() {
            match path_line(line) {
                Some((name, seen)) => {
                    self.paths.insert(name, Ok(seen));
                }
                None if line.is_empty() => {}
                None => complaints.push(line),
            }
        }
        let harmless = complaints.iter().all(|c| is_absence(c));
        for look in looks {
            let (Look::File { path, .. } | Look::Directory { path } | Look::Among { path, .. }) = look else { continue };
            if harmless || self.paths.contains_key(path) {
                continue;
            }
            // what could not be looked at must not count as absent; a complaint that names no path may be about any
            let about = complaints.iter().find(|c| c.contains(&format!("'{path}'"))).or_else(|| complaints.iter().find(|c| !is_absence(c)));
            if let Some(complaint) = about.filter(|c| !is_absence(c)) {
                let why = complaint.rsplit(": ").next().unwrap_or(complaint);
                self.paths.insert(path.clone(), Err(why.to_owned()));
            }
        }
    }

    fn read_sums(&mut self, text: &str, looks: &[Look]) {
        for line in text.lines() {
            if let Some((path, sum)) = sum_line(line)
                && let Some(Ok(seen)) = self.paths.get_mut(&path)
            {
                seen.sha256 = Some(sum);
            }
        }
        // Asked about twice, and gone in between: an interrupted run's last command may still be at work. That is absence, not failure.
        let complaints: Vec<_> = text.lines().filter(|l| sum_line(l).is_none()).collect();
        // Only of what was asked about as a file: a file in the place of a directory has no sum, and is there all the same.
        let summed: BTreeSet<&String> =
            looks.iter().filter_map(|l| if let Look::File { path, .. } = l { Some(path) } else { None }).collect();
        self.paths.retain(|path, seen| {
            if !summed.contains(path) || !matches!(seen, Ok(s) if s.kind == PathKind::File && s.sha256.is_none()) {
                return true;
            }
            let about = complaints.iter().find(|c| c.contains(path.as_str())).or(complaints.first());
            match about {
                Some(complaint) if !is_absence(complaint) => {
                    *seen = Err(complaint.rsplit(": ").next().unwrap_or(complaint).to_owned());
                    true
                }
                _ => false,
            }
        });
    }

    /// Blocks in the order of the questions. A unit that systemd knows by an alias answers with its real names. `uptime`: for how many seconds the
    /// host has been up, which is what systemd counts from.
    fn read_units(&mut self, text: &str, looks: &[Look], uptime: Option<u64>) {
        let mut names: Vec<_> = looks.iter().filter_map(|l| if let Look::Unit { name } = l { Some(name) } else { None }).collect();
        names.sort();
        names.dedup();
        let blocks: Vec<_> = text.split("\n\n").filter(|b| b.contains("LoadState=")).collect();
        if blocks.len() != names.len() {
            self.units_failed = text.lines().find(|l| !l.is_empty()).map(|l| l.trim_end_matches('.').to_owned());
            return;
        }
        for (name, block) in names.into_iter().zip(blocks) {
            let values: BTreeMap<_, _> = block.lines().filter_map(|l| l.split_once('=')).collect();
            let value = |key: &str| values.get(key).copied().unwrap_or_default().to_owned();
            let number = |key: &str| values.get(key).and_then(|v| v.parse::<u64>().ok());
            // 0: never. A container that counts from its own start can't tell.
            let started = number("ExecMainStartTimestampMonotonic").filter(|at| *at > 0).map(|at| at / 1_000_000);
            let unit = UnitSeen {
                load_state: value("LoadState"),
                fragment_path: value("FragmentPath"),
                file_state: value("UnitFileState"),
                active_state: value("ActiveState"),
                sub_state: value("SubState"),
                result: value("Result"),
                needs_reload: value("NeedDaemonReload") == "yes",
                drop_ins: Vec::new(),
                for_many: value("DropInPaths").split_whitespace().filter(|path| is_for_many(path)).map(str::to_owned).collect(),
                starters: Vec::new(),
                is_stopped: false,
                is_older: false,
                is_replaced: false,
                restarts: number("NRestarts").unwrap_or(0),
                health: None,
                started_ago: uptime.zip(started).and_then(|(now, at)| (now + 1).checked_sub(at)).map(|ago| ago.saturating_sub(1)),
            };
            self.units.insert(name.clone(), unit);
        }
    }

    fn read_users(&mut self, text: &str) {
        for line in text.lines() {
            let fields: Vec<_> = line.split(':').collect();
            if let [name, _, uid, gid, comment, home, shell] = fields[..]
                && let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse())
            {
                let [comment, home, shell] = [comment, home, shell].map(str::to_owned);
                self.users.insert(name.to_owned(), UserSeen { uid, gid, comment, home, shell, groups: Vec::new(), is_elsewhere: false });
            } else if !line.is_empty() {
                self.users_failed = true;
            }
        }
    }

    /// The files whose content is wanted after all.
    pub(crate) fn contents_wanted(&self, looks: &[Look]) -> Vec<String> {
        let mut wanted = Vec::new();
        for look in looks {
            if let Look::File { path, content: Content::Unless(known) } = look
                && let Some(Ok(seen)) = self.paths.get(path)
                && seen.kind == PathKind::File
                && seen.size <= LARGEST_CONTENT
                && (known.is_none() || seen.sha256 != *known)
            {
                wanted.push(path.clone());
            }
        }
        wanted
    }

    /// Takes in the output of [`super::content_script`]. A file that is no text stays without content.
    pub(crate) fn read_contents(&mut self, output: &Output, paths: &[String]) {
        for (index, path) in paths.iter().enumerate() {
            let section = output.section(&format!("content {index}")).unwrap_or_default();
            let encoded: Vec<u8> = section.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
            if let Ok(bytes) = STANDARD.decode(encoded)
                && let Ok(text) = String::from_utf8(bytes)
                && let Some(Ok(seen)) = self.paths.get_mut(path)
            {
                seen.content = Some(text);
            }
        }
    }
}

/// `kind|owner|group|uid|gid|mode|size|path`
fn path_line(line: &str) -> Option<(String, PathSeen)> {
    let mut fields = line.splitn(8, '|');
    let kind = fields.next()?;
    let (owner, group, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    let size = fields.next()?.parse().ok()?;
    let name = fields.next()?;
    let kind = match kind {
        "regular file" | "regular empty file" => PathKind::File,
        "directory" => PathKind::Directory,
        other => PathKind::Other(other.to_owned()),
    };
    let seen = PathSeen {
        kind,
        owner: owner.to_owned(),
        group: group.to_owned(),
        uid: uid.to_owned(),
        gid: gid.to_owned(),
        mode,
        size,
        sha256: None,
        content: None,
        empty: true,
    };
    Some((name.to_owned(), seen))
}

/// `/etc/systemd/system/etcd-.service.d/x.conf`: of somebody who may write there, for all units whose names begin so.
fn is_for_many(path: &str) -> bool {
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    folder.ends_with(".d") && folder.contains("-.") && (path.starts_with("/etc/") || path.starts_with("/run/"))
}

/// `sum  path`; with a backslash before it if the path holds one, which then is doubled.
fn sum_line(line: &str) -> Option<(String, String)> {
    let (escaped, line) = line.strip_prefix('\\').map_or((false, line), |l| (true, l));
    let (sum, path) = line.split_once("  ")?;
    is_sum(sum).then(|| {
        let path = if escaped { path.replace("\\\\", "\\") } else { path.to_owned() };
        (path, sum.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Look {
        Look::File { path: path.to_owned(), content: Content::Unless(Some("0".repeat(64))) }
    }

    fn parse(body: &str, looks: &[Look]) -> Seen {
        let text =
            body.lines().map(|l| l.strip_prefix('#').map_or_else(|| format!("{l}\n"), |n| format!("\nkfx {n}\n"))).collect::<String>();
        let output = Output { stdout: format!("{text}\nkfx end\n").into_bytes(), mark: "kfx".to_owned(), ..Output::default() };
        Seen::parse(&output, looks, "h").unwrap()
    }

    #[test]
    fn paths_sums_and_contents() {
        let sum = "ab".repeat(32);
        let body = format!(
            "#owned\nssh_file\t/a\t\n#paths\nregular file|root|adm|0|4|640|3|/a\ndirectory|root|root|0|0|755|40|/d|e\ndirectory|root|root|0|0|755|40|/f\ndirectory|root|root|0|0|755|40|/g\nstat: cannot statx '/b': No such file or directory\n#sums\n{sum}  /a\n#sealed\n/a\n#full\n/d|e\n#unmounted\n/srv\n#among\n/f\n"
        );
        let among = |path: &str| Look::Among { path: path.to_owned(), ending: ".wal".to_owned() };
        let looks = [file("/a"), file("/b"), Look::Directory { path: "/d|e".to_owned() }, among("/f"), among("/g")];
        let mut seen = parse(&body, &looks);
        let a = seen.path("/a").unwrap().unwrap();
        assert_eq!((a.mode, a.sha256.as_deref(), a.group.as_str()), (0o640, Some(sum.as_str()), "adm"));
        assert_eq!(seen.path("/b").unwrap(), None);
        assert!(!seen.path("/d|e").unwrap().unwrap().empty);
        assert!(!seen.path("/f").unwrap().unwrap().empty && seen.path("/g").unwrap().unwrap().empty);
        assert!(seen.owned.has("ssh_file", "/a"));
        assert_eq!(seen.unmounted, ["/srv"], "and not what is between two answers");
        assert_eq!(seen.sealed, ["/a".to_owned()].into());
        assert_eq!(seen.contents_wanted(&looks), ["/a"]);
        let output = Output { stdout: b"\nkfx content 0\naGk=\n\nkfx end\n".to_vec(), mark: "kfx".to_owned(), ..Output::default() };
        seen.read_contents(&output, &["/a".to_owned()]);
        assert_eq!(seen.path("/a").unwrap().unwrap().content.as_deref(), Some("hi"));
    }

    #[test]
    fn what_could_not_be_looked_at_is_not_absent() {
        let looks = [file("/a"), file("/b")];
        let seen = parse("#paths\nstat: cannot statx '/a': Permission denied\nstat: cannot statx '/b': No such file or directory", &looks);
        assert_eq!(seen.path("/a").unwrap_err().summary, "Path can't be looked at");
        assert_eq!(seen.path("/b").unwrap(), None);
    }

    #[test]
    fn what_went_away_between_two_questions_is_absent() {
        let looks = [file("/a"), file("/b")];
        let stat = "#paths\nregular file|root|adm|0|4|640|3|/a\nregular file|root|adm|0|4|640|3|/b\n";
        let seen = parse(&format!("{stat}#sums\n{}  /b\nsha256sum: /a: No such file or directory", "0".repeat(64)), &looks);
        assert!(seen.path("/a").unwrap().is_none() && seen.path("/b").unwrap().is_some());
        let seen = parse(&format!("{stat}#sums\nsha256sum: /a: Input/output error\n{}  /b", "0".repeat(64)), &looks);
        assert!(seen.path("/a").is_err());
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_there() {
        let looks = [file("/a"), Look::Directory { path: "/d".to_owned() }];
        let stat = "#paths\nregular file|root|adm|0|4|640|3|/a\nregular file|root|adm|0|4|640|3|/d\n";
        let seen = parse(&format!("{stat}#sums\n{}  /a", "0".repeat(64)), &looks);
        assert_eq!(seen.path("/d").unwrap().unwrap().kind, PathKind::File);
        let seen = parse(stat, &looks);
        assert!(seen.path("/d").unwrap().is_some() && seen.path("/a").unwrap().is_none());
    }

    #[test]
    fn units_come_in_their_order_or_not_at_all() {
        let unit = |name: &str| Look::Unit { name: name.to_owned() };
        let body = "#units\nNames=a.service\nLoadState=loaded\nActiveState=active\nNeedDaemonReload=yes\n\nNames=b.service\nLoadState=not-found\nActiveState=inactive";
        let seen = parse(body, &[unit("b.service"), unit("a.service")]);
        assert!(seen.unit("a.service").unwrap().needs_reload);
        assert_eq!(seen.unit("b.service").unwrap().load_state, "not-found");
        assert_eq!((seen.unit("a.service").unwrap().restarts, seen.unit("a.service").unwrap().started_ago), (0, None));
        let body = "#units\nLoadState=loaded\nNRestarts=7\nExecMainStartTimestampMonotonic=95000000\n\nLoadState=loaded\nNRestarts=0\nExecMainStartTimestampMonotonic=0\n#health\na.service 503\nb.service 000\nc.service 200\n#uptime\n99.25";
        let seen = parse(body, &[unit("b.service"), unit("a.service")]);
        assert_eq!((seen.unit("a.service").unwrap().restarts, seen.unit("a.service").unwrap().started_ago), (7, Some(4)));
        assert_eq!((seen.unit("a.service").unwrap().health, seen.unit("b.service").unwrap().health), (Some(503), Some(0)));
        assert_eq!(seen.unit("b.service").unwrap().started_ago, None, "it was never started");
        let body = "#addresses\n1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n2: eth0    inet 10.0.0.9/32 scope global karmada:kf\n2: eth0    inet6 fe80::1/64 scope link\nnonsense";
        let own: BTreeSet<std::net::IpAddr> = ["10.0.0.9", "127.0.0.1", "fe80::1"].iter().map(|a| a.parse().unwrap()).collect();
        assert_eq!(parse(body, &[]).addresses, own);
        let body = "#units\nLoadState=loaded\n\nLoadState=loaded\n#processes\nstopped a.service\nolder b.service\nreplaced b.service\nolder c.service";
        let seen = parse(body, &[unit("b.service"), unit("a.service")]);
        let of = |name: &str| seen.unit(name).map(|unit| [unit.is_stopped, unit.is_older, unit.is_replaced]).unwrap();
        assert_eq!((of("a.service"), of("b.service")), ([true, false, false], [false, true, true]));
        let seen = parse(
            "#units\nLoadState=loaded\n#starters\na.service multi-user.target.wants\na.service x.target.requires\nb.service y.target.wants",
            &[unit("a.service")],
        );
        assert_eq!(seen.unit("a.service").unwrap().starters, ["multi-user.target.wants", "x.target.requires"]);
        let drop_ins = "DropInPaths=/etc/systemd/system/a-.service.d/x.conf /etc/systemd/system/a.service.d/y.conf /usr/lib/systemd/system/a-.service.d/z.conf";
        let seen = parse(&format!("#units\nLoadState=loaded\n{drop_ins}"), &[unit("a.service")]);
        assert_eq!(seen.unit("a.service").unwrap().for_many, ["/etc/systemd/system/a-.service.d/x.conf"]);
        let seen = parse("#units\nSystem has not been booted with systemd as init system (PID 1). Can't operate.", &[unit("a.service")]);
        assert!(seen.unit("a.service").unwrap_err().detail.contains("not been booted"));
    }

    #[test]
    fn users_sums_and_truncation() {
        let seen = parse("#users\netcd:x:998:997::/var/lib/etcd:/usr/sbin/nologin", &[]);
        assert_eq!(seen.user("etcd").unwrap().unwrap().uid, 998);
        assert_eq!(seen.user("x").unwrap(), None);
        assert!(parse("#users\nfailed", &[]).user("x").is_err());
        for (groups, is_elsewhere) in [("etcd disk", false), ("users etcd", true), ("997", true)] {
            let seen = parse(&format!("#users\netcd:x:998:997::/h:/s\n#user_groups\netcd: {groups}"), &[]);
            assert_eq!(seen.user("etcd").unwrap().unwrap().is_elsewhere, is_elsewhere, "{groups}");
        }
        let sum = "0".repeat(64);
        assert_eq!(sum_line(&format!("\\{sum}  /a\\\\x2d")), Some(("/a\\x2d".to_owned(), sum)));
        assert!(Seen::parse(&Output { mark: "kfx".to_owned(), ..Output::default() }, &[], "h").is_none());
    }
}
