//! What an image is called: `oci://REGISTRY/REPOSITORY:TAG@sha256:DIGEST`. Pure.

use std::net::IpAddr;

use karmaform_model::without_credentials;

/// How sources that are images begin; the second is asked without TLS.
const SCHEMES: [(&str, bool); 2] = [("oci://", false), ("oci+http://", true)];

/// What stands before a digest.
const DIGEST: &str = "@sha256:";

/// Which of an image's platforms is meant where none is given.
pub(crate) const PLATFORM: &str = "linux/amd64";

/// The names that Docker Hub has had.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// A source that is an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The registry as logins know it: a host, and its port if that is not the usual one.
    pub(super) registry: String,
    /// Without TLS, whoever it is.
    pub(super) plain: bool,
    /// Where in the registry.
    pub(super) repository: String,
    /// Which image of the repository: a tag, unless there is a digest.
    pub(super) tag: Option<String>,
    /// 64 hexadecimal digits.
    pub(super) digest: Option<String>,
}

/// True for a source that is an image.
pub(crate) fn is_image(source: &str) -> bool {
    SCHEMES.iter().any(|(scheme, _)| source.starts_with(scheme))
}

/// The digest in a source that is an image: the same digest is the same image, wherever it comes from.
pub(crate) fn digest_of(source: &str) -> Option<&str> {
    is_image(source).then(|| source.rsplit_once(DIGEST)).flatten().map(|(_, digest)| digest)
}

/// The source for messages. Its digest is no secret, though it stands behind an `@` as a host behind a password does.
pub(crate) fn shown(source: &str) -> String {
    match source.rsplit_once(DIGEST) {
        Some((name, digest)) if is_image(source) => format!("{}{DIGEST}{digest}", without_credentials(name)),
        _ => without_credentials(source),
    }
}

/// True for the registry that docker takes where none is named.
pub(super) fn is_docker_hub(registry: &str) -> bool {
    DOCKER_HUB.contains(&registry)
}

impl Reference {
    /// Of a source for which [`is_image`] holds; otherwise what is wrong with it, as the end of a sentence that begins with the source.
    pub(crate) fn parse(source: &str) -> Result<Self, &'static str> {
        let scheme = SCHEMES.iter().find_map(|(scheme, plain)| Some((source.strip_prefix(scheme)?, *plain)));
        let (rest, plain) = scheme.ok_or("is no image")?;
        let (registry, rest) = rest.split_once('/').ok_or("names no image; one is \"oci://REGISTRY/REPOSITORY:TAG\"")?;
        if registry.contains('@') {
            return Err("holds a user or a password; those belong into docker's configuration file (\"docker login\")");
        }
        // docker's rule: what looks like no host is a part of the name
        if registry != "localhost" && !registry.contains(['.', ':']) {
            return Err("names no registry; images of Docker Hub begin with \"oci://docker.io/\", and a host without a dot needs its port");
        }
        if !registry.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c)) {
            return Err("has a registry that is no host");
        }
        let (rest, digest) = match rest.split_once('@') {
            None => (rest, None),
            Some((rest, digest)) => match digest.strip_prefix("sha256:").filter(|d| is_digest(d)) {
                Some(digest) => (rest, Some(digest.to_owned())),
                None => return Err("has a digest that is none: \"@sha256:\" and 64 hexadecimal digits in small letters"),
            },
        };
        let (repository, tag) = rest.split_once(':').map_or((rest, None), |(repository, tag)| (repository, Some(tag)));
        if !repository.split('/').all(is_part) {
            return Err("has a repository that is none: small letters and digits, with \".\", \"_\", \"-\" and \"/\" between them");
        }
        if !tag.is_none_or(is_tag) {
            return Err("has a tag that is none: up to 128 letters, digits, \".\", \"_\" and \"-\"");
        }
        if tag.is_none() && digest.is_none() {
            return Err("has neither a tag nor a digest");
        }
        let is_official = is_docker_hub(registry) && !repository.contains('/');
        let repository = if is_official { format!("library/{repository}") } else { repository.to_owned() };
        Ok(Self { registry: registry.to_owned(), plain, repository, tag: tag.map(str::to_owned), digest })
    }

    /// Where it is asked for.
    pub(super) fn host(&self) -> &str {
        if is_docker_hub(&self.registry) { "registry-1.docker.io" } else { &self.registry }
    }

    /// True for a registry on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = match self.registry.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => self.registry.split(':').next().unwrap_or_default(),
        };
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|a| a.is_loopback())
    }

    /// What its manifest is asked for by.
    pub(super) fn name(&self) -> String {
        match &self.digest {
            Some(digest) => format!("sha256:{digest}"),
            None => self.tag.clone().unwrap_or_default(),
        }
    }
}

/// 64 hexadecimal digits; the registries take small letters alone.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_part(part: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    part.starts_with(is_inner) && part.ends_with(is_inner) && part.chars().all(|c| is_inner(c) || "._-".contains(c))
}

fn is_tag(tag: &str) -> bool {
    (1..=128).contains(&tag.len())
        && tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// A platform as indexes have them: `linux/arm64`, `linux/arm/v7`. Otherwise the end of a sentence.
pub(crate) fn platform_problem(platform: &str) -> Option<String> {
    let is_word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let good = (2..=3).contains(&platform.split('/').count()) && platform.split('/').all(is_word);
    (!good).then(|| "is no platform; one is a system and an architecture, as \"linux/arm64\"".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_in_three_ways() {
        let d = "a".repeat(64);
        let check = |source: &str, host: &str, repository: &str, name: &str| {
            let reference = Reference::parse(source).unwrap();
            assert_eq!((reference.host(), reference.repository.as_str(), reference.name().as_str()), (host, repository, name));
        };
        check("oci://registry.k8s.io/etcd:3.5.16-0", "registry.k8s.io", "etcd", "3.5.16-0");
        check("oci://docker.io/karmada/karmada-scheduler:v1.15.0", "registry-1.docker.io", "karmada/karmada-scheduler", "v1.15.0");
        check("oci://docker.io/alpine:3", "registry-1.docker.io", "library/alpine", "3");
        check(&format!("oci://ghcr.io/a/b__c@sha256:{d}"), "ghcr.io", "a/b__c", &format!("sha256:{d}"));
        check(&format!("oci://localhost:5000/a/b:x@sha256:{d}"), "localhost:5000", "a/b", &format!("sha256:{d}"));
        check("oci+http://[fd00::1]:5000/a:x", "[fd00::1]:5000", "a", "x");
    }

    #[test]
    fn what_names_no_image_is_told_apart() {
        let check = |source: &str, word: &str| assert!(Reference::parse(source).unwrap_err().contains(word), "{source}");
        check("oci://docker.io", "no image");
        check("oci://karmada/karmada-scheduler:v1", "no registry");
        check("oci://u:hunter2@r.io/a:x", "password");
        check("oci://r.io/a", "neither");
        check("oci://r.io/A:x", "repository");
        check("oci://r.io//a:x", "repository");
        check("oci://r.io/a:", "tag");
        check("oci://r.io/a:x/y", "tag");
        check("oci://r.io/a?x:1", "repository");
        check("oci://r o.io/a:x", "no host");
        check(&format!("oci://r.io/a@sha256:{}", "A".repeat(64)), "digest");
        check("oci://r.io/a:x@sha512:0", "digest");
    }

    #[test]
    fn digests_are_shown_and_passwords_are_not() {
        let d = "a".repeat(64);
        let check = |source: &str, expected: &str| assert_eq!(shown(source), expected);
        check(&format!("oci://r.io/a:x@sha256:{d}"), &format!("oci://r.io/a:x@sha256:{d}"));
        check(&format!("oci://u:hunter2@r.io/a@sha256:{d}"), &format!("oci://r.io/a@sha256:{d}"));
        check("https://u:hunter2@h/a?token=hunter2", "https://h/a");
        assert_eq!(digest_of(&format!("oci://r.io/a:x@sha256:{d}")), Some(d.as_str()));
        assert_eq!((digest_of("oci://r.io/a:x"), digest_of(&format!("https://h/a@sha256:{d}"))), (None, None));
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        let check = |registry: &str, here: bool| {
            assert_eq!(Reference::parse(&format!("oci://{registry}/a:x")).unwrap().is_loopback(), here, "{registry}");
        };
        check("localhost", true);
        check("localhost:5000", true);
        check("127.0.0.2:5000", true);
        check("[::1]:5000", true);
        check("10.0.0.1:5000", false);
        check("localhost.example.com", false);
    }

    #[test]
    fn platforms() {
        assert!(["linux/amd64", "linux/arm/v7"].iter().all(|p| platform_problem(p).is_none()));
        assert!(["linux", "amd64", "linux/", "linux/a/b/c", "linux/amd 64"].iter().all(|p| platform_problem(p).is_some()));
    }
}
