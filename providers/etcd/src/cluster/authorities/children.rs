//! The CAs of a cluster and the client certificate, and what else there is of them: what is trusted as one text, and what is kept with the cluster.

use karmaform_model::{Arg, Child, ChildStep};

use super::super::arguments::Arguments;
use super::super::children::{ALGORITHM, certificate, child};
use super::super::places::{CLIENT_CA, PEER_CA, authority, client_certificate};
use super::super::schema::CERTIFICATE_VALIDITY_HOURS;

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
fn renew_before(cluster: &Arguments) -> i64 {
    let validity = cluster.ca_validity_hours.as_i64().unwrap_or(i64::MAX);
    if cluster.kubernetes.is_some() {
        return RENEW_BEFORE_HOURS_IN_PODS.min(validity / 10);
    }
    cluster.certificate_validity_hours.as_i64().unwrap_or(CERTIFICATE_VALIDITY_HOURS).min(validity / 3 * 2)
}

/// The certificates of all trusted CAs of this role, one behind the other in PEM.
pub(in crate::cluster) fn trusted(cluster: &Arguments, role: &'static str) -> Arg {
    let mut parts: Vec<Arg> = cluster.authorities.trusted.iter().map(|n| Arg::child(&authority(role, *n), "certificate")).collect();
    if parts.len() == 1 { parts.remove(0) } else { Arg::Text(parts) }
}

/// What no member reads, and what the cluster can't be managed without: a state that was lost is made anew from it (docs/decisions/0006).
/// Names of files, whose attribute, and which.
pub(in crate::cluster) fn kept(cluster: &Arguments) -> Vec<(String, Vec<ChildStep>, &'static str)> {
    let trusted = &cluster.authorities.trusted;
    let mut kept = Vec::new();
    for (role, file) in [(CLIENT_CA, "client-ca"), (PEER_CA, "peer-ca")] {
        for number in trusted {
            let file = if *number == 1 { file.to_owned() } else { format!("{file}-{number}") };
            kept.push((format!("{file}.key"), authority(role, *number), "private_key"));
            // Where it is alone its certificate is what members trust. In pods a Secret has all of it together.
            if trusted.len() > 1 || cluster.kubernetes.is_some() {
                kept.push((format!("{file}.crt"), authority(role, *number), "certificate"));
            }
        }
    }
    kept.push(("client.crt".to_owned(), client_certificate(), "certificate"));
    kept.push(("client.key".to_owned(), client_certificate(), "private_key"));
    kept
}
