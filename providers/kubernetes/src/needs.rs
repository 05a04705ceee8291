//! What resources of this provider need from elsewhere: archives of manifests, and the images that pods run.

use std::collections::BTreeSet;

use karmaform_model::{Kind, Need, Object, Supply, Value};

use crate::archive::KIND as ARCHIVE;
use crate::job::KIND as JOB;
use crate::object::KIND as OBJECT;
use crate::values::text;

/// Where a pod's template has its containers.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// What one resource needs.
pub(crate) fn needs(resource_type: &str, wanted: &Object) -> Vec<Need> {
    match resource_type {
        ARCHIVE => vec![archive(wanted)],
        OBJECT | JOB => {
            let mut images = BTreeSet::new();
            wanted.get("manifest").into_iter().for_each(|manifest| find_images(manifest, &mut images));
            images.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn archive(wanted: &Object) -> Need {
    let is_open = |name: &str| wanted.get(name).is_some_and(Value::is_unknown);
    match text(wanted, "source") {
        Some(source) if !is_open("sha256") => {
            let is_secret = ["source", "sha256"].iter().any(|name| wanted.get(name).is_some_and(Value::contains_secret));
            Need::File { supply: supply(source, text(wanted, "sha256")), is_secret }
        }
        _ => Need::Later,
    }
}

/// An archive, as it is asked for.
pub(crate) fn supply(source: &str, sum: Option<&str>) -> Supply {
    Supply { source: source.to_owned(), sha256: sum.map(str::to_owned), member: None, platform: None }
}

/// The images of all containers in a manifest, wherever its pods' template is.
fn find_images(value: &Value, found: &mut BTreeSet<Need>) {
    match &value.kind {
        Kind::Object(parts) | Kind::Map(_, parts) => {
            for (name, part) in parts {
                if CONTAINERS.contains(&name.as_str()) {
                    for container in part.as_items().unwrap_or_default() {
                        found.extend(match container.get("image") {
                            Some(image) if image.is_unknown() => Some(Need::Later),
                            Some(image) => image.as_str().map(|i| Need::Image(i.to_owned())),
                            None => None,
                        });
                    }
                }
                find_images(part, found);
            }
        }
        Kind::List(_, items) | Kind::Tuple(items) => items.iter().for_each(|item| find_images(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::implied_from_json;
    use serde_json::json;

    fn wanted(json: &serde_json::Value) -> Object {
        implied_from_json(json).as_entries().unwrap().clone()
    }

    #[test]
    fn images_are_found_wherever_a_template_is() {
        let pod = json!({ "initContainers": [{ "image": "a:1" }], "containers": [{ "image": "b:1" }, { "image": "a:1" }] });
        let image = |name: &str| Need::Image(name.to_owned());
        for manifest in [
            json!({ "kind": "Pod", "spec": pod }),
            json!({ "kind": "Deployment", "spec": { "template": { "spec": pod } } }),
            json!({ "kind": "CronJob", "spec": { "jobTemplate": { "spec": { "template": { "spec": pod } } } } }),
        ] {
            assert_eq!(needs("kubernetes_object", &wanted(&json!({ "manifest": manifest }))), [image("a:1"), image("b:1")]);
        }
        assert!(needs("kubernetes_object", &wanted(&json!({ "manifest": { "data": { "image": "x" } } }))).is_empty());
    }

    #[test]
    fn an_archive_is_needed_with_its_sum() {
        let found = needs("kubernetes_archive", &wanted(&json!({ "source": "https://x.example/a.tgz", "sha256": "ab" })));
        assert_eq!(found, [Need::File { supply: supply("https://x.example/a.tgz", Some("ab")), is_secret: false }]);
        let mut open = wanted(&json!({ "sha256": null }));
        open.insert("source".to_owned(), Value::unknown(karmaform_model::Type::String));
        assert_eq!(needs("kubernetes_archive", &open), [Need::Later]);
    }
}
