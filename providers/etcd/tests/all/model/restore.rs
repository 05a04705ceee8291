//! What the commands that restore do on a host.

use std::collections::BTreeSet;

use karmaform_model::{Object, Value};

use super::host::{Data, Host};
use super::process::Process;

/// A step of a restoration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Prepare,
    Stop,
    Switch,
    End,
}

/// What a command is asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) act: Act,
    /// What names the restoration.
    pub(super) token: String,
    /// It is told that this is one.
    pub(super) is_told: bool,
    /// The members, as they are told of.
    members: String,
}

/// `None`: it is no such command, or which restoration it is of is not known.
pub(super) fn asked(resource_type: &str, object: &Object) -> Option<Asked> {
    let is_one = |c: &&str| resource_type == "ssh_command" && (c.contains("KARMAFORM_RESTORE") || c.contains(".restore/ended"));
    let command = object.get("command").and_then(Value::as_str).filter(is_one)?;
    let act = match command {
        c if c.contains(".restore/ended") => Act::End,
        c if c.contains("snapshot restore") => Act::Prepare,
        c if c.contains("carry()") => Act::Switch,
        _ => Act::Stop,
    };
    let told = |name: &str| object.get("run_environment").and_then(|e| e.get(name)?.as_str().map(str::to_owned));
    Some(Asked {
        act,
        token: object.get("environment")?.get("TOKEN")?.as_str()?.to_owned(),
        is_told: told("KARMAFORM_RESTORE").as_deref() == Some("yes"),
        members: told("MEMBERS").unwrap_or_default(),
    })
}

impl Host {
    fn is_switched(&self, token: &str) -> bool {
        self.switched.as_deref() == Some(token)
    }

    fn is_prepared(&self, token: &str) -> bool {
        self.prepared.as_ref().is_some_and(|(of, _)| of == token)
    }

    fn is_in_place(&self, token: &str) -> bool {
        self.data.as_ref().is_some_and(|d| d.restored.as_deref() == Some(token))
    }

    /// The checks of the commands.
    pub(super) fn is_done(&self, asked: &Asked) -> bool {
        let Asked { act, token, .. } = asked;
        self.is_switched(token)
            || match act {
                Act::Prepare => self.is_in_place(token) || self.is_prepared(token),
                Act::End => true,
                Act::Stop => self.is_in_place(token) || !self.process.is_running(),
                Act::Switch => false,
            }
    }

    /// True if the member is to be started.
    pub(super) fn restore(&mut self, asked: &Asked) -> Result<bool, String> {
        let Asked { act, token, is_told, members } = asked;
        match act {
            Act::End => self.ended = self.before.iter().map(|(token, _)| token.clone()).collect(),
            _ if self.is_switched(token) => {}
            Act::Prepare if *is_told && !self.is_in_place(token) => {
                let has = |end: &str| self.things.keys().any(|(ty, path)| ty == "ssh_artifact" && path.ends_with(end));
                let is_old = self.version_of("/etcdctl").is_some_and(|version| version.0 < 5);
                if !has("/snapshot.db") || !(has("/etcdutl") || is_old) {
                    return Err("no snapshot, or no program to restore it".to_owned());
                }
                if self.has_no_room {
                    return Err("there is no room for what is restored".to_owned());
                }
                if self.before.iter().any(|(of, _)| of == token) {
                    return Err("it was done here before".to_owned());
                }
                self.prepared = Some((token.clone(), members.clone()));
            }
            Act::Stop if *is_told && !self.is_in_place(token) => self.process = Process::Stopped,
            Act::Switch if !*is_told => self.switched = Some(token.clone()),
            Act::Switch => {
                if !self.is_in_place(token) {
                    // Whoever is told of by now: it was made ready with those that there were to be then.
                    let Some((_, members)) = self.prepared.clone().filter(|_| self.is_prepared(token)) else {
                        return Err("nothing was prepared".to_owned());
                    };
                    self.process = Process::Stopped;
                    self.before.extend(self.data.take().map(|data| (token.clone(), data)));
                    let cluster = format!("restored-{token} {members}");
                    self.known_members =
                        members.split(',').filter_map(|e| e.split_once('=')).map(|(_, url)| url.to_owned()).collect::<BTreeSet<_>>();
                    self.had_data_of.insert(cluster.clone());
                    self.data = Some(Data { cluster, incarnation: 0, restored: Some(token.clone()) });
                    self.data_at = self.setting("ETCD_DATA_DIR");
                }
                (self.prepared, self.switched) = (None, Some(token.clone()));
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }
}
