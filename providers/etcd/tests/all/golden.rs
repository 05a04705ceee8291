//! Texts as they were when somebody last looked at them: `tests/golden`.

use std::path::Path;

/// Compares with a file; `BLESS=1` writes it.
#[track_caller]
pub(crate) fn golden(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "{file}: read the difference, then bless it with BLESS=1");
}
