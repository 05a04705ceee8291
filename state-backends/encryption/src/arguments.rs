//! What stands in `encryption { ... }`, and in the `fallback` inside of it.

use std::path::Path;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{Attribute, Diagnostic, Object, Schema, Type, Value, written_path};

use crate::age_keys::Age;
use crate::command::Program;
use crate::key::Key;

/// Fewer characters are guessed.
const SHORTEST: usize = 16;
/// The arguments that say how a key is had; each block has one of them.
const WAYS: [&str; 6] = ["passphrase", "key_file", "age_recipients", "aws_kms", "command", "unencrypted"];

/// Which arguments there are.
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(build);
    &SCHEMA
}

fn build() -> Schema {
    let text = |name, doc| Attribute::optional(name, Type::String, doc);
    Schema::new(
        "Encrypts state, saved plans and journals before they are written (AES-256-GCM), wherever they are kept. Exactly one way to the key is given.",
        vec![
            text(
                "passphrase",
                "A passphrase of at least 16 characters; the key is derived from it by Argon2id. Best from a sensitive variable.",
            )
            .secret(),
            text(
                "key_file",
                "File with a key of 32 bytes in base64, relative to the configuration. `head -c 32 /dev/urandom | base64 > state.key` makes one.",
            ),
            Attribute::optional(
                "age_recipients",
                Type::list(Type::String),
                "Public keys of age (`age1...`): whoever has the identity of one of them can read.",
            ),
            text(
                "age_identity_file",
                "File with identities of age, with which this run reads. Relative to the configuration; `~` is the home folder.",
            ),
            Attribute::optional(
                "aws_kms",
                Type::Any,
                "A symmetric key of AWS KMS that wraps a new key for each run: an object with `key_id`, and, where they differ from what Amazon's tools find, arguments as the backend `s3` has them: `region`, `profile`, `endpoints` (with `kms`), `assume_role` and others.",
            ),
            Attribute::optional(
                "command",
                Type::list(Type::String),
                "A program with arguments that keeps the key. It is called with `wrap` at the end, reads a key in base64 and prints it wrapped; or with `unwrap`, and does the reverse.",
            ),
            Attribute::optional(
                "unencrypted",
                Type::Bool,
                "Encrypt nothing; together with a `fallback`, this is the way back to what lies in clear.",
            ),
            Attribute::optional(
                "fallback",
                Type::Any,
                "Another way to a key, with the same arguments, that is tried where the first does not fit: the old key while keys are changed, or `unencrypted = true` while a state is encrypted for the first time. Everything that is written is sealed with the first.",
            ),
        ],
    )
}

/// A way to keys, as it is written.
pub(crate) enum Way {
    Passphrase(String),
    KeyFile(Key),
    Age(Age),
    /// The arguments; whoever has a client of KMS reads them.
    AwsKms(Object),
    Command(Program),
    Clear,
}

/// What is wrong with the block.
pub(crate) fn wrong(detail: &str) -> Diagnostic {
    Diagnostic::error("Invalid encryption configuration", detail)
}

/// What the block says, and what its `fallback` does.
pub(crate) fn read(arguments: &Object, directory: &Path, home: Option<&Path>) -> Result<(Way, Option<Way>), Diagnostic> {
    let fallback = match arguments.get("fallback").filter(|v| !v.is_null()) {
        None => None,
        Some(value) => {
            let inside = value.as_entries().ok_or_else(|| wrong("\"fallback\" must be a block."))?;
            if let Some(name) = inside.keys().find(|n| n.as_str() == "fallback" || schema().attribute(n).is_none()) {
                return Err(wrong(&format!("A fallback has no argument \"{name}\"."))
                    .with_hint("It has the arguments of the encryption block, and no fallback of its own."));
            }
            Some(way(inside, directory, home, false)?)
        }
    };
    Ok((way(arguments, directory, home, true)?, fallback))
}

fn way(arguments: &Object, directory: &Path, home: Option<&Path>, writes: bool) -> Result<Way, Diagnostic> {
    let is_given = |name: &str| arguments.get(name).is_some_and(|v| !v.is_null() && v.as_bool() != Some(false));
    let mut given: Vec<_> = WAYS.into_iter().filter(|name| is_given(name)).collect();
    // Whoever only reads needs no recipients.
    if !writes && !is_given("age_recipients") && is_given("age_identity_file") {
        given.push("age_identity_file");
    }
    let [name] = given[..] else {
        let detail = match given[..] {
            [] => "It says no way to a key.".to_owned(),
            _ => format!("It says several ways to a key: \"{}\".", given.join("\", \"")),
        };
        return Err(wrong(&detail).with_hint(format!("Give exactly one of {}.", WAYS.join(", "))));
    };
    let value = arguments.get(name).filter(|v| v.is_wholly_known()).ok_or_else(|| {
        wrong(&format!("The value of \"{name}\" is not known here."))
            .with_hint("Where it comes from a variable, give it by KF_VAR_<name> or in a variables file: not every command takes -var.")
    })?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let words = || value.as_items().map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    let not_of_its_type = || wrong(&format!("\"{name}\" is not of the right type."));
    match name {
        "passphrase" => {
            let passphrase = value.as_str().ok_or_else(not_of_its_type)?;
            if writes && passphrase.chars().count() < SHORTEST {
                return Err(wrong(&format!("The passphrase has fewer than {SHORTEST} characters, and would be guessed."))
                    .with_hint("Take a longer one, like `head -c 24 /dev/urandom | base64` makes."));
            }
            Ok(Way::Passphrase(passphrase.to_owned()))
        }
        "key_file" => Ok(Way::KeyFile(key_file(&written_path(directory, home, value.as_str().ok_or_else(not_of_its_type)?))?)),
        "age_recipients" | "age_identity_file" => {
            let recipients = if name == "age_recipients" { words().ok_or_else(not_of_its_type)? } else { Vec::new() };
            if writes && recipients.is_empty() {
                return Err(wrong("\"age_recipients\" names nobody, so nobody could read what is written."));
            }
            let identities = text("age_identity_file").map(|path| written_path(directory, home, path));
            Ok(Way::Age(Age::read(&recipients, identities.as_deref())?))
        }
        "aws_kms" => Ok(Way::AwsKms(value.as_entries().cloned().ok_or_else(not_of_its_type)?)),
        "command" => {
            let words = words().filter(|w| !w.is_empty()).ok_or_else(|| {
                wrong("\"command\" must be a list with a program and its arguments.").with_hint("Write it like [\"vault-key\", \"prod\"].")
            })?;
            Ok(Way::Command(Program { words: words.into_iter().map(str::to_owned).collect(), directory: directory.to_owned() }))
        }
        _ => Ok(Way::Clear),
    }
}

fn key_file(path: &Path) -> Result<Key, Diagnostic> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        wrong(&format!("The file that \"key_file\" names can't be read: {}.", e.kind()))
            .with_hint("Correct the path, which is relative to the configuration, or put the file there.")
    })?;
    STANDARD.decode(text.trim()).ok().and_then(|bytes| Key::new(&bytes)).ok_or_else(|| {
        wrong("The file that \"key_file\" names holds no key: it must hold 32 bytes in base64, and nothing else.")
            .with_hint("Make one with: head -c 32 /dev/urandom | base64")
    })
}
