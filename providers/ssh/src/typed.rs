//! The resource types of this provider, as their authors write them, and how they become resource types of the model.

use karmaform_model::{
    Ask, BoxFuture, Change, Diagnostic, Diagnostics, Need, Object, PlanContext, ResourceSpec, ResourceType, Schema, Supply, Value, same,
};

use crate::client::Client;
use crate::look::{Look, Seen};
use crate::sum::plan_sum;
use crate::values::boolean;

/// A thing on a host.
pub(crate) trait SshType: ResourceSpec {
    /// What has to be looked at to answer for it.
    fn looks(&self, identity: &Object, known: Option<&Object>) -> Vec<Look>;

    /// What it is like, from what was seen. `None`: not there.
    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic>;

    /// The same, where more depends on what is wanted, or was begun.
    fn looks_for(&self, ask: &Ask) -> Vec<Look> {
        self.looks(&ask.identity, ask.known.as_ref())
    }

    /// The answer to that.
    fn answer_for(&self, seen: &Seen, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
        self.answer(seen, &ask.identity, ask.known.as_ref())
    }

    /// What is needed from this machine for what is wanted, given what was seen; so that it is missed before anything is changed.
    fn need(&self, _seen: Option<&Object>, _known: Option<&Object>, _wanted: &Object) -> Option<Supply> {
        None
    }

    /// What of it comes from elsewhere, wherever it is installed already.
    fn needs(&self, _wanted: &Object) -> Vec<Need> {
        Vec::new()
    }

    /// Does one change.
    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>>;
}

/// Makes a [`ResourceType`] of a [`SshType`].
pub(crate) struct Typed<T>(pub(crate) T);

/// What the provider keeps a list of.
pub(crate) trait AnyType: ResourceType<Client> {
    /// The author's side of it.
    fn inner(&self) -> &dyn SshType;
}

impl<T: SshType> AnyType for Typed<T> {
    fn inner(&self) -> &dyn SshType {
        &self.0
    }
}

impl<T: SshType> ResourceSpec for Typed<T> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn schema(&self) -> &Schema {
        self.0.schema()
    }

    fn plan(&self, context: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        self.0.plan(context, before, wanted)
    }

    fn derived(&self, wanted: Object) -> Object {
        self.0.derived(wanted)
    }

    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        self.0.recovered(wanted, found)
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        self.0.impact(change)
    }
}

impl<T: SshType> ResourceType<Client> for Typed<T> {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let seen = client.look(&self.0.looks_for(ask)).await?;
            self.0.answer_for(&seen, ask)
        })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        self.0.apply(client, change)
    }
}

/// What is there after a change: what was asked for, and for what only the host can say, what it said.
pub(crate) fn finished(kind: &dyn SshType, seen: &Seen, after: &Object) -> Result<Option<Object>, Diagnostic> {
    let schema = kind.schema();
    let Some(observed) = kind.answer(seen, &schema.identity(after), Some(after))? else {
        return Err(Diagnostic::error(
            "Change did not last",
            format!("What was made on {} is not there any more right after. Something else on the host removes it.", seen.place),
        ));
    };
    let mut object = after.clone();
    for attribute in schema.attributes.iter().filter(|a| a.is_computed()) {
        let fixed = object.get(attribute.name).is_some_and(|v| !v.is_unknown() && attribute.is_configurable());
        if let Some(value) = observed.get(attribute.name).filter(|_| !fixed) {
            object.insert(attribute.name.to_owned(), value.clone().secret_if(after.get(attribute.name).is_some_and(|v| v.secret)));
        }
    }
    Ok(Some(object))
}

/// Arguments that say how to work and not what a thing is like. No host can tell them, and a difference in them alone changes nothing.
const HOW: &[&str] = &["host", "overwrite", "purge", "wait", "start_timeout", "system", "enabled"];

/// `before` made fit to be compared. Where the state is lost or unfinished, `before` has only what was seen; of the rest, what says how to
/// work is taken as wanted, and everything else counts as a difference, so that it is done once more.
pub(crate) fn comparable(schema: &Schema, before: &Object, wanted: &Object) -> Object {
    let mut before = before.clone();
    // of a file too large to be read, the sum says it all
    let same_content = before.get("sha256").is_some_and(|sum| !sum.is_null() && same(Some(sum), plan_sum(wanted, "content").get("sha256")));
    for attribute in schema.attributes.iter().filter(|a| a.is_configurable() && a.is_stored()) {
        match (before.get_mut(attribute.name), wanted.get(attribute.name)) {
            (None, Some(value)) if HOW.contains(&attribute.name) || (attribute.name == "content" && same_content) => {
                before.insert(attribute.name.to_owned(), value.clone());
            }
            (Some(was), Some(value)) => {
                if attribute.name == "mode" && is_same_mode(was, value) {
                    *was = value.clone();
                }
                // the host does not know what is secret; the configuration does
                was.secret |= value.secret;
            }
            _ => {}
        }
    }
    before
}

fn is_same_mode(a: &Value, b: &Value) -> bool {
    let bits = |v: &Value| v.as_str().and_then(|s| u32::from_str_radix(s, 8).ok());
    bits(a).is_some() && bits(a) == bits(b)
}

/// True for something that was seen and is not ours; only said of what is not in the state.
pub(crate) fn is_foreign(before: &Object) -> bool {
    boolean(before, "foreign").unwrap_or(false)
}
