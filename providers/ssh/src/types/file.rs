//! `ssh_file`: a file with a content given in the configuration.

use karmaform_model::{
    Attribute, BoxFuture, Change, Diagnostic, Diagnostics, Object, PlanContext, ResourceSpec, Schema, Type, Value, default_plan,
};

use super::placed::{
    care, care_seen, check, check_of, file_at, foreign, gives_way, host, instead, looks_above, ownership, permissions, permissions_seen,
    refuse, word,
};
use crate::checks::Checks;
use crate::client::{Act, Client};
use crate::host::Payload;
use crate::look::{Content, Look, PathSeen, Seen};
use crate::script::quote;
use crate::sum::{plan_sum, sha256};
use crate::typed::{SshType, comparable, finished, is_foreign};
use crate::values::{boolean, secrets, text};

const KIND: &str = "ssh_file";

/// What helps where a file is there that is not ours.
const OVERWRITE: &str = "Or set \"overwrite = true\" to replace it.";

/// The type.
pub(crate) struct File {
    schema: Schema,
}

impl File {
    /// With its schema.
    pub(crate) fn new() -> Self {
        let mut attributes = vec![
            host(),
            Attribute::required("path", Type::String, "Absolute path on the host. Directories above it that are missing are made.")
                .identity(),
            Attribute::required("content", Type::String, "What is in it."),
            Attribute::optional("overwrite", Type::Bool, "Whether to replace a file that exists already and that karmaform did not make.")
                .or(false),
            check(),
            Attribute::computed("sha256", Type::String, "SHA-256 sum of the content."),
            foreign(),
            instead(),
            care(),
        ];
        attributes.extend(permissions("0644"));
        Self { schema: Schema::new("A file on a host.", attributes).through("host").leaves_note() }
    }
}

impl ResourceSpec for File {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn plan(&self, _: &PlanContext, before: Option<&Object>, wanted: Option<&Object>) -> Result<Change, Diagnostics> {
        gives_way(before)?;
        let Some(wanted) = wanted else { return Ok(default_plan(&self.schema, before, None)) };
        Checks::of(wanted).path("path").mode().names(&["owner", "group"]).no_zero_bytes("check").done()?;
        if let Some(before) = before.filter(|b| is_foreign(b))
            && boolean(wanted, "overwrite") != Some(true)
        {
            return Err(refuse(wanted, text(before, "path").unwrap_or("the file"), Some(OVERWRITE)));
        }
        let before = before.map(|b| comparable(&self.schema, b, wanted));
        Ok(default_plan(&self.schema, before.as_ref(), Some(&plan_sum(wanted, "content"))))
    }
}

/// Sum, and the content if it is not the known one.
pub(super) fn content_seen(found: &PathSeen, known: Option<&Object>, object: &mut Object) {
    let secret = known.and_then(|k| k.get("content")).is_some_and(|v| v.secret);
    if let Some(sum) = &found.sha256 {
        object.insert("sha256".to_owned(), Value::from(sum.as_str()).secret_if(secret));
    }
    if let Some(content) = &found.content {
        object.insert("content".to_owned(), Value::from(content.as_str()).secret_if(secret));
    }
}

impl SshType for File {
    fn looks(&self, identity: &Object, known: Option<&Object>) -> Vec<Look> {
        let known_sum = known.and_then(|k| text(k, "sha256")).map(str::to_owned);
        let Some(path) = text(identity, "path") else { return Vec::new() };
        let mut looks = vec![Look::File { path: path.to_owned(), content: Content::Unless(known_sum) }];
        if known.is_some() {
            looks.extend(looks_above(path));
        }
        looks
    }

    fn answer(&self, seen: &Seen, identity: &Object, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let path = text(identity, "path").unwrap_or_default();
        let Some((found, is_it)) = file_at(seen, path, known)? else { return Ok(None) };
        let mut object = permissions_seen(found, known);
        object.insert("path".to_owned(), path.into());
        content_seen(found, known, &mut object);
        if !is_it {
            // Our file was there; what is there now (a link, a pipe) has none of its content.
            object.insert("instead".to_owned(), word(&found.kind).into());
            for name in ["content", "sha256"] {
                let is_secret = known.and_then(|k| k.get(name)).is_some_and(|v| v.secret);
                object.insert(name.to_owned(), Value::null(Type::String).secret_if(is_secret));
            }
        }
        object.insert("foreign".to_owned(), (known.is_none() && !seen.owned.has(KIND, path)).into());
        object.insert("care".to_owned(), care_seen(seen, path, known));
        Ok(Some(object))
    }

    fn apply<'a>(&'a self, client: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            let path = |object| text(object, "path").unwrap_or_default();
            let Some(after) = change.after() else {
                let Some(before) = change.before() else { return Ok(None) };
                let word = quote(path(before));
                let body = format!("refuse_links {word}\nrm -f {word} || fail write {word}\nrelease {KIND} {word} {word}");
                client.act(Act::new(format!("Deleting {}", path(before)), body)).await?;
                return Ok(None);
            };
            let content = text(after, "content").unwrap_or_default();
            let word = quote(path(after));
            let mut body = String::new();
            if matches!(change, Change::Create { .. }) && boolean(after, "overwrite") != Some(true) {
                body.push_str(&format!("refuse_foreign {KIND} {word} {word}\n"));
            }
            let mode = quote(text(after, "mode").unwrap_or("0644"));
            body.push_str(&format!(
                "refuse_links {word}\nclaim {KIND} {word} {word}\ninstall_file {word} {} {} {mode} '' {}",
                sha256(content.as_bytes()),
                ownership(after),
                quote(&check_of(after))
            ));
            let act = Act::new(format!("Writing {}", path(after)), body)
                .with_payload(Payload::Bytes(content.as_bytes().to_vec()))
                .with_secrets(secrets(after, &["check"]))
                .then_look(vec![Look::File { path: path(after).to_owned(), content: Content::Never }]);
            let attempt = client.attempt(act).await?;
            let is_foreign = attempt.output.reason().is_some_and(|(word, _)| word == "exists");
            let seen = client.conclude(&attempt).map_err(|e| if is_foreign { e.with_hint(OVERWRITE) } else { e })?;
            finished(self, &seen, after)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::object;
    use karmaform_model::Action;

    fn wanted(content: &str) -> Object {
        object([
            ("path", "/a".into()),
            ("content", content.into()),
            ("mode", "644".into()),
            ("owner", "root".into()),
            ("group", "root".into()),
            ("overwrite", false.into()),
        ])
    }

    fn plan(before: Option<&Object>, wanted: &Object) -> Result<Change, String> {
        File::new().plan(&PlanContext { now: 0 }, before, Some(wanted)).map_err(|d| d.iter().map(|d| d.summary.clone()).collect())
    }

    #[test]
    fn the_sum_is_known_when_planning() {
        let change = plan(None, &wanted("hi")).unwrap();
        assert_eq!(change.after().unwrap()["sha256"], sha256(b"hi").as_str().into());
    }

    #[test]
    fn the_sum_of_a_secret_is_secret() {
        let mut secret = wanted("pw");
        secret.insert("content".into(), Value::from("pw").secret());
        assert!(plan(None, &secret).unwrap().after().unwrap()["sha256"].secret);
    }

    #[test]
    fn modes_are_compared_by_their_bits_and_content_by_its_sum() {
        let mut before = wanted("hi");
        before.insert("mode".into(), "0644".into());
        before.insert("sha256".into(), sha256(b"hi").as_str().into());
        assert_eq!(plan(Some(&before), &wanted("hi")).unwrap().action(), Action::NoOp);
        // too large to be shown, but different
        before.insert("sha256".into(), sha256(b"other").as_str().into());
        assert_eq!(plan(Some(&before), &wanted("hi")).unwrap().action(), Action::Update);
    }

    #[test]
    fn what_is_foreign_is_refused_unless_it_may_be_overwritten() {
        let mut before = wanted("old");
        before.insert("foreign".into(), true.into());
        assert_eq!(plan(Some(&before), &wanted("hi")).unwrap_err(), "Exists already");
        let mut force = wanted("hi");
        force.insert("overwrite".into(), true.into());
        assert_eq!(plan(Some(&before), &force).unwrap().action(), Action::Update);
    }

    #[test]
    fn what_is_adopted_is_compared_by_what_can_be_seen_and_stays_secret() {
        let mut before = object([("path", "/a".into()), ("content", "old".into()), ("mode", "0644".into())]);
        before.insert("foreign".into(), false.into());
        let mut secret = wanted("hi");
        secret.insert("content".into(), Value::from("hi").secret());
        secret.insert("host".into(), Value::object([("id", "h:22".into())]));
        let Change::Update { before, .. } = plan(Some(&before), &secret).unwrap() else { panic!() };
        assert!(before["content"].secret);
    }
}
