//! Failures that a run expects: which of what was said is one of them, and which did not come.

use karmaform_engine::{CHECK_FAILED, CHECK_UNKNOWN};
use karmaform_lang::{Config, Run};
use karmaform_model::{Address, Diagnostic, Diagnostics, Severity, Span};

/// Something that is expected to fail.
struct One {
    address: Address,
    /// Where that is said.
    span: Span,
    /// Where its conditions stand.
    conditions: Vec<Span>,
    has_failed: bool,
}

/// All of them.
pub(super) struct Expected {
    all: Vec<One>,
    /// The run only plans.
    is_plan: bool,
}

impl Expected {
    /// Of a run. What is not there, or has nothing that could fail, is an error.
    pub(super) fn new(run: &Run, config: &Config) -> (Self, Diagnostics) {
        let mut wrong = Diagnostics::new();
        let mut all = Vec::new();
        for (address, span) in &run.expected {
            let conditions = config.condition_spans(address);
            let error = match &conditions {
                None => Some(("Unknown object", format!("{address} does not stand in the configuration that this runs."))),
                Some(spans) if spans.is_empty() => {
                    Some(("Object without conditions", format!("{address} has no condition, so it can't fail by one.")))
                }
                Some(_) => None,
            };
            if let Some((summary, detail)) = error.filter(|_| !config.is_incomplete()) {
                let hint =
                    "What may be expected to fail is what has a validation, a precondition, a postcondition or an assert, or is a policy.";
                wrong.push(Diagnostic::error(summary, detail).with_span(Some(*span)).with_hint(hint));
            }
            all.push(One { address: address.clone(), span: *span, conditions: conditions.unwrap_or_default(), has_failed: false });
        }
        (Self { all, is_plan: run.is_plan }, wrong)
    }

    /// Takes out what was expected, and says whether that was an error, so that nothing can go on from there. A check that fails without being expected
    /// is an error here, and so is one that a run that only plans can't judge, as in Terraform.
    pub(super) fn take(&mut self, diagnostics: Diagnostics) -> (Diagnostics, Diagnostics) {
        let (mut left, mut taken) = (Diagnostics::new(), Diagnostics::new());
        for diagnostic in diagnostics {
            let places: Vec<Span> = diagnostic.span.into_iter().chain(diagnostic.labels.iter().map(|(s, _)| *s)).collect();
            let mut is_expected = false;
            for one in self.all.iter_mut().filter(|one| places.iter().any(|p| one.conditions.contains(p))) {
                one.has_failed = true;
                is_expected = true;
            }
            if is_expected {
                taken.push(diagnostic);
            } else if self.is_plan && diagnostic.summary == CHECK_UNKNOWN {
                let error = Diagnostic { severity: Severity::Error, ..diagnostic };
                left.push(error.with_hint("Write command = apply in the run, or override what the check is made of."));
            } else if diagnostic.summary == CHECK_FAILED {
                left.push(Diagnostic { severity: Severity::Error, ..diagnostic });
            } else {
                left.push(diagnostic);
            }
        }
        (left, taken)
    }

    /// What did not fail.
    pub(super) fn missing(&self) -> Diagnostics {
        let missing = self.all.iter().filter(|one| !one.has_failed).map(|one| {
            let detail = format!("{} was expected to fail and did not.", one.address);
            Diagnostic::error("Missing expected failure", detail).with_span(Some(one.span))
        });
        missing.collect()
    }

    /// What is said of an apply that what was expected has kept from being begun.
    pub(super) fn too_early(taken: &Diagnostics) -> Diagnostics {
        let early = |d: &Diagnostic| {
            let detail = format!(
                "This was expected to fail, and did so before anything could be applied, so that the run has not come to its end: {}",
                d.detail
            );
            Diagnostic { detail, ..d.clone() }.with_hint("Write command = plan in the run.")
        };
        taken.iter().filter(|d| d.is_error()).map(early).collect()
    }
}
