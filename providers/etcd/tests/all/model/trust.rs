//! Who trusts whom in a model: by the key that a certificate was signed with, and the CAs that a member had read when it started, or that a client
//! was given.

use std::collections::BTreeMap;

use karmaform_model::{ChildStep, Object, Value};

/// What somebody reads once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trust {
    /// The CAs that the certificates of clients and servers come from, one behind the other.
    pub(crate) clients: String,
    /// Those of the certificates between members.
    pub(crate) peers: String,
}

/// A user of the cluster: what the last apply that ended gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Its certificate.
    pub(crate) certificate: String,
    /// The CAs that it trusts.
    pub(crate) trusted: String,
}

impl Client {
    /// Somebody who has what the cluster's attribute `client` says by this state.
    pub(crate) fn of(children: &BTreeMap<Vec<ChildStep>, (String, Object)>) -> Option<Self> {
        let text = |object: &Object| object.get("certificate").and_then(Value::as_str).map(str::to_owned);
        let of = |name: &'static str| children.iter().filter(move |(path, _)| path.len() == 1 && path[0].name == name);
        let (_, (_, certificate)) = of("client_certificate").next()?;
        Some(Self { certificate: text(certificate)?, trusted: of("client_ca").filter_map(|(_, (_, ca))| text(ca)).collect() })
    }
}

/// A member that takes part: what it trusts, and what it shows at a handshake of now. An empty text: nothing.
pub(crate) struct Shown<'a> {
    pub(crate) name: &'a str,
    pub(crate) trust: &'a Trust,
    pub(crate) server: String,
    pub(crate) peer: String,
}

/// The texts of a CA: its certificate says its key, by which it is known whatever number it has.
pub(crate) fn authority(object: &mut Object, number: u64) {
    let known = object.get("private_key").and_then(Value::as_str).map(str::to_owned);
    let key = known.unwrap_or_else(|| format!("key-{number}"));
    object.insert("certificate".to_owned(), format!("<{key}> no {number}\n").into());
    object.insert("private_key".to_owned(), key.into());
}

/// The text of what it signs.
pub(crate) fn leaf(ca_certificate: &str, number: u64) -> String {
    let key = ca_certificate.split_once('>').map_or(ca_certificate, |(key, _)| key);
    format!("leaf {number} by {key}>\n")
}

/// One of these CAs has signed it.
pub(crate) fn accepts(trusted: &str, certificate: &str) -> bool {
    certificate.split_once(" by ").is_some_and(|(_, key)| trusted.contains(key.trim_end()))
}

/// Nobody who takes part may refuse another, and no client may be refused or refuse a member. `ours`: the client certificate of the state.
pub(crate) fn refusals(members: &[Shown<'_>], clients: &[Client], ours: Option<&str>) -> Vec<String> {
    let mut found = Vec::new();
    // Behind real providers certificates are real, and not this model's to judge.
    let is_refused = |trusted: &str, certificate: &str| certificate.starts_with("leaf ") && !accepts(trusted, certificate);
    for member in members {
        let others = members.iter().filter(|other| is_refused(&member.trust.peers, &other.peer));
        found.extend(others.map(|other| format!("{} refuses {}", member.name, other.name)));
        for client in clients {
            if is_refused(&member.trust.clients, &client.certificate) {
                found.push(format!("{} refuses a client", member.name));
            }
            if is_refused(&client.trusted, &member.server) {
                found.push(format!("a client refuses {}", member.name));
            }
        }
        if ours.is_some_and(|certificate| is_refused(&member.trust.clients, certificate)) {
            found.push(format!("{} refuses karmaform", member.name));
        }
    }
    found
}
