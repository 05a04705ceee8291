//! What a plan does that the approval of the whole is not enough for: each such resource is named by whoever wants it.

use karmaform_model::{Diagnostic, Plan};

use crate::app::{App, Stop};

/// Passes if all of it was named, in `given` (addresses) or by a person who is asked now.
///
/// # Errors
/// It was not named and nobody can be asked (`asks` is false), or something else was answered.
pub(crate) fn confirm(app: &mut App, plan: &Plan, given: &[String], asks: bool) -> Result<(), Stop> {
    let wanted = plan.risks.iter().filter_map(|(address, risk)| Some((address.to_string(), risk.confirm.clone()?)));
    let open: Vec<(String, String)> = wanted.filter(|(address, _)| !given.contains(address)).collect();
    if !asks && !open.is_empty() {
        let what: Vec<String> = open.iter().map(|(address, what)| format!("{address} {what}")).collect();
        let flags: Vec<String> = open.iter().map(|(address, _)| format!("'-confirm={address}'")).collect();
        return Err(Diagnostic::error(
            "Not confirmed",
            format!("The approval of a plan is not enough for some of what this one does: {}.", what.join("; ")),
        )
        .with_hint(format!("If it is meant, add {}.", flags.join(" ")))
        .into());
    }
    for (address, what) in open {
        let explanation = format!("  Only its address, '{address}', will be accepted to confirm.");
        let answer = app.answer(&format!("{address} {what}. Is that meant?"), &explanation);
        if answer.as_deref().map(str::trim) != Some(address.as_str()) {
            app.output.print("\nApply cancelled.\n");
            return Err(Stop::Code(1));
        }
    }
    Ok(())
}
