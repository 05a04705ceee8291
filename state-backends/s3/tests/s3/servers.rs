//! The real servers there are, buckets in them, and stores on those.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use http::{Method, Request};
use karmaform_model::{Object, Value};
use karmaform_s3::{Limits, S3Store};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpClient, HttpRequestBody};

/// A server that runs.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) endpoint: String,
    pub(crate) access: String,
    pub(crate) secret: String,
}

/// Seen even when the test succeeds.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Those that the environment names; each that is missing is said.
pub(crate) fn servers(test: &str) -> Vec<Server> {
    let names = [("seaweedfs", "KARMAFORM_TEST_S3_SEAWEEDFS"), ("moto", "KARMAFORM_TEST_S3_MOTO")];
    let found = names.map(|(name, variable)| {
        let given = std::env::var(variable).unwrap_or_default();
        let words: Vec<_> = given.split_whitespace().collect();
        let [endpoint, access, secret] = words[..] else {
            say(&format!("SKIPPED: {test} on {name}: {variable} is not set"));
            return None;
        };
        Some(Server { name, endpoint: endpoint.to_owned(), access: access.to_owned(), secret: secret.to_owned() })
    });
    found.into_iter().flatten().collect()
}

/// An object of these strings, and what every test wants: the path style, and no look at this machine.
pub(crate) fn arguments(given: &[(&str, &str)]) -> Object {
    let mut object: Object = given.iter().map(|(k, v)| ((*k).to_owned(), Value::from(*v))).collect();
    object.insert("use_path_style".to_owned(), Value::from(true));
    object.insert("skip_metadata_api_check".to_owned(), Value::from(true));
    object
}

/// Opens a store with nothing around it.
pub(crate) fn open(arguments: &Object, workspace: &str, limits: Limits) -> S3Store {
    S3Store::open_within(arguments, workspace, &BTreeMap::new(), None, limits).unwrap_or_else(|d| panic!("{}: {}", d.summary, d.detail))
}

impl Server {
    /// The arguments for a bucket and key.
    pub(crate) fn arguments(&self, bucket: &str, key: &str) -> Object {
        let Self { endpoint, access, secret, .. } = self;
        arguments(&[("bucket", bucket), ("key", key), ("endpoint", endpoint), ("access_key", access), ("secret_key", secret)])
    }

    /// A store of the default workspace.
    pub(crate) fn store(&self, bucket: &str, key: &str) -> S3Store {
        open(&self.arguments(bucket, key), "default", Limits::default())
    }

    /// A request of the test's own.
    pub(crate) async fn ask(&self, method: Method, path: &str) -> (u16, String) {
        use http_body_util::BodyExt as _;
        let credential = AwsCredential { key_id: self.access.clone(), secret_key: self.secret.clone(), token: None };
        let request = Request::builder().method(method).uri(format!("{}/{path}", self.endpoint));
        let mut request = request.body(HttpRequestBody::empty()).unwrap();
        AwsAuthorizer::new(&credential, "s3", "us-east-1").try_authorize(&mut request, None).unwrap();
        let reply = HttpClient::new(reqwest::Client::new()).execute(request).await.unwrap();
        let status = reply.status().as_u16();
        let body = reply.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    }

    /// A new bucket. A server that has just started may not take one yet.
    pub(crate) async fn bucket(&self) -> String {
        let name = format!("test-{:016x}", fastrand::u64(..));
        for _ in 0..100 {
            if self.ask(Method::PUT, &name).await.0 == 200 {
                return name;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{} makes no bucket", self.name)
    }
}
