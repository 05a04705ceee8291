//! The arguments of an `etcd_cluster`, checked once and given names.
//!
//! What decides paths and the number of members must be known; everything else may be known later and is carried as it is.

use std::collections::BTreeMap;

use karmaform_model::{Address, Diagnostic, Diagnostics, Key, Kind, Object, Type, Value};

use super::authorities::Authorities;
use super::hosts::{Host, members, one_for_several};
use super::kubernetes::Kubernetes;
use super::leg;
use super::places::default_data_directory;
use super::restore::Restore;
use super::schema::{CA_VALIDITY_HOURS, CERTIFICATE_VALIDITY_HOURS, CLIENT_PORT, DISK_LIMIT, PEER_PORT, RENEW_BEFORE_HOURS, USER};
use super::settings;
use crate::versions::Version;

/// Directories that the unit's sandbox hides.
const HIDDEN: &[&str] = &["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// A cluster as it is wanted, or as it was.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    /// The composite's address.
    pub(crate) address: Address,
    /// Its name on hosts: `main`, or `main-x` for `etcd_cluster.main["x"]`.
    pub(crate) name: String,
    pub(crate) version: Version,
    pub(crate) members: BTreeMap<String, Host>,
    pub(crate) source: Value,
    pub(crate) source_sha256: Value,
    /// `None` while not even the names are known.
    pub(crate) settings: Option<Object>,
    pub(crate) client_port: u16,
    pub(crate) peer_port: u16,
    pub(crate) data_directory: String,
    pub(crate) certificate_validity_hours: Value,
    pub(crate) ca_validity_hours: Value,
    pub(crate) renew_before_hours: Value,
    pub(crate) keeps_data: bool,
    /// What only a state has otherwise is kept with the cluster, too.
    pub(crate) keeps_authority: bool,
    /// Plans make room in databases.
    pub(crate) defragments: bool,
    pub(crate) user: String,
    /// Milliseconds; 0: not tried.
    pub(crate) disk_limit: i64,
    /// Its place, if that is not hosts.
    pub(crate) kubernetes: Option<Kubernetes>,
    /// Its CAs.
    pub(crate) authorities: Authorities,
    /// The snapshot that it begins with.
    pub(crate) restore: Option<Restore>,
}

/// What says something about hosts alone.
const OF_HOSTS: &[&str] = &["source", "source_sha256", "client_port", "peer_port", "data_directory", "addresses", "user", "disk_limit"];

impl Arguments {
    /// Reads and checks them.
    pub(crate) fn read(address: &Address, object: &Object) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::new();
        let name = cluster_name(address);
        let mut text = |attribute: &str, default: &str| match known_text(object, attribute, default) {
            Ok(text) => text,
            Err(diagnostic) => {
                found.push(diagnostic);
                default.to_owned()
            }
        };
        let version = text("version", "");
        let user = text("user", USER);
        let on_destroy = text("on_destroy", "delete");
        let data_directory = text("data_directory", &default_data_directory(&name));
        let (client_port, peer_port) =
            (port(object, "client_port", CLIENT_PORT, &mut found), port(object, "peer_port", PEER_PORT, &mut found));
        if client_port == peer_port {
            found.push(Diagnostic::error(
                "One port for two purposes",
                format!("`client_port` and `peer_port` are both {client_port}. Members and clients need a port each."),
            ));
        }
        if !matches!(on_destroy.as_str(), "delete" | "keep") {
            found.push(Diagnostic::error("Unknown `on_destroy`", "It is \"delete\" or \"keep\": what happens to the data at the end."));
        }
        let keep = object.get("keep_authority").filter(|v| !v.is_null());
        if keep.is_some_and(Value::is_unknown) {
            found.push(not_known("keep_authority"));
        }
        let keeps_authority = keep.and_then(Value::as_bool).unwrap_or(true);
        let defragment = object.get("defragment").filter(|v| !v.is_null());
        if defragment.is_some_and(Value::is_unknown) {
            found.push(not_known("defragment"));
        }
        let defragments = defragment.and_then(Value::as_bool).unwrap_or(false);
        let disk_limit = object.get("disk_limit").filter(|v| !v.is_null());
        if disk_limit.is_some_and(|v| v.as_i64().is_none_or(|n| !(0..=10_000).contains(&n))) {
            found
                .push(Diagnostic::error("Bad `disk_limit`", "It is a whole number of milliseconds, from 0 to 10000, known when planning."));
        }
        let disk_limit = disk_limit.and_then(Value::as_i64).unwrap_or(DISK_LIMIT);
        check_user(&user, &mut found);
        check_directory(&data_directory, &mut found);
        check_validity(object, &mut found);
        leg::check(object, &mut found);
        let version = Version::parse(&version);
        let kubernetes = Kubernetes::read(address, object, version.as_ref().ok(), &mut found);
        let members = match &kubernetes {
            Some(kubernetes) => {
                of_hosts(object, &mut found);
                kubernetes.hosts()
            }
            None => {
                if object.get("source").is_none_or(Value::is_null) {
                    found.push(
                        Diagnostic::error("No etcd for the hosts", "`source` is missing: the archive of the release that is put on them.")
                            .with_hint("Write the path or the URL of `etcd-vVERSION-linux-ARCH.tar.gz` into `source`."),
                    );
                }
                let members = members(object, &mut found);
                let [source, sum] = ["source", "source_sha256"].map(|name| given(object, name, Value::null(Type::String)));
                found.extend(one_for_several(&members, &source, &sum));
                members
            }
        };
        let restore = Restore::read(object, kubernetes.as_ref(), &mut found);
        let authorities = Authorities::read(object, &mut found);
        let settings = match object.get("settings") {
            None => Some(Object::new()),
            Some(value) if value.is_null() => Some(Object::new()),
            Some(value) => value.as_entries().cloned(),
        };
        let version = match version {
            Ok(version) => {
                if let Some(settings) = &settings {
                    settings::check(settings, &version, &mut found);
                    found.extend(kubernetes.as_ref().and_then(|_| settings::silent(settings)));
                }
                Some(version)
            }
            Err(why) => {
                if object.get("version").is_some_and(|v| !v.is_unknown()) {
                    found.push(Diagnostic::error("An etcd version that can't be used", why));
                }
                None
            }
        };
        match version {
            Some(version) if !found.has_errors() => Ok(Self {
                address: address.clone(),
                name,
                version,
                members,
                source: given(object, "source", Value::null(Type::String)),
                source_sha256: given(object, "source_sha256", Value::null(Type::String)),
                settings,
                client_port,
                peer_port,
                data_directory,
                certificate_validity_hours: given(object, "certificate_validity_hours", CERTIFICATE_VALIDITY_HOURS.into()),
                ca_validity_hours: given(object, "ca_validity_hours", CA_VALIDITY_HOURS.into()),
                renew_before_hours: given(object, "renew_before_hours", RENEW_BEFORE_HOURS.into()),
                keeps_data: on_destroy == "keep",
                keeps_authority,
                defragments,
                user,
                disk_limit,
                kubernetes,
                authorities,
                restore,
            }),
            _ => Err(found.into_iter().map(|d| d.at(address)).collect()),
        }
    }

    /// The unit on each host.
    pub(crate) fn unit(&self) -> String {
        format!("etcd-{}.service", self.name)
    }

    /// The URL of a member's port as parts: text around an address that may not be known yet.
    pub(crate) fn url(&self, member: &Host, port: u16) -> [Value; 3] {
        let is_v6 = member.address.as_str().is_some_and(|a| a.contains(':'));
        let (open, close) = if is_v6 { ("https://[", "]") } else { ("https://", "") };
        [open.into(), member.address.clone(), format!("{close}:{port}").into()]
    }
}

/// The cluster's name on hosts, with the modules that it is in in front: what two instances of a module make must differ. What can't stand in names of files and units is written by its code, so that no two keys become one name.
pub(crate) fn cluster_name(address: &Address) -> String {
    let plain = |text: &str| {
        let spelled =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c.to_string() } else { format!("_{:x}", u32::from(c)) };
        text.chars().map(spelled).collect::<String>()
    };
    let named = |name: &str, key: Option<&Key>| match key {
        None => plain(name),
        Some(Key::Index(i)) => format!("{}-{i}", plain(name)),
        Some(Key::Name(key)) => format!("{}-{}", plain(name), plain(key)),
    };
    let around = address.module.iter().map(|step| named(&step.name, step.key.as_ref()) + "-");
    around.collect::<String>() + &named(&address.name, address.key.as_ref())
}

fn given(object: &Object, name: &str, default: Value) -> Value {
    object.get(name).filter(|v| !v.is_null()).cloned().unwrap_or(default)
}

pub(super) fn not_known(name: &str) -> Diagnostic {
    Diagnostic::error(
        "A value that must be known when planning",
        format!("`{name}` decides what the cluster's parts are called and where they are, so it can't be known only after apply."),
    )
    .with_hint("Take it from a variable or a local, or apply what it comes from first with `-target`.")
}

pub(super) fn known_text(object: &Object, name: &str, default: &str) -> Result<String, Diagnostic> {
    match object.get(name).map(|v| (&v.kind, v.is_null())) {
        None | Some((_, true)) => Ok(default.to_owned()),
        Some((Kind::String(text), _)) => Ok(text.clone()),
        Some((Kind::Unknown(_), _)) => Err(not_known(name)),
        Some(_) => Err(Diagnostic::error("Not a text", format!("`{name}` must be a string."))),
    }
}

/// Two places at once, or arguments that mean nothing on Kubernetes.
fn of_hosts(object: &Object, found: &mut Diagnostics) {
    let is_written = |name: &&&str| object.get(name).is_some_and(|v| !v.is_null());
    if is_written(&&"hosts") {
        found.push(
            Diagnostic::error(
                "Two places for one cluster",
                "`hosts` and the block `kubernetes` are both there; a cluster is on one of them.",
            )
            .with_hint("Remove one of them."),
        );
    }
    // Ports have defaults, which are as if not written.
    let default = |name: &str| match name {
        "client_port" => object.get(name).and_then(Value::as_i64) == Some(CLIENT_PORT),
        "peer_port" => object.get(name).and_then(Value::as_i64) == Some(PEER_PORT),
        "user" => object.get(name).and_then(Value::as_str) == Some(USER),
        _ => false,
    };
    let strays: Vec<String> = OF_HOSTS.iter().filter(is_written).filter(|n| !default(n)).map(|n| format!("`{n}`")).collect();
    if !strays.is_empty() {
        found.push(
            Diagnostic::error("Arguments of hosts", format!("On Kubernetes {} would have no effect.", strays.join(", ")))
                .with_hint("Remove them; the block `kubernetes` has arguments of its own."),
        );
    }
}

fn port(object: &Object, name: &str, default: i64, found: &mut Diagnostics) -> u16 {
    let value = given(object, name, default.into());
    match value.as_i64().and_then(|p| u16::try_from(p).ok()).filter(|p| *p > 0) {
        Some(port) => port,
        None => {
            found.push(if value.is_unknown() {
                not_known(name)
            } else {
                Diagnostic::error("Not a port", format!("`{name}` must be a whole number from 1 to 65535."))
            });
            // Two different ones, so that no second complaint follows from the first.
            if name == "client_port" { 1 } else { 2 }
        }
    }
}

fn check_validity(object: &Object, found: &mut Diagnostics) {
    let hours = |name: &str, default: i64| given(object, name, default.into());
    let validity = hours("certificate_validity_hours", CERTIFICATE_VALIDITY_HOURS);
    let renew = hours("renew_before_hours", RENEW_BEFORE_HOURS);
    if let (Some(validity), Some(renew)) = (validity.as_i64(), renew.as_i64())
        && (renew < 0 || renew >= validity)
    {
        found.push(
            Diagnostic::error(
                "Certificates that would be renewed at once",
                format!("Certificates are valid for {validity} hours and are renewed {renew} hours before their end: every plan would renew them."),
            )
            .with_hint("Make `renew_before_hours` about a third of `certificate_validity_hours`."),
        );
    }
    if let (Some(validity), Some(ca)) = (validity.as_i64(), hours("ca_validity_hours", CA_VALIDITY_HOURS).as_i64())
        && validity > ca
    {
        found.push(
            Diagnostic::error(
                "Certificates that outlive their CA",
                format!(
                    "Certificates are valid for {validity} hours and the CAs for {ca}: nobody takes a certificate when its CA has ended."
                ),
            )
            .with_hint("Make `certificate_validity_hours` at most half of `ca_validity_hours`."),
        );
    }
}

fn check_user(user: &str, found: &mut Diagnostics) {
    let good = user.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && user.len() <= 31
        && user.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    if !good {
        found.push(Diagnostic::error(
            "Not a user name",
            "`user` must start with a lower-case letter and hold only lower-case letters, digits, \"-\" and \"_\".",
        ));
    } else if user == "root" {
        found.push(Diagnostic::error("etcd as root", "etcd needs no rights beyond its own files; `user` can't be \"root\"."));
    }
}

/// An absolute path of at least two plain parts: it needs no quotes anywhere, and is no directory of the system's.
pub(crate) fn is_path(path: &str) -> bool {
    let plain = path.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-'));
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    path.starts_with('/') && plain && parts.len() >= 2 && !parts.iter().any(|p| matches!(*p, "" | "." | ".."))
}

fn check_directory(path: &str, found: &mut Diagnostics) {
    if !is_path(path) {
        found.push(Diagnostic::error(
            "A data directory that can't be used",
            "`data_directory` must be an absolute path of at least two parts, of letters, digits, \".\", \"_\" and \"-\", without \"..\".",
        ));
    } else if let Some(hidden) = HIDDEN.iter().find(|h| path.starts_with(&format!("{h}/"))) {
        found.push(
            Diagnostic::error(
                "A data directory that the unit can't see",
                format!("The unit runs etcd without a view of {hidden}, so the data can't be there."),
            )
            .with_hint("Take a directory below /var/lib or on a file system of its own."),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_instances_of_a_module_never_share_a_name() {
        for (address, name) in [
            ("etcd_cluster.main", "main"),
            ("etcd_cluster.main[\"a.b\"]", "main-a_2eb"),
            ("module.site[\"eu\"].etcd_cluster.main", "site-eu-main"),
            ("module.site[0].module.b.etcd_cluster.main[1]", "site-0-b-main-1"),
        ] {
            assert_eq!(cluster_name(&address.parse().unwrap()), name);
        }
    }
}
