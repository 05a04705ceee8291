//! What a plan puts off, as `deferred_changes` of `show -json`.

use karmaform_model::{Catalog, Deferred, DeferredReason, Mode, ResourceEntry, Snapshot};
use serde_json::{Map, Value as Json, json};

use super::plan::{COMPOSITES, sides};
use super::state::attributes;
use super::{naming_of_change, provider_name};
use crate::ui::deferred::name;

/// The word of Terraform's for why something is put off.
pub(crate) fn reason_word(reason: DeferredReason) -> &'static str {
    match reason {
        DeferredReason::InstanceCountUnknown => "instance_count_unknown",
        DeferredReason::DeferredPrereq => "deferred_prereq",
        DeferredReason::AbsentPrereq => "absent_prereq",
    }
}

/// What names it. Of a block or a module it is all instances, whose keys are not known; of a module neither type nor name are.
pub(crate) fn named(deferred: &Deferred) -> Map<String, Json> {
    let address = &deferred.address;
    let mut out = naming_of_change(address, &address.kind);
    out.insert("address".into(), json!(name(deferred)));
    if deferred.is_open() {
        out.insert("index_unknown".into(), json!(true));
    }
    if address.is_module() {
        for key in ["mode", "type", "name"] {
            out.remove(key);
        }
        out.insert("module_address".into(), json!(name(deferred)));
    }
    out
}

/// One of them. What it will be is not known: of what the state has it is an update, of all else something to create.
pub(super) fn deferred(deferred: &Deferred, prior: Option<&Snapshot>, registry: &Catalog) -> Json {
    let address = &deferred.address;
    let mut out = named(deferred);
    if !address.is_module() {
        let driver = match address.mode {
            Mode::Data => registry.data_source(&address.kind).map(|e| e.driver.name()),
            Mode::Managed => match registry.resource(&address.kind) {
                Some(ResourceEntry::Type(driver, _)) => Some(driver.name()),
                _ => None,
            },
        };
        out.insert("provider_name".into(), json!(provider_name(driver.unwrap_or(COMPOSITES))));
    }
    let stored = prior.and_then(|s| s.resources.get(address)).filter(|_| !deferred.is_open());
    let before = stored.map(|s| attributes(address, s, registry));
    let actions: &[&str] = match (address.mode, before.is_some()) {
        (Mode::Data, _) => &["read"],
        (Mode::Managed, true) => &["update"],
        (Mode::Managed, false) => &["create"],
    };
    let mut change = sides(actions, before.as_ref(), None);
    change["after_unknown"] = json!(true);
    out.insert("change".into(), change);
    let because: Vec<String> = deferred.because.iter().map(ToString::to_string).collect();
    let mut karmaform = json!({ "because": because, "stored": deferred.stored });
    if let Some(rest) = &deferred.rest {
        karmaform["rest"] = json!(rest);
    }
    json!({
        "reason": reason_word(deferred.reason),
        "resource_change": out,
        "karmaform": karmaform,
    })
}
