//! A store that takes conditional writes and does not keep to the conditions.

use super::Server;
use crate::proxy::Fault;

#[test]
fn a_store_that_passes_over_conditions_is_refused() {
    // Only a server that does not look at signatures takes a request that was changed on the way.
    let Some(server) = Server::moto() else {
        return crate::parts::tell("SKIPPED (no moto): a store that passes over conditions");
    };
    let (through, proxy) = server.through_proxy();
    let project = through.project(&server.key("probe"));
    proxy.rule(|_| Some(Fault::Unconditional));
    let refused = project.must(1, &["init"]);
    assert!(refused.contains("Store does not keep its word"), "{refused}");
    proxy.rule(|_| None);
    project.must(0, &["init"]);
}
