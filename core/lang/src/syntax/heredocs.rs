//! Heredocs that the parser would end elsewhere: it knows no end on the first line, and takes a line that begins with the word for the end. They get
//! a word of the same length that begins no line.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::scan::{doubtful_heredocs, identifier_length};

/// The text with other words for such heredocs, as long as it was.
pub(super) fn with_clear_ends(text: &str, is_template: bool) -> Cow<'_, str> {
    let doubtful = doubtful_heredocs(text, is_template);
    if doubtful.is_empty() {
        return text.into();
    }
    let mut taken: BTreeSet<String> = text.lines().map(|line| word_of(line.trim_start_matches([' ', '\t'])).to_owned()).collect();
    let mut copy = text.to_owned();
    let mut number = 0;
    for heredoc in doubtful {
        let Some(word) = free(heredoc.opening.len(), &mut number, &taken) else { continue };
        copy.replace_range(heredoc.opening, &word);
        copy.replace_range(heredoc.closing, &word);
        taken.insert(word);
    }
    copy.into()
}

fn word_of(line: &str) -> &str {
    &line[..identifier_length(line)]
}

/// The next word of so many letters that is not taken. Each number is tried once, so that many heredocs cost no more than their number.
fn free(length: usize, number: &mut usize, taken: &BTreeSet<String>) -> Option<String> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let words = LETTERS.len().checked_pow(u32::try_from(length).ok()?).unwrap_or(usize::MAX);
    for _ in 0..words.min(taken.len() + 1) {
        let mut rest = *number % words;
        *number = number.wrapping_add(1);
        let mut word = String::with_capacity(length);
        for _ in 0..length {
            word.push(char::from(LETTERS[rest % LETTERS.len()]));
            rest /= LETTERS.len();
        }
        if !taken.contains(&word) {
            return Some(word);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_mislead_are_others() {
        let text = "a = <<E\nE\nb = <<-E\n  x\n  E; x\n  E\nc = <<F\nx\nF\n";
        assert_eq!(with_clear_ends(text, false), "a = <<A\nA\nb = <<-B\n  x\n  E; x\n  B\nc = <<F\nx\nF\n");
        let plain = "c = <<F\nx\nF\n";
        assert!(matches!(with_clear_ends(plain, false), Cow::Borrowed(_)));
        assert_eq!(with_clear_ends("${<<EOT\nEOT\n}", true), "${<<AAA\nAAA\n}");
    }
}
