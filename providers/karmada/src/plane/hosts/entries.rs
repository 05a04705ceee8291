//! How the components find each other where there is no cluster's DNS: lines in /etc/hosts that every host has.
//!
//! A name has the addresses of all hosts where its component runs, the host's own first: programs in Go try one after the other, so that
//! each talks to what is beside it, and to another one while that is away. Source: `lookupStaticHost` and `dialSerial` in Go's `net`.

use std::collections::BTreeMap;

use karmaform_model::{Arg, Value};

use super::{Hosts, homes};
use crate::plane::arguments::Arguments;
use crate::plane::secrets::serves;
use crate::versions::Component;

/// The lines of a host: an address, and the names that lead there.
pub(super) fn entries(plane: &Arguments, hosts: &Hosts, host: &str) -> Arg {
    let mut lines: BTreeMap<(bool, &str), (Value, Vec<String>)> = BTreeMap::new();
    for component in Component::ALL.into_iter().filter(|c| serves(*c)) {
        for (name, home) in homes(plane, hosts, component) {
            let is_own = name == host;
            // Of one family: that of IPv6 would come first whatever stands first.
            let is_v6 = home.is_v6() == Some(true);
            let own = || if is_v6 { "::1".into() } else { "127.0.0.1".into() };
            let address = if is_own { own() } else { home.address.clone() };
            let line = lines.entry((!is_own, name)).or_insert_with(|| (address, Vec::new()));
            line.1.extend([plane.service_host(component), plane.service_name(component)]);
        }
    }
    let lines =
        lines.into_values().map(|(address, names)| Arg::object([("address", address.into()), ("names", Value::strings(names).into())]));
    Arg::List(lines.collect())
}
