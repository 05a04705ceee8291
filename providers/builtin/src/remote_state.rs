//! `data "terraform_remote_state"`, also as `data "remote_state"`: the outputs of another configuration, out of its state. Reads what
//! karmaform, Terraform and OpenTofu write.

use std::sync::Arc;

use karmaform_model::{Attribute, BoxFuture, DataSource, Diagnostic, Object, OtherState, Refused, Schema, States, Type, Value};

pub(crate) struct RemoteState {
    name: &'static str,
    schema: Schema,
    states: Arc<dyn States>,
}

impl RemoteState {
    /// Under this name, over these states.
    pub(crate) fn new(name: &'static str, states: Arc<dyn States>) -> Self {
        let schema = Schema::new(
            "Outputs of another configuration, out of its state. An output that is sensitive there is sensitive here.",
            vec![
                Attribute::required(
                    "backend",
                    Type::String,
                    "Kind of the backend that keeps the state: `local`, `s3`, `etcd`, `kubernetes`, `http`.",
                ),
                Attribute::optional("config", Type::Any, "Arguments of the backend, as an object."),
                Attribute::optional(
                    "encryption",
                    Type::Any,
                    "How the state is encrypted, as in its `encryption` block: `{ passphrase = var.other }`.",
                )
                .secret(),
                Attribute::optional("workspace", Type::String, "Workspace of the state, `default` if it is not given."),
                Attribute::optional("defaults", Type::Any, "Values of outputs that the state does not have, as an object."),
                Attribute::computed("outputs", Type::Any, "The outputs, as an object."),
            ],
        );
        Self { name, schema, states }
    }

    /// The argument of this name, which must be an object; an empty one, if nothing was written.
    fn object(&self, arguments: &Object, name: &'static str) -> Result<Object, Diagnostic> {
        match arguments.get(name) {
            None => Ok(Object::new()),
            Some(value) if value.is_null() => Ok(Object::new()),
            Some(value) => value.as_entries().cloned().ok_or_else(|| {
                Diagnostic::error("Invalid arguments", format!("\"{name}\" of the data source \"{}\" must be an object.", self.name))
                    .with_hint(format!("Write it like `{name} = {{ ... }}`."))
            }),
        }
    }

    async fn read_now(&self, arguments: &Object) -> Result<Object, Diagnostic> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let object = |name: &'static str| self.object(arguments, name);
        let (backend, workspace) = (text("backend").unwrap_or_default(), text("workspace").unwrap_or("default"));
        let (config, mut outputs) = (object("config")?, object("defaults")?);
        let encryption = object("encryption")?;
        let encryption = (!encryption.is_empty()).then_some(&encryption);
        let read = self.states.read(OtherState { backend, config: &config, workspace, encryption }).await;
        let state = read.map_err(|wrong| withheld(arguments, &["backend", "config"], wrong))?;
        let Some(state) = state else {
            return Err(Diagnostic::error(
                "Unable to find remote state",
                format!("There is no state in the backend \"{backend}\" with these arguments."),
            )
            .with_hint("Check the arguments in \"config\"; a configuration has a state once it was applied."))
            .map_err(|wrong| withheld(arguments, &["backend"], wrong));
        };
        for (name, output) in state.outputs {
            outputs.insert(name, output.value.secret_if(output.sensitive));
        }
        let mut result = arguments.clone();
        result.insert("outputs".to_owned(), Value::from(outputs));
        Ok(result)
    }
}

/// What is wrong, unless it may quote an argument that is secret as a whole: the kind of a backend, or a name in its arguments.
fn withheld(arguments: &Object, names: &[&str], wrong: Diagnostic) -> Diagnostic {
    let is_secret = |name: &&&str| arguments.get(name).is_some_and(|value| value.marks().any());
    let Some(name) = names.iter().find(is_secret) else { return wrong };
    Diagnostic::error(wrong.summary, format!("\"{name}\" is secret as a whole, so that nothing more can be told."))
        .with_hint("Write the kind of the backend and the names of its arguments as constants; their values may be secret.")
}

impl DataSource<()> for RemoteState {
    fn name(&self) -> &'static str {
        self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    /// As in Terraform, of a `config` that is known as a whole.
    fn refused(&self, arguments: &Object) -> Refused {
        let is_known = |name: &str| arguments.get(name).is_none_or(|value| !value.is_unknown());
        let objects = ["config", "encryption", "defaults"].into_iter().filter(|name| is_known(name));
        let mut all: Refused = objects.filter_map(|name| Some((name, self.object(arguments, name).err()?))).collect();
        let config = self.object(arguments, "config").ok().filter(|config| config.values().all(Value::is_wholly_known));
        if let (Some(backend), Some(config)) = (arguments.get("backend").and_then(Value::as_str), config) {
            let refused = self.states.refused(backend, &config).into_iter();
            all.extend(refused.map(|(name, wrong)| (name, withheld(arguments, &["backend", "config"], wrong))));
        }
        all
    }

    fn read<'a>(&'a self, (): &'a (), arguments: &'a Object) -> BoxFuture<'a, Result<Object, Diagnostic>> {
        Box::pin(self.read_now(arguments))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use karmaform_model::Snapshot;

    use super::*;

    /// Nobody has a state.
    struct Nowhere;

    impl States for Nowhere {
        fn refused(&self, _: &str, _: &Object) -> Refused {
            Refused::new()
        }

        fn read<'a>(&'a self, _: OtherState<'a>) -> BoxFuture<'a, Result<Option<Snapshot>, Diagnostic>> {
            Box::pin(async { Ok(None) })
        }
    }

    #[test]
    fn what_must_be_an_object_is_named() {
        let source = RemoteState::new("terraform_remote_state", Arc::new(Nowhere));
        for name in ["config", "defaults", "encryption"] {
            let arguments = Object::from([("backend".to_owned(), "local".into()), (name.to_owned(), "a text".into())]);
            let why = block_on(source.read(&(), &arguments)).unwrap_err();
            assert_eq!(why.summary, "Invalid arguments");
            assert_eq!(why.detail, format!("\"{name}\" of the data source \"terraform_remote_state\" must be an object."));
            assert_eq!(why.hints, [format!("Write it like `{name} = {{ ... }}`.")]);
            assert_eq!(source.refused(&arguments), [(name, why)]);
        }
        let arguments = Object::from([("backend".to_owned(), "local".into()), ("config".to_owned(), Value::null(Type::Any))]);
        assert_eq!(block_on(source.read(&(), &arguments)).unwrap_err().summary, "Unable to find remote state");
    }
}
