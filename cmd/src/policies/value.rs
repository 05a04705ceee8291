//! A plan as the value that policies see. Pure.

use karmaform_model::{Action, Object, Plan, PlannedResource, Type, Value};

/// `plan`: docs/behaviour/policies.md. `now` in seconds since 1970.
pub(super) fn of(plan: &Plan, now: i64) -> Value {
    let counts = crate::ui::plan::counts(plan);
    let number = |n: usize| Value::from(i64::try_from(n).unwrap_or(i64::MAX));
    let texts = |lines: &[String]| Value::list(Type::String, lines.iter().map(|l| l.as_str().into()).collect());
    let mode = match plan.mode {
        karmaform_model::ModeOfPlan::Normal => "normal",
        karmaform_model::ModeOfPlan::Destroy => "destroy",
        karmaform_model::ModeOfPlan::RefreshOnly => "refresh-only",
    };
    let margins = plan.risks.iter().filter_map(|(address, risk)| {
        let margin = risk.margin?;
        let spare = i64::try_from(margin.up).unwrap_or(0) - i64::try_from(margin.quorum).unwrap_or(0);
        let parts =
            [("members", number(margin.members)), ("up", number(margin.up)), ("quorum", number(margin.quorum)), ("spare", spare.into())];
        Some((address.to_string(), Value::object(parts)))
    });
    let drift = plan.listed_drift().into_iter().filter(|d| !d.is_move_alone());
    let losses = plan.risks.iter().filter(|(_, risk)| !risk.data_loss.is_empty());
    let impact = plan.impact.iter().map(|(address, lines)| (address.to_string(), texts(lines)));
    Value::object([
        ("mode", mode.into()),
        ("refreshed", plan.refreshed.into()),
        ("add", number(counts.add)),
        ("change", number(counts.change)),
        ("destroy", number(counts.destroy)),
        ("forget", number(counts.forget)),
        ("changes", Value::tuple(plan.listed().into_iter().filter_map(change).collect())),
        ("impact", impact.collect::<Object>().into()),
        ("quorum", margins.collect::<Object>().into()),
        ("data_loss", losses.map(|(address, risk)| (address.to_string(), texts(&risk.data_loss))).collect::<Object>().into()),
        ("drift", texts(&drift.map(|d| d.address.to_string()).collect::<Vec<_>>())),
        ("deferred", texts(&plan.deferred.iter().map(crate::ui::deferred::name).collect::<Vec<_>>())),
        ("excludes", texts(&plan.excludes.iter().map(ToString::to_string).collect::<Vec<_>>())),
        ("targets", texts(&plan.targets.iter().map(ToString::to_string).collect::<Vec<_>>())),
        ("time", time(now)),
    ])
}

/// A change; none if nothing changes. Secrets keep their marks, and what is not known yet is unknown.
fn change(resource: &PlannedResource) -> Option<Value> {
    let action = match resource.change.action() {
        Action::NoOp | Action::Read => return None,
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
        Action::DestroyThenCreate | Action::CreateThenDestroy => "replace",
        Action::Forget => "forget",
    };
    let side = |object: Option<&Object>| object.map_or_else(|| Value::null(Type::Any), |o| o.clone().into());
    let composite = resource.address.composite().map_or_else(|| Value::null(Type::String), |a| a.to_string().into());
    Some(Value::object([
        ("address", resource.address.to_string().into()),
        ("composite", composite),
        ("deposed", resource.deposed.as_deref().map_or_else(|| Value::null(Type::String), Value::from)),
        ("type", resource.resource_type.as_str().into()),
        ("action", action.into()),
        ("before", side(resource.change.before())),
        ("after", side(resource.change.after())),
        ("impact", Value::list(Type::String, resource.impact.iter().map(|l| l.as_str().into()).collect())),
    ]))
}

/// In UTC, as a time window says it.
fn time(now: i64) -> Value {
    let at = jiff::Timestamp::from_second(now).unwrap_or_default().to_zoned(jiff::tz::TimeZone::UTC);
    Value::object([
        ("timestamp", crate::ui::json::timestamp(now).into()),
        ("date", at.date().to_string().into()),
        ("weekday", at.strftime("%A").to_string().to_lowercase().into()),
        ("hour", i64::from(at.hour()).into()),
        ("minute", i64::from(at.minute()).into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc() {
        let time = time(1_795_484_924);
        let text = |name: &str| time.get(name).and_then(Value::as_str).unwrap().to_owned();
        assert_eq!(
            (text("weekday"), text("date"), text("timestamp")),
            ("tuesday".into(), "2026-11-24".into(), "2026-11-24T01:48:44Z".into())
        );
        assert_eq!(time.get("hour").and_then(Value::as_i64), Some(1));
    }
}
