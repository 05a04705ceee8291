//! Schemas: what a block may hold. One definition feeds checks, plan display and the reference pages.

mod marks;
mod stored;

use std::sync::OnceLock;

use crate::convert::is_value_type;
use crate::{Kind, Object, ObjectAttribute, Type, Value, fits};

/// Who gives an attribute its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The user must.
    Required,
    /// The user may; else its default, else null.
    Optional,
    /// Only the provider; "known after apply" until then.
    Computed,
    /// The user may; else the provider does.
    OptionalComputed,
}

/// One attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: Type,
    /// One or two sentences for the reference; units in it (seconds, bytes).
    pub doc: &'static str,
    /// Who gives the value.
    pub presence: Presence,
    /// What an optional one is when not written.
    pub default: Option<Value>,
    /// Part of what names the thing in the outside world; a change replaces it.
    pub identity: bool,
    /// A change replaces the thing.
    pub forces_replace: bool,
    /// Never shown.
    pub secret: bool,
    /// Given to `apply`, never compared and never stored.
    pub write_only: bool,
    /// Its type is a part of the value: `[1]` and `tolist([1])` differ.
    pub typed: bool,
    /// A fact of the moment: seen when observing, never compared and never stored.
    pub volatile: bool,
    /// A computed one that is another one's value once it is applied: it is secret where that is.
    pub echoes: Option<&'static str>,
}

/// How often a nested block may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// At most once: an object, or null.
    Single,
    /// Any number: a list of objects.
    List,
    /// Any number, each with a label: a map of objects.
    Map,
}

/// A nested block. In an [`Object`] it is an attribute of its name.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name.
    pub name: &'static str,
    /// How often.
    pub nesting: Nesting,
    /// What it holds.
    pub schema: Schema,
}

/// How a type reaches its world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// It needs none; the provider block is all.
    #[default]
    None,
    /// Through the connection value in this attribute.
    Attribute(&'static str),
    /// Its own arguments are the connection (a data source that gives one).
    Arguments,
}

/// What a block may hold.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// What the block is for, for the reference.
    pub doc: &'static str,
    /// Version of the stored attributes.
    pub version: u64,
    /// Attributes.
    pub attributes: Vec<Attribute>,
    /// Nested blocks.
    pub blocks: Vec<Block>,
    /// How the type reaches its world.
    pub connection: Connection,
    /// It lives in the state alone: there is nothing to look at outside and nothing a crash could leave behind.
    pub state_only: bool,
    /// What only its maker knows is kept in the state alone, though making it takes a connection: nobody can be asked for it later.
    pub is_told_once: bool,
    /// To look at it is to try something, which leaves traces for a moment: a pod that comes and goes.
    pub tries: bool,
    /// The attribute that says, if it is true, that others may want the same thing: they don't undo each other's work.
    pub shared_by: Option<&'static str>,
    /// Lists among its attributes of what only one of all that is reached in the same way can have, each with the word for one of these:
    /// `("ports", Some("port"))`; without one, an entry says itself what it is.
    pub claims: Vec<(&'static str, Option<&'static str>)>,
    /// Several may want the same thing, if all want it alike: it goes with the last of them, which its provider sees to.
    pub for_several: bool,
    /// There is a note of it outside (an ownership file) that outlives the thing itself: what is gone is deleted all the same, so that
    /// nobody else's thing in its place is taken for ours one day.
    pub leaves_note: bool,
    /// The type of the whole, which is asked for once for each object there is; whoever changes attributes or blocks has to empty it.
    whole: OnceLock<Type>,
}

impl Attribute {
    fn new(name: &'static str, ty: Type, presence: Presence, doc: &'static str) -> Self {
        Self {
            name,
            ty,
            doc,
            presence,
            default: None,
            identity: false,
            forces_replace: false,
            secret: false,
            write_only: false,
            typed: false,
            volatile: false,
            echoes: None,
        }
    }

    /// One the user must give.
    pub fn required(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::new(name, ty, Presence::Required, doc)
    }

    /// One the user may give.
    pub fn optional(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::new(name, ty, Presence::Optional, doc)
    }

    /// One only the provider gives.
    pub fn computed(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::new(name, ty, Presence::Computed, doc)
    }

    /// One the user may give and the provider gives otherwise.
    pub fn optional_computed(name: &'static str, ty: Type, doc: &'static str) -> Self {
        Self::new(name, ty, Presence::OptionalComputed, doc)
    }

    /// With a default.
    #[must_use]
    pub fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }

    /// Part of the identity.
    #[must_use]
    pub fn identity(mut self) -> Self {
        self.identity = true;
        self.forces_replace = true;
        self
    }

    /// A change replaces.
    #[must_use]
    pub fn forces_replace(mut self) -> Self {
        self.forces_replace = true;
        self
    }

    /// Secret.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// Write-only.
    #[must_use]
    pub fn write_only(mut self) -> Self {
        self.write_only = true;
        self
    }

    /// With its type as a part of the value, as Terraform has it of what may be of any type.
    #[must_use]
    pub fn typed(mut self) -> Self {
        self.typed = true;
        self
    }

    /// Volatile.
    #[must_use]
    pub fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// With another one's value once it is applied, and so secret where that is.
    #[must_use]
    pub fn echoes(mut self, name: &'static str) -> Self {
        self.echoes = Some(name);
        self
    }

    /// True if the user may write it.
    pub fn is_configurable(&self) -> bool {
        self.presence != Presence::Computed
    }

    /// True if the provider may fill it.
    pub fn is_computed(&self) -> bool {
        matches!(self.presence, Presence::Computed | Presence::OptionalComputed)
    }

    /// True if it is kept in the state.
    pub fn is_stored(&self) -> bool {
        !self.write_only && !self.volatile
    }
}

impl Block {
    /// The type of the attribute it becomes.
    pub fn ty(&self) -> Type {
        self.nested(self.schema.object_type().clone())
    }

    /// True if the value has that type already, for sure: [`crate::convert`] would give the same one.
    pub fn fits(&self, value: &Value) -> bool {
        let one = self.schema.object_type();
        let is_one = |element: &Type| element == one && !one.has_any();
        match (self.nesting, &value.kind) {
            (Nesting::Single, _) => fits(value, one),
            (Nesting::List, Kind::List(element, items)) => is_one(element) && items.iter().all(|v| fits(v, one)),
            (Nesting::List, Kind::Null(Type::List(t))) | (Nesting::Map, Kind::Null(Type::Map(t))) => is_value_type(t, one),
            (Nesting::Map, Kind::Map(element, entries)) => is_one(element) && entries.values().all(|v| fits(v, one)),
            _ => false,
        }
    }

    /// The same for a value that may lack what need not be written: composites give such ones.
    pub fn constraint(&self) -> Type {
        self.nested(self.schema.constraint())
    }

    fn nested(&self, one: Type) -> Type {
        match self.nesting {
            Nesting::Single => one,
            Nesting::List => Type::list(one),
            Nesting::Map => Type::map(one),
        }
    }
}

impl Schema {
    /// A schema of these attributes.
    pub fn new(doc: &'static str, attributes: Vec<Attribute>) -> Self {
        Self { doc, attributes, ..Self::default() }
    }

    /// With nested blocks.
    #[must_use]
    pub fn with_blocks(mut self, blocks: Vec<Block>) -> Self {
        self.blocks = blocks;
        self.whole = OnceLock::new();
        self
    }

    /// Reached through the connection in this attribute.
    #[must_use]
    pub fn through(mut self, attribute: &'static str) -> Self {
        self.connection = Connection::Attribute(attribute);
        self
    }

    /// Living in the state alone.
    #[must_use]
    pub fn state_only(mut self) -> Self {
        self.state_only = true;
        self
    }

    /// Known to its maker alone.
    #[must_use]
    pub fn told_once(mut self) -> Self {
        self.is_told_once = true;
        self
    }

    /// Looked at by trying.
    #[must_use]
    pub fn tried(mut self) -> Self {
        self.tries = true;
        self
    }

    /// Shared with others if this attribute says so.
    #[must_use]
    pub fn shared_by(mut self, attribute: &'static str) -> Self {
        self.shared_by = Some(attribute);
        self
    }

    /// What is in this list nobody else in the same place can have; the word is for one of these, unless each says itself what it is.
    #[must_use]
    pub fn claims(mut self, attribute: &'static str, word: Option<&'static str>) -> Self {
        self.claims.push((attribute, word));
        self
    }

    /// Wanted by several, if they want it alike.
    #[must_use]
    pub fn for_several(mut self) -> Self {
        self.for_several = true;
        self
    }

    /// With a note outside that outlives it.
    #[must_use]
    pub fn leaves_note(mut self) -> Self {
        self.leaves_note = true;
        self
    }

    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// The nested block of this name.
    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|b| b.name == name)
    }

    /// The type of attribute or block `name`.
    pub fn type_of(&self, name: &str) -> Option<Type> {
        self.attribute(name).map(|a| a.ty.clone()).or_else(|| self.block(name).map(Block::ty))
    }

    /// The type of the whole.
    pub fn object_type(&self) -> &Type {
        self.whole.get_or_init(|| {
            let attributes = self.attributes.iter().map(|a| (a.name.to_owned(), ObjectAttribute::required(a.ty.clone())));
            let blocks = self.blocks.iter().map(|b| (b.name.to_owned(), ObjectAttribute::required(b.ty())));
            Type::Object(attributes.chain(blocks).collect())
        })
    }

    fn constraint(&self) -> Type {
        let attributes = self.attributes.iter().map(|a| {
            let default = a.default.clone().map(Box::new);
            (a.name.to_owned(), ObjectAttribute { ty: a.ty.clone(), optional: a.presence != Presence::Required, default })
        });
        let blocks = self.blocks.iter().map(|b| (b.name.to_owned(), ObjectAttribute::optional(b.constraint())));
        Type::Object(attributes.chain(blocks).collect())
    }

    /// The attributes that name the thing, as far as they are in `object`.
    pub fn identity(&self, object: &Object) -> Object {
        self.attributes.iter().filter(|a| a.identity).filter_map(|a| Some((a.name.to_owned(), object.get(a.name)?.clone()))).collect()
    }

    /// What is compared with what is wanted where `before` has only what was seen: of a lost state, and of what is adopted. What nobody can
    /// see, how to work for one, is taken to be as wanted.
    #[must_use]
    pub fn filled(&self, before: &Object, wanted: &Object) -> Object {
        let mut filled = before.clone();
        let configurable = self.attributes.iter().filter(|a| a.is_configurable()).map(|a| a.name);
        for name in configurable.chain(self.blocks.iter().map(|b| b.name)) {
            if let (None, Some(value)) = (before.get(name), wanted.get(name)) {
                filled.insert(name.to_owned(), value.clone());
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_as_wanted_unless_only_the_provider_knows_it() {
        let schema = Schema::new(
            "",
            vec![
                Attribute::required("a", Type::String, ""),
                Attribute::optional("b", Type::String, ""),
                Attribute::computed("c", Type::String, ""),
            ],
        )
        .with_blocks(vec![Block { name: "d", nesting: Nesting::Single, schema: Schema::default() }]);
        let all = |value: &str| ["a", "b", "c", "d"].map(|n| (n.to_owned(), Value::from(value)));
        let seen = Object::from([("a".to_owned(), "seen".into())]);
        let expected = [("a", "seen"), ("b", "wanted"), ("d", "wanted")].map(|(n, v)| (n.to_owned(), v.into()));
        assert_eq!(schema.filled(&seen, &Object::from(all("wanted"))), Object::from(expected));
        assert_eq!(schema.filled(&Object::from(all("seen")), &Object::from(all("wanted"))), Object::from(all("seen")));
    }
}
