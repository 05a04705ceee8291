//! A graph as DOT, or as an SVG picture. Knows nodes and edges, not what they mean.

use std::collections::{BTreeMap, BTreeSet};

use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;

/// Larger pictures take too long to lay out, and nobody can read them.
pub(crate) const LARGEST_PICTURE: usize = 300;

/// What to draw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// Names of the nodes, with the box they stand in, if any.
    pub(crate) nodes: BTreeMap<String, Option<String>>,
    /// From what needs to what is needed.
    pub(crate) edges: BTreeSet<(String, String)>,
}

/// Graphviz' language.
pub(crate) fn dot(picture: &Picture) -> String {
    let mut out = String::from("digraph G {\n  rankdir = \"RL\";\n  node [shape = rect, fontname = \"sans-serif\"];\n");
    let mut boxes: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for (name, outer) in &picture.nodes {
        match outer {
            Some(outer) => boxes.entry(outer).or_default().push(name),
            None => out.push_str(&format!("  {0} [label={0}];\n", quoted(name))),
        }
    }
    for (outer, names) in boxes {
        out.push_str(&format!("  subgraph {} {{\n    label = {};\n", quoted(&format!("cluster_{outer}")), quoted(outer)));
        for name in names {
            let label = name.strip_prefix(outer.as_str()).and_then(|n| n.strip_prefix('/')).unwrap_or(name);
            out.push_str(&format!("    {} [label={}];\n", quoted(name), quoted(label)));
        }
        out.push_str("  }\n");
    }
    for (from, to) in &picture.edges {
        out.push_str(&format!("  {} -> {};\n", quoted(from), quoted(to)));
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A picture, laid out here; what is needed stands to the left of what needs it.
pub(crate) fn svg(picture: &Picture) -> String {
    let mut graph = VisualGraph::new(Orientation::LeftToRight);
    let mut handles = BTreeMap::new();
    for name in picture.nodes.keys() {
        let fill = if name.starts_with("data.") { "lightyellow" } else { "aliceblue" };
        let look = StyleAttr::new(Color::fast("steelblue"), 1, Some(Color::fast(fill)), 6, 14);
        #[allow(clippy::cast_precision_loss)]
        let size = Point::new(name.chars().count() as f64 * 9.0 + 24.0, 36.0);
        let element = Element::create(ShapeKind::new_box(name), look, Orientation::LeftToRight, size);
        handles.insert(name, graph.add_node(element));
    }
    for (from, to) in &picture.edges {
        if let (Some(from), Some(to)) = (handles.get(from), handles.get(to)) {
            graph.add_edge(Arrow::simple(""), *to, *from);
        }
    }
    let mut writer = SVGWriter::new();
    graph.do_it(false, false, false, &mut writer);
    let mut text = writer.finalize();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        let node = |n: &str, b: Option<&str>| (n.to_owned(), b.map(str::to_owned));
        Picture {
            nodes: [node("a.b", None), node("data.x.y[\"k\"]", None), node("c.m/ca", Some("c.m"))].into(),
            edges: [("a.b".to_owned(), "data.x.y[\"k\"]".to_owned())].into(),
        }
    }

    #[test]
    fn dot_quotes_keys_and_draws_boxes() {
        assert_eq!(
            dot(&picture()),
            "digraph G {\n  rankdir = \"RL\";\n  node [shape = rect, fontname = \"sans-serif\"];\n  \"a.b\" [label=\"a.b\"];\n  \
             \"data.x.y[\\\"k\\\"]\" [label=\"data.x.y[\\\"k\\\"]\"];\n  subgraph \"cluster_c.m\" {\n    label = \"c.m\";\n    \
             \"c.m/ca\" [label=\"ca\"];\n  }\n  \"a.b\" -> \"data.x.y[\\\"k\\\"]\";\n}\n"
        );
    }

    #[test]
    fn svg_holds_every_node() {
        let text = svg(&picture());
        assert!(text.contains("<svg") && text.contains("a.b") && text.contains("c.m/ca"), "{text}");
    }
}
