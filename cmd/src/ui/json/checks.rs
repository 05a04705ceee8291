//! What conditions say, as `show -json` gives it of a plan and of a state.

use karmaform_model::{Address, CheckKind, CheckStatus, Checked};
use serde_json::{Map, Value as Json, json};

use super::{key_json, naming};

/// All of them by what they belong to, each with those of its instances that are there.
pub(crate) fn checks(all: &[Checked], is_there: impl Fn(&Checked) -> bool) -> Json {
    let group = |(whole, status, members): (Address, CheckStatus, Vec<&Checked>)| {
        let kind = members.first().map_or(CheckKind::Check, |m| m.kind);
        let instances: Vec<_> = members.into_iter().filter(|m| !m.is_absent && is_there(m)).map(instance).collect();
        let mut out = json!({ "address": static_address(kind, &whole), "status": status.word() });
        if !instances.is_empty() {
            out["instances"] = Json::Array(instances);
        }
        out
    };
    let mut groups: Vec<Json> = Checked::grouped(all).into_iter().map(group).collect();
    groups.sort_by(|a, b| display(a).cmp(display(b)));
    Json::Array(groups)
}

fn display(group: &Json) -> &str {
    group["address"]["to_display"].as_str().unwrap_or_default()
}

fn static_address(kind: CheckKind, whole: &Address) -> Json {
    let mut out = Map::new();
    let word = match kind {
        CheckKind::Check => "check",
        CheckKind::Resource => "resource",
        CheckKind::Output => "output_value",
        CheckKind::Variable => "var",
    };
    out.insert("kind".into(), json!(word));
    out.insert("to_display".into(), json!(whole.to_string()));
    if let Some(module) = whole.module_address() {
        out.insert("module".into(), json!(module.to_string()));
    }
    out.insert("name".into(), json!(whole.name));
    if kind == CheckKind::Resource {
        let named = naming(whole, &whole.kind);
        out.extend(named.into_iter().filter(|(name, _)| ["mode", "type"].contains(&name.as_str())));
    }
    Json::Object(out)
}

fn instance(one: &Checked) -> Json {
    let mut address = json!({ "to_display": one.address.to_string() });
    if let Some(module) = one.address.module_address() {
        address["module"] = json!(module.to_string());
    }
    if let Some(key) = &one.address.key {
        address["instance_key"] = key_json(key);
    }
    let mut out = json!({ "address": address, "status": one.status.word() });
    if !one.problems.is_empty() {
        out["problems"] = one.problems.iter().map(|message| json!({ "message": message })).collect();
    }
    out
}
