//! Keys that encrypt objects in etcd: the configuration that they go into, and changes of them that would make data unreadable.
//!
//! Sources: "Encrypting Confidential Data at Rest" and "Rotate a decryption key" in the documentation of Kubernetes: an API server reads with
//! every key of its list and writes with the first, so all servers must know a key before one writes with it, and it must stay until nothing
//! is written with it any more.

use karmaform_model::{Arg, Diagnostic, Diagnostics, Object, Scene, Type, Value};

use super::arguments::Arguments;
use crate::read::Reader;
use crate::versions::Component;

/// 32 bytes in base64.
const KEY_LENGTH: usize = 44;
/// What writes every Secret again, with the first key.
const REWRITE: &str = "kubectl get secrets --all-namespaces -o json | kubectl replace -f -";

/// The configuration for these keys. `secretbox` is the strongest of the providers whose keys are in the file.
pub(crate) fn configuration(keys: &Value, resources: &[String], encrypts: bool, reader: &mut Reader<'_, '_>) -> Option<Arg> {
    if keys.is_unknown() {
        return reader.later("keys");
    }
    let items = keys.as_items().unwrap_or_default();
    if items.is_empty() {
        return reader.wrong("keys", "is empty, so nothing would be encrypted");
    }
    let mut head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources:\n".to_owned();
    let default = ["secrets".to_owned()];
    for resource in if resources.is_empty() { &default } else { resources } {
        head.push_str(&format!("  - \"{resource}\"\n"));
    }
    // What comes first writes. Last, it reads what was written before there was a key.
    let plain = "  - identity: {}\n";
    let before = if encrypts { "" } else { plain };
    let mut parts: Vec<Arg> = vec![format!("{head}  providers:\n{before}  - secretbox:\n      keys:\n").into()];
    for key in items {
        let part = |name: &str| key.get(name).cloned().unwrap_or_else(|| Value::unknown_not_null(Type::String));
        let (name, secret) = (part("name"), part("secret"));
        if secret.as_str().is_some_and(|s| s.len() != KEY_LENGTH || !s.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))) {
            return reader.wrong("keys", "has a secret that is not 32 bytes in base64 (`head -c 32 /dev/urandom | base64`)");
        }
        if name.as_str().is_some_and(|n| n.is_empty() || !n.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))) {
            return reader.wrong("keys", "has a name that does not consist of letters, digits, \".\", \"_\" and \"-\"");
        }
        parts.extend(["      - name: \"".into(), name.into(), "\"\n        secret: ".into(), secret.secret().into(), "\n".into()]);
    }
    if encrypts {
        parts.push(plain.into());
    }
    Some(Arg::Text(parts))
}

/// A key as far as it is known.
#[derive(PartialEq)]
struct Key<'a> {
    name: &'a str,
    secret: &'a str,
}

/// The keys of a block `encryption`, and whether the first of them writes; `None` if there are none or they are not known.
fn keys(arguments: &Object) -> Option<(Vec<Key<'_>>, bool)> {
    let block = arguments.get("encryption").filter(|b| !b.is_null())?;
    let items = block.get("keys")?.as_items()?;
    let of = |item| Some(Key { name: Value::get(item, "name")?.as_str()?, secret: Value::get(item, "secret")?.as_str()? });
    Some((items.iter().map(of).collect::<Option<_>>()?, block.get("encrypt").and_then(Value::as_bool).unwrap_or(true)))
}

/// Refuses to lose the key that data is encrypted with, and to write with one that not all replicas can read with.
pub(crate) fn check(scene: &Scene<'_>, wanted: &Arguments, found: &mut Diagnostics) {
    let (Some(before), Some(after)) = (scene.before, scene.wanted) else { return };
    // Without keys of karmaform's own to compare there is nothing to tell: a whole configuration is its author's.
    let Some((old, wrote)) = keys(before) else { return };
    let is_there = |name: &str| after.get("encryption").and_then(|b| b.get(name)).is_some_and(|v| !v.is_null());
    if is_there("config") || (is_there("keys") && keys(after).is_none()) {
        return;
    }
    let (new, writes) = keys(after).unwrap_or_default();
    let Some(writer) = old.first() else { return };
    if wrote && !new.contains(writer) {
        let detail = format!(
            "What is in etcd was encrypted with the key \"{}\", which would be gone: every Secret would be unreadable, and the Karmada API \
             would not start again.",
            writer.name
        );
        let diagnostic = Diagnostic::error("The key that data is encrypted with would go", detail);
        found.push(if new.is_empty() {
            diagnostic.with_hint(format!("Set `encrypt = false` in the block first and apply; then `{REWRITE}`; then take the block away."))
        } else {
            diagnostic.with_hint(format!("Keep it in `keys`, behind the new one, until everything was written again: `{REWRITE}`."))
        });
        return;
    }
    let several = wanted.components.iter().any(|(c, s)| matches!(c, Component::ApiServer) && s.replicas() > 1);
    if let Some(first) = new.first().filter(|k| writes && several && !old.contains(k)) {
        let detail = format!(
            "The key \"{}\" is new and comes first. During the rollout the replicas that don't know it yet could not read what the others write \
             with it.",
            first.name
        );
        found.push(
            Diagnostic::error("A key that not all replicas know would encrypt", detail)
                .with_hint("Put it second and apply; then put it first and apply again."),
        );
    }
}

/// What a change of the keys means, in plain words.
pub(crate) fn impact(scene: &Scene<'_>) -> Vec<String> {
    let (Some(before), Some(after)) = (scene.before, scene.wanted) else { return Vec::new() };
    let (old, wrote) = keys(before).unwrap_or_default();
    let (new, writes) = keys(after).unwrap_or_default();
    let mut lines = Vec::new();
    for gone in old.iter().filter(|k| !new.contains(k)) {
        lines.push(format!("the key \"{}\" goes: what was encrypted with it and not written again can't be read any more", gone.name));
    }
    let writer = |keys: &[Key<'_>], on: bool| keys.first().filter(|_| on).map(|k| k.name.to_owned());
    let (was, is) = (writer(&old, wrote && !old.is_empty()), writer(&new, writes));
    match (&was, &is) {
        (was, Some(is)) if was.as_ref() != Some(is) => {
            lines.push(format!("the key \"{is}\" encrypts from now on; what is in etcd stays as it is until it is written again"));
        }
        (Some(was), None) if !new.is_empty() => {
            lines.push(format!("nothing is encrypted from now on; what was encrypted with \"{was}\" stays so until it is written again"));
        }
        _ => {}
    }
    lines
}
