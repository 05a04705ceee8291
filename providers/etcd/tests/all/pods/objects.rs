//! What an API server makes of changes to objects.

use std::rc::Rc;

use karmaform_model::{Change, Object, Path, ReplaceOrder, Value, to_json};
use serde_json::Value as Json;

use super::{Name, World};

/// Parts of a StatefulSet's specification that may change in place.
const CHANGEABLE: &[&str] =
    &["replicas", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds", "persistentVolumeClaimRetentionPolicy"];

/// An object in the namespace. Its manifest is looked at far more often than it changes, so it is kept as what looks at it reads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Thing {
    /// The attributes of its resource.
    attributes: Object,
    /// One of these: its manifest.
    manifest: Rc<Json>,
}

impl Thing {
    /// The attributes of its resource.
    pub(crate) fn attributes(&self) -> &Object {
        &self.attributes
    }

    /// Its manifest.
    pub(crate) fn manifest(&self) -> &Rc<Json> {
        &self.manifest
    }
}

impl From<Object> for Thing {
    fn from(attributes: Object) -> Self {
        let manifest = attributes.get("manifest").map(to_json).unwrap_or_default();
        Self { attributes, manifest: Rc::new(manifest) }
    }
}

/// What names the object of a resource.
pub(super) fn name(object: &Object) -> Name {
    let manifest = object.get("manifest");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    (text(manifest.and_then(|m| m.get("kind"))), text(manifest.and_then(|m| m.get("metadata")?.get("name"))))
}

/// The server does not change one into the other in place.
fn is_other(old: &Json, new: &Json) -> bool {
    let (mut old, mut new) = (fixed(old), fixed(new));
    // A claim that is bound to nothing yet may say once what it is bound to.
    if new["claim"] == true && old["volumeName"].is_null() {
        [&mut old, &mut new].into_iter().filter_map(Json::as_object_mut).for_each(|parts| drop(parts.remove("volumeName")));
    }
    old != new
}

/// What of an object's specification does not change in place.
fn fixed(manifest: &Json) -> Json {
    let mut spec = manifest["spec"].clone();
    if let Json::Object(parts) = &mut spec {
        match manifest["kind"].as_str() {
            Some("StatefulSet") => parts.retain(|name, _| !CHANGEABLE.contains(&name.as_str())),
            // What servers fill in is no difference.
            Some("PersistentVolumeClaim") => {
                parts.retain(|name, _| !["resources", "volumeMode"].contains(&name.as_str()));
                parts.insert("claim".to_owned(), true.into());
            }
            Some("PersistentVolume") => drop(parts.remove("capacity")),
            _ => parts.clear(),
        }
    }
    spec
}

fn remakes(object: &Object) -> bool {
    object.get("remake").and_then(Value::as_bool) == Some(true)
}

/// An update that the server would refuse becomes a replacement, unless the object is then made anew at its change.
pub(super) fn foretell(change: &mut Change) {
    let Change::Update { before, after } = &*change else { return };
    let (Some(old), Some(new)) = (before.get("manifest").map(to_json), after.get("manifest").map(to_json)) else { return };
    let is_same_object = old["kind"] == new["kind"] && ["name", "namespace"].iter().all(|n| old["metadata"][n] == new["metadata"][n]);
    if !is_same_object || !remakes(after) && is_other(&old, &new) {
        let (before, after) = (before.clone(), after.clone());
        *change = Change::Replace { before, after, order: ReplaceOrder::DestroyFirst, because: vec![Path::attribute("manifest")] };
    }
}

impl World {
    pub(super) fn change_object(&mut self, change: &Change) -> Result<Option<Object>, String> {
        if let Change::Delete { before } | Change::Replace { before, .. } = change {
            self.delete(before)?;
        }
        let Some(after) = change.after() else { return Ok(None) };
        let name = name(after);
        let manifest = after.get("manifest").map(to_json).unwrap_or_default();
        if self.objects.get(&name).is_some_and(|there| is_other(there.manifest(), &manifest)) {
            match (remakes(after), change.before()) {
                (false, _) => return Err(format!("{name:?} does not change like this")),
                (true, Some(before)) if name.0 != "StatefulSet" => self.delete(before)?,
                _ => {}
            }
        }
        let uid = self.objects.get(&name).and_then(|o| o.attributes.get("uid").cloned()).unwrap_or_else(|| self.uid());
        let mut object = after.clone();
        object.insert("uid".to_owned(), uid);
        self.objects.insert(name, object.clone().into());
        Ok(Some(object))
    }

    fn delete(&mut self, before: &Object) -> Result<(), String> {
        if before.get("keep").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let (kind, name) = name(before);
        match kind.as_str() {
            "StatefulSet" => {
                assert_eq!(before.get("propagation").and_then(Value::as_str), Some("foreground"), "pods would go on after the end");
                self.pods.clear();
            }
            // Both wait until nobody uses them any more, which a step would do in vain.
            "PersistentVolumeClaim" => {
                // It is waited until its pod has ended.
                self.controllers();
                if self.pods.keys().any(|pod| format!("data-{pod}") == name) {
                    return Err(format!("a pod uses the claim {name}"));
                }
                if self.helpers.iter().any(|helper| format!("data-{}", helper.trim_end_matches("-restore")) == name) {
                    return Err(format!("a helper uses the claim {name}"));
                }
                self.disks.remove(&format!("claim {name}"));
                self.beside.remove(&format!("claim {name}"));
            }
            "PersistentVolume" => {
                let is_bound =
                    |(n, o): (&Name, &Thing)| n.0 == "PersistentVolumeClaim" && o.manifest["spec"]["volumeName"] == name.as_str();
                if self.objects.iter().any(is_bound) {
                    return Err(format!("a claim uses the volume {name}"));
                }
            }
            _ => {}
        }
        self.objects.remove(&(kind, name));
        Ok(())
    }

    fn uid(&mut self) -> Value {
        self.made += 1;
        format!("uid-{}", self.made).into()
    }

    /// An object is like this, if it can be.
    pub(super) fn put(&mut self, manifest: &Value, remakes: bool) -> Result<(), String> {
        let written = Object::from([("manifest".to_owned(), manifest.clone())]);
        let name = name(&written);
        if !remakes && self.objects.get(&name).is_some_and(|there| is_other(there.manifest(), &to_json(manifest))) {
            return Err(format!("{name:?} does not change like this"));
        }
        let mut object = match self.objects.get(&name) {
            Some(there) => there.attributes.clone(),
            None => Object::from([("uid".to_owned(), self.uid())]),
        };
        object.extend(written);
        self.objects.insert(name, object.into());
        Ok(())
    }

    /// A claim that a pod needs and that is not there.
    pub(super) fn claim(&mut self, template: &Json, pod: &str, namespace: &Json) {
        let name = format!("{}-{pod}", template["metadata"]["name"].as_str().unwrap_or_default());
        let key = ("PersistentVolumeClaim".to_owned(), name.clone());
        if self.objects.contains_key(&key) {
            return;
        }
        let manifest = serde_json::json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name, "namespace": namespace }, "spec": template["spec"],
        });
        let made = Object::from([("manifest".to_owned(), karmaform_model::implied_from_json(&manifest)), ("uid".to_owned(), self.uid())]);
        self.objects.insert(key, made.into());
    }
}
