//! Where the components' programs come from, and where they are on a host.

use karmaform_model::{Arg, Kind, Type, Value, source_on};

use super::{Host, Hosts};
use crate::plane::arguments::Arguments;
use crate::plane::settings::Settings;
use crate::read::Reader;
use crate::versions::Component;

/// What an archive's name ends with.
const ARCHIVES: [&str; 3] = [".tar.gz", ".tgz", ".tar"];

/// The arguments of an `ssh_artifact` that say where it comes from.
pub(super) type Origin = [(&'static str, Arg); 4];

/// Reads where programs come from, `X_source`, and the sum of that, `X_source_sha256`.
pub(super) fn source(reader: &mut Reader<'_, '_>, of: &str) -> (Value, Value) {
    let (source, sum) = (format!("{of}_source"), format!("{of}_source_sha256"));
    if reader.value(&source).is_none() && reader.value(&sum).is_some() {
        reader.wrong::<()>(&sum, &format!("is the sum of `{source}`, which is not there"));
    }
    (reader.given(&source), reader.given(&sum))
}

/// What a component's program is of: `karmada-1.19.0`, `kube-1.36.2`. It is in paths and in the names of children, so that a new version comes
/// beside the one that runs, which goes when nothing runs it any more.
pub(super) fn release(plane: &Arguments, component: Component) -> String {
    if component.is_kube() { format!("kube-{}", plane.kube_version) } else { format!("karmada-{}", plane.version.text) }
}

/// What programs are below. Those that were in use until the last change are kept there, too.
pub(super) fn root(plane: &Arguments) -> String {
    format!("/opt/karmaform/karmada-{}", plane.name)
}

/// The folder of a component's program.
pub(super) fn folder(plane: &Arguments, component: Component) -> String {
    format!("{}/{}", root(plane), release(plane, component))
}

/// The child that it is.
pub(super) fn key(plane: &Arguments, component: Component) -> String {
    format!("{}/{}", release(plane, component), component.binary())
}

/// The program itself.
pub(super) fn path(plane: &Arguments, component: Component) -> String {
    format!("{}/{}", folder(plane, component), component.binary())
}

/// The arguments of an `ssh_artifact` that say where it comes from: what the component's block says, else what there is for all of its kind,
/// else its image.
pub(super) fn origin(plane: &Arguments, hosts: &Hosts, host: &Host, component: Component, settings: &Settings) -> Origin {
    let own = settings.value("source");
    let has_image = ["image", "tag", "digest"].iter().any(|name| !settings.value(name).is_null());
    let (source, sum) = match own.is_null() {
        false => (own, settings.value("source_sha256")),
        // What is said of one component is more than what is said of all.
        true if has_image => (Value::null(Type::String), Value::null(Type::String)),
        true if component.is_kube() => hosts.kube_source.clone(),
        true => hosts.karmada_source.clone(),
    };
    let architecture = host.architecture.as_str();
    let version = if component.is_kube() { &plane.kube_version } else { &plane.version.text };
    let words = [("{program}", component.binary()), ("{version}", version.as_str())];
    let source = if source.is_null() { plane.image(component, settings) } else { source_on(&source, &words, architecture).into() };
    taken(source, source_on(&sum, &words, architecture).into(), component.binary(), architecture)
}

/// The arguments of an `ssh_artifact` that takes a program out of a source: an image, an archive, or the program itself.
pub(super) fn taken(source: Arg, sum: Arg, program: &str, architecture: Option<&str>) -> Origin {
    let member: Arg = match &source {
        Arg::Value(known) if known.as_str().is_some_and(|s| !is_archive(s)) => Value::null(Type::String).into(),
        Arg::Value(Value { kind: Kind::Unknown(_), .. }) => Value::unknown(Type::String).into(),
        _ => program.into(),
    };
    // Only images are of several platforms.
    let platform = match (&source, architecture) {
        (Arg::Value(known), _) if known.as_str().is_some_and(|s| !is_image(s)) => Value::null(Type::String),
        (Arg::Value(Value { kind: Kind::Unknown(_), .. }), _) => Value::unknown(Type::String),
        (_, Some(name)) => Value::from(format!("linux/{name}")),
        (_, None) => Value::unknown_not_null(Type::String),
    };
    [("source", source), ("sha256", sum), ("member", member), ("platform", platform.into())]
}

/// True for what a program is taken out of: an archive, or an image.
fn is_archive(source: &str) -> bool {
    let path = source.split(['?', '#']).next().unwrap_or(source);
    is_image(source) || ARCHIVES.iter().any(|end| path.ends_with(end))
}

fn is_image(source: &str) -> bool {
    source.starts_with("oci://") || source.starts_with("oci+http://")
}
