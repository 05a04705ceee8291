//! Builds the graph: nodes from configuration, composites and state, edges from references and stored dependencies.
//! Knows nothing of plans, and asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Config, Evaluator, Repetition, Resolver, ResourceBlock};
use karmaform_model::{Address, Catalog, Composite, Diagnostic, Diagnostics, Expansion, Mode, ResourceEntry, Snapshot, Type, Value};

use crate::cycle;
use crate::graph::{Graph, Node, Role, first_in, is_around, sequence};
use crate::values::unknown_object;

/// The provider that a composite's own record has in the state.
pub(crate) const OWN_PROVIDER: &str = "karmaform";

/// Connects what is configured with what is in the state. Composites are expanded with what is known without looking at anything.
pub fn graph(config: &Config, state: &Snapshot, registry: &Catalog) -> (Graph, Diagnostics) {
    let mut builder = Builder {
        config,
        registry,
        nodes: Vec::new(),
        instances: BTreeMap::new(),
        blocks: BTreeMap::new(),
        open: Vec::new(),
        diagnostics: Diagnostics::new(),
    };
    builder.add_configured();
    builder.add_stored(state);
    builder.add_blocks();
    builder.add_modules(state);
    builder.connect_configured();
    builder.connect_stored(state);
    let Builder { mut nodes, instances, open, mut diagnostics, .. } = builder;
    for node in &mut nodes {
        for list in [&mut node.wanted, &mut node.stored, &mut node.children] {
            list.sort_unstable();
            list.dedup();
        }
        node.forgotten = !node.configured && config.forgets(&node.address);
    }
    diagnostics.extend(cycle::report(&nodes, config));
    let order = sequence(&nodes);
    (Graph { nodes, open, instances, order, moved: BTreeMap::new() }, diagnostics)
}

struct Builder<'a> {
    config: &'a Config,
    registry: &'a Catalog,
    nodes: Vec<Node>,
    instances: BTreeMap<Address, usize>,
    /// Junctions, of blocks that are more than one instance without a key.
    blocks: BTreeMap<Address, usize>,
    /// Those of them whose instances are not known.
    open: Vec<usize>,
    diagnostics: Diagnostics,
}

impl Builder<'_> {
    fn add(&mut self, node: Node) -> usize {
        let number = self.nodes.len();
        if !node.is_junction() {
            self.instances.insert(node.address.clone(), number);
        }
        self.nodes.push(node);
        number
    }

    fn add_configured(&mut self) {
        for block in self.config.blocks.values() {
            let role = match block.address.mode {
                Mode::Data => Role::Data,
                Mode::Managed if self.registry.composite(&block.address.kind).is_some() => Role::Composite,
                Mode::Managed => Role::Resource,
            };
            for key in block.repetition.keys() {
                self.add(Node::new(role, block.address.with_key(key), &block.address.kind, true));
            }
        }
    }

    /// What is only in the state, and composites of which only children are left.
    fn add_stored(&mut self, state: &Snapshot) {
        let resources = state.resources.iter();
        let deposed = state.deposed.iter().map(|((address, _), r)| (address, r));
        for (address, resource) in resources.chain(deposed).filter(|(a, _)| a.mode == Mode::Managed) {
            if self.instances.contains_key(address) {
                continue;
            }
            match address.composite() {
                Some(composite) => {
                    let composite = self.composite(&composite);
                    let child = self.add(Node::new(Role::Child, address.clone(), &resource.resource_type, false));
                    self.adopt(composite, child);
                }
                None => {
                    let own = resource.provider == OWN_PROVIDER || self.registry.composite(&resource.resource_type).is_some();
                    let role = if own { Role::Composite } else { Role::Resource };
                    self.add(Node::new(role, address.clone(), &resource.resource_type, false));
                }
            }
        }
    }

    fn composite(&mut self, address: &Address) -> usize {
        match self.instances.get(address) {
            Some(&number) => number,
            None => self.add(Node::new(Role::Composite, address.clone(), &address.kind, false)),
        }
    }

    fn adopt(&mut self, composite: usize, child: usize) {
        self.nodes[child].composite = Some(composite);
        self.nodes[composite].children.push(child);
    }

    fn add_blocks(&mut self) {
        let mut members: BTreeMap<Address, Vec<usize>> = self.config.blocks.keys().map(|a| (a.clone(), Vec::new())).collect();
        for (address, &number) in self.instances.iter().filter(|(a, _)| !a.is_child()) {
            members.entry(address.block()).or_default().push(number);
        }
        for (address, members) in members {
            let open = self.config.block(&address).is_some_and(|b| b.repetition == Repetition::Open);
            if !open && matches!(members[..], [only] if self.nodes[only].address.key.is_none()) {
                continue;
            }
            let kind = address.kind.clone();
            let junction = self.add(Node::new(Role::Block, address.clone(), &kind, true));
            self.nodes[junction].wanted = members.iter().copied().filter(|m| self.nodes[*m].configured).collect();
            self.nodes[junction].stored = members;
            self.nodes[junction].open = open;
            self.open.extend(open.then_some(junction));
            self.blocks.insert(address, junction);
        }
        for address in self.config.open_modules.keys() {
            let junction = self.add(Node { open: true, ..Node::new(Role::Enter, address.clone(), "", true) });
            self.open.push(junction);
            self.blocks.insert(address.clone(), junction);
        }
    }

    /// Junctions for what is referred to in all instances of a module, and for whole modules.
    fn add_modules(&mut self, state: &Snapshot) {
        let configured = self.config.blocks.values().flat_map(|b| b.references.iter().map(|r| &r.address));
        let outside: BTreeSet<&Address> = configured.filter(|a| !a.module.is_empty()).collect();
        let stored = state.resources.values().chain(state.deposed.values()).flat_map(|r| &r.dependencies);
        let stored: BTreeSet<&Address> = stored.filter(|a| !a.module.is_empty()).collect();
        let open: Vec<Address> = outside.union(&stored).filter(|a| self.target(a).is_none()).map(|a| (*a).clone()).collect();
        for address in open {
            self.join(&address);
        }
    }

    /// The node that stands for an address in a module of several instances, or for a whole module.
    fn join(&mut self, address: &Address) -> Option<usize> {
        if let Some(there) = self.target(address) {
            return Some(there);
        }
        let open: Vec<usize> = self.open.iter().copied().filter(|n| self.nodes[*n].address.is_within(address)).collect();
        let near = self.instances.range(first_in(&address.module)..).take_while(|(a, _)| is_around(a, &address.module));
        if !address.is_module() {
            let members: Vec<usize> = near.filter(|(a, _)| !a.is_child() && a.is_within(address)).map(|(_, n)| *n).collect();
            if members.is_empty() && open.is_empty() {
                return None;
            }
            let junction = self.add(Node::new(Role::Block, address.clone(), &address.kind, true));
            self.nodes[junction].wanted = members.iter().copied().filter(|m| self.nodes[*m].configured).chain(open).collect();
            self.nodes[junction].stored = members;
            self.blocks.insert(address.clone(), junction);
            return Some(junction);
        }
        // Of blocks and not of instances, so that the state notes few names.
        let mut blocks: BTreeSet<Address> = BTreeSet::new();
        for (near, _) in near.filter(|(a, _)| a.is_within(address)) {
            let mut block = near.block();
            for (step, wanted) in block.module.iter_mut().zip(&address.module) {
                step.key.clone_from(&wanted.key);
            }
            blocks.insert(block);
        }
        let parts: Vec<usize> = blocks.iter().filter_map(|b| self.join(b)).collect();
        let junction = self.add(Node::new(Role::Enter, address.clone(), "", true));
        self.nodes[junction].wanted = parts.iter().copied().chain(open).collect();
        self.nodes[junction].stored = parts;
        self.blocks.insert(address.clone(), junction);
        Some(junction)
    }

    /// The node that stands for an address in a reference: one instance, or all of a block.
    fn target(&self, address: &Address) -> Option<usize> {
        if address.key.is_none()
            && !address.is_child()
            && let Some(&junction) = self.blocks.get(address)
        {
            return Some(junction);
        }
        self.instances.get(address).or_else(|| self.blocks.get(&address.block())).copied()
    }

    fn needs(&self, block: &ResourceBlock) -> Vec<usize> {
        let references = block.references.iter().chain(&block.lifecycle.replace_triggered_by);
        let found: BTreeSet<usize> = references.filter_map(|r| self.target(&r.address)).collect();
        found.into_iter().collect()
    }

    fn connect_configured(&mut self) {
        for block in self.config.blocks.values() {
            let instances: Vec<usize> =
                block.repetition.keys().into_iter().filter_map(|k| self.instances.get(&block.address.with_key(k)).copied()).collect();
            let mut needs = self.needs(block);
            if let (Repetition::Open, Some(&junction)) = (&block.repetition, self.blocks.get(&block.address)) {
                self.nodes[junction].wanted.extend(&needs);
            }
            if instances.first().is_some_and(|i| self.nodes[*i].role == Role::Composite) {
                for composite in instances {
                    self.expand(composite, &needs);
                }
                continue;
            }
            if instances.len() > 1 && needs.len() > 1 {
                let enter = self.add(Node::new(Role::Enter, block.address.clone(), &block.address.kind, true));
                self.nodes[enter].wanted = needs;
                needs = vec![enter];
            }
            for instance in instances {
                self.nodes[instance].wanted.extend(&needs);
            }
        }
        for (address, references) in &self.config.open_modules {
            let needs: Vec<usize> = references.iter().filter_map(|r| self.target(&r.address)).collect();
            if let Some(&junction) = self.blocks.get(address) {
                self.nodes[junction].wanted.extend(needs);
            }
        }
    }

    fn expand(&mut self, composite: usize, needs: &[usize]) {
        let address = self.nodes[composite].address.clone();
        let mut enter = Node::new(Role::Enter, address.clone(), &address.kind, true);
        enter.wanted = needs.to_vec();
        enter.composite = Some(composite);
        let enter = self.add(enter);
        self.nodes[composite].wanted.push(enter);
        let Some(ty) = self.registry.composite(&address.kind).cloned() else { return };
        let nothing = NothingKnown(self.registry);
        let (arguments, problems) = Evaluator::new(self.config, &nothing).arguments(&address);
        // The pass that plans evaluates again and reports; without arguments there is nothing to expand.
        if problems.has_errors() {
            self.diagnostics.extend(problems);
            return;
        }
        let span = self.config.block(&address).map(|b| b.span);
        match ty.expand(&address, &arguments) {
            Ok(expansion) => self.add_children(composite, enter, &*ty, &expansion),
            Err(errors) => self.diagnostics.extend(errors.into_iter().map(|d| d.at(&address).with_span(span))),
        }
    }

    /// What stands for the needs of a composite but for those of some of its arguments.
    fn near(&mut self, composite: &Address, without: &[&str]) -> usize {
        let references = self.config.references_without(composite, without);
        let mut near = Node::new(Role::Enter, composite.clone(), &composite.kind, true);
        near.wanted = references.iter().filter_map(|r| self.target(&r.address)).collect();
        self.add(near)
    }

    fn add_children(&mut self, composite: usize, enter: usize, ty: &dyn Composite, expansion: &Expansion) {
        let address = self.nodes[composite].address.clone();
        let bug = |what: String| {
            Diagnostic::error("Composite expands wrongly", format!("The composite \"{}\" {what}. This is a bug.", ty.name())).at(&address)
        };
        let (mut siblings, mut near) = (BTreeMap::new(), BTreeMap::new());
        for child in &expansion.children {
            let child_address = address.with_child(&child.path);
            if child.path.is_empty() || siblings.contains_key(&child.path) {
                self.diagnostics.push(bug(format!("names the child \"{child_address}\" twice or not at all")));
                continue;
            }
            if !matches!(self.registry.resource(&child.resource_type), Some(ResourceEntry::Type(..))) {
                self.diagnostics.push(bug(format!("wants a \"{}\", which no provider has", child.resource_type)));
                continue;
            }
            let number = match self.instances.get(&child_address) {
                Some(&stored) => stored,
                None => {
                    let number = self.add(Node::new(Role::Child, child_address, &child.resource_type, true));
                    self.adopt(composite, number);
                    number
                }
            };
            self.nodes[number].configured = true;
            self.nodes[number].kind.clone_from(&child.resource_type);
            self.nodes[number].wanted.push(enter);
            self.nodes[composite].wanted.push(number);
            if !child.apart.is_empty() {
                let near = *near.entry(child.apart).or_insert_with(|| self.near(&address, child.apart));
                self.nodes[number].wanted.push(near);
                self.nodes[number].near = Some(near);
            }
            siblings.insert(child.path.clone(), number);
        }
        for child in &expansion.children {
            let Some(&number) = siblings.get(&child.path) else { continue };
            let mut needed = child.after.clone();
            child.arguments.values().for_each(|a| a.references(&mut needed));
            for path in needed {
                match siblings.get(&path) {
                    Some(&sibling) => self.nodes[number].wanted.push(sibling),
                    None => {
                        self.diagnostics.push(bug(format!("refers to a child \"{}\" that it does not make", address.with_child(&path))))
                    }
                }
            }
        }
        let mut needed = Vec::new();
        expansion.outputs.values().for_each(|a| a.references(&mut needed));
        for path in needed.iter().filter(|p| !siblings.contains_key(*p)) {
            self.diagnostics.push(bug(format!("refers to a child \"{}\" that it does not make", address.with_child(path))));
        }
    }

    fn connect_stored(&mut self, state: &Snapshot) {
        let deposed = state.deposed.iter().map(|((address, _), r)| (address, r));
        for (address, resource) in state.resources.iter().chain(deposed) {
            let Some(&number) = self.instances.get(address) else { continue };
            let needed: Vec<usize> = resource.dependencies.iter().filter_map(|d| self.target(d)).filter(|d| *d != number).collect();
            self.nodes[number].stored.extend(needed);
        }
    }
}

/// Nothing is known of any instance but that it is there, and what attributes it has.
struct NothingKnown<'a>(&'a Catalog);

impl Resolver for NothingKnown<'_> {
    fn instance(&self, address: &Address) -> Value {
        let schema = match address.mode {
            Mode::Data => self.0.data_source(&address.kind).map(|d| d.schema),
            Mode::Managed => self.0.resource(&address.kind).map(|r| r.schema()),
        };
        schema.map_or_else(|| Value::unknown(Type::Any), |s| unknown_object(s).into())
    }
}
