//! Failures that a run expects: which of what was said is one of them, and which did not come.

use std::collections::BTreeSet;

use karmaform_engine::{CHECK_FAILED, CHECK_UNKNOWN};
use karmaform_lang::{Config, OUTPUT_PRECONDITION, PRECONDITION, Run};
use karmaform_model::{Address, CheckKind, CheckStatus, Checked, Diagnostic, Diagnostics, Severity, Span};

use crate::policies;

/// Of a condition that does not hold a command says something with one of these summaries. All else that is said of one is that it can't be evaluated.
const BROKEN: [&str; 7] = [
    PRECONDITION,
    OUTPUT_PRECONDITION,
    "Postcondition failed",
    "Invalid value for a variable",
    policies::BROKEN,
    CHECK_FAILED,
    CHECK_UNKNOWN,
];

/// Something that is expected to fail.
struct One {
    address: Address,
    /// Where that is said.
    span: Span,
    /// Where its conditions stand.
    conditions: Vec<Span>,
    has_failed: bool,
}

/// What is known when something was said.
pub(super) struct Known<'a> {
    pub(super) config: &'a Config,
    /// What became of conditions.
    pub(super) checks: &'a [Checked],
    /// They are judged for the last time.
    pub(super) is_last: bool,
}

impl Known<'_> {
    /// The `check` that a diagnostic says something of, or of its data source.
    fn check(&self, diagnostic: &Diagnostic) -> Option<&Checked> {
        let address = diagnostic.address.as_ref()?;
        let owner = self.config.check_of(address);
        let address = owner.as_ref().unwrap_or(address);
        self.checks.iter().find(|c| c.kind == CheckKind::Check && c.address == *address)
    }

    /// True if a check does not hold because its data source can't be read, and a diagnostic says that.
    fn is_unread(&self, check: &Checked, diagnostic: &Diagnostic) -> bool {
        let is_of_data = diagnostic.address.as_ref().is_some_and(|a| *a != check.address);
        // Where the same is true of others, that is added.
        is_of_data
            && is_bad(check)
            && check.problems.iter().any(|problem| !problem.is_empty() && diagnostic.detail.starts_with(problem.as_str()))
    }

    /// True of what says that a check can't be judged, as its data source can't be read or it can't be evaluated.
    pub(super) fn is_of_check(&self, diagnostic: &Diagnostic) -> bool {
        let is_wrong = |c: &Checked| diagnostic.address.as_ref() == Some(&c.address) && is_bad(c);
        self.check(diagnostic).is_some_and(|c| self.is_unread(c, diagnostic) || is_wrong(c))
    }
}

/// The instances that a diagnostic of a condition is about; none if it is of what has no key. What is true of several is said of one.
fn instances(diagnostic: &Diagnostic) -> Vec<&Address> {
    let Some(first) = diagnostic.address.as_ref().filter(|a| a.key.is_some()) else { return Vec::new() };
    std::iter::once(first).chain(diagnostic.also.iter().filter(|a| a.block() == first.block())).collect()
}

/// It does not hold, or can't be evaluated.
fn is_bad(check: &Checked) -> bool {
    matches!(check.status, CheckStatus::Fail | CheckStatus::Error)
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
    /// is an error here, and so is one that a run that only plans can't judge, and one that can't be evaluated at all, as in Terraform; an advisory policy
    /// that can't be evaluated, too.
    pub(super) fn take(&mut self, diagnostics: Diagnostics, known: &Known<'_>) -> (Diagnostics, Diagnostics) {
        let (mut left, mut taken) = (Diagnostics::new(), Diagnostics::new());
        let mut told = BTreeSet::new();
        for diagnostic in diagnostics {
            let check = known.check(&diagnostic);
            let unread = check.filter(|c| known.is_unread(c, &diagnostic));
            let is_broken = BROKEN.contains(&diagnostic.summary.as_str());
            let is_wrong = check.is_some_and(|c| diagnostic.address.as_ref() == Some(&c.address) && is_bad(c)) && !is_broken;
            if let Some(check) = check.filter(|_| unread.is_some() || is_wrong || diagnostic.summary == CHECK_FAILED) {
                told.insert(check.address.clone());
            }
            let places: Vec<Span> = diagnostic.span.into_iter().chain(diagnostic.labels.iter().map(|(s, _)| *s)).collect();
            let instances = instances(&diagnostic);
            let is_of = |one: &One| match unread {
                Some(check) => check.address == one.address,
                None => {
                    let is_named = one.address.key.is_none() || instances.contains(&&one.address);
                    is_broken && is_named && places.iter().any(|p| one.conditions.contains(p))
                }
            };
            let (mut is_expected, mut is_any) = (false, false);
            for one in self.all.iter_mut().filter(|one| is_of(one)) {
                one.has_failed = true;
                is_expected = true;
                is_any |= one.address.key.is_none();
            }
            // Where single instances are named, all that it is true of must be.
            is_expected &= is_any || instances.iter().all(|instance| self.all.iter().any(|one| one.address == **instance));
            if is_expected {
                taken.push(diagnostic);
            } else if self.is_plan && diagnostic.summary == CHECK_UNKNOWN {
                let error = Diagnostic { severity: Severity::Error, ..diagnostic };
                left.push(error.with_hint("Write command = apply in the run, or override what the check is made of."));
            } else if [CHECK_FAILED, policies::WRONG].contains(&diagnostic.summary.as_str()) || unread.is_some() || is_wrong {
                left.push(Diagnostic { severity: Severity::Error, ..diagnostic });
            } else {
                left.push(diagnostic);
            }
        }
        if known.is_last {
            let untold: Diagnostics = self.untold(known, &told).into_iter().filter(|_| !left.has_errors()).collect();
            left.extend(untold);
        }
        (left, taken)
    }

    /// Checks that do not hold, where nothing of what was said is about them alone: what is true of several is said of one.
    fn untold(&mut self, known: &Known<'_>, told: &BTreeSet<Address>) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        for check in known.checks.iter().filter(|c| c.kind == CheckKind::Check && is_bad(c) && !told.contains(&c.address)) {
            if let Some(one) = self.all.iter_mut().find(|one| one.address == check.address && check.status == CheckStatus::Fail) {
                one.has_failed = true;
                continue;
            }
            let span = known.config.check(&check.address).map(|c| c.span);
            all.push(Diagnostic::error(CHECK_FAILED, check.problems.join("\n")).at(&check.address).with_span(span));
        }
        all
    }

    /// What did not fail. Of what has no conditions it is told that it has none.
    pub(super) fn missing(&self) -> Diagnostics {
        let missing = self.all.iter().filter(|one| !one.has_failed && !one.conditions.is_empty()).map(|one| {
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
