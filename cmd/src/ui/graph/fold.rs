//! Pictures of many things: what belongs together becomes one node, until it can be read.

use std::collections::{BTreeMap, BTreeSet};

use super::{Node, Picture};
use crate::ui::style::Tone;

/// A picture with no more nodes than can be read.
#[derive(Clone, Debug)]
pub(crate) struct Folded {
    /// It.
    pub(crate) picture: Picture,
    /// What was left out or put together, in a sentence.
    pub(crate) note: Option<&'static str>,
}

impl Picture {
    /// The same with at most `most` nodes: as it is, or a node for each box, or for each block, or only what is marked and what is next to
    /// that. `None`: even that is too much.
    pub(crate) fn folded(self, most: usize) -> Option<Folded> {
        if self.nodes.len() <= most {
            return Some(Folded { picture: self, note: None });
        }
        let boxes = self.merged(|name, node| node.frame.clone().unwrap_or_else(|| name.to_owned()));
        if boxes.nodes.len() <= most {
            return Some(Folded { picture: boxes, note: Some("The parts of each composite are one box here.") });
        }
        let blocks = boxes.merged(|name, node| if node.block.is_empty() { name.to_owned() } else { node.block.clone() });
        if blocks.nodes.len() <= most {
            return Some(Folded { picture: blocks, note: Some("All instances of a block are one box here.") });
        }
        let near = blocks.around_marked();
        let is_readable = (1..=most).contains(&near.nodes.len());
        is_readable
            .then_some(Folded { picture: near, note: Some("Only blocks with something to tell, and those next to them, are drawn.") })
    }

    /// Nodes of one name become one: marked as the worst of them, leading to the first that leads anywhere.
    fn merged(&self, to: impl Fn(&str, &Node) -> String) -> Self {
        let names: BTreeMap<&String, String> = self.nodes.iter().map(|(name, node)| (name, to(name, node))).collect();
        let mut nodes: BTreeMap<String, Node> = BTreeMap::new();
        for (name, node) in &self.nodes {
            let Some(new) = names.get(name) else { continue };
            let merged = nodes.entry(new.clone()).or_insert_with(|| Node { block: node.block.clone(), ..Node::default() });
            if weight(node.tone) > weight(merged.tone) {
                merged.tone = node.tone;
                merged.link.clone_from(&node.link);
            }
            if merged.link.is_none() {
                merged.link.clone_from(&node.link);
            }
        }
        let edges = self.edges.iter().filter_map(|(from, to)| Some((names.get(from)?.clone(), names.get(to)?.clone())));
        Self { nodes, edges: edges.filter(|(from, to)| from != to).collect() }
    }

    fn around_marked(&self) -> Self {
        let is_marked = |name: &str| self.nodes.get(name).is_some_and(|n| n.tone.is_some());
        let edges: BTreeSet<(String, String)> = self.edges.iter().filter(|(a, b)| is_marked(a) || is_marked(b)).cloned().collect();
        let near: BTreeSet<&String> = edges.iter().flat_map(|(a, b)| [a, b]).collect();
        let kept = self.nodes.iter().filter(|(name, _)| is_marked(name) || near.contains(name));
        Self { nodes: kept.map(|(name, node)| (name.clone(), node.clone())).collect(), edges }
    }
}

/// Which mark a node has that stands for several.
fn weight(tone: Option<Tone>) -> u8 {
    match tone {
        None => 0,
        Some(Tone::Plain | Tone::Bold | Tone::Faint) => 1,
        Some(Tone::Read) => 2,
        Some(Tone::Add) => 3,
        Some(Tone::Change) => 4,
        Some(Tone::Remove) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two instances of a composite with two parts each, which need a host each; one part is marked.
    fn picture() -> Picture {
        let mut picture = Picture::default();
        for key in ["a", "b"] {
            let (composite, host) = (format!("c.m[{key}]"), format!("host.h[{key}]"));
            picture.nodes.insert(host.clone(), Node { block: "host.h".into(), ..Node::default() });
            for part in ["x", "y"] {
                let tone = (key == "b" && part == "y").then_some(Tone::Remove);
                let link = tone.map(|_| "r7".to_owned());
                let node = Node { frame: Some(composite.clone()), block: "c.m".into(), tone, link };
                picture.nodes.insert(format!("{composite}/{part}"), node);
                picture.edges.insert((format!("{composite}/{part}"), host.clone()));
            }
        }
        picture.nodes.insert("lonely.l".into(), Node { block: "lonely.l".into(), ..Node::default() });
        picture
    }

    fn names(most: usize) -> Option<Vec<String>> {
        picture().folded(most).map(|f| f.picture.nodes.into_keys().collect())
    }

    #[test]
    fn what_belongs_together_is_folded_step_by_step() {
        assert_eq!(names(7).unwrap().len(), 7);
        assert_eq!(names(6).unwrap(), ["c.m[a]", "c.m[b]", "host.h[a]", "host.h[b]", "lonely.l"]);
        assert_eq!(names(4).unwrap(), ["c.m", "host.h", "lonely.l"]);
        assert_eq!(names(2).unwrap(), ["c.m", "host.h"]);
        assert_eq!(names(1), None);
    }

    #[test]
    fn marks_links_and_edges_survive() {
        let folded = picture().folded(4).unwrap().picture;
        assert_eq!(folded.nodes["c.m"], Node { block: "c.m".into(), tone: Some(Tone::Remove), link: Some("r7".into()), frame: None });
        assert_eq!(folded.edges.into_iter().collect::<Vec<_>>(), [("c.m".to_owned(), "host.h".to_owned())]);
    }
}
