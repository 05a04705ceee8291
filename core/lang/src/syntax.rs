//! The syntax tree, and the only place that knows the parser library.
//!
//! HCL goes through [`parse`]: a scan finds the top-level blocks, each is parsed on its own (so that one broken block hides no other
//! error, and no big tree is ever held), and lowered to the types here. JSON goes through [`json`] to the same types. Knows nothing of what
//! blocks and names mean, but for what of JSON is a block.

mod doubles;
mod explain;
mod found;
mod habits;
mod heredocs;
mod json;
mod keys;
mod lower;
mod numbers;
mod parse;
mod recover;
mod scan;
mod template;
mod words;

use std::sync::Arc;

use karmaform_model::{Span, Value};

pub(crate) use crate::ops::{BinaryOperator, UnaryOperator};
pub use parse::{gives_type, is_unfinished, syntax_errors};
pub(crate) use parse::{parse_body, parse_expression, parse_file, parse_template, parse_tests, parse_values};

#[cfg(test)]
#[path = "syntax/suite.rs"]
mod suite;

/// A body: a file, or what stands between a block's braces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub attributes: Vec<Attribute>,
    pub blocks: Vec<Block>,
}

/// `name = expr`
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub name: String,
    pub name_span: Span,
    pub expr: Expr,
}

/// `kind "label" { ... }`
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub kind: String,
    pub kind_span: Span,
    pub labels: Vec<Label>,
    /// The header: kind and labels.
    pub span: Span,
    pub body: Body,
}

/// A block's label.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub text: String,
    pub span: Span,
}

/// An expression and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A number, bool, null or string without interpolation.
    Literal(Value),
    /// A quoted or heredoc string.
    Template(Vec<Part>),
    Tuple(Vec<Expr>),
    Object(Vec<(ObjectKey, Expr)>),
    /// The first name of a reference.
    Name(String),
    Traversal(Box<Expr>, Vec<Step>),
    Parentheses(Box<Expr>),
    Conditional(Box<[Expr; 3]>),
    Call(Box<Call>),
    Unary(UnaryOperator, Box<Expr>),
    Binary(BinaryOperator, Box<(Expr, Expr)>),
    For(Box<For>),
    /// An error has been reported already; evaluates to unknown.
    Wrong,
}

/// A key of an object literal.
#[derive(Clone, Debug)]
pub(crate) enum ObjectKey {
    /// `a = 1`
    Name(String),
    /// `"a" = 1`, `(x) = 1`
    Expr(Expr),
    /// `"a": 1`, in JSON: no two of them may come to the same text.
    Once(Expr),
}

/// One step of a traversal.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub kind: StepKind,
    pub span: Span,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    /// `.name`
    Attribute(String),
    /// `[expr]`
    Index(Expr),
    /// `.0`
    LegacyIndex(u64),
    /// `.*`
    AttributeSplat,
    /// `[*]`
    FullSplat,
}

/// `name(args)`
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub name: String,
    pub name_span: Span,
    pub args: Vec<Expr>,
    /// `f(list...)`
    pub expand: bool,
}

/// `[for ...]` and `{for ...}`
#[derive(Clone, Debug)]
pub(crate) struct For {
    pub key_name: Option<String>,
    pub value_name: String,
    pub collection: Expr,
    /// With a key expression it makes an object.
    pub key: Option<Expr>,
    pub value: Expr,
    /// `...`
    pub group: bool,
    pub condition: Option<Expr>,
}

/// A piece of a template.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Literal(String),
    Interpolation(Expr),
    If { condition: Expr, then: Vec<Part>, otherwise: Vec<Part> },
    For { key_name: Option<String>, value_name: String, collection: Expr, body: Vec<Part> },
}

/// A parsed template, shared where it is cached.
pub(crate) type Template = Arc<Vec<Part>>;

impl Body {
    /// The attribute of this name.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| a.name == name)
    }

    /// The nested blocks of this kind.
    pub(crate) fn blocks<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |b| b.kind == kind)
    }
}

impl Expr {
    /// What stands for an expression whose error was reported.
    pub(crate) fn wrong(span: Span) -> Self {
        Self { kind: ExprKind::Wrong, span }
    }

    /// Parentheses taken off.
    pub(crate) fn bare(&self) -> &Self {
        match &self.kind {
            ExprKind::Parentheses(inner) => inner.bare(),
            _ => self,
        }
    }

    /// A string literal's text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            ExprKind::Literal(value) => value.as_str(),
            _ => None,
        }
    }
}
