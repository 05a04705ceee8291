//! `file`, `filebase64` and `fileexists`

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::paths::expand;
use super::prelude::*;

pub(super) const FILE: Function = Function {
    name: "file",
    doc: "The text of a file.",
    parameters: &[Parameter::string("path")],
    body: Some(|a| {
        let text = String::from_utf8(read(a)?);
        let text = text.map_err(|_| FunctionError::at(0, "is not a text file (UTF-8); filebase64 reads any file"))?;
        Ok(string(text))
    }),
    #[cfg(test)]
    rows: &[
        ("file(\"hello.txt\")", "\"hello\""),
        ("file(\"./hello.txt\")", "\"hello\""),
        ("file(\"~/notes.txt\")", "\"notes\""),
        ("file(\"bytes.bin\")", "ERROR is not a text file"),
        ("file(\"nope.txt\")", "ERROR \"nope.txt\" can't be read: no such file"),
        ("file(sensitive(\"nope.txt\"))", "ERROR the (secret) value can't be read"),
        ("file(u.id)", "UNKNOWN string"),
    ],
    ..Function::BASE
};

pub(super) const BASE64: Function = Function {
    name: "filebase64",
    doc: "The bytes of a file in Base64.",
    parameters: &[Parameter::string("path")],
    body: Some(|a| Ok(string(STANDARD.encode(read(a)?)))),
    #[cfg(test)]
    rows: &[("filebase64(\"bytes.bin\")", "\"//4=\""), ("filebase64(\"hello.txt\")", "\"aGVsbG8=\"")],
    ..Function::BASE
};

pub(super) const EXISTS: Function = Function {
    name: "fileexists",
    doc: "True if there is a file, false if there is nothing; what is there and is no file is an error.",
    parameters: &[Parameter::string("path")],
    gives: Gives::Is(Shape::Bool),
    body: Some(|a| {
        let there = a.context.files.exists(&expand(a.context, a.text(0)));
        let there = there.map_err(|what| FunctionError::at(0, format!("{} {what}", a.quote(0))))?;
        Ok(there.into())
    }),
    #[cfg(test)]
    rows: &[
        ("fileexists(\"hello.txt\")", "true"),
        ("fileexists(\"nope.txt\")", "false"),
        ("fileexists(\"~/notes.txt\")", "true"),
        ("fileexists(\"conf\")", "ERROR \"conf\" is a directory"),
    ],
    ..Function::BASE
};

/// The bytes of the file that the first argument names.
pub(super) fn read(a: &Arguments<'_>) -> Result<Vec<u8>, FunctionError> {
    let path = expand(a.context, a.text(0));
    // The reason may name the path again, which a secret one does not allow.
    a.context.files.read(&path).map_err(|why| {
        let why = if a.quote(0).starts_with('"') { format!(": {why}") } else { String::new() };
        FunctionError::at(0, format!("{} can't be read{why}", a.quote(0)))
    })
}
