//! The gate `ssh_unused`.

use karmaform_model::{Diagnostic, GateAnswer, Value};

use crate::lab::{lab_of_all, object};

#[test]
fn an_address_that_somebody_has_is_refused_with_whose_it_is() {
    let Some(lab) = lab_of_all("an_address_that_somebody_has") else { return };
    let (own, other) = (lab.address(0).to_owned(), lab.address(1).to_owned());
    let device = lab.shell(&format!("ip -o addr show | sed -n 's|^[0-9]*: *\\([^ ]*\\) *inet {own}/.*|\\1|p'"));
    let check = |address: &str, owners: &[&str]| {
        let arguments = object([
            ("host", lab.connection().into()),
            ("address", address.into()),
            ("interface", device.as_str().into()),
            ("owners", Value::strings(owners.iter().copied())),
            ("advice", "Take another one.".into()),
        ]);
        lab.runtime.block_on(lab.driver.check(lab.client(), "ssh_unused", &arguments))
    };
    let passed = |answer: Result<GateAnswer, Diagnostic>| match answer {
        Ok(GateAnswer::Passed(seen)) => seen,
        other => panic!("{other:?}"),
    };
    let error = check(&other, &[]).unwrap_err();
    let hardware = lab.shell(&format!("ip neigh show {other} | sed 's/.*lladdr \\([^ ]*\\) .*/\\1/'"));
    assert!(error.summary == "An address that somebody has" && error.detail.contains(&hardware), "{error:?} {hardware}");
    assert!(hardware.contains(':') && error.hints.iter().any(|h| h == "Take another one."), "{error:?}");
    assert_eq!(passed(check(&other, &[&own, &other])), format!("{other} is on {other}"));
    assert_eq!(passed(check(&own, &[])), format!("{own} is on the host that was asked"));
    // The last but one of its network of 256, which the lab gives nobody.
    let (network, _) = own.rsplit_once('.').unwrap();
    let free = format!("{network}.253");
    assert_eq!(passed(check(&free, &[])), format!("nobody has {free}"));
    // Who has left an address is not taken to have it, though the kernel goes by what it knew for a while.
    let moved = format!("{network}.252");
    lab.shell(&format!("ip neigh replace {moved} lladdr 02:00:00:00:00:77 nud reachable dev {device}"));
    assert_eq!(passed(check(&moved, &[])), format!("nobody has {moved}"));
    lab.assert_nothing_left();
}
