//! One pass over the graph: evaluates the arguments of every instance with what is known so far, decides its change, and notes what
//! could be asked next. Pure. Looking and planning share it, so that what was asked is what is planned with.

mod data;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use karmaform_lang::{Evaluator, Resolver};
use karmaform_model::{
    Address, Checked, Diagnostic, Diagnostics, Expansion, LegHint, Mode, ModeOfPlan, Object, PlanContext, ResourceEntry, Type, Value,
};

use crate::before::Before;
use crate::decide::Decision;
use crate::graph::{Graph, Role};
use crate::observed::Observed;
use crate::options::{Inputs, Options};
use crate::question::{Look, Read, Ways};
use crate::select::{Selection, selection};
use crate::values::{remembered, unknown_object};

/// What a pass found out about one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visit {
    /// Its arguments, ready to be compared.
    pub(crate) wanted: Option<Object>,
    pub(crate) before: Before,
    /// What happens to it; nothing if it is not there and not wanted, or could not be planned.
    pub(crate) decision: Option<Decision>,
    /// Of a composite: what it expands into.
    pub(crate) expansion: Option<Expansion>,
    /// Of a composite: what it leaves for a later plan.
    pub(crate) rest: Option<String>,
    /// Of a composite that leaves something: what its parts are told with.
    pub(crate) hint: Option<LegHint>,
    pub(crate) flags: Flags,
    /// What its conditions said, where one does not hold and so nothing is known of it any more.
    pub(crate) judged: Option<Checked>,
}

/// What a node hands on to those that need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    /// It changes, or is read, during apply.
    pub(crate) pending: bool,
    /// No later answer can change what is known of it.
    pub(crate) settled: bool,
    /// It, or something that it needs, could not be looked at.
    pub(crate) failed: bool,
    /// It, or something that it needs, is made during apply.
    pub(crate) unready: bool,
}

impl Default for Flags {
    fn default() -> Self {
        Self { pending: false, settled: true, failed: false, unready: false }
    }
}

/// The values of instances as the pass learns them.
pub(crate) struct Values<'a> {
    graph: &'a Graph,
    known: RefCell<Vec<Option<Value>>>,
    /// Nodes that only the configuration has, while this matters.
    absent: RefCell<BTreeSet<usize>>,
    /// What only a lost state knew is no unknown but a hole, which can be found again in what is made of it.
    pub(crate) has_holes: bool,
}

impl Resolver for Values<'_> {
    fn instance(&self, address: &Address) -> Value {
        let node = self.graph.instances.get(address);
        node.and_then(|n| self.known.borrow()[*n].clone()).unwrap_or_else(|| Value::unknown(Type::Any))
    }

    fn is_there(&self, address: &Address) -> bool {
        let absent = self.absent.borrow();
        absent.is_empty() || self.graph.instances.get(address).is_none_or(|n| !absent.contains(n))
    }
}

impl Values<'_> {
    pub(crate) fn set(&self, node: usize, value: Value) {
        self.known.borrow_mut()[node] = Some(value);
    }

    /// From now on blocks are made of all instances but these.
    pub(crate) fn leave(&self, absent: BTreeSet<usize>) {
        *self.absent.borrow_mut() = absent;
    }

    /// One attribute of an instance.
    pub(crate) fn attribute(&self, address: &Address, name: &str) -> Value {
        let known = self.known.borrow();
        let value = self.graph.instances.get(address).and_then(|n| known[*n].as_ref());
        let found = value.and_then(|v| Some(v.get(name)?.clone().marked(v.marks())));
        found.unwrap_or_else(|| Value::unknown(Type::Any))
    }
}

/// Nodes that come to be others though nothing is wanted of them that they are not, with the attributes that will be.
pub(crate) type Renewals = BTreeMap<usize, &'static [&'static str]>;

/// A pass, while it goes and when it is done.
pub(crate) struct Pass<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) inputs: Inputs<'a>,
    pub(crate) observed: &'a Observed,
    pub(crate) options: &'a Options,
    pub(crate) context: PlanContext,
    pub(crate) selected: Vec<bool>,
    /// By node: whether it would be selected, but is put off.
    pub(crate) deferred: Vec<bool>,
    /// By node: whether it can't be planned, and what needs it neither. Nothing is until the plan is made.
    pub(crate) lost: Vec<bool>,
    pub(crate) entries: Vec<Option<ResourceEntry<'a>>>,
    pub(crate) values: &'a Values<'a>,
    pub(crate) visits: Vec<Visit>,
    pub(crate) looks: Vec<Look>,
    pub(crate) reads: Vec<Read>,
    pub(crate) ways: Ways,
    pub(crate) renewals: Renewals,
    pub(crate) diagnostics: Diagnostics,
}

impl Pass<'_> {
    /// True if nothing is left out, by what was asked for or because it is not known yet.
    pub(crate) fn is_whole(&self) -> bool {
        !self.options.is_partial() && !self.deferred.contains(&true)
    }

    /// True if something can't be planned.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost.contains(&true)
    }
}

/// What a pass learned, apart from what it was given.
#[derive(Debug)]
pub(crate) struct Learned {
    known: Vec<Option<Value>>,
    visits: Vec<Visit>,
    ways: Ways,
    diagnostics: Diagnostics,
}

/// A place for the values of a pass; it outlives the pass, so that outputs can be evaluated after it.
pub(crate) fn values(graph: &Graph) -> Values<'_> {
    Values { graph, known: RefCell::new(vec![None; graph.nodes.len()]), absent: RefCell::default(), has_holes: false }
}

/// The same with holes. Of a pass with these nothing is of use but what is wanted.
pub(crate) fn values_with_holes(graph: &Graph) -> Values<'_> {
    Values { has_holes: true, ..values(graph) }
}

/// Goes over the whole graph once.
pub(crate) fn walk<'a>(
    graph: &'a Graph,
    inputs: Inputs<'a>,
    observed: &'a Observed,
    options: &'a Options,
    values: &'a Values<'a>,
    evaluator: &Evaluator<'_>,
) -> Pass<'a> {
    walk_renewed(graph, inputs, observed, options, values, evaluator, Renewals::new())
}

/// The same with nodes that come to be others.
pub(crate) fn walk_renewed<'a>(
    graph: &'a Graph,
    inputs: Inputs<'a>,
    observed: &'a Observed,
    options: &'a Options,
    values: &'a Values<'a>,
    evaluator: &Evaluator<'_>,
    renewals: Renewals,
) -> Pass<'a> {
    let mut pass = Pass { renewals, ..begun(graph, inputs, observed, options, values) };
    for &number in &graph.order {
        pass.visit(number, evaluator);
    }
    pass.visit_orphans();
    pass
}

/// The same from what another pass learned with the same inputs and options, if one is left of the observation.
pub(crate) fn walk_again<'a>(
    graph: &'a Graph,
    inputs: Inputs<'a>,
    observed: &'a Observed,
    options: &'a Options,
    values: &'a Values<'a>,
    evaluator: &Evaluator<'_>,
) -> Pass<'a> {
    let Some(learned) = observed.last.take() else { return walk(graph, inputs, observed, options, values, evaluator) };
    let Learned { known, visits, ways, diagnostics } = *learned;
    *values.known.borrow_mut() = known;
    Pass { visits, ways, diagnostics, ..begun(graph, inputs, observed, options, values) }
}

fn begun<'a>(graph: &'a Graph, inputs: Inputs<'a>, observed: &'a Observed, options: &'a Options, values: &'a Values<'a>) -> Pass<'a> {
    let Selection { selected, deferred } = selection(graph, options);
    Pass {
        graph,
        inputs,
        observed,
        options,
        context: PlanContext { now: options.now },
        selected,
        deferred,
        lost: vec![false; graph.nodes.len()],
        entries: entries(graph, inputs),
        values,
        visits: vec![Visit::default(); graph.nodes.len()],
        looks: Vec::new(),
        reads: Vec::new(),
        ways: Ways::new(),
        renewals: Renewals::new(),
        diagnostics: Diagnostics::new(),
    }
}

fn entries<'a>(graph: &Graph, inputs: Inputs<'a>) -> Vec<Option<ResourceEntry<'a>>> {
    let mut known: BTreeMap<&str, Option<ResourceEntry<'a>>> = BTreeMap::new();
    let mut entries = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let managed = node.address.mode == Mode::Managed;
        let of = if managed { *known.entry(&node.kind).or_insert_with(|| inputs.registry.resource(&node.kind)) } else { None };
        entries.push(inputs.registry.at(&node.address, of));
    }
    entries
}

impl Pass<'_> {
    /// What it learned, for another pass.
    pub(crate) fn learned(self) -> Learned {
        let known = std::mem::take(&mut *self.values.known.borrow_mut());
        Learned { known, visits: self.visits, ways: self.ways, diagnostics: self.diagnostics }
    }

    fn visit(&mut self, number: usize, evaluator: &Evaluator<'_>) {
        let graph = self.graph;
        let node = &graph.nodes[number];
        let inherited = self.inherited(number);
        if node.is_junction() {
            self.visits[number].flags = inherited;
            let is_normal = self.options.mode == ModeOfPlan::Normal;
            if node.open {
                // What it will be is not even begun to be known.
                self.visits[number].flags = Flags { pending: is_normal, unready: true, ..inherited };
            }
            if let Some(composite) = node.composite
                && self.selected[number]
            {
                self.enter(composite, evaluator);
            }
        } else if !self.selected[number] {
            self.leave_out(number);
            if self.deferred[number] && node.configured && node.role != Role::Child {
                // What is wrong with it whatever comes is wrong now, and not only when half of all is done.
                drop(self.arguments(&node.address, evaluator));
            }
        } else if node.configured {
            match node.role {
                Role::Data => self.visit_data(number, inherited, evaluator),
                Role::Resource => {
                    let wanted = self.arguments(&node.address, evaluator);
                    self.visit_resource(number, inherited, wanted);
                }
                Role::Child => {
                    let wanted = self.child_arguments(number);
                    self.visit_resource(number, inherited, wanted);
                }
                _ => self.visit_composite(number, inherited),
            }
            if node.role != Role::Child {
                self.judge(number, evaluator);
            }
        }
    }

    /// What the things that a node needs hand on to it.
    pub(crate) fn inherited(&self, number: usize) -> Flags {
        self.graph.nodes[number].wanted.iter().fold(Flags::default(), |all, &needed| {
            let one = self.visits[needed].flags;
            Flags {
                pending: all.pending || one.pending,
                settled: all.settled && one.settled,
                failed: all.failed || one.failed,
                unready: all.unready || one.unready,
            }
        })
    }

    /// Not part of this run: it is as the state says. What is put off may be another thing by then.
    fn leave_out(&self, number: usize) {
        let node = &self.graph.nodes[number];
        let stored = self.inputs.state.resources.get(&node.address).filter(|_| !self.deferred[number]);
        let value = self.entries[number].map(|entry| {
            let object = stored.and_then(|s| remembered(entry.schema(), s).ok());
            object.unwrap_or_else(|| unknown_object(entry.schema())).into()
        });
        let data = || self.inputs.registry.data_source(&node.kind).map(|d| unknown_object(d.schema).into());
        if let Some(value) = value.or_else(data) {
            self.values.set(number, value);
        }
    }

    /// The arguments of what the user wrote; nothing if they can't be evaluated.
    pub(crate) fn arguments(&mut self, address: &Address, evaluator: &Evaluator<'_>) -> Option<Object> {
        let (arguments, problems) = evaluator.arguments(address);
        let mut problems = crate::judge::of_looking(problems, self.options.only_warns());
        let span = self.inputs.config.block(address).map(|b| b.span);
        let infinite = arguments.iter().filter(|(_, value)| value.contains_infinity());
        problems.extend(infinite.map(|(name, _)| infinite_number(&format!("\"{name}\"")).with_span(span)).collect::<Vec<_>>());
        let failed = problems.has_errors();
        // What is to be destroyed needs no valid configuration; what it says only helps to find the way.
        if self.options.mode != ModeOfPlan::Destroy {
            self.diagnostics.extend(problems.into_iter().map(|d| d.at(address)));
        }
        (!failed).then_some(arguments)
    }

    /// Says that an instance can't be handled, and why.
    pub(crate) fn refuse(&mut self, number: usize, summary: &str, detail: String, hint: &str) {
        let address = &self.graph.nodes[number].address;
        let span = self.inputs.config.block(address).map(|b| b.span);
        self.diagnostics.push(Diagnostic::error(summary, detail).at(address).with_span(span).with_hint(hint));
    }
}

/// What is said of a number that no state can hold.
pub(crate) fn infinite_number(what: &str) -> Diagnostic {
    Diagnostic::error("Infinite number", format!("{what} is or holds an infinite number, and a state can't hold that."))
        .with_hint("A division by zero gives one: ask for zero before, as in x == 0 ? 0 : y / x.")
}
