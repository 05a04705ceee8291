//! What stands beside a snapshot: which data it is, how it can be told whether it is still that, and what belongs with it. Pure.

use serde_json::{Value as Json, json};

/// The version of the manifest. A reader refuses what has another first number.
const FORMAT_VERSION: &str = "1.0";
/// What it says it is.
const FORMAT: &str = "karmaform etcd snapshot";

/// What whoever asks for a snapshot knows of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// When, as RFC 3339.
    pub created: String,
    /// The state's lineage.
    pub lineage: String,
    /// The cluster's address in it.
    pub address: String,
    /// What is needed beside the data, by its address: authorities and keys. Its names only.
    pub belongs: Vec<String>,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The file's length, in bytes.
    pub size: u64,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub sha256: String,
    /// The newest revision that is surely in it.
    pub revision: i64,
    /// The newest one that may be in it: the cluster was written to meanwhile.
    pub revision_at_most: i64,
    /// etcd's hash of all keys and values up to `revision`, and the compaction that it is of; for the drill.
    pub hash: Option<(u32, i64)>,
    /// The cluster's id, in hexadecimal digits.
    pub cluster_id: String,
    /// Which member it is from, and its id in hexadecimal digits.
    pub member: (String, String),
    /// What the member ran.
    pub version: String,
    /// The version of its data, from etcd 3.6 on; empty before.
    pub storage_version: String,
    /// What whoever asked for it knows.
    pub about: About,
}

impl Manifest {
    /// As it is written.
    pub fn to_json(&self) -> Json {
        json!({
            "format": FORMAT, "format_version": FORMAT_VERSION,
            "size": self.size, "sha256": self.sha256, "revision": self.revision, "revision_at_most": self.revision_at_most,
            "hash_kv": self.hash.map(|(hash, compacted)| json!({ "hash": hash, "revision": self.revision, "compact_revision": compacted })),
            "cluster_id": self.cluster_id, "member": { "name": self.member.0, "id": self.member.1 },
            "etcd_version": self.version, "storage_version": self.storage_version,
            "created": self.about.created, "lineage": self.about.lineage, "address": self.about.address, "belongs": self.about.belongs,
        })
    }

    /// Reads one. Fields that it does not know are none of its business.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence without its full stop.
    pub fn read(text: &str) -> Result<Self, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
        if json["format"] != FORMAT {
            return Err("it is no manifest of a snapshot".to_owned());
        }
        let version = json["format_version"].as_str().unwrap_or_default();
        if version.split('.').next() != FORMAT_VERSION.split('.').next() {
            return Err(format!("it has version {version:?}, and this karmaform reads {FORMAT_VERSION}"));
        }
        let text = |of: &Json| of.as_str().map(str::to_owned).unwrap_or_default();
        let number = |name: &str| json[name].as_i64().ok_or_else(|| format!("it has no {name}"));
        let hash = &json["hash_kv"];
        let sha256 = json["sha256"].as_str().ok_or("it has no sha256")?.to_owned();
        Ok(Self {
            size: json["size"].as_u64().ok_or("it has no size")?,
            sha256,
            revision: number("revision")?,
            revision_at_most: number("revision_at_most")?,
            hash: hash["hash"].as_u64().and_then(|h| u32::try_from(h).ok()).zip(hash["compact_revision"].as_i64()),
            cluster_id: text(&json["cluster_id"]),
            member: (text(&json["member"]["name"]), text(&json["member"]["id"])),
            version: text(&json["etcd_version"]),
            storage_version: text(&json["storage_version"]),
            about: About {
                created: text(&json["created"]),
                lineage: text(&json["lineage"]),
                address: text(&json["address"]),
                belongs: json["belongs"].as_array().into_iter().flatten().map(text).collect(),
            },
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn manifest() -> Manifest {
        Manifest {
            size: 1056,
            sha256: "ab".into(),
            revision: 7,
            revision_at_most: 9,
            hash: Some((4_000_000_000, 3)),
            cluster_id: "1f".into(),
            member: ("b".into(), "2e".into()),
            version: "3.5.30".into(),
            storage_version: String::new(),
            about: About {
                created: "2026-01-01T00:00:00Z".into(),
                lineage: "l".into(),
                address: "etcd_cluster.main".into(),
                belongs: vec!["etcd_cluster.main/client_ca".into()],
            },
        }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let text = manifest().to_json().to_string();
        assert_eq!(Manifest::read(&text), Ok(manifest()));
        let without = Manifest { hash: None, ..manifest() };
        assert_eq!(Manifest::read(&without.to_json().to_string()), Ok(without));
        let wrong = |text: &str| Manifest::read(text).unwrap_err();
        assert!(wrong("x").contains("no JSON"));
        assert!(wrong("{}").contains("no manifest"));
        assert!(wrong(&text.replace("\"1.0\"", "\"2.0\"")).contains("version \"2.0\""));
        assert!(wrong(&text.replace("\"size\"", "\"other\"")).contains("no size"));
    }
}
