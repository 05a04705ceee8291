//! Tables.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

use super::style::{Theme, Tone};

/// A table of these rows. Cells may have a tone.
pub(crate) fn table(header: &[String], rows: &[Vec<(String, Tone)>], theme: &Theme) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    if theme.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    // Without a terminal there is no width to fit into; cells stay whole so that lines can be searched.
    table.set_width(theme.width.and_then(|w| u16::try_from(w).ok()).unwrap_or(u16::MAX));
    let styled = |text: &str, tone: Tone| {
        let cell = Cell::new(text);
        match tone {
            _ if !theme.color => cell,
            Tone::Add => cell.fg(Color::Green),
            Tone::Change => cell.fg(Color::Yellow),
            Tone::Remove => cell.fg(Color::Red),
            Tone::Read => cell.fg(Color::Cyan),
            Tone::Bold => cell.add_attribute(Attribute::Bold),
            Tone::Faint => cell.add_attribute(Attribute::Dim),
            Tone::Plain => cell,
        }
    };
    table.set_header(header.iter().map(|h| styled(h, Tone::Bold)).collect::<Vec<_>>());
    for row in rows {
        table.add_row(row.iter().map(|(text, tone)| styled(text, *tone)).collect::<Vec<_>>());
    }
    let text = table.trim_fmt();
    format!("{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_a_terminal_is_as_wide_as_its_cells() {
        let rows = vec![vec![("a".to_owned(), Tone::Plain), ("yes".to_owned(), Tone::Add)]];
        let text = table(&["member".to_owned(), "healthy".to_owned()], &rows, &Theme::plain());
        assert!(text.contains("│ member ┆ healthy │"), "{text}");
        assert!(text.contains("│ a      ┆ yes     │"), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}
