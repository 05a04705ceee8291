//! What an apply adds to evaluation: the time and the randomness that a plan can only call "known after apply".

use karmaform_model::{Address, Value};
use uuid::Uuid;

use crate::evaluator::Evaluator;
use crate::functions;
use crate::scope::Scope;
use crate::syntax::Call;

/// The moment of an apply.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Seconds since 1970-01-01 UTC, for `timestamp()`; the same all over an apply.
    pub now: i64,
    /// What no other apply has; `uuid()` and the salt of `bcrypt()` are made of it.
    pub seed: String,
}

impl<'a> Evaluator<'a> {
    /// The same, evaluating in this apply.
    #[must_use]
    pub fn at(self, moment: &'a Moment) -> Self {
        Self { moment: Some(moment), ..self }
    }

    /// What this call gives in an apply, if a plan can't know. The same call gives the same each time an apply evaluates it, so that a
    /// local is one value for all who use it; in a loop, every turn gives another.
    pub(crate) fn momentary(&self, call: &Call, args: &[Value], scope: &Scope<'_>) -> Option<Value> {
        let moment = self.moment?;
        match call.name.as_str() {
            "timestamp" => functions::time_text(moment.now).map(Value::from),
            "uuid" => Some(self.random(moment, call, scope).to_string().into()),
            "bcrypt" => functions::bcrypt_hash(args, self.random(moment, call, scope).into_bytes()).map(Value::from),
            _ => None,
        }
    }

    /// What no other call and no other turn of it has in this apply.
    fn random(&self, moment: &Moment, call: &Call, scope: &Scope<'_>) -> Uuid {
        let instance = [scope.site.each.as_ref().map(|(key, _)| key), scope.site.count.as_ref()];
        let module = self.config.modules.get(scope.site.module).filter(|m| !m.path.is_empty());
        let module = module.map(|m| format!(" {}", Address::of_module(m.path.clone()))).unwrap_or_default();
        let place = format!("{:?} {} {instance:?}{module}", call.name_span.file, call.name_span.start);
        let mut turns = self.memo.turns.borrow_mut();
        let turn = turns.entry(place.clone()).and_modify(|n| *n += 1).or_insert(0_usize);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{} {place} {turn}", moment.seed).as_bytes())
    }
}
