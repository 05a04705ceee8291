//! What `import` blocks take over: that it is there, and is what the configuration names. Pure.

use karmaform_lang::Import;
use karmaform_model::{Diagnostic, ModeOfPlan, Object, ResourceSpec, Status, Value};

use crate::observed::Answer;
use crate::walk::Pass;

impl<'a> Pass<'a> {
    /// What an instance takes over; `None` if nothing, or if it has it already.
    pub(crate) fn import(&self, number: usize) -> Option<&'a Import> {
        let address = &self.graph.nodes[number].address;
        // What an import that was cut off has begun is still to be taken over.
        let is_open = self.inputs.state.resources.get(address).is_none_or(|known| known.status == Status::Unfinished);
        let is_new = self.options.mode == ModeOfPlan::Normal && is_open;
        let config = self.inputs.config;
        config.imports.get(address).filter(|_| is_new)
    }
}

/// Why this can't be taken over, given what the look told.
pub(crate) fn refused(spec: &dyn ResourceSpec, import: &Import, wanted: &Object, answer: &Answer) -> Option<Diagnostic> {
    let error = |summary: &str, detail: String| Diagnostic::error(summary, detail).with_span(Some(import.span));
    let id = spec.import_id(wanted);
    // What others have, too, would be taken for ours alone, and go when this goes.
    let shared = spec.schema().shared_by.filter(|name| wanted.get(*name).and_then(Value::as_bool) == Some(true));
    if let Some(name) = shared {
        let detail = format!("With `{name}` a thing that is there already is used without an import, and stays when this is destroyed.");
        return Some(error("Import of a shared thing", detail).with_hint("Delete the import block."));
    }
    let is_secret = spec.schema().identity(wanted).values().any(Value::contains_secret);
    if id.as_ref().is_some_and(|id| is_secret && *id != import.id) {
        let detail = format!("The block imports \"{}\", and what the resource says names something else, which is secret.", import.id);
        return Some(error("Import of another thing", detail).with_hint("Correct the id or the resource."));
    }
    if let Some(id) = id.as_ref().filter(|id| **id != import.id) {
        let detail = format!("The block imports \"{}\", and what the resource says names \"{id}\".", import.id);
        return Some(error("Import of another thing", detail).with_hint(format!("Write id = \"{id}\", or correct the resource.")));
    }
    match answer {
        Answer::Present(_) => None,
        Answer::Failed(why) => {
            let detail = format!("Whether there is a \"{}\" could not be found out: {}", import.id, why.detail);
            Some(error("Import of something unseen", detail).with_hint("Make it reachable, or delete the import block for now."))
        }
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
