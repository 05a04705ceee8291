//! What OpenTelemetry's variables of the environment have in common: names by signal, and lists of pairs.
//!
//! Source: <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>, <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>
//! and <https://opentelemetry.io/docs/specs/otel/resource/sdk/>.

use std::collections::BTreeMap;

use karmaform_model::{Diagnostic, Diagnostics};

/// Names, and what they stand for.
pub(super) type Environment = BTreeMap<String, String>;

/// A variable; an empty one counts as not set.
pub(super) fn variable<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// A variable of the exporter with the name it was found by: what is said of traces alone goes before what is said of everything.
pub(super) fn of_exporter<'a>(environment: &'a Environment, option: &str) -> Option<(String, &'a str)> {
    ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"].iter().find_map(|prefix| {
        let name = format!("{prefix}{option}");
        let value = variable(environment, &name)?;
        Some((name, value))
    })
}

/// Reads `a=1,b=two%20words`; `None` if it is no such list.
pub(super) fn pairs(text: &str) -> Option<Vec<(String, Vec<u8>)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), decoded(value.trim()))).filter(|(name, _)| !name.is_empty())
        })
        .collect()
}

/// With `%20` read as what it stands for. A sign that begins nothing stands for itself, as people write values as they are.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    out
}

/// Whose trace it is: what the environment says beside, or instead of, our own name and version.
pub(super) fn resource(environment: &Environment, version: &str) -> (BTreeMap<String, String>, Diagnostics) {
    let mut all: BTreeMap<String, String> =
        [("service.name", "karmaform"), ("service.version", version)].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut wrong = Diagnostics::new();
    if let Some(text) = variable(environment, "OTEL_RESOURCE_ATTRIBUTES") {
        let texts = pairs(text).map(|list| list.into_iter().map(|(name, value)| Some((name, String::from_utf8(value).ok()?))));
        match texts.and_then(Iterator::collect::<Option<Vec<_>>>) {
            Some(list) => all.extend(list),
            None => wrong.push(
                Diagnostic::warning(
                    "Invalid environment variable",
                    "OTEL_RESOURCE_ATTRIBUTES is no list like name=value,name=value, so it is not used.",
                )
                .with_hint("Write commas and what is no plain text in a value as %2C and so on."),
            ),
        }
    }
    if let Some(name) = variable(environment, "OTEL_SERVICE_NAME") {
        all.insert("service.name".to_owned(), name.to_owned());
    }
    (all, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(all: &[(&str, &str)]) -> Environment {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn lists_are_read_as_people_write_them() {
        let read = |text: &str| {
            pairs(text).map(|all| all.into_iter().map(|(n, v)| format!("{n}:{}", String::from_utf8_lossy(&v))).collect::<Vec<_>>())
        };
        assert_eq!(read(" a=1, b = two%20words ,,c=x=y%2Cz").unwrap(), ["a:1", "b:two words", "c:x=y,z"]);
        assert_eq!(read("Authorization=Basic dTpw%").unwrap(), ["Authorization:Basic dTpw%"]);
        assert_eq!(read("a=%zz%4").unwrap(), ["a:%zz%4"]);
        assert_eq!(read("").unwrap(), [""; 0]);
        assert_eq!((read("a"), read("=1")), (None, None));
    }

    #[test]
    fn what_is_said_of_traces_goes_first() {
        let all = environment(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "1"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", " 2 ")]);
        assert_eq!(of_exporter(&all, "TIMEOUT"), Some(("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT".to_owned(), "2")));
        let empty = environment(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "1"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "")]);
        assert_eq!(of_exporter(&empty, "TIMEOUT"), Some(("OTEL_EXPORTER_OTLP_TIMEOUT".to_owned(), "1")));
    }

    #[test]
    fn a_name_goes_before_an_attribute() {
        let all = environment(&[("OTEL_RESOURCE_ATTRIBUTES", "service.name=x,team=a%20b"), ("OTEL_SERVICE_NAME", "y")]);
        let (found, wrong) = resource(&all, "1");
        let shown: Vec<String> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!((shown.as_slice(), wrong.len()), (&["service.name=y", "service.version=1", "team=a b"].map(str::to_owned)[..], 0));
        // All or nothing: half of a list would be somebody else.
        let (found, wrong) = resource(&environment(&[("OTEL_RESOURCE_ATTRIBUTES", "team=a,b")]), "1");
        assert_eq!((found.get("team"), wrong.len()), (None, 1));
    }
}
