//! The lock as a Lease: who holds it is its holderIdentity, and what Terraform calls lock information an annotation.

use karmaform_model::{Found, Version};
use serde_json::{Value as Json, json};

/// Terraform's name for it.
const INFORMATION: &str = "app.terraform.io/lock-info";

/// The lock that a Lease holds; `None` if nobody holds it.
pub(crate) fn held(lease: &Json) -> Option<Found> {
    lease["spec"]["holderIdentity"].as_str().filter(|h| !h.is_empty())?;
    let information = lease["metadata"]["annotations"][INFORMATION].as_str().unwrap_or_default();
    Some(Found { bytes: information.as_bytes().to_vec(), version: version(lease)? })
}

/// Which writing of it.
pub(crate) fn version(object: &Json) -> Option<Version> {
    object["metadata"]["resourceVersion"].as_str().map(|v| Version(v.to_owned()))
}

/// A Lease that holds this lock; `None` frees it. `now` is in RFC 3339 with microseconds.
pub(crate) fn lease(name: &str, labels: &Json, information: Option<&[u8]>, over: Option<&Version>, now: &str) -> Json {
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "labels": labels, "annotations": {} },
        "spec": { "holderIdentity": null },
    });
    if let Some(over) = over {
        lease["metadata"]["resourceVersion"] = json!(over.0);
    }
    if let Some(information) = information {
        let text = String::from_utf8_lossy(information);
        let parsed: Json = serde_json::from_str(&text).unwrap_or_default();
        lease["metadata"]["annotations"][INFORMATION] = json!(text);
        lease["spec"]["holderIdentity"] = parsed.get("ID").filter(|id| id.is_string()).cloned().unwrap_or_else(|| json!("unknown"));
        lease["spec"]["renewTime"] = json!(now);
        if let Some(seconds) = parsed.get("Lease").filter(|s| s.is_u64()) {
            lease["spec"]["leaseDurationSeconds"] = seconds.clone();
        }
    }
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_its_id_and_freed_by_nobody() {
        let text = br#"{"ID":"a","Who":"me@here","Lease":60}"#;
        let mut made = lease("l", &json!({}), Some(text), None, "2026-01-02T03:04:05.000000Z");
        assert_eq!((&made["spec"]["holderIdentity"], &made["spec"]["leaseDurationSeconds"]), (&json!("a"), &json!(60)));
        made["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(held(&made), Some(Found { bytes: text.to_vec(), version: Version("7".into()) }));
        let freed = lease("l", &json!({}), None, Some(&Version("7".into())), "");
        assert_eq!((held(&freed), &freed["metadata"]["resourceVersion"]), (None, &json!("7")));
    }
}
