//! `local_file`: a file of the machine that karmaform runs on.

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};
use sha2::{Digest as _, Sha256};

use crate::disk;

pub(crate) struct LocalFile {
    schema: Schema,
}

const MODES: [&str; 2] = ["file_permission", "directory_permission"];
const CONTENTS: [&str; 2] = ["content", "content_base64"];

impl LocalFile {
    pub(crate) fn new() -> Self {
        let schema = Schema::new(
            "A file of the machine that karmaform runs on. It is written whole or not at all; what is there already is replaced.",
            vec![
                Attribute::required("filename", Type::String, "Its path; relative ones start in the working directory.").identity(),
                Attribute::optional("content", Type::String, "Its text. Exactly one of `content` and `content_base64` must be given."),
                Attribute::optional("content_base64", Type::String, "Its bytes in base64, for what is no text."),
                Attribute::optional("file_permission", Type::String, "Its mode in octal.").or("0644"),
                Attribute::optional("directory_permission", Type::String, "The mode in octal of directories that have to be made.")
                    .or("0755"),
                Attribute::computed("content_sha256", Type::String, "SHA-256 of its bytes, in hexadecimal."),
                Attribute::computed("id", Type::String, "The same as `content_sha256`, so that others can be triggered by it."),
            ],
        );
        Self { schema }
    }
}

/// The bytes that an object stands for; `None` if they are not known yet.
fn bytes(object: &Object) -> Result<Option<Vec<u8>>, Diagnostic> {
    let given = |name: &str| object.get(name).filter(|v| !v.is_null());
    match (given("content"), given("content_base64")) {
        (Some(text), None) => Ok(text.as_str().map(|t| t.as_bytes().to_vec())),
        (None, Some(encoded)) => match encoded.as_str().map(|e| STANDARD.decode(e)) {
            None => Ok(None),
            Some(Ok(bytes)) => Ok(Some(bytes)),
            Some(Err(_)) => Err(Diagnostic::error(
                "Content is not base64",
                "The value of \"content_base64\" does not decode: it must be standard base64 with padding.",
            )
            .with_hint("Use filebase64() or base64encode(), or give plain text in \"content\".")),
        },
        (Some(_), Some(_)) => Err(Diagnostic::error(
            "Two contents for one file",
            "Both \"content\" and \"content_base64\" are given, and they exclude each other.",
        )),
        (None, None) => Err(Diagnostic::error("No content for a file", "Neither \"content\" nor \"content_base64\" is given.")
            .with_hint("For an empty file write content = \"\".")),
    }
}

/// Permission bits written in octal, with or without leading zeros.
fn mode(text: &str) -> Option<u32> {
    let fits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    u32::from_str_radix(text, 8).ok().filter(|m| fits && *m <= 0o7777)
}

fn mode_of(object: &Object, name: &str, default: u32) -> u32 {
    object.get(name).and_then(Value::as_str).and_then(mode).unwrap_or(default)
}

fn check(wanted: &Object) -> Result<(), Diagnostics> {
    let mut problems = Diagnostics::new();
    if let Err(problem) = bytes(wanted) {
        problems.push(problem);
    }
    if wanted.get("filename").and_then(Value::as_str).is_some_and(|f| f.is_empty() || f.ends_with('/') || f.contains('\0')) {
        problems
            .push(Diagnostic::error("Not a file name", "The value of \"filename\" is empty, ends in a slash or holds a null character."));
    }
    for name in MODES {
        if wanted.get(name).and_then(Value::as_str).is_some_and(|text| mode(text).is_none()) {
            problems.push(
                Diagnostic::error("Not a file mode", format!("The value of \"{name}\" is not an octal number from 0 to 7777."))
                    .with_hint("Write it like \"0644\"."),
            );
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// What is, written as it is wanted where both are equal: "644" is "0644", and the same bytes may be text or base64. A file says nothing of
/// how its directories were made.
fn in_wanted_spelling(seen: &Object, wanted: &Object) -> Object {
    let mut before = seen.clone();
    let mut take = |name: &str| match wanted.get(name) {
        Some(value) => drop(before.insert(name.into(), value.clone())),
        None => drop(before.remove(name)),
    };
    let mode_in = |o: &Object, name: &str| o.get(name).and_then(Value::as_str).and_then(mode);
    let [file, directory] = MODES;
    for name in [file, directory] {
        if mode_in(seen, name).is_some_and(|is| Some(is) == mode_in(wanted, name)) {
            take(name);
        }
    }
    if seen.get(directory).is_none_or(Value::is_null) {
        take(directory);
    }
    if let (Ok(Some(is)), Ok(Some(should))) = (bytes(seen), bytes(wanted))
        && is == should
    {
        CONTENTS.iter().for_each(|name| take(name));
    }
    before
}

/// Fills in the hash, which is known as soon as the content is; as secret as the content.
fn with_hash(object: &mut Object) {
    let secret = CONTENTS.iter().any(|n| object.get(n).is_some_and(Value::contains_secret));
    let hash = match bytes(object) {
        Ok(Some(bytes)) => Value::from(hexadecimal(&bytes)),
        _ => Value::unknown_not_null(Type::String),
    };
    let hash = hash.secret_if(secret);
    object.insert("id".into(), hash.clone());
    object.insert("content_sha256".into(), hash);
}

fn hexadecimal(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

impl ResourceSpec for LocalFile {
    fn name(&self) -> &'static str {
        "local_file"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        check(wanted)?;
        let before = before.map(|b| in_wanted_spelling(b, wanted));
        let mut change = default_plan(&self.schema, before.as_ref(), Some(wanted));
        if let Some(after) = change.after_mut() {
            with_hash(after);
        }
        Ok(change)
    }
}

impl ResourceType<()> for LocalFile {
    fn observe<'a>(&'a self, (): &'a (), ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let filename = filename(&ask.identity)?;
            let found = disk::read(Path::new(filename)).map_err(|e| failed("Local file can't be read", filename, &e))?;
            Ok(found.map(|found| observed(filename, found, ask.known.as_ref())))
        })
    }

    fn apply<'a>(&'a self, (): &'a (), change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(after) = change.after() else {
                let filename = filename(change.before().unwrap_or(&Object::new()))?.to_owned();
                disk::remove(Path::new(&filename)).map_err(|e| failed("Local file can't be removed", &filename, &e))?;
                return Ok(None);
            };
            let filename = filename(after)?;
            let Some(content) = bytes(after)? else { return Err(not_known("content")) };
            let (mode, directory_mode) = (mode_of(after, "file_permission", 0o644), mode_of(after, "directory_permission", 0o755));
            disk::write(Path::new(filename), &content, mode, directory_mode)
                .map_err(|e| failed("Local file can't be written", filename, &e))?;
            let mut object = after.clone();
            with_hash(&mut object);
            Ok(Some(object))
        })
    }
}

/// A file as an object. Its content goes where the state has it; bytes that are no text can only go to `content_base64`.
fn observed(filename: &str, found: disk::Found, known: Option<&Object>) -> Object {
    let secret = |name: &str| known.and_then(|k| k.get(name)).is_some_and(Value::contains_secret);
    let secret = secret("content") || secret("content_base64");
    let as_base64 = known.and_then(|k| k.get("content_base64")).is_some_and(|v| !v.is_null());
    let (text, encoded) = match String::from_utf8(found.content) {
        Ok(text) if !as_base64 => (Value::from(text).secret_if(secret), Value::null(Type::String)),
        Ok(text) => (Value::null(Type::String), Value::from(STANDARD.encode(text)).secret_if(secret)),
        Err(error) => (Value::null(Type::String), Value::from(STANDARD.encode(error.as_bytes())).secret_if(secret)),
    };
    let mut object = Object::from([
        ("filename".to_owned(), filename.into()),
        ("content".to_owned(), text),
        ("content_base64".to_owned(), encoded),
        ("file_permission".to_owned(), format!("{:04o}", found.mode).into()),
    ]);
    with_hash(&mut object);
    object
}

fn filename(object: &Object) -> Result<&str, Diagnostic> {
    object.get("filename").and_then(Value::as_str).ok_or_else(|| not_known("filename"))
}

fn not_known(name: &str) -> Diagnostic {
    Diagnostic::error("Value is not known", format!("The value of \"{name}\" is still not known when it is needed. This is a bug."))
}

fn failed(summary: &str, filename: &str, error: &io::Error) -> Diagnostic {
    let diagnostic = Diagnostic::error(summary, format!("{filename}: {error}."));
    match error.kind() {
        io::ErrorKind::PermissionDenied => diagnostic.with_hint("Check the permissions of the file and of the directories above it."),
        io::ErrorKind::InvalidInput => diagnostic.with_hint("Move what is there away, or choose another \"filename\"."),
        io::ErrorKind::StorageFull => diagnostic.with_hint("Free space on the disk, then apply again."),
        _ => diagnostic,
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
