//! `graph`: what depends on what, as DOT or as a picture.

use karmaform_model::{Diagnostic, ResourceEntry};

use crate::app::{App, Ended};
use crate::flags::{PlaceFlags, VariableFlags};
use crate::project::load_directory;
use crate::reading::{current_state, without_missing_variables};
use crate::ui::graph::{LARGEST_PICTURE, Node, Picture, dot, svg};

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Graphviz' language.
    Dot,
    /// A picture.
    Svg,
}

/// Arguments of `graph`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// dot or svg
    #[arg(long, value_name = "FORMAT", default_value = "dot")]
    format: Format,
    /// Each instance by itself, with what composites expand into as far as the state knows it
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    variables: VariableFlags,
}

/// Runs it.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let project = load_directory(app, &args.variables, false)?;
    let wrong = without_missing_variables(&project);
    if wrong.has_errors() {
        return Err(wrong.into());
    }
    let mut picture = Picture::default();
    if args.full {
        let place = PlaceFlags { variables: args.variables.clone(), ..PlaceFlags::default() };
        let state = current_state(app, &place)?.unwrap_or_default();
        for address in project.config.instances().iter().chain(state.resources.keys()) {
            let is_composite = matches!(app.wiring.registry.resource(&address.kind), Some(ResourceEntry::Composite(_)));
            let frame = address.composite().or_else(|| is_composite.then(|| address.clone())).map(|c| c.to_string());
            let block = frame.clone().unwrap_or_else(|| address.block().to_string());
            picture.nodes.insert(address.to_string(), Node { frame, block, ..Node::default() });
        }
        for (address, resource) in &state.resources {
            let known = resource.dependencies.iter().filter(|d| state.resources.contains_key(*d));
            picture.edges.extend(known.map(|d| (address.to_string(), d.to_string())));
        }
    }
    for block in project.config.blocks.values() {
        let instances = block.repetition.keys().into_iter().map(|k| block.address.with_key(k).to_string());
        let sources: Vec<String> = if args.full { instances.collect() } else { vec![block.address.to_string()] };
        for reference in &block.references {
            let target = reference.address.block();
            // What is in a module of several instances, and a whole module, are several blocks.
            let blocks: Vec<_> = match project.config.blocks.get_key_value(&target) {
                Some(one) => vec![one],
                None => project.config.blocks.iter().filter(|(a, _)| a.is_within(&target)).collect(),
            };
            let mut targets: Vec<String> = Vec::new();
            for (target, needed) in blocks {
                match (args.full, &reference.address.key) {
                    (false, _) => targets.push(target.to_string()),
                    (true, Some(key)) => targets.push(target.with_key(Some(key.clone())).to_string()),
                    (true, None) => targets.extend(needed.repetition.keys().into_iter().map(|k| target.with_key(k).to_string())),
                }
            }
            for source in &sources {
                picture.edges.extend(targets.iter().map(|t| (source.clone(), t.clone())));
            }
        }
        if !args.full {
            picture.nodes.insert(block.address.to_string(), Node::default());
        }
    }
    let text = match args.format {
        Format::Dot => dot(&picture),
        Format::Svg if picture.nodes.len() > LARGEST_PICTURE => {
            let detail = format!("The graph has {} nodes; pictures of more than {LARGEST_PICTURE} take too long.", picture.nodes.len());
            return Err(Diagnostic::error("Too large for a picture", detail)
                .with_hint("Use -format=dot and a program made for large graphs.")
                .into());
        }
        Format::Svg => svg(&picture),
    };
    app.output.print(&text);
    Ok(0)
}
