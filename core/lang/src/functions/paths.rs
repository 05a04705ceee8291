//! `abspath`, `basename`, `dirname` and `pathexpand`: calculations with the text of a path.

use super::prelude::*;
use crate::Context;

pub(super) const ABSPATH: Function = Function {
    name: "abspath",
    doc: "The path from the root of the file system.",
    parameters: &[Parameter::string("path")],
    body: Some(|a| {
        let path = a.text(0);
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", a.context.working_directory) };
        Ok(string(clean(&whole)))
    }),
    #[cfg(test)]
    rows: &[("abspath(\"a/../b\")", "\"/here/b\""), ("abspath(\"/x//y/.\")", "\"/x/y\""), ("abspath(\".\")", "\"/here\"")],
    ..Function::BASE
};

pub(super) const BASENAME: Function = Function {
    name: "basename",
    doc: "The last part of a path.",
    parameters: &[Parameter::string("path")],
    body: Some(|a| {
        let path = a.text(0);
        let trimmed = path.trim_end_matches('/');
        Ok(string(match (path, trimmed.rsplit('/').next()) {
            ("", _) => ".",
            (_, Some("") | None) => "/",
            (_, Some(last)) => last,
        }))
    }),
    #[cfg(test)]
    rows: &[("basename(\"/a/b/\")", "\"b\""), ("basename(\"a\")", "\"a\""), ("basename(\"/\")", "\"/\""), ("basename(\"\")", "\".\"")],
    ..Function::BASE
};

pub(super) const DIRNAME: Function = Function {
    name: "dirname",
    doc: "The path without its last part.",
    parameters: &[Parameter::string("path")],
    body: Some(|a| {
        let path = a.text(0);
        Ok(string(clean(path.rfind('/').map_or("", |end| &path[..=end]))))
    }),
    #[cfg(test)]
    rows: &[
        ("dirname(\"/a/b/c\")", "\"/a/b\""),
        ("dirname(\"/a/b/\")", "\"/a/b\""),
        ("dirname(\"a\")", "\".\""),
        ("dirname(\"/a\")", "\"/\""),
        ("dirname(\"\")", "\".\""),
    ],
    ..Function::BASE
};

pub(super) const PATHEXPAND: Function = Function {
    name: "pathexpand",
    doc: "The path with `~` at its start replaced by the home directory.",
    parameters: &[Parameter::string("path")],
    body: Some(|a| {
        let path = a.text(0);
        if is_home(path) && a.context.home.is_none() {
            return Err(FunctionError::at(0, "begins with ~, but there is no home directory; is HOME set?"));
        }
        if path.starts_with('~') && !is_home(path) {
            return Err(FunctionError::at(0, "begins with the home directory of another user, which is not supported"));
        }
        Ok(string(home(a.context, path)))
    }),
    #[cfg(test)]
    rows: &[
        ("pathexpand(\"~/a\")", "\"/home/me/a\""),
        ("pathexpand(\"~\")", "\"/home/me\""),
        ("pathexpand(\"/a/~\")", "\"/a/~\""),
        ("pathexpand(\"~other/a\")", "ERROR of another user"),
    ],
    ..Function::BASE
};

/// A path as [`crate::Files`] wants it.
pub(super) fn expand(context: &Context, path: &str) -> String {
    clean(&home(context, path))
}

fn is_home(path: &str) -> bool {
    path == "~" || path.starts_with("~/")
}

fn home(context: &Context, path: &str) -> String {
    match &context.home {
        Some(home) if is_home(path) => format!("{home}{}", &path[1..]),
        _ => path.to_owned(),
    }
}

/// The shortest path that means the same: no `.`, no `//`, `..` resolved as far as possible. The empty path is `.`.
pub(super) fn clean(path: &str) -> String {
    let root = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => {
                parts.pop();
            }
            ".." if root => {}
            _ => parts.push(part),
        }
    }
    match (root, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn paths_are_cleaned() {
        let rows = [("", "."), ("./a", "a"), ("a//b/", "a/b"), ("../a", "../a"), ("a/../../b", "../b"), ("/..", "/"), ("/a/../..", "/")];
        for (path, expected) in rows {
            assert_eq!(clean(path), expected, "{path}");
        }
    }
}
