//! Backups in buckets and on hosts: whether the newest that a cluster has noted is still there, and whole. Through a view that can't write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use karmaform_engine::Pool;
use karmaform_model::{Address, Catalog, ChildStep, Diagnostic, Object, Plan, Snapshot, Value};
use serde_json::Value as Json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Looked;
use crate::backup::{Bucket, Entry, RECORD, Shelf, ShelfView, at, entries};
use crate::ui::json::state::attributes;

/// What is of a time so far ahead is of a clock that is a little fast: seconds.
const AHEAD: i64 = 300;
/// The longest look into one place.
const LIMIT: Duration = Duration::from_secs(10);

/// What a cluster has noted of its newest backup.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    /// The record.
    address: Address,
    /// What the backups are called.
    name: String,
    /// Where it was put: `s3://BUCKET/PREFIX/FILE`, `HOST:FILE`.
    place: String,
    lies: Lies,
}

/// What a place is reached by.
#[derive(Clone, Debug)]
enum Lies {
    Bucket(Bucket),
    /// The connection to the host, and the directory there.
    OnHost(Value, String),
}

/// What was seen noted of backups that can be looked for. In a volume nobody can look without a pod.
pub(crate) fn noted(looked: &Looked, state: &Snapshot, catalog: &Catalog) -> Vec<Noted> {
    let text = |object: &Object, name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let of = |(address, facts): (&Address, &Object)| {
        let resource = state.resources.get(address).filter(|r| r.resource_type == RECORD)?;
        let attributes = attributes(address, resource, catalog);
        let place = text(facts, "place")?;
        let lies = match attributes.get("store").and_then(Bucket::of) {
            // What was noted before it came to be this bucket says nothing of it.
            Some(bucket) => is_in(&place, &bucket).then_some(Lies::Bucket(bucket))?,
            None => on_host(&looked.plan, &address.whole(), &place)?,
        };
        Some(Noted { address: address.clone(), name: text(&attributes, "name")?, place, lies })
    };
    looked.seen.iter().filter_map(of).collect()
}

/// The host of these backups that a place is on, if the configuration still has it. Its timer knows the way there; of the composite only the name is kept.
fn on_host(plan: &Plan, backup: &Address, place: &str) -> Option<Lies> {
    let (host, file) = place.split_once(":/")?;
    let (directory, _) = file.rsplit_once('/')?;
    let timer = backup.with_child(&[ChildStep::keyed("host", host), ChildStep::new("timer")]);
    let planned = plan.resources.iter().find(|r| r.address == timer && r.deposed.is_none())?;
    let connection = planned.change.after()?.get("host")?;
    Some(Lies::OnHost(connection.clone(), format!("/{directory}")))
}

fn is_in(place: &str, bucket: &Bucket) -> bool {
    place.rsplit_once('/').is_some_and(|(folder, _)| folder == bucket.place())
}

impl Lies {
    fn open(&self, (environment, home): (&BTreeMap<String, String>, Option<&Path>), pool: &Arc<Pool>) -> Result<ShelfView, Diagnostic> {
        Ok(match self {
            Self::Bucket(bucket) => ShelfView::of(Shelf::Bucket(Box::new(bucket.open(environment, home)?))),
            Self::OnHost(host, directory) => ShelfView::on_host(Arc::clone(pool), host.clone(), directory.clone()),
        })
    }

    /// It is no error: who looks for drift need not be somebody who may read backups.
    fn unseen(&self, place: &str, why: &Diagnostic) -> Diagnostic {
        let detail = format!("Whether {place} is still there is not known. {}: {}", why.summary, why.detail);
        let hint = match self {
            Self::Bucket(_) => "Let whoever looks for drift list and read the bucket: s3:ListBucket and s3:GetObject.",
            Self::OnHost(..) => "Let whoever looks for drift read the directory of the backups on that host: it is root's.",
        };
        Diagnostic::warning("Backups could not be looked at", detail).with_hint(hint)
    }
}

/// Looks into all places at once. What ails a backup comes to what was seen of its record; why one could not be looked for, to what was met.
/// `now` in seconds since 1970, when the cluster was asked already.
pub(crate) async fn look_for(all: Vec<Noted>, looked: &mut Looked, surroundings: (&BTreeMap<String, String>, Option<&Path>), now: i64) {
    let (mut looks, mut seen) = (JoinSet::new(), BTreeMap::new());
    for noted in all {
        match noted.lies.open(surroundings, &looked.pool) {
            Ok(view) => {
                looks.spawn(async move {
                    let late = |_| Err(Diagnostic::error("No answer", format!("It does not answer within {} s.", LIMIT.as_secs())));
                    let told = timeout(LIMIT, ails(&noted, &view, at(now + AHEAD))).await.unwrap_or_else(late);
                    (noted.address, told.map_err(|why| noted.lies.unseen(&noted.place, &why)))
                });
            }
            Err(why) => drop(seen.insert(noted.address, Err(noted.lies.unseen(&noted.place, &why)))),
        }
    }
    while let Some(ended) = looks.join_next().await {
        match ended {
            Ok((address, told)) => drop(seen.insert(address, told)),
            Err(_) => looked.met.push(Diagnostic::warning("A look for a backup ended early", "This is a bug.")),
        }
    }
    for (address, told) in seen {
        match (told, looked.seen.get_mut(&address)) {
            (Ok(Some(trouble)), Some(facts)) => drop(facts.insert("care".to_owned(), Value::strings([trouble.as_str()]))),
            (Ok(_), _) => {}
            (Err(why), _) => looked.met.push(why.at(&address)),
        }
    }
}

/// What ails the newest backup, in a few words. Looked at twice: somebody may have been at work there between two looks.
async fn ails(noted: &Noted, view: &ShelfView, now: DateTime) -> Result<Option<String>, Diagnostic> {
    match trouble(noted, view, now).await? {
        None => Ok(None),
        Some(_) => trouble(noted, view, now).await,
    }
}

async fn trouble(noted: &Noted, view: &ShelfView, now: DateTime) -> Result<Option<String>, Diagnostic> {
    let place = &noted.place;
    Ok(match newest(noted, entries(&noted.name, &view.files().await?), now) {
        Newest::Other => None,
        Newest::Gone => Some(format!("its newest backup is gone: {place}")),
        Newest::NoManifest => Some(format!("its newest backup has no manifest any more: {place}")),
        Newest::There { manifest, size } => {
            let put = view.read(&manifest).await?.and_then(|text| length(&text));
            match put {
                None => Some(format!("the manifest of its newest backup can't be read: {place}")),
                Some(put) if put != size => Some(format!("its newest backup has {size} bytes, and {put} were put there: {place}")),
                Some(_) => None,
            }
        }
    })
}

/// What is there of the newest backup.
#[derive(Debug, PartialEq, Eq)]
enum Newest {
    /// A newer one was made since the cluster was asked, and this one may have gone for it.
    Other,
    Gone,
    NoManifest,
    /// The name of its manifest, and the length of its data in bytes.
    There {
        manifest: String,
        size: u64,
    },
}

fn newest(noted: &Noted, found: Vec<Entry>, now: DateTime) -> Newest {
    let file = noted.place.rsplit('/').next().unwrap_or_default();
    let is_it = |e: &Entry| file.starts_with(&e.stem);
    // Names end with the time. What is of a time that is still to come is of a wrong clock.
    if found.iter().any(|e| e.is_whole() && e.time <= now && !is_it(e) && e.stem.as_str() > file) {
        return Newest::Other;
    }
    match found.into_iter().find(is_it) {
        Some(Entry { data: Some(data), manifest: Some(manifest), size, .. }) if data == file => Newest::There { manifest, size },
        Some(Entry { data: Some(data), manifest: None, .. }) if data == file => Newest::NoManifest,
        _ => Newest::Gone,
    }
}

/// How many bytes a manifest says that were put there: encrypted ones, if they were.
fn length(manifest: &str) -> Option<u64> {
    let json: Json = serde_json::from_str(manifest).ok()?;
    match &json["encrypted"] {
        Json::Null => json["size"].as_u64(),
        sealed => sealed["size"].as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_there_or_not() {
        let bucket = Bucket::of(&Value::object([("bucket", "b".into()), ("prefix", "p".into())])).unwrap();
        let place = "s3://b/p/m-20260102T030405Z.db.age".to_owned();
        let noted = Noted { address: "etcd_backup.main".parse().unwrap(), name: "m".to_owned(), place, lies: Lies::Bucket(bucket) };
        let check = |files: &[(&str, u64)], expected: Newest| {
            let files = files.iter().map(|(f, s)| ((*f).to_owned(), *s)).collect();
            assert_eq!(newest(&noted, entries("m", &files), at(1_767_400_000)), expected, "{files:?}");
        };
        let (data, manifest) = (("m-20260102T030405Z.db.age", 9), ("m-20260102T030405Z.db.json", 1));
        let old = [("m-20260101T030405Z.db.age", 7), ("m-20260101T030405Z.db.json", 1)];
        check(&[data, manifest, old[0], old[1]], Newest::There { manifest: manifest.0.to_owned(), size: 9 });
        check(&old, Newest::Gone);
        check(&[], Newest::Gone);
        check(&[manifest], Newest::Gone);
        check(&[data], Newest::NoManifest);
        check(&[("m-20260102T030405Z.db", 9), manifest], Newest::Gone);
        // A newer one, whole and half; and one that is still to come.
        let newer = [("m-20260102T040405Z.db.age", 7), ("m-20260102T040405Z.db.json", 1)];
        check(&newer, Newest::Other);
        check(&newer[..1], Newest::Gone);
        check(&[("m-20310101T000000Z.db.age", 7), ("m-20310101T000000Z.db.json", 1)], Newest::Gone);
    }

    #[test]
    fn what_was_noted_elsewhere_says_nothing() {
        let bucket = Bucket::of(&Value::object([("bucket", "b".into()), ("prefix", "p/q".into())])).unwrap();
        assert!(is_in("s3://b/p/q/m-20260102T030405Z.db", &bucket));
        for other in
            ["s3://b/p/m-20260102T030405Z.db", "s3://c/p/q/m-20260102T030405Z.db", "a:/var/backups/etcd/m-20260102T030405Z.db", "h:?", "?"]
        {
            assert!(!is_in(other, &bucket), "{other}");
        }
    }

    #[test]
    fn a_manifest_says_how_much_was_put_there() {
        assert_eq!(length(r#"{ "size": 7 }"#), Some(7));
        assert_eq!(length(r#"{ "size": 7, "encrypted": { "by": "age", "size": 9 } }"#), Some(9));
        assert_eq!(length("half of it"), None);
        assert_eq!(length("{}"), None);
    }
}
