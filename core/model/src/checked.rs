//! What became of conditions: those of `check` blocks, resources, outputs and variables. In the state they are under Terraform's
//! `check_results`. Problems are messages that may be shown: none is made of a secret.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::{Address, Mode};

/// What conditions belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// A `check` block.
    Check,
    /// A resource or a data source.
    Resource,
    /// An output.
    Output,
    /// A variable.
    Variable,
}

/// What they say, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// One of them can't be evaluated.
    Error,
    /// One of them does not hold.
    Fail,
    /// That depends on what is not known yet.
    Unknown,
    /// All hold.
    Pass,
}

/// The conditions of one thing that has some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// What it is.
    pub kind: CheckKind,
    /// Its address; what is no resource is called `check.NAME`, `output.NAME`, `var.NAME`, in its module.
    pub address: Address,
    /// What its conditions say.
    pub status: CheckStatus,
    /// The messages of those that do not hold, sorted as Terraform has them.
    pub problems: Vec<String>,
    /// Nothing of it stands (`count = 0`): its address is the one that the configuration has, and no instance's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_absent: bool,
}

impl CheckKind {
    /// Its name in a state.
    fn stored(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Resource => "resource",
            Self::Output => "output",
            Self::Variable => "var",
        }
    }

    fn of_stored(word: &str) -> Option<Self> {
        [Self::Check, Self::Resource, Self::Output, Self::Variable].into_iter().find(|k| k.stored() == word)
    }
}

impl CheckStatus {
    /// Its name in all that Terraform reads.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Fail => "fail",
            Self::Unknown => "unknown",
            Self::Pass => "pass",
        }
    }

    /// What is not among the words is not known.
    fn of_word(word: &str) -> Self {
        [Self::Error, Self::Fail, Self::Pass].into_iter().find(|s| s.word() == word).unwrap_or(Self::Unknown)
    }
}

impl Checked {
    /// What several instances of one thing come together under: its address in the text of the configuration.
    pub fn configuration(&self) -> Address {
        self.address.configuration()
    }

    /// True if a state would say the same of both.
    pub fn are_alike(these: &[Self], those: &[Self]) -> bool {
        let kept = |all: &[Self]| from_stored(Some(&to_stored(all)));
        kept(these) == kept(those)
    }

    /// The same by configuration, in the order in which they first come, each with the worst that is said.
    pub fn grouped(all: &[Self]) -> Vec<(Address, CheckStatus, Vec<&Self>)> {
        let mut groups: Vec<(Address, CheckStatus, Vec<&Self>)> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for one in all {
            let whole = one.configuration();
            let place = *places.entry((one.kind, whole.clone())).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, status, members)) => {
                    *status = (*status).min(one.status);
                    members.push(one);
                }
                None => groups.push((whole, one.status, vec![one])),
            }
        }
        groups
    }
}

/// As a state has it: null where there is none.
pub(crate) fn to_stored(all: &[Checked]) -> Json {
    if all.is_empty() {
        return Json::Null;
    }
    let object = |one: &&Checked| {
        let mut out = json!({ "object_addr": one.address.to_string(), "status": one.status.word() });
        if !one.problems.is_empty() {
            out["failure_messages"] = json!(one.problems);
        }
        out
    };
    let groups = Checked::grouped(all);
    let group = |(whole, status, members): &(Address, CheckStatus, Vec<&Checked>)| {
        let kind = members.first().map_or(CheckKind::Check, |m| m.kind);
        let objects: Vec<_> = members.iter().filter(|one| !one.is_absent).map(object).collect();
        let objects = if objects.is_empty() { Json::Null } else { Json::Array(objects) };
        json!({ "object_kind": kind.stored(), "config_addr": whole.to_string(), "status": status.word(), "objects": objects })
    };
    groups.iter().map(group).collect()
}

/// What a state has of it. It is only told and never decided by, so what can't be understood is left out.
pub(crate) fn from_stored(stored: Option<&Json>) -> Vec<Checked> {
    let mut all = Vec::new();
    for group in stored.and_then(Json::as_array).into_iter().flatten() {
        let text = |holder: &Json, name: &str| holder.get(name).and_then(Json::as_str).map(str::to_owned);
        let Some(kind) = text(group, "object_kind").as_deref().and_then(CheckKind::of_stored) else { continue };
        let objects = group.get("objects").and_then(Json::as_array).filter(|objects| !objects.is_empty());
        let is_absent = objects.is_none();
        let named = if is_absent { "config_addr" } else { "object_addr" };
        for object in objects.map_or(std::slice::from_ref(group), Vec::as_slice) {
            let Some(address) = text(object, named).and_then(|a| a.parse::<Address>().ok()) else { continue };
            let is_data = address.mode == Mode::Data;
            if address.is_module() || is_data && kind != CheckKind::Resource {
                continue;
            }
            let messages = object.get("failure_messages").and_then(Json::as_array).into_iter().flatten();
            let problems = messages.filter_map(|m| m.as_str().map(str::to_owned)).collect();
            let status = CheckStatus::of_word(&text(object, "status").unwrap_or_default());
            all.push(Checked { kind, address, status, problems, is_absent });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(kind: CheckKind, address: &str, status: CheckStatus, problems: &[&str]) -> Checked {
        let problems = problems.iter().map(|p| (*p).to_owned()).collect();
        Checked { kind, address: address.parse().unwrap(), status, problems, is_absent: false }
    }

    #[test]
    fn what_is_stored_is_read_again_and_is_as_terraform_has_it() {
        let all = [
            checked(CheckKind::Check, "module.m[\"a\"].check.well", CheckStatus::Pass, &[]),
            checked(CheckKind::Check, "module.m[\"b\"].check.well", CheckStatus::Fail, &["no"]),
            checked(CheckKind::Resource, "t.x[0]", CheckStatus::Unknown, &[]),
            checked(CheckKind::Variable, "var.x", CheckStatus::Error, &[]),
            Checked { is_absent: true, ..checked(CheckKind::Output, "module.none.output.o", CheckStatus::Pass, &[]) },
        ];
        let stored = to_stored(&all);
        assert_eq!(
            stored[0],
            json!({ "object_kind": "check", "config_addr": "module.m.check.well", "status": "fail", "objects": [
                { "object_addr": "module.m[\"a\"].check.well", "status": "pass" },
                { "object_addr": "module.m[\"b\"].check.well", "status": "fail", "failure_messages": ["no"] },
            ] })
        );
        assert_eq!(stored[1]["config_addr"], "t.x");
        assert_eq!(stored[3], json!({ "object_kind": "output", "config_addr": "module.none.output.o", "status": "pass", "objects": null }));
        assert_eq!(from_stored(Some(&stored)), all);
        assert_eq!(to_stored(&[]), Json::Null);
    }

    #[test]
    fn what_is_not_understood_is_left_out() {
        let stored = json!([
            { "object_kind": "widget", "objects": [{ "object_addr": "t.x", "status": "pass" }] },
            { "object_kind": "check", "objects": [{ "object_addr": "?", "status": "pass" }, { "object_addr": "check.a", "status": "new" }] },
            { "object_kind": "check", "objects": null },
        ]);
        assert_eq!(from_stored(Some(&stored)), [checked(CheckKind::Check, "check.a", CheckStatus::Unknown, &[])]);
        assert_eq!(from_stored(Some(&json!("x"))), []);
    }
}
