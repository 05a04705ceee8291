//! How a step begins and ends in the books: what is sent out is made complete first, what comes back is taken into the state.

use karmaform_model::{Action, Change, Connection, Diagnostic, Diagnostics, EventKind, Object, ResourceState, StepKind, Value};

use crate::dispatch::Dispatcher;
use crate::facts::with_facts;
use crate::question::entries;
use crate::settle::settled;
use crate::values::{carry_marks, with_nulls};
use crate::worker::{Done, Job, Success};

impl Dispatcher<'_> {
    /// Begins a step: does it at once if it needs nobody, else gives the job.
    pub(crate) fn start(&mut self, step: usize) -> Result<Option<Job>, Diagnostics> {
        match &self.plan.steps[step].kind {
            StepKind::Join => self.succeed(step),
            StepKind::Finish { resource } => {
                let record = self.filler.record(&self.ledger, *resource)?;
                self.event(step, EventKind::Started);
                self.ledger.made(*resource, record);
                let planned = &self.plan.resources[*resource];
                self.event(step, EventKind::Succeeded(None));
                let broken = self.after_step(&planned.address, planned.change.action());
                self.judged(step, broken);
            }
            StepKind::Change { resource, part } if *part == Action::Forget || self.plan.resources[*resource].provider.is_none() => {
                self.event(step, EventKind::Started);
                self.ledger.gone(*resource);
                self.event(step, EventKind::Succeeded(None));
                self.succeed(step);
            }
            StepKind::Gate { composite, gate } => {
                if gate.acts {
                    self.before_step(composite)?;
                }
                let arguments = self.filler.gate(&self.ledger, composite, gate)?;
                self.run(step, Object::new(), None);
                return Ok(Some(Job::Gate { composite: composite.clone(), gate: (**gate).clone(), arguments }));
            }
            StepKind::Change { resource, part } => return self.start_change(step, *resource, *part),
        }
        Ok(None)
    }

    fn start_change(&mut self, step: usize, resource: usize, part: Action) -> Result<Option<Job>, Diagnostics> {
        let planned = &self.plan.resources[resource];
        // What goes for good is asked nothing. What goes to be made anew is asked before it goes, as far as that is known by then.
        if part != Action::Delete || planned.change.action() != Action::Delete || planned.address.is_child() {
            self.before_step(&planned.address)?;
        }
        let change = self.filler.change(&self.ledger, resource, part)?;
        if let Change::NoOp { object } = change {
            return self.pass_over(step, resource, object).map(|()| None);
        }
        if let Change::Read { after } = &change {
            let mut arguments = after.clone();
            if let Some(schema) = self.ledger.schema(planned) {
                arguments.retain(|name, _| schema.attribute(name).is_none_or(|a| a.is_configurable()));
            }
            self.run(step, after.clone(), None);
            return Ok(Some(Job::Read { address: planned.address.clone(), arguments }));
        }
        let provider = planned.provider.clone().unwrap_or_default();
        let side = change.after().or(change.before());
        let way = match self.ledger.schema(planned).map(|s| s.connection) {
            Some(Connection::Attribute(name)) => side.and_then(|s| s.get(name)),
            _ => None,
        };
        let connection = entries(way);
        let prior = self.ledger.start(resource, part, change.after());
        self.run(step, change.after().cloned().unwrap_or_default(), prior);
        let (address, change) = (planned.address.clone(), with_facts(change, &planned.facts));
        Ok(Some(Job::Change { address, provider, connection, resource_type: planned.resource_type.clone(), change }))
    }

    /// An update that turned out to be none, now that all is known: as in Terraform nobody is asked for it, and nothing is told of it.
    fn pass_over(&mut self, step: usize, resource: usize, object: Object) -> Result<(), Diagnostics> {
        self.ledger.made(resource, object);
        let broken = self.after_step(&self.plan.resources[resource].address, Action::Update);
        if broken.has_errors() {
            return Err(broken);
        }
        self.unchanged += 1;
        self.succeed(step);
        Ok(())
    }

    /// Books the end of a step.
    pub(crate) fn ended(&mut self, done: Done) {
        let Some(running) = self.running.get(&done.step) else { return };
        let (sent, prior) = (running.sent.clone(), running.prior.clone());
        self.interrupted |= done.interrupted;
        let problem: Option<Diagnostics> = match (&self.plan.steps[done.step].kind, done.result) {
            (StepKind::Change { resource, part }, Err(error)) => {
                let (resource, part) = (*resource, *part);
                if part != Action::Read {
                    self.ledger.failed(resource, part, done.touched, prior);
                }
                Some(error.into())
            }
            (_, Err(error)) => Some(error.into()),
            (StepKind::Change { resource, part }, Ok(success)) => {
                let (resource, part) = (*resource, *part);
                self.book(resource, part, &sent, success, done.touched, prior).map(Diagnostics::from)
            }
            (_, Ok(Success::Passed(seen))) => {
                self.event(done.step, EventKind::Succeeded(Some(seen)));
                None
            }
            (_, Ok(_)) => None,
        };
        match problem {
            Some(error) => self.fail(done.step, error),
            None => {
                let mut broken = Diagnostics::new();
                if let StepKind::Change { resource, part } = &self.plan.steps[done.step].kind {
                    let address = &self.plan.resources[*resource].address;
                    let id = self.ledger.attribute(address, "id");
                    // What is gone has none, and at its address there may be another one by now.
                    let is_told = *part != Action::Delete && !Value::contains_secret(&id);
                    let id = id.as_str().filter(|_| is_told).map(str::to_owned);
                    self.event(done.step, EventKind::Succeeded(id));
                    broken = self.after_step(address, *part);
                }
                self.judged(done.step, broken);
            }
        }
    }

    /// Goes on behind a step that is done, unless something must hold of what came of it and does not.
    fn judged(&mut self, step: usize, broken: Diagnostics) {
        if broken.has_errors() {
            self.refuse(step, broken);
        } else {
            self.succeed(step);
        }
    }

    fn book(
        &mut self,
        resource: usize,
        part: Action,
        sent: &Object,
        success: Success,
        touched: bool,
        prior: Option<ResourceState>,
    ) -> Option<Diagnostic> {
        let planned = &self.plan.resources[resource];
        let schema = self.ledger.schema(planned)?;
        match (part, success) {
            (_, Success::Read(object)) => {
                let mut object = with_nulls(schema, &object);
                carry_marks(sent, &mut object);
                self.ledger.read(resource, object);
                None
            }
            (Action::Delete, Success::Changed(None)) => {
                self.ledger.gone(resource);
                None
            }
            (Action::Delete, _) => {
                self.ledger.failed(resource, part, touched, prior);
                let detail = "The provider says that it is still there after it was deleted.";
                Some(Diagnostic::error("Not deleted", detail).with_hint("Plan again to see what is left."))
            }
            (_, Success::Changed(Some(object))) => {
                let (object, problem) = settled(schema, sent, object, &planned.address);
                self.ledger.made(resource, object);
                problem
            }
            _ => {
                self.ledger.failed(resource, part, touched, prior);
                Some(Diagnostic::error(
                    "Nothing there after the change",
                    "The provider did not say what is there now. This is a bug of the provider.",
                ))
            }
        }
    }
}
