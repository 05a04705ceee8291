//! What a scan of a text finds: items, what is not closed, objects to be parsed in pieces.

use std::ops::Range;

/// What a scan found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scan {
    /// Byte ranges of the top-level items that are balanced.
    pub items: Vec<Range<usize>>,
    /// What is not.
    pub problems: Vec<Problem>,
    /// Comments, without the line breaks behind them.
    pub comments: Vec<Range<usize>>,
    /// Heredocs that the parser would end elsewhere.
    pub doubtful: Vec<Doubtful>,
    /// Line breaks that mean nothing, as a bracket, a `{for}` or an interpolation is open.
    pub idle_breaks: Vec<usize>,
    /// Dots in code that are the last of their line but for a comment, where the line break ends something.
    pub last_dots: Vec<usize>,
    /// Object literals with very many entries, outermost ones only, in order.
    pub big: Vec<Big>,
    /// What is in braces and may be an object, where that is asked for.
    pub objects: Vec<Entries>,
    /// Nothing is wrong with the text but that it ends too early: more of it may close what is open.
    pub unfinished: bool,
}

/// A heredoc that ends on its first line, or in which a line only begins like its end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Doubtful {
    /// The word behind `<<`.
    pub opening: Range<usize>,
    /// The word in a line of its own.
    pub closing: Range<usize>,
}

/// An object literal that is parsed in pieces: the parser's time grows with the square of the number of entries.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Big {
    /// Between the braces.
    pub inside: Range<usize>,
    /// Where entries end: behind line breaks and commas of the object itself.
    pub cuts: Vec<usize>,
}

/// What is in braces: an object with several entries, or the body of a block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entries {
    /// Where entries may begin: behind the brace, and behind line breaks and commas.
    pub starts: Vec<usize>,
    /// Where it is closed.
    pub end: usize,
    /// It is an object for certain.
    pub is_value: bool,
}

/// Something that is not closed, or closed twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    pub kind: ProblemKind,
    /// Where it opens (or what closes too much).
    pub at: Range<usize>,
    /// What was found instead of its end.
    pub found: Option<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ProblemKind {
    /// `{`, `[`, `(` without its partner.
    Bracket(u8),
    /// `${` or `%{`
    Interpolation,
    /// `"`
    Quote,
    /// `<<X`
    Heredoc,
    /// `/*`
    Comment,
    /// A closing bracket too many.
    Closer(u8),
    /// A carriage return that ends no line, outside of comments.
    Return,
}
