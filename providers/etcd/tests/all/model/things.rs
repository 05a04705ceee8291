//! What the things on a host are named by, and what their provider computes.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use karmaform_model::{Object, Value};

/// What names a thing of this type on its host.
pub(super) fn identity(resource_type: &str, object: &Object) -> Option<String> {
    let attribute = match resource_type {
        "ssh_directory" | "ssh_file" | "ssh_artifact" => "path",
        "ssh_command" => "command",
        _ => "name",
    };
    object.get(attribute).and_then(Value::as_str).map(str::to_owned)
}

/// The sum of these texts.
fn sum(object: &Object, names: &[&str]) -> Value {
    let mut hasher = DefaultHasher::new();
    names.iter().for_each(|name| object.get(name).and_then(Value::as_str).hash(&mut hasher));
    Value::from(format!("{:016x}", hasher.finish()))
}

/// Fills in what a provider would.
pub(super) fn compute(resource_type: &str, object: &mut Object) {
    let sum = |names: &[&str]| sum(object, names);
    let (name, value) = match resource_type {
        "ssh_file" => ("sha256", sum(&["content"])),
        "ssh_systemd_unit" => ("sha256", sum(&["content"])),
        "ssh_artifact" => ("content_sha256", sum(&["source", "sha256", "member"])),
        "ssh_user" => ("uid", 997i64.into()),
        "ssh_command" => ("output", "".into()),
        _ => return,
    };
    object.insert(name.to_owned(), value);
    if resource_type == "ssh_user" {
        object.insert("gid".to_owned(), 997i64.into());
    }
}

/// What a provider tells ahead of a file with this content.
pub(crate) fn file_sum(object: &Object) -> Option<Value> {
    object.get("content").filter(|c| c.is_wholly_known())?;
    Some(sum(object, &["content"]))
}
