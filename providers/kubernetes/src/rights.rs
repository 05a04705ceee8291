//! What a user may do in a cluster, asked of the cluster itself: all rights in a namespace at once where the server lists them. A rule that
//! grants a right is believed; that none does says nothing, for not all of what authorizes can list its rules.

use std::collections::BTreeMap;
use std::fmt;

use futures::StreamExt;
use karmaform_model::{BoxFuture, Diagnostic};
use serde_json::{Value as Json, json};

use crate::client::{Client, Place};
use crate::failure::{Call, Failure};

/// Questions at a time.
const AT_ONCE: usize = 8;

/// One right, in the words of RBAC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    /// `create`
    pub(crate) verb: String,
    /// `deployments`
    pub(crate) resource: String,
    /// `apps`; empty for the core group.
    pub(crate) group: String,
    /// `portforward`; empty for the thing itself.
    pub(crate) subresource: String,
    /// None for all of them, and for what lives in none.
    pub(crate) namespace: Option<String>,
}

impl Right {
    /// From `VERB RESOURCE[.GROUP][/SUBRESOURCE] [in NAMESPACE]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (verb, what, namespace) = match words[..] {
            [verb, what] => (verb, what, None),
            [verb, what, "in", namespace] => (verb, what, Some(namespace.to_owned())),
            _ => return None,
        };
        let (what, subresource) = what.split_once('/').unwrap_or((what, ""));
        let (resource, group) = what.split_once('.').unwrap_or((what, ""));
        (!resource.is_empty()).then(|| Self {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            group: group.to_owned(),
            subresource: subresource.to_owned(),
            namespace,
        })
    }

    /// To forward to pods. The way is a WebSocket, which servers count as `get`
    /// (<https://kubernetes.io/docs/reference/access-authn-authz/authorization/>).
    pub(crate) fn to_forward(namespace: &str) -> Self {
        Self {
            verb: "get".to_owned(),
            resource: "pods".to_owned(),
            group: String::new(),
            subresource: "portforward".to_owned(),
            namespace: Some(namespace.to_owned()),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |sign: &str, text: &str| if text.is_empty() { String::new() } else { format!("{sign}{text}") };
        write!(f, "{} {}{}{}", self.verb, self.resource, part(".", &self.group), part("/", &self.subresource))?;
        self.namespace.iter().try_for_each(|n| write!(f, " in {n}"))
    }
}

/// What a user lacks to make objects in these places, all in one; nothing if nothing is lacking, or nobody can tell.
pub(crate) async fn to_make(client: &Client, places: &[&Place]) -> Option<Diagnostic> {
    let mut wanted = BTreeMap::new();
    for place in places {
        // An object that is applied is created, and patched, and looked at when it is waited for.
        for verb in ["create", "get", "patch"] {
            let right = Right {
                verb: verb.to_owned(),
                resource: place.served.plural.clone(),
                group: place.api_version.split_once('/').map(|(group, _)| group).unwrap_or_default().to_owned(),
                subresource: String::new(),
                namespace: place.namespace.clone(),
            };
            wanted.insert(right.to_string(), right);
        }
    }
    let wanted: Vec<Right> = wanted.into_values().collect();
    let missing = missing(client, &wanted).await.ok().filter(|m| !m.is_empty())?;
    let (rights, are) = (missing.join("\", \""), if missing.len() == 1 { "this is" } else { "these are" });
    let first = wanted.iter().find(|r| Some(&r.to_string()) == missing.first())?;
    let group = if first.group.is_empty() { String::new() } else { format!(".{}", first.group) };
    let place = first.namespace.as_ref().map(|n| format!(" -n {n}")).unwrap_or_default();
    Some(
        Diagnostic::error("Right missing in the cluster", format!("Of the rights to make what is planned, {are} not given: \"{rights}\"."))
            .with_hint("Let a role grant this to the user. To apply an object takes \"create\" and \"patch\", and \"get\" to look at it.")
            .with_hint(format!("What is granted can be seen by `kubectl auth can-i {} {}{group}{place}`.", first.verb, first.resource)),
    )
}

/// Whether the user has a right. Everybody may ask this about themselves; but it takes a POST, and who only looks makes none.
pub(crate) async fn allowed(client: &Client, right: &Right) -> Result<bool, Failure> {
    if client.only_looks() {
        return Ok(true);
    }
    let attributes = json!({ "verb": right.verb, "group": right.group, "resource": right.resource,
        "subresource": right.subresource, "namespace": right.namespace.as_deref().unwrap_or_default() });
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": attributes } });
    let answer = client.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).await?;
    Ok(answer["status"]["allowed"].as_bool().unwrap_or(false))
}

/// Reads a list of rights.
pub(crate) fn read(texts: &[&str]) -> Result<Vec<Right>, Diagnostic> {
    let broken = |text: &str| {
        let detail = format!("\"{text}\" is not of the form \"VERB RESOURCE[.GROUP][/SUBRESOURCE] [in NAMESPACE]\".");
        Diagnostic::error("Unreadable permission", detail)
            .with_hint("Write it like \"create deployments.apps in karmada-system\" or \"get pods/portforward\".")
    };
    texts.iter().map(|text| Right::parse(text).ok_or_else(|| broken(text))).collect()
}

/// The rules for what the user may do in a namespace; none if the server does not tell.
async fn rules(client: &Client, namespace: &str) -> Vec<Json> {
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": { "namespace": namespace } });
    let answer = client.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review).await.unwrap_or_default();
    answer["status"]["resourceRules"].as_array().cloned().unwrap_or_default()
}

/// True if a rule grants a right (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/>): for all objects, by name or by "*".
fn grants(rule: &Json, right: &Right) -> bool {
    let has = |list: &str, words: &[&str]| {
        rule[list].as_array().into_iter().flatten().filter_map(Json::as_str).any(|w| w == "*" || words.contains(&w))
    };
    let resource = match right.subresource.as_str() {
        "" => (right.resource.clone(), right.resource.clone()),
        sub => (format!("{}/{sub}", right.resource), format!("*/{sub}")),
    };
    let of_all = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
    of_all && has("verbs", &[&right.verb]) && has("apiGroups", &[&right.group]) && has("resources", &[&resource.0, &resource.1])
}

/// What the server lists of each namespace of which more than one right is wanted.
async fn listed<'a>(client: &Client, wanted: &'a [Right]) -> BTreeMap<&'a str, Vec<Json>> {
    let mut namespaces: BTreeMap<&str, usize> = BTreeMap::new();
    for namespace in wanted.iter().filter_map(|r| r.namespace.as_deref()) {
        *namespaces.entry(namespace).or_default() += 1;
    }
    let asked = namespaces.into_iter().filter(|(_, count)| *count > 1);
    let asked = asked.map(|(namespace, _)| -> BoxFuture<'_, _> { Box::pin(async move { (namespace, rules(client, namespace).await) }) });
    futures::stream::iter(asked.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await
}

/// Those that the user does not have, in their order.
pub(crate) async fn missing(client: &Client, wanted: &[Right]) -> Result<Vec<String>, Diagnostic> {
    if client.only_looks() {
        return Ok(Vec::new());
    }
    let listed = listed(client, wanted).await;
    let is_granted = |right: &Right| {
        let rules = right.namespace.as_deref().and_then(|n| listed.get(n));
        rules.is_some_and(|rules| rules.iter().any(|rule| grants(rule, right)))
    };
    let open: Vec<&Right> = wanted.iter().filter(|r| !is_granted(r)).collect();
    let asked = open.iter().map(|right| -> BoxFuture<'_, _> { Box::pin(allowed(client, right)) });
    let answers: Vec<Result<bool, Failure>> = futures::stream::iter(asked.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    let call = || Call { verb: "create", resource: "selfsubjectaccessreviews".to_owned(), ..Call::none() };
    let told = |failure: Failure| failure.diagnostic(client.place(), &call(), &[]);
    let denied = answers.into_iter().zip(open).filter_map(|(answer, right)| match answer {
        Ok(true) => None,
        Ok(false) => Some(Ok(right.to_string())),
        Err(failure) => Some(Err(told(failure))),
    });
    denied.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_rule_says_is_granted() {
        let rule = |verbs: Json, groups: Json, resources: Json| json!({ "verbs": verbs, "apiGroups": groups, "resources": resources });
        let check =
            |rule: &Json, text: &str, expected: bool| assert_eq!(grants(rule, &Right::parse(text).unwrap()), expected, "{text} by {rule}");
        let pods = rule(json!(["get", "list"]), json!([""]), json!(["pods", "pods/log"]));
        check(&pods, "get pods in a", true);
        check(&pods, "get pods/log in a", true);
        check(&pods, "get pods/exec in a", false);
        check(&pods, "delete pods in a", false);
        check(&pods, "get pods.metrics.k8s.io in a", false);
        check(&rule(json!(["*"]), json!(["*"]), json!(["*"])), "create deployments.apps/scale in a", true);
        check(&rule(json!(["update"]), json!(["apps"]), json!(["*/scale"])), "update deployments.apps/scale in a", true);
        check(&rule(json!(["update"]), json!(["apps"]), json!(["*/scale"])), "update deployments.apps in a", false);
        let mut named = rule(json!(["get"]), json!([""]), json!(["secrets"]));
        check(&named, "get secrets in a", true);
        named["resourceNames"] = json!(["one"]);
        check(&named, "get secrets in a", false);
        check(&Json::Null, "get secrets in a", false);
    }

    #[test]
    fn rights_are_read_and_written_alike() {
        for text in ["get pods", "create deployments.apps in a", "get pods/portforward in a-b", "update things.example.com/status", "* *"] {
            assert_eq!(Right::parse(text).unwrap().to_string(), text);
        }
        let right = Right::parse("update  deployments.apps/scale in a").unwrap();
        assert_eq!((right.resource.as_str(), right.group.as_str(), right.subresource.as_str()), ("deployments", "apps", "scale"));
        for text in ["", "get", "get pods a", "get pods in", "get .apps", "get pods of a"] {
            assert_eq!(Right::parse(text), None, "{text}");
        }
    }
}
