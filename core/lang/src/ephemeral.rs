//! Where an ephemeral value must not go: it is of this run alone, and a state, a plan or an address would keep it.

use karmaform_model::{Attribute, Diagnostic, Span};

const SUMMARY: &str = "Ephemeral value not allowed";
const AS_NULL: &str = "Make it of other values, or write ephemeralasnull(...), which has null in place of what is ephemeral.";

/// An argument whose value the state would keep.
pub(crate) fn argument(attribute: &Attribute, span: Span) -> Diagnostic {
    let detail = format!(
        "\"{}\" is kept in the state and in saved plans, and its value is made of an ephemeral one, which is of this run alone.",
        attribute.name
    );
    let hint = "Give it to an argument that is not stored (the reference calls it write-only) or to a provider block; or write ephemeralasnull(...).";
    Diagnostic::error(SUMMARY, detail).with_span(Some(span)).with_hint(hint)
}

/// What a `provider` block of a module says, which goes into connections.
pub(crate) fn default_of_module(name: &str, span: Span) -> Diagnostic {
    let detail = format!(
        "\"{name}\" of a provider block in a module goes into connections, which the state keeps, and its value is made of an ephemeral one."
    );
    Diagnostic::error(SUMMARY, detail)
        .with_span(Some(span))
        .with_hint("Give it to the provider block of the root module, which is kept nowhere; or write ephemeralasnull(...).")
}

/// `what` ("The number of instances") is kept or printed, and its value is ephemeral.
pub(crate) fn refused(what: &str, span: Span) -> Diagnostic {
    let detail =
        format!("{what} would be made of an ephemeral value. That is of this run alone, and can't be kept in plans and in the state.");
    Diagnostic::error(SUMMARY, detail).with_span(Some(span)).with_hint(AS_NULL)
}

/// An output of the root module that is declared to be ephemeral.
pub(crate) fn root_output(name: &str, span: Span) -> Diagnostic {
    let detail = format!("The output \"{name}\" is of the root module, whose outputs are kept in the state.");
    Diagnostic::error("Ephemeral output not allowed", detail)
        .with_span(Some(span))
        .with_hint("Remove \"ephemeral\". Only the outputs of modules that are called can be ephemeral.")
}

/// The output of a module that does not say so.
pub(crate) fn output(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(SUMMARY, format!("The value of the output \"{name}\" is made of an ephemeral one, and the output does not say so."))
        .with_span(Some(span))
        .with_hint("Add ephemeral = true to the output, or write ephemeralasnull(...).")
}

/// The output of a module that says so for nothing.
pub(crate) fn output_of_nothing(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("Value not allowed in an ephemeral output", format!("The output \"{name}\" is ephemeral, but its value is not."))
        .with_span(Some(span))
        .with_hint("Remove \"ephemeral\" from the output; of a value that is ephemeral in parts, give each part an output of its own.")
}

/// A value given to a variable that does not say so.
pub(crate) fn input(name: &str, span: Span, declared: Span) -> Diagnostic {
    let detail = format!("The value of the variable \"{name}\" is made of an ephemeral one, and the variable does not say so.");
    Diagnostic::error(SUMMARY, detail)
        .with_span(Some(span))
        .with_label(declared, "declared here")
        .with_hint("Add ephemeral = true to the variable, or write ephemeralasnull(...).")
}
