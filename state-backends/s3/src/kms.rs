//! AWS KMS: keys that are wrapped by one that never leaves it, with the credentials that the bucket would be reached with.
//! <https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html>

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use karmaform_model::{BoxFuture, Diagnostic, KeyService, Object, SealError};
use serde::Deserialize;
use serde_json::json;

use crate::access::Access;
use crate::http::{Ask, Signature};
use crate::limits::Limits;
use crate::place::domain;
use crate::schema::is_of_access;
use crate::settings::{Surroundings, endpoints, reach, string};
use crate::words;

/// A key of KMS.
struct Kms {
    access: Access,
    url: String,
    key_id: String,
}

/// What is authenticated with each key, so that one that was wrapped for something else is not taken.
/// <https://docs.aws.amazon.com/kms/latest/developerguide/encrypt_context.html>
const CONTEXT: (&str, &str) = ("karmaform", "encryption");

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wrapped {
    ciphertext_blob: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Unwrapped {
    plaintext: String,
}

#[derive(Default, Deserialize)]
struct Complaint {
    #[serde(default, rename = "__type")]
    kind: String,
    #[serde(default, alias = "Message")]
    message: String,
}

/// Opens a key of KMS: `key_id`, and what the backend says of credentials, regions and how servers are reached. Nobody is asked yet.
///
/// # Errors
/// For arguments that make no sense.
pub fn kms(arguments: &Object, environment: &BTreeMap<String, String>, home: Option<&Path>) -> Result<Arc<dyn KeyService>, Diagnostic> {
    let about = |d: Diagnostic| {
        Diagnostic::error("Invalid encryption configuration", format!("\"aws_kms\": {}", d.detail)).with_hint(d.hints.join(" "))
    };
    if let Some(name) = arguments.keys().find(|n| n.as_str() != "key_id" && !is_of_access(n)) {
        return Err(Diagnostic::error("Invalid encryption configuration", format!("\"aws_kms\" has no argument \"{name}\"."))
            .with_hint("It has key_id, and those of the backend \"s3\" that say how Amazon is reached."));
    }
    let key_id = string(arguments, "key_id").ok_or_else(|| {
        Diagnostic::error("Invalid encryption configuration", "\"aws_kms\" does not say which key.")
            .with_hint("Give key_id: the key's id, its ARN, or an alias like \"alias/karmaform\".")
    })?;
    let around = Surroundings { environment, home };
    let endpoints = endpoints(arguments, around).map_err(about)?;
    let reach = reach(arguments, around).map_err(about)?;
    let access = Access::of(arguments, around, &endpoints, &reach, endpoints.kms.is_some(), Limits::default()).map_err(about)?;
    let url = match endpoints.kms {
        Some(url) => url,
        // https://docs.aws.amazon.com/general/latest/gr/kms.html
        None => format!("https://kms.{}.{}", access.region, domain(&access.region).map_err(about)?),
    };
    Ok(Arc::new(Kms { access, url, key_id }))
}

impl Kms {
    async fn ask<T: for<'a> Deserialize<'a>>(&self, action: &str, body: serde_json::Value) -> Result<T, SealError> {
        let failed = |why: String| SealError::Failed(why.trim_end_matches('.').to_owned());
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.1")),
            // Letters alone.
            (
                HeaderName::from_static("x-amz-target"),
                HeaderValue::try_from(format!("TrentService.{action}")).map_err(|e| failed(e.to_string()))?,
            ),
        ]);
        let credential = self.access.credentials.get().await.map_err(|e| failed(e.to_string()))?;
        let signature = Signature { credential: &credential, service: "kms", region: &self.access.region };
        let ask = Ask { method: Method::POST, url: format!("{}/", self.url), headers, body: body.to_string().into() };
        let service = format!("AWS KMS at {}", self.url);
        let reply = self.access.client.send(&ask, Some(signature)).await.map_err(|f| failed(words::no_answer(&service, &f).to_string()))?;
        if !reply.status.is_success() {
            let complaint: Complaint = serde_json::from_slice(&reply.body).unwrap_or_default();
            let kind = complaint.kind.rsplit('#').next().filter(|k| !k.is_empty()).unwrap_or(reply.status.as_str()).to_owned();
            return Err(failed(format!("{service} refused the key {:?} ({kind}{})", self.key_id, words::excerpt(&complaint.message))));
        }
        serde_json::from_slice(&reply.body)
            .map_err(|_| failed(format!("what {service} answered is not an answer of KMS; check the endpoint")))
    }
}

impl KeyService for Kms {
    fn wrap<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<String, SealError>> {
        Box::pin(async move {
            let context = json!({ CONTEXT.0: CONTEXT.1 });
            let body = json!({ "KeyId": self.key_id, "Plaintext": STANDARD.encode(key), "EncryptionContext": context });
            self.ask("Encrypt", body).await.map(|w: Wrapped| w.ciphertext_blob)
        })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a str) -> BoxFuture<'a, Result<Vec<u8>, SealError>> {
        Box::pin(async move {
            let context = json!({ CONTEXT.0: CONTEXT.1 });
            let body = json!({ "KeyId": self.key_id, "CiphertextBlob": wrapped, "EncryptionContext": context });
            let unwrapped: Unwrapped = self.ask("Decrypt", body).await?;
            STANDARD.decode(unwrapped.plaintext).map_err(|_| SealError::Damaged)
        })
    }
}
