//! The secret marks that a schema demands.

use super::{Attribute, Block, Schema};
use crate::{Kind, Object, Value};

impl Schema {
    /// Puts the secret marks of the schema on an object.
    pub fn mark(&self, object: &mut Object) {
        // Looked at first: to change a shared object is to copy it.
        if !self.lacks_marks(object) {
            return;
        }
        for attribute in self.attributes.iter().filter(|a| a.secret) {
            if let Some(value) = object.get_mut(attribute.name).filter(|v| !v.is_null()) {
                value.secret = true;
            }
        }
        for block in &self.blocks {
            let Some(value) = object.get_mut(block.name) else { continue };
            match &mut value.kind {
                Kind::List(_, items) | Kind::Tuple(items) => items.iter_mut().for_each(|v| block.schema.mark_value(v)),
                Kind::Map(_, entries) => entries.values_mut().for_each(|v| block.schema.mark_value(v)),
                Kind::Object(_) => block.schema.mark_value(value),
                _ => {}
            }
        }
    }

    fn mark_value(&self, value: &mut Value) {
        if let Kind::Object(object) = &mut value.kind {
            self.mark(object);
        }
    }

    fn lacks_marks(&self, object: &Object) -> bool {
        let unmarked = |a: &Attribute| a.secret && object.get(a.name).is_some_and(|v| !v.is_null() && !v.secret);
        let lacking = |b: &Block| {
            let inside = |v: &Value| matches!(&v.kind, Kind::Object(o) if b.schema.lacks_marks(o));
            object.get(b.name).is_some_and(|value| match &value.kind {
                Kind::Object(_) => inside(value),
                _ => value.parts().any(inside),
            })
        };
        self.attributes.iter().any(unmarked) || self.blocks.iter().any(lacking)
    }
}
