//! From the parser's tree to ours: spans made absolute, names normalised, and what the parser lets pass but the language does not refused.

use std::collections::BTreeSet;
use std::ops::Range;

use hcl_edit::expr::{self as tree, Expression, TraversalOperator};
use hcl_edit::{Span as _, structure};
use karmaform_model::{Diagnostic, Diagnostics, FileId, Span, Type, Value};
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::found::Big;
use super::template::{Quoting, breaks_line, lower_template};
use super::{
    Attribute, BinaryOperator, Block, Body, Call, Expr, ExprKind, For, Label, ObjectKey, Part, Step, StepKind, UnaryOperator, explain,
    keys, numbers,
};

/// What is said of a key of an object that may be a reference and may be a name.
pub(super) const AMBIGUOUS_KEY: &str = "Ambiguous key";
/// What is said of a key that an object has twice.
const WRITTEN_TWICE: &str = "Key written twice";
/// Entries of a big object that are parsed at once.
const PIECE: usize = 500;

/// Lowers one parsed text.
pub(super) struct Lower<'t> {
    pub text: &'t str,
    pub file: FileId,
    /// Where the text starts in its file.
    pub base: usize,
    /// Where each byte stands, where the text is not as it is written: `base` comes on top.
    pub places: &'t [usize],
    /// Keys that are read from the text; see `keys`.
    pub renamed: &'t BTreeSet<usize>,
    /// Objects that are parsed in pieces, by where they are in the text.
    pub big: &'t [Big],
    pub diagnostics: Diagnostics,
}

impl Lower<'_> {
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        let clamp = |at: usize| u32::try_from(self.base + self.places.get(at).copied().unwrap_or(at)).unwrap_or(u32::MAX);
        Span { file: self.file, start: clamp(range.start), end: clamp(range.end) }
    }

    fn span_of(&self, range: Option<Range<usize>>, or: Span) -> Span {
        range.map_or(or, |range| self.span(range))
    }

    fn source(&self, range: Option<Range<usize>>) -> &str {
        range.and_then(|r| self.text.get(r)).unwrap_or_default()
    }

    /// Identifiers and strings are compared by what they look like.
    pub(super) fn name(&self, name: &str) -> String {
        normalised(name)
    }

    pub(super) fn body(&mut self, body: &structure::Body, around: Span) -> Body {
        let mut out = Body::default();
        for item in body {
            match item {
                structure::Structure::Attribute(attribute) => {
                    let name_span = self.span_of(attribute.key.span(), around);
                    let name = normalised(attribute.key.as_str());
                    let expr = self.expression_in(&attribute.value, false, name_span);
                    out.attributes.push(Attribute { name, name_span, expr });
                }
                structure::Structure::Block(block) => out.blocks.push(self.block(block, around)),
            }
        }
        // There are as many bodies as blocks, most with less than the room that the first push makes.
        out.attributes.shrink_to_fit();
        out.blocks.shrink_to_fit();
        out
    }

    fn block(&mut self, block: &structure::Block, around: Span) -> Block {
        let kind_span = self.span_of(block.ident.span(), around);
        let mut labels = Vec::new();
        for label in &block.labels {
            let span = self.span_of(label.span(), kind_span);
            if self.source(label.span()).contains('\n') {
                self.line_break(span);
            }
            labels.push(Label { text: normalised(label.as_str()), span });
        }
        let end = labels.last().map_or(kind_span.end, |l| l.span.end);
        let span = Span { end, ..kind_span };
        let whole = self.span_of(block.span(), span);
        let body = self.body(&block.body, whole);
        Block { kind: normalised(block.ident.as_str()), kind_span, labels, span, body }
    }

    /// `newlines`: line breaks are allowed here, because a bracket is open.
    pub(super) fn expression(&mut self, expr: &Expression, newlines: bool) -> Expr {
        let around = self.span(0..0);
        self.expression_in(expr, newlines, around)
    }

    fn expression_in(&mut self, expr: &Expression, newlines: bool, around: Span) -> Expr {
        let span = self.span_of(expr.span(), around);
        let kind = match expr {
            Expression::Null(_) => ExprKind::Literal(Value::null(Type::Any)),
            Expression::Bool(b) => ExprKind::Literal((*b.value()).into()),
            Expression::Number(_) => self.number(expr.span(), span),
            Expression::String(s) => {
                if self.source(expr.span()).contains('\n') {
                    self.line_break(span);
                }
                ExprKind::Literal(normalised(s.as_str()).into())
            }
            Expression::StringTemplate(t) => {
                if breaks_line(self.text, t.iter()) {
                    self.line_break(span);
                }
                ExprKind::Template(lower_template(self, t.iter(), Quoting::Quoted))
            }
            Expression::HeredocTemplate(h) => {
                let flush = self.source(expr.span()).starts_with("<<-");
                heredoc(lower_template(self, h.template.iter(), Quoting::Plain { flush }))
            }
            Expression::Array(array) => {
                if let (Some(Expression::Variable(first)), 1) = (array.get(0), array.len())
                    && first.as_str() == "for"
                {
                    self.diagnostics.push(
                        Diagnostic::error("Incomplete for expression", "After \"[for\" a name, \"in\" and a collection are needed.")
                            .with_span(Some(span))
                            .with_hint("Write it as [for x in list : x]."),
                    );
                    return Expr::wrong(span);
                }
                ExprKind::Tuple(array.iter().map(|e| self.expression_in(e, true, span)).collect())
            }
            Expression::Object(object) => self.object(object, span),
            Expression::Parenthesis(inner) => ExprKind::Parentheses(Box::new(self.expression_in(inner.inner(), true, span))),
            Expression::Variable(name) => ExprKind::Name(normalised(name.as_str())),
            Expression::Conditional(c) => {
                self.on_one_line(newlines, c.cond_expr.span(), c.true_expr.span());
                self.on_one_line(newlines, c.true_expr.span(), c.false_expr.span());
                ExprKind::Conditional(Box::new([&c.cond_expr, &c.true_expr, &c.false_expr].map(|e| self.expression_in(e, newlines, span))))
            }
            Expression::FuncCall(call) => self.call(call, span),
            Expression::Traversal(t) => self.traversal(t, newlines, span),
            Expression::UnaryOp(op) => {
                let operator = match op.operator.value() {
                    tree::UnaryOperator::Neg => UnaryOperator::Neg,
                    tree::UnaryOperator::Not => UnaryOperator::Not,
                };
                ExprKind::Unary(operator, Box::new(self.expression_in(&op.expr, newlines, span)))
            }
            Expression::BinaryOp(op) => {
                self.on_one_line(newlines, op.lhs_expr.span(), op.rhs_expr.span());
                let left = self.expression_in(&op.lhs_expr, newlines, span);
                let right = self.expression_in(&op.rhs_expr, newlines, span);
                ExprKind::Binary(binary_operator(*op.operator.value()), Box::new((left, right)))
            }
            Expression::ForExpr(f) => self.for_expression(f, span),
        };
        Expr { kind, span }
    }

    fn number(&mut self, range: Option<Range<usize>>, span: Span) -> ExprKind {
        match numbers::number(self.source(range)) {
            Some(number) => ExprKind::Literal(number.into()),
            None => {
                self.diagnostics.push(
                    Diagnostic::error("Number out of range", "Numbers have at most 4096 digits before and after the point.")
                        .with_span(Some(span)),
                );
                ExprKind::Wrong
            }
        }
    }

    fn object(&mut self, object: &tree::Object, span: Span) -> ExprKind {
        let mut items = Vec::with_capacity(object.len());
        let inside = usize::try_from(span.start).unwrap_or(0).saturating_sub(self.base) + 1;
        if let Some(big) = self.big.iter().find(|b| b.inside.start == inside) {
            self.pieces(big, &mut items);
        }
        let mut seen = BTreeSet::new();
        for (key, value) in object {
            let range = match key {
                tree::ObjectKey::Ident(name) => name.span(),
                tree::ObjectKey::Expression(expr) => expr.span(),
            };
            let key_span = self.span_of(range.clone(), span);
            let written = range.as_ref().filter(|r| self.renamed.contains(&r.start)).and_then(|r| self.text.get(r.clone()));
            let key = match (key, written) {
                (_, Some(written)) if written.contains(['(', '$', '%', '\\']) => {
                    ObjectKey::Expr(self.written_expression(range.clone().unwrap_or_default()))
                }
                (_, Some(written)) => ObjectKey::Name(normalised(written.trim_matches('"'))),
                (tree::ObjectKey::Ident(name), None) => ObjectKey::Name(normalised(name.as_str())),
                (tree::ObjectKey::Expression(tree::Expression::Null(_)), None) => ObjectKey::Name("null".into()),
                (tree::ObjectKey::Expression(expr), None) if is_path(expr) => {
                    let detail = "A key of an object that is neither in quotes nor in parentheses must be one word.";
                    self.diagnostics.push(
                        Diagnostic::error(AMBIGUOUS_KEY, detail)
                            .with_span(Some(key_span))
                            .with_hint("For what it refers to put it in parentheses, for a name with dots in quotes."),
                    );
                    ObjectKey::Expr(Expr::wrong(key_span))
                }
                (tree::ObjectKey::Expression(expr), None) => ObjectKey::Expr(self.expression_in(expr, false, span)),
            };
            let name = match &key {
                ObjectKey::Name(name) => Some(name.clone()),
                ObjectKey::Expr(expr) | ObjectKey::Once(expr) => match &expr.bare().kind {
                    ExprKind::Literal(value) => Some(value.as_str().unwrap_or_else(|| self.source(range)).to_owned()),
                    _ => None,
                },
            };
            if name.is_some_and(|name| !seen.insert(name)) {
                self.written_twice(key_span);
            }
            items.push((key, self.expression_in(value.expr(), false, key_span)));
        }
        ExprKind::Object(items)
    }

    /// The earlier one of two keys that are the same text is of no use. What is computed may well differ, as `uuid()` does.
    fn written_twice(&mut self, key: Span) {
        self.diagnostics.push(
            Diagnostic::warning(WRITTEN_TWICE, "An earlier entry of this object has the same key; this one wins.")
                .with_span(Some(key))
                .with_hint("Remove one of the two."),
        );
    }

    /// What is written there, where the parser saw something else.
    fn written_expression(&mut self, range: Range<usize>) -> Expr {
        let text = self.source(Some(range.clone())).to_owned();
        let places = self.places.get(range.clone()).unwrap_or_default();
        let base = if places.is_empty() { self.base + range.start } else { self.base };
        match keys::parse_expression(&text) {
            Ok(patched) => {
                let (text, renamed) = (text.as_str(), &patched.renamed);
                let inner = Lower { text, file: self.file, base, places, renamed, big: &[], diagnostics: Diagnostics::new() };
                let (expr, found) = inner.whole(&patched.tree);
                self.diagnostics.extend(found);
                expr
            }
            Err(error) => {
                let span = self.span(range);
                self.diagnostics.push(explain::error(&error, &text, |_| span));
                Expr::wrong(span)
            }
        }
    }

    /// The entries of a big object, some hundred at a time.
    fn pieces(&mut self, big: &Big, items: &mut Vec<(ObjectKey, Expr)>) {
        let mut start = big.inside.start;
        let ends = big.cuts.chunks(PIECE).filter_map(<[usize]>::last).copied().chain([big.inside.end]);
        for end in ends {
            let Some(text) = self.text.get(start..end) else { continue };
            // The braces are put around; the first takes the place of the character before.
            let piece = format!("{{{text}}}");
            let base = self.base + start - 1;
            match keys::parse_expression(&piece) {
                Ok(patched) => {
                    let (text, renamed) = (piece.as_str(), &patched.renamed);
                    let inner = Lower { text, file: self.file, base, places: &[], renamed, big: &[], diagnostics: Diagnostics::new() };
                    let (object, found) = inner.whole(&patched.tree);
                    self.diagnostics.extend(found);
                    if let ExprKind::Object(more) = object.kind {
                        items.extend(more);
                    }
                }
                Err(error) => {
                    let file = self.file;
                    let clamp = |at: usize| u32::try_from(base + at).unwrap_or(u32::MAX);
                    let span = |range: Range<usize>| Span { file, start: clamp(range.start), end: clamp(range.end) };
                    self.diagnostics.push(explain::error(&error, &piece, span));
                }
            }
            start = end;
        }
    }

    fn whole(mut self, expr: &Expression) -> (Expr, Diagnostics) {
        let expr = self.expression(expr, false);
        (expr, self.diagnostics)
    }

    fn call(&mut self, call: &tree::FuncCall, span: Span) -> ExprKind {
        let mut name: Vec<_> = call.name.namespace.iter().map(|n| n.as_str()).collect();
        name.push(call.name.name.as_str());
        let name = name.join("::");
        let first = call.name.namespace.first().and_then(|n| n.span()).or_else(|| call.name.name.span());
        let name_span = self.span_of(first, span);
        let name_span = call.name.name.span().map_or(name_span, |r| Span { end: self.span(r).end, ..name_span });
        let before = self.diagnostics.len();
        let args = call.args.iter().map(|e| self.expression_in(e, true, span)).collect();
        if name == "object" && self.diagnostics.len() > before {
            self.forget_doubles(call, before);
        }
        // `core::` names the built-in ones.
        let name = normalised(name.strip_prefix("core::").unwrap_or(&name));
        ExprKind::Call(Box::new(Call { name, name_span, args, expand: call.args.expand_final() }))
    }

    /// An attribute that is twice in the type of an object is refused where types are read, so none of the two wins.
    fn forget_doubles(&mut self, call: &tree::FuncCall, before: usize) {
        let mut keys = Vec::new();
        for arg in call.args.iter() {
            let Expression::Object(object) = arg else { continue };
            keys.extend(object.iter().filter_map(|(key, _)| match key {
                tree::ObjectKey::Ident(name) => name.span(),
                tree::ObjectKey::Expression(expr) => expr.span(),
            }));
        }
        let spans: Vec<Span> = keys.into_iter().map(|key| self.span(key)).collect();
        let is_double = |d: &Diagnostic| d.summary == WRITTEN_TWICE && d.span.is_some_and(|span| spans.contains(&span));
        let all = std::mem::take(&mut self.diagnostics).into_iter().enumerate();
        self.diagnostics = all.filter(|(i, d)| *i < before || !is_double(d)).map(|(_, d)| d).collect();
    }

    fn traversal(&mut self, traversal: &tree::Traversal, newlines: bool, span: Span) -> ExprKind {
        let dotted = traversal.operators.first().is_some_and(|o| matches!(o.value(), TraversalOperator::LegacyIndex(_)));
        if dotted && matches!(traversal.expr, Expression::Number(_)) {
            self.diagnostics.push(Diagnostic::error("Invalid number", "A number has at most one point.").with_span(Some(span)));
            return ExprKind::Wrong;
        }
        let root = self.expression_in(&traversal.expr, newlines, span);
        let mut steps: Vec<Step> = Vec::with_capacity(traversal.operators.len());
        let mut before = traversal.expr.span();
        for operator in &traversal.operators {
            let range = operator.span();
            self.on_one_line(newlines, std::mem::replace(&mut before, range.clone()), range.clone());
            let step_span = self.span_of(range.clone(), span);
            let written = self.source(range);
            if written.starts_with('.') && ends_line(written) && !newlines {
                self.diagnostics.push(
                    Diagnostic::error("Line break after a dot", "The name must follow the dot on the same line.")
                        .with_span(Some(step_span))
                        .with_hint("Put the whole expression in parentheses to break it over lines."),
                );
            }
            let kind = match operator.value() {
                TraversalOperator::AttrSplat(_) => {
                    let before = steps.iter().rev().map(|s| &s.kind);
                    let mut before = before.skip_while(|k| matches!(k, StepKind::Attribute(_) | StepKind::LegacyIndex(_)));
                    if matches!(before.next(), Some(StepKind::AttributeSplat)) {
                        self.diagnostics.push(
                            Diagnostic::error(
                                "Splat in a splat",
                                "What follows \".*\" goes to each element, where another \".*\" can't stand.",
                            )
                            .with_span(Some(step_span))
                            .with_hint("Write the splats as [*], or use a for expression."),
                        );
                    }
                    StepKind::AttributeSplat
                }
                TraversalOperator::FullSplat(_) => StepKind::FullSplat,
                TraversalOperator::GetAttr(name) => StepKind::Attribute(normalised(name.as_str())),
                TraversalOperator::Index(expr) => StepKind::Index(self.expression_in(expr, true, step_span)),
                TraversalOperator::LegacyIndex(index) => {
                    if matches!(steps.last().map(|s| &s.kind), Some(StepKind::LegacyIndex(_))) {
                        self.diagnostics.push(
                            Diagnostic::error("Ambiguous index", "Two indexes written with dots read like a decimal number.")
                                .with_span(Some(step_span))
                                .with_hint("Write indexes in brackets: list[0][1]."),
                        );
                    }
                    StepKind::LegacyIndex(**index)
                }
            };
            steps.push(Step { kind, span: step_span });
        }
        ExprKind::Traversal(Box::new(root), steps)
    }

    fn for_expression(&mut self, f: &tree::ForExpr, span: Span) -> ExprKind {
        let collection = self.expression_in(&f.intro.collection_expr, true, span);
        let key = f.key_expr.as_ref().map(|k| self.expression_in(k, true, span));
        let value = self.expression_in(&f.value_expr, true, span);
        let condition = f.cond.as_ref().map(|c| self.expression_in(&c.expr, true, span));
        ExprKind::For(Box::new(For {
            key_name: f.intro.key_var.as_ref().map(|k| normalised(k.as_str())),
            value_name: normalised(f.intro.value_var.as_str()),
            collection,
            key,
            value,
            group: f.grouping,
            condition,
        }))
    }

    /// Refuses a line break between parts of an expression where it ends the expression: the parser reads on behind a call or a list.
    fn on_one_line(&mut self, newlines: bool, left: Option<Range<usize>>, right: Option<Range<usize>>) {
        let (Some(left), Some(right)) = (left, right) else { return };
        if !newlines && ends_line(self.source(Some(left.end..right.start))) {
            let error = Diagnostic::error("Line break in an expression", "It ended with its line, but this one goes on with it.")
                .with_span(Some(self.span(right)))
                .with_hint("Put the whole expression in parentheses to break it over lines.");
            self.diagnostics.push(error);
        }
    }

    fn line_break(&mut self, span: Span) {
        self.diagnostics.push(
            Diagnostic::error("String over several lines", "A quoted string must end on the line where it starts.")
                .with_span(Some(span))
                .with_hint("Write \\n for a line break, or use a heredoc: <<-EOT ... EOT."),
        );
    }
}

/// True if a line ends between two parts of an expression, other than in a comment.
fn ends_line(between: &str) -> bool {
    let mut rest = between;
    while let Some(at) = ["\n", "#", "//", "/*"].iter().filter_map(|mark| rest.find(mark)).min() {
        let Some(comment) = rest[at..].strip_prefix("/*") else { return true };
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    false
}

/// True for names with dots, and with literal indexes: `a.b["c"]`.
fn is_path(expr: &Expression) -> bool {
    let Expression::Traversal(path) = expr else { return false };
    let is_literal = |index: &Expression| matches!(index, Expression::Number(_) | Expression::String(_));
    matches!(path.expr, Expression::Variable(_))
        && path.operators.iter().all(|operator| match operator.value() {
            TraversalOperator::GetAttr(_) | TraversalOperator::LegacyIndex(_) => true,
            TraversalOperator::Index(index) => is_literal(index),
            TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => false,
        })
}

/// A heredoc is a string even if it is one interpolation, because its last line break is part of it.
fn heredoc(parts: Vec<Part>) -> ExprKind {
    match parts.as_slice() {
        [] => ExprKind::Literal("".into()),
        [Part::Literal(text)] => ExprKind::Literal(normalised(text).into()),
        _ => ExprKind::Template(parts),
    }
}

fn binary_operator(operator: tree::BinaryOperator) -> BinaryOperator {
    use tree::BinaryOperator as Tree;
    match operator {
        Tree::Eq => BinaryOperator::Eq,
        Tree::NotEq => BinaryOperator::NotEq,
        Tree::LessEq => BinaryOperator::LessEq,
        Tree::GreaterEq => BinaryOperator::GreaterEq,
        Tree::Less => BinaryOperator::Less,
        Tree::Greater => BinaryOperator::Greater,
        Tree::Plus => BinaryOperator::Add,
        Tree::Minus => BinaryOperator::Sub,
        Tree::Mul => BinaryOperator::Mul,
        Tree::Div => BinaryOperator::Div,
        Tree::Mod => BinaryOperator::Mod,
        Tree::And => BinaryOperator::And,
        Tree::Or => BinaryOperator::Or,
    }
}

pub(super) fn normalised(text: &str) -> String {
    if text.is_ascii() || is_nfc(text) { text.to_owned() } else { text.nfc().collect() }
}
