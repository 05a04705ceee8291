//! Credentials from IAM Identity Center with the token that `aws sso login` left. Nothing is renewed here: that takes a browser.
//! <https://docs.aws.amazon.com/singlesignon/latest/PortalAPIReference/API_GetRoleCredentials.html>

use std::fs;
use std::path::Path;

use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use karmaform_model::StoreError;
use object_store::client::HttpRequestBody;
use serde::Deserialize;
use sha1::{Digest as _, Sha1};

use crate::credentials::{Issued, Tools};
use crate::http::Ask;
use crate::names::encoded;
use crate::source::Keys;
use crate::words;

/// Who logged in, and where that is noted.
pub(crate) struct Login<'a> {
    pub(crate) profile: &'a str,
    pub(crate) cache: &'a Path,
    pub(crate) region: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    access_token: String,
    expires_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    role_credentials: RoleCredentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoleCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    /// Milliseconds since 1970.
    expiration: i64,
}

/// The name of the file with the token of a session, or of an address where one began.
pub(crate) fn file_name(session: &str) -> String {
    let digest: String = Sha1::digest(session).iter().map(|b| format!("{b:02x}")).collect();
    format!("{digest}.json")
}

/// Credentials for a role in an account.
pub(crate) async fn credentials(tools: &Tools, login: &Login<'_>, account: &str, role: &str) -> Result<Issued, StoreError> {
    let again = || {
        StoreError::Refused(format!("The profile {:?} has no valid login; run `aws sso login --profile {}`.", login.profile, login.profile))
    };
    let text = fs::read_to_string(login.cache).map_err(|_| again())?;
    let noted: Noted = serde_json::from_str(&text).map_err(|_| again())?;
    // Older versions of Amazon's tools write UTC instead of Z.
    let until: Timestamp = noted.expires_at.replace("UTC", "Z").parse().map_err(|_| again())?;
    let token = HeaderValue::from_str(&noted.access_token).map_err(|_| again())?;
    if until <= Timestamp::now() {
        return Err(again());
    }
    let endpoint = tools.sso.clone().unwrap_or_else(|| format!("https://portal.sso.{}.amazonaws.com", login.region));
    let ask = Ask {
        method: Method::GET,
        url: format!("{endpoint}/federation/credentials?role_name={}&account_id={}", encoded(role, ""), encoded(account, "")),
        headers: HeaderMap::from_iter([(http::HeaderName::from_static("x-amz-sso_bearer_token"), token)]),
        body: HttpRequestBody::empty(),
    };
    let place = format!("IAM Identity Center at {endpoint}");
    let reply = tools.client.send(&ask, None).await.map_err(|failure| words::no_answer(&place, &failure))?;
    match reply.status.as_u16() {
        200 => {}
        401 => return Err(again()),
        status => {
            return Err(StoreError::Refused(format!(
                "{place} did not give credentials for the role {role:?} in the account {account:?} ({status}); check sso_role_name and sso_account_id of the profile {:?}.",
                login.profile
            )));
        }
    }
    let answer: Answer = serde_json::from_slice(&reply.body).map_err(|_| {
        StoreError::Refused(format!("What {endpoint} answered is not an answer of IAM Identity Center; check the endpoint."))
    })?;
    let RoleCredentials { access_key_id, secret_access_key, session_token, expiration } = answer.role_credentials;
    Ok(Issued {
        keys: Keys { access: access_key_id, secret: secret_access_key, token: Some(session_token) },
        until: Timestamp::from_millisecond(expiration).ok(),
    })
}
