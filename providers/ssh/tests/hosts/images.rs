//! Images to take files out of, as bytes; and Debian's registry to keep them in, on loopback, for as long as a test runs.
//!
//! The tests inside of the package use it, too.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// Debian's package and its program.
const PROGRAM: &str = "docker-registry";

/// "u:hunter2" as the registry keeps it, and as HTTP sends it.
const PASSWORD: &str = "u:$2b$04$zuwoBAkv..MKqQQ/KdUDZ.3DZjCOjg6izcwT5PmXhwGh3rQDMn7PK";
pub(crate) const BASIC: &str = "dTpodW50ZXIy";

/// Something in a layer.
pub(crate) enum Item<'a> {
    /// With its content.
    File(&'a str, &'a [u8]),
    /// And where it leads to.
    Symlink(&'a str, &'a str),
    /// And whose other name it is.
    HardLink(&'a str, &'a str),
}

/// Anything with its kind: a manifest, an index, a layer.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) kind: String,
    pub(crate) bytes: Vec<u8>,
}

/// A manifest with all that it names.
#[derive(Clone)]
pub(crate) struct Image {
    pub(crate) manifest: Part,
    pub(crate) blobs: Vec<Part>,
}

impl Part {
    pub(crate) fn new(kind: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { kind: kind.to_owned(), bytes: bytes.into() }
    }

    pub(crate) fn sum(&self) -> String {
        Sha256::digest(&self.bytes).iter().map(|b| format!("{b:02x}")).collect()
    }

    fn descriptor(&self, more: &str) -> String {
        format!(r#"{{"mediaType": "{}", "digest": "sha256:{}", "size": {}{more}}}"#, self.kind, self.sum(), self.bytes.len())
    }
}

/// A layer of these, with gzip or as it is.
pub(crate) fn layer(items: &[Item<'_>], compressed: bool) -> Part {
    let mut builder = tar::Builder::new(Vec::new());
    for item in items {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(0);
        match item {
            Item::File(path, content) => {
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, *content).unwrap();
            }
            Item::Symlink(path, target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                builder.append_link(&mut header, path, target).unwrap();
            }
            Item::HardLink(path, target) => {
                header.set_entry_type(tar::EntryType::Link);
                builder.append_link(&mut header, path, target).unwrap();
            }
        }
    }
    let plain = builder.into_inner().unwrap();
    if !compressed {
        return Part::new("application/vnd.oci.image.layer.v1.tar", plain);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&plain).unwrap();
    Part::new("application/vnd.oci.image.layer.v1.tar+gzip", encoder.finish().unwrap())
}

/// An image of these layers, the lowest first, in OCI's words or in docker's.
pub(crate) fn image(platform: &str, layers: &[Part], docker: bool) -> Image {
    let (os, architecture) = platform.split_once('/').unwrap();
    let (config, manifest) = match docker {
        true => ("application/vnd.docker.container.image.v1+json", "application/vnd.docker.distribution.manifest.v2+json"),
        false => ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.manifest.v1+json"),
    };
    let config = Part::new(config, format!(r#"{{"os": "{os}", "architecture": "{architecture}", "rootfs": {{"type": "layers"}}}}"#));
    let listed: Vec<_> = layers.iter().map(|l| l.descriptor("")).collect();
    let text = format!(
        r#"{{"schemaVersion": 2, "mediaType": "{manifest}", "config": {}, "layers": [{}]}}"#,
        config.descriptor(""),
        listed.join(", ")
    );
    let blobs = layers.iter().cloned().chain([config]).collect();
    Image { manifest: Part::new(manifest, text), blobs }
}

/// An index of images for these platforms.
pub(crate) fn index(images: &[(&str, &Image)], docker: bool) -> Part {
    let kind = if docker { "application/vnd.docker.distribution.manifest.list.v2+json" } else { "application/vnd.oci.image.index.v1+json" };
    let entry = |(platform, image): &(&str, &Image)| {
        let (os, architecture) = platform.split_once('/').unwrap();
        image.manifest.descriptor(&format!(r#", "platform": {{"os": "{os}", "architecture": "{architecture}"}}"#))
    };
    let listed: Vec<_> = images.iter().map(entry).collect();
    Part::new(kind, format!(r#"{{"schemaVersion": 2, "mediaType": "{kind}", "manifests": [{}]}}"#, listed.join(", ")))
}

/// Debian's registry, running.
pub(crate) struct Registry {
    /// Its host and port.
    pub(crate) address: String,
    child: Child,
    wants_password: bool,
    scheme: &'static str,
    agent: ureq::Agent,
    _folder: tempfile::TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    /// Starts one, which takes "u:hunter2" if it `wants_password`; or `None` after saying that `test` is skipped.
    pub(crate) fn start(test: &str, wants_password: bool) -> Option<Self> {
        Self::start_with(test, wants_password, None)
    }

    /// Starts one that shows who it is with this certificate and key (PEM), or, without them, speaks no TLS.
    pub(crate) fn start_with(test: &str, wants_password: bool, tls: Option<(&str, &str)>) -> Option<Self> {
        if Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {PROGRAM} is not there; Debian's package of this name has it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut more = String::new();
        if let Some((certificate, key)) = tls {
            std::fs::write(path("tls.crt"), certificate).unwrap();
            std::fs::write(path("tls.key"), key).unwrap();
            more = format!("  tls: {{certificate: {}, key: {}}}\n", path("tls.crt"), path("tls.key"));
        }
        let scheme = if tls.is_some() { "https" } else { "http" };
        // free a moment ago; whoever takes it first in that moment makes the registry end, and another one is tried
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            std::fs::write(path("htpasswd"), PASSWORD).unwrap();
            let mut config = format!(
                "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp:\n  addr: '{address}'\n  secret: x\n{more}",
                path("data")
            );
            if wants_password {
                config.push_str(&format!("auth: {{htpasswd: {{realm: test, path: {}}}}}\n", path("htpasswd")));
            }
            std::fs::write(path("config.yml"), config).unwrap();
            let mut command = Command::new(PROGRAM);
            command.args(["serve", &path("config.yml")]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            for _ in 0..200 {
                if TcpStream::connect(&address).is_ok() && child.try_wait().unwrap().is_none() {
                    let agent = agent();
                    return Some(Self { address, child, wants_password, scheme, agent, _folder: folder });
                }
                if child.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("{PROGRAM} does not start");
    }

    /// Puts an image there, by its digest.
    pub(crate) fn push(&self, repository: &str, image: &Image) {
        for blob in &image.blobs {
            self.keep(repository, blob);
        }
        self.name(repository, &format!("sha256:{}", image.manifest.sum()), &image.manifest);
    }

    /// Puts bytes there, which are then at the URL that it gives.
    pub(crate) fn keep(&self, repository: &str, blob: &Part) -> String {
        let started = self.request(self.agent.post(self.url(repository, "blobs/uploads/"))).send_empty().unwrap();
        let place = started.headers()["location"].to_str().unwrap().to_owned();
        let place = format!("{place}{}digest=sha256:{}", if place.contains('?') { '&' } else { '?' }, blob.sum());
        self.request(self.agent.put(place)).content_type("application/octet-stream").send(&blob.bytes).unwrap();
        self.url(repository, &format!("blobs/sha256:{}", blob.sum()))
    }

    /// Gives a manifest or an index a tag.
    pub(crate) fn name(&self, repository: &str, tag: &str, manifest: &Part) {
        let url = self.url(repository, &format!("manifests/{tag}"));
        self.request(self.agent.put(url)).content_type(&manifest.kind).send(&manifest.bytes).unwrap();
    }

    fn url(&self, repository: &str, path: &str) -> String {
        format!("{}://{}/v2/{repository}/{path}", self.scheme, self.address)
    }

    fn request<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        let request = request.header("connection", "close");
        if self.wants_password { request.header("authorization", format!("Basic {BASIC}")) } else { request }
    }
}

/// Who puts things there believes any certificate: it is not what is tested.
fn agent() -> ureq::Agent {
    let tls = ureq::tls::TlsConfig::builder()
        .unversioned_rustls_crypto_provider(std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .disable_verification(true);
    ureq::Agent::config_builder().tls_config(tls.build()).build().into()
}
