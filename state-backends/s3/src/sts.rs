//! Roles, from STS. <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use karmaform_model::StoreError;
use object_store::aws::AwsCredential;
use serde::Deserialize;

use crate::credentials::{Issued, Tools};
use crate::http::{Ask, Signature};
use crate::names::encoded;
use crate::source::{Keys, Role};
use crate::words;

/// Which STS.
#[derive(Clone)]
pub(crate) struct Place {
    /// Its address.
    pub(crate) url: String,
    /// The region that is signed.
    pub(crate) region: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: jiff::Timestamp,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Outcome {
    credentials: Credentials,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "AssumeRoleResult", alias = "AssumeRoleWithWebIdentityResult")]
    outcome: Outcome,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(rename = "Error")]
    error: words::Refusal,
}

/// Takes on a role with these keys.
pub(crate) async fn assume_role(tools: &Tools, base: Keys, role: &Role) -> Result<Issued, StoreError> {
    let mut form = form("AssumeRole", role);
    let mut add = |name: &str, value: &Option<String>| form.extend(value.as_ref().map(|v| (name.to_owned(), v.clone())));
    add("ExternalId", &role.external_id);
    add("SourceIdentity", &role.source_identity);
    for (n, (key, value)) in role.tags.iter().enumerate() {
        form.push((format!("Tags.member.{}.Key", n + 1), key.clone()));
        form.push((format!("Tags.member.{}.Value", n + 1), value.clone()));
    }
    form.extend(role.transitive_tags.iter().enumerate().map(|(n, key)| (format!("TransitiveTagKeys.member.{}", n + 1), key.clone())));
    let credential = AwsCredential { key_id: base.access, secret_key: base.secret, token: base.token };
    let signature = Signature { credential: &credential, service: "sts", region: &tools.sts.region };
    send(tools, role, &form, Some(signature)).await
}

/// Takes on a role with a token of an identity provider; that request is not signed.
pub(crate) async fn assume_role_with_web_identity(tools: &Tools, token: &str, role: &Role) -> Result<Issued, StoreError> {
    let mut form = form("AssumeRoleWithWebIdentity", role);
    form.push(("WebIdentityToken".to_owned(), token.to_owned()));
    send(tools, role, &form, None).await
}

fn form(action: &str, role: &Role) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let session = role.session.as_deref().unwrap_or("karmaform");
    let mut form =
        vec![pair("Action", action), pair("Version", "2011-06-15"), pair("RoleArn", &role.arn), pair("RoleSessionName", session)];
    form.extend(role.seconds.map(|s| pair("DurationSeconds", &s.to_string())));
    form.extend(role.policy.as_ref().map(|p| pair("Policy", p)));
    form.extend(role.policy_arns.iter().enumerate().map(|(n, arn)| (format!("PolicyArns.member.{}.arn", n + 1), arn.clone())));
    form
}

async fn send(tools: &Tools, role: &Role, form: &[(String, String)], signature: Option<Signature<'_>>) -> Result<Issued, StoreError> {
    let Place { url, .. } = &tools.sts;
    let body = form.iter().map(|(name, value)| format!("{}={}", encoded(name, ""), encoded(value, ""))).collect::<Vec<_>>().join("&");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))]);
    let ask = Ask { method: Method::POST, url: format!("{url}/"), headers, body: body.into() };
    let reply = tools.client.send(&ask, signature).await.map_err(|failure| words::no_answer(&format!("STS at {url}"), &failure))?;
    let text = String::from_utf8_lossy(&reply.body);
    if !reply.status.is_success() {
        let Complaint { error } = quick_xml::de::from_str(&text).unwrap_or(Complaint { error: words::Refusal::default() });
        let code = if error.code.is_empty() { reply.status.as_u16().to_string() } else { error.code.clone() };
        return Err(StoreError::Refused(format!(
            "STS at {url} did not give the role {:?} ({code}{}); check the role, and that these credentials may assume it.",
            role.arn,
            words::excerpt(&error.message)
        )));
    }
    let answer: Answer = quick_xml::de::from_str(&text)
        .map_err(|_| StoreError::Refused(format!("What {url} answered is not an answer of STS; check the endpoint.")))?;
    let Credentials { access_key_id, secret_access_key, session_token, expiration } = answer.outcome.credentials;
    Ok(Issued { keys: Keys { access: access_key_id, secret: secret_access_key, token: Some(session_token) }, until: Some(expiration) })
}
