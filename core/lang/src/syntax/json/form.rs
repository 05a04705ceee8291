//! What a key of an object in JSON stands for: a block with so many labels, or an argument, and how the texts of an argument are meant. In
//! HCL the form of the text tells that.

use karmaform_model::{Catalog, Nesting, Schema};

/// A kind of block: how many labels it has, and what is in it.
#[derive(Clone, Copy)]
pub(super) struct Form<'s> {
    pub labels: usize,
    pub inside: Inside<'s>,
}

/// What is in a body.
#[derive(Clone, Copy)]
pub(super) enum Inside<'s> {
    /// Top-level blocks.
    File,
    /// Top-level blocks of a file with tests.
    Tests,
    /// Values of variables, which refer to nothing.
    Values,
    /// Arguments alone, whatever they are.
    Arguments,
    /// A block that is the same everywhere.
    Fixed(&'static str),
    /// A resource (`true`) or a data source, by the first label.
    Typed(bool),
    /// The defaults of a provider, by the label.
    Provider,
    /// What a schema says; the outermost body of a block has more.
    Schema { schema: Option<&'s Schema>, outer: bool },
    /// A `dynamic` block, by its label.
    Dynamic(Option<&'s Schema>),
    /// What a `dynamic` block makes.
    Content(Option<&'s Schema>),
}

/// How the texts in an argument are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Words {
    /// As templates.
    Templates,
    /// As they are.
    Literal,
    /// As expressions: references, types.
    Expressions,
    /// As references to attributes; what is none is a text.
    Parts,
}

const fn plain(kind: &'static str) -> Form<'static> {
    Form { labels: 0, inside: Inside::Fixed(kind) }
}

const ARGUMENTS: Inside<'_> = Inside::Arguments;

impl<'s> Inside<'s> {
    /// The inside of a block with these labels.
    pub(super) fn labelled(self, labels: &[&str], catalog: &'s Catalog) -> Self {
        let label = labels.first().copied().unwrap_or_default();
        match self {
            Self::Typed(true) => Self::Schema { schema: catalog.resource(label).map(|e| e.schema()), outer: true },
            Self::Typed(false) => Self::Schema { schema: catalog.data_source(label).map(|e| e.schema), outer: true },
            Self::Provider => Self::Schema { schema: catalog.providers().find(|p| p.name() == label).map(|p| p.schema()), outer: false },
            Self::Dynamic(schema) => Self::Content(schema.and_then(|s| s.block(label)).map(|b| &b.schema)),
            other => other,
        }
    }

    /// The block of this name, if it is one here.
    pub(super) fn block(self, name: &str) -> Option<Form<'s>> {
        let form = |labels: usize, inside: Inside<'s>| Some(Form { labels, inside });
        match (self, name) {
            (Self::File, "karmaform" | "terraform" | "locals" | "moved" | "removed" | "import") => {
                Some(Form { labels: 0, inside: fixed(name) })
            }
            (Self::File, "variable" | "output" | "module" | "policy" | "check") => Some(Form { labels: 1, inside: fixed(name) }),
            (Self::File, "resource") => form(2, Self::Typed(true)),
            (Self::File, "data") => form(2, Self::Typed(false)),
            (Self::File, "provider") => form(1, Self::Provider),
            (Self::Tests, "run") => form(1, Self::Fixed("run")),
            (Self::Tests, "mock_provider") => form(1, Self::Fixed("mock_provider")),
            (Self::Tests, "provider") => form(1, ARGUMENTS),
            (Self::Tests | Self::Fixed("run"), "variables") | (Self::Fixed("run"), "module") => form(0, ARGUMENTS),
            (Self::Fixed("run"), "assert") => Some(plain("condition")),
            (Self::Fixed("run"), "plan_options") => Some(plain("plan_options")),
            (Self::Fixed("mock_provider"), "mock_resource" | "mock_data") => form(1, Self::Fixed("mock")),
            (Self::Tests | Self::Fixed("run" | "mock_provider"), "override_resource" | "override_data") => Some(plain("override")),
            (Self::Tests | Self::Fixed("run"), "override_module") => Some(plain("override")),
            (Self::Fixed("karmaform" | "terraform"), "backend") | (Self::Fixed("terraform"), "provider_meta") => form(1, ARGUMENTS),
            (Self::Fixed("karmaform" | "terraform"), "encryption" | "required_providers" | "cloud") => form(0, ARGUMENTS),
            (Self::Fixed("variable"), "validation") => Some(plain("condition")),
            (Self::Fixed("output"), "precondition") => Some(plain("condition")),
            (Self::Fixed("removed"), "lifecycle") => Some(plain("lifecycle")),
            (Self::Fixed("check"), "assert") => Some(plain("condition")),
            (Self::Fixed("check"), "data") => form(2, Self::Typed(false)),
            (Self::Fixed("lifecycle"), "precondition" | "postcondition") => Some(plain("condition")),
            (Self::Schema { outer: true, .. }, "lifecycle") => Some(plain("lifecycle")),
            (Self::Schema { schema, .. }, "dynamic") => form(1, Self::Dynamic(schema)),
            (Self::Content(schema), "content") => form(0, Self::Schema { schema, outer: false }),
            (Self::Schema { schema, outer }, _) => {
                let known = schema.and_then(|s| s.block(name));
                let is_provisioner = outer && name == "provisioner" && known.is_none();
                match known {
                    Some(block) => {
                        form(usize::from(block.nesting == Nesting::Map), Self::Schema { schema: Some(&block.schema), outer: false })
                    }
                    None if is_provisioner => form(1, ARGUMENTS),
                    None => None,
                }
            }
            _ => None,
        }
    }

    /// How the texts of an argument are read.
    pub(super) fn words(self, name: &str) -> Words {
        match (self, name) {
            (Self::Values, _) => Words::Literal,
            (Self::Fixed("variable"), "type") => Words::Expressions,
            (Self::Fixed("variable"), "default" | "description") | (Self::Fixed("output"), "description") => Words::Literal,
            (Self::Fixed("moved"), "from" | "to") | (Self::Fixed("removed"), "from") | (Self::Fixed("import"), "to") => Words::Expressions,
            (Self::Fixed("output" | "module"), "depends_on") | (Self::Schema { outer: true, .. }, "depends_on") => Words::Expressions,
            (Self::Fixed("lifecycle"), "ignore_changes" | "replace_triggered_by") => Words::Expressions,
            (Self::Fixed("lifecycle"), "ignore_drift") => Words::Parts,
            (Self::Content(_), "iterator") => Words::Expressions,
            (Self::Fixed("run"), "command" | "expect_failures") => Words::Expressions,
            (Self::Fixed("plan_options"), "mode" | "target" | "replace") => Words::Expressions,
            (Self::Fixed("override"), "target") => Words::Expressions,
            (Self::Fixed("override" | "mock" | "mock_provider"), "override_during") => Words::Expressions,
            _ => Words::Templates,
        }
    }
}

/// The blocks that are looked at by name.
fn fixed<'s>(name: &str) -> Inside<'s> {
    const NAMES: [&str; 10] = ["karmaform", "terraform", "moved", "removed", "import", "variable", "output", "module", "policy", "check"];
    NAMES.into_iter().find(|n| *n == name).map_or(ARGUMENTS, Inside::Fixed)
}
