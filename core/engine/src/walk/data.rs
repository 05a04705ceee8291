//! How a pass goes over a data source: with what it answered, if it was asked this and nothing that it needs changes first.

use karmaform_lang::Evaluator;
use karmaform_model::{Change, Kind, ModeOfPlan, Object, Reason, Value};

use super::{Flags, Pass, Visit};
use crate::decide::Decision;
use crate::question::Read;
use crate::values::{carry_marks, is_wholly_known, unknown_object, with_nulls, with_unknown};
use crate::wanted::REQUIRED;

/// What says in a data source whether the other end answered.
const REACHABLE: &str = "reachable";
/// The way that a data source gives.
const WAY: &str = "connection";

/// Of what answered nobody needs to know that it need not have: others go by what is written.
fn as_written(object: &mut Object, written: Value) {
    let is_plain = written.as_bool() != Some(false);
    object.insert(REQUIRED.to_owned(), written);
    if let Some(Value { kind: Kind::Object(way), .. }) = object.get_mut(WAY)
        && is_plain
        && way.contains_key(REQUIRED)
    {
        way.remove(REQUIRED);
    }
}

impl Pass<'_> {
    /// Takes the answer of a data source, or notes that it is to be asked, or leaves it to apply.
    pub(super) fn visit_data(&mut self, number: usize, inherited: Flags, evaluator: &Evaluator<'_>) {
        let graph = self.graph;
        let address = &graph.nodes[number].address;
        let Some(entry) = self.inputs.registry.data_source(&address.kind) else { return };
        let schema = entry.schema;
        // No check is made of what is to go.
        if self.options.mode == ModeOfPlan::Destroy && self.inputs.config.check_of(address).is_some() {
            self.values.set(number, unknown_object(schema).into());
            return;
        }
        let Some(mut arguments) = self.arguments(address, evaluator) else {
            self.values.set(number, unknown_object(schema).into());
            self.visits[number].flags = Flags { failed: true, ..inherited };
            return;
        };
        let written = arguments.get(REQUIRED).filter(|_| self.options.lenient).cloned();
        if written.is_some() {
            arguments.insert(REQUIRED.to_owned(), false.into());
        }
        let is_known = is_wholly_known(&arguments);
        // What an earlier look read is of no use where something that it needs changes first.
        let reading = self.observed.data.get(address).filter(|r| r.arguments == arguments && !inherited.pending);
        let mut flags = Flags { pending: false, ..inherited };
        let mut object = with_unknown(schema, &arguments);
        let mut decision = None;
        match reading.map(|r| &r.result) {
            Some(Ok(result)) => {
                object = with_nulls(schema, result);
                carry_marks(&arguments, &mut object);
                if let Some(written) = written.filter(|_| object.get(REACHABLE).and_then(Value::as_bool) != Some(false)) {
                    as_written(&mut object, written);
                }
                decision = Some(Decision { change: Change::NoOp { object: object.clone() }, reason: None });
            }
            Some(Err(_)) => flags.failed = true,
            None if is_known && !inherited.pending => {
                flags.settled = false;
                if inherited.settled {
                    self.reads.push(Read { node: number, arguments: arguments.clone() });
                }
            }
            None => {
                flags.pending = self.options.mode == ModeOfPlan::Normal;
                flags.unready = true;
                let reason = if is_known { Reason::ReadBecauseDependencyPending } else { Reason::ReadBecauseConfigUnknown };
                if flags.pending {
                    decision = Some(Decision { change: Change::Read { after: object.clone() }, reason: Some(reason) });
                }
            }
        }
        self.values.set(number, object.into());
        self.visits[number] = Visit { decision, flags, ..Visit::default() };
    }
}
