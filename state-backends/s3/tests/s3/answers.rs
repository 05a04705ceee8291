//! What a refusal is turned into: one sentence with endpoint, bucket, and what to do.

use std::sync::Arc;

use karmaform_model::{Item, StateStore as _, StoreError};
use karmaform_s3::Limits;

use crate::fake::{Act, Fake, error};
use crate::servers::{arguments, open};

async fn said(act: impl Fn() -> Act + Send + Sync + 'static) -> StoreError {
    let act = Arc::new(act);
    let fake = Fake::new(move |_, _| act());
    let arguments = arguments(&[
        ("bucket", "fleet"),
        ("key", "k"),
        ("endpoint", &fake.endpoint),
        ("access_key", "AK"),
        ("secret_key", "SECRET"),
        ("region", "eu-west-1"),
    ]);
    let said = open(&arguments, "default", Limits::default()).get(&Item::State).await.unwrap_err();
    assert_eq!(fake.seen().len(), 1, "asked again in vain");
    match said {
        StoreError::Refused(sentence) => StoreError::Refused(sentence.replace(&fake.endpoint, "ENDPOINT")),
        other => other,
    }
}

#[tokio::test]
async fn each_refusal_has_its_sentence() {
    let elsewhere = || Act::Answer(301, vec![("x-amz-bucket-region", "us-west-2".to_owned())], String::new());
    let region = || {
        Act::Answer(
            400,
            vec![],
            "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>us-west-2</Region></Error>".to_owned(),
        )
    };
    let far = || Act::Answer(307, vec![("Location", "http://127.0.0.1:1/".to_owned())], String::new());
    let web = || Act::Answer(404, vec![("Content-Type", "text/html".to_owned())], "<html>not here</html>".to_owned());
    type Case = (fn() -> Act, &'static str);
    let expected: [Case; 11] = [
        (|| error(404, "NoSuchBucket"), "There is no bucket \"fleet\" at ENDPOINT; create it, or correct bucket, region or endpoint."),
        (
            || error(403, "AccessDenied"),
            "The store at ENDPOINT did not allow to read \"k\" in the bucket \"fleet\" (AccessDenied); check the permissions: s3:ListBucket on the bucket, s3:GetObject, s3:PutObject and s3:DeleteObject below the key, and the rights on its KMS key.",
        ),
        (
            || error(403, "SignatureDoesNotMatch"),
            "The store at ENDPOINT did not accept the secret key for the bucket \"fleet\" (SignatureDoesNotMatch); check the secret key and the region.",
        ),
        (
            || error(403, "InvalidAccessKeyId"),
            "The store at ENDPOINT does not know the access key that the bucket \"fleet\" was asked for with (InvalidAccessKeyId); check the credentials.",
        ),
        (
            || error(400, "ExpiredToken"),
            "The session token for the bucket \"fleet\" at ENDPOINT is no longer valid (ExpiredToken); get new credentials and try again.",
        ),
        (
            || error(403, "RequestTimeTooSkewed"),
            "The clock of this machine and that of ENDPOINT with the bucket \"fleet\" differ by more than the store allows (RequestTimeTooSkewed); set the clock.",
        ),
        (
            || error(400, "InvalidArgument"),
            "The store at ENDPOINT did not read \"k\" in the bucket \"fleet\" (400 InvalidArgument: Words of); check the arguments of the bucket.",
        ),
        (elsewhere, "The bucket \"fleet\" is not to be reached at ENDPOINT in the region \"eu-west-1\" (301); set region = \"us-west-2\"."),
        (
            region,
            "The bucket \"fleet\" is not to be reached at ENDPOINT in the region \"eu-west-1\" (400 AuthorizationHeaderMalformed); set region = \"us-west-2\".",
        ),
        (far, "The bucket \"fleet\" is not to be reached at ENDPOINT in the region \"eu-west-1\" (307); check region and endpoint."),
        (
            web,
            "ENDPOINT answered 404 Not Found when asked to read \"k\" in the bucket \"fleet\", and not as an S3 store does; check the endpoint.",
        ),
    ];
    for (act, sentence) in expected {
        assert_eq!(said(act).await, StoreError::Refused(sentence.to_owned()));
    }
}

#[tokio::test]
async fn a_missing_key_is_no_error_and_a_race_within_a_moment_is_a_lost_one() {
    let fake = Fake::new(|n, _| if n == 0 { error(404, "NoSuchKey") } else { error(409, "ConditionalRequestConflict") });
    let arguments =
        arguments(&[("bucket", "fleet"), ("key", "k"), ("endpoint", &fake.endpoint), ("access_key", "AK"), ("secret_key", "SECRET")]);
    let store = open(&arguments, "default", Limits::default());
    assert_eq!(store.get(&Item::State).await, Ok(None));
    assert_eq!(store.put(&Item::State, b"{}".to_vec(), None).await, Err(StoreError::Changed));
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let page = |keys: std::ops::Range<u32>, next: &str| {
        let contents: String =
            keys.map(|n| format!("<Contents><Key>k.generations/{n:020}.tfstate</Key><Size>1</Size></Contents>")).collect();
        let next = if next.is_empty() { String::new() } else { format!("<NextContinuationToken>{next}</NextContinuationToken>") };
        let list = format!(
            "<ListBucketResult xmlns=\"x\"><Name>fleet</Name><Prefix>k</Prefix>{next}<IsTruncated>{}</IsTruncated>{contents}</ListBucketResult>",
            !next.is_empty()
        );
        Act::Answer(200, vec![], list)
    };
    let fake = Fake::new(move |_, seen| match seen.path.as_str() {
        "/fleet?list-type=2&prefix=k.generations%2F" => page(1..1001, "a/b=="),
        "/fleet?continuation-token=a%2Fb%3D%3D&list-type=2&prefix=k.generations%2F" => page(1001..1003, ""),
        _ => error(400, "InvalidArgument"),
    });
    let arguments =
        arguments(&[("bucket", "fleet"), ("key", "k"), ("endpoint", &fake.endpoint), ("access_key", "AK"), ("secret_key", "SECRET")]);
    let store = open(&arguments, "default", Limits::default());
    assert_eq!(store.generations().await, Ok((1..1003).collect()));
}
