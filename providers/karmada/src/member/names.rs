//! What things are called that joining makes. In the member they carry a mark of the control plane, so that two planes never share one and
//! neither takes away what the other needs.

use karmaform_model::{ChildStep, Value};

use crate::plane::short_sum;

/// The longest name of a member. Source: `clusterNameMaxLength`, `pkg/util/validation` in karmada.
const LONGEST_NAME: usize = 48;

/// Why this is no name of a member.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    let good = crate::check::is_label(name) && name.len() <= LONGEST_NAME;
    (!good).then_some("is no name of a member: it has from 1 to 48 lower-case letters, digits and \"-\", and \"-\" neither first nor last")
}

/// The mark of a control plane: eight hexadecimal digits that follow from which one it is; not known before that is.
pub(crate) fn mark(control_plane: &Value) -> Option<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    // What is on hosts says which one it is.
    if let Some(identity) = control_plane.get("identity").filter(|v| !v.is_null()) {
        return Some(short_sum(&text(Some(identity))?).chars().take(8).collect());
    }
    let id = text(control_plane.get("id"))?;
    let whole = match control_plane.get("via").filter(|v| !v.is_null()) {
        // What karmaform made is called by its address in its own configuration; where it runs tells it from others.
        Some(via) => format!("{}/{}", text(via.get("id"))?, text(control_plane.get("address"))?),
        None => id,
    };
    Some(short_sum(&whole).chars().take(8).collect())
}

/// The steps whose things are in the member. All others are in the control plane, or, those of an estimator, perhaps anywhere.
pub(crate) const IN_MEMBER: [&str; 14] = [
    "agent",
    "agent_account",
    "agent_role",
    "agent_role_binding",
    "agent_secret",
    "namespace",
    "account",
    "role",
    "role_binding",
    "token",
    "estimator_account",
    "estimator_role",
    "estimator_role_binding",
    "estimator_token",
];

/// True for what is in the member.
pub(crate) fn is_in_member(path: &[ChildStep]) -> bool {
    path.first().is_some_and(|step| IN_MEMBER.contains(&step.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_planes_have_marks_of_their_own() {
        let plane = |id: &str, host: Option<&str>, address: &str| {
            let via = host.map_or_else(|| Value::null(karmaform_model::Type::Any), |h| Value::object([("id", h.into())]));
            mark(&Value::object([("id", id.into()), ("via", via), ("address", address.into())]))
        };
        let one = plane("karmada_control_plane.main", Some("host-1"), "https://a").unwrap();
        assert_eq!(one.len(), 8);
        assert_ne!(plane("karmada_control_plane.main", Some("host-2"), "https://a").unwrap(), one);
        assert_ne!(plane("karmada_control_plane.main", Some("host-1"), "https://b").unwrap(), one);
        assert_eq!(plane("karmada_control_plane.renamed", Some("host-1"), "https://a").unwrap(), one);
        assert_eq!(plane("uid", None, "https://a"), plane("uid", None, "https://b"));
        assert!(mark(&Value::unknown(karmaform_model::Type::Any)).is_none());
    }

    #[test]
    fn names_are_checked() {
        assert!(name_problem("eu-1").is_none() && name_problem(&"a".repeat(48)).is_none());
        for bad in ["", "Eu1", "eu_1", "-a", "a.b", &"a".repeat(49)] {
            assert!(name_problem(bad).is_some(), "{bad}");
        }
    }
}
