//! `tls_certificate_request`: a key, and the request for a certificate of it that somebody else signs (PKCS#10).

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};

use crate::authority::read_key;
use crate::names::strings;
use crate::{issue, names, renewal};

pub(crate) struct CertificateRequest {
    schema: Schema,
}

impl CertificateRequest {
    pub(crate) fn new() -> Self {
        let attributes = vec![
            Attribute::required("common_name", Type::String, "The common name that is asked for; to Kubernetes it is a user.")
                .forces_replace(),
            Attribute::optional(
                "organizations",
                Type::list(Type::String),
                "The organizations that are asked for; to Kubernetes they are groups.",
            )
            .forces_replace(),
            Attribute::optional("dns_names", Type::list(Type::String), "The DNS names that are asked for; \"*.\" may come first.")
                .forces_replace(),
            Attribute::optional("ip_addresses", Type::list(Type::String), "The IP addresses that are asked for.").forces_replace(),
            Attribute::optional(
                "names",
                Type::list(Type::String),
                "More of both, DNS names and IP addresses in one list: what is only told apart once it is known.",
            )
            .forces_replace(),
            renewal::algorithm().forces_replace(),
            Attribute::computed("request", Type::String, "The request, as PEM."),
            Attribute::computed("private_key", Type::String, "The private key, as PEM in PKCS#8 form.").secret(),
        ];
        let doc = "A private key with a request for a certificate, which somebody else signs. Anything else in it is another key.";
        Self { schema: Schema::new(doc, attributes).state_only() }
    }
}

/// What the certificate is to say.
fn asked_for(object: &Object) -> issue::Request {
    let [mut dns_names, mut ip_addresses, names] = ["dns_names", "ip_addresses", "names"].map(|name| strings(object, name));
    names::sort_in(names, &mut dns_names, &mut ip_addresses);
    issue::Request {
        common_name: object.get("common_name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        organizations: strings(object, "organizations"),
        dns_names,
        ip_addresses,
        ..issue::Request::default()
    }
}

impl ResourceSpec for CertificateRequest {
    fn name(&self) -> &'static str {
        "tls_certificate_request"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        if let Some(wanted) = wanted {
            let mut problems = Diagnostics::new();
            names::check_text("common_name", wanted.get("common_name").and_then(Value::as_str), &mut problems);
            for organization in strings(wanted, "organizations") {
                names::check_text("organizations", Some(&organization), &mut problems);
            }
            names::check_alternative_names(wanted, &mut problems);
            names::check_algorithm(wanted, &mut problems);
            if !problems.is_empty() {
                return Err(problems);
            }
        }
        Ok(default_plan(&self.schema, before, wanted))
    }

    /// The key is what counts: the request is made of it again.
    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let Some(text) = found.get("private_key").and_then(Value::as_str) else { return Ok(None) };
        let Ok(key) = read_key("private_key", text) else { return Ok(None) };
        let mut object = wanted.clone();
        let request = issue::request(&asked_for(wanted), &key)?;
        issue::asked(&key, request, &mut object);
        object.insert("private_key".to_owned(), Value::from(text).secret());
        Ok(Some(object))
    }
}

impl ResourceType<()> for CertificateRequest {
    fn observe<'a>(&'a self, (): &'a (), ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(ask.known.clone()) })
    }

    fn apply<'a>(&'a self, (): &'a (), change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(mut object) = change.after().cloned() else { return Ok(None) };
            if object.get("private_key").and_then(Value::as_str).is_none() {
                let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let key = issue::new_key(&text("algorithm"))?;
                let request = issue::request(&asked_for(&object), &key)?;
                issue::asked(&key, request, &mut object);
            }
            Ok(Some(object))
        })
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::Action;

    use super::*;
    use crate::testing::{applied, openssl, plan, text, wanted};

    #[test]
    fn a_request_says_who_asks() {
        let organizations = Value::strings(["system:karmada:agents"]);
        let ty = CertificateRequest::new();
        let names = [("dns_names", Value::strings(["estimator.example.org"])), ("ip_addresses", Value::strings(["10.0.0.7"]))];
        let [names, addresses] = names;
        let asked = wanted(&ty, &[("common_name", "system:karmada:agent:eu1".into()), ("organizations", organizations), names, addresses]);
        let change = plan(&ty, 0, None, &asked).unwrap();
        assert!(change.after().unwrap()["request"].is_unknown() && change.after().unwrap()["private_key"].secret);
        let object = applied(&ty, &change);
        let files = [("request.pem", text(&object, "request"))];
        if let Some(output) =
            openssl(&files, &["req", "-in", "request.pem", "-noout", "-verify", "-text", "-subject", "-nameopt", "RFC2253"])
        {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{said}");
            assert!(said.contains("CN=system:karmada:agent:eu1") && said.contains("O=system:karmada:agents"), "{said}");
            assert!(said.contains("DNS:estimator.example.org, IP Address:10.0.0.7"), "{said}");
        }
        assert!(plan(&ty, 0, Some(&object), &asked).unwrap().is_no_op());
        let mut other = asked;
        other.insert("common_name".into(), "x".into());
        assert_eq!(plan(&ty, 0, Some(&object), &other).unwrap().action(), Action::DestroyThenCreate);
    }
}
