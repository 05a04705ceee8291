//! What is below a prefix goes to another etcd, with two real ones over TLS on loopback.

use std::time::Duration;

use etcd_client::{Client, GetOptions, PutOptions};
use karmaform_model::{Change, Diagnostic, GateAnswer, Object};

use crate::prefix::{Owner, wanted};
use crate::single::Etcd;

/// Below the ephemeral ports, and beside those of the other tests.
const PORTS: [u16; 3] = [23_200, 23_210, 23_240];

/// One of the two.
struct Side {
    connection: Object,
    direct: Client,
    owner: Owner,
    etcd: Option<Etcd>,
}

impl Side {
    async fn start(port: u16) -> Option<Self> {
        let etcd = Etcd::start(port)?;
        let (connection, direct) = (etcd.connection(&[port]), etcd.direct().await);
        Some(Self { owner: Owner::through(&connection).await, connection, direct, etcd: Some(etcd) })
    }

    async fn put(&mut self, key: &str, value: &str) {
        self.direct.put(key, value, None).await.unwrap();
    }

    /// Keys, values, and whether they end by themselves.
    async fn below(&mut self, prefix: &str) -> Vec<(String, Vec<u8>, bool)> {
        let mut kv = self.direct.kv_client().max_decoding_message_size(usize::MAX);
        let found = kv.get(prefix, Some(GetOptions::new().with_prefix())).await.unwrap();
        found.kvs().iter().map(|kv| (kv.key_str().unwrap().to_owned(), kv.value().to_vec(), kv.lease() != 0)).collect()
    }

    async fn revision(&mut self) -> i64 {
        self.direct.get("x", None).await.unwrap().header().unwrap().revision()
    }

    /// Whether what is there counts: what its mark says of that.
    async fn counts(&self) -> bool {
        let seen = self.owner.observe("/registry", Some(&copy())).await.unwrap().unwrap();
        assert_eq!(seen["foreign"].as_bool(), Some(false));
        ["is_left", "is_unfinished"].iter().all(|fact| seen[*fact].as_bool() == Some(false))
    }
}

/// A prefix that is taken for what comes from elsewhere.
fn copy() -> Object {
    let mut copy = wanted("/registry", "one");
    copy.insert("is_copy".to_owned(), true.into());
    copy
}

async fn operate(name: &str, from: &Side, to: &Side) -> Result<GateAnswer, Diagnostic> {
    let arguments = Object::from([
        ("cluster".to_owned(), to.connection.clone().into()),
        ("from".to_owned(), from.connection.clone().into()),
        ("prefix".to_owned(), "/registry".into()),
        ("owner_uid".to_owned(), "one".into()),
    ]);
    to.owner.driver.operate(&to.owner.client, name, &arguments).await
}

/// Until it says that it is done.
async fn done(name: &str, from: &Side, to: &Side) -> String {
    let mut last = String::new();
    for _ in 0..100 {
        match operate(name, from, to).await.unwrap() {
            GateAnswer::Passed(said) => return said,
            GateAnswer::Waiting(why) => last = why,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{name} does not end: {last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_below_a_prefix_goes_to_another_etcd_and_back() {
    let (Some(mut old), Some(mut new)) = (Side::start(PORTS[0]).await, Side::start(PORTS[1]).await) else { return };
    old.owner.create(wanted("/registry", "one")).await.unwrap();
    // More than fits into one transaction, one page and one message of gRPC; keys that end by themselves; and others' keys on both sides.
    for i in 0..1500 {
        old.put(&format!("/registry/pods/{i:05}"), &format!("{i}").repeat(20)).await;
    }
    for i in 0..12 {
        old.put(&format!("/registry/large/{i}"), &"x".repeat(900_000)).await;
    }
    let lease = old.direct.lease_grant(3600, None).await.unwrap().id();
    old.direct.put("/registry/events/a", "e", Some(PutOptions::new().with_lease(lease))).await.unwrap();
    old.put("/registry2/other", "1").await;
    new.put("/other/here", "2").await;

    // Both were started with the same words, so their ids are the same; and what is one is found to be.
    assert_eq!(done("etcd_copy", &old, &old).await, "it is the same etcd");
    // Where nobody has said that it is for that, nothing is copied.
    assert!(operate("etcd_copy", &old, &new).await.unwrap_err().summary.contains("somebody else's"));
    new.owner.create(copy()).await.unwrap();
    assert_eq!(done("etcd_copy", &old, &new).await, "1513 keys are copied");
    assert_eq!(old.below("/registry/").await, new.below("/registry/").await);
    assert!(old.counts().await && !new.counts().await);
    // Nobody who watches would be told nothing for a while.
    assert!(new.revision().await > old.revision().await);

    // It goes on being used: written, changed, deleted.
    old.put("/registry/pods/new", "n").await;
    old.put("/registry/pods/00007", "changed").await;
    old.direct.delete("/registry/pods/00008", None).await.unwrap();
    assert_eq!(done("etcd_move", &old, &new).await, "1513 keys, of which 3 had changed since they were copied");
    assert_eq!(old.below("/registry/").await, new.below("/registry/").await);
    let leases = new.direct.lease_client().leases().await.unwrap();
    let left = new.direct.lease_client().time_to_live(leases.leases()[0].id(), None).await.unwrap().ttl();
    assert!((3000..=3600).contains(&left), "{left}");
    assert!(new.below("/registry2").await.is_empty() && new.below("/karmaform.io/revision").await.is_empty());
    assert_eq!(new.below("/other").await.len(), 1);
    assert!(new.revision().await > old.revision().await);
    // Whoever asks for what came after a revision of before begins anew.
    let before = new.direct.get("/registry/pods/00001", Some(GetOptions::new().with_revision(1000))).await;
    assert!(before.is_err_and(|why| why.to_string().contains("compacted")));
    assert!(new.counts().await && !old.counts().await);

    // What is written from then on is never copied over, by whoever goes on with what he thinks has not ended.
    new.put("/registry/pods/00007", "newer").await;
    for again in ["etcd_copy", "etcd_move"] {
        assert_eq!(done(again, &old, &new).await, "it is there already");
    }
    assert_eq!(new.below("/registry/pods/00007").await[0].1, b"newer");

    // And back: what was left there is of long ago, and no object has a lower version than it had.
    let version = async |side: &Side| side.direct.kv_client().get("/registry/pods/00001", None).await.unwrap().kvs()[0].mod_revision();
    let before = version(&new).await;
    assert!(before > version(&old).await);
    old.put("/registry/pods/of-nobody", "1").await;
    old.owner.create(copy()).await.unwrap();
    assert_eq!(done("etcd_copy", &new, &old).await, "1513 keys are copied");
    assert_eq!(done("etcd_move", &new, &old).await, "1513 keys, of which 0 had changed since they were copied");
    assert_eq!(old.below("/registry/").await, new.below("/registry/").await);
    assert!(old.counts().await && !new.counts().await && version(&old).await > before);
    // And there once more.
    old.put("/registry/pods/00007", "newest").await;
    new.owner.create(copy()).await.unwrap();
    done("etcd_copy", &old, &new).await;
    done("etcd_move", &old, &new).await;
    assert_eq!(new.below("/registry/pods/00007").await[0].1, b"newest");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_from_where_it_does_not_count_any_more() {
    let ports = PORTS.map(|port| port + 40);
    let (Some(mut one), Some(mut two), Some(mut three)) =
        (Side::start(ports[0]).await, Side::start(ports[1]).await, Side::start(ports[2]).await)
    else {
        return;
    };
    one.owner.create(wanted("/registry", "one")).await.unwrap();
    one.put("/registry/a", "old").await;
    two.owner.create(copy()).await.unwrap();
    done("etcd_copy", &one, &two).await;
    // A copy that was never finished is no source, nor is what was left.
    three.owner.create(copy()).await.unwrap();
    for (from, why) in [(&two, "a copy that does not count"), (&one, "what was left")] {
        if why == "what was left" {
            done("etcd_move", &one, &two).await;
        }
        for name in ["etcd_copy", "etcd_move"] {
            let refused = operate(name, from, &three).await.unwrap_err();
            assert!(refused.summary == "An etcd that was left", "{name} from {why}: {refused:?}");
        }
    }
    two.put("/registry/a", "new").await;
    assert!(three.below("/registry").await.is_empty());
    done("etcd_copy", &two, &three).await;
    // What is there by then is looked at once more as a whole, whatever was compared before.
    three.put("/registry/a", "of somebody").await;
    done("etcd_copy", &two, &three).await;
    done("etcd_move", &two, &three).await;
    assert_eq!(three.below("/registry/a").await[0].1, b"new");
    // Who thinks that the first move goes on still (by a state of before) does not bring back what was left twice.
    for name in ["etcd_copy", "etcd_move"] {
        assert_eq!(operate(name, &one, &two).await.unwrap_err().summary, "An etcd that was left");
    }

    // Who says that what was left counts is believed, and it is the source of the next move.
    let mut adopting = wanted("/registry", "one");
    let before = one.owner.observe("/registry", Some(&adopting)).await.unwrap().unwrap();
    adopting.insert("adopt".to_owned(), true.into());
    one.owner.apply(Change::Update { before, after: adopting }).await.unwrap();
    assert!(one.counts().await);
    two.owner.create(copy()).await.unwrap();
    done("etcd_copy", &one, &two).await;
    done("etcd_move", &one, &two).await;
    assert_eq!(two.below("/registry/a").await[0].1, b"old");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_dropped_and_pages_that_grow_stop_no_copy() {
    let ports = PORTS.map(|port| port + 80);
    let (Some(mut old), Some(mut new)) = (Side::start(ports[0]).await, Side::start(ports[1]).await) else { return };
    old.owner.create(wanted("/registry", "one")).await.unwrap();
    // Small ones first, so that pages have many; then large ones.
    for i in 0..1200 {
        old.put(&format!("/registry/a/{i:05}"), "small").await;
    }
    for i in 0..40 {
        old.put(&format!("/registry/b/{i:05}"), &"x".repeat(1_000_000)).await;
    }
    new.owner.create(copy()).await.unwrap();
    // As API servers do, all the time.
    let mut working = old.direct.clone();
    let compacting = tokio::spawn(async move {
        loop {
            let revision = working.put("/elsewhere", "x", None).await.unwrap().header().unwrap().revision();
            working.compact(revision, None).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert_eq!(done("etcd_copy", &old, &new).await, "1240 keys are copied");
    old.put("/registry/b/00003", "changed").await;
    // Others of the same etcd go on writing.
    assert_eq!(done("etcd_move", &old, &new).await, "1240 keys, of which 1 had changed since they were copied");
    compacting.abort();
    assert_eq!(old.below("/registry/").await, new.below("/registry/").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_still_writes_is_found_and_others_are_kept_out() {
    let ports = [PORTS[0] + 20, PORTS[1] + 20];
    let (Some(mut old), Some(mut new)) = (Side::start(ports[0]).await, Side::start(ports[1]).await) else { return };
    old.owner.create(wanted("/registry", "one")).await.unwrap();
    new.owner.create(copy()).await.unwrap();
    old.put("/registry/a", "1").await;
    done("etcd_copy", &old, &new).await;
    // An API server that nobody stopped.
    let mut writing = old.direct.clone();
    let writer = tokio::spawn(async move {
        for i in 0.. {
            writing.put("/registry/b", i.to_string(), None).await.unwrap();
        }
    });
    let mut said = Vec::new();
    for _ in 0..5 {
        let answer = operate("etcd_move", &old, &new).await.unwrap();
        let GateAnswer::Waiting(why) = answer else { panic!("{answer:?}") };
        said.push(why);
    }
    assert!(said.iter().all(|why| why.contains("somebody still writes") && why.contains("/registry/b")), "{said:?}");
    writer.abort();
    assert!(writer.await.is_err());
    done("etcd_move", &old, &new).await;
    assert_eq!(old.below("/registry/b").await, new.below("/registry/b").await);

    // A prefix that holds somebody else's data is not taken, and not copied over.
    new.put("/mine/a", "1").await;
    let mut foreign = copy();
    foreign.insert("prefix".to_owned(), "/mine".into());
    assert!(new.owner.create(foreign).await.unwrap_err().detail.contains("/mine/a"));

    // One that does not answer is told at once, before anybody is stopped.
    drop(old.etcd.take());
    new.owner.create(copy()).await.unwrap();
    let silent = operate("etcd_copy", &old, &new).await.unwrap_err();
    assert!(silent.detail.contains("The etcd that was used does not answer") && silent.hints.iter().any(|h| h.contains("adopt_etcd_data")));
}
