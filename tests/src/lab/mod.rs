//! Proof on real hosts. `tests/lab/with.sh` boots them and says in the environment where they are; without them every test here says
//! loudly that it was skipped. Hosts are shared, so one test at a time has them, and each gets them fresh.

mod backup;
mod checkov;
pub(crate) mod client;
mod drift;
mod earlier;
mod etcd;
mod example;
mod failures;
mod faults;
mod history;
mod ipv6;
mod kill;
mod membership;
pub(crate) mod project;
mod restore;
mod rotation;
pub(crate) mod rounds;
pub(crate) mod secrets;
mod signals;
mod users;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::parts::{alone, tell};

/// The hosts of the environment.
pub(crate) struct Lab {
    /// Names and addresses.
    pub(crate) hosts: Vec<(String, String)>,
    pub(crate) key: String,
    pub(crate) known_hosts: String,
    /// An address where nobody is.
    pub(crate) black_hole: String,
    /// etcd release archives by version, lowest first.
    pub(crate) etcd: Vec<(String, String)>,
    script: PathBuf,
    _one_at_a_time: File,
}

impl Lab {
    /// A data source "x" for the host at an address, with these arguments besides.
    fn host_block(&self, address: &str, arguments: &str) -> String {
        format!(
            "data \"ssh_host\" \"x\" {{\n  address = \"{address}\"\n  private_key_file = \"{}\"\n  known_hosts_file = \"{}\"\n{arguments}\n}}\n",
            self.key, self.known_hosts
        )
    }

    /// The hosts, fresh; `None`, and said so, if there are none.
    pub(crate) fn fresh(test: &str) -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let pairs = |text: String| -> Vec<(String, String)> {
            text.split(',').filter_map(|e| e.split_once('=')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
        };
        let lab = (|| {
            Some(Self {
                hosts: pairs(variable("KARMAFORM_TEST_HOSTS")?),
                key: variable("KARMAFORM_TEST_KEY")?,
                known_hosts: variable("KARMAFORM_TEST_KNOWN_HOSTS")?,
                black_hole: variable("KARMAFORM_TEST_BLACKHOLE")?,
                etcd: pairs(variable("KARMAFORM_TEST_ETCD")?),
                script: variable("KARMAFORM_TEST_LAB")?.into(),
                _one_at_a_time: alone(Path::new(&variable("KARMAFORM_TEST_KEY")?), "hosts"),
            })
        })();
        match lab {
            Some(lab) if lab.hosts.len() >= 3 && !lab.etcd.is_empty() => {
                for (name, _) in &lab.hosts {
                    lab.act("reset", name);
                }
                Some(lab)
            }
            _ => {
                tell(&format!("*** SKIPPED (no lab): {test}"));
                None
            }
        }
    }

    /// The same hosts by their addresses of IPv6, which are made of the numbers of the others (`lab.sh`).
    pub(crate) fn by_ipv6(mut self) -> Self {
        for (_, address) in &mut self.hosts {
            let numbers: Vec<&str> = address.split('.').collect();
            let [_, net, lab, host] = numbers[..] else { panic!("{address} is not of IPv4") };
            let lab: u8 = lab.parse().expect("a number");
            *address = format!("fd00:{net}:{}::{host}", u16::from(lab) + 1);
        }
        self
    }

    /// `lab.sh VERB HOST`
    pub(crate) fn act(&self, verb: &str, host: &str) {
        let status = Command::new(&self.script).args([verb, host]).stdin(Stdio::null()).status().expect("the lab's script");
        assert!(status.success(), "lab.sh {verb} {host}");
    }

    /// What a shell command on a host prints; it must succeed.
    pub(crate) fn shell(&self, host: &str, command: &str) -> String {
        let output = Command::new(&self.script).args(["exec", host, "sh", "-c", command]).stdin(Stdio::null()).output();
        let output = output.expect("the lab's script");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "on {host}: {command}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// True if the hosts' own package manager has something to install.
    pub(crate) fn has_packages(&self) -> bool {
        self.shell(&self.hosts[0].0, "test -e /srv/packages/Packages && echo yes || echo no").trim() == "yes"
    }

    /// Those of all hosts, by their names.
    pub(crate) fn all_files(&self) -> BTreeMap<String, String> {
        self.hosts.iter().map(|(host, _)| (host.clone(), self.files(host))).collect()
    }

    /// Each of these hosts has the files that it had.
    #[track_caller]
    pub(crate) fn has_files(&self, before: &BTreeMap<String, String>) {
        for (host, before) in before {
            let now = self.files(host);
            assert!(now == *before, "host {host} is not as it was:\n{}", crate::golden::difference(before, &now));
        }
    }

    /// Every file of a host with its kind, mode, owner and content, but for logs and what systemd and dpkg remember.
    pub(crate) fn files(&self, host: &str) -> String {
        let output = Command::new(&self.script).args(["files", host]).stdin(Stdio::null()).output().expect("the lab's script");
        assert!(output.status.success(), "lab.sh files {host}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
