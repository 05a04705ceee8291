//! The bodies of resources and data sources, checked against their schemas; and the references in them.

use karmaform_model::{Diagnostic, Diagnostics, Nesting, Schema};

use crate::config::{Config, Reference};
use crate::decode::missing;
use crate::statics::{self, Place};
use crate::suggest;
use crate::syntax::{Attribute, Block, Body, Expr, ExprKind};

/// Arguments that every resource and data source has.
pub(crate) const META: [&str; 3] = ["count", "for_each", "depends_on"];

/// The same without `provider = terraform`, where a type is of Terraform's own provider there: that says nothing more. Other types have no other.
pub(crate) fn without_own_provider(mut block: Block) -> Block {
    let ty = block.labels.first().map(|l| l.text.as_str());
    if matches!((block.kind.as_str(), ty), ("resource", Some("terraform_data")) | ("data", Some("terraform_remote_state"))) {
        let is_own = |expr: &Expr| expr.as_text() == Some("terraform") || matches!(&expr.kind, ExprKind::Name(name) if name == "terraform");
        block.body.attributes.retain(|a| !(a.name == "provider" && is_own(&a.expr)));
    }
    block
}

/// Checks a body against its schema. `what` is the block for messages; `outer` allows what only stands in the outermost body.
pub(crate) fn check_body(schema: &Schema, body: &Body, what: &str, block: &Block, outer: bool, diagnostics: &mut Diagnostics) {
    for attribute in &body.attributes {
        if !(outer && META.contains(&attribute.name.as_str())) {
            check_attribute(schema, attribute, what, outer, diagnostics);
        }
    }
    let mut single: Vec<&str> = Vec::new();
    for nested in &body.blocks {
        match nested.kind.as_str() {
            "lifecycle" if outer => {}
            "dynamic" => check_dynamic(schema, nested, what, diagnostics),
            "provisioner" | "connection" if outer && schema.block(&nested.kind).is_none() => diagnostics.push(
                Diagnostic::error("Provisioners don't exist here", format!("The block \"{}\" is not supported.", nested.kind))
                    .with_span(Some(nested.kind_span))
                    .with_hint("Use resources that do the work, such as ssh_command and ssh_file; they are planned."),
            ),
            _ => check_nested(schema, nested, what, &mut single, diagnostics),
        }
    }
    let absent: Vec<_> = schema
        .attributes
        .iter()
        .filter(|a| a.presence == karmaform_model::Presence::Required && body.attribute(a.name).is_none())
        .map(|a| a.name)
        .collect();
    missing(&absent, what, block.span, diagnostics);
}

fn check_attribute(schema: &Schema, attribute: &Attribute, what: &str, outer: bool, diagnostics: &mut Diagnostics) {
    let name = attribute.name.as_str();
    let error = match (schema.attribute(name), schema.block(name)) {
        (Some(known), _) if known.is_configurable() => return,
        (Some(_), _) => Diagnostic::slip("Argument can't be set", format!("\"{name}\" of {what} is a result, given by the provider."))
            .with_hint("Remove this line."),
        (None, Some(block)) => Diagnostic::slip("Block written as an argument", format!("\"{name}\" of {what} is a block."))
            .with_hint(format!("Write {name}{} {{ ... }} without the equals sign.", label_form(block.nesting))),
        (None, None) => {
            let error = Diagnostic::slip("Unknown argument", format!("There is no argument \"{name}\" in {what}."));
            let meta = if outer { META.as_slice() } else { &[] };
            let names = schema.attributes.iter().filter(|a| a.is_configurable()).map(|a| a.name);
            let blocks = schema.blocks.iter().map(|b| b.name);
            match suggest::hint(name, names.clone().chain(blocks.clone()).chain(meta.iter().copied())) {
                Some(hint) => error.with_hint(hint),
                _ if outer && name == "lifecycle" => {
                    return diagnostics.push(
                        Diagnostic::slip("Block written as an argument", format!("\"lifecycle\" of {what} is a block."))
                            .with_span(Some(attribute.name_span))
                            .with_hint("Write lifecycle { ... } without the equals sign."),
                    );
                }
                None if outer && name == "provider" => {
                    error.with_hint("There are no provider aliases: connections are values, given as arguments.")
                }
                None => error.with_hint(format!("It may hold {}.", suggest::listed(names.chain(blocks)))),
            }
        }
    };
    diagnostics.push(error.with_span(Some(attribute.name_span)));
}

fn label_form(nesting: Nesting) -> &'static str {
    if nesting == Nesting::Map { " \"NAME\"" } else { "" }
}

fn unknown_block(schema: &Schema, name: &str, what: &str) -> Diagnostic {
    if schema.attribute(name).is_some() {
        return Diagnostic::slip("Argument written as a block", format!("\"{name}\" of {what} is an argument."))
            .with_hint(format!("Write {name} = {{ ... }} or another value with the equals sign."));
    }
    let error = Diagnostic::slip("Unknown block", format!("There is no block \"{name}\" in {what}."));
    let names = schema.blocks.iter().map(|b| b.name);
    match suggest::hint(name, names.clone().chain(["lifecycle", "dynamic"])) {
        Some(hint) => error.with_hint(hint),
        None if schema.blocks.is_empty() => error.with_hint("It holds no blocks but lifecycle."),
        None => error.with_hint(format!("It may hold {}.", suggest::listed(names))),
    }
}

fn check_nested<'b>(schema: &Schema, nested: &'b Block, what: &str, single: &mut Vec<&'b str>, diagnostics: &mut Diagnostics) {
    let name = nested.kind.as_str();
    let Some(known) = schema.block(name) else {
        diagnostics.push(unknown_block(schema, name, what).with_span(Some(nested.kind_span)));
        return;
    };
    let wanted = usize::from(known.nesting == Nesting::Map);
    if nested.labels.len() != wanted {
        let detail = if wanted == 1 {
            format!("Each block \"{name}\" has one label, its name.")
        } else {
            format!("The block \"{name}\" takes no label.")
        };
        diagnostics.push(
            Diagnostic::error("Wrong number of labels", detail)
                .with_span(Some(nested.span))
                .with_hint(format!("Write {name}{} {{ ... }}.", label_form(known.nesting))),
        );
    }
    let twice = match known.nesting {
        Nesting::Single => single.contains(&name).then(|| format!("The block \"{name}\" may stand only once in {what}.")),
        Nesting::Map => {
            let label = nested.labels.first().map(|l| l.text.as_str());
            label.filter(|l| single.contains(l)).map(|_| format!("There is a block \"{name}\" with this label already in {what}."))
        }
        Nesting::List => None,
    };
    if let Some(detail) = twice {
        diagnostics.push(Diagnostic::error("Block written twice", detail).with_span(Some(nested.span)));
    }
    match known.nesting {
        Nesting::Single => single.push(name),
        Nesting::Map => single.extend(nested.labels.first().map(|l| l.text.as_str())),
        Nesting::List => {}
    }
    check_body(&known.schema, &nested.body, &format!("the block \"{name}\""), nested, false, diagnostics);
}

fn check_dynamic(schema: &Schema, dynamic: &Block, what: &str, diagnostics: &mut Diagnostics) {
    let Some([label]) = crate::decode::labels(dynamic, ["BLOCK"], diagnostics) else { return };
    let Some(known) = schema.block(&label.text) else {
        diagnostics.push(unknown_block(schema, &label.text, what).with_span(Some(label.span)));
        return;
    };
    let attributes: &[&str] = &["for_each", "iterator", "labels"];
    crate::decode::check_shape(
        &dynamic.body,
        &crate::decode::Shape { what: "a \"dynamic\" block", attributes, blocks: &["content"] },
        diagnostics,
    );
    if dynamic.body.attribute("for_each").is_none() {
        missing(&["for_each"], "a \"dynamic\" block", dynamic.span, diagnostics);
    }
    if known.nesting == Nesting::Map && dynamic.body.attribute("labels").is_none() {
        missing(&["labels"], &format!("a \"dynamic\" block for \"{}\"", label.text), dynamic.span, diagnostics);
    }
    let mut contents = dynamic.body.blocks("content");
    match (contents.next(), contents.next()) {
        (Some(content), None) => {
            check_body(&known.schema, &content.body, &format!("the block \"{}\"", label.text), content, false, diagnostics);
        }
        _ => diagnostics.push(
            Diagnostic::error("Wrong number of blocks", "A \"dynamic\" block needs exactly one \"content\" block.")
                .with_span(Some(dynamic.span)),
        ),
    }
}

/// Checks all expressions of a body for what they refer to, and collects that.
pub(crate) fn check_references(
    config: &Config,
    body: &Body,
    place: Place<'_>,
    outer: bool,
    references: &mut Vec<Reference>,
) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    for attribute in &body.attributes {
        let name = attribute.name.as_str();
        // As an alias of a provider it was refused already; a few types have an argument of that name.
        let schema = place.own.and_then(|own| config.schema(own));
        let is_refused = name == "provider" && schema.is_none_or(|s| s.attribute(name).is_none());
        if !(outer && (META.contains(&name) || is_refused)) {
            diagnostics.extend(statics::check(config, &attribute.expr, place, references));
        }
    }
    for block in &body.blocks {
        match block.kind.as_str() {
            "lifecycle" if outer => {}
            "dynamic" => diagnostics.extend(check_dynamic_references(config, block, place, references)),
            _ => diagnostics.extend(check_references(config, &block.body, place, false, references)),
        }
    }
    diagnostics
}

fn check_dynamic_references(config: &Config, dynamic: &Block, place: Place<'_>, references: &mut Vec<Reference>) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let mut bound = place.bound.to_vec();
    bound.extend(iterator(dynamic));
    let inner = Place { bound: &bound, ..place };
    for attribute in &dynamic.body.attributes {
        match attribute.name.as_str() {
            "for_each" => diagnostics.extend(statics::check(config, &attribute.expr, place, references)),
            "labels" => diagnostics.extend(statics::check(config, &attribute.expr, inner, references)),
            _ => {}
        }
    }
    for content in dynamic.body.blocks("content") {
        diagnostics.extend(check_references(config, &content.body, inner, false, references));
    }
    diagnostics
}

/// The name that a `dynamic` block binds in its content.
pub(crate) fn iterator(dynamic: &Block) -> Option<String> {
    match dynamic.body.attribute("iterator").map(|a| &a.expr.bare().kind) {
        Some(ExprKind::Name(name)) => Some(name.clone()),
        _ => dynamic.labels.first().map(|l| l.text.clone()),
    }
}
