//! The CAs of a cluster and the client certificate, and what else there is of them: what is trusted as one text, and what is kept with the cluster.

use karmaform_model::{Arg, Child, ChildStep, Type, Value};

use super::super::arguments::Arguments;
use super::super::children::{ALGORITHM, certificate, child};
use super::super::places::{CLIENT_CA, PEER_CA, authority, client_certificate};

/// How long before its end a CA in pods asks to be renewed, in hours. Short, because that is refused there and then nothing else is planned.
const RENEW_BEFORE_HOURS_IN_PODS: i64 = 24;
/// The name in the client certificate. Where etcd's authentication is on it takes this as the user; this one may do everything.
const CLIENT_NAME: &str = "root";

/// The CAs and the client certificate.
pub(in crate::cluster) fn expand(cluster: &Arguments) -> Vec<Child> {
    let mut children: Vec<Child> = Vec::new();
    for (role, whose) in [(CLIENT_CA, "client"), (PEER_CA, "peer")] {
        for number in &cluster.authorities.trusted {
            let name = format!("etcd {} {whose} CA", cluster.name);
            let name = if *number == 1 { name } else { format!("{name} {number}") };
            let arguments = [
                ("common_name", name.into()),
                ("algorithm", ALGORITHM.into()),
                ("validity_hours", cluster.ca_validity_hours.clone().into()),
                ("renew_before_hours", renew_before(cluster).into()),
            ];
            children.push(child(authority(role, *number), "tls_ca", arguments));
        }
    }
    children.push(certificate(cluster, client_certificate(), CLIENT_CA, CLIENT_NAME, None, &["client_auth"]));
    children
}

/// A renewed CA has the same key. What it signed ends with it at the latest, so it is renewed before a certificate would have to end early.
fn renew_before(cluster: &Arguments) -> Value {
    let (validity, leaf) = (cluster.ca_validity_hours.as_i64(), cluster.certificate_validity_hours.as_i64());
    match (validity, leaf) {
        (Some(validity), _) if cluster.kubernetes.is_some() => RENEW_BEFORE_HOURS_IN_PODS.min(validity / 10).into(),
        (Some(validity), Some(leaf)) => leaf.min(validity / 2).into(),
        _ => Value::unknown_not_null(Type::Number),
    }
}

/// The certificates of all trusted CAs of this role, one behind the other in PEM. What stands between them nobody reads but a state that is made
/// anew: by it each is told from the next.
pub(in crate::cluster) fn trusted(cluster: &Arguments, role: &'static str) -> Arg {
    let mut parts = Vec::new();
    for number in &cluster.authorities.trusted {
        if !parts.is_empty() {
            parts.push(format!("# CA {number}\n").into());
        }
        parts.push(Arg::child(&authority(role, *number), "certificate"));
    }
    if parts.len() == 1 { parts.remove(0) } else { Arg::Text(parts) }
}

/// What no member reads, and what the cluster can't be managed without: a state that was lost is made anew from it (docs/decisions/0006).
/// Names of files, whose attribute, and which.
pub(in crate::cluster) fn kept(cluster: &Arguments) -> Vec<(String, Vec<ChildStep>, &'static str)> {
    let mut kept = Vec::new();
    for (role, file) in [(CLIENT_CA, "client-ca"), (PEER_CA, "peer-ca")] {
        for number in &cluster.authorities.trusted {
            let file = if *number == 1 { file.to_owned() } else { format!("{file}-{number}") };
            kept.push((format!("{file}.key"), authority(role, *number), "private_key"));
            // On hosts it is beside it, in what members trust. In pods a Secret has all of it together.
            if cluster.kubernetes.is_some() {
                kept.push((format!("{file}.crt"), authority(role, *number), "certificate"));
            }
        }
    }
    kept.push(("client.crt".to_owned(), client_certificate(), "certificate"));
    kept.push(("client.key".to_owned(), client_certificate(), "private_key"));
    kept
}
