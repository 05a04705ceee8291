//! `etcd_backup_choice`: which backup in a bucket a cluster is restored from. It is made when it is first looked for, so that a plan shows it, and is from then on what
//! the state says: a newer backup, or one that is removed, makes no other choice of it.
//!
//! Knows no bucket and no key: shelves are lent.

use std::sync::{Arc, LazyLock};

use karmaform_model::{
    Ask, Attribute, BoxFuture, Change, Diagnostic, Object, ResourceSpec, ResourceType, Schema, Shelved, Shelves, Type, Value,
};

use crate::client::Client;

/// Its name.
pub(crate) const KIND: &str = "etcd_backup_choice";

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Which backup in a bucket an `etcd_cluster` is restored from, as the manifest beside it tells. It is chosen once.",
        vec![
            Attribute::required("from", Type::String, "The backup, or the name that backups begin with: `s3://BUCKET/PREFIX/NAME`.")
                .identity(),
            Attribute::optional("before", Type::String, "The newest that was made at this time or before, RFC 3339.").identity(),
            Attribute::computed("place", Type::String, "Which one it is: `s3://BUCKET/PREFIX/NAME-TIME.db`."),
            Attribute::computed("created", Type::String, "When it was made, RFC 3339."),
            Attribute::computed("size", Type::Number, "The length of the snapshot, in bytes."),
            Attribute::computed("sha256", Type::String, "The SHA-256 sum of the snapshot, in hexadecimal digits."),
            Attribute::computed("revision", Type::Number, "The newest revision that is surely in it."),
            Attribute::computed("etcd_version", Type::String, "The version of etcd that it was saved from."),
            Attribute::computed("encrypted", Type::Bool, "It lies there encrypted."),
        ],
    )
    .for_several()
});

/// The resource type.
#[derive(Default)]
pub(crate) struct EtcdBackupChoice {
    shelves: Option<Arc<dyn Shelves>>,
}

impl EtcdBackupChoice {
    /// Off these shelves.
    pub(crate) fn new(shelves: Arc<dyn Shelves>) -> Self {
        Self { shelves: Some(shelves) }
    }

    /// What was chosen stays; what was not is chosen now.
    pub(crate) async fn look(&self, ask: &Ask) -> Result<Option<Object>, Diagnostic> {
        if ask.known.as_ref().is_some_and(is_made) {
            return Ok(Some(ask.identity.clone()));
        }
        self.choose(&ask.identity).await.map(Some)
    }

    async fn choose(&self, wanted: &Object) -> Result<Object, Diagnostic> {
        let text = |name: &str| wanted.get(name).and_then(Value::as_str);
        let Some(shelves) = &self.shelves else {
            return Err(Diagnostic::error("No way to the shelves of backups", "Nobody here knows the stores that backups lie in."));
        };
        let Shelved { place, created, size, sha256, revision, version, is_encrypted } =
            shelves.choose(text("from").unwrap_or_default(), text("before")).await?;
        let before = text("before").map_or_else(|| Value::null(Type::String), Value::from);
        let made = [
            ("from", text("from").unwrap_or_default().into()),
            ("before", before),
            ("place", place.as_str().into()),
            ("created", created.as_str().into()),
            ("size", i64::try_from(size).unwrap_or(i64::MAX).into()),
            ("sha256", sha256.as_str().into()),
            ("revision", revision.into()),
            ("etcd_version", version.as_str().into()),
            ("encrypted", is_encrypted.into()),
        ];
        Ok(made.map(|(name, value): (&str, Value)| (name.to_owned(), value)).into())
    }
}

/// True of what says which backup it is.
fn is_made(object: &Object) -> bool {
    object.get("sha256").is_some_and(|sum| sum.as_str().is_some())
}

impl ResourceSpec for EtcdBackupChoice {
    fn name(&self) -> &'static str {
        KIND
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }
}

impl ResourceType<Client> for EtcdBackupChoice {
    fn observe<'a>(&'a self, _: &'a Client, ask: &'a Ask) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(self.look(ask))
    }

    fn apply<'a>(&'a self, _: &'a Client, change: &'a Change) -> BoxFuture<'a, Result<Option<Object>, Diagnostic>> {
        Box::pin(async move {
            match change.after() {
                Some(after) if is_made(after) => Ok(Some(after.clone())),
                Some(after) => self.choose(after).await.map(Some),
                // The backup stays where it lies.
                None => Ok(None),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use karmaform_model::Supplied;

    use super::*;

    /// On which there is a newer one each time.
    #[derive(Default)]
    struct Growing(AtomicI64);

    impl Shelves for Growing {
        fn choose<'a>(&'a self, from: &'a str, before: Option<&'a str>) -> BoxFuture<'a, Result<Shelved, Diagnostic>> {
            let revision = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            let place = format!("{from}-{}.db", before.unwrap_or("now"));
            Box::pin(async move { Ok(Shelved { place, revision, sha256: "ab".repeat(32), ..Shelved::default() }) })
        }

        fn take(&self, place: &str) -> Result<Supplied, Diagnostic> {
            Err(Diagnostic::error("Not there", place))
        }
    }

    fn ask(known: Option<Object>) -> Ask {
        let identity: Object =
            [("from", Value::from("s3://b/p/main")), ("before", "t".into())].map(|(name, value)| (name.to_owned(), value)).into();
        Ask { resource_type: KIND.to_owned(), identity, known, wanted: None, begun: false }
    }

    #[tokio::test]
    async fn what_was_chosen_stays() {
        let choice = EtcdBackupChoice::new(Arc::new(Growing::default()));
        let made = choice.look(&ask(None)).await.unwrap().unwrap();
        assert_eq!(made.get("place").and_then(Value::as_str), Some("s3://b/p/main-t.db"));
        assert_eq!(made.get("revision").and_then(Value::as_i64), Some(1));
        assert_eq!(made.keys().map(String::as_str).filter(|name| SCHEMA.attribute(name).is_none()).count(), 0);
        let later = choice.look(&ask(Some(made))).await.unwrap().unwrap();
        assert!(!later.contains_key("revision"), "the state is believed");
        let again = choice.look(&ask(None)).await.unwrap().unwrap();
        assert_eq!(again.get("revision").and_then(Value::as_i64), Some(2));
        let alone = EtcdBackupChoice::default().look(&ask(None)).await.unwrap_err();
        assert_eq!(alone.summary, "No way to the shelves of backups");
    }
}
