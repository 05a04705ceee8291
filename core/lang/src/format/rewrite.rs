//! Old ways of writing replaced by the ones in use: bare labels get quotes, `"${x}"` becomes `x`, quoted types lose their quotes.
//! Nothing of that changes what a configuration means.

use super::lexer::{Kind, Token};

/// The tokens with the old ways replaced.
pub(super) fn rewrite(tokens: Vec<Token>) -> Vec<Token> {
    let mut out = Vec::with_capacity(tokens.len());
    // The types of the blocks around.
    let mut blocks: Vec<String> = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let is_comment = |t: &&Token| t.kind == Kind::Comment;
        let sign = after.iter().take_while(is_comment).count();
        if first.kind == Kind::Word && after.get(sign).is_some_and(|t| t.is("=")) {
            let value = &after[sign + 1..];
            let length = value_length(value);
            let length = length - value[..length].iter().rev().take_while(is_comment).count();
            let start = value[..length].iter().take_while(is_comment).count();
            out.extend_from_slice(&rest[..sign + 2 + start]);
            let in_variable = blocks.len() == 1 && blocks[0] == "variable";
            let bare = &value[start..length];
            out.extend(if in_variable && first.text == "type" { type_expression(bare) } else { unwrapped(bare) });
            rest = &value[length..];
        } else if let Some(length) = header_length(rest) {
            blocks.push(first.text.clone());
            out.push(first.clone());
            out.extend(labels(&rest[1..length]));
            rest = &rest[length..];
        } else {
            if first.is("}") {
                blocks.pop();
            }
            out.push(first.clone());
            rest = after;
        }
    }
    out
}

/// How many tokens the value of an attribute has: up to the end of the line, a comment there, or the end of a block on one line.
fn value_length(tokens: &[Token]) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate() {
        let comment = token.kind == Kind::Comment && !token.text.starts_with("/*");
        if depth == 0 && (token.kind == Kind::Newline || comment || token.is("}")) {
            return i;
        }
        depth += token.brackets();
    }
    tokens.len()
}

/// How many tokens the beginning of a block has, up to and with its `{`; none if these are no block's.
fn header_length(tokens: &[Token]) -> Option<usize> {
    if tokens.first()?.kind != Kind::Word {
        return None;
    }
    let fits = |t: &Token| matches!(t.kind, Kind::Word | Kind::QuoteOpen | Kind::Literal | Kind::QuoteClose | Kind::Comment);
    let end = tokens.iter().position(|t| !fits(t))?;
    tokens[end].is("{").then_some(end + 1)
}

fn labels(tokens: &[Token]) -> impl Iterator<Item = Token> + '_ {
    tokens.iter().flat_map(|token| match token.kind {
        Kind::Word => {
            vec![Token::new(Kind::QuoteOpen, "\""), Token::new(Kind::Literal, &token.text), Token::new(Kind::QuoteClose, "\"")]
        }
        _ => vec![token.clone()],
    })
}

/// A quoted or bare type of old, as it is written now.
fn type_expression(tokens: &[Token]) -> Vec<Token> {
    let (name, quoted) = match tokens {
        [name] if name.kind == Kind::Word => (name.text.as_str(), false),
        [open, name, close] if open.kind == Kind::QuoteOpen && close.kind == Kind::QuoteClose => (name.text.as_str(), true),
        _ => return tokens.to_vec(),
    };
    let of = |element: &str| {
        let (open, close) = (Token::new(Kind::Open, "("), Token::new(Kind::Close, ")"));
        vec![Token::new(Kind::Word, name), open, Token::new(Kind::Word, element), close]
    };
    match (name, quoted) {
        ("list" | "map" | "set", false) => of("any"),
        // Quoted types are from a time when elements were strings.
        ("list" | "map", true) => of("string"),
        ("string", true) => vec![Token::new(Kind::Word, "string")],
        _ => tokens.to_vec(),
    }
}

/// The expression inside of `"${...}"`, if there is nothing else in the string.
fn unwrapped(tokens: &[Token]) -> Vec<Token> {
    let [open, template, inside @ .., end, close] = tokens else { return tokens.to_vec() };
    let whole = open.kind == Kind::QuoteOpen && template.text.starts_with("${") && close.kind == Kind::QuoteClose;
    if !whole || end.kind != Kind::TemplateClose || inside.is_empty() {
        return tokens.to_vec();
    }
    let mut quotes = 0;
    let mut depth = 0;
    let mut bare_comment = false;
    for token in inside {
        match token.kind {
            Kind::QuoteOpen => quotes += 1,
            Kind::QuoteClose => quotes -= 1,
            // The outer string goes on: it was closed, and this is another one.
            _ if quotes < 0 => return tokens.to_vec(),
            Kind::TemplateOpen | Kind::TemplateClose | Kind::Literal if quotes == 0 => return tokens.to_vec(),
            Kind::Comment if depth == 0 => bare_comment |= ends_line(token) || token.text.contains('\n'),
            Kind::HeredocOpen => return tokens.to_vec(),
            _ => {}
        }
        depth += token.brackets();
    }
    let start = inside.iter().position(|t| t.kind != Kind::Newline).unwrap_or(0);
    let stop = inside.iter().rposition(|t| t.kind != Kind::Newline).map_or(0, |i| i + 1);
    let inside = inside.get(start..stop).unwrap_or_default();
    if !breaks(inside) || is_in_brackets(inside) {
        // What follows a comment that ends its line would be no part of the value.
        let kept = if bare_comment { tokens } else { inside };
        return kept.to_vec();
    }
    // On several lines it needs brackets around it, as line breaks end a value outside of any.
    let mut out = vec![Token::new(Kind::Open, "(")];
    out.extend_from_slice(inside);
    if inside.last().is_some_and(ends_line) {
        out.push(Token::new(Kind::Newline, "\n"));
    }
    out.push(Token::new(Kind::Close, ")"));
    out
}

/// True for a comment that goes to the end of its line.
fn ends_line(token: &Token) -> bool {
    token.kind == Kind::Comment && !token.text.starts_with("/*")
}

/// True if a line breaks other than behind a comment that goes to its end, as Terraform counts that break to the comment.
fn breaks(tokens: &[Token]) -> bool {
    let mut in_comment = false;
    tokens.iter().any(|token| {
        let breaks = token.kind == Kind::Newline && !in_comment;
        in_comment = ends_line(token);
        breaks
    })
}

/// True if the first bracket is closed by the last token.
fn is_in_brackets(tokens: &[Token]) -> bool {
    let mut depth = 0;
    let closed = tokens.iter().position(|t| {
        depth += t.brackets();
        depth == 0
    });
    tokens.first().is_some_and(|t| t.is("(")) && closed == Some(tokens.len() - 1)
}
