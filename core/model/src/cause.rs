//! What is behind an error of a library.

use std::error::Error;

/// What is at the bottom of a chain of errors, its first line without a full stop: the others only say that something failed, and name the address.
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let words = last.to_string();
    words.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}
