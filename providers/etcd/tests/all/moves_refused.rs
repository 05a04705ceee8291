//! A prefix, and a move of what is below it to another etcd, where somebody else is at work or an etcd says no: nothing is taken or copied then.

use karmaform_model::{Ask, Change, Diagnostic, Object, Value};

use crate::fake::{EXHAUSTED, Fakes, INVALID, Key, asking, closed, connection, tells};
use crate::prefix::wanted;

/// The mark of `/registry`.
fn mark(uid: &str) -> Key {
    let value = format!("{{\"owner\":\"ns/plane\",\"uid\":\"{uid}\",\"copy\":true,\"compared_at\":0}}");
    Key { key: "/karmaform.io/prefixes/registry".into(), value, lease: 0 }
}

/// The one that was used, and the one that is to be, where the prefix is taken.
async fn two() -> [Fakes; 2] {
    let (from, to) = (Fakes::start(1).await, Fakes::start(1).await);
    to.all(|says| says.keys = vec![mark("one")]);
    [from, to]
}

async fn copied(from: &Object, to: &Object) -> Diagnostic {
    let arguments = [("from", from.clone().into()), ("prefix", "/registry".into()), ("owner_uid", "one".into())];
    asking(to).await.operate("etcd_copy", &arguments).await.unwrap_err()
}

#[tokio::test]
async fn a_move_begins_only_with_two_that_answer() {
    let [from, to] = two().await;
    let away = connection([closed()]);
    let told = copied(&away, &to.connection()).await;
    tells(&told, "A move to another etcd can't begin", "The etcd that was used does not answer (a: ", "adopt_etcd_data = true");
    let told = copied(&from.connection(), &away).await;
    tells(&told, "A move to another etcd can't begin", "The etcd that is to be used does not answer (a: ", "then apply again");
    assert!(told.hints.iter().all(|hint| !hint.contains("adopt_etcd_data")), "what is not there can't be adopted: {told:?}");
}

#[tokio::test]
async fn what_is_in_the_way_of_a_copy_is_told() {
    let [from, to] = two().await;
    let told = async || copied(&from.connection(), &to.connection()).await;
    to.all(|says| says.changed = true);
    tells(&told().await, "A move to another etcd met another one", "changed while it was copied", "whose the prefix is");
    to.all(|says| says.changed = false);

    to.all(|says| says.refuses = vec![("Txn", EXHAUSTED, "etcdserver: mvcc: database space exceeded")]);
    let full = told().await;
    tells(&full, "What is in an etcd can't be copied", "It was refused: mvcc: database space exceeded.", "quota-backend-bytes");
    tells(&full, "What is in an etcd can't be copied", "It was refused", "the old one is as it was");
    to.all(|says| says.refuses = vec![("Txn", INVALID, "etcdserver: too many operations in txn request")]);
    let told_of_another = told().await;
    tells(&told_of_another, "What is in an etcd can't be copied", "too many operations", "Apply again");
    assert_eq!(told_of_another.hints.len(), 1, "room does not help: {told_of_another:?}");
    to.all(|says| says.refuses = Vec::new());

    from.all(|says| says.revision = 30_000_000);
    tells(
        &told().await,
        "The new etcd is too far behind",
        "Its revision is 7, that of the one that was used 30000000",
        "etcd snapshot OLD",
    );
    from.all(|says| says.revision = 7);

    // On either side, and where nobody has taken it.
    let strange = "A prefix in etcd that is somebody else's";
    from.all(|says| says.keys = vec![mark("other")]);
    tells(&told().await, strange, "/registry in the etcd that was used is not marked", "whose it is");
    for keys in [vec![mark("other")], Vec::new()] {
        to.all(|says| says.keys.clone_from(&keys));
        tells(&told().await, strange, "/registry in the etcd that is to be used is not marked", "whose it is");
    }
}

#[tokio::test]
async fn of_two_that_take_a_prefix_one_is_told_that_he_is_late() {
    let fakes = Fakes::start(1).await;
    // Free when it is looked at; and then what it must be for the mark is not so.
    fakes.all(|says| says.changed = true);
    let asking = fakes.asking().await;
    let taken = asking.driver.apply(&asking.client, "etcd_prefix", &Change::Create { after: wanted("/registry", "one") }).await;
    let told = taken.unwrap_err();
    tells(&told, "A prefix in etcd changed meanwhile", "was free a moment ago, and then somebody else wrote there", "it says who");
}

#[tokio::test]
async fn a_prefix_that_nobody_could_look_at_is_a_warning() {
    let told = async |connection: &Object| {
        let asking = asking(connection).await;
        let identity = Object::from([("prefix".to_owned(), Value::from("/registry"))]);
        let ask = Ask { resource_type: "etcd_prefix".into(), identity, known: None, wanted: Some(Object::new()), begun: false };
        asking.driver.observe(&asking.client, &[ask]).await.remove(0).unwrap_err()
    };
    let away = told(&connection([closed()])).await;
    tells(
        &away,
        "A prefix in etcd that could not be looked at",
        "/registry in the etcd at a are can't be told. It does not answer",
        "nobody else",
    );
    let fakes = Fakes::start(1).await;
    fakes.all(|says| says.refuses = vec![("Txn", 7, "etcdserver: permission denied")]);
    let denied = told(&fakes.connection()).await;
    tells(&denied, "A prefix in etcd that could not be looked at", "does not let this certificate read more", "nobody else");
    assert!(!away.is_error() && !denied.is_error());
}
