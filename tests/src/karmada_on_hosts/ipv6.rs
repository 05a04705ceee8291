//! A control plane on hosts that are known by addresses of IPv6 alone.

use super::for_test;
use super::life::{every_host_serves, one_address_is_everybodys};
use super::site::Site;
use crate::lab::Lab;

#[test]
fn a_control_plane_by_addresses_of_ipv6() {
    let Some((lab, parts)) = for_test("a_control_plane_by_addresses_of_ipv6") else { return };
    let lab = Lab::by_ipv6(lab);
    let before = lab.all_files();
    let site = Site::example(&lab, &parts, 3);
    site.converge();
    every_host_serves(&site);
    one_address_is_everybodys(&site);
    // A Kubernetes that gets no patches any more is told of, and is no drift.
    let drift = site.project.run(&["drift"]);
    assert!(drift.text.contains("No drift"), "{}", drift.text);
    site.project.must(0, &["destroy", "-auto-approve"]);
    lab.has_files(&before);
}
