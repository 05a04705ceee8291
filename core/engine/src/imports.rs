//! What `import` blocks take over: that it is there, and is what the configuration names. Pure.

use karmaform_lang::Import;
use karmaform_model::{Diagnostic, ModeOfPlan, Object, ResourceSpec};

use crate::observed::Answer;
use crate::walk::Pass;

impl<'a> Pass<'a> {
    /// What an instance takes over; `None` if nothing, or if it has it already.
    pub(crate) fn import(&self, number: usize) -> Option<&'a Import> {
        let address = &self.graph.nodes[number].address;
        let is_new = self.options.mode == ModeOfPlan::Normal && !self.inputs.state.resources.contains_key(address);
        let config = self.inputs.config;
        config.imports.get(address).filter(|_| is_new)
    }
}

/// Why this can't be taken over, given what the look told.
pub(crate) fn refused(spec: &dyn ResourceSpec, import: &Import, wanted: &Object, answer: &Answer) -> Option<Diagnostic> {
    let error = |summary: &str, detail: String| Diagnostic::error(summary, detail).with_span(Some(import.span));
    let id = spec.import_id(wanted);
    if let Some(id) = id.as_ref().filter(|id| **id != import.id) {
        let detail = format!("The block imports \"{}\", and what the resource says names \"{id}\".", import.id);
        return Some(error("Import of another thing", detail).with_hint(format!("Write id = \"{id}\", or correct the resource.")));
    }
    match answer {
        Answer::Present(_) | Answer::Failed(_) => None,
        Answer::Absent => {
            let detail = format!("There is no \"{}\" at the place that the resource names.", import.id);
            let error = error("Cannot import non-existent remote object", detail);
            Some(error.with_hint("Check the id and the way to it; or delete the import block, and have it made."))
        }
        Answer::NotAsked => {
            let detail = format!(
                "Nobody looked whether there is a \"{}\": what it is or the way to it is known only after apply, or -refresh=false forbids it.",
                import.id
            );
            Some(
                error("Import of something unseen", detail)
                    .with_hint("Apply what it depends on first, with -target, and plan without -refresh=false."),
            )
        }
    }
}
