//! Looking at the objects of an archive: each as if it were a `kubernetes_object`, one LIST per kind and namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use karmaform_model::{Ask, Diagnostic, Object, Type, Value, implied_from_json, same, secret_leaves, to_json};

use crate::archive::{AS_WANTED, DIFFERENT, KubernetesArchive, MISSING, is_readable, same_inputs, texts, words};
use crate::archive_read::{Recipe, manifests};
use crate::archive_source::{Downloads, is_remote, shown};
use crate::client::Client;
use crate::look::{self, Rehearsal};
use crate::manifest::{self, Named, named};
use crate::values::{object, text};

type Answer = Result<Option<Object>, Diagnostic>;

/// Answers all asks, in their order.
pub(crate) async fn observe(client: &Client, archive: &KubernetesArchive, asks: &[&Ask], rehearsal: Option<Rehearsal>) -> Vec<Answer> {
    join_all(asks.iter().map(|ask| one(client, &archive.downloads, ask, rehearsal))).await
}

async fn one(client: &Client, downloads: &Arc<Downloads>, ask: &Ask, rehearsal: Option<Rehearsal>) -> Answer {
    let known = ask.known.as_ref();
    let wanted = ask.wanted.as_ref();
    let inputs = match (wanted, known) {
        (Some(wanted), _) => Some(wanted).filter(|w| is_readable(w)),
        // To delete the objects nothing has to be read, least of all from the network.
        (None, Some(known)) => Some(known).filter(|k| text(k, "source").is_some_and(|s| !is_remote(s))),
        (None, None) => None,
    };
    let read = match inputs {
        Some(inputs) => match rendered(downloads, inputs).await {
            Ok(read) => Some(read),
            Err(error) if wanted.is_some() => return Err(error),
            Err(_) => None,
        },
        None => None,
    };
    let Told { words, foreign, care } = match read {
        Some(read) => compared(client, known, read, rehearsal).await?,
        None => existing(client, known, rehearsal).await?,
    };
    if words.values().all(|w| *w == MISSING) && foreign.is_empty() {
        return Ok(None);
    }
    let mut told = ask.identity.clone();
    let foreign = foreign.into_iter().map(|n| Value::from(n.as_str())).collect();
    told.insert("foreign".to_owned(), Value::list(Type::String, foreign));
    told.insert("care".to_owned(), Value::strings(care));
    let seen = texts(words);
    // What another archive would change is no drift.
    if known.is_none_or(|k| wanted.is_none_or(|w| same_inputs(k, w))) {
        told.insert("objects".to_owned(), seen.clone());
    }
    if inputs.is_some() && wanted.is_some() {
        told.insert("seen".to_owned(), seen);
    }
    Ok(Some(told))
}

/// The manifests that these arguments make, by their names.
pub(crate) async fn rendered(downloads: &Arc<Downloads>, inputs: &Object) -> Result<BTreeMap<String, Value>, Diagnostic> {
    let (downloads, inputs) = (downloads.clone(), inputs.clone());
    let made = tokio::task::spawn_blocking(move || render(&downloads, &inputs)).await;
    made.unwrap_or_else(|_| Err(Diagnostic::error("Archive can't be read", "Reading it ended before it was done.")))
}

fn render(downloads: &Downloads, inputs: &Object) -> Result<BTreeMap<String, Value>, Diagnostic> {
    let source = text(inputs, "source").unwrap_or_default();
    let bytes = downloads.get(source, text(inputs, "sha256"))?;
    let substitutions = inputs.get("substitutions");
    let values = substitutions.and_then(Value::as_entries).into_iter().flatten();
    let recipe = Recipe {
        include: text(inputs, "include").unwrap_or_default(),
        patches: text(inputs, "patches"),
        overrides: inputs.get("overrides").and_then(Value::as_items).unwrap_or_default().iter().map(to_json).collect(),
        substitutions: values.filter_map(|(n, v)| Some((n.as_str(), v.as_str()?))).collect(),
    };
    let secrets: Vec<&str> =
        substitutions.into_iter().flat_map(secret_leaves).filter_map(Value::as_str).filter(|s| !s.is_empty()).collect();
    let mut found = BTreeMap::new();
    for json in manifests(&shown(source), &bytes, &recipe)? {
        let mut value = manifest::marked(implied_from_json(&json));
        mark(&mut value, &secrets);
        if let Some(problem) = manifest::problems(&value).into_iter().next() {
            return Err(problem);
        }
        if let Named::Known(name) = named(&value)
            && found.insert(name.to_string(), value).is_some()
        {
            let told = format!("{} has {name} in more than one version.", shown(source));
            return Err(Diagnostic::error("Archive can't be used", told));
        }
    }
    Ok(found)
}

/// What a secret was filled into is secret.
fn mark(value: &mut Value, secrets: &[&str]) {
    use karmaform_model::Kind;
    match &mut value.kind {
        Kind::String(text) => value.secret |= secrets.iter().any(|s| text.contains(s)),
        Kind::List(_, items) | Kind::Tuple(items) => items.iter_mut().for_each(|v| mark(v, secrets)),
        Kind::Map(_, entries) | Kind::Object(entries) => entries.values_mut().for_each(|v| mark(v, secrets)),
        _ => {}
    }
}

fn ask(name: &str, is_known: bool, manifest: Option<&Value>) -> Ask {
    Ask {
        resource_type: "kubernetes_object".to_owned(),
        identity: object([("object", name.into())]),
        known: is_known.then(Object::new),
        // Whatever others set in it, it is to be as the archive says.
        wanted: manifest.map(|m| object([("manifest", m.clone()), ("force", true.into())])),
        begun: false,
    }
}

type Words = BTreeMap<String, &'static str>;

/// What was seen of the objects of an archive.
#[derive(Default)]
struct Told {
    /// How each one is.
    words: Words,
    /// Those that are not ours.
    foreign: Vec<String>,
    /// What they are in need of, each with its name.
    care: Vec<String>,
}

impl Told {
    fn cares(&mut self, name: &str, seen: &Object) {
        let said = seen.get("care").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str);
        self.care.extend(said.map(|said| format!("{name}: {said}")));
    }
}

async fn compared(
    client: &Client,
    known: Option<&Object>,
    read: BTreeMap<String, Value>,
    rehearsal: Option<Rehearsal>,
) -> Result<Told, Diagnostic> {
    let remembered: BTreeSet<&String> = words(known, "objects").map(|(name, _)| name).collect();
    let asks: Vec<Ask> = read.iter().map(|(name, manifest)| ask(name, remembered.contains(name), Some(manifest))).collect();
    let answers = look::observe(client, &asks.iter().collect::<Vec<_>>(), rehearsal).await;
    let mut told = Told::default();
    for ((name, manifest), answer) in read.into_iter().zip(answers) {
        let word = match answer? {
            None => MISSING,
            Some(seen) => {
                if seen.get("foreign").and_then(Value::as_bool) == Some(true) {
                    told.foreign.push(name.clone());
                }
                told.cares(&name, &seen);
                if same(seen.get("manifest"), Some(&manifest)) { AS_WANTED } else { DIFFERENT }
            }
        };
        told.words.insert(name, word);
    }
    Ok(told)
}

/// Which of the remembered objects are there; what they are like can't be told without the archive.
async fn existing(client: &Client, known: Option<&Object>, rehearsal: Option<Rehearsal>) -> Result<Told, Diagnostic> {
    let remembered: Vec<(&String, &str)> = words(known, "objects").collect();
    let asks: Vec<Ask> = remembered.iter().map(|(name, _)| ask(name, true, None)).collect();
    let answers = look::observe(client, &asks.iter().collect::<Vec<_>>(), rehearsal).await;
    let mut told = Told::default();
    for ((name, word), answer) in remembered.into_iter().zip(answers) {
        let seen = answer?;
        if let Some(seen) = &seen {
            told.cares(name, seen);
        }
        let word = match (seen, word) {
            (None, _) => MISSING,
            (Some(_), DIFFERENT) => DIFFERENT,
            (Some(_), _) => AS_WANTED,
        };
        told.words.insert(name.clone(), word);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_is_being_deleted_is_told_by_its_name() {
        let (client, _) = crate::mock::client(|_, path| match path {
            "/api/v1" => crate::mock::group(&[("ConfigMap", "configmaps", true)]),
            "/api/v1/namespaces/n/configmaps" | "/api/v1/namespaces/n/configmaps/going" => {
                let map = |name: &str, gone: Option<&str>| {
                    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "n", "uid": name, "deletionTimestamp": gone } })
                };
                let (going, stays) = (map("going", Some("2026-01-01T00:00:00Z")), map("stays", None));
                if path.ends_with("/going") { (200, going) } else { (200, json!({ "items": [going, stays] })) }
            }
            _ => crate::mock::refused(404, "not found"),
        })
        .await;
        let objects = texts(["ConfigMap/n/going", "ConfigMap/n/stays"].map(|name| (name.to_owned(), AS_WANTED)));
        let told = existing(&client, Some(&object([("objects", objects)])), None).await.unwrap();
        assert_eq!(told.words.into_values().collect::<Vec<_>>(), [AS_WANTED, AS_WANTED]);
        let expected = "ConfigMap/n/going: somebody deletes it, since 2026-01-01T00:00:00Z: it is gone as soon as nobody needs it any more";
        assert_eq!(told.care, [expected]);
    }

    #[test]
    fn an_object_in_two_versions_is_refused() {
        let text = |version: &str| format!("apiVersion: apps/{version}\nkind: Deployment\nmetadata: {{name: a, namespace: n}}\n");
        let text = format!("{}---\n{}", text("v1"), text("v1beta1"));
        let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, "m/a.yaml", text.as_bytes()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), builder.into_inner().unwrap().finish().unwrap()).unwrap();
        let path = file.path().to_str().unwrap();
        let why = render(&Downloads::default(), &object([("source", path.into()), ("include", "m/".into())])).unwrap_err();
        assert_eq!(why.summary, "Archive can't be used");
        assert_eq!(why.detail, format!("{path} has Deployment.apps/n/a in more than one version."));
    }
}
