//! What a plan that destroys a control plane says of members that are still joined to it.

use karmaform_model::{Scene, Value};

use super::store;

/// So many are named.
const MOST: usize = 10;

/// Which members are still joined, what stays on them, and what to do first. What stays is what `karmadactl join` and `register` make there
/// (`pkg/karmadactl/join`, `register` in karmada).
pub(crate) fn left_behind(scene: &Scene<'_>) -> Vec<String> {
    // A state of before there was the list.
    let Some(list) = scene.children.get(&store::members_path()).filter(|c| c.in_state) else { return Vec::new() };
    let fact = |name: &str| list.observed.and_then(|o| o.get(name)).filter(|v| !v.is_null());
    let Some(items) = fact("items").and_then(Value::as_items) else {
        let why = fact("problem")
            .and_then(Value::as_str)
            .map_or_else(|| "the Karmada API does not answer".to_owned(), |w| w.trim_end_matches('.').to_owned());
        return vec![format!("whether members are still joined can't be told: {why}; what Karmada made on them stays there")];
    };
    if items.is_empty() {
        return Vec::new();
    }
    let text = |item: &Value, name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_pull = |item: &&Value| text(item, "mode") == "Pull";
    let named = items.iter().take(MOST).map(|i| match text(i, "mode") {
        mode if mode.is_empty() => text(i, "name"),
        mode => format!("{} ({})", text(i, "name"), mode.to_lowercase()),
    });
    let mut names = named.collect::<Vec<_>>().join(", ");
    if items.len() > MOST {
        names.push_str(&format!(" and {} more", items.len() - MOST));
    }
    let joined = if items.len() == 1 { "1 member is".to_owned() } else { format!("{} members are", items.len()) };
    let mut lines = vec![
        format!("{joined} still joined: {names}"),
        "what runs on members goes on running there, and nobody looks after it any more".to_owned(),
    ];
    let pulled = items.iter().filter(is_pull).count();
    if pulled < items.len() {
        lines.push(
            "on push members stays the namespace karmada-cluster with credentials that are still good, and the ClusterRoles \
             karmada-controller-manager:karmada-NAME and karmada-impersonator; `karmadactl unjoin NAME` before this takes them away"
                .to_owned(),
        );
    }
    if pulled > 0 {
        lines.push(
            "on pull members stays karmada-agent, which goes on looking for the control plane, with its namespace, account and rights; \
             `karmadactl unregister NAME` before this takes them away"
                .to_owned(),
        );
    }
    lines
}
