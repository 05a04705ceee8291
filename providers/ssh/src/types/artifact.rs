//! `ssh_artifact`: a file from a release: fetched once, checked, taken out of its archive, and sent to many hosts.

mod install;

use karmaform_model::{
    Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Need, Object, PlanContext, ResourceSpec, Schema, Supply, Type, Value,
    default_plan, same,
};

use super::placed::{
    care, care_seen, check, file_at, foreign, gives_way, host, instead, looks_above, permissions, permissions_seen, refuse, word,
};
use crate::artifact::oci;
use crate::checks::{Checks, is_protected};
use crate::client::Client;
use crate::look::{Content, Look, Seen};
use crate::sum::is_sum;
use crate::typed::{SshType, comparable, finished, is_foreign};
use crate::values::text;

const KIND: &str = "ssh_artifact";

/// What decides which bytes are installed.
const ORIGIN: &[&str] = &["source", "sha256", "member", "platform"];

/// The type.
pub(crate) struct Artifact {
    schema: Schema,
}

impl Artifact {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let mut attributes = vec![
            host(),
            Attribute::required(
                "source",
                Type::String,
                "Where it comes from: a path on this machine, a file, http or https URL, or an image in a registry: \
                 \"oci://REGISTRY/REPOSITORY:TAG\". With \"@sha256:DIGEST\" behind it, the image is fetched once and stays the same. The \
                 log-ins of registries are those that \"docker login\" writes into its configuration file, without a credential helper. \
                 A registry on this machine need not speak TLS; any is asked without it by \"oci+http://\".",
            ),
            Attribute::optional(
                "sha256",
                Type::String,
                "SHA-256 sum that the source must have; of the archive, if it is one. Or the path or URL of a file that says it, as releases \
                 have: \"SHA256SUMS\", with a line for the source's name, or one with the sum alone. Not for images, which have digests.",
            ),
            Attribute::optional(
                "member",
                Type::String,
                "File to take out of the source, a tar archive (plain or gzip) or an image: its path, or the end of it. In an image it is the \
                 one of the uppermost layer that has one; a path that begins with \"/\" is the whole path. Links are followed.",
            ),
            Attribute::optional(
                "platform",
                Type::String,
                "Which of an image's platforms is meant, as \"linux/arm64\"; \"linux/amd64\" unless given. Only for images.",
            ),
            Attribute::required("path", Type::String, "Absolute path on the host. Directories above it that are missing are made.")
                .identity(),
            Attribute::optional(
                "previous",
                Type::String,
                "Directory on the host that keeps what was at `path` until now, by its name and in the place of what was kept before: when it \
                 is wanted again, it need not be sent. It goes when nothing from a release is left in the directory that it is in; so a lone file that moves needs \
                 `create_before_destroy`.",
            ),
            check(),
            Attribute::computed("content_sha256", Type::String, "SHA-256 sum of the installed file."),
            Attribute::computed("recorded_sha256", Type::String, "Sum of what was installed, if the file is another one now.").volatile(),
            foreign(),
            instead(),
            care(),
        ];
        attributes.extend(permissions("0755"));
        Self { schema: Schema::new("A file from a release, on a host.", attributes).through("host").leaves_note() }
    }
}

impl ResourceSpec for Artifact {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        gives_way(before)?;
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        let sum_problem = |s: &str| {
            // Of a path or URL there is more to say when it is read.
            let good = is_sum(s) || (!s.is_empty() && !s.bytes().all(|b| b.is_ascii_hexdigit()));
            (!good).then(|| "is no SHA-256 sum, which has 64 hexadecimal digits, and no path or URL of a file with one".to_owned())
        };
        Checks::of(wanted)
            .path("path")
            .check("previous", "Bad path", |p| {
                is_protected(p).then(|| "is part of the system, or no absolute path without detours".to_owned())
            })
            .mode()
            .names(&["owner", "group"])
            .no_zero_bytes("check")
            .check("sha256", "Bad sum", sum_problem)
            .check("platform", "Bad platform", oci::platform_problem)
            .done()?;
        check_image(wanted)?;
        if let (Some(previous), Some((above, _))) = (text(wanted, "previous"), text(wanted, "path").and_then(|p| p.rsplit_once('/')))
            && previous == above
        {
            let detail = format!("{previous} in \"previous\" is where the file itself is, and would be its own predecessor.");
            return Err(Diagnostic::error("Bad path", detail).with_hint("Name another directory: one beside it, \"previous\".").into());
        }
        if let Some(before) = before.filter(|b| is_foreign(b)) {
            return Err(refuse(wanted, text(before, "path").unwrap_or("the file"), None));
        }
        let before = before.map(|b| comparable(&self.schema, b, wanted));
        let mut wanted = wanted.clone();
        let sum = planned_sum(before.as_ref(), &wanted);
        wanted.insert("content_sha256".to_owned(), sum);
        Ok(default_plan(&self.schema, before.as_ref(), Some(&wanted)))
    }
}

/// What an image needs, and what only an image has.
fn check_image(wanted: &Object) -> Result<(), Diagnostic> {
    let Some(source) = text(wanted, "source") else { return Ok(()) };
    let is_given = |name: &str| wanted.get(name).is_some_and(|v| !v.is_null());
    let secret = wanted.get("source").is_some_and(|v| v.secret);
    let name = if secret { "The value".to_owned() } else { format!("\"{}\"", oci::shown(source)) };
    if oci::is_image(source) {
        return oci::check(source, &name, is_given("member"), is_given("sha256")).map(|_| ());
    }
    if is_given("platform") {
        return Err(Diagnostic::error("Platform is only for images", format!("{name} in \"source\" is no image, and has no platforms."))
            .with_hint("Leave out \"platform\"."));
    }
    Ok(())
}

/// What makes the source the same one wherever it comes from: a sum, or an image's digest with what is taken of it.
fn pin(object: &Object) -> Option<(&str, Option<&str>)> {
    if let Some(sum) = text(object, "sha256") {
        return is_sum(sum).then_some((sum, None));
    }
    let digest = oci::digest_of(text(object, "source")?)?;
    match object.get("platform").filter(|p| !p.is_null()) {
        None => Some((digest, Some(oci::PLATFORM))),
        Some(platform) => Some((digest, Some(platform.as_str()?))),
    }
}

/// The sum that the file will have, as far as that can be told without looking at the source.
fn planned_sum(before: Option<&Object>, wanted: &Object) -> Value {
    let unpacked = wanted.get("member").is_some_and(|m| !m.is_null());
    if let (Some(sum), false) = (text(wanted, "sha256").filter(|s| is_sum(s)), unpacked) {
        return sum.to_lowercase().into();
    }
    let is_same = |before: &Object, names: &[&str]| names.iter().all(|n| same(before.get(n), wanted.get(n)));
    // the same pin and member are the same bytes, wherever they come from
    let is_same_origin = |before: &Object| match pin(wanted) {
        Some(pinned) => pin(before) == Some(pinned) && is_same(before, &["member"]),
        None => is_same(before, ORIGIN),
    };
    match before {
        Some(before) if is_same_origin(before) => {
            let recorded = before.get("recorded_sha256").filter(|v| !v.is_null()).or_else(|| before.get("content_sha256"));
            recorded.filter(|v| !v.is_null()).cloned().unwrap_or_else(|| Value::unknown(Type::String))
        }
        _ => Value::unknown(Type::String),
    }
}

impl SshType for Artifact {
    fn looks(&self, identity: &Object, known: Option<&Object>) -> Vec<Look> {
        let Some(path) = text(identity, "path") else { return Vec::new() };
        let own = std::iter::once(Look::File { path: path.to_owned(), content: Content::Never });
        own.chain(known.map(|_| looks_above(path)).into_iter().flatten()).collect()
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let path = text(identity, "path").unwrap_or_default();
        let Some((found, is_it)) = file_at(seen, path, known)? else { return Ok(None) };
        let mut object = permissions_seen(found, known);
        if !is_it {
            object.insert("instead".to_owned(), word(&found.kind).into());
        }
        object.insert("path".to_owned(), path.into());
        let sum = found.sha256.as_deref().unwrap_or_default();
        object.insert("content_sha256".to_owned(), sum.into());
        let recorded = known.and_then(|k| text(k, "content_sha256")).filter(|r| *r != sum);
        object.insert("recorded_sha256".to_owned(), recorded.map_or_else(|| Value::null(Type::String), Value::from));
        object.insert("foreign".to_owned(), (known.is_none() && !seen.owned.has(KIND, path)).into());
        object.insert("care".to_owned(), care_seen(seen, path, known));
        Ok(Some(object))
    }

    fn need(&self, seen: Option<&Object>, known: Option<&Object>, wanted: &Object) -> Option<Supply> {
        let supply = supply(wanted);
        if is_open(wanted) || supply.source.is_empty() || seen.is_some_and(is_foreign) {
            return None;
        }
        // what is installed already needs no source any more
        let before = seen.map(|seen| {
            let mut before = known.cloned().unwrap_or_default();
            before.extend(seen.clone());
            comparable(&self.schema, &before, wanted)
        });
        let installed = before.as_ref().and_then(|b| text(b, "content_sha256"));
        let is_there = installed.is_some() && installed == planned_sum(before.as_ref(), wanted).as_str();
        (!is_there).then_some(supply)
    }

    fn needs(&self, wanted: &Object) -> Vec<Need> {
        if is_open(wanted) {
            return vec![Need::Later];
        }
        let is_secret = ORIGIN.iter().any(|name| wanted.get(name).is_some_and(Value::contains_secret));
        vec![Need::File { supply: supply(wanted), is_secret }]
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let Some(seen) = install::apply(client, change).await? else { return Ok(None) };
            change.after().map_or(Ok(None), |after| finished(self, &seen, after))
        })
    }
}

/// True while it is not known where it comes from.
fn is_open(wanted: &Object) -> bool {
    ORIGIN.iter().any(|name| wanted.get(name).is_some_and(Value::is_unknown))
}

fn supply(after: &Object) -> Supply {
    let part = |name| text(after, name).map(str::to_owned);
    Supply { source: part("source").unwrap_or_default(), sha256: part("sha256"), member: part("member"), platform: part("platform") }
}

/// The plan showed a sum; something else behind the same source must not be installed in its place.
fn changed(after: &Object, planned: &str, found: &str) -> Diagnostic {
    let path = text(after, "path").unwrap_or_default();
    let name = if text(after, "source").is_some_and(oci::is_image) { "the image's digest in \"source\"" } else { "\"sha256\"" };
    Diagnostic::error(
        "Source is not what it was",
        format!("{path} was installed with the SHA-256 sum {planned}; its source now gives {found}. Nothing was installed."),
    )
    .with_hint(format!("Give {name} to say which one is meant, or replace the resource (\"-replace\") to take the new one."))
}

#[cfg(test)]
mod tests;
