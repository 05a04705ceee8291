//! Paths of files as users write them. Touches no file.

use std::path::{Path, PathBuf};

/// A path as it is written: `~/` is the home folder (where there is one), and what is not absolute is below `directory`.
pub fn written_path(directory: &Path, home: Option<&Path>, path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => directory.join(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_and_directory_are_put_before() {
        let check = |home: Option<&str>, path: &str, expected: &str| {
            assert_eq!(written_path(Path::new("/project"), home.map(Path::new), path), Path::new(expected));
        };
        check(Some("/home/me"), "~/key", "/home/me/key");
        check(Some("/home/me"), "key", "/project/key");
        check(Some("/home/me"), "/key", "/key");
        check(Some("/home/me"), "~other/key", "/project/~other/key");
        check(None, "~/key", "/project/~/key");
    }
}
