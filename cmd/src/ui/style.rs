//! Colours, and what the terminal can show. Knows no plan and no diagnostic.

use karmaform_model::Action;

/// What a piece of text means; the colour follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// Something comes, or all is well.
    Add,
    /// Something changes, or needs care.
    Change,
    /// Something goes, or failed.
    Remove,
    /// Something is read.
    Read,
    /// A heading.
    Bold,
    /// Less important.
    Faint,
}

impl Tone {
    /// The number in its escape code; what is plain has none.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Add => "32",
            Self::Change => "33",
            Self::Remove => "31",
            Self::Read => "36",
            Self::Bold => "1",
            Self::Faint => "2",
        }
    }
}

/// How to draw.
#[derive(Clone, Debug)]
pub(crate) struct Theme {
    /// Escape codes are welcome.
    pub(crate) color: bool,
    /// Columns; long prose is wrapped there. `None`: not at all, so that tools can search lines.
    pub(crate) width: Option<usize>,
    /// What the tool calls itself in lines that other tools search for; "Terraform" in automation.
    pub(crate) product: &'static str,
}

impl Theme {
    /// No colours, no wrapping.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { color: false, width: None, product: "karmaform" }
    }

    /// The text in that tone.
    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        let is_painted = self.color && tone != Tone::Plain && !text.is_empty();
        if is_painted { format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code()) } else { text.to_owned() }
    }

    /// Bold and in that tone.
    pub(crate) fn strong(&self, tone: Tone, text: &str) -> String {
        match tone {
            Tone::Plain => self.paint(Tone::Bold, text),
            _ if self.color => format!("\u{1b}[1m{}", self.paint(tone, text)),
            _ => text.to_owned(),
        }
    }

    /// Prose, wrapped to the width of a terminal; lines that are indented are left as they are.
    pub(crate) fn wrap(&self, text: &str) -> String {
        self.width.map_or_else(|| text.to_owned(), |width| filled(text, width))
    }

    /// Prose that Terraform has as well, which wraps it for files and pipes too.
    pub(crate) fn paragraph(&self, text: &str) -> String {
        filled(text, self.width.unwrap_or(COLUMNS))
    }
}

fn filled(text: &str, width: usize) -> String {
    text.split('\n').map(|line| if line.starts_with(' ') { line.to_owned() } else { fill(line, width) }).collect::<Vec<_>>().join("\n")
}

/// Columns of a paragraph where there is no terminal.
const COLUMNS: usize = 78;

/// Breaks one line at spaces so that no piece is wider than `width`, where words allow.
pub(crate) fn fill(line: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// What stands before a line of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// Nothing.
    None,
    /// `+`
    Add,
    /// `~`
    Change,
    /// `-`
    Remove,
    /// `-/+`
    DestroyThenCreate,
    /// `+/-`
    CreateThenDestroy,
    /// `<=`
    Read,
    /// `.`
    Forget,
}

impl Mark {
    /// Of an action.
    pub(crate) fn of(action: Action) -> Self {
        match action {
            Action::NoOp => Self::None,
            Action::Read => Self::Read,
            Action::Create => Self::Add,
            Action::Update => Self::Change,
            Action::DestroyThenCreate => Self::DestroyThenCreate,
            Action::CreateThenDestroy => Self::CreateThenDestroy,
            Action::Delete => Self::Remove,
            Action::Forget => Self::Forget,
        }
    }

    /// With its colours.
    pub(crate) fn painted(self, theme: &Theme) -> String {
        match self {
            Self::None => "   ".to_owned(),
            Self::Add => format!("  {}", theme.paint(Tone::Add, "+")),
            Self::Change => format!("  {}", theme.paint(Tone::Change, "~")),
            Self::Remove => format!("  {}", theme.paint(Tone::Remove, "-")),
            Self::DestroyThenCreate => format!("{}/{}", theme.paint(Tone::Remove, "-"), theme.paint(Tone::Add, "+")),
            Self::CreateThenDestroy => format!("{}/{}", theme.paint(Tone::Add, "+"), theme.paint(Tone::Remove, "-")),
            Self::Read => format!(" {}", theme.paint(Tone::Read, "<=")),
            Self::Forget => format!("  {}", theme.paint(Tone::Remove, ".")),
        }
    }

    /// In the list of symbols.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Add => "create",
            Self::Change => "update in-place",
            Self::Remove => "destroy",
            Self::DestroyThenCreate => "destroy and then create replacement",
            Self::CreateThenDestroy => "create replacement and then destroy",
            Self::Read => "read (data resources)",
            Self::Forget => "forget",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_broken_at_spaces_only() {
        assert_eq!(fill("aaa bbb cc", 7), "aaa bbb\ncc");
        assert_eq!(fill("averylongword b", 5), "averylongword\nb");
        let theme = Theme { width: Some(5), ..Theme::plain() };
        assert_eq!(theme.wrap("aa bb cc\n  kept as it is"), "aa bb\ncc\n  kept as it is");
    }

    #[test]
    fn colours_appear_only_when_asked_for() {
        assert_eq!(Theme::plain().paint(Tone::Add, "x"), "x");
        let colored = Theme { color: true, ..Theme::plain() };
        assert_eq!(colored.paint(Tone::Add, "x"), "\u{1b}[32mx\u{1b}[0m");
        // What is begun ends, whatever the tone.
        assert_eq!(colored.strong(Tone::Plain, "x"), "\u{1b}[1mx\u{1b}[0m");
        assert_eq!(colored.strong(Tone::Add, "x"), "\u{1b}[1m\u{1b}[32mx\u{1b}[0m");
        assert_eq!(Mark::DestroyThenCreate.painted(&Theme::plain()), "-/+");
    }
}
