//! Where the bucket is: the address of each kind of endpoint.

use std::net::IpAddr;

use karmaform_model::Diagnostic;

use crate::names::encoded;
use crate::settings::{Settings, wrong};

/// The address of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Scheme, host and port, as people know it.
    pub(crate) endpoint: String,
    /// What goes before `/` and a key.
    base: String,
}

impl Bucket {
    /// The address for these settings.
    pub(crate) fn of(settings: &Settings, region: &str) -> Result<Self, Diagnostic> {
        let Settings { bucket, path_style, .. } = settings;
        let endpoint = match &settings.endpoints.s3 {
            Some(endpoint) => endpoint.clone(),
            None => amazon(settings, region)?,
        };
        let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", &endpoint));
        // A name before an address is no name; and a certificate for *.host is none for a.b.host.
        let is_address = host.starts_with('[') || host.split([':', '/']).next().is_some_and(|h| h.parse::<IpAddr>().is_ok());
        let is_label = bucket.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || (b == b'.' && scheme == "http"));
        let base = match *path_style || is_address || !is_label {
            true => format!("{endpoint}/{bucket}"),
            false => format!("{scheme}://{bucket}.{host}"),
        };
        // What looks like a name and is none (xn--...) would end whoever signs requests to it.
        if reqwest::Url::parse(&base).is_err() {
            return Err(wrong(
                "bucket",
                "With this endpoint the bucket's name is no part of a host name.",
                "Set use_path_style = true, or correct the name.",
            ));
        }
        Ok(Self { endpoint, base })
    }

    /// The address of a key.
    pub(crate) fn object(&self, key: &str) -> String {
        format!("{}/{}", self.base, encoded(key, "/"))
    }

    /// The same with a query, whose names go in alphabetical order. What has no value stands alone.
    pub(crate) fn object_with(&self, key: &str, query: &[(&str, &str)]) -> String {
        let pair = |(name, value): &(&str, &str)| match value.is_empty() {
            true => (*name).to_owned(),
            false => format!("{name}={}", encoded(value, "")),
        };
        let query: Vec<String> = query.iter().map(pair).collect();
        let object = self.object(key);
        if query.is_empty() { object } else { format!("{object}?{}", query.join("&")) }
    }

    /// The address of a list of what begins with this, from a place in it on.
    pub(crate) fn list(&self, prefix: &str, from: Option<&str>) -> String {
        let slash = if self.base.starts_with(&format!("{}/", self.endpoint)) { "" } else { "/" };
        let from = from.map(|token| format!("continuation-token={}&", encoded(token, ""))).unwrap_or_default();
        format!("{}{slash}?{from}list-type=2&prefix={}", self.base, encoded(prefix, ""))
    }
}

/// Amazon's endpoint in a region. <https://docs.aws.amazon.com/general/latest/gr/s3.html>
fn amazon(settings: &Settings, region: &str) -> Result<String, Diagnostic> {
    let domain = domain(region)?;
    let service = if settings.fips { "s3-fips" } else { "s3" };
    Ok(match settings.dualstack {
        true => format!("https://{service}.dualstack.{region}.{domain}"),
        false => format!("https://{service}.{region}.{domain}"),
    })
}

/// The domain that a region's services are in.
pub(crate) fn domain(region: &str) -> Result<&'static str, Diagnostic> {
    if region.is_empty() || !region.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        return Err(wrong("region", "A region of Amazon's is of lower-case letters, digits and hyphens.", "Write it like \"eu-west-1\"."));
    }
    Ok(if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Encryption, Endpoints, Reach};

    fn settings(endpoint: Option<&str>, bucket: &str) -> Settings {
        Settings {
            bucket: bucket.to_owned(),
            key: String::new(),
            default_key: String::new(),
            workspaces: String::new(),
            endpoints: Endpoints { s3: endpoint.map(str::to_owned), ..Endpoints::default() },
            path_style: false,
            dualstack: false,
            fips: false,
            reach: Reach::default(),
            encryption: Encryption::Bucket,
            acl: None,
            checksum: true,
        }
    }

    fn object(endpoint: Option<&str>, bucket: &str, region: &str, change: impl Fn(&mut Settings)) -> String {
        let mut settings = settings(endpoint, bucket);
        change(&mut settings);
        let bucket = Bucket::of(&settings, region).unwrap();
        assert!(bucket.list("k/", None).starts_with(bucket.object("").trim_end_matches('/')));
        bucket.object("a b/k")
    }

    #[test]
    fn buckets_are_addressed_as_each_kind_of_endpoint_wants() {
        let plain = |_: &mut Settings| {};
        assert_eq!(object(None, "fleet", "eu-west-1", plain), "https://fleet.s3.eu-west-1.amazonaws.com/a%20b/k");
        assert_eq!(object(None, "fleet.state", "eu-west-1", plain), "https://s3.eu-west-1.amazonaws.com/fleet.state/a%20b/k");
        assert_eq!(object(None, "fleet", "cn-north-1", plain), "https://fleet.s3.cn-north-1.amazonaws.com.cn/a%20b/k");
        let both = |s: &mut Settings| (s.fips, s.dualstack) = (true, true);
        assert_eq!(object(None, "fleet", "us-east-1", both), "https://fleet.s3-fips.dualstack.us-east-1.amazonaws.com/a%20b/k");
        let store = Some("https://store.example:9000/base");
        assert_eq!(object(store, "fleet", "", plain), "https://fleet.store.example:9000/base/a%20b/k");
        assert_eq!(object(store, "fleet", "", |s| s.path_style = true), "https://store.example:9000/base/fleet/a%20b/k");
        assert_eq!(object(Some("http://10.0.0.1:9000"), "fleet", "", plain), "http://10.0.0.1:9000/fleet/a%20b/k");
        assert!(Bucket::of(&settings(store, "xn--zzzzzz"), "").is_err(), "no host can be called so");
        assert_eq!(object(Some("http://[::1]:9000"), "fleet", "", plain), "http://[::1]:9000/fleet/a%20b/k");
    }

    #[test]
    fn queries_are_written_as_signatures_want_them() {
        let bucket = Bucket::of(&settings(Some("http://10.0.0.1:9000"), "fleet"), "").unwrap();
        assert_eq!(bucket.object_with("a b/k", &[]), "http://10.0.0.1:9000/fleet/a%20b/k");
        assert_eq!(bucket.object_with("k", &[("uploads", "")]), "http://10.0.0.1:9000/fleet/k?uploads");
        let part = [("partNumber", "7"), ("uploadId", "a+b/c=&d")];
        assert_eq!(bucket.object_with("k", &part), "http://10.0.0.1:9000/fleet/k?partNumber=7&uploadId=a%2Bb%2Fc%3D%26d");
    }
}
