//! State in S3, on real servers: the command as people run it.

mod backups;
mod conditions;
mod history;
mod moving;
pub(crate) mod terraform;
mod way;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hyper::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use karmaform_model::{Object, Value};

use crate::project::Project;
use crate::proxy::{Behind, Proxy};

pub(crate) use way::Way;

/// The bucket that every test server comes with.
const BUCKET: &str = "karmaform";

/// A server that the machine carries.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) endpoint: String,
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    bucket: String,
}

impl Server {
    /// All servers there are; says what is skipped where there are none.
    pub(crate) fn all(test: &str) -> Vec<Self> {
        let servers: Vec<_> = [Self::seaweedfs(), Self::moto()].into_iter().flatten().collect();
        if servers.is_empty() {
            crate::parts::tell(&format!("SKIPPED (no S3 server): {test}"));
        }
        servers
    }

    /// A store that keeps what it is given and checks who asks.
    pub(crate) fn seaweedfs() -> Option<Self> {
        Self::of("seaweedfs", "KARMAFORM_TEST_S3_SEAWEEDFS")
    }

    /// A quick one, which does not look at signatures.
    pub(crate) fn moto() -> Option<Self> {
        Self::of("moto", "KARMAFORM_TEST_S3_MOTO")
    }

    fn of(name: &'static str, variable: &str) -> Option<Self> {
        let given = std::env::var(variable).ok()?;
        let [endpoint, access_key, secret_key] = given.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        let owned = [endpoint, access_key, secret_key, BUCKET].map(str::to_owned);
        let [endpoint, access_key, secret_key, bucket] = owned;
        Some(Self { name, endpoint, access_key, secret_key, bucket })
    }

    /// What the block says, with a key of its own.
    pub(crate) fn backend(&self, key: &str) -> String {
        let Self { endpoint, access_key, secret_key, bucket, .. } = self;
        format!(
            r#"  backend "s3" {{
    bucket         = "{bucket}"
    key            = "{key}"
    region         = "us-east-1"
    endpoints      = {{ s3 = "{endpoint}" }}
    use_path_style = true
    access_key     = "{access_key}"
    secret_key     = "{secret_key}"
    use_lockfile   = true

    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    skip_s3_checksum            = true
  }}
"#
        )
    }

    /// A key that no other test has, on the same server.
    pub(crate) fn key(&self, test: &str) -> String {
        format!("{test}/{:016x}.tfstate", fastrand::u64(..))
    }

    /// The same as a store, past the command.
    pub(crate) fn store(&self, key: &str) -> karmaform_s3::S3Store {
        karmaform_s3::S3Store::open(&self.arguments(key), "default", &BTreeMap::new(), None).expect("a store")
    }

    fn arguments(&self, key: &str) -> Object {
        let Self { endpoint, access_key, secret_key, bucket, .. } = self;
        let texts =
            [("bucket", bucket.as_str()), ("key", key), ("region", "us-east-1"), ("access_key", access_key), ("secret_key", secret_key)];
        let mut arguments: Object = texts.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        arguments.insert("endpoints".to_owned(), Value::object([("s3", Value::from(endpoint.as_str()))]));
        arguments.insert("use_path_style".to_owned(), Value::from(true));
        arguments
    }

    /// A project with its state at this key.
    fn project(&self, key: &str) -> Project {
        let project = Project::new();
        self.configure(&project, key, 3);
        project
    }

    /// So many things, and an output.
    fn configure(&self, project: &Project, key: &str, count: usize) {
        crate::places::configure(project, &self.backend(key), count);
    }

    /// The same server, as it is reached from a host or node with this address. The way ends with what is given along.
    pub(crate) fn reached_from(&self, host: Ipv4Addr) -> (Self, Way) {
        // In the lab's networks this machine has the first address.
        let [a, b, c, _] = host.octets();
        let way = Way::open(Ipv4Addr::new(a, b, c, 1), self.endpoint.trim_start_matches("http://"));
        (Self { endpoint: format!("http://{}", way.address), ..self.clone() }, way)
    }

    /// What the block `s3` of an `etcd_backup` says.
    pub(crate) fn backups(&self, prefix: &str) -> String {
        let Self { endpoint, access_key, secret_key, bucket, .. } = self;
        format!(
            "  s3 {{\n    bucket = \"{bucket}\"\n    prefix = \"{prefix}\"\n    endpoint = \"{endpoint}\"\n    use_path_style = true\n    \
             access_key = \"{access_key}\"\n    secret_key = \"{secret_key}\"\n  }}\n"
        )
    }

    /// The bucket below this prefix, past the command.
    pub(crate) fn objects(&self, prefix: &str) -> karmaform_s3::S3Objects {
        karmaform_s3::S3Objects::open(&self.arguments(prefix), &BTreeMap::new(), None).expect("a bucket")
    }

    /// The same server, over a line on which things go wrong.
    pub(crate) fn through_proxy(&self) -> (Self, Proxy) {
        let address = self.endpoint.trim_start_matches("http://");
        let (host, port) = address.rsplit_once(':').expect("a port");
        let behind = Behind { host: host.to_owned(), port: port.parse().expect("a port"), tls: None, refusal };
        let proxy = Proxy::new(behind, None);
        (Self { endpoint: format!("http://{}", proxy.address), ..self.clone() }, proxy)
    }
}

/// As S3 says it.
fn refusal(code: u16) -> (String, Vec<(HeaderName, &'static str)>) {
    let name = match code {
        403 => "AccessDenied",
        409 => "ConditionalRequestConflict",
        503 => "SlowDown",
        _ => "InternalError",
    };
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{name}</Code><Message>as told</Message></Error>");
    let mut headers = vec![(CONTENT_TYPE, "application/xml")];
    headers.extend((code == 503).then_some((RETRY_AFTER, "1")));
    (text, headers)
}
