//! The API groups that Karmada's servers add to the Karmada API: discovery, and Clusters kept in the memory of this one process. Two
//! replicas know nothing of each other's; a real one keeps them in etcd.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::component::Component;
use crate::serve::{Answer, bad, failure, missing};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

pub(crate) struct Apis {
    component: Component,
    clusters: Mutex<Clusters>,
}

#[derive(Default)]
struct Clusters {
    /// Of the last change.
    revision: u64,
    objects: BTreeMap<String, Value>,
}

impl Apis {
    pub(crate) fn new(component: Component) -> Self {
        Self { component, clusters: Mutex::default() }
    }

    pub(crate) fn answer(&self, method: &Method, path: &str, body: &[u8]) -> Answer {
        if let Some(rest) = path.strip_prefix(CLUSTERS).filter(|_| self.component == Component::AggregatedApiserver) {
            let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
            return match (rest.strip_prefix('/'), rest) {
                (None, "") => clusters.all(method, body),
                (Some(name), _) if !name.contains('/') => clusters.one(method, name, body),
                _ => missing(path),
            };
        }
        match self.discovery(path) {
            Some(answer) if method == Method::GET => (StatusCode::OK, answer),
            _ => missing(path),
        }
    }

    fn discovery(&self, path: &str) -> Option<Value> {
        let version = |group: &str, v: &str| json!({ "groupVersion": format!("{group}/{v}"), "version": v });
        let group = |(name, versions): &(&str, &[&str])| {
            let all: Vec<_> = versions.iter().map(|v| version(name, v)).collect();
            json!({ "name": name, "versions": all, "preferredVersion": all.last() })
        };
        let groups = self.component.api_groups();
        let mut parts = path.strip_prefix("/apis")?.split('/').skip(1);
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => {
                let all: Vec<_> = groups.iter().map(group).collect();
                Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": all }))
            }
            (Some(name), None, _) => {
                let mut found = group(groups.iter().find(|(n, _)| *n == name)?);
                found["kind"] = json!("APIGroup");
                found["apiVersion"] = json!("v1");
                Some(found)
            }
            (Some(name), Some(v), None) => {
                let (name, _) = groups.iter().find(|(n, versions)| *n == name && versions.contains(&v))?;
                let resources = resources(name);
                Some(
                    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{name}/{v}"), "resources": resources }),
                )
            }
            _ => None,
        }
    }
}

/// Without `watch`, so that nobody keeps up with what is not here.
fn resources(group: &str) -> Value {
    let resource = |name: &str, kind: &str, namespaced: bool, verbs: &[&str]| json!({ "name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs });
    match group {
        "cluster.karmada.io" => {
            json!([resource("clusters", "Cluster", false, &["create", "delete", "get", "list", "patch", "update"])])
        }
        "search.karmada.io" => json!([resource("search", "Search", false, &["get"])]),
        "metrics.k8s.io" => {
            json!([resource("nodes", "NodeMetrics", false, &["get", "list"]), resource("pods", "PodMetrics", true, &["get", "list"])])
        }
        _ => json!([]),
    }
}

/// A list of clusters as the real one prints it: `pkg/printers/internalversion/printers.go` in karmada. Anything else stays as it is.
pub(crate) fn as_table(value: Value) -> Value {
    if value["kind"] != "ClusterList" {
        return value;
    }
    let columns: Vec<Value> = ["Name", "Version", "Mode", "Ready", "Age"].iter().map(|n| json!({ "name": n, "priority": 0 })).collect();
    let row = |item: &Value| {
        let conditions = item["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|c| c["type"] == "Ready").map_or_else(|| json!("Unknown"), |c| c["status"].clone());
        json!({ "cells": [item["metadata"]["name"], item["status"]["kubernetesVersion"], item["spec"]["syncMode"], ready, "1m"] })
    };
    let rows: Vec<Value> = value["items"].as_array().into_iter().flatten().map(row).collect();
    json!({ "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": value["metadata"], "columnDefinitions": columns, "rows": rows })
}

impl Clusters {
    fn all(&mut self, method: &Method, body: &[u8]) -> Answer {
        if method == Method::GET {
            let items: Vec<_> = self.objects.values().collect();
            let meta = json!({ "resourceVersion": self.revision.to_string() });
            let list = json!({ "kind": "ClusterList", "apiVersion": "cluster.karmada.io/v1alpha1", "metadata": meta, "items": items });
            return (StatusCode::OK, list);
        }
        let Ok(object) = serde_json::from_slice::<Value>(body) else { return bad("no JSON") };
        match object["metadata"]["name"].as_str().map(str::to_owned) {
            Some(name) if method == Method::POST && self.objects.contains_key(&name) => conflict(&format!("cluster {name} exists")),
            Some(name) if method == Method::POST => self.keep(StatusCode::CREATED, &name, object),
            _ => bad("no object with a name is created"),
        }
    }

    fn one(&mut self, method: &Method, name: &str, body: &[u8]) -> Answer {
        let Some(known) = self.objects.get(name).cloned() else {
            // A patch by server-side apply makes what it does not find.
            let made = serde_json::from_slice::<Value>(body).ok().filter(|_| method == Method::PATCH);
            return made.map_or_else(|| missing(name), |object| self.keep(StatusCode::CREATED, name, object));
        };
        match *method {
            Method::GET => (StatusCode::OK, known),
            Method::DELETE => {
                self.revision += 1;
                (StatusCode::OK, self.objects.remove(name).unwrap_or_default())
            }
            Method::PUT | Method::PATCH => {
                let Ok(given) = serde_json::from_slice::<Value>(body) else { return bad("no JSON") };
                let version = &given["metadata"]["resourceVersion"];
                if version.is_string() && *version != known["metadata"]["resourceVersion"] {
                    return conflict(&format!("cluster {name} has changed"));
                }
                let mut next = known.clone();
                if method == Method::PUT {
                    let identity = ["uid", "creationTimestamp"].map(|k| (k, known["metadata"][k].clone()));
                    next = given;
                    for (key, value) in identity {
                        next["metadata"][key] = value;
                    }
                } else {
                    merge(&mut next, given);
                }
                self.keep(StatusCode::OK, name, next)
            }
            _ => missing(name),
        }
    }

    fn keep(&mut self, code: StatusCode, name: &str, mut object: Value) -> Answer {
        if !object.is_object() || !object["metadata"].is_object() {
            return bad("no object");
        }
        self.revision += 1;
        let meta = &mut object["metadata"];
        meta["name"] = json!(name);
        meta["resourceVersion"] = json!(self.revision.to_string());
        if meta["uid"].is_null() {
            meta["uid"] = json!(format!("00000000-0000-4000-8000-{:012}", self.revision));
            meta["creationTimestamp"] = json!(format!("{:.0}", jiff::Timestamp::now()));
        }
        self.objects.insert(name.to_owned(), object.clone());
        (code, object)
    }
}

fn conflict(why: &str) -> Answer {
    (StatusCode::CONFLICT, failure(StatusCode::CONFLICT, why))
}

/// A JSON merge patch (RFC 7396).
fn merge(target: &mut Value, patch: Value) {
    match patch {
        Value::Object(parts) if target.is_object() => {
            for (name, part) in parts {
                if part.is_null() {
                    target.as_object_mut().map(|t| t.remove(&name));
                } else {
                    merge(&mut target[name.as_str()], part);
                }
            }
        }
        other => *target = other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(apis: &Apis, method: Method, path: &str, body: &Value) -> Answer {
        apis.answer(&method, path, body.to_string().as_bytes())
    }

    #[test]
    fn discovery_says_what_there_is() {
        let apis = Apis::new(Component::MetricsAdapter);
        let (code, groups) = call(&apis, Method::GET, "/apis", &Value::Null);
        assert_eq!((code, groups["groups"].as_array().map(Vec::len)), (StatusCode::OK, Some(2)));
        for path in ["/apis/metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1", "/apis/custom.metrics.k8s.io/v1beta2"] {
            assert_eq!(call(&apis, Method::GET, path, &Value::Null).0, StatusCode::OK, "{path}");
        }
        for path in ["/apis/cluster.karmada.io", "/apis/metrics.k8s.io/v1", CLUSTERS, "/openapi/v2", "/"] {
            assert_eq!(call(&apis, Method::GET, path, &Value::Null).0, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn clusters_are_kept() {
        let apis = Apis::new(Component::AggregatedApiserver);
        let one = &format!("{CLUSTERS}/a");
        assert_eq!(call(&apis, Method::GET, one, &Value::Null).0, StatusCode::NOT_FOUND);
        let made = call(&apis, Method::POST, CLUSTERS, &json!({ "metadata": { "name": "a" }, "spec": { "x": 1, "y": 1 } }));
        assert_eq!(made.0, StatusCode::CREATED);
        assert_eq!(call(&apis, Method::POST, CLUSTERS, &json!({ "metadata": { "name": "a" } })).0, StatusCode::CONFLICT);
        let changed = call(&apis, Method::PATCH, one, &json!({ "spec": { "x": null, "z": 2 } })).1;
        assert_eq!(changed["spec"], json!({ "y": 1, "z": 2 }));
        assert_eq!(changed["metadata"]["uid"], made.1["metadata"]["uid"]);
        assert_eq!(call(&apis, Method::PUT, one, &made.1).0, StatusCode::CONFLICT, "an old version");
        assert_eq!(call(&apis, Method::PUT, one, &changed).0, StatusCode::OK);
        assert_eq!(call(&apis, Method::GET, CLUSTERS, &Value::Null).1["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(call(&apis, Method::DELETE, one, &Value::Null).0, StatusCode::OK);
        assert_eq!(call(&apis, Method::GET, one, &Value::Null).0, StatusCode::NOT_FOUND);
        assert_eq!(call(&apis, Method::PATCH, one, &json!({ "metadata": {} })).0, StatusCode::CREATED);
    }
}
