//! IPv4 or IPv6: all hosts are reached by addresses of one family, and Services in the Karmada API have it, too.
//!
//! kube-apiserver does not start where its own address is of another family than the first range of Services. Source:
//! `validatePublicIPServiceClusterIPRangeIPFamilies` in `cmd/kube-apiserver/app/options` of kubernetes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use karmaform_model::{Diagnostic, Value};

use super::Host;
use crate::plane::schema::SERVICE_SUBNET;
use crate::plane::target::Target;
use crate::read::Reader;

/// The range of Service addresses where hosts have addresses of IPv6 and nothing else is written. Nobody outside of the control plane reaches one.
const SERVICE_SUBNET_V6: &str = "fd00:10:96::/112";

/// An address as hosts themselves write it: that of IPv6 has several ways.
pub(super) fn canonical(address: &Value) -> Value {
    let parsed = address.as_str().and_then(|text| text.parse::<IpAddr>().ok());
    parsed.map_or_else(|| address.clone(), |ip| Value::from(ip.to_string()).marked(address.marks()))
}

/// Refuses hosts of both families.
pub(super) fn check(reader: &mut Reader<'_, '_>, all: &BTreeMap<String, Host>) {
    let of = |v6: bool| all.iter().find(|(_, host)| host.is_v6() == Some(v6));
    let (Some((four, one)), Some((six, other))) = (of(false), of(true)) else { return };
    let text = |host: &Host| host.address.as_str().unwrap_or_default().to_owned();
    let detail = format!(
        "\"{four}\" in `hosts` is reached at {}, and \"{six}\" at {}. All members of etcd and all API servers speak to each other by one family.",
        text(one),
        text(other)
    );
    reader.found.push(
        Diagnostic::error("Hosts of two address families", detail)
            .with_hint("Write an address of each host into `addresses`, all of IPv4 or all of IPv6."),
    );
}

/// The range of Service addresses: the one that is written, which fits the hosts' addresses, or a usual one that does.
pub(crate) fn service_subnet(reader: &mut Reader<'_, '_>, written: String, target: &Target) -> String {
    let v6 = target.hosts().and_then(|hosts| hosts.all.values().find_map(Host::is_v6));
    match v6 {
        Some(true) if written == SERVICE_SUBNET => SERVICE_SUBNET_V6.to_owned(),
        Some(v6) if written.split(',').next().is_some_and(|first| first.contains(':') != v6) => {
            let family = if v6 { "IPv6" } else { "IPv4" };
            let problem =
                format!("is \"{written}\", but the hosts' addresses are of {family}, so it (or the first of two) must be as well");
            reader.wrong::<()>("service_subnet", &problem);
            written
        }
        _ => written,
    }
}
