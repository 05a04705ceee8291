//! Whether what runs beside a member is of its control plane's version. Sources: the agent and the estimators are released with Karmada, and speak its
//! APIs of the same version; between 1.17 and 1.19 the estimator's protocol lost fields (Karmada's release notes of 1.19).

use karmaform_model::{Caveat, Object, Upkeep, Value};

use crate::versions::Version;

/// The agent and the estimator, where they are of another minor version than the control plane. Nothing, where that is not known.
pub(super) fn skewed(member: &Object, fellows: &[&Object]) -> Vec<Upkeep> {
    let id = |connection: Option<&Value>| connection.and_then(|c| c.get("id")?.as_str().map(str::to_owned));
    let written = member.get("control_plane");
    let leads_to = id(written.and_then(|w| w.get("connection"))).or_else(|| id(written));
    let plane = fellows.iter().find(|f| f.contains_key("kube_version") && leads_to.is_some() && id(f.get("connection")) == leads_to);
    let text = plane.and_then(|p| p.get("version")?.as_str());
    let Some((text, version)) = text.and_then(|t| Some((t, Version::parse(t).ok()?))) else { return Vec::new() };
    let parts = [
        ("agent", "karmada-agent", ["agent.image", "agent.version"]),
        ("estimator", "karmada-scheduler-estimator", ["estimator.image", "estimator.version"]),
    ];
    let other = parts.into_iter().filter_map(|(block, program, [image, number])| {
        let said = |name: &str| member.get(block)?.get(name)?.as_str();
        let (attribute, own) = match said("image").and_then(tag) {
            Some(tag) => (image, tag),
            None => (number, said("version")?),
        };
        Version::parse(own).ok().filter(|v| v.minor != version.minor)?;
        let what = format!("{program} {}", own.trim_start_matches('v'));
        Some(Upkeep { attribute, what, caveat: Caveat::Fellow(format!("Karmada {text}")) })
    });
    other.collect()
}

/// `v1.19.0` of `docker.io/karmada/karmada-agent:v1.19.0@sha256:...`
fn tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    name.split_once(':').map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_of_another_minor_version_is_told() {
        let connection = || Value::object([("id", "p".into()), ("provider", "kubernetes".into())]);
        let object = |entries: [(&str, Value); 3]| -> Object { entries.into_iter().map(|(n, v)| (n.to_owned(), v)).collect() };
        let plane = object([("kube_version", "1.34.1".into()), ("version", "1.19.0".into()), ("connection", connection())]);
        let told = |to: Value, agent: Value| {
            let member: Object = [("control_plane".to_owned(), to), ("agent".to_owned(), agent)].into();
            let found = skewed(&member, &[&plane]);
            found.into_iter().map(|u| format!("{} {} {:?}", u.attribute, u.what, u.caveat)).collect::<Vec<_>>().join("; ")
        };
        let image = |image: &str| Value::object([("image", image.into())]);
        let expected = "agent.image karmada-agent 1.17.2 Fellow(\"Karmada 1.19.0\")";
        assert_eq!(told(connection(), image("r:5000/karmada-agent:v1.17.2")), expected);
        assert_eq!(told(connection(), image("karmada-agent:v1.17.2@sha256:00")), expected);
        assert_eq!(told(Value::object([("connection", connection())]), image("karmada-agent:v1.17.2")), expected);
        assert_eq!(told(connection(), Value::object([("version", "1.17.2".into())])), expected.replace("image", "version"));
        for same in ["r:5000/karmada-agent:v1.19.3", "karmada-agent", "karmada-agent:latest", "a@sha256:00"] {
            assert_eq!(told(connection(), image(same)), "", "{same}");
        }
        assert_eq!(told(Value::object([("id", "another".into())]), image("karmada-agent:v1.17.2")), "");
    }
}
