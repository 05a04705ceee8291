//! What the configuration's policies say of a plan, and who goes on all the same.

mod value;

use std::collections::BTreeMap;

use karmaform_lang::{Config, Policy, Verdict};
use karmaform_model::{Diagnostic, Diagnostics, Judgement, Plan, Severity, nearest};

/// Not known is not enough for one that must hold.
const UNKNOWN: &str = "What it asks for is known only when the plan has been applied.";

/// Policies that are overridden, by name, with the reason.
pub(crate) type Overrides = BTreeMap<String, String>;

/// Judges a plan: what is said of it is in the plan from then on, what is only to be told among its warnings. `now`, in seconds since 1970, is
/// when it is to be applied. Gives what forbids it.
pub(crate) fn judge(config: &Config, plan: &mut Plan, overrides: &Overrides, now: i64) -> Diagnostics {
    let mut forbidden = Diagnostics::new();
    for name in overrides.keys().filter(|name| !config.policies.contains_key(*name)) {
        let error = Diagnostic::error("Unknown policy", format!("There is no policy \"{name}\" that could be overridden."));
        let known = || config.policies.keys().map(String::as_str);
        forbidden.push(error.with_hint(match nearest(name, known()) {
            Some(meant) => format!("Did you mean \"{meant}\"?"),
            None if config.policies.is_empty() => "The configuration has no block \"policy\".".to_owned(),
            None => format!("There are: {}.", known().collect::<Vec<_>>().join(", ")),
        }));
    }
    plan.warnings = std::mem::take(&mut plan.warnings).into_iter().filter(|w| !is_judgement(w)).collect();
    plan.judgements.clear();
    if config.policies.is_empty() {
        return forbidden;
    }
    let plan_value = value::of(plan, now);
    let mut warnings = Vec::new();
    for (name, policy, verdict, wrong) in config.judge(&plan_value) {
        let summary = if verdict == Verdict::Wrong { WRONG } else { BROKEN };
        let broken = match verdict {
            Verdict::Holds => None,
            Verdict::Broken(message) => Some(message),
            Verdict::Unknown => Some(UNKNOWN.to_owned()),
            Verdict::Wrong => Some("It can't be evaluated.".to_owned()),
        };
        // Also of one that holds: it may not when a saved plan is applied.
        let overridden = overrides.get(name).cloned();
        let may_go_on = overridden.is_some() || !policy.is_mandatory;
        for error in wrong {
            if may_go_on { warnings.push(Diagnostic { severity: Severity::Warning, ..error }) } else { forbidden.push(error) }
        }
        if let Some(message) = &broken {
            let told = told(name, policy, (summary, message), overridden.as_deref());
            if told.is_error() { forbidden.push(told) } else { warnings.push(told) }
        }
        plan.judgements.insert(name.to_owned(), Judgement { is_mandatory: policy.is_mandatory, broken, overridden });
    }
    plan.warnings.extend(warnings);
    forbidden
}

/// Summaries of what is told of a policy: its condition does not hold,
pub(crate) const BROKEN: &str = "Policy is broken";
/// it can't be evaluated, so that nobody can tell,
pub(crate) const WRONG: &str = "Policy can't be judged";
/// or whatever it says does not count.
const OVERRIDDEN: &str = "Policy is overridden";

fn is_judgement(diagnostic: &Diagnostic) -> bool {
    [BROKEN, WRONG, OVERRIDDEN].contains(&diagnostic.summary.as_str())
}

/// What a plan's judgements have to say, and does not forbid it.
pub(crate) fn advice(plan: &Plan) -> impl Iterator<Item = &Diagnostic> {
    plan.warnings.iter().filter(|w| is_judgement(w))
}

fn told(name: &str, policy: &Policy, (summary, message): (&str, &str), overridden: Option<&str>) -> Diagnostic {
    let about = policy.description.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    let detail = format!("The policy \"{name}\"{about} says: {message}");
    let diagnostic = match overridden {
        Some(reason) => Diagnostic::warning(OVERRIDDEN, format!("{detail}\nIt is overridden: {reason}")),
        None if policy.is_mandatory => Diagnostic::error(summary, detail)
            .with_hint(format!("Change what is planned; or go on all the same with -override-policy={name}=REASON, which is recorded.")),
        None => Diagnostic::warning(summary, detail),
    };
    diagnostic.with_span(Some(policy.condition_span()))
}

/// What is overridden, should it be broken when the plan is applied.
pub(crate) fn overrides_of(plan: &Plan) -> Overrides {
    plan.judgements.iter().filter_map(|(name, j)| Some((name.clone(), j.overridden.clone()?))).collect()
}

/// What of that is broken.
pub(crate) fn broken_of(plan: &Plan) -> Overrides {
    let broken = plan.judgements.iter().filter(|(_, j)| j.broken.is_some());
    broken.filter_map(|(name, j)| Some((name.clone(), j.overridden.clone()?))).collect()
}
