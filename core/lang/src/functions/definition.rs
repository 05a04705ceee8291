//! What a built-in function is, as data: one definition feeds the call, the checks and the reference page.

use karmaform_model::{Kind, Type, Value};

use super::arguments::{Answer, Arguments};

/// A type, writable in a constant.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Any,
    Bool,
    Number,
    String,
    List(&'static Shape),
    Set(&'static Shape),
    Map(&'static Shape),
}

impl Shape {
    pub(crate) const STRINGS: Self = Self::List(&Self::String);
    pub(crate) const LIST: Self = Self::List(&Self::Any);
    pub(crate) const SET: Self = Self::Set(&Self::Any);

    /// The type it stands for.
    pub(crate) fn ty(self) -> Type {
        match self {
            Self::Any => Type::Any,
            Self::Bool => Type::Bool,
            Self::Number => Type::Number,
            Self::String => Type::String,
            Self::List(t) => Type::list(t.ty()),
            Self::Set(t) => Type::set(t.ty()),
            Self::Map(t) => Type::map(t.ty()),
        }
    }
}

/// Which types an argument may have that is not converted; also while it is not known, so that a plan tells what an apply would.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    All,
    /// Lists and tuples.
    Ordered,
    /// Lists, sets and tuples.
    Sequence,
    /// Maps and objects.
    Entries,
}

impl Kinds {
    /// What is said of an argument of another type.
    pub(crate) const fn required(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Ordered => "a list or tuple is required",
            Self::Sequence => "a list, set or tuple is required",
            Self::Entries => "a map or object is required",
        }
    }

    /// True if a value has one of these types, or may turn out to have one.
    pub(crate) fn has(self, value: &Value) -> bool {
        let of = |ty: &Type| match ty {
            Type::List(_) | Type::Tuple(_) => Some(Self::Ordered),
            Type::Set(_) => Some(Self::Sequence),
            Type::Map(_) | Type::Object(_) => Some(Self::Entries),
            Type::Any => None,
            _ => Some(Self::All),
        };
        let kind = match &value.kind {
            Kind::List(..) | Kind::Tuple(_) => Some(Self::Ordered),
            Kind::Set(..) => Some(Self::Sequence),
            Kind::Map(..) | Kind::Object(_) => Some(Self::Entries),
            Kind::Null(ty) => of(ty),
            Kind::Unknown(unknown) => of(&unknown.ty),
            _ => Some(Self::All),
        };
        let among: &[Self] = match self {
            Self::All => return true,
            Self::Ordered => &[Self::Ordered],
            Self::Sequence => &[Self::Ordered, Self::Sequence],
            Self::Entries => &[Self::Entries],
        };
        kind.is_none_or(|kind| among.contains(&kind))
    }
}

/// One parameter. Arguments are converted to its shape; what the flags don't allow, the body never sees.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// What it takes where its shape says nothing.
    pub(crate) kinds: Kinds,
    /// A null argument reaches the body, instead of being refused.
    pub(crate) allow_null: bool,
    /// An unknown argument reaches the body, instead of making the result unknown. Unknown *parts* of an argument always do.
    pub(crate) allow_unknown: bool,
    /// Marks reach the body, which places them on the result; else they are taken off and put on the whole result.
    pub(crate) allow_marks: bool,
}

impl Parameter {
    pub(crate) const fn new(name: &'static str, shape: Shape) -> Self {
        Self { name, shape, kinds: Kinds::All, allow_null: false, allow_unknown: false, allow_marks: false }
    }

    pub(crate) const fn any(name: &'static str) -> Self {
        Self::new(name, Shape::Any)
    }

    pub(crate) const fn of(name: &'static str, kinds: Kinds) -> Self {
        Self { kinds, ..Self::any(name) }
    }

    pub(crate) const fn string(name: &'static str) -> Self {
        Self::new(name, Shape::String)
    }

    pub(crate) const fn number(name: &'static str) -> Self {
        Self::new(name, Shape::Number)
    }

    pub(crate) const fn null(self) -> Self {
        Self { allow_null: true, ..self }
    }

    pub(crate) const fn unknown(self) -> Self {
        Self { allow_unknown: true, ..self }
    }

    pub(crate) const fn marked(self) -> Self {
        Self { allow_marks: true, ..self }
    }
}

/// The type of a result that is not known yet.
#[derive(Clone, Copy)]
pub(crate) enum Gives {
    /// Always this.
    Is(Shape),
    /// It depends on the arguments.
    Depends(fn(&[&Value]) -> Type),
}

/// One built-in function.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// One sentence for the reference page.
    pub(crate) doc: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// How many of the last parameters may be left out.
    pub(crate) optional: usize,
    /// Takes any number of these after the parameters.
    pub(crate) rest: Option<Parameter>,
    pub(crate) gives: Gives,
    /// A result that is not known yet may turn out to be null.
    pub(crate) may_be_null: bool,
    /// `None` for a special form: its arguments are expressions, which the evaluator handles.
    pub(crate) body: Option<fn(&Arguments<'_>) -> Answer>,
    /// Calls and what they give, measured; see the tests of the list.
    #[cfg(test)]
    pub(crate) rows: super::testing::Rows,
}

impl Function {
    /// What definitions leave out.
    pub(crate) const BASE: Self = Self {
        name: "",
        doc: "",
        parameters: &[],
        optional: 0,
        rest: None,
        gives: Gives::Is(Shape::String),
        may_be_null: false,
        body: None,
        #[cfg(test)]
        rows: &[],
    };

    /// The parameter that takes the argument of this number.
    pub(crate) fn parameter(&self, index: usize) -> Option<&Parameter> {
        self.parameters.get(index).or(self.rest.as_ref())
    }
}

/// A built-in function as the reference page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// `upper`
    pub name: &'static str,
    /// Its parameters, in order.
    pub parameters: Vec<ParameterSignature>,
    /// The type of its result; [`Type::Any`] if that depends on the arguments.
    pub result: Type,
    /// One sentence.
    pub doc: &'static str,
}

/// A parameter as the reference page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSignature {
    /// What it is called in messages.
    pub name: &'static str,
    /// What arguments are converted to.
    pub ty: Type,
    /// It may be left out.
    pub optional: bool,
    /// It stands for any number of arguments.
    pub repeated: bool,
    /// `null` is a legal argument.
    pub nullable: bool,
}

impl From<&Function> for Signature {
    fn from(function: &Function) -> Self {
        let required = function.parameters.len() - function.optional.min(function.parameters.len());
        let fixed = function.parameters.iter().enumerate().map(|(i, p)| (p, i >= required, false));
        let parameters = fixed
            .chain(function.rest.iter().map(|p| (p, true, true)))
            .map(|(p, optional, repeated)| ParameterSignature {
                name: p.name,
                ty: p.shape.ty(),
                optional,
                repeated,
                nullable: p.allow_null,
            })
            .collect();
        let result = match function.gives {
            Gives::Is(shape) => shape.ty(),
            Gives::Depends(_) => Type::Any,
        };
        Self { name: function.name, parameters, result, doc: function.doc }
    }
}
