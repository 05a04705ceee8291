//! What can't be planned: what could not be looked at or decided, and all that needs it. As Terraform has it, the plan is shown without it and
//! never applied.

use karmaform_model::ModeOfPlan;

use crate::walk::Pass;

/// Takes out what is decided of what can't be planned, and notes it in the pass. A composite is planned as a whole or not at all. What is
/// merely not as it must be by a condition of its own is shown itself.
pub(crate) fn leave_out(pass: &mut Pass<'_>) {
    // What is to go goes all the same.
    if pass.options.mode == ModeOfPlan::Destroy {
        return;
    }
    let graph = pass.graph;
    let mut lost = vec![false; graph.nodes.len()];
    for number in pass.observed.blind.iter().filter_map(|address| graph.instances.get(address)) {
        lost[*number] = true;
    }
    let mut barred = Vec::new();
    for &number in &graph.order {
        let node = &graph.nodes[number];
        let is_barred = node.wanted.iter().chain(&node.children).chain([&number]).any(|n| lost[*n]) || is_undecided(pass, number);
        lost[number] = is_barred || pass.visits[number].flags.failed;
        if is_barred {
            barred.push(number);
        }
    }
    let parts: Vec<usize> = barred.iter().flat_map(|n| &graph.nodes[*n].children).copied().collect();
    for number in barred.into_iter().chain(parts) {
        lost[number] = true;
        pass.visits[number].decision = None;
    }
    pass.lost = lost;
}

/// True for what would have to be decided, and is not.
fn is_undecided(pass: &Pass<'_>, number: usize) -> bool {
    let node = &pass.graph.nodes[number];
    let is_wanted = pass.options.mode == ModeOfPlan::Normal && pass.selected[number] && node.configured && !node.is_junction();
    is_wanted && pass.visits[number].decision.is_none()
}
