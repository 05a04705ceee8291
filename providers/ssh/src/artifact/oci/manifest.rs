//! What a registry says of an image: indexes, manifests and configurations, of OCI's kinds and of docker's. Pure.

use serde_json::Value as Json;

use super::reference::is_digest;

/// The kinds that are asked for.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// Something in a registry, named by its sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blob {
    /// Its SHA-256 sum.
    pub(super) digest: String,
    /// Bytes.
    pub(super) size: u64,
    /// What it is said to be.
    pub(super) kind: String,
}

/// What an image's name leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Document {
    /// Manifests, one for each platform.
    Index(Vec<(Platform, Blob)>),
    /// One image: its configuration, and its layers from the lowest to the uppermost.
    Manifest {
        /// Says for which platform it is.
        config: Blob,
        /// What it is made of.
        layers: Vec<Blob>,
    },
}

/// A system, an architecture and maybe a variant of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Platform {
    os: String,
    architecture: String,
    variant: String,
}

impl Platform {
    /// Of what a configuration says: `linux/arm64`, `linux/arm/v7`.
    pub(super) fn parse(text: &str) -> Self {
        let mut parts = text.splitn(3, '/').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Self { os: next(), architecture: next(), variant: next() }
    }

    /// Of a document's fields.
    pub(super) fn of(json: &Json) -> Self {
        Self { os: text(json, "os"), architecture: text(json, "architecture"), variant: text(json, "variant") }
    }

    /// True if what is for `self` is good where `wanted` is.
    fn fits(&self, wanted: &Self) -> bool {
        let is_variant = wanted.variant.is_empty() || self.variant.is_empty() || self.variant == wanted.variant;
        self.os == wanted.os && self.architecture == wanted.architecture && is_variant
    }

    /// True if it says nothing, as what is no program's image does.
    fn is_silent(&self) -> bool {
        self.os.is_empty() || self.architecture.is_empty()
    }

    fn name(&self) -> String {
        let variant = if self.variant.is_empty() { String::new() } else { format!("/{}", self.variant) };
        format!("{}/{}{variant}", self.os, self.architecture)
    }
}

/// Reads a document; otherwise what is wrong with it, as the end of a sentence that begins with the image.
pub(super) fn read(bytes: &[u8]) -> Result<Document, String> {
    let json: Json = serde_json::from_slice(bytes).map_err(|_| "has a manifest that is no JSON".to_owned())?;
    match (json.get("manifests"), json.get("layers")) {
        // one that is both could be one thing to whoever checked it, and another one to us
        (Some(_), Some(_)) => Err("has a manifest that is also an index".to_owned()),
        (Some(manifests), None) => {
            let entry = |m: &Json| Ok((m.get("platform").map(Platform::of).unwrap_or_default(), blob(m)?));
            Ok(Document::Index(items(manifests).iter().map(entry).collect::<Result<_, String>>()?))
        }
        (None, Some(layers)) => {
            let layers = items(layers).iter().map(blob).collect::<Result<_, _>>()?;
            Ok(Document::Manifest { config: blob(json.get("config").unwrap_or(&Json::Null))?, layers })
        }
        (None, None) if json.get("fsLayers").is_some() => {
            Err("has a manifest of docker's first schema, which is no longer in use".to_owned())
        }
        (None, None) => Err("has a manifest without layers".to_owned()),
    }
}

/// The manifest of an index that is for this platform; otherwise the end of a sentence that begins with the image.
pub(super) fn choose(index: Vec<(Platform, Blob)>, wanted: &Platform) -> Result<Blob, String> {
    // an exact one before one that only does not say otherwise
    let exact = index.iter().position(|(p, _)| p == wanted);
    match exact.or_else(|| index.iter().position(|(p, _)| p.fits(wanted))) {
        Some(place) => Ok(index[place].1.clone()),
        None => {
            let mut others: Vec<_> = index.iter().filter(|(p, _)| !p.is_silent() && p.os != "unknown").map(|(p, _)| p.name()).collect();
            others.dedup();
            let others = if others.is_empty() { "no platform".to_owned() } else { others.join(", ") };
            Err(format!("is not there for {}; it is there for {others}", wanted.name()))
        }
    }
}

/// Whether an image without an index is for this platform. One that says nothing of it is taken for what is wanted.
pub(super) fn check(config: &[u8], wanted: &Platform) -> Result<(), String> {
    let found = serde_json::from_slice(config).map(|json| Platform::of(&json)).unwrap_or_default();
    if found.is_silent() || found.fits(wanted) { Ok(()) } else { Err(format!("is for {}, but {} is wanted", found.name(), wanted.name())) }
}

fn blob(json: &Json) -> Result<Blob, String> {
    let digest = text(json, "digest");
    let digest = digest.strip_prefix("sha256:").filter(|d| is_digest(d)).ok_or("has a part that is not named by a SHA-256 sum")?;
    let size = json.get("size").and_then(Json::as_u64).ok_or("has a part without a size")?;
    Ok(Blob { digest: digest.to_owned(), size, kind: text(json, "mediaType") })
}

fn items(json: &Json) -> &[Json] {
    json.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(json: &Json, name: &str) -> String {
    json.get(name).and_then(Json::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(digit: &str, platform: &str) -> String {
        format!(r#"{{"mediaType": "m", "digest": "sha256:{}", "size": 7 {platform}}}"#, digit.repeat(64))
    }

    fn platform(os: &str, architecture: &str, variant: &str) -> String {
        format!(r#", "platform": {{"os": "{os}", "architecture": "{architecture}", "variant": "{variant}"}}"#)
    }

    #[test]
    fn an_index_is_chosen_from_by_its_platforms() {
        let entries = [
            descriptor("0", &platform("unknown", "unknown", "")),
            descriptor("1", &platform("linux", "amd64", "")),
            descriptor("2", &platform("linux", "arm64", "v8")),
            descriptor("3", &platform("linux", "arm", "v6")),
            descriptor("4", &platform("linux", "arm", "v7")),
            descriptor("5", ""),
        ];
        let text = format!(r#"{{"manifests": [{}]}}"#, entries.join(","));
        let check = |wanted: &str, expected: Result<&str, &str>| {
            let Document::Index(index) = read(text.as_bytes()).unwrap() else { panic!() };
            let found = choose(index, &Platform::parse(wanted));
            match expected {
                Ok(digit) => assert_eq!(found.unwrap().digest, digit.repeat(64), "{wanted}"),
                Err(words) => assert_eq!(found.unwrap_err(), words),
            }
        };
        check("linux/amd64", Ok("1"));
        check("linux/arm64", Ok("2"));
        check("linux/arm64/v8", Ok("2"));
        check("linux/arm/v7", Ok("4"));
        check("linux/arm", Ok("3"));
        let there = "linux/amd64, linux/arm64/v8, linux/arm/v6, linux/arm/v7";
        check("linux/s390x", Err(&format!("is not there for linux/s390x; it is there for {there}")));
    }

    #[test]
    fn what_is_no_image_is_told_apart() {
        let check = |text: &str, word: &str| assert!(read(text.as_bytes()).unwrap_err().contains(word), "{text}");
        check("<html>", "no JSON");
        check("{}", "without layers");
        check(r#"{"schemaVersion": 1, "fsLayers": []}"#, "first schema");
        check(r#"{"layers": [], "manifests": []}"#, "also an index");
        check(&format!(r#"{{"config": {}, "layers": [{{"digest": "md5:0", "size": 1}}]}}"#, descriptor("0", "")), "SHA-256");
        check(r#"{"layers": []}"#, "SHA-256");
    }

    #[test]
    fn a_single_image_must_be_for_the_platform_if_it_says_so() {
        let check = |config: &str, good: bool| assert_eq!(super::check(config.as_bytes(), &Platform::parse("linux/amd64")).is_ok(), good);
        check(r#"{"os": "linux", "architecture": "amd64"}"#, true);
        check(r#"{"os": "linux", "architecture": "arm64"}"#, false);
        check("{}", true);
        check("", true);
    }
}
