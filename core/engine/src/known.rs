//! What a pass knows of instances, for who has to know how often things stand before there is a graph of all of them.

use std::collections::BTreeMap;

use karmaform_lang::{Evaluator, Resolver};
use karmaform_model::{Address, Type, Value};

use crate::graph::Graph;
use crate::observed::{Answer, Observed};
use crate::options::{Inputs, Options};
use crate::values::is_wholly_known;
use crate::walk::{values, walk_again};

/// Values of instances as they will be, with unknown parts where only an apply can tell.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeMap<Address, Value>);

impl Resolver for Known {
    fn instance(&self, address: &Address) -> Value {
        self.0.get(address).cloned().unwrap_or_else(|| Value::unknown(Type::Any))
    }
}

/// What is known of the instances of a graph by what was observed.
pub fn known(graph: &Graph, inputs: &Inputs<'_>, observed: &Observed, options: &Options) -> Known {
    let values = values(graph);
    let evaluator = Evaluator::new(inputs.config, &values);
    drop(walk_again(graph, *inputs, observed, options, &values, &evaluator));
    let instances = graph.instances.keys().filter(|a| !a.is_child());
    Known(instances.map(|address| (address.clone(), values.instance(address))).collect())
}

impl Observed {
    /// What may be taken over by another look at the same world a moment later: what was seen and read. What went wrong is tried again.
    pub(crate) fn kept(self) -> Self {
        let is_sure = |answer: &Answer| matches!(answer, Answer::Present(_) | Answer::Absent);
        Self {
            resources: self.resources.into_iter().filter(|(_, s)| s.broken.is_none() && is_sure(&s.answer)).collect(),
            data: self.data.into_iter().filter(|(_, r)| r.result.is_ok() && is_wholly_known(&r.arguments)).collect(),
            asked: self.asked,
            ..Self::default()
        }
    }
}
