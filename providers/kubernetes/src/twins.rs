//! Objects that have what only one may have (`unique`): another is there with it, or is to be made in the same run. Asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_model::{Diagnostic, Value};
use serde_json::Value as Json;

use crate::manifest;
use crate::question::Question;

/// Who has a value in a field: by the field's pointer and the value.
type Holders = BTreeMap<(String, String), Vec<Holder>>;

struct Holder {
    name: String,
    is_planned: bool,
}

/// For each question the refusal to make what it wants, if there is one. One look at each object and each manifest, however many there are.
pub(crate) fn of(questions: &[Question], list: &BTreeMap<String, Json>) -> Vec<Option<Diagnostic>> {
    let known = |wanted: &Value| wanted.is_wholly_known().then(|| manifest::request(wanted));
    let requests: Vec<Option<Json>> = questions.iter().map(|q| q.wanted.as_ref().and_then(known)).collect();
    let pointers: BTreeSet<&String> = questions.iter().flat_map(|q| &q.unique).collect();
    let planned = questions.iter().zip(&requests).filter(|(q, _)| !list.contains_key(&q.name.name));
    let planned = planned.filter_map(|(q, request)| Some((&q.name.name, request.as_ref()?, true)));
    let mut holders = Holders::new();
    for (name, object, is_planned) in list.iter().map(|(name, live)| (name, live, false)).chain(planned) {
        for pointer in &pointers {
            if let Some(value) = object.pointer(pointer).filter(|v| !v.is_null()) {
                let key = ((*pointer).clone(), value.to_string());
                holders.entry(key).or_default().push(Holder { name: name.clone(), is_planned });
            }
        }
    }
    let leaving = questions.iter().filter(|q| q.wanted.is_none()).map(|q| q.name.name.as_str()).collect();
    questions.iter().zip(&requests).map(|(q, request)| refusal(q, request.as_ref()?, list, (&holders, &leaving))).collect()
}

fn refusal(
    question: &Question,
    request: &Json,
    list: &BTreeMap<String, Json>,
    (holders, leaving): (&Holders, &BTreeSet<&str>),
) -> Option<Diagnostic> {
    let name = &question.name.name;
    if let Some(live) = list.get(name) {
        // Ours or not: another configuration of karmaform's made it for something else.
        let differs = question.unique.iter().any(|p| request.pointer(p).is_some_and(|v| live.pointer(p) != Some(v)));
        let detail = format!("{} is in the cluster already, and stands for another thing than the one that is wanted.", question.name);
        let error = Diagnostic::error("Exists already", detail).with_hint("Give the object another name.");
        return (differs && !question.is_known).then_some(error);
    }
    for pointer in &question.unique {
        let Some(value) = request.pointer(pointer).filter(|v| !v.is_null()) else { continue };
        let same = holders.get(&(pointer.clone(), value.to_string())).into_iter().flatten();
        if let Some(other) = same.into_iter().find(|h| h.name != *name) {
            let how = if other.is_planned { "is to be made, too," } else { "is in the cluster already" };
            let (kind, other) = (&question.name.kind, other.name.as_str());
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let detail = format!("{kind} \"{other}\" {how} with the same {field} as \"{name}\" would have: {value}.");
            let error = Diagnostic::error("The same is there under another name", detail);
            let hint = "It goes in this very plan: apply that first, without the one that is to be made, and then make that.";
            return Some(if leaving.contains(other) { error.with_hint(hint) } else { error });
        }
    }
    None
}
