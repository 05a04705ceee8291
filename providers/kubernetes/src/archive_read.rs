//! From the bytes of an archive to the manifests in it: unpacked, filled in, merged with patches. Pure.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use karmaform_model::Diagnostic;
use serde_json::Value as Json;

/// The most that may come out of an archive.
const LARGEST: u64 = 256 << 20;
/// The largest file; the API server takes objects of some 1.5 MB.
const LARGEST_FILE: u64 = 16 << 20;
/// The most entries.
const MOST: usize = 20_000;
/// What says for `kustomize` how the others belong together; not an object of a cluster.
const NO_MANIFESTS: &[&str] = &["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What to take, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recipe<'a> {
    /// The prefix of the manifests' paths.
    pub(crate) include: &'a str,
    /// The prefix of the patches' paths.
    pub(crate) patches: Option<&'a str>,
    /// What `{{key}}` stands for.
    pub(crate) substitutions: BTreeMap<&'a str, &'a str>,
    /// Patches that are not in the archive.
    pub(crate) overrides: Vec<Json>,
}

fn broken(detail: String) -> Diagnostic {
    Diagnostic::error("Archive can't be used", detail)
}

/// The objects in an archive, patched, in the order of their paths. `source` is its name in messages.
pub(crate) fn manifests(source: &str, bytes: &[u8], recipe: &Recipe<'_>) -> Result<Vec<Json>, Diagnostic> {
    let files = unpack(source, bytes)?;
    let is_patch = |path: &str| recipe.patches.is_some_and(|p| path.starts_with(p));
    let is_yaml = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end)) && !NO_MANIFESTS.contains(&name)
    };
    let (mut found, mut patches): (BTreeMap<Key, Json>, Vec<(String, Json)>) = Default::default();
    let mut order = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_yaml(path)) {
        if is_patch(path) {
            patches.extend(documents(path, text, recipe)?.into_iter().map(|d| (format!("{path} in {source}"), d)));
        } else if path.starts_with(recipe.include) {
            for mut document in documents(path, text, recipe)? {
                let key = key(path, &document)?;
                // Generators write an empty one; it is for controllers to write.
                document.as_object_mut().map(|o| o.remove("status"));
                if found.insert(key.clone(), document).is_some() {
                    return Err(broken(format!("{source} has {} more than once; the second time in {path}.", shown(&key))));
                }
                order.push(key);
            }
        }
    }
    if found.is_empty() {
        return Err(broken(format!("{source} has no manifests below \"{}\".", recipe.include))
            .with_hint("Correct `include`; `tar tzf` lists what is in an archive."));
    }
    patches.extend(recipe.overrides.iter().map(|o| ("an entry of `overrides`".to_owned(), o.clone())));
    for (path, patch) in patches {
        let key = key(&path, &patch)?;
        match found.get_mut(&key) {
            Some(target) => merge(target, &patch),
            None => return Err(broken(format!("{path} patches {}, which is not among the manifests.", shown(&key)))),
        }
    }
    Ok(order.iter().filter_map(|key| found.remove(key)).collect())
}

/// What makes two manifests those of one object: version, kind, namespace and name.
type Key = (String, String, String, String);

fn key(path: &str, manifest: &Json) -> Result<Key, Diagnostic> {
    let of = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let metadata = &manifest["metadata"];
    let key = (of(&manifest["apiVersion"]), of(&manifest["kind"]), of(&metadata["namespace"]), of(&metadata["name"]));
    if key.0.is_empty() || key.1.is_empty() || key.3.is_empty() {
        return Err(broken(format!("{path} is no manifest: it has no `apiVersion`, no `kind`, or no `metadata.name`.")));
    }
    Ok(key)
}

fn shown((_, kind, _, name): &Key) -> String {
    format!("{kind} \"{name}\"")
}

/// RFC 7396: objects are merged, null takes away, everything else is replaced.
fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(parts) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Json::Object(serde_json::Map::new());
    }
    let Some(entries) = target.as_object_mut() else { return };
    for (name, part) in parts {
        if part.is_null() {
            entries.remove(name);
        } else {
            merge(entries.entry(name.clone()).or_insert(Json::Null), part);
        }
    }
}

/// The texts in an archive, by their paths.
fn unpack(source: &str, bytes: &[u8]) -> Result<BTreeMap<String, String>, Diagnostic> {
    let unreadable = |e: std::io::Error| broken(format!("{source} is no readable .tar.gz archive: {e}."));
    // Whatever is said to be small, no more than this is unpacked.
    let mut archive = tar::Archive::new(GzDecoder::new(Cursor::new(bytes)).take(LARGEST));
    let mut files = BTreeMap::new();
    for (number, entry) in archive.entries().map_err(unreadable)?.enumerate() {
        let mut entry = entry.map_err(unreadable)?;
        if number >= MOST {
            return Err(broken(format!("{source} has more than {MOST} entries.")));
        }
        let path = entry.path().map_err(unreadable)?.into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        let clean =
            clean(&path).ok_or_else(|| broken(format!("{source} has an entry \"{}\", whose path leads out of it.", path.display())))?;
        if !kind.is_file() {
            return Err(broken(format!("{source} has an entry \"{clean}\" that is no regular file.")));
        }
        if entry.size() > LARGEST_FILE {
            return Err(broken(format!("{clean} in {source} is larger than {} MiB.", LARGEST_FILE >> 20)));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(unreadable)?;
        // Whatever is no text is no manifest either.
        if let Ok(text) = String::from_utf8(content) {
            files.insert(clean, text);
        }
    }
    Ok(files)
}

fn clean(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The YAML documents of a file with everything filled in; empty ones left out.
fn documents(path: &str, text: &str, recipe: &Recipe<'_>) -> Result<Vec<Json>, Diagnostic> {
    let (filled, later) = fill(path, text, &recipe.substitutions)?;
    // As in YAML 1.2: what is called `n` or `on` is no truth value.
    let options = serde_saphyr::options! { strict_booleans: true };
    // The parser's own words may quote what was filled in.
    let mut documents: Vec<Json> = serde_saphyr::from_multiple_with_options(&filled, options).map_err(|e| {
        let place = e.location().map(|l| format!(" at line {}", l.line())).unwrap_or_default();
        broken(format!("{path} is no readable YAML{place}."))
    })?;
    // A document without content.
    documents.retain(|d| !d.is_null() && d.as_str() != Some("") && d.as_object().is_none_or(|o| !o.is_empty()));
    documents.iter_mut().for_each(|d| put(d, &later));
    Ok(documents)
}

/// Marks in a text, and what is to stand in their places.
type Marks<'a> = Vec<(String, &'a str)>;

/// Replaces `{{key}}`. A value that could be mistaken for YAML is replaced by a mark first, and put in after parsing.
fn fill<'a>(path: &str, text: &str, values: &BTreeMap<&str, &'a str>) -> Result<(String, Marks<'a>), Diagnostic> {
    let (mut filled, mut later, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let name = after.split_once("}}").map(|(name, _)| name).filter(|n| is_name(n));
        let Some(name) = name else {
            filled.push_str("{{");
            rest = after;
            continue;
        };
        let Some(value) = values.get(name) else {
            return Err(broken(format!("{path} has the placeholder {{{{{name}}}}}, and `substitutions` has no value for it."))
                .with_hint(format!("Give `substitutions` an entry \"{name}\".")));
        };
        if is_plain(value) {
            filled.push_str(value);
        } else {
            let mark = mark(text, later.len());
            filled.push_str(&mark);
            later.push((mark, *value));
        }
        rest = &after[name.len() + 2..];
    }
    filled.push_str(rest);
    Ok((filled, later))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Means the same inside quotes and outside, whatever stands beside it.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "._/+=-".contains(c)) && !value.starts_with('-')
}

/// A word that the text does not have.
fn mark(text: &str, number: usize) -> String {
    let mut mark = format!("karmaformPlaceholder{number}x");
    while text.contains(&mark) {
        mark.push('x');
    }
    mark
}

fn put(json: &mut Json, later: &[(String, &str)]) {
    match json {
        Json::String(text) => {
            for (mark, value) in later {
                if text.contains(mark.as_str()) {
                    *text = text.replace(mark.as_str(), value);
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|i| put(i, later)),
        Json::Object(entries) => entries.values_mut().for_each(|e| put(e, later)),
        _ => {}
    }
}

#[cfg(test)]
#[path = "archive_read_tests.rs"]
mod tests;
