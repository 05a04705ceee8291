//! What helpers do on volumes when a cluster is restored, and how all pods end for it.

use karmaform_model::{Object, Value, to_json};

use super::{Data, Process, World};

/// What is beside a member's data in its volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// What was made ready: for which restoration, and with which members.
    pub(crate) prepared: Option<(String, String)>,
    /// What was there before, by the restoration that moved it aside.
    pub(crate) before: Vec<(String, Data)>,
}

impl World {
    /// A helper comes or goes. Its pod takes a moment.
    pub(super) fn help(&mut self, arguments: &Object) -> Option<String> {
        let manifest = to_json(&arguments["manifest"]);
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let member = name.trim_end_matches("-restore");
        if arguments.get("present").and_then(Value::as_bool) == Some(false) {
            return self.helpers.remove(&name).then(|| "it ends".to_owned());
        }
        assert_eq!(manifest["spec"]["volumes"][1]["persistentVolumeClaim"]["claimName"], format!("data-{member}"));
        assert!(manifest["spec"]["initContainers"][0]["image"].is_string(), "no image: {manifest:#}");
        assert_eq!(arguments["beside"].as_str(), Some(member));
        if self.disk_of(member).is_none() {
            return Some(format!("no claim of {member}"));
        }
        self.helpers.insert(name).then(|| "it was just made".to_owned())
    }

    /// What a helper's program does.
    pub(super) fn work(&mut self, arguments: &Object) -> Result<Option<String>, String> {
        let pod = arguments["pod"].as_str().unwrap_or_default();
        let command = to_json(&arguments["command"]);
        let command: Vec<&str> = command.as_array().into_iter().flatten().filter_map(|a| a.as_str()).collect();
        let told = |flag: &str| command.iter().find_map(|a| a.strip_prefix(&format!("-{flag}="))).unwrap_or_default().to_owned();
        let member = pod.trim_end_matches("-restore").to_owned();
        if !self.helpers.contains(pod) {
            return Err(format!("there is no pod {pod}"));
        }
        let disk = self.disk_of(&member).ok_or("no volume")?;
        let token = told("token");
        let is_in_place = self.disks.get(&disk).is_some_and(|d| d.restored.as_deref() == Some(&token));
        let beside = self.beside.entry(disk.clone()).or_default();
        let is_prepared = beside.prepared.as_ref().is_some_and(|(of, _)| *of == token);
        match command[3] {
            "prepare" if is_in_place || is_prepared => {}
            "prepare" => {
                assert!(!token.is_empty() && arguments["source"].as_str().is_some() && told("sha256").len() == 64, "{arguments:?}");
                if beside.before.iter().any(|(of, _)| *of == token) {
                    return Err("it was done here before".to_owned());
                }
                if self.has_no_room || self.no_room_of.as_deref() == Some(&member) {
                    return Err(format!("there is no room beside the data of {member}"));
                }
                beside.prepared = Some((token, told("members")));
            }
            "switch" if is_in_place => beside.prepared = None,
            "switch" => {
                let Some((_, members)) = beside.prepared.take().filter(|_| is_prepared) else {
                    return Err("nothing was made ready".to_owned());
                };
                beside.before.extend(self.disks.remove(&disk).map(|data| (token.clone(), data)));
                if !self.pods.is_empty() {
                    self.violations.push(format!("{member} changes over, and {} pods are there", self.pods.len()));
                }
                let names = members.split(',').filter_map(|e| e.split_once('=')).map(|(name, _)| name.to_owned());
                if self.formed.as_ref().is_some_and(|r| r.id == format!("restored-{token} {members}")) {
                    self.violations.push(format!("{member} begins again with less than the others count on"));
                }
                let data = Data {
                    cluster: format!("restored-{token} {members}"),
                    members: names.collect(),
                    incarnation: 0,
                    restored: Some(token),
                };
                self.disks.insert(disk, data);
            }
            "tidy" => {
                beside.prepared = None;
                if !command.contains(&"-keep-before") {
                    beside.before.clear();
                }
            }
            other => return Err(format!("no work {other}")),
        }
        Ok(None)
    }

    /// All pods of the StatefulSet end.
    pub(super) fn stop(&mut self, arguments: &Object) -> Result<Option<String>, String> {
        let members: Vec<String> = self.pods.keys().cloned().collect();
        self.put(&arguments["manifest"], false)?;
        Ok((!members.is_empty()).then(|| format!("{members:?} are still there")))
    }

    /// What was restored takes the place of the cluster that there was: nobody of that runs any more.
    pub(super) fn follows(&self, cluster: &str) -> bool {
        let is_of = |p: &super::Pod| matches!(&p.process, Process::Running { cluster: of, .. } if of == cluster);
        cluster.starts_with("restored-") && self.pods.values().all(|p| is_of(p) || !matches!(p.process, Process::Running { .. }))
    }
}
