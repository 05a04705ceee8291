//! What a step does to the things on a host, and what comes of that.

use karmaform_model::{Action, Change, Object, Value};

use super::host::Host;
use super::process::Process;
use super::roster::Roster;
use super::version::{self, Version};
use super::{moving, restore, things};

impl Host {
    pub(super) fn apply(&mut self, ty: &str, change: &Change, formed: Option<&Roster>) -> (Result<Option<Object>, String>, Vec<String>) {
        let mut violations = Vec::new();
        let side = change.after().or(change.before());
        let Some(identity) = side.and_then(|o| things::identity(ty, o)) else {
            return (Err(format!("a {ty} without an identity")), violations);
        };
        let key = (ty.to_owned(), identity);
        let Some(after) = change.after() else {
            self.remove(&key);
            return (Ok(None), violations);
        };
        if matches!(change.action(), Action::DestroyThenCreate | Action::CreateThenDestroy)
            && let Some(old) = change.before().and_then(|b| things::identity(ty, b))
        {
            self.remove(&(ty.to_owned(), old));
        }
        // Of a command that is another one by now nothing is left.
        if ty == "ssh_command"
            && let Some(old) = change.before().and_then(|b| things::identity(ty, b)).filter(|old| *old != key.1)
        {
            self.things.remove(&(ty.to_owned(), old));
        }
        let mut object = after.clone();
        things::compute(ty, &mut object);
        if let Some(version) = version::to_save_for(ty, after) {
            let saved = self.save(version, formed.and_then(|f| f.version));
            if let Err(why) = saved {
                return (Err(why), violations);
            }
        }
        let mut starts = false;
        if let Some(asked) = restore::asked(ty, after) {
            match self.restore(&asked) {
                Ok(is_switched) => starts = is_switched && self.unit().is_some(),
                Err(why) => return (Err(why), violations),
            }
        }
        if ty == "ssh_directory"
            && let Err(why) = moving::carry(self, change)
        {
            return (Err(why), violations);
        }
        let before = self.things.insert(key, object.clone());
        if starts {
            self.formation = None;
            self.start(formed, &mut violations);
        }
        if ty == "ssh_file"
            && let Some(name) = self.setting("ETCD_NAME")
        {
            self.member = name;
        }
        if ty == "ssh_systemd_unit" {
            let same = |name: &str| before.as_ref().is_some_and(|b| b.get(name) == object.get(name));
            if !(self.process.is_running() && same("content") && same("restart_triggers")) {
                let given = after.get("start_environment").and_then(Value::as_entries);
                let text = |(n, v): (&String, &Value)| Some((n.clone(), v.as_str()?.to_owned()));
                self.formation = given.map(|entries| entries.iter().filter_map(text).collect());
                self.start(formed, &mut violations);
            }
        }
        (Ok(Some(object)), violations)
    }

    fn remove(&mut self, key: &(String, String)) {
        let Some(old) = self.things.remove(key) else { return };
        let undo = old.get("undo").and_then(Value::as_str).unwrap_or_default();
        match key.0.as_str() {
            "ssh_systemd_unit" => self.process = Process::Stopped,
            "ssh_command" if undo.contains(".snapshots/version") => self.saved = None,
            "ssh_command" if undo.contains(".restore/ended") => {
                let ended = &self.ended;
                self.before.retain(|(token, _)| !ended.contains(token));
            }
            "ssh_command" if undo.contains("rm -f ") => {
                self.marker = false;
                self.formation = None;
                if undo.contains(".replaced-*") {
                    self.set_aside.clear();
                    self.before.clear();
                }
                if undo.contains("mv ") {
                    self.kept = self.data.take();
                }
                if self.data_at.as_ref().is_some_and(|at| undo.contains(&format!("{at}/member "))) {
                    (self.data, self.hollow_at) = (None, None);
                }
            }
            "ssh_directory" if key.1.ends_with(".restore") => {
                let is_purged = old.get("purge").and_then(Value::as_bool) == Some(true);
                assert!(is_purged || self.prepared.is_none(), "it is not empty, and stays");
                (self.prepared, self.switched) = (None, None);
                self.ended.clear();
            }
            "ssh_directory"
                if old.get("purge").and_then(Value::as_bool) == Some(true) && self.data_at.as_ref().is_none_or(|at| *at == key.1) =>
            {
                (self.data, self.hollow_at) = (None, None);
                self.moved.clear();
            }
            _ => {}
        }
    }

    /// What the command that saves does before a version.
    fn save(&mut self, version: Version, cluster: Option<u32>) -> Result<(), String> {
        let (was, from) = self.saved.map_or((None, None), |(was, from)| (Some(was), from));
        if was == Some(version) {
            return Ok(());
        }
        // Only as long as not all have it.
        let is_taken_back = from == Some(version) && was.is_some_and(|was| was.0 != version.0 && cluster < Some(was.0));
        if is_taken_back || self.data.is_none() || (was.is_none() && self.version() == Some(version)) {
            self.saved = Some((version, None));
            return Ok(());
        }
        if !matches!(self.process, Process::Running { joined: true, .. }) {
            return Ok(());
        }
        if self.has_no_room {
            return Err("there is no room for a snapshot".to_owned());
        }
        self.saved = Some((version, self.version()));
        Ok(())
    }
}
