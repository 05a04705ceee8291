//! A configuration with members in it, and what its plans say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::planes::Cluster;
use crate::project::Project;

/// One block for all members; each says of itself what it is to be.
const CONFIGURATION: &str = r#"
locals {
  members = jsondecode(file("members.json"))
}

variable "plane" {
  type = string
}

data "kubernetes_cluster" "plane" {
  kubeconfig_file = var.plane
}

data "kubernetes_cluster" "member" {
  for_each        = local.members
  kubeconfig_file = each.value.kubeconfig
  required        = false
  timeout         = 2
}

resource "karmada_member" "fleet" {
  for_each       = local.members
  control_plane  = data.kubernetes_cluster.plane.connection
  cluster        = data.kubernetes_cluster.member[each.key].connection
  api_endpoint   = try(each.value.api_endpoint, null)
  ca_certificate = try(each.value.ca_certificate, null)
  region         = try(each.value.region, null)
  zones          = try(each.value.zones, null)
  labels         = try(each.value.labels, null)
  taints         = try(each.value.taints, null)
  rotation       = try(each.value.rotation, null)
  keep_resources = try(each.value.keep_resources, null)
  force          = try(each.value.force, null)
  timeout        = 30
  leave_timeout  = try(each.value.leave_timeout, null)

  dynamic "estimator" {
    for_each = can(each.value.estimator) ? [each.value.estimator] : []
    content {
      inside   = true
      address  = estimator.value.address
      port     = estimator.value.port
      image    = "registry.example.org/karmada-scheduler-estimator:v1.19.0"
      replicas = 0
    }
  }
}
"#;

/// Members of a plane, as a project has them.
pub(super) struct Fleet {
    pub(super) project: Project,
}

/// What a plan is about to do.
pub(super) struct Planned {
    /// Everything that `show -json` says.
    pub(super) json: Value,
    /// What `plan` printed.
    pub(super) text: String,
    /// What each part that changes has before it, "update m1/cluster".
    pub(super) changes: BTreeSet<String>,
}

impl Fleet {
    /// Of this plane.
    pub(super) fn new(plane: &Cluster) -> Self {
        let fleet = Self { project: Project::new() };
        fleet.project.write("main.kf.hcl", CONFIGURATION);
        fleet.plane(&plane.kubeconfig);
        fleet
    }

    /// From now on the plane is reached with this kubeconfig.
    pub(super) fn plane(&self, kubeconfig: &str) {
        self.project.write("karmaform.kfvars.hcl", &format!("plane = {kubeconfig:?}\n"));
    }

    /// From now on these are its members: the key, the way, and what else is said of it.
    pub(super) fn members(&self, members: &[(&str, &str, Value)]) {
        let all: Map<String, Value> = members
            .iter()
            .map(|(key, kubeconfig, more)| {
                let mut one = more.as_object().cloned().unwrap_or_default();
                one.insert("kubeconfig".to_owned(), json!(kubeconfig));
                ((*key).to_owned(), Value::Object(one))
            })
            .collect();
        self.project.write("members.json", &Value::Object(all).to_string());
    }

    /// Applies, and then there is nothing to do.
    #[track_caller]
    pub(super) fn converge(&self) -> String {
        let applied = self.project.apply();
        self.project.no_changes();
        applied
    }

    /// A plan.
    #[track_caller]
    pub(super) fn plan(&self, arguments: &[&str]) -> Planned {
        let text = self.project.must(0, &[&["plan", "-out=saved"], arguments].concat());
        let shown = self.project.must(0, &["show", "-json", "saved"]);
        let json: Value = serde_json::from_str(shown.lines().find(|l| l.starts_with('{')).unwrap_or(&shown)).expect("JSON");
        let mut changes = BTreeSet::new();
        for change in json["resource_changes"].as_array().expect("changes") {
            let actions: Vec<_> = change["change"]["actions"].as_array().expect("actions").iter().filter_map(Value::as_str).collect();
            let address = change["address"].as_str().expect("an address");
            if let Some((member, part)) = address.strip_prefix("karmada_member.fleet[\"").and_then(|a| a.split_once("\"]/"))
                && actions != ["no-op"]
            {
                changes.insert(format!("{} {member}/{}", actions.join("+"), part.replace('"', "")));
            }
        }
        Planned { json, text, changes }
    }

    /// A plan does this and nothing else: "update m1/cluster".
    #[track_caller]
    pub(super) fn plans(&self, changes: &[&str]) -> Planned {
        let planned = self.plan(&[]);
        let expected: BTreeSet<String> = changes.iter().map(|c| (*c).to_owned()).collect();
        assert_eq!(planned.changes, expected, "{}", planned.text);
        planned
    }
}

impl Fleet {
    /// What `drift` tells, and nothing else: `missing m1/cluster`.
    #[track_caller]
    pub(super) fn drifts(&self, expected: &[&str]) {
        let text = self.project.must(if expected.is_empty() { 0 } else { 2 }, &["drift", "-json"]);
        let report: Value = serde_json::from_str(&text).expect("JSON");
        let part = |f: &Value| {
            f["address"].as_str().unwrap_or_default().replace("karmada_member.fleet[", "").replacen(']', "", 1).replace('"', "")
        };
        let found = report["findings"].as_array().expect("findings").iter();
        let found: BTreeSet<String> = found.map(|f| format!("{} {}", f["kind"].as_str().unwrap_or_default(), part(f))).collect();
        assert_eq!(found, expected.iter().map(|e| (*e).to_owned()).collect(), "{text}");
    }
}

impl Planned {
    /// The lines of the impact on a member.
    pub(super) fn impact(&self, member: &str) -> Vec<String> {
        let of: BTreeMap<String, Vec<String>> = serde_json::from_value(self.json["karmaform"]["impact"].clone()).unwrap_or_default();
        of.get(&format!("karmada_member.fleet[\"{member}\"]")).cloned().unwrap_or_default()
    }
}
