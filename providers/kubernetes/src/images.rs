//! Images that pods are to run from now on, looked up in their registries before anything is done: pods whose image is nowhere wait for ever.
//!
//! Only what changes is asked for, and of that only what no node has already. This machine and the nodes may see different registries, so that
//! only one counts that says itself that there is no such image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use karmaform_model::{Ask, Diagnostic, Need, Object, Registries};
use serde_json::Value as Json;
use tokio::sync::{Mutex, OnceCell};

use crate::client::Client;
use crate::needs::needs;

type Answer = Result<Option<Object>, Diagnostic>;

/// So many images a node says at most, the largest (kubelet's `nodeStatusMaxImages`, unless it is set otherwise).
const MOST: usize = 50;

/// What is known of images in one run.
pub(crate) struct Images {
    registries: Arc<dyn Registries>,
    /// By image, whether its registry lacks it.
    lacking: Mutex<BTreeMap<String, Arc<OnceCell<bool>>>>,
}

impl Images {
    /// Nothing is known yet.
    pub(crate) fn new(registries: Arc<dyn Registries>) -> Self {
        Self { registries, lacking: Mutex::default() }
    }

    /// What is wrong with the images of these asks, by their numbers. Each image is told of once.
    pub(crate) async fn lacking(&self, client: &Client, asks: &[Ask]) -> BTreeMap<usize, (String, Diagnostic)> {
        let wanted = wanted(asks);
        if wanted.is_empty() {
            return BTreeMap::new();
        }
        // Who may not see the nodes, or has none, does not know what they need; from a control plane what runs is propagated elsewhere.
        let Ok(nodes) = client.raw("/api/v1/nodes").await else { return BTreeMap::new() };
        let Some(present) = present(&nodes) else { return BTreeMap::new() };
        let missing = wanted.into_iter().filter(|(image, _)| !is_present(&present, image));
        let looked = missing.map(|(image, number)| async move {
            let told = self.lacks(&image).await.then(|| told(client, &image))?;
            Some((number, (image, told)))
        });
        join_all(looked).await.into_iter().flatten().collect()
    }

    async fn lacks(&self, image: &str) -> bool {
        let cell = Arc::clone(self.lacking.lock().await.entry(image.to_owned()).or_default());
        *cell.get_or_init(|| self.registries.lacks(image)).await
    }
}

/// The answers, with what is wrong with images in place of those that have no error of their own. What is there with its image already runs,
/// or says itself why it does not.
pub(crate) fn merged(asks: &[Ask], mut answers: Vec<Answer>, lacking: BTreeMap<usize, (String, Diagnostic)>) -> Vec<Answer> {
    for (number, (image, error)) in lacking {
        let has = |live: &Object| needs(&asks[number].resource_type, live).contains(&Need::Image(image.clone()));
        if let Some(answer) = answers.get_mut(number).filter(|a| matches!(a, Ok(live) if !live.as_ref().is_some_and(has))) {
            *answer = Err(error);
        }
    }
    answers
}

/// The images that are wanted and were not before, with the number of the first ask that wants each.
fn wanted(asks: &[Ask]) -> BTreeMap<String, usize> {
    let images = |ask: &Ask, object: &Object| needs(&ask.resource_type, object).into_iter().filter_map(image).collect::<BTreeSet<_>>();
    let mut wanted = BTreeMap::new();
    for (number, ask) in asks.iter().enumerate() {
        let before = ask.known.as_ref().map(|known| images(ask, known)).unwrap_or_default();
        for image in ask.wanted.as_ref().map(|object| images(ask, object)).unwrap_or_default() {
            if !before.contains(&image) {
                wanted.entry(image).or_insert(number);
            }
        }
    }
    wanted
}

fn image(need: Need) -> Option<String> {
    if let Need::Image(image) = need { Some(image) } else { None }
}

/// The names of all images on all nodes; `None` without nodes, and if some node may have others.
fn present(nodes: &Json) -> Option<BTreeSet<&str>> {
    let nodes = nodes["items"].as_array().filter(|n| !n.is_empty())?;
    let images: Vec<&Vec<Json>> = nodes.iter().filter_map(|node| node["status"]["images"].as_array()).collect();
    if images.iter().any(|images| images.len() >= MOST) {
        return None;
    }
    let names = images.into_iter().flatten().filter_map(|image| image["names"].as_array()).flatten();
    Some(names.filter_map(Json::as_str).collect())
}

/// Nodes write names in full, `docker.io/library/nginx:1.27` for `nginx:1.27`, and tag and digest apart.
fn is_present(present: &BTreeSet<&str>, image: &str) -> bool {
    let by_digest = image.split_once('@').map(|(name, digest)| {
        let end = name.rfind(':').filter(|colon| !name[*colon..].contains('/')).unwrap_or(name.len());
        format!("{}@{digest}", &name[..end])
    });
    let image = by_digest.as_deref().unwrap_or(image);
    present.contains(image) || present.iter().any(|name| name.strip_suffix(image).is_some_and(|start| start.ends_with('/')))
}

fn told(client: &Client, image: &str) -> Diagnostic {
    let detail = format!(
        "The registry of {image} says that there is no such image, and no node of {} has it. Its pods would never start.",
        client.place()
    );
    Diagnostic::error("Image does not exist", detail)
        .with_hint("Correct its version, its name or its registry; or bring it to the nodes first.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::implied_from_json;
    use serde_json::json;

    fn object(images: &[&str]) -> Object {
        let containers: Vec<_> = images.iter().map(|i| json!({ "image": i })).collect();
        let json = json!({ "manifest": { "kind": "Pod", "spec": { "containers": containers } } });
        implied_from_json(&json).as_entries().unwrap().clone()
    }

    fn ask(wanted: &[&str], known: &[&str]) -> Ask {
        Ask {
            resource_type: "kubernetes_object".to_owned(),
            identity: Object::new(),
            wanted: Some(object(wanted)),
            known: Some(object(known)),
            begun: false,
        }
    }

    #[test]
    fn only_what_changes_is_asked_for_and_once() {
        let asks = [ask(&["a:1", "b:1"], &["a:1"]), ask(&["b:1", "c:2"], &["c:1"]), ask(&["d:1"], &["d:1"])];
        assert_eq!(wanted(&asks), BTreeMap::from([("b:1".to_owned(), 0), ("c:2".to_owned(), 1)]));
    }

    #[test]
    fn what_is_there_with_its_image_is_not_doubted() {
        let asks = [ask(&["a:1"], &[])];
        let lacking = || BTreeMap::from([(0, ("a:1".to_owned(), Diagnostic::error("No", "No.")))]);
        for (live, is_wrong) in [(None, true), (Some(object(&["b:1"])), true), (Some(object(&["a:1"])), false)] {
            assert_eq!(merged(&asks, vec![Ok(live.clone())], lacking())[0].is_err(), is_wrong, "{live:?}");
        }
        let other = merged(&asks, vec![Err(Diagnostic::error("Other", "Other."))], lacking());
        assert_eq!(other[0].as_ref().unwrap_err().summary, "Other");
    }

    #[test]
    fn what_a_node_has_is_there_however_it_is_written() {
        let nodes = json!({ "items": [{ "status": { "images": [{ "names": ["docker.io/library/nginx:1.27", "docker.io/library/nginx@sha256:ab"] }] } }] });
        let present = present(&nodes).unwrap();
        for (image, there) in [
            ("docker.io/library/nginx:1.27", true),
            ("nginx:1.27", true),
            ("inx:1.27", false),
            ("nginx:1", false),
            ("nginx@sha256:ab", true),
        ] {
            assert_eq!(is_present(&present, image), there, "{image}");
        }
        let long = "docker.io:443/library/nginx:1.27@sha256:ab";
        assert!(is_present(&BTreeSet::from(["docker.io:443/library/nginx@sha256:ab"]), long));
        assert!(!is_present(&BTreeSet::from(["docker.io:443/library/nginx:1.27"]), long));
        assert_eq!(super::present(&json!({ "items": [] })), None);
        let full = json!({ "items": [{ "status": { "images": vec![json!({ "names": ["a:1"] }); MOST] } }] });
        assert_eq!(super::present(&full), None, "there may be others");
    }
}
