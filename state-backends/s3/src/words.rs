//! What a store answers when it does not do what it was asked, as one sentence for people. No secret is in it.

use http::StatusCode;
use karmaform_model::StoreError;
use serde::Deserialize;

use crate::http::{Failure, Reply};

/// An error as S3 writes it. <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Refusal {
    /// The kind.
    pub(crate) code: String,
    /// The store's own words.
    pub(crate) message: String,
    /// Where the bucket is, if it is elsewhere.
    pub(crate) region: String,
}

impl Refusal {
    /// Reads the body of an answer; empty if there is none, or it is no S3 error.
    pub(crate) fn of(reply: &Reply) -> Self {
        let text = String::from_utf8_lossy(&reply.body);
        let is_error = text.trim_start().trim_start_matches('\u{feff}').contains("<Error");
        match is_error {
            true => quick_xml::de::from_str(&text).unwrap_or_default(),
            false => Self::default(),
        }
    }
}

/// Where requests go, for sentences.
#[derive(Clone, Debug)]
pub(crate) struct Where {
    /// Scheme, host and port.
    pub(crate) endpoint: String,
    /// The bucket.
    pub(crate) bucket: String,
    /// The region that is signed.
    pub(crate) region: String,
}

/// The store did not answer.
pub(crate) fn unreachable(place: &Where, failure: &Failure) -> StoreError {
    let Where { endpoint, bucket, .. } = place;
    match failure {
        Failure::Late => StoreError::Unreachable(format!(
            "The store at {endpoint} with the bucket {bucket:?} did not answer in time; try again, and check endpoint and network if it stays so."
        )),
        Failure::Broken(why) => StoreError::Unreachable(format!(
            "The store at {endpoint} with the bucket {bucket:?} can't be reached ({why}); check endpoint, region and network."
        )),
        Failure::Untrusted(why) => StoreError::Refused(format!(
            "The store at {endpoint} with the bucket {bucket:?} has a certificate that is not trusted ({why}); name its CA in custom_ca_bundle."
        )),
        Failure::Impossible(why) => StoreError::Refused(format!(
            "No request to the bucket {bucket:?} at {endpoint} can be made ({why}); check the arguments of the bucket."
        )),
    }
}

/// Some other service did not answer.
pub(crate) fn no_answer(service: &str, failure: &Failure) -> StoreError {
    match failure {
        Failure::Late => {
            StoreError::Unreachable(format!("{service} did not answer in time; try again, and check the network if it stays so."))
        }
        Failure::Broken(why) => StoreError::Unreachable(format!("{service} can't be reached ({why}); check endpoint, region and network.")),
        Failure::Untrusted(why) => {
            StoreError::Refused(format!("{service} has a certificate that is not trusted ({why}); name its CA in custom_ca_bundle."))
        }
        Failure::Impossible(why) => StoreError::Refused(format!("No request to {service} can be made ({why}).")),
    }
}

/// The store answered with an error. `what` is what it was asked to do, like `read "key"`.
pub(crate) fn refused(place: &Where, what: &str, reply: &Reply) -> StoreError {
    let Where { endpoint, bucket, region } = place;
    let refusal = Refusal::of(reply);
    let status = reply.status;
    if status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT) {
        return StoreError::Unreachable(format!(
            "The store at {endpoint} with the bucket {bucket:?} could not {what}: it answered {} to every try; try again later.",
            named(status, &refusal)
        ));
    }
    let elsewhere = reply.header("x-amz-bucket-region").unwrap_or(&refusal.region);
    if status.is_redirection() || refusal.code == "AuthorizationHeaderMalformed" || refusal.code == "IllegalLocationConstraintException" {
        let advice = match elsewhere.is_empty() || elsewhere == region {
            true => "check region and endpoint".to_owned(),
            false => format!("set region = {elsewhere:?}"),
        };
        return StoreError::Refused(format!(
            "The bucket {bucket:?} is not to be reached at {endpoint} in the region {region:?} ({}); {advice}.",
            named(status, &refusal)
        ));
    }
    let sentence = match refusal.code.as_str() {
        "NoSuchBucket" => format!("There is no bucket {bucket:?} at {endpoint}; create it, or correct bucket, region or endpoint."),
        "InvalidAccessKeyId" => {
            format!(
                "The store at {endpoint} does not know the access key that the bucket {bucket:?} was asked for with (InvalidAccessKeyId); check the credentials."
            )
        }
        "SignatureDoesNotMatch" => format!(
            "The store at {endpoint} did not accept the secret key for the bucket {bucket:?} (SignatureDoesNotMatch); check the secret key and the region."
        ),
        code @ ("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" | "ExpiredTokenException") => format!(
            "The session token for the bucket {bucket:?} at {endpoint} is no longer valid ({code}); get new credentials and try again."
        ),
        "RequestTimeTooSkewed" => {
            format!(
                "The clock of this machine and that of {endpoint} with the bucket {bucket:?} differ by more than the store allows (RequestTimeTooSkewed); set the clock."
            )
        }
        "" if status == StatusCode::FORBIDDEN || status == StatusCode::UNAUTHORIZED => format!(
            "The store at {endpoint} did not allow to {what} in the bucket {bucket:?} ({status}); check the credentials and their permissions."
        ),
        "" => format!(
            "{endpoint} answered {status} when asked to {what} in the bucket {bucket:?}, and not as an S3 store does; check the endpoint."
        ),
        code if status == StatusCode::FORBIDDEN || status == StatusCode::UNAUTHORIZED => format!(
            "The store at {endpoint} did not allow to {what} in the bucket {bucket:?} ({code}); check the permissions: s3:ListBucket on the bucket, s3:GetObject, s3:PutObject and s3:DeleteObject below the key, and the rights on its KMS key."
        ),
        _ => format!(
            "The store at {endpoint} did not {what} in the bucket {bucket:?} ({}{}); check the arguments of the bucket.",
            named(status, &refusal),
            excerpt(&refusal.message)
        ),
    };
    StoreError::Refused(sentence)
}

fn named(status: StatusCode, refusal: &Refusal) -> String {
    match refusal.code.is_empty() {
        true => status.as_u16().to_string(),
        false => format!("{} {}", status.as_u16(), refusal.code),
    }
}

/// The store's words, as far as one line of moderate length goes.
pub(crate) fn excerpt(message: &str) -> String {
    let line: String =
        message.lines().next().unwrap_or_default().trim_end_matches('.').chars().filter(|c| !c.is_control()).take(200).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}
