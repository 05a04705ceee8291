//! `tls_private_key`: a key by itself, for what signs without a certificate (tokens of service accounts).
//!
//! It never ends and is never renewed. Another algorithm is another key.

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, ResourceType, Schema, Type, Value,
    default_plan,
};

use crate::authority::read_key;
use crate::{found, issue, names, renewal};

pub(crate) struct PrivateKey {
    schema: Schema,
}

impl PrivateKey {
    pub(crate) fn new() -> Self {
        let attributes = vec![
            renewal::algorithm().forces_replace(),
            Attribute::computed("private_key", Type::String, "The private key, as PEM in PKCS#8 form.").secret(),
            Attribute::computed("public_key", Type::String, "Its public key, as PEM (SubjectPublicKeyInfo)."),
            Attribute::computed("fingerprint", Type::String, "The SHA-256 of the public key (SubjectPublicKeyInfo), in hexadecimal."),
        ];
        let doc = "A private key with its public key, for what signs without a certificate. It is never renewed: replacing it makes \
                   everything worthless that it signed.";
        Self { schema: Schema::new(doc, attributes).state_only() }
    }
}

impl ResourceSpec for PrivateKey {
    fn name(&self) -> &'static str {
        "tls_private_key"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        if let Some(wanted) = wanted {
            let mut problems = Diagnostics::new();
            names::check_algorithm(wanted, &mut problems);
            if !problems.is_empty() {
                return Err(problems);
            }
        }
        Ok(default_plan(&self.schema, before, wanted))
    }

    fn recovered(&self, wanted: &Object, found: &Object) -> Result<Option<Object>, Diagnostic> {
        let Some(text) = found.get("private_key").and_then(Value::as_str) else { return Ok(None) };
        let Ok(key) = read_key("private_key", text) else { return Ok(None) };
        let mut object = wanted.clone();
        issue::bare(&key, &mut object);
        object.insert("private_key".to_owned(), Value::from(text).secret());
        object.extend(found::algorithm(&key).map(|kind| ("algorithm".to_owned(), kind.into())));
        Ok(Some(object))
    }

    fn impact(&self, change: &Change) -> Vec<String> {
        match change {
            Change::Replace { .. } => vec!["replaces the key: what the old one signed is not accepted any more".to_owned()],
            _ => Vec::new(),
        }
    }
}

impl ResourceType<()> for PrivateKey {
    fn observe<'a>(&'a self, (): &'a (), ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move { Ok(ask.known.clone()) })
    }

    fn apply<'a>(&'a self, (): &'a (), change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(mut object) = change.after().cloned() else { return Ok(None) };
            if object.get("private_key").and_then(Value::as_str).is_none() {
                let algorithm = object.get("algorithm").and_then(Value::as_str).unwrap_or_default().to_owned();
                issue::bare(&issue::new_key(&algorithm)?, &mut object);
            }
            Ok(Some(object))
        })
    }
}

#[cfg(test)]
mod tests {
    use karmaform_model::Action;

    use super::*;
    use crate::issue::ALGORITHMS;
    use crate::testing::{applied, openssl, openssl_agrees, plan, summaries, text, wanted};

    fn key(algorithm: &str) -> Object {
        wanted(&PrivateKey::new(), &[("algorithm", algorithm.into())])
    }

    #[test]
    fn each_algorithm_gives_a_pair_that_others_accept() {
        for algorithm in ALGORITHMS {
            let change = plan(&PrivateKey::new(), 0, None, &key(algorithm)).unwrap();
            assert!(change.after().unwrap()["public_key"].is_unknown() && change.after().unwrap()["private_key"].secret);
            let object = applied(&PrivateKey::new(), &change);
            assert!(object["private_key"].secret && !object["public_key"].secret);
            assert!(text(&object, "public_key").starts_with("-----BEGIN PUBLIC KEY-----\n"));
            assert_eq!(text(&object, "fingerprint").len(), 64);
            let files = [("key.pem", text(&object, "private_key")), ("data", "signed")];
            openssl_agrees(&files, &["pkey", "-in", "key.pem", "-noout", "-check"]);
            if let Some(output) = openssl(&files, &["pkey", "-in", "key.pem", "-pubout"]) {
                assert_eq!(String::from_utf8_lossy(&output.stdout), text(&object, "public_key"), "{algorithm}");
            }
        }
    }

    #[test]
    fn it_stays_until_its_algorithm_changes() {
        let kind = PrivateKey::new();
        let before = applied(&kind, &plan(&kind, 0, None, &key("ECDSA-P256")).unwrap());
        assert_eq!(plan(&kind, i64::MAX, Some(&before), &key("ECDSA-P256")).unwrap().action(), Action::NoOp);
        let change = plan(&kind, 0, Some(&before), &key("RSA-2048")).unwrap();
        assert_eq!(change.action(), Action::DestroyThenCreate);
        assert_eq!(kind.impact(&change), ["replaces the key: what the old one signed is not accepted any more"]);
        assert_ne!(applied(&kind, &change)["fingerprint"], before["fingerprint"]);
        assert!(summaries(&plan(&kind, 0, None, &key("DSA")).unwrap_err()).contains("Unknown algorithm"));
    }
}
