//! Reports cycles of the configuration, each whole, so that the reader sees which reference to cut.

use karmaform_lang::Config;
use karmaform_model::{Diagnostic, Diagnostics};

use crate::graph::{Node, closed_path, components};

/// The summary of those errors.
pub const DEPENDENCY_CYCLE: &str = "Dependency cycle";

/// One error for each group of nodes that need each other.
pub(crate) fn report(nodes: &[Node], config: &Config) -> Diagnostics {
    let edges = nodes.iter().enumerate().flat_map(|(a, node)| node.wanted.iter().map(move |b| (a, *b)));
    components(nodes.len(), edges).iter().map(|component| error(nodes, &closed_path(nodes, component), config)).collect()
}

fn error(nodes: &[Node], path: &[usize], config: &Config) -> Diagnostic {
    let members: Vec<&Node> = path.iter().map(|n| &nodes[*n]).filter(|n| !n.is_junction()).collect();
    let mut names: Vec<String> = members.iter().map(|n| n.address.to_string()).collect();
    names.extend(names.first().cloned());
    let mut error = Diagnostic::error(
        DEPENDENCY_CYCLE,
        format!("These resources need each other, so none of them can come first: {}.", names.join(" needs ")),
    )
    .with_hint("Cut one of these references, or the depends_on behind it.");
    for (i, from) in members.iter().enumerate() {
        let to = members[(i + 1) % members.len()];
        let reference = config.block(&from.address).and_then(|b| b.references.iter().find(|r| to.address.is_within(&r.address.block())));
        if let Some(reference) = reference {
            error = if error.span.is_none() {
                error.at(&from.address).with_span(Some(reference.span))
            } else {
                error.with_label(reference.span, format!("{} needs {}", from.address, to.address))
            };
        }
    }
    error
}
