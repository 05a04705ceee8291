//! `etcd_prefix` against a real etcd over TLS on loopback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etcd_client::GetOptions;
use karmaform_model::{AnyClient, Ask, Change, Diagnostic, Driver, Object, Severity, Value};

use crate::authority::Authority;
use crate::single::{Etcd, NoWays};

/// Below the ephemeral ports, and beside those of the other tests.
const PORT: u16 = 23_180;
/// Nothing listens there.
const CLOSED: u16 = 23_190;

pub(crate) fn wanted(prefix: &str, uid: &str) -> Object {
    let text = [("prefix", prefix), ("owner", "ns/plane"), ("owner_uid", uid), ("on_destroy", "keep")];
    let mut object: Object = text.into_iter().map(|(n, v)| (n.to_owned(), Value::from(v))).collect();
    object.insert("adopt".to_owned(), false.into());
    object
}

/// Somebody with a prefix.
pub(crate) struct Owner {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) client: AnyClient,
}

impl Owner {
    pub(crate) async fn through(connection: &Object) -> Self {
        let driver = karmaform_etcd::driver();
        let client = driver.connect(&Object::new(), connection, Arc::new(NoWays)).await.unwrap();
        Self { driver, client }
    }

    pub(crate) async fn observe(&self, prefix: &str, known: Option<&Object>) -> Result<Option<Object>, Diagnostic> {
        let ask = Ask {
            resource_type: "etcd_prefix".to_owned(),
            identity: Object::from([("prefix".to_owned(), prefix.into())]),
            known: known.cloned(),
            wanted: known.is_none().then(Object::new),
            begun: false,
        };
        self.driver.observe(&self.client, &[ask]).await.remove(0)
    }

    pub(crate) async fn apply(&self, change: Change) -> Result<Option<Object>, Diagnostic> {
        self.driver.apply(&self.client, "etcd_prefix", &change).await
    }

    pub(crate) async fn create(&self, after: Object) -> Result<Object, Diagnostic> {
        self.apply(Change::Create { after }).await.map(Option::unwrap)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prefix_is_taken_kept_from_others_and_left() {
    let Some(etcd) = Etcd::start(PORT) else { return };
    let mut direct = etcd.direct().await;
    // One endpoint of two is dead: that costs nothing worth speaking of.
    let owner = Owner::through(&etcd.connection(&[CLOSED, PORT])).await;

    assert_eq!(owner.observe("/registry", None).await.unwrap(), None);
    let made = owner.create(wanted("/registry", "one")).await.unwrap();
    assert_eq!(made["checked"].as_bool(), Some(true));
    assert!(made["cluster_id"].as_str().is_some_and(|id| id.len() > 8), "{made:?}");
    // Twice is once.
    owner.create(wanted("/registry", "one")).await.unwrap();
    direct.put("/registry/pods/a", "1", None).await.unwrap();
    direct.put("/registry2/x", "1", None).await.unwrap();

    // The owner sees its own, with its state and without.
    let seen = owner.observe("/registry", Some(&made)).await.unwrap().unwrap();
    assert_eq!((seen["foreign"].as_bool(), seen["owner_uid"].as_str()), (Some(false), Some("one")));
    let seen = owner.observe("/registry", None).await.unwrap().unwrap();
    assert_eq!(
        (seen["owner_uid"].as_str(), seen["keys"].as_i64(), seen["first_key"].as_str()),
        (Some("one"), Some(1), Some("/registry/pods/a"))
    );

    // Others: the same prefix, one below, one above, and one beside.
    let refused = owner.create(wanted("/registry", "two")).await.unwrap_err();
    assert!(refused.detail.contains("One key is below it: /registry/pods/a.") && refused.detail.contains("ns/plane"), "{refused:?}");
    let refused = owner.create(wanted("/registry/two", "two")).await.unwrap_err();
    assert!(refused.detail.contains("overlaps /registry, which belongs to \"ns/plane\""), "{refused:?}");
    let refused = owner.create(wanted("/registry2", "two")).await.unwrap_err();
    assert!(refused.detail.contains("nothing says whose it is"), "{refused:?}");
    owner.create(wanted("/karmada/two", "two")).await.unwrap();
    let refused = owner.create(wanted("/karmada", "three")).await.unwrap_err();
    assert!(refused.detail.contains("overlaps /karmada/two"), "{refused:?}");
    // An API server without a mark is known by what each has.
    direct.put("/kube/namespaces/default", "1", None).await.unwrap();
    let seen = owner.observe("/kube/a", None).await.unwrap().unwrap();
    assert!(seen["overlaps"].as_items().is_some_and(|o| o.len() == 1), "{seen:?}");

    // Adopted on purpose.
    let mut adopting = wanted("/registry2", "two");
    adopting.insert("adopt".to_owned(), true.into());
    let before = owner.observe("/registry2", None).await.unwrap().unwrap();
    let adopted = owner.apply(Change::Update { before, after: adopting.clone() }).await.unwrap().unwrap();
    assert_eq!(owner.observe("/registry2", Some(&adopted)).await.unwrap().unwrap()["foreign"].as_bool(), Some(false));

    // Left with the data where it is; and with it gone.
    owner.apply(Change::Delete { before: made.clone() }).await.unwrap();
    owner.apply(Change::Delete { before: made }).await.unwrap();
    assert_eq!(direct.get("/registry/", Some(GetOptions::new().with_prefix())).await.unwrap().count(), 1);
    let mut adopted = adopted;
    adopted.insert("on_destroy".to_owned(), "delete".into());
    // Somebody else's mark by now: nothing of it is touched.
    let mut strange = adopted.clone();
    strange.insert("owner_uid".to_owned(), "nine".into());
    owner.apply(Change::Delete { before: strange }).await.unwrap();
    assert_eq!(direct.get("/registry2/", Some(GetOptions::new().with_prefix())).await.unwrap().count(), 1);
    owner.apply(Change::Delete { before: adopted }).await.unwrap();
    assert_eq!(direct.get("/registry2/", Some(GetOptions::new().with_prefix())).await.unwrap().count(), 0);
    let marks = direct.get("/karmaform.io/", Some(GetOptions::new().with_prefix().with_keys_only())).await.unwrap();
    assert_eq!(marks.kvs().iter().map(|k| k.key_str().unwrap()).collect::<Vec<_>>(), ["/karmaform.io/prefixes/karmada/two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_does_not_answer_stops_nothing() {
    let ca = Authority::new();
    let (certificate, key) = ca.client();
    let parts = [("ca_certificate", ca.certificate().to_owned()), ("certificate", certificate), ("private_key", key)];
    let connection = |endpoints: &[&str]| {
        let mut connection: Object = parts.iter().map(|(n, v)| ((*n).to_owned(), Value::from(v.as_str()))).collect();
        connection.insert("endpoints".to_owned(), Value::strings(endpoints));
        connection.insert("via".to_owned(), Value::object([("provider", "x".into())]));
        connection
    };
    // The first takes connections and never says a word, nothing listens at the second.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = format!("https://{}", listener.local_addr().unwrap());
    let closed = format!("https://127.0.0.1:{CLOSED}");
    let owner = Owner::through(&connection(&[&mute, &closed])).await;
    let started = Instant::now();
    let warning = owner.observe("/a", None).await.unwrap_err();
    assert!(warning.severity == Severity::Warning && warning.detail.contains(&mute), "{warning:?}");
    let made = owner.create(wanted("/a", "u")).await.unwrap();
    assert_eq!(made["checked"].as_bool(), Some(false));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    // Nobody asks again, and there is nothing to take away.
    listener.set_nonblocking(true).unwrap();
    while listener.accept().is_ok() {}
    assert_eq!(owner.observe("/a", Some(&made)).await.unwrap().as_ref(), Some(&made));
    owner.apply(Change::Delete { before: made.clone() }).await.unwrap();
    assert!(listener.accept().is_err());

    // Inside a cluster that has no such pod: what the state knows, and no word.
    let inside = Owner::through(&connection(&["https://etcd-0.etcd.ns.svc:2379"])).await;
    let mut known = made;
    known.insert("checked".to_owned(), true.into());
    assert_eq!(inside.observe("/a", None).await.unwrap(), None);
    assert_eq!(inside.observe("/a", Some(&known)).await.unwrap().as_ref(), Some(&known));
    let error = inside.create(wanted("/a", "u")).await.unwrap_err();
    assert!(error.retryable && error.detail.contains("no way to its host"), "{error:?}");
    inside.apply(Change::Delete { before: known.clone() }).await.unwrap();
    known.insert("on_destroy".to_owned(), "delete".into());
    assert!(inside.apply(Change::Delete { before: known }).await.unwrap_err().retryable);
}
