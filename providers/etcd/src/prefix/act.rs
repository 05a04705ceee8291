//! Taking a prefix and leaving it: each a look and one transaction, which only holds if nothing changed in between.

use etcd_client::{Compare, CompareOp, DeleteOptions, Txn, TxnOp};
use karmaform_model::{Diagnostic, Object, Value};

use super::look::{There, Trouble, ask, look, overlaps};
use super::mark::{self, Mark};
use super::{is_checked, is_true, refuse, text};
use crate::client::Client;

/// Marks a prefix as `after`'s owner's. `before` is there if it was planned as a change: then the plan has seen what is below it.
pub(crate) async fn take(client: &Client, before: Option<&Object>, after: &Object) -> Result<Object, Diagnostic> {
    let prefix = text(after, "prefix").unwrap_or_default();
    let is_copy = is_true(after, "is_copy");
    // Where another etcd is to be used, nobody has looked at what is below the prefix there.
    let is_new = before.is_none() || is_copy;
    // Only the state says what becomes of it one day.
    let is_written = before.is_some_and(|b| ["owner", "owner_uid"].iter().all(|n| text(b, n) == text(after, n)));
    // What was left, or never became what counts, counts if somebody says so.
    let is_made_to_count = is_true(after, "adopt") && before.is_some_and(|b| is_true(b, "is_left") || is_true(b, "is_unfinished"));
    if is_written && !is_copy && !is_made_to_count {
        return Ok(after.clone());
    }
    let there = match look(client, prefix, is_new).await {
        Ok(there) => there,
        // Only pods reach it, or it has rules of its own: the control plane works all the same, and nobody watches over the prefix.
        Err(Trouble::Denied) if !is_copy => return Ok(taken(after, "", false)),
        Err(Trouble::Denied) => return Err(silent("A prefix in etcd can't be taken", prefix, after, "permission denied")),
        Err(Trouble::Unreachable(_)) if is_new && !is_copy && !client.is_through() => return Ok(taken(after, "", false)),
        Err(Trouble::Unreachable(why)) => return Err(silent("A prefix in etcd can't be taken", prefix, after, &why)),
    };
    let adopts = is_true(after, "adopt");
    if let Some(refusal) = refuse::of_plan(&seen(&there, before, after, is_new), after) {
        return Err(refusal);
    }
    if is_copy && there.mark.as_ref().is_some_and(|m| Some(m.uid.as_str()) == text(after, "owner_uid")) {
        // A copy that was begun, restored with all else, or left behind: it is brought up to date.
        return Ok(taken(after, &there.cluster_id, true));
    }
    let own = Mark {
        prefix: prefix.to_owned(),
        owner: text(after, "owner").unwrap_or_default().to_owned(),
        uid: text(after, "owner_uid").unwrap_or_default().to_owned(),
        is_copy,
        came_by: String::new(),
        compared_at: 0,
        left_by: String::new(),
        revision: there.mark.as_ref().map_or(0, |m| m.revision),
    };
    // Who comes first has it, also of two that come at the same time.
    let is_empty = is_new && !adopts && there.mark.is_none();
    let written = ask(client, move |mut connection| {
        let own = own.clone();
        Box::pin(async move {
            let mut conditions = vec![Compare::mod_revision(mark::key(&own.prefix), CompareOp::Equal, own.revision)];
            if is_empty {
                let (first, last) = mark::range(&own.prefix);
                conditions.push(Compare::version(first, CompareOp::Equal, 0).with_range(last));
            }
            let put = TxnOp::put(mark::key(&own.prefix), own.value(), None);
            connection.txn(Txn::new().when(conditions).and_then([put])).await
        })
    })
    .await;
    match written {
        Ok(answer) if answer.succeeded() => Ok(taken(after, &there.cluster_id, true)),
        Ok(_) => Err(Diagnostic::error(
            "A prefix in etcd changed meanwhile",
            format!("{prefix} in the etcd at {} was free a moment ago, and then somebody else wrote there.", refuse::place(after)),
        )
        .with_hint("Run plan again: it says who.")
        .retryable()),
        Err(Trouble::Denied) if !is_copy => Ok(taken(after, "", false)),
        Err(Trouble::Denied) => Err(silent("A prefix in etcd can't be taken", prefix, after, "permission denied")),
        Err(Trouble::Unreachable(why)) => Err(silent("A prefix in etcd can't be taken", prefix, after, &why)),
    }
}

/// What was found, as a plan would see it.
fn seen(there: &There, before: Option<&Object>, after: &Object, is_new: bool) -> Object {
    let known = [before.and_then(|b| text(b, "owner_uid")), text(after, "owner_uid")];
    let is_ours = there.mark.as_ref().is_some_and(|m| known.contains(&Some(m.uid.as_str())));
    let (count, first) = there.keys.clone().unwrap_or_default();
    let is_foreign = !is_ours && (there.mark.is_some() || (is_new && count > 0));
    let mut object = Object::from([
        ("foreign".to_owned(), is_foreign.into()),
        ("keys".to_owned(), count.into()),
        ("first_key".to_owned(), first.into()),
        ("overlaps".to_owned(), Value::strings(if is_new && !is_ours { overlaps(there) } else { Vec::new() })),
    ]);
    if let Some(mark) = &there.mark {
        object.insert("owner".to_owned(), mark.owner.as_str().into());
        object.insert("owner_uid".to_owned(), mark.uid.as_str().into());
    }
    object
}

fn taken(after: &Object, cluster_id: &str, checked: bool) -> Object {
    let mut object = after.clone();
    object.insert("checked".to_owned(), checked.into());
    object.insert("cluster_id".to_owned(), cluster_id.into());
    object
}

/// Removes the mark, and what is below the prefix if that was asked for; only while the mark is still the owner's.
pub(crate) async fn leave(client: &Client, before: &Object) -> Result<(), Diagnostic> {
    let prefix = text(before, "prefix").unwrap_or_default();
    let deletes = text(before, "on_destroy") == Some("delete");
    if !is_checked(before) {
        return Ok(());
    }
    let there = match look(client, prefix, false).await {
        Ok(there) => there,
        Err(trouble) => return unreachable(prefix, before, deletes, &trouble),
    };
    let Some(own) = there.mark.filter(|m| Some(m.uid.as_str()) == text(before, "owner_uid")) else { return Ok(()) };
    let left = ask(client, move |mut connection| {
        let (key, revision, (first, last)) = (mark::key(&own.prefix), own.revision, mark::range(&own.prefix));
        Box::pin(async move {
            let mut operations = vec![TxnOp::delete(key.clone(), None)];
            if deletes {
                operations.push(TxnOp::delete(first, Some(DeleteOptions::new().with_range(last))));
            }
            connection.txn(Txn::new().when([Compare::mod_revision(key, CompareOp::Equal, revision)]).and_then(operations)).await
        })
    })
    .await;
    left.map(|_| ()).or_else(|trouble| unreachable(prefix, before, deletes, &trouble))
}

/// A mark in an etcd that is gone hurts nobody, and must not keep the rest from being destroyed; data that was to go is another matter.
fn unreachable(prefix: &str, before: &Object, deletes: bool, trouble: &Trouble) -> Result<(), Diagnostic> {
    match trouble {
        _ if !deletes => Ok(()),
        Trouble::Unreachable(why) => Err(silent("What is below a prefix in etcd can't be deleted", prefix, before, why).with_hint(
            "If that etcd is gone for good, say that its data is to be kept and apply that first; then nobody looks for it any more.",
        )),
        Trouble::Denied => Err(silent("What is below a prefix in etcd can't be deleted", prefix, before, "permission denied")),
    }
}

fn silent(summary: &str, prefix: &str, object: &Object, why: &str) -> Diagnostic {
    let detail = format!("Nothing was done to {prefix} in the etcd at {}: {why}.", refuse::place(object));
    Diagnostic::error(summary, detail).with_hint("See whether that etcd works; then apply again.").retryable()
}
