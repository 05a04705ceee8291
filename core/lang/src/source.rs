//! Source texts by id, and where a byte is in them. Knows nothing of the language.

use karmaform_model::FileId;
use unicode_segmentation::UnicodeSegmentation;

/// One text with the name shown to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// As the user would write it.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// All texts of a run; a [`FileId`] is an index into them. Configuration files and variable files that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The texts.
    pub files: Vec<SourceFile>,
}

/// What an id that is not there stands for, so that drawing a diagnostic can't fail.
static NOTHING: SourceFile = SourceFile { path: String::new(), text: String::new() };

impl Sources {
    /// Adds a text.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        self.files.push(file);
        FileId(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX))
    }

    /// The text of this id; an empty one if there is none.
    pub fn get(&self, id: FileId) -> &SourceFile {
        self.files.get(id.0 as usize).unwrap_or(&NOTHING)
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl Iterator<Item = FileId> {
        (0..u32::try_from(self.files.len()).unwrap_or(u32::MAX)).map(FileId)
    }

    /// Line and column of a byte, both from 1. Columns count characters as seen, as `length` and Terraform do.
    pub fn position(&self, id: FileId, byte: u32) -> (usize, usize) {
        let text = &self.get(id).text;
        let mut end = (byte as usize).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (line, seen(before[start..].trim_start_matches('\u{feff}')) + 1)
    }
}

/// How many characters as seen a part of a line has. Two ASCII characters in a row are two, so only what stands around others is looked at closely: a line
/// may have megabytes, and is asked of for each mistake in it.
fn seen(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut count, mut at) = (0, 0);
    while let Some(first) = bytes[at..].iter().position(|byte| !byte.is_ascii()) {
        let other = at + first;
        // What is before it may be a letter that gets an accent, and what is behind it the number that a sign goes with.
        let start = if first == 0 { other } else { other - 1 };
        let end = bytes[other..].windows(2).position(<[u8]>::is_ascii).map_or(text.len(), |both| other + both + 1);
        count += start - at + text[start..end].graphemes(true).count();
        at = end;
    }
    count + text.len() - at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_never_fail() {
        let mut sources = Sources::default();
        let id = sources.add(SourceFile { path: "a".into(), text: "a = 1\né = 2\n".into() });
        assert_eq!(sources.position(id, 0), (1, 1));
        assert_eq!(sources.position(id, 6), (2, 1));
        assert_eq!(sources.position(id, 8), (2, 2));
        assert_eq!(sources.position(id, 7), (2, 1), "inside a character");
        assert_eq!(sources.position(id, 999), (3, 1));
        assert_eq!(sources.position(FileId(7), 3), (1, 1));
        let seen = sources.add(SourceFile { path: "b".into(), text: "e\u{301}👨\u{200d}👩\u{200d}👧x".into() });
        assert_eq!(sources.position(seen, 3), (1, 2), "a letter with its accent");
        assert_eq!(sources.position(seen, 21), (1, 3), "a family");
        assert_eq!(sources.get(FileId(u32::MAX)).path, "");
    }

    #[test]
    fn characters_are_counted_as_if_all_were_looked_at() {
        let parts =
            ["", "a", "ab", "\r", "e\u{301}", "\u{301}", "\u{600}1", "1\u{fe0f}\u{20e3}", "👨\u{200d}👩", "🇩🇪🇫", "é", "각", "\u{feff}"];
        for (a, b) in parts.iter().flat_map(|a| parts.iter().map(move |b| (a, b))) {
            for (c, d) in parts.iter().flat_map(|c| parts.iter().map(move |d| (c, d))) {
                let text = format!("{a}{b}{c}{d}");
                assert_eq!(seen(&text), text.graphemes(true).count(), "{text:?}");
            }
        }
    }

    // The fence against clocks is for the library.
    #[test]
    #[allow(clippy::disallowed_types, clippy::disallowed_methods)]
    fn a_long_line_is_not_looked_at_closely_for_each_place_in_it() {
        let text = format!("é{}", "x".repeat(1 << 22));
        let took = |work: &dyn Fn()| {
            let started = std::time::Instant::now();
            (0..10).for_each(|_| work());
            started.elapsed()
        };
        let closely = took(&|| assert_eq!(text.graphemes(true).count(), (1 << 22) + 1));
        let sources = Sources { files: vec![SourceFile { path: "a".into(), text: text.clone() }] };
        let as_it_is = took(&|| assert_eq!(sources.position(FileId(0), u32::MAX), (1, (1 << 22) + 2)));
        assert!(as_it_is < closely, "{as_it_is:?}, and {closely:?} closely");
    }
}
