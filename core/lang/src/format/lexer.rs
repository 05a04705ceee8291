//! The text as tokens, strings taken apart into their literal and interpolated parts. Joined again they are the text.

use super::FormatError;

/// What a token is, as far as layout cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Newline,
    /// `# ...`, `// ...` without the line break, or `/* ... */`.
    Comment,
    Word,
    Number,
    /// `{`, `[`, `(`
    Open,
    /// `}`, `]`, `)`
    Close,
    /// `${` and `%{`, with `~`
    TemplateOpen,
    /// The `}` that belongs to those.
    TemplateClose,
    QuoteOpen,
    QuoteClose,
    /// Text inside quotes.
    Literal,
    /// `<<EOT` with its line break.
    HeredocOpen,
    /// Text of a heredoc up to an interpolation or the line break, which belongs to it.
    HeredocText,
    /// The closing marker, with the spaces before it.
    HeredocClose,
    /// `=`, `==`, `,`, `.`, `?`, `:` and all the others.
    Sign,
}

/// A piece of the text and the spaces before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) spaces: usize,
}

impl Token {
    pub(super) fn new(kind: Kind, text: &str) -> Self {
        Self { kind, text: text.to_owned(), spaces: 0 }
    }

    /// True for a sign of exactly this text.
    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.kind, Kind::Sign | Kind::Open | Kind::Close) && self.text == sign
    }

    /// +1 for what opens a bracket, -1 for what closes one.
    pub(super) fn brackets(&self) -> i32 {
        match self.kind {
            Kind::Open | Kind::TemplateOpen => 1,
            Kind::Close | Kind::TemplateClose => -1,
            _ => 0,
        }
    }
}

/// What is open at a place of the text, and the line it was opened on.
enum Mode {
    Bracket(char, usize),
    Template(usize),
    Quote(usize),
    Heredoc { marker: String, line: usize, line_start: bool },
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    open: Vec<Mode>,
    tokens: Vec<Token>,
}

/// The tokens of a text with `\n` line breaks.
pub(super) fn lex(text: &str) -> Result<Vec<Token>, FormatError> {
    let mut lexer = Lexer { rest: text, line: 1, open: Vec::new(), tokens: Vec::new() };
    while !lexer.rest.is_empty() {
        match lexer.open.last() {
            Some(Mode::Quote(_)) => lexer.quoted()?,
            Some(Mode::Heredoc { .. }) => lexer.heredoc(),
            _ => lexer.code()?,
        }
    }
    // A marker may be the very last bytes of a file.
    let unclosed = |what: &str, line: usize| Err(FormatError { line, message: format!("{what} is never closed") });
    match lexer.open.last() {
        None => Ok(lexer.tokens),
        Some(Mode::Bracket(c, line)) => unclosed(&format!("this `{c}`"), *line),
        Some(Mode::Template(line)) => unclosed("an interpolation in a string", *line),
        Some(Mode::Quote(line)) => unclosed("a string", *line),
        Some(Mode::Heredoc { marker, line, .. }) => unclosed(&format!("the heredoc `{marker}`"), *line),
    }
}

/// Signs of more than one character, longest first.
const SIGNS: [&str; 9] = ["...", "==", "!=", "<=", ">=", "&&", "||", "=>", "::"];

impl<'a> Lexer<'a> {
    fn error<T>(&self, message: String) -> Result<T, FormatError> {
        Err(FormatError { line: self.line, message })
    }

    /// Takes so many bytes as one token.
    fn take(&mut self, kind: Kind, length: usize, spaces: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.rest = rest;
        self.tokens.push(Token { kind, text: text.to_owned(), spaces });
    }

    fn code(&mut self) -> Result<(), FormatError> {
        let trimmed = self.rest.trim_start_matches([' ', '\t']);
        let spaces = self.rest.len() - trimmed.len();
        self.rest = trimmed;
        let Some(c) = trimmed.chars().next() else { return Ok(()) };
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-') || !c.is_ascii() && !c.is_whitespace() && !c.is_control();
        match c {
            '\n' => self.take(Kind::Newline, 1, 0),
            '#' => self.take(Kind::Comment, trimmed.find('\n').unwrap_or(trimmed.len()), spaces),
            '/' if trimmed.starts_with("//") => self.take(Kind::Comment, trimmed.find('\n').unwrap_or(trimmed.len()), spaces),
            // `/*/` only begins one, as `/*//////` of a banner does.
            '/' if trimmed.starts_with("/*") => match trimmed[2..].find("*/") {
                Some(end) => self.take(Kind::Comment, end + 4, spaces),
                None => return self.error("a comment is never closed".to_owned()),
            },
            '"' => {
                self.open.push(Mode::Quote(self.line));
                self.take(Kind::QuoteOpen, 1, spaces);
            }
            '0'..='9' => self.take(Kind::Number, number_length(trimmed), spaces),
            '<' if heredoc_marker(trimmed).is_some() => {
                let (marker, length) = heredoc_marker(trimmed).unwrap_or_default();
                self.open.push(Mode::Heredoc { marker: marker.to_owned(), line: self.line, line_start: true });
                self.take(Kind::HeredocOpen, length, spaces);
            }
            '(' | '[' | '{' => {
                self.open.push(Mode::Bracket(c, self.line));
                self.take(Kind::Open, 1, spaces);
            }
            ')' | ']' | '}' | '~' => return self.close(c, spaces),
            c if c != '-' && word(c) => self.take(Kind::Word, trimmed.find(|c| !word(c)).unwrap_or(trimmed.len()), spaces),
            _ => {
                if let Some(sign) = SIGNS.iter().find(|s| trimmed.starts_with(**s)) {
                    self.take(Kind::Sign, sign.len(), spaces);
                } else if "=<>!+-*/%?:.,&|".contains(c) {
                    self.take(Kind::Sign, 1, spaces);
                } else {
                    return self.error(format!("the character {c:?} can't stand here"));
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, c: char, spaces: usize) -> Result<(), FormatError> {
        let length = if c == '~' { 2 } else { 1 };
        let last = self.open.pop();
        match &last {
            Some(Mode::Template(_)) if self.rest.starts_with('}') || self.rest.starts_with("~}") => {
                self.take(Kind::TemplateClose, length, spaces);
                // What follows is in the middle of a line again.
                if let Some(Mode::Heredoc { line_start, .. }) = self.open.last_mut() {
                    *line_start = false;
                }
                Ok(())
            }
            Some(Mode::Bracket(open, _)) if matches!((open, c), ('(', ')') | ('[', ']') | ('{', '}')) => {
                self.take(Kind::Close, length, spaces);
                Ok(())
            }
            Some(Mode::Bracket(open, line)) => self.error(format!("this `{c}` does not close the `{open}` of line {line}")),
            Some(Mode::Template(line)) => self.error(format!("this `{c}` does not close the interpolation of line {line}")),
            _ => self.error(format!("this `{c}` closes nothing")),
        }
    }

    /// A part of a quoted string: text up to the closing quote or an interpolation, or one of those.
    fn quoted(&mut self) -> Result<(), FormatError> {
        if self.rest.starts_with('"') {
            self.open.pop();
            self.take(Kind::QuoteClose, 1, 0);
            return Ok(());
        }
        if self.template() {
            return Ok(());
        }
        let mut end = 0;
        let mut characters = self.rest.char_indices().peekable();
        while let Some((i, c)) = characters.next() {
            match c {
                '"' => break,
                '\n' => return self.error("a string must end on the line it begins on; write \\n for a line break".to_owned()),
                '\\' => {
                    end = characters.next().map_or(self.rest.len(), |(j, escaped)| j + escaped.len_utf8());
                    continue;
                }
                _ if opens_template(&self.rest[i..]) => break,
                _ => {}
            }
            end = end.max(i + c.len_utf8());
            end += skip_escaped_template(&self.rest[i..], &mut characters);
        }
        self.take(Kind::Literal, end, 0);
        Ok(())
    }

    /// A part of a heredoc: text up to the end of the line or an interpolation, or that, or the closing marker.
    fn heredoc(&mut self) {
        let Some(Mode::Heredoc { marker, line_start, .. }) = self.open.last_mut() else { return };
        let line_end = self.rest.find('\n').unwrap_or(self.rest.len());
        let line = &self.rest[..line_end];
        if *line_start && line.trim() == marker {
            self.open.pop();
            self.take(Kind::HeredocClose, line_end, 0);
            return;
        }
        *line_start = false;
        if self.template() {
            return;
        }
        let mut end = (line_end + 1).min(self.rest.len());
        let mut characters = self.rest[..end].char_indices().peekable();
        while let Some((i, _)) = characters.next() {
            if opens_template(&self.rest[i..]) {
                end = i;
                break;
            }
            skip_escaped_template(&self.rest[i..], &mut characters);
        }
        if let Some(Mode::Heredoc { line_start, .. }) = self.open.last_mut() {
            *line_start = self.rest[..end].ends_with('\n');
        }
        self.take(Kind::HeredocText, end, 0);
    }

    /// Takes the beginning of an interpolation, if there is one here.
    fn template(&mut self) -> bool {
        let found = opens_template(self.rest);
        if found {
            self.open.push(Mode::Template(self.line));
            let length = if self.rest[2..].starts_with('~') { 3 } else { 2 };
            self.take(Kind::TemplateOpen, length, 0);
        }
        found
    }
}

fn opens_template(text: &str) -> bool {
    text.starts_with("${") || text.starts_with("%{")
}

/// `$${` and `%%{` are text; steps over their last two characters, and says how long those are.
fn skip_escaped_template(text: &str, characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>) -> usize {
    if text.starts_with("$${") || text.starts_with("%%{") {
        characters.next();
        characters.next();
        return 2;
    }
    0
}

/// The marker of a heredoc, and the length of its first line.
fn heredoc_marker(text: &str) -> Option<(&str, usize)> {
    let line = &text[..=text.find('\n')?];
    let marker = line.strip_prefix("<<")?;
    let marker = marker.strip_prefix('-').unwrap_or(marker).strip_suffix('\n')?;
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    (marker.starts_with(|c: char| c.is_alphabetic() || c == '_') && marker.chars().all(legal)).then_some((marker, line.len()))
}

fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| from + n);
    let mut end = digits(0);
    if text[end..].starts_with('.') && text[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        if text[end + 1 + sign..].starts_with(|c: char| c.is_ascii_digit()) {
            end = digits(end + 1 + sign);
        }
    }
    end
}
