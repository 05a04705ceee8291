//! Which start of a member is allowed: what its guard does, and what must not get past it.

use super::host::Host;

/// What a start would do.
pub(super) enum Start {
    /// It goes on from its data.
    FromData(String),
    /// It takes part in forming a new cluster of this id.
    Forms(String),
}

/// The guard's three questions, in its order. It is taken from the script's text that they are asked at all.
pub(super) fn decide(host: &Host, guard: &str, is_new: bool, cluster: &str) -> Result<Start, String> {
    for part in ["member/wal", "\"$marker\"", "ETCD_INITIAL_CLUSTER_STATE"] {
        if !guard.contains(part) {
            return Err(format!("the guard does not look at {part}"));
        }
    }
    if let Some(data) = &host.data {
        return Ok(Start::FromData(data.clone()));
    }
    if host.marker {
        return Err("refused by the guard: the data is gone".to_owned());
    }
    if is_new { Ok(Start::Forms(cluster.to_owned())) } else { Err("refused by the guard: no formation".to_owned()) }
}

/// What is wrong with a member that starts empty, given the cluster that was formed.
pub(super) fn danger(host: &Host, cluster: &str, formed: Option<&str>) -> Option<String> {
    match formed {
        Some(formed) if host.had_data_of.contains(formed) => {
            Some(format!("{} started as new although it was a member of the formed cluster {formed}", host.member))
        }
        Some(formed) if formed != cluster => Some(format!("{} started as new for {cluster} although {formed} was formed", host.member)),
        _ => None,
    }
}
