//! Credentials from what surrounds the process: the agent of a container platform, or the machine's metadata service.
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html>,
//! <https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html>

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use karmaform_model::StoreError;
use object_store::client::HttpRequestBody;
use serde::Deserialize;

use crate::credentials::Issued;
use crate::http::{Ask, Client, Reply};
use crate::limits::Limits;
use crate::settings::Reach;
use crate::source::Keys;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<jiff::Timestamp>,
}

/// From the agent of ECS, EKS, or whatever else is at that address.
pub(crate) async fn of_container(url: &str, authorization: Option<String>) -> Result<Issued, StoreError> {
    let refused = |why: &str| {
        StoreError::Refused(format!("The credentials of the container can't be had from {url}: {why}; check the role of the task or pod."))
    };
    let mut headers = HeaderMap::new();
    if let Some(token) = authorization {
        headers.insert(http::header::AUTHORIZATION, HeaderValue::from_str(&token).map_err(|_| refused("its token is not one"))?);
    }
    let client = near().ok_or_else(|| refused("no client can be made"))?;
    let reply = ask(&client, Method::GET, url.to_owned(), headers).await.ok_or_else(|| refused("it does not answer"))?;
    issued(&reply).ok_or_else(|| refused(&format!("it answered {}", reply.status.as_u16())))
}

/// From the machine, with a session as version 2 of its service wants it.
pub(crate) async fn of_machine(endpoint: &str) -> Result<Issued, StoreError> {
    // To most people who get here this address says nothing: they have no credentials.
    let none = |why: &str| {
        StoreError::Refused(format!(
            "There are no credentials for the s3 backend: none in arguments, environment and profiles, and the metadata service at {endpoint} {why}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws sso login`."
        ))
    };
    let header = |name: &'static str, value: HeaderValue| HeaderMap::from_iter([(HeaderName::from_static(name), value)]);
    let client = near().ok_or_else(|| none("can't be asked"))?;
    let wanted = header("x-aws-ec2-metadata-token-ttl-seconds", HeaderValue::from_static("300"));
    let token = ask(&client, Method::PUT, format!("{endpoint}/latest/api/token"), wanted).await.ok_or_else(|| none("does not answer"))?;
    let token = line(&token).and_then(|t| HeaderValue::from_str(&t).ok()).ok_or_else(|| none("gives no session"))?;
    let path = format!("{endpoint}/latest/meta-data/iam/security-credentials");
    let get = |url: String| ask(&client, Method::GET, url, header("x-aws-ec2-metadata-token", token.clone()));
    let role = get(format!("{path}/")).await.as_ref().and_then(line).ok_or_else(|| none("has no role for this machine"))?;
    let reply = get(format!("{path}/{role}")).await.ok_or_else(|| none("does not answer"))?;
    issued(&reply).ok_or_else(|| none("gives no credentials"))
}

/// A client for what is on this machine or beside it: quick to give up, and past all proxies.
fn near() -> Option<Client> {
    Client::new(&Reach { max_retries: 1, ..Reach::default() }, Limits::near()).ok()
}

async fn ask(client: &Client, method: Method, url: String, headers: HeaderMap) -> Option<Reply> {
    client.send(&Ask { method, url, headers, body: HttpRequestBody::empty() }, None).await.ok()
}

/// The first line of a good answer.
fn line(reply: &Reply) -> Option<String> {
    let text = std::str::from_utf8(&reply.body).ok().filter(|_| reply.status.is_success())?;
    text.lines().next().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned)
}

fn issued(reply: &Reply) -> Option<Issued> {
    let answer: Answer = reply.status.is_success().then(|| serde_json::from_slice(&reply.body).ok())??;
    let Answer { access_key_id, secret_access_key, token, expiration } = answer;
    Some(Issued { keys: Keys { access: access_key_id, secret: secret_access_key, token }, until: expiration })
}
