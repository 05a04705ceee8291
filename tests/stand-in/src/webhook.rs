//! What the Karmada API asks the webhook: every object is allowed as it is, and looks the same in each version.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::serve::{Answer, bad, missing};

/// The paths of Karmada 1.19. A configuration with a path that the program does not have would block all writes.
const MUTATE: &[&str] = &[
    "propagationpolicy",
    "clusterpropagationpolicy",
    "overridepolicy",
    "resourcebinding",
    "clusterresourcebinding",
    "work",
    "federatedhpa",
    "multiclusterservice",
];
const VALIDATE: &[&str] = &[
    "propagationpolicy",
    "clusterpropagationpolicy",
    "overridepolicy",
    "clusteroverridepolicy",
    "resourceinterpreterwebhookconfiguration",
    "resourceinterpretercustomization",
    "federatedresourcequota",
    "multiclusteringress",
    "multiclusterservice",
    "resourcedeletionprotection",
    "resourcebinding",
    "federatedhpa",
    "cronfederatedhpa",
    "clustertaintpolicy",
];

pub(crate) fn answer(method: &Method, path: &str, body: &[u8]) -> Answer {
    let known = |prefix: &str, names: &[&str]| path.strip_prefix(prefix).is_some_and(|rest| names.contains(&rest));
    if path != "/convert" && !known("/mutate-", MUTATE) && !known("/validate-", VALIDATE) {
        return missing(path);
    }
    let review = match serde_json::from_slice::<Value>(body) {
        Ok(review) if method == Method::POST => review,
        _ => return bad("no review"),
    };
    let request = &review["request"];
    let uid = &request["uid"];
    let (kind, response) = if path == "/convert" {
        let wanted = &request["desiredAPIVersion"];
        let objects = request["objects"].as_array().cloned().unwrap_or_default().into_iter().map(|mut object| {
            object["apiVersion"] = wanted.clone();
            object
        });
        let objects: Vec<_> = objects.collect();
        ("ConversionReview", json!({ "uid": uid, "result": { "status": "Success" }, "convertedObjects": objects }))
    } else {
        ("AdmissionReview", json!({ "uid": uid, "allowed": true }))
    };
    if review["kind"] != kind || !uid.is_string() {
        return bad(&format!("no {kind}"));
    }
    (StatusCode::OK, json!({ "apiVersion": review["apiVersion"], "kind": kind, "response": response }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(path: &str, body: &Value) -> Answer {
        answer(&Method::POST, path, body.to_string().as_bytes())
    }

    #[test]
    fn reviews_of_known_paths_are_answered() {
        let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": { "uid": "u" } });
        let (code, answer) = post("/validate-clustertaintpolicy", &review);
        assert_eq!((code, &answer["response"]["uid"], &answer["response"]["allowed"]), (StatusCode::OK, &json!("u"), &json!(true)));
        assert_eq!(post("/mutate-clustertaintpolicy", &review).0, StatusCode::NOT_FOUND);
        assert_eq!(post("/convert", &review).0, StatusCode::BAD_REQUEST);
        assert_eq!(post("/mutate-work", &json!({})).0, StatusCode::BAD_REQUEST);
        assert_eq!(MUTATE.len() + VALIDATE.len(), 22);
    }

    #[test]
    fn conversion_changes_the_version_alone() {
        let object = json!({ "apiVersion": "work.karmada.io/v1alpha1", "kind": "ResourceBinding", "metadata": { "name": "a" } });
        let request = json!({ "uid": "u", "desiredAPIVersion": "work.karmada.io/v1alpha2", "objects": [object] });
        let review = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request });
        let converted = &post("/convert", &review).1["response"]["convertedObjects"];
        assert_eq!(
            *converted,
            json!([{ "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding", "metadata": { "name": "a" } }])
        );
    }
}
