//! A graph as DOT, or as an SVG picture. Knows nodes and edges, not what they mean.

mod canvas;
mod fold;

use std::collections::{BTreeMap, BTreeSet};

use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::style::Tone;
use canvas::Canvas;

/// Larger pictures take too long to lay out, and nobody can read them.
pub(crate) const LARGEST_PICTURE: usize = 300;

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// The box it stands in, if any.
    pub(crate) frame: Option<String>,
    /// The block that it was written as, for pictures of many.
    pub(crate) block: String,
    /// It is marked: what about it is to be seen at a glance.
    pub(crate) tone: Option<Tone>,
    /// Where a click leads: the part of an address behind `#`.
    pub(crate) link: Option<String>,
}

/// What to draw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// By name.
    pub(crate) nodes: BTreeMap<String, Node>,
    /// From what needs to what is needed.
    pub(crate) edges: BTreeSet<(String, String)>,
}

/// Graphviz' language.
pub(crate) fn dot(picture: &Picture) -> String {
    let mut out = String::from("digraph G {\n  rankdir = \"RL\";\n  node [shape = rect, fontname = \"sans-serif\"];\n");
    let mut boxes: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for (name, node) in &picture.nodes {
        match &node.frame {
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

/// A picture, laid out here; what is needed stands to the left of what needs it. Light or dark as the reader's screen is.
pub(crate) fn svg(picture: &Picture) -> String {
    let mut graph = VisualGraph::new(Orientation::LeftToRight);
    let mut handles = BTreeMap::new();
    for (index, name) in picture.nodes.keys().enumerate() {
        // Colours are the canvas' business, which knows the node by this number.
        let look = StyleAttr::new(Color::fast("black"), 1, None, 6, 14);
        #[allow(clippy::cast_precision_loss)]
        let size = Point::new(name.chars().count() as f64 * 8.0 + 20.0, 30.0);
        let element = Element::create_with_properties(ShapeKind::new_box(name), look, Orientation::LeftToRight, size, index.to_string());
        handles.insert(name, graph.add_node(element));
    }
    for (from, to) in &picture.edges {
        if let (Some(from), Some(to)) = (handles.get(from), handles.get(to)) {
            graph.add_edge(Arrow::simple(""), *to, *from);
        }
    }
    let mut canvas = Canvas::new(picture);
    graph.do_it(false, false, false, &mut canvas);
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        let node = |n: &str, b: Option<&str>| (n.to_owned(), Node { frame: b.map(str::to_owned), ..Node::default() });
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
    fn svg_holds_every_node_and_what_is_marked_is_seen() {
        let mut picture = picture();
        picture.nodes.insert("a.b".into(), Node { tone: Some(Tone::Remove), link: Some("r1".into()), ..Node::default() });
        let text = svg(&picture);
        assert!(text.contains("<svg") && text.contains("c.m/ca") && text.contains("data.x.y[&quot;k&quot;]"), "{text}");
        assert!(text.contains("<a href=\"#r1\"><g class=\"n remove\">"), "{text}");
        assert_eq!((text.matches("class=\"n").count(), text.matches("class=\"l\"").count()), (3, 1), "{text}");
    }
}
