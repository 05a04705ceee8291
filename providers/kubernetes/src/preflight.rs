//! `kubernetes_preflight`: whether a server can be reached from a pod, before anything is made that relies on it. What is tried is tried in the
//! plan as well, as soon as all that it takes is there; then it is not tried again by the same run.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type,
    default_plan, same,
};

use crate::client::Client;
use crate::preflight_check::{self, Wanted};
use crate::values::bad_timeout;

/// Its name.
pub(crate) const KIND: &str = "kubernetes_preflight";
/// Seconds until the pod must run: its image may have to be pulled.
const TIMEOUT: i64 = 60;
/// What is another way to the server, and is tried anew.
const WAY: [&str; 4] = ["address", "ca_certificate", "insecure", "proxy_url"];

/// The type.
pub(crate) struct KubernetesPreflight {
    schema: Schema,
}

impl KubernetesPreflight {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let text = |name: &'static str, doc: &'static str| Attribute::optional(name, Type::String, doc);
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster that the pod runs in."),
            Attribute::required("namespace", Type::String, "The namespace that it runs in, which must be there."),
            Attribute {
                // Another way is tried, and nothing is made anew.
                forces_replace: false,
                ..Attribute::required("address", Type::String, "The URL at which the server is to be reached: \"https://10.0.0.1:6443\".")
                    .identity()
            },
            Attribute::required(
                "target",
                Type::Any,
                "Connection to that server as it is reached from here: whose credentials are used, and which cluster must answer.",
            ),
            text("ca_certificate", "The CA that signed what is at that URL, in PEM; the connection's unless written."),
            Attribute::optional("insecure", Type::Bool, "Whether the server's certificate is not checked.").or(false),
            text("proxy_url", "The proxy between the pod and the server: \"http://...\" or \"socks5://...\"."),
            Attribute::required("image", Type::String, "The image of the pod. It must have the programs `sleep` and `nc`."),
            Attribute::optional("pod", Type::Any, "Other fields of the pod's `spec`: `tolerations`, `imagePullSecrets`."),
            Attribute::optional("timeout", Type::Number, "Seconds until the pod must run.").or(TIMEOUT),
        ];
        let doc = "Whether a server can be reached from a pod: name, way, certificate, credentials, and that it is the right one. The pod is there \
                   only while that is tried, in a plan too.";
        Self { schema: Schema::new(doc, attributes).through("cluster").tried() }
    }
}

/// What of the two connections makes another way.
const ENDS: [(&str, &[&str]); 2] = [("cluster", &["id"]), ("target", &["id", "ca_certificate", "server_ca"])];

/// True if there is a way that was not tried yet.
fn is_due(known: Option<&Object>, wanted: &Object) -> bool {
    let Some(known) = known else { return true };
    let part = |object: &Object, end: &str, name: &str| object.get(end)?.get(name).filter(|v| !v.is_null() && !v.is_unknown()).cloned();
    // What does not say which it is is taken for the same.
    let differs = |end: &str, name: &str| match (part(known, end, name), part(wanted, end, name)) {
        (Some(old), Some(new)) => !same(Some(&old), Some(&new)),
        _ => false,
    };
    WAY.iter().any(|name| !same(known.get(name), wanted.get(name)))
        || ENDS.iter().any(|(end, names)| names.iter().any(|name| differs(end, name)))
}

impl ResourceSpec for KubernetesPreflight {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        if let Some(problem) = wanted.and_then(bad_timeout) {
            return Err(problem.into());
        }
        match (before, wanted) {
            // Where it was tried from, and with what, is nothing that could be put right.
            (Some(before), Some(wanted)) if !is_due(Some(before), wanted) => Ok(Change::NoOp { object: before.clone() }),
            (Some(before), Some(wanted)) => Ok(Change::Update { before: before.clone(), after: wanted.clone() }),
            // There is nothing to take away.
            (Some(before), None) => Ok(Change::Forget { before: before.clone() }),
            (None, wanted) => Ok(default_plan(&self.schema, None, wanted)),
        }
    }

    fn recovered(&self, wanted: &Object, _: &Object) -> Result<Option<Object>, Diagnostic> {
        // What relies on it is there, so there was a way.
        Ok(Some(wanted.clone()))
    }
}

impl ResourceType<Client> for KubernetesPreflight {
    fn observe<'a>(&'a self, client: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { observe(client, &[ask]).await.pop().unwrap_or(Ok(None)) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(after) = change.after() else { return Ok(None) };
            let Some(wanted) = Wanted::read(after)? else {
                return Err(Diagnostic::error("No way to try", "What the server is reached by is not known.").with_hint("This is a bug."));
            };
            preflight_check::all(client, &[wanted]).await.pop().unwrap_or(Ok(()))?;
            Ok(Some(after.clone()))
        })
    }
}

/// Tries what is due and known, and gives back what the state remembers.
pub(crate) async fn observe(client: &Client, asks: &[&Ask]) -> Vec<Result<Option<Object>, Diagnostic>> {
    let mut answers: Vec<_> = asks.iter().map(|ask| Ok(ask.known.clone())).collect();
    let (mut numbers, mut due) = (Vec::new(), Vec::new());
    for (number, ask) in asks.iter().enumerate() {
        let Some(wanted) = ask.wanted.as_ref().filter(|w| is_due(ask.known.as_ref(), w)) else { continue };
        match Wanted::read(wanted) {
            Ok(Some(wanted)) => {
                numbers.push(number);
                due.push(wanted);
            }
            Ok(None) => {}
            Err(error) => answers[number] = Err(error),
        }
    }
    for (number, tried) in numbers.into_iter().zip(preflight_check::all(client, &due).await) {
        match tried {
            // The same plan may make the namespace; then it is tried when that is there.
            Err(error) if error.summary == preflight_check::NO_NAMESPACE => {}
            Err(error) => answers[number] = Err(error),
            Ok(()) => {}
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;
    use karmaform_model::Value;

    fn wanted(address: &str, image: &str) -> Object {
        object([("namespace", "n".into()), ("address", address.into()), ("image", image.into()), ("insecure", false.into())])
    }

    #[test]
    fn only_another_way_is_tried_anew() {
        let spec = KubernetesPreflight::new();
        let plan = |before: Option<&Object>, wanted: Option<&Object>| spec.plan(&PlanContext { now: 0 }, before, wanted).unwrap();
        let before = wanted("https://a", "busybox:1");
        assert!(matches!(plan(None, Some(&before)), Change::Create { .. }));
        assert!(plan(Some(&before), Some(&wanted("https://a", "busybox:2"))).is_no_op());
        assert!(matches!(plan(Some(&before), Some(&wanted("https://b", "busybox:1"))), Change::Update { .. }));
        assert!(matches!(plan(Some(&before), None), Change::Forget { .. }));
        let mut proxied = before.clone();
        proxied.insert("proxy_url".to_owned(), Value::from("http://p:3128"));
        assert!(is_due(Some(&before), &proxied));
        let to = |id: Value, token: &str| {
            let mut object = before.clone();
            object.insert("target".to_owned(), Value::object([("id", id), ("token", token.into())]));
            object
        };
        let joined = to("u1".into(), "a");
        assert!(!is_due(Some(&joined), &to("u1".into(), "b")) && !is_due(Some(&joined), &to(Value::unknown(Type::String), "a")));
        assert!(is_due(Some(&joined), &to("u2".into(), "a")), "another cluster at the same address");
    }

    #[tokio::test]
    async fn a_way_that_is_still_not_known_in_the_end_is_not_taken_for_tried() {
        let (client, seen) = crate::mock::client(|_, _| crate::mock::missing()).await;
        let mut after = wanted("https://a", "busybox:1");
        after.insert("address".to_owned(), Value::unknown(Type::String));
        let why = KubernetesPreflight::new().apply(&client, &Change::Create { after }).await.unwrap_err();
        assert_eq!(why.summary, "No way to try");
        assert!(why.detail.contains("not known") && seen.lock().unwrap().is_empty(), "{why:?}");
    }
}
