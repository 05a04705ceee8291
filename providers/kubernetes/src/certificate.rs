//! `kubernetes_certificate`: a certificate that the cluster's own authority signs (`certificates.k8s.io`). The request is made, approved, waited
//! for and taken away again; what is left is the certificate.

use std::time::Duration;

use jiff::Timestamp;
use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan, same,
};
use kube::api::PropagationPolicy;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use crate::client::{Client, Place};
use crate::failure::Failure;
use crate::look;
use crate::values::{decode, encode, text};

/// Its name.
pub(crate) const KIND: &str = "kubernetes_certificate";
const VERSION: &str = "certificates.k8s.io/v1";
const HOUR: i64 = 3600;
/// The longest wait for a signature.
const LIMIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_secs(1);
/// What a new signature changes.
const SIGNED: [&str; 3] = ["certificate", "not_before", "not_after"];
/// What makes the one that is there another than the one that is wanted.
const ASKED: [&str; 4] = ["request", "signer_name", "usages", "validity_hours"];

/// The type.
pub(crate) struct KubernetesCertificate {
    schema: Schema,
}

impl KubernetesCertificate {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let strings = Type::list(Type::String);
        let attributes = vec![
            Attribute::required("cluster", Type::Any, "Connection to the cluster. Its user must be allowed to approve for this signer."),
            Attribute::required("name", Type::String, "What the name of the request begins with, as long as it is there.").identity(),
            Attribute::required("request", Type::String, "The request, as PEM: the attribute `request` of a `tls_certificate_request`."),
            Attribute::optional("signer_name", Type::String, "Who signs.").or("kubernetes.io/kube-apiserver-client"),
            Attribute::optional("usages", strings, "What the certificate may be used for, in Kubernetes' words.").or(Value::strings([
                "digital signature",
                "key encipherment",
                "client auth",
            ])),
            Attribute::optional("validity_hours", Type::Number, "How long it is to be valid, in hours; the signer may make it shorter.")
                .or(8_760i64),
            Attribute::optional(
                "renew_before_hours",
                Type::Number,
                "How long before its end it is signed anew, in hours; a third of its life at most.",
            )
            .or(2_880i64),
            Attribute::computed("certificate", Type::String, "The certificate, as PEM."),
            Attribute::computed("not_before", Type::String, "When it starts to be valid (RFC 3339)."),
            Attribute::computed("not_after", Type::String, "When it ends (RFC 3339)."),
        ];
        let doc = "A certificate that the authority of a cluster signs: asked for, approved, and signed anew before it ends.";
        Self { schema: Schema::new(doc, attributes).through("cluster").told_once() }
    }
}

fn hours(object: &Object, name: &str) -> i64 {
    object.get(name).and_then(Value::as_i64).unwrap_or(0)
}

fn second(object: &Object, name: &str) -> Option<i64> {
    text(object, name)?.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// True if it ends soon. A signer that signs for less than was asked must not make every plan a renewal.
fn is_due(now: i64, object: &Object) -> bool {
    let (Some(start), Some(end)) = (second(object, "not_before"), second(object, "not_after")) else { return true };
    let early = hours(object, "renew_before_hours").saturating_mul(HOUR).min((end - start) / 3);
    now >= end - early
}

impl ResourceSpec for KubernetesCertificate {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, context: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        for name in ["validity_hours", "renew_before_hours"] {
            let hours = wanted.and_then(|w| w.get(name)).and_then(Value::as_number);
            if hours.is_some_and(|h| h.as_i64().is_none_or(|h| !(0..=876_000).contains(&h))) {
                let detail = format!("`{name}` must be a whole number of hours from 0 to 876000.");
                return Err(Diagnostic::error("Validity out of bounds", detail).into());
            }
        }
        let Some(wanted) = wanted else {
            // It can't be taken back; it ends by itself.
            return Ok(before.map_or_else(|| default_plan(&self.schema, None, None), |b| Change::Forget { before: b.clone() }));
        };
        let mut change = match default_plan(&self.schema, before, Some(wanted)) {
            Change::NoOp { object } if is_due(context.now, &object) => {
                Change::Update { before: before.cloned().unwrap_or_default(), after: object }
            }
            change => change,
        };
        let is_new = match &change {
            Change::Update { before, after } => is_due(context.now, before) || ASKED.iter().any(|n| !same(before.get(n), after.get(n))),
            other => !other.is_no_op(),
        };
        if let (true, Some(after)) = (is_new, change.after_mut()) {
            after.extend(SIGNED.map(|name| (name.to_owned(), Value::unknown_not_null(Type::String))));
        }
        Ok(change)
    }

    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let Some(certificate) = text(found, "certificate") else { return Ok(None) };
        let mut object = wanted.clone();
        Ok(fill(&mut object, certificate.to_owned()).ok().map(|()| object))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            Change::Update { before, after } if after.get("certificate").is_some_and(Value::is_unknown) => {
                let end = text(before, "not_after").unwrap_or("at an unknown time");
                vec![format!("signed anew: the one that is there ends {end}")]
            }
            _ => Vec::new(),
        }
    }
}

/// Asks for a signature, approves it, and gives the certificate as PEM.
async fn sign(client: &Client, wanted: &Object, limit: Duration) -> Result<String, Diagnostic> {
    let Some(place) = look::place(client, VERSION, "CertificateSigningRequest", "").await? else {
        return Err(Diagnostic::error("Cluster signs no certificates", format!("{} serves no {VERSION}.", client.place()))
            .with_hint("Kubernetes serves it from 1.19 on: `kubectl api-versions` says what this cluster serves."));
    };
    let request = text(wanted, "request").unwrap_or_default();
    let stamp = format!("{request}{}", Timestamp::now());
    let sum: String = Sha256::digest(stamp.as_bytes()).iter().take(5).map(|b| format!("{b:02x}")).collect();
    let name = format!("{}-{sum}", text(wanted, "name").unwrap_or_default());
    let usages: Vec<&str> = wanted.get("usages").and_then(Value::as_items).into_iter().flatten().filter_map(Value::as_str).collect();
    let manifest = json!({
        "apiVersion": VERSION,
        "kind": "CertificateSigningRequest",
        "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "karmaform" } },
        "spec": {
            "request": encode(request.as_bytes()),
            "signerName": text(wanted, "signer_name"),
            "usages": usages,
            "expirationSeconds": hours(wanted, "validity_hours").saturating_mul(HOUR).clamp(600, i64::from(i32::MAX)),
        },
    });
    let failed = |verb: &'static str, failure: Failure| failure.diagnostic(client.place(), &place.call(verb, &name), &[]);
    match client.create(&format!("/apis/{VERSION}/certificatesigningrequests"), &manifest).await {
        // Nobody else calls one so: it was made, and the answer was lost on the way.
        Err(failure) if failure.code() != Some(409) => return Err(failed("create", failure)),
        _ => {}
    }
    let signed = signed(client, &place, &name, limit).await;
    // Whatever came of it: nobody needs it any more.
    let cleared = client.delete(&place, &name, None, PropagationPolicy::Background).await;
    let signed = signed?;
    cleared.map_err(|f| failed("delete", f))?;
    Ok(signed)
}

async fn signed(client: &Client, place: &Place, name: &str, limit: Duration) -> Result<String, Diagnostic> {
    let condition = json!({ "type": "Approved", "status": "True", "reason": "Karmaform", "message": "Asked for by karmaform." });
    let approval = json!({ "status": { "conditions": [condition] } });
    let approved = client.patch_part(place, name, "approval", &approval).await;
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        let found = client.get(place, name).await.map_err(|f| f.diagnostic(client.place(), &place.call("get", name), &[]))?;
        let status = found.unwrap_or_default()["status"].take();
        if let Some(pem) = status["certificate"].as_str().and_then(decode) {
            return Ok(pem);
        }
        let of = |ty: &str| status["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == ty).cloned();
        if let Some(why) = of("Denied").or_else(|| of("Failed")) {
            let detail = format!("The cluster does not sign it: {}.", said(&why));
            return Err(Diagnostic::error("Certificate is not signed", detail).with_hint(
                "See what `signer_name` signs: the name in the request, `usages` and `validity_hours` must be what it allows.",
            ));
        }
        // Somebody else may have approved it.
        if let (Err(failure), None) = (&approved, of("Approved")) {
            return Err(failure.diagnostic(client.place(), &place.call("approve", name), &[]));
        }
        if start.elapsed() >= limit {
            let detail = format!("The request was approved, but after {} s nobody has signed it.", limit.as_secs());
            return Err(Diagnostic::error("Certificate is not signed", detail)
                .with_hint("See whether kube-controller-manager runs with the controller `csrsigning`, and has the key of a CA."));
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE);
    }
}

fn said(condition: &Json) -> String {
    let text = |name: &str| condition[name].as_str().unwrap_or_default().trim_end_matches('.').to_owned();
    format!("{} ({})", text("message"), text("reason"))
}

/// Puts a certificate and its times into an object.
fn fill(object: &mut Object, certificate: String) -> Result<(), Diagnostic> {
    let broken = || {
        Diagnostic::error("Certificate can't be read", "The cluster signed something that is no X.509 certificate.")
            .with_hint("See who signs for `signer_name` in this cluster, and with what.")
    };
    let (_, pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).map_err(|_| broken())?;
    let parsed = pem.parse_x509().map_err(|_| broken())?;
    let written = |seconds: i64| Timestamp::from_second(seconds).map(|t| t.to_string()).map_err(|_| broken());
    let validity = parsed.validity();
    let (start, end) = (written(validity.not_before.timestamp())?, written(validity.not_after.timestamp())?);
    object.insert("not_before".to_owned(), start.into());
    object.insert("not_after".to_owned(), end.into());
    object.insert("certificate".to_owned(), certificate.into());
    Ok(())
}

impl ResourceType<Client> for KubernetesCertificate {
    fn observe<'a>(&'a self, _: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(ask.known.clone()) })
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(mut object) = change.after().cloned() else { return Ok(None) };
            if object.get("certificate").and_then(Value::as_str).is_none() {
                let certificate = sign(client, &object, LIMIT).await?;
                fill(&mut object, certificate)?;
            }
            Ok(Some(object))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock;
    use crate::values::object;

    fn signed(start: &str, end: &str) -> Object {
        object([
            ("name", "eu1".into()),
            ("request", "r".into()),
            ("signer_name", "s".into()),
            ("usages", Value::strings(["client auth"])),
            ("validity_hours", 8_760i64.into()),
            ("renew_before_hours", 2_880i64.into()),
            ("certificate", "c".into()),
            ("not_before", start.into()),
            ("not_after", end.into()),
        ])
    }

    #[test]
    fn it_is_signed_anew_before_it_ends() {
        let ty = KubernetesCertificate::new();
        let moment = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        let plan = |before: &Object, now: &str| {
            let mut wanted = before.clone();
            for name in SIGNED {
                wanted.remove(name);
            }
            ty.plan(&PlanContext { now: moment(now) }, Some(before), Some(&wanted)).unwrap()
        };
        let year = signed("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
        assert!(plan(&year, "2026-08-01T00:00:00Z").is_no_op());
        let change = plan(&year, "2026-10-01T00:00:00Z");
        assert!(change.after().unwrap()["certificate"].is_unknown());
        assert_eq!(ty.impact(&change), ["signed anew: the one that is there ends 2027-01-01T00:00:00Z"]);
        // A signer that gives a day only.
        let day = signed("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        assert!(plan(&day, "2026-01-01T12:00:00Z").is_no_op());
        assert!(!plan(&day, "2026-01-01T17:00:00Z").is_no_op());
        assert!(matches!(ty.plan(&PlanContext { now: 0 }, Some(&year), None).unwrap(), Change::Forget { .. }));
    }

    /// What comes of a request that the cluster answers with this status, and whether it is left there.
    async fn refused(status: Json, limit: Duration) -> (Diagnostic, bool) {
        let (client, seen) = mock::client(move |method, path| match (method, path) {
            (_, "/apis/certificates.k8s.io/v1") => mock::group(&[("CertificateSigningRequest", "certificatesigningrequests", false)]),
            ("GET", _) => (200, json!({ "metadata": { "name": "x" }, "status": status })),
            _ => (200, json!({})),
        })
        .await;
        let mut wanted = signed("", "");
        wanted.remove("certificate");
        let why = match limit {
            LIMIT => KubernetesCertificate::new().apply(&client, &Change::Create { after: wanted }).await.map(drop),
            limit => sign(&client, &wanted, limit).await.map(drop),
        };
        let is_left = !seen.lock().unwrap().iter().any(|asked| asked.starts_with("DELETE "));
        (why.unwrap_err(), is_left)
    }

    #[tokio::test]
    async fn what_is_not_signed_says_why_and_nothing_is_left_of_it() {
        let of = |ty: &str| json!({ "conditions": [{ "type": ty, "status": "True", "reason": "Rules", "message": "no such user." }] });
        for (status, limit, detail, hint) in [
            (of("Denied"), LIMIT, "The cluster does not sign it: no such user (Rules).", "`usages`"),
            (of("Approved"), Duration::ZERO, "The request was approved, but after 0 s nobody has signed it.", "csrsigning"),
        ] {
            let (why, is_left) = refused(status, limit).await;
            assert_eq!((why.summary.as_str(), why.detail.as_str()), ("Certificate is not signed", detail));
            assert!(why.hints[0].contains(hint) && !is_left, "{why:?}");
        }
        let (why, is_left) = refused(json!({ "certificate": encode(b"no PEM") }), LIMIT).await;
        assert_eq!(why.summary, "Certificate can't be read");
        assert!(why.hints[0].contains("`signer_name`") && !is_left, "{why:?}");
    }

    #[tokio::test]
    async fn a_request_whose_answer_was_lost_is_gone_on_with() {
        let denied = json!({ "conditions": [{ "type": "Denied", "status": "True", "reason": "Rules", "message": "no" }] });
        let (client, seen) = mock::client(move |method, path| match (method, path) {
            (_, "/apis/certificates.k8s.io/v1") => mock::group(&[("CertificateSigningRequest", "certificatesigningrequests", false)]),
            ("POST", _) => mock::refused(409, "certificatesigningrequests \"x\" already exists"),
            ("GET", _) => (200, json!({ "metadata": { "name": "x" }, "status": denied.clone() })),
            _ => (200, json!({})),
        })
        .await;
        let why = sign(&client, &signed("", ""), LIMIT).await.unwrap_err();
        assert_eq!(why.detail, "The cluster does not sign it: no (Rules).");
        assert!(seen.lock().unwrap().iter().any(|asked| asked.starts_with("DELETE ")), "nothing is left of it: {seen:?}");
    }

    #[tokio::test]
    async fn a_cluster_that_is_too_old_to_sign_says_so() {
        let (client, _) = mock::client(|_, _| mock::missing()).await;
        let why = KubernetesCertificate::new().apply(&client, &Change::Create { after: Object::new() }).await.unwrap_err();
        assert_eq!(why.summary, "Cluster signs no certificates");
        assert!(why.detail.ends_with("serves no certificates.k8s.io/v1.") && why.hints[0].contains("1.19"), "{why:?}");
    }
}
