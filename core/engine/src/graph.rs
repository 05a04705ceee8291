//! What depends on what. The only user of petgraph. Knows no plan: the graph comes from configuration and state alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use karmaform_model::{Address, ModuleStep, previous_address};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Nothing of its own: all instances of a block. With it, n instances that need n others cost 2n edges.
    Block,
    /// Nothing of its own: all that the instances of a block, or the children of a composite, need.
    Enter,
    /// An instance of a data source.
    Data,
    /// An instance of a resource.
    Resource,
    /// The own record of a composite instance; it comes after its children.
    Composite,
    /// What a composite expanded into.
    Child,
}

/// One node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    pub(crate) address: Address,
    /// Its resource type; of a child not the composite's.
    pub(crate) kind: String,
    /// What it needs by the configuration; evaluated and made before it.
    pub(crate) wanted: Vec<usize>,
    /// What it needed when it was last applied; deleted after it.
    pub(crate) stored: Vec<usize>,
    /// It is in the configuration, or a composite there expands into it.
    pub(crate) configured: bool,
    /// A `removed` block says that it is taken out of the state and left as it is.
    pub(crate) forgotten: bool,
    /// Of a child: its composite. Of what the children enter by: the same.
    pub(crate) composite: Option<usize>,
    /// Of a composite: its children, configured or only in the state.
    pub(crate) children: Vec<usize>,
    /// Of a child that has nothing to do with some of its composite's arguments: what stands for the needs of the others. While it is new, it is
    /// made once these are there.
    pub(crate) near: Option<usize>,
    /// It stands for a block or a module of which it is not known yet how often it stands.
    pub(crate) open: bool,
}

impl Node {
    pub(crate) fn new(role: Role, address: Address, kind: &str, configured: bool) -> Self {
        let (wanted, stored, children) = (Vec::new(), Vec::new(), Vec::new());
        let kind = kind.to_owned();
        Self { role, address, kind, wanted, stored, configured, forgotten: false, composite: None, children, near: None, open: false }
    }

    /// True if it stands for nothing of its own.
    pub(crate) fn is_junction(&self) -> bool {
        matches!(self.role, Role::Block | Role::Enter)
    }
}

/// The dependency graph of a configuration and a state.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Node>,
    /// Junctions of blocks and modules whose instances are not known yet.
    pub(crate) open: Vec<usize>,
    /// Instances by address.
    pub(crate) instances: BTreeMap<Address, usize>,
    /// All nodes, each after what it needs by the configuration.
    pub(crate) order: Vec<usize>,
    /// Where instances of the state were, by their address now.
    pub(crate) moved: BTreeMap<Address, Address>,
}

impl Graph {
    /// The same of a state in which these were moved: where they were, by their address now, as [`crate::relocate()`] says it.
    #[must_use]
    pub fn with_moved(self, moved: BTreeMap<Address, Address>) -> Self {
        Self { moved, ..self }
    }

    /// Where an instance was, or a part of one; `None` if it is where it was.
    pub(crate) fn previous(&self, address: &Address) -> Option<Address> {
        previous_address(&self.moved, address)
    }

    /// The addresses of all instances: configured, made by composites, and only in the state. Sorted.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.instances.keys()
    }

    /// What an instance needs directly by the configuration, junctions resolved. Sorted.
    pub fn dependencies(&self, address: &Address) -> Vec<Address> {
        let mut found = std::collections::BTreeSet::new();
        let mut open: Vec<usize> = self.instances.get(address).map(|n| self.nodes[*n].wanted.clone()).unwrap_or_default();
        let mut seen = vec![false; self.nodes.len()];
        while let Some(n) = open.pop() {
            let node = &self.nodes[n];
            if std::mem::replace(&mut seen[n], true) {
                continue;
            }
            if node.is_junction() {
                open.extend(&node.wanted);
            } else {
                found.insert(node.address.clone());
            }
        }
        found.into_iter().collect()
    }

    /// True if the configuration, or a composite in it, says this instance is to be.
    pub fn is_configured(&self, address: &Address) -> bool {
        self.instances.get(address).is_some_and(|n| self.nodes[*n].configured)
    }

    /// The instances that an address means: one, or all of its block, with what composites made of them.
    pub(crate) fn within<'a>(&'a self, address: &'a Address) -> impl Iterator<Item = (&'a Address, usize)> {
        // In a module without a key those of all its instances are meant, which lie apart.
        let is_near = address.module.is_empty() && !address.is_module();
        let first = if is_near { address.block() } else { first_in(&address.module) };
        let near = self.instances.range(first..).take_while(move |(a, _)| {
            if is_near {
                a.module.is_empty() && a.mode == address.mode && a.kind == address.kind && a.name == address.name
            } else {
                is_around(a, &address.module)
            }
        });
        near.filter(move |(a, _)| a.is_within(address)).map(|(a, n)| (a, *n))
    }

    /// True for what stands for all needs of a child's composite.
    pub(crate) fn is_entrance_of(&self, junction: usize, child: usize) -> bool {
        let (junction, child) = (&self.nodes[junction], &self.nodes[child]);
        junction.role == Role::Enter && junction.composite.is_some() && junction.composite == child.composite
    }

    pub(crate) fn node(&self, address: &Address) -> Option<&Node> {
        self.instances.get(address).map(|n| &self.nodes[*n])
    }
}

/// How many steps of the path of a module say exactly where things sort: up to the first one without a key, which may stand for several.
fn fixed(module: &[ModuleStep]) -> usize {
    module.iter().position(|s| s.key.is_none()).map_or(module.len(), |open| open + 1)
}

/// The address that nothing sorts before of all that the path of a module may mean.
pub(crate) fn first_in(module: &[ModuleStep]) -> Address {
    Address::of_module(module[..fixed(module)].to_vec())
}

/// True for what sorts among what the path of a module may mean.
pub(crate) fn is_around(address: &Address, module: &[ModuleStep]) -> bool {
    let fixed = fixed(module);
    address.module.len() >= fixed
        && address.module.iter().zip(&module[..fixed]).all(|(a, m)| a.name == m.name && (m.key.is_none() || a.key == m.key))
}

/// The groups of nodes that lie on a common cycle, and nodes with an edge to themselves; nothing for an acyclic graph.
/// Kosaraju and not Tarjan: that one recurses, and a chain of 100,000 nodes overflows the stack.
pub(crate) fn components(count: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut loops = vec![false; count];
    let mut digraph: DiGraph<(), (), u32> = DiGraph::with_capacity(count, count);
    for _ in 0..count {
        digraph.add_node(());
    }
    for (a, b) in edges {
        loops[a] |= a == b;
        digraph.add_edge(NodeIndex::new(a), NodeIndex::new(b), ());
    }
    let mut found: Vec<Vec<usize>> = kosaraju_scc(&digraph)
        .into_iter()
        .filter(|members| members.len() > 1 || loops[members[0].index()])
        .map(|members| members.into_iter().map(NodeIndex::index).collect())
        .collect();
    for members in &mut found {
        members.sort_unstable();
    }
    found.sort();
    found
}

/// All nodes, each after what `needs` says it needs; lower numbers first where there is a choice. Nodes on or behind a cycle come last.
pub(crate) fn sequence(nodes: &[Node]) -> Vec<usize> {
    let mut waiting: Vec<usize> = nodes.iter().map(|n| n.wanted.len()).collect();
    let mut dependents = vec![Vec::new(); nodes.len()];
    for (number, node) in nodes.iter().enumerate() {
        for &needed in &node.wanted {
            dependents[needed].push(number);
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> = (0..nodes.len()).filter(|n| waiting[*n] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &next in &dependents[node] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    if order.len() < nodes.len() {
        order.extend((0..nodes.len()).filter(|n| waiting[*n] > 0));
    }
    order
}

/// One closed path within a component, from its lowest node back to it: `[a, b, c]` for a needs b needs c needs a.
pub(crate) fn closed_path(nodes: &[Node], component: &[usize]) -> Vec<usize> {
    let start = component.iter().copied().find(|n| !nodes[*n].is_junction()).unwrap_or(component[0]);
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(node) = open.pop_front() {
        for &next in nodes[node].wanted.iter().filter(|n| component.binary_search(n).is_ok()) {
            if next == start {
                let mut path = vec![node];
                while let Some(&previous) = path.last().filter(|n| **n != start).and_then(|n| came_from.get(n)) {
                    path.push(previous);
                }
                path.reverse();
                return path;
            }
            if let std::collections::btree_map::Entry::Vacant(place) = came_from.entry(next) {
                place.insert(node);
                open.push_back(next);
            }
        }
    }
    component.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(wanted: &[&[usize]]) -> Vec<Node> {
        let node = |(i, w): (usize, &&[usize])| Node {
            wanted: w.to_vec(),
            ..Node::new(Role::Resource, Address::managed("t", &format!("n{i}")), "t", true)
        };
        wanted.iter().enumerate().map(node).collect()
    }

    #[test]
    fn cycles_are_found_whole() {
        let check = |wanted: &[&[usize]], expected: &[&[usize]]| {
            let nodes = nodes(wanted);
            let edges = nodes.iter().enumerate().flat_map(|(a, n)| n.wanted.iter().map(move |b| (a, *b)));
            let paths: Vec<_> = components(nodes.len(), edges).iter().map(|c| closed_path(&nodes, c)).collect();
            assert_eq!(paths, expected, "{wanted:?}");
        };
        check(&[&[1], &[2], &[]], &[]);
        check(&[&[1], &[2], &[0]], &[&[0, 1, 2]]);
        check(&[&[0]], &[&[0]]);
        check(&[&[1], &[0, 2], &[3], &[2]], &[&[0, 1], &[2, 3]]);
    }

    #[test]
    fn a_long_chain_neither_overflows_nor_loses_its_order() {
        let count = 100_000;
        let chain: Vec<Node> = (0..count)
            .map(|i| Node {
                wanted: if i + 1 < count { vec![i + 1] } else { Vec::new() },
                ..Node::new(Role::Resource, Address::managed("t", "n"), "t", true)
            })
            .collect();
        assert!(components(count, (0..count - 1).map(|i| (i, i + 1))).is_empty());
        assert_eq!(sequence(&chain).first(), Some(&(count - 1)));
    }
}
