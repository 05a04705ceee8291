//! Who has the virtual IP, by what was seen on the hosts: one of them, or something is wrong. Pure.

use std::collections::BTreeMap;

use karmaform_model::{ChildStep, Diagnostic, Object, Scene, Value};

use super::super::{Host, Hosts, unit_at};
use super::{Balancer, Program, unit_of};
use crate::plane::arguments::Arguments;

/// Refuses one that a host has before anybody is to reach the API there. Where people have reached it there so far it goes from host to host by now, or
/// did what it was to without that: by our keepalived, whose mark is on it, or by another one.
pub(crate) fn taken(scene: &Scene<'_>, hosts: &Hosts) -> Option<Diagnostic> {
    let Balancer { address, ours: Some(_), .. } = hosts.balancer.as_ref()? else { return None };
    let vip = address.as_str()?;
    // One that has our mark is not among these.
    let has_it = |host: &Host| host.facts.get("interfaces").and_then(|all| all.get(vip)).is_some_and(|device| !device.is_null());
    let (name, _) = hosts.all.iter().find(|(_, host)| has_it(host))?;
    if is_led_to(scene, vip) {
        return None;
    }
    let detail = format!(
        "`load_balancer.vip` is {vip}, which the host \"{name}\" has. It must be one that nobody has, so that it can go from host to host."
    );
    let refused = Diagnostic::error("A virtual IP that a host has for itself", detail)
        .with_hint("Choose a free address of the hosts' network.")
        .with_hint("If another keepalived has put it there, stop that one on all hosts before.");
    Some(refused.at(scene.address))
}

/// True if people have reached the API there so far.
pub(super) fn is_led_to(scene: &Scene<'_>, vip: &str) -> bool {
    scene.before.is_some_and(|before| match Arguments::read(scene.address, before) {
        Ok(before) => before.target.hosts().and_then(|h| h.balancer.as_ref()).is_some_and(|b| b.address.as_str() == Some(vip)),
        // Of another version: nobody can tell.
        Err(_) => true,
    })
}

/// A warning where several hosts have it at once, at the first of them whose keepalived runs. Where none has it, nothing answers behind it, and each
/// keepalived is told of as not well.
pub(crate) fn care(seen: &BTreeMap<&[ChildStep], &Object>) -> Vec<(Vec<ChildStep>, Diagnostic)> {
    let holds = |(path, unit): (&&[ChildStep], &&Object)| {
        let (host, _) = unit_at(path).filter(|(_, of)| *of == Program::Keepalived.name())?;
        let address = unit.get("own_address")?.as_str().filter(|address| !address.is_empty())?;
        let runs = unit.get("active").and_then(Value::as_bool) == Some(true);
        Some((host.to_owned(), address.to_owned(), runs))
    };
    let holders: Vec<(String, String, bool)> = seen.iter().filter_map(holds).collect();
    let Some((at, address, _)) = holders.iter().find(|(.., runs)| *runs).or_else(|| holders.first()).filter(|_| holders.len() > 1) else {
        return Vec::new();
    };
    let hosts: Vec<&str> = holders.iter().map(|(host, ..)| host.as_str()).collect();
    let told = Diagnostic::warning(
        "A virtual IP is on several hosts",
        format!("{} have the virtual IP {address} at once: who connects may reach any of them.", hosts.join(" and ")),
    )
    .with_hint(format!(
        "See whether keepalived on each hears the others (VRRP, IP protocol 112), and whether somebody put it on one by hand: `ip addr del {address} dev DEVICE` takes it away."
    ));
    vec![(unit_of(at, Program::Keepalived), told)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_on_two_hosts_is_told_once() {
        let unit = |address: Option<&str>, active: bool| {
            let address = address.map_or_else(|| Value::null(karmaform_model::Type::String), Value::from);
            Object::from([("own_address".to_owned(), address), ("active".to_owned(), active.into())])
        };
        let told = |units: &[(&str, Program, Object)]| -> Vec<(Vec<ChildStep>, String)> {
            let paths: Vec<Vec<ChildStep>> = units.iter().map(|(host, program, _)| unit_of(host, *program)).collect();
            let seen = paths.iter().map(Vec::as_slice).zip(units.iter().map(|(.., unit)| unit)).collect();
            care(&seen).into_iter().map(|(path, d)| (path, format!("{}: {} {}", d.summary, d.detail, d.hints.join(" ")))).collect()
        };
        let of = |host: &'static str, address: Option<&str>, active: bool| (host, Program::Keepalived, unit(address, active));
        let vip = Some("10.0.0.9");
        assert_eq!(told(&[of("a", vip, true), of("b", Some(""), true), of("c", None, true)]), []);
        assert_eq!(told(&[of("a", Some(""), true), of("b", Some(""), true)]), []);
        // What another program is asked at is no virtual IP.
        assert_eq!(told(&[of("a", vip, true), ("b", Program::Haproxy, unit(vip, true))]), []);
        let both = told(&[of("a", vip, true), of("b", Some(""), true), of("c", vip, true)]);
        assert_eq!(both.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), [unit_of("a", Program::Keepalived)]);
        assert!(both[0].1.starts_with("A virtual IP is on several hosts: a and c have the virtual IP 10.0.0.9 at once"), "{both:?}");
        assert!(both[0].1.contains("`ip addr del 10.0.0.9 dev DEVICE`"), "{both:?}");
        // One that somebody has stopped is told of for that.
        let both = told(&[of("a", vip, false), of("b", vip, true)]);
        assert_eq!(both[0].0, unit_of("b", Program::Keepalived));
    }
}
