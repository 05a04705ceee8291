//! `removed` blocks: what is not configured any more, and whether it is destroyed or let go. Knows no state: whether there is anything to
//! let go is seen when planning.

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Mode, Span};

use crate::config::Config;
use crate::decode::{self, Shape, check_shape, literal_bool};
use crate::load::unknown_type;
use crate::references::{self, KeyUse, Target};
use crate::syntax::{Block, Expr, ExprKind, Step, StepKind};

/// A `removed` block, as in Terraform 1.7.
#[derive(Clone, Debug, PartialEq)]
pub struct Removed {
    /// What was made is destroyed, as if the block were not there; otherwise it is left as it is and taken out of the state.
    pub destroy: bool,
    /// Where its header stands.
    pub span: Span,
}

/// All `removed` blocks, by the address of the resource or module without key. Resources are known by now.
pub(crate) fn read(config: &Config, blocks: &[Block], diagnostics: &mut Diagnostics) -> BTreeMap<Address, Removed> {
    let mut all: BTreeMap<Address, Removed> = BTreeMap::new();
    for block in blocks {
        decode::labels(block, [], diagnostics);
        check_shape(&block.body, &Shape { what: "a \"removed\" block", attributes: &["from"], blocks: &["lifecycle"] }, diagnostics);
        let removed = Removed { destroy: destroy(block, diagnostics), span: block.span };
        let Some(attribute) = block.body.attribute("from") else {
            let error = Diagnostic::error("Missing argument", "A \"removed\" block needs the argument \"from\", the resource it is about.");
            diagnostics.push(error.with_span(Some(block.span)).with_hint("Write from = TYPE.NAME."));
            continue;
        };
        let expr = &attribute.expr;
        let address = match resource(config, expr) {
            Ok(address) => address,
            Err(error) => {
                diagnostics.extend(error.map(|e| e.with_span(Some(expr.span))));
                continue;
            }
        };
        if let Some(first) = all.get(&address) {
            let error = Diagnostic::error("Declared twice", format!("There is a \"removed\" block for {address} already."));
            diagnostics.push(error.with_span(Some(block.span)).with_label(first.span, "the first one").with_hint("Delete one of the two."));
            continue;
        }
        if let Some(there) = config.blocks.get(&address) {
            diagnostics.push(still_there(&address, expr.span, there.span));
        }
        all.insert(address, removed);
    }
    all
}

/// What is said to be removed and stands there still.
pub(crate) fn still_there(address: &Address, span: Span, there: Span) -> Diagnostic {
    let word = if address.is_module() { "module" } else { "resource" };
    let detail = format!("The block says that {address} is not configured any more, but it is.");
    Diagnostic::error(format!("Removed {word} still exists"), detail)
        .at(address)
        .with_span(Some(span))
        .with_label(there, "it stands here")
        .with_hint(format!("Delete the {word} block to stop managing what it made, or this block to go on with it."))
}

/// What the `lifecycle` block says: where it says nothing, what was made is destroyed.
fn destroy(block: &Block, diagnostics: &mut Diagnostics) -> bool {
    let mut lifecycles = block.body.blocks("lifecycle");
    let Some(lifecycle) = lifecycles.next() else { return true };
    for second in lifecycles {
        diagnostics.push(decode::second("a \"lifecycle\" block", second.span, lifecycle.span));
    }
    decode::labels(lifecycle, [], diagnostics);
    let what = "the \"lifecycle\" block of a \"removed\" block";
    check_shape(&lifecycle.body, &Shape { what, attributes: &["destroy"], blocks: &[] }, diagnostics);
    literal_bool(&lifecycle.body, "destroy", diagnostics).unwrap_or(true)
}

/// The resource that `from` names.
///
/// # Errors
/// What is wrong with it; nothing if that was reported already.
fn resource(config: &Config, expr: &Expr) -> Result<Address, Option<Diagnostic>> {
    let wrong = |hint: String| {
        let detail = "\"from\" takes the address of a resource that was configured before, without quotes.";
        Diagnostic::error("Invalid from", detail).with_hint(hint)
    };
    let (name, steps) = match &expr.bare().kind {
        ExprKind::Wrong => return Err(None),
        ExprKind::Traversal(root, steps) => match &root.kind {
            ExprKind::Name(name) => (name, steps),
            _ => return Err(Some(wrong("Write from = TYPE.NAME.".to_owned()))),
        },
        // `etcd_cluster.main/member["a"]`: a part of a composite reads as a division.
        ExprKind::Binary(..) => return Err(Some(wrong("Write from = TYPE.NAME; a composite goes with all its parts.".to_owned()))),
        ExprKind::Literal(value) => {
            let meant = value.as_str().and_then(|text| text.parse::<Address>().ok()).filter(|a| a.mode == Mode::Managed);
            let name = meant.map_or_else(|| "TYPE.NAME".to_owned(), |a| a.block().to_string());
            return Err(Some(wrong(format!("Write from = {name}."))));
        }
        _ => return Err(Some(wrong("Write from = TYPE.NAME.".to_owned()))),
    };
    if name == "module" {
        return in_module(config, steps);
    }
    let Some(Target::Block { address, key, used }) = references::target(name, steps) else {
        return Err(Some(wrong("Write from = TYPE.NAME.".to_owned())));
    };
    if address.mode == Mode::Data {
        return Err(Some(data()));
    }
    if key != KeyUse::None {
        let detail = "\"from\" is about a resource with all its instances, and takes no key.";
        return Err(Some(Diagnostic::error("Key in a removed block", detail).with_hint(format!("Write from = {address}."))));
    }
    if steps.len() > used {
        return Err(Some(wrong(format!("Write from = {address}."))));
    }
    match config.registry.resource(&address.kind) {
        Some(_) => Ok(address),
        None => Err(Some(unknown_type(&config.registry, &address))),
    }
}

/// The module, or the resource in a module, that steps after `module` name.
fn in_module(config: &Config, steps: &[Step]) -> Result<Address, Option<Diagnostic>> {
    let mut text = "module".to_owned();
    for step in steps {
        match &step.kind {
            StepKind::Attribute(name) => text += &format!(".{name}"),
            StepKind::LegacyIndex(_) | StepKind::Index(_) => {
                let detail = "\"from\" is about a resource or module with all its instances, and takes no key.";
                return Err(Some(Diagnostic::error("Key in a removed block", detail).with_hint("Write it without what is in brackets.")));
            }
            StepKind::AttributeSplat | StepKind::FullSplat => text += "*",
        }
    }
    match text.parse::<Address>() {
        Ok(address) if address.mode == Mode::Data => Err(Some(data())),
        Ok(address) if address.is_module() || config.registry.resource(&address.kind).is_some() => Ok(address),
        Ok(address) => Err(Some(unknown_type(&config.registry, &address))),
        Err(_) => {
            let detail = "\"from\" takes the address of a resource or module that was configured before, without quotes.";
            Err(Some(Diagnostic::error("Invalid from", detail).with_hint("Write from = module.NAME or from = module.NAME.TYPE.NAME.")))
        }
    }
}

fn data() -> Diagnostic {
    Diagnostic::error("Data source in a removed block", "A data source is only read; there is nothing to destroy or to keep.")
        .with_hint("Delete this block: it is enough that the data block is gone.")
}
