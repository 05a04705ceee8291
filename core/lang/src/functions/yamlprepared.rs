//! YAML that Terraform's reader takes and our parser refuses, in words that the parser takes.
//!
//! The parser keeps to YAML 1.2, Terraform's reader to how YAML was read before it. Only a text that the parser has refused gets
//! here: what it reads means what it meant. Lines stay lines, and nothing in a value changes. These things are written anew:
//!
//! - lines on which a list in `[]`, a map in `{}` or a quoted text goes on: the parser wants them further in than what is around
//!   them, and without tabs;
//! - tabs behind the `:` of a key;
//! - a `#` right behind a quoted text, a bracket, a comma or the head of a block;
//! - a lone `-` as a value between brackets.

/// So much longer the text may become, so that far indented lines can't be made to fill the memory.
const MOST_GROWTH: usize = 8;
/// Bytes that it may have however short it was.
const ALWAYS: usize = 1 << 20;

/// The text to try; `None` if nothing can be done for it.
pub(super) fn prepared(text: &str) -> Option<String> {
    // A byte order mark would shift the columns, and a lone carriage return is a line break too.
    if text.starts_with('\u{feff}') || text.replace("\r\n", "\n").contains('\r') {
        return None;
    }
    let mut scan = Scan { out: String::with_capacity(text.len() + 64), base: -1, depth: 0, within: Within::Nothing };
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\r', '\n']);
        scan.line(content)?;
        scan.out.push_str(&line[content.len()..]);
        if scan.out.len() > (MOST_GROWTH * text.len()).max(ALWAYS) {
            return None;
        }
    }
    Some(scan.out).filter(|out| out != text)
}

/// What goes on from line to line.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Nothing,
    /// A bare text: the next line may belong to it.
    Bare,
    /// A text in these quotes.
    Quoted(u8),
    /// A text behind `|` or `>`.
    Block,
}

struct Scan {
    out: String,
    /// The column of the list or map that the next value belongs to; -1 outside of all of them.
    base: isize,
    /// How many brackets are open.
    depth: usize,
    within: Within,
}

impl Scan {
    /// One line, without its line break.
    fn line(&mut self, line: &str) -> Option<()> {
        let inner = line.trim_start_matches([' ', '\t']);
        let spaces = column(line.len() - line.trim_start_matches(' ').len());
        let marker = is_marker(line);
        let goes_on = self.depth > 0 || matches!(self.within, Within::Quoted(_));
        if self.within == Within::Block {
            if (inner.is_empty() || spaces > self.base) && !marker {
                self.out.push_str(line);
                return Some(());
            }
            self.within = Within::Nothing;
        }
        if goes_on {
            // A document ends nowhere within one of its values.
            return if marker { None } else { self.continued(line, inner) };
        }
        if marker {
            (self.base, self.within) = (-1, Within::Nothing);
            self.out.push_str(&line[..3]);
            return self.words(line, 3);
        }
        // A directive.
        if self.base < 0 && self.within == Within::Nothing && line.starts_with('%') {
            self.out.push_str(line);
            return Some(());
        }
        if self.within == Within::Bare && !inner.is_empty() && spaces <= self.base {
            self.within = Within::Nothing;
        }
        let at = line.len() - inner.len();
        self.out.push_str(&line[..at]);
        self.words(line, at)
    }

    /// A line within brackets or quotes: blanks in front of it mean nothing, and are made spaces that reach far enough.
    fn continued(&mut self, line: &str, inner: &str) -> Option<()> {
        let blanks = line.len() - inner.len();
        if self.within == Within::Bare && line[..blanks].contains('\t') {
            // Tabs in front of the next line of a bare text are refused by Terraform too.
            self.out.push_str(&line[..blanks]);
        } else if !inner.is_empty() {
            let wanted = usize::try_from(self.base + 2).unwrap_or(0).max(blanks);
            self.out.extend(std::iter::repeat_n(' ', wanted));
        }
        self.words(line, blanks)
    }

    /// The rest of a line, from a place that is copied up to.
    fn words(&mut self, line: &str, mut at: usize) -> Option<()> {
        let bytes = line.as_bytes();
        // Where the value at hand began on this line, with its anchor and tag: a key, if a `:` follows.
        let mut begun = None;
        // Whether what is behind us is whole, so that a `#` can only be a comment.
        let mut whole = false;
        while at < bytes.len() || matches!(self.within, Within::Quoted(_)) {
            let from = at;
            match self.within {
                Within::Quoted(quote) => {
                    let (end, closed) = quoted_end(bytes, at, quote);
                    at = end;
                    self.out.push_str(&line[from..at]);
                    if !closed {
                        return Some(());
                    }
                    (self.within, whole) = (Within::Nothing, true);
                    continue;
                }
                Within::Bare => {
                    at = bare_end(bytes, at, self.depth > 0);
                    self.out.push_str(&line[from..at]);
                    // At the end of the line it may go on, unless a comment ends it.
                    if at < bytes.len() {
                        self.within = Within::Nothing;
                    }
                    whole = false;
                    continue;
                }
                Within::Nothing | Within::Block => {}
            }
            let next = bytes.get(at + 1).copied();
            let in_flow = self.depth > 0;
            match bytes[at] {
                b' ' | b'\t' => {
                    at = skip(bytes, at, is_blank);
                    self.out.push_str(&line[from..at]);
                    continue;
                }
                b'#' if whole || at == 0 || is_blank(bytes[at - 1]) => {
                    if whole && !is_blank(bytes[at - 1]) {
                        self.out.push(' ');
                    }
                    self.out.push_str(&line[at..]);
                    return Some(());
                }
                quote @ (b'"' | b'\'') => {
                    begun = begun.or(Some(at));
                    self.within = Within::Quoted(quote);
                    at += 1;
                    whole = false;
                }
                b'[' | b'{' => {
                    begun = begun.or(Some(at));
                    self.depth += 1;
                    at += 1;
                    whole = true;
                }
                b']' | b'}' => {
                    // One too many is the parser's to refuse, where it stands.
                    self.depth = self.depth.saturating_sub(1);
                    at += 1;
                    whole = true;
                }
                b',' if in_flow => {
                    at += 1;
                    whole = true;
                }
                b'-' if in_flow && matches!(next, Some(b',' | b']' | b'}')) => {
                    self.out.push_str("'-'");
                    at += 1;
                    whole = false;
                    continue;
                }
                b'-' | b'?' if next.is_none_or(is_blank) => {
                    if !in_flow {
                        self.base = column(at);
                    }
                    begun = None;
                    at += 1;
                    whole = false;
                }
                b':' if ends_key(next, in_flow) || (in_flow && whole) => {
                    // Its key is on another line: refused by Terraform, but not always by the parser.
                    if in_flow && begun.is_none() {
                        return None;
                    }
                    if !in_flow {
                        self.base = column(begun.unwrap_or(at));
                    }
                    at += 1;
                    self.out.push(':');
                    // At the beginning of a line it takes no tab in Terraform either.
                    let blanks = skip(bytes, at, is_blank);
                    if begun.is_some() {
                        self.out.extend(std::iter::repeat_n(' ', blanks - at));
                        at = blanks;
                    }
                    begun = None;
                    whole = false;
                    continue;
                }
                b'|' | b'>' if !in_flow => {
                    at = skip(bytes, at + 1, |b| matches!(b, b'+' | b'-' | b'0'..=b'9'));
                    let rest = line[at..].trim_start_matches([' ', '\t']);
                    if !rest.is_empty() && !rest.starts_with('#') {
                        return None;
                    }
                    self.out.push_str(&line[from..at]);
                    self.out.push_str(if line[at..].starts_with('#') { " " } else { "" });
                    self.out.push_str(&line[at..]);
                    self.within = Within::Block;
                    return Some(());
                }
                b'&' | b'*' | b'!' => {
                    begun = begun.or(Some(at));
                    at = skip(bytes, at, |b| !(is_blank(b) || in_flow && is_flow(b)));
                    whole = false;
                }
                _ => {
                    begun = begun.or(Some(at));
                    self.within = Within::Bare;
                    // Its first letter can be no end of it.
                    at += line[at..].chars().next().map_or(1, char::len_utf8);
                    whole = false;
                }
            }
            self.out.push_str(&line[from..at]);
        }
        Some(())
    }
}

/// `---` or `...` in front of a line.
fn is_marker(line: &str) -> bool {
    let rest = line.strip_prefix("---").or_else(|| line.strip_prefix("..."));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Behind the quote that ends a text, or at the end of the line; and whether it ends.
fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> (usize, bool) {
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(_)) if quote == b'"' => at += 2,
            // Two of them stand for one.
            (b'\'', Some(b'\'')) if quote == b'\'' => at += 2,
            (byte, _) if byte == quote => return (at + 1, true),
            _ => at += 1,
        }
    }
    (at, false)
}

/// Where a bare text ends on this line: at a `:` behind a key, a comment, or what ends a value between brackets.
fn bare_end(bytes: &[u8], from: usize, in_flow: bool) -> usize {
    for at in from..bytes.len() {
        let ends = match bytes[at] {
            b':' => ends_key(bytes.get(at + 1).copied(), in_flow),
            b'#' => at > 0 && is_blank(bytes[at - 1]),
            byte => in_flow && is_flow(byte),
        };
        if ends {
            return at;
        }
    }
    bytes.len()
}

/// Whether a `:` with this behind it ends a key.
fn ends_key(next: Option<u8>, in_flow: bool) -> bool {
    next.is_none_or(|next| is_blank(next) || (in_flow && is_flow(next)))
}

fn is_flow(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The first place from `at` on that is not of this kind.
fn skip(bytes: &[u8], at: usize, of_kind: impl Fn(u8) -> bool) -> usize {
    at + bytes[at..].iter().take_while(|b| of_kind(**b)).count()
}

fn column(at: usize) -> isize {
    isize::try_from(at).unwrap_or(isize::MAX)
}
