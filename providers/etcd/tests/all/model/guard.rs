//! Which start of a member is allowed: what its guard does, and what must not get past it.

use super::host::Host;
use super::roster::Roster;

/// What a start would do.
pub(super) enum Start {
    /// It goes on from its data.
    FromData,
    /// It takes part in forming a new cluster of this id.
    Forms(String),
    /// It joins the cluster that was formed.
    Joins,
}

/// The guard's questions, in its order. It is taken from the script's text that they are asked at all.
pub(super) fn decide(host: &mut Host, guard: &str, cluster: &str) -> Result<Start, String> {
    for part in ["KARMAFORM_JOINS", "member/wal", "\"$marker\"", "ETCD_INITIAL_CLUSTER_STATE"] {
        if !guard.contains(part) {
            return Err(format!("the guard does not look at {part}"));
        }
    }
    // It looks in one place alone.
    let place = guard.lines().find_map(|l| l.strip_prefix("data=")).ok_or("the guard looks nowhere")?;
    if guard.contains("${ETCD_DATA_DIR:-$data}") && host.setting("ETCD_DATA_DIR").is_some_and(|is| is != place) {
        return Err("refused by the guard: data is being moved".to_owned());
    }
    let has_data = host.has_data_at(place);
    let given = |name: &str| host.formation.as_ref().and_then(|f| f.get(name)).cloned();
    let is_new = given("ETCD_INITIAL_CLUSTER_STATE").as_deref() == Some("new");
    if let Some(replaces) = given("KARMAFORM_JOINS") {
        let is_hollow = host.hollow_at.as_deref() == Some(place);
        let goes_aside = replaces != "empty" && (has_data || is_hollow) && host.set_aside.insert(replaces);
        if goes_aside {
            (host.data, host.hollow_at) = (None, None);
        }
        // What is there at the next try is its own.
        if let Some(formation) = &mut host.formation {
            formation.insert("KARMAFORM_JOINS".to_owned(), "empty".to_owned());
        }
        return Ok(if has_data && !goes_aside { Start::FromData } else { Start::Joins });
    }
    if has_data {
        return Ok(Start::FromData);
    }
    if host.marker {
        return Err("refused by the guard: the data is gone".to_owned());
    }
    if is_new { Ok(Start::Forms(cluster.to_owned())) } else { Err("refused by the guard: no formation".to_owned()) }
}

/// What is wrong with a member that starts empty, given the cluster that was formed.
pub(super) fn danger(host: &Host, cluster: &str, formed: Option<&Roster>) -> Option<String> {
    match formed.map(|f| f.id.as_str()) {
        Some(formed) if host.had_data_of.contains(formed) => {
            Some(format!("{} started as new although it was a member of the formed cluster {formed}", host.member))
        }
        Some(formed) if formed != cluster => Some(format!("{} started as new for {cluster} although {formed} was formed", host.member)),
        _ => None,
    }
}
