//! Text inside markup: XML, SVG and HTML; and text with a terminal's colours as HTML.

use super::style::Tone;

/// For text and for attributes in double quotes; signs that XML 1.0 does not have at all are left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(sign),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

/// A tone as a class.
pub(crate) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Add => "add",
        Tone::Change => "change",
        Tone::Remove => "remove",
        Tone::Read => "read",
        Tone::Bold => "bold",
        Tone::Plain | Tone::Faint => "faint",
    }
}

/// What `Theme` painted, as HTML: what begins with a code ends with the next reset. Everything else is text, whatever it holds.
pub(crate) fn painted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut open = 0;
    let mut pieces = text.split("\u{1b}[");
    out.push_str(&escaped(pieces.next().unwrap_or_default()));
    for piece in pieces {
        let (code, rest) = piece.split_once('m').unwrap_or(("", piece));
        match tone(code) {
            Some(tone) => {
                out.push_str(&format!("<i class={}>", class(tone)));
                open += 1;
            }
            None => out.extend(std::iter::repeat_n("</i>", std::mem::take(&mut open))),
        }
        out.push_str(&escaped(rest));
    }
    out.extend(std::iter::repeat_n("</i>", open));
    out
}

/// The tone of a code of `Theme::paint`; `None`: the reset.
fn tone(code: &str) -> Option<Tone> {
    [Tone::Add, Tone::Change, Tone::Remove, Tone::Read, Tone::Bold, Tone::Faint].into_iter().find(|t| t.code() == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::style::Theme;

    #[test]
    fn colours_become_elements_and_text_stays_text() {
        let theme = Theme { color: true, ..Theme::plain() };
        let text =
            format!("{} <b>&amp; {} {}", theme.paint(Tone::Add, "+"), theme.strong(Tone::Remove, "a\"b"), theme.paint(Tone::Faint, "x"));
        assert_eq!(
            painted(&text),
            "<i class=add>+</i> &lt;b&gt;&amp;amp; <i class=bold><i class=remove>a&quot;b</i></i> <i class=faint>x</i>"
        );
        assert_eq!(painted("plain\u{7}\n"), "plain\n");
        assert_eq!(painted(&theme.paint(Tone::Add, "m[31m")), "<i class=add>m[31m</i>");
    }
}
