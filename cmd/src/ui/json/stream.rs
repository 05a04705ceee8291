//! The lines of `plan -json` and `apply -json`: one object per line.

use karmaform_engine::Glance;
use karmaform_lang::Sources;
use karmaform_model::{
    Action, Address, Change, Diagnostic, Event, EventKind, Mode, ModeOfPlan, OutputState, Plan, Reason, Severity, to_json,
};
use serde_json::{Map, Value as Json, json};

use super::key_json;
use super::plan::{all_outputs, is_secret, previous_address, reason_word};
use crate::app::TERRAFORM;
use crate::ui::plan::{Counts, counts};
use crate::ui::progress::{id_text, subject};
use crate::ui::steps::duration;

/// The version of the line format.
const UI: &str = "1.2";

/// Makes lines with a timestamp each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Milliseconds since 1970.
    pub(crate) now: u64,
}

impl Stream {
    pub(super) fn line(self, level: &str, message: &str, kind: &str, rest: &[(&str, Json)]) -> String {
        let seconds = i64::try_from(self.now / 1000).unwrap_or(i64::MAX);
        let mut out = json!({
            "@level": level,
            "@message": message,
            "@module": "karmaform.ui",
            "@timestamp": super::timestamp(seconds),
            "type": kind,
        });
        for (name, value) in rest {
            out[*name] = value.clone();
        }
        super::line(&out)
    }

    /// The first line.
    pub(crate) fn version(self, version: &str) -> String {
        let versions = [("terraform", json!(TERRAFORM)), ("karmaform", json!(version)), ("ui", json!(UI))];
        self.line("info", &format!("karmaform {version}"), "version", &versions)
    }

    /// A message.
    pub(crate) fn log(self, message: &str) -> String {
        self.line("info", message, "log", &[])
    }

    /// A diagnostic.
    pub(crate) fn diagnostic(self, diagnostic: &Diagnostic, sources: &Sources) -> String {
        let (level, word) = if diagnostic.severity == Severity::Error { ("error", "Error") } else { ("warn", "Warning") };
        let message = format!("{word}: {}", diagnostic.summary);
        self.line(level, &message, "diagnostic", &[("diagnostic", super::diagnostics::diagnostic(diagnostic, sources))])
    }

    /// What was looked at for a plan. As in Terraform, a data source that is read then is told of as a step is.
    pub(crate) fn glances(self, glances: &[Glance]) -> String {
        glances.iter().map(|glance| self.glance(glance)).collect()
    }

    fn glance(self, glance: &Glance) -> String {
        let Glance { address, kind, id, is_answered, seen, elapsed } = glance;
        let is_read = address.mode == Mode::Data;
        let hook = |id: &Option<String>| {
            let mut hook = json!({ "resource": resource(address, kind) });
            if is_read {
                hook["action"] = json!(action_word(Action::Read));
            }
            if let Some(id) = id {
                hook["id_key"] = json!("id");
                hook["id_value"] = json!(id);
            }
            hook
        };
        let (start, doing) = if is_read { ("apply_start", "Refreshing...") } else { ("refresh_start", "Refreshing state...") };
        let mut out = self.line("info", &format!("{address}: {doing}{}", id_text(id.as_deref())), start, &[("hook", hook(id))]);
        if *is_answered {
            let mut hook = hook(seen);
            let (complete, took) = if is_read {
                hook["elapsed_seconds"] = json!(elapsed / 1000);
                ("apply_complete", format!(" after {}", duration(elapsed / 1000)))
            } else {
                ("refresh_complete", String::new())
            };
            let message = format!("{address}: Refresh complete{took}{}", id_text(seen.as_deref()));
            out.push_str(&self.line("info", &message, complete, &[("hook", hook)]));
        }
        out
    }

    /// The changes that are planned, a line each; what only moves is none for who applies a saved plan, or where it is drift.
    pub(crate) fn changes(self, plan: &Plan, with_moves: bool) -> String {
        let mut out = String::new();
        for planned in plan.listed() {
            let was = previous_address(plan, &planned.address);
            let action = match (planned.change.is_no_op(), &was) {
                (true, Some(_)) if with_moves => "move",
                (true, _) => continue,
                (false, _) if planned.is_import_alone() => "import",
                (false, _) => action_word(planned.change.action()),
            };
            let mut change = json!({ "resource": resource(&planned.address, &planned.resource_type), "action": action });
            if let Some(id) = &planned.importing {
                change["importing"] = json!({ "id": id });
            }
            if let Some(was) = was {
                change["previous_resource"] = resource(&was, &planned.resource_type);
            }
            let let_go = matches!(planned.change, Change::Forget { .. }).then_some("delete_because_no_resource_config");
            if let Some(reason) = planned.reason.as_ref().and_then(short_reason).or(let_go) {
                change["reason"] = json!(reason);
            }
            let message = format!("{}: Plan to {action}", planned.address);
            out.push_str(&self.line("info", &message, "planned_change", &[("change", change)]));
        }
        out
    }

    /// What `refresh` finds.
    pub(crate) fn refreshed(self, plan: &Plan) -> String {
        self.drift(plan) + &self.deferred(plan)
    }

    fn drift(self, plan: &Plan) -> String {
        let mut out = String::new();
        for drifted in plan.listed_drift() {
            let action = match drifted.action() {
                Action::NoOp => "move",
                action => action_word(action),
            };
            let message = format!("{}: Drift detected ({action})", drifted.address);
            let mut change = json!({ "resource": resource(&drifted.address, &drifted.resource_type), "action": action });
            if let Some(was) = previous_address(plan, &drifted.address) {
                change["previous_resource"] = resource(&was, &drifted.resource_type);
            }
            out.push_str(&self.line("info", &message, "resource_drift", &[("change", change)]));
        }
        out
    }

    fn deferred(self, plan: &Plan) -> String {
        let mut out = String::new();
        for deferred in &plan.deferred {
            let because: Vec<String> = deferred.because.iter().map(ToString::to_string).collect();
            let mut told = json!({ "resource": super::deferred::named(deferred), "reason": super::deferred::reason_word(deferred.reason), "because": because });
            if let Some(rest) = &deferred.rest {
                told["rest"] = json!(rest);
            }
            let message = format!("{}: Deferred", crate::ui::deferred::name(deferred));
            out.push_str(&self.line("info", &message, "deferred_change", &[("deferred", told)]));
        }
        out
    }

    /// What is planned: drift, changes, the summary and the outputs.
    pub(crate) fn plan(self, plan: &Plan) -> String {
        let mut out = self.drift(plan);
        out.push_str(&self.changes(plan, plan.mode != ModeOfPlan::RefreshOnly));
        out.push_str(&self.deferred(plan));
        out.push_str(&self.summary(&crate::ui::plan::summary(plan), counts(plan), "plan"));
        let outputs: Map<_, _> = all_outputs(plan)
            .map(|(name, o, stays)| {
                let action = match (&o.before, &o.after) {
                    _ if stays => "noop",
                    (None, _) => "create",
                    (_, None) => "delete",
                    _ => "update",
                };
                (name.clone(), json!({ "sensitive": is_secret(&o), "action": action }))
            })
            .collect();
        if !outputs.is_empty() {
            let message = format!("Outputs: {}", outputs.len());
            out.push_str(&self.line("info", &message, "outputs", &[("outputs", Json::Object(outputs))]));
        }
        out
    }

    /// The counts; `operation` is `plan`, `apply` or `destroy`. `forget` is OpenTofu's.
    pub(crate) fn summary(self, message: &str, counts: Counts, operation: &str) -> String {
        let Counts { import, add, change, destroy, forget } = counts;
        let changes =
            json!({ "add": add, "change": change, "import": import, "remove": destroy, "forget": forget, "operation": operation });
        self.line("info", message, "change_summary", &[("changes", changes)])
    }

    /// The outputs after an apply; secret values are left out.
    pub(crate) fn outputs<'a>(self, outputs: impl IntoIterator<Item = (&'a String, &'a OutputState)>) -> String {
        let shown: Map<_, _> = outputs
            .into_iter()
            .map(|(name, o)| {
                let mut out = json!({ "sensitive": o.sensitive, "type": o.value.ty().to_json() });
                if !o.sensitive && !o.value.contains_secret() {
                    out["value"] = to_json(&o.value);
                }
                (name.clone(), out)
            })
            .collect();
        let message = format!("Outputs: {}", shown.len());
        self.line("info", &message, "outputs", &[("outputs", Json::Object(shown))])
    }

    /// A step's event. `message` is the line a person would read. As in Terraform, what is only taken over or let go is told by the plan
    /// alone.
    pub(crate) fn event(self, event: &Event, resource_type: &str, message: Option<String>) -> Option<String> {
        let touches_nothing = event.importing || event.action == Some(Action::Forget);
        if touches_nothing && !matches!(event.kind, EventKind::Failed(_) | EventKind::Skipped(_)) {
            return None;
        }
        let kind = match event.kind {
            EventKind::Started => "apply_start",
            EventKind::Waiting(_) => "apply_progress",
            EventKind::Succeeded(_) => "apply_complete",
            EventKind::Failed(_) => "apply_errored",
            EventKind::Skipped(_) => "apply_skipped",
        };
        let message = message.or_else(|| match &event.kind {
            EventKind::Skipped(Some(cause)) => Some(format!("{}: skipped, because {cause} failed", subject(event))),
            EventKind::Skipped(None) => Some(format!("{}: skipped, because of the interrupt", subject(event))),
            _ => None,
        })?;
        let mut hook = json!({ "resource": resource(&event.address, resource_type) });
        hook["action"] = json!(event.action.map_or("wait", action_word));
        if let Some(gate) = &event.gate {
            hook["gate"] = json!(gate);
        }
        if !matches!(event.kind, EventKind::Started) {
            hook["elapsed_seconds"] = json!(event.elapsed / 1000);
        }
        if let Some(key) = &event.deposed {
            hook["deposed"] = json!(key);
        }
        let id = match &event.kind {
            EventKind::Started | EventKind::Waiting(_) => event.id.as_ref(),
            EventKind::Succeeded(id) => id.as_ref().filter(|_| event.action.is_some()),
            EventKind::Failed(_) | EventKind::Skipped(_) => None,
        };
        if let Some(id) = id {
            hook["id_key"] = json!("id");
            hook["id_value"] = json!(id);
        }
        let level = if matches!(event.kind, EventKind::Failed(_)) { "error" } else { "info" };
        Some(self.line(level, &message, kind, &[("hook", hook)]))
    }
}

fn resource(address: &Address, resource_type: &str) -> Json {
    let name = if address.is_child() { address.to_string() } else { address.name.clone() };
    json!({
        "addr": address.to_string(),
        "module": address.module_address().map(|m| m.to_string()).unwrap_or_default(),
        "resource": address.outside_of_modules().to_string(),
        "implied_provider": resource_type.split('_').next().unwrap_or_default(),
        "resource_type": resource_type,
        "resource_name": name,
        "resource_key": address.key.as_ref().filter(|_| !address.is_child()).map(key_json),
    })
}

fn action_word(action: Action) -> &'static str {
    match action {
        Action::NoOp => "noop",
        Action::Read => "read",
        Action::Create => "create",
        Action::Update => "update",
        Action::DestroyThenCreate | Action::CreateThenDestroy => "replace",
        Action::Delete => "delete",
        Action::Forget => "remove",
    }
}

fn short_reason(reason: &Reason) -> Option<&'static str> {
    match reason {
        Reason::ReplaceByRequest => Some("requested"),
        Reason::ReplaceByTriggers(_) => Some("replace_triggered_by"),
        Reason::ReplaceBecauseCannotUpdate(_) => Some("cannot_update"),
        Reason::ReplaceBecauseTainted => Some("tainted"),
        other => reason_word(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_object_with_its_type() {
        let stream = Stream { now: 1_000 };
        let lines = [
            stream.version("0.1.0"),
            stream.log("x"),
            stream.summary("Plan: 1 to add, 0 to change, 0 to destroy.", Counts { add: 1, ..Counts::default() }, "plan"),
        ];
        for line in &lines {
            let json: Json = serde_json::from_str(line).unwrap_or_default();
            assert_eq!(json["@timestamp"], "1970-01-01T00:00:01Z");
            assert!(json["type"].is_string(), "{line}");
        }
        let event = Event {
            step: 0,
            address: "module.m.a.b[0]".parse().unwrap(),
            gate: None,
            action: Some(Action::Update),
            deposed: None,
            id: Some("old".into()),
            importing: false,
            elapsed: 1_500,
            kind: EventKind::Succeeded(Some("i".into())),
        };
        let told = |event: &Event| -> Json {
            serde_json::from_str(&stream.event(event, "a", Some("done".into())).unwrap_or_default()).unwrap_or_default()
        };
        let json = told(&event);
        assert_eq!(json["hook"]["id_value"], "i");
        assert_eq!(json["hook"]["elapsed_seconds"], 1);
        assert_eq!(json["hook"]["resource"]["resource_key"], 0);
        assert_eq!(json["hook"]["resource"]["resource"], "a.b[0]");
        assert_eq!(told(&Event { kind: EventKind::Started, ..event.clone() })["hook"]["id_value"], "old");
        assert_eq!(told(&Event { action: Some(Action::Forget), ..event.clone() }), Json::Null);
        assert_eq!(told(&Event { importing: true, ..event }), Json::Null);
    }
}
