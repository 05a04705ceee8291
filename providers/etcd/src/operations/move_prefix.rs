//! The operations `etcd_copy` and `etcd_move`: what is below a prefix goes from the etcd that was used to another one. First all of it is copied while it is
//! in use; then, when nobody writes any more, what has changed since; and both etcds note where it counts from then on, so that nothing is ever copied
//! over what was written there later.

use std::sync::LazyLock;

use etcd_client::{Compare, CompareOp, Error, GetOptions, ResponseHeader, Txn, TxnOp};
use karmaform_model::{Attribute, BoxFuture, Diagnostic, GateAnswer, Object, Operation, Schema, Type};

use super::{passing, text};
use crate::client::{Client, within};
use crate::look::reason;
use crate::prefix::{Copied, Ends, Halt, Mark, Opened, Scope, copy, drop_history, key_of, raise, range_of, written_since};

/// So far the revision is ahead of the other one when copying begins: the other one goes on meanwhile.
const AHEAD: i64 = 1000;
/// gRPC's number for what is not there: a lease.
const NOT_FOUND: i32 = 5;
/// The most revisions that are made up for by writing.
const MOST_RAISED: i64 = 20_000_000;

fn schema(what: &'static str) -> Schema {
    Schema::new(
        what,
        vec![
            Attribute::required("cluster", Type::Any, "The connection to the etcd that is to be used."),
            Attribute::required("from", Type::Any, "The connection to the etcd that was used."),
            Attribute::required("prefix", Type::String, "The prefix; in both it is this one's owner's."),
            Attribute::required("owner_uid", Type::String, "What tells the owner from all others."),
        ],
    )
    .through("cluster")
}

static COPIES: LazyLock<Schema> = LazyLock::new(|| schema("Copies what is below a prefix in one etcd to another one, while it is in use."));
static MOVES: LazyLock<Schema> = LazyLock::new(|| {
    schema("Makes what is below a prefix in one etcd count in another one, when nobody writes there any more and both have the same.")
});

/// The operation `etcd_copy`.
pub(crate) struct EtcdCopy;

impl Operation<Client> for EtcdCopy {
    fn name(&self) -> &'static str {
        "etcd_copy"
    }

    fn schema(&self) -> &Schema {
        &COPIES
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let ends = match Ends::open(client, arguments).await? {
                Ok(ends) => ends,
                // Nobody was stopped yet, so nobody has to wait.
                Err((is_before, why)) => return Err(silent(is_before, &why)),
            };
            copied(&ends, arguments).await.map(GateAnswer::Passed).or_else(halted)
        })
    }
}

/// All of it, while it is in use; gives what was seen.
async fn copied(ends: &Ends, arguments: &Object) -> Result<String, Halt> {
    let Some(word) = ends.word().await? else { return Ok(SAME.to_owned()) };
    let Begun::Copy(own) = begun(ends, arguments)? else { return Ok(DONE.to_owned()) };
    let (from, to) = (&ends.from, &ends.to);
    if from.revision + AHEAD - to.revision > MOST_RAISED {
        return Err(far_behind(ends).into());
    }
    // What was left here once, or restored with all else, is a copy from now on, of this move.
    let is_named = own.is_copy && !own.came_by.is_empty() && own.left_by.is_empty();
    let own = match is_named {
        true => own,
        false => note(to, &Mark { is_copy: true, came_by: word, left_by: String::new(), ..own }).await?,
    };
    raised(to, &own, from.revision + AHEAD).await?;
    let copied = copy(from, to, &own, Scope::All).await?;
    // What was written while that took its time follows now, so that little is left for when nobody works.
    let now = revision(from, &own).await?;
    raised(to, &own, now + AHEAD).await?;
    copy(from, to, &own, Scope::Since(from.revision)).await?;
    // From then on it is enough to look at what was written later.
    note(to, &Mark { compared_at: now, ..own }).await?;
    Ok(format!("{} are copied", keys(copied.keys)))
}

/// The operation `etcd_move`.
pub(crate) struct EtcdMove;

impl Operation<Client> for EtcdMove {
    fn name(&self) -> &'static str {
        "etcd_move"
    }

    fn schema(&self) -> &Schema {
        &MOVES
    }

    fn attempt<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let ends = match Ends::open(client, arguments).await? {
                Ok(ends) => ends,
                Err((_, why)) => return Ok(GateAnswer::Waiting(why)),
            };
            moved(&ends, arguments).await.map(GateAnswer::Passed).or_else(halted)
        })
    }
}

/// How far it is.
enum Begun {
    /// The copy with this mark is to be brought up to date.
    Copy(Mark),
    /// There is nothing to do.
    Done,
}

const DONE: &str = "it is there already";
const SAME: &str = "it is the same etcd";

fn begun(ends: &Ends, arguments: &Object) -> Result<Begun, Diagnostic> {
    let (uid, prefix) = (text(arguments, "owner_uid")?, text(arguments, "prefix")?);
    let Some(own) = ends.to.mark.as_ref().filter(|mark| mark.uid == uid) else { return Err(not_ours(prefix, "that is to be used")) };
    let Some(before) = &ends.from.mark else { return Ok(Begun::Copy(own.clone())) };
    if before.uid != uid {
        return Err(not_ours(prefix, "that was used"));
    }
    let is_this_one = !before.left_by.is_empty() && before.left_by == own.came_by;
    match () {
        // Both must say so: a mark that was restored says what was so once.
        () if is_this_one && own.counts() => Ok(Begun::Done),
        // Cut off between the two notes, it is gone on with.
        () if before.counts() || (is_this_one && own.is_copy) => Ok(Begun::Copy(own.clone())),
        () => Err(stale(prefix)),
    }
}

/// The last of it, when nobody writes any more; gives what was seen.
async fn moved(ends: &Ends, arguments: &Object) -> Result<String, Halt> {
    if ends.word().await?.is_none() {
        return Ok(SAME.to_owned());
    }
    let Begun::Copy(own) = begun(ends, arguments)? else { return Ok(DONE.to_owned()) };
    if !own.is_copy || own.came_by.is_empty() {
        return Err(not_ours(&own.prefix, "that is to be used").into());
    }
    let (from, to) = (&ends.from, &ends.to);
    let scope = if own.compared_at > 0 { Scope::Since(own.compared_at) } else { Scope::All };
    let copied = copy(from, to, &own, scope).await?;
    nobody_writes(from, &own).await?;
    let (here, there) = (count(from, &own).await?, count(to, &own).await?);
    if here != there {
        // What ends by itself may have done so in one of them.
        return Err(Halt::Waiting(format!("there are {there} of {here} keys")));
    }
    let at = raised(to, &own, revision(from, &own).await? + 1).await?;
    // In this order: where it does not count any more is said before where it does; and whoever wrote in between is found, or what he wrote is copied by the
    // next try.
    let before = from.mark.clone().unwrap_or_else(|| Mark { revision: 0, ..own.clone() });
    note(from, &Mark { is_copy: false, left_by: own.came_by.clone(), compared_at: 0, ..before }).await?;
    nobody_writes(from, &own).await?;
    let still = count(from, &own).await?;
    if still != here {
        return Err(Halt::Waiting(format!("somebody still deletes in the etcd that was used: {still} of {here} keys are there")));
    }
    // Whoever asks for what came after a revision of before is told that he is too late, and begins anew.
    drop_history(&to.connection, at).await?;
    note(to, &Mark { is_copy: false, left_by: String::new(), compared_at: 0, ..own }).await?;
    Ok(told(copied))
}

async fn nobody_writes(from: &Opened, own: &Mark) -> Result<(), Halt> {
    match written_since(from, own).await? {
        Some(key) => Err(Halt::Waiting(format!("somebody still writes to the etcd that was used: {key}"))),
        None => Ok(()),
    }
}

/// Gives the revision, once it is at least this.
async fn raised(to: &Opened, own: &Mark, wanted: i64) -> Result<i64, Halt> {
    match raise(&to.connection, revision(to, own).await?, wanted).await? {
        at if at < wanted => Err(Halt::Waiting(format!("the new etcd's revision is raised: {at} of {wanted}"))),
        at => Ok(at),
    }
}

/// Writes a mark, if it is still what was seen; gives it as it is then.
async fn note(of: &Opened, mark: &Mark) -> Result<Mark, Halt> {
    let key = key_of(&mark.prefix);
    let is_as_seen = Compare::mod_revision(key.clone(), CompareOp::Equal, mark.revision);
    let put = TxnOp::put(key, mark.value(), None);
    let answer = within(of.connection.kv_client().txn(Txn::new().when([is_as_seen]).and_then([put]))).await?;
    let revision = answer.header().map_or(0, ResponseHeader::revision);
    if answer.succeeded() { Ok(Mark { revision, ..mark.clone() }) } else { Err(Halt::Changed) }
}

/// The revision that it is at by now.
async fn revision(of: &Opened, own: &Mark) -> Result<i64, Error> {
    let answer = within(of.connection.kv_client().get(key_of(&own.prefix), None)).await?;
    Ok(answer.header().map_or(0, ResponseHeader::revision))
}

async fn count(of: &Opened, own: &Mark) -> Result<i64, Error> {
    let (first, last) = range_of(&own.prefix);
    let options = GetOptions::new().with_range(last).with_count_only();
    Ok(within(of.connection.kv_client().get(first, Some(options))).await?.count())
}

fn keys(count: u64) -> String {
    if count == 1 { "1 key".to_owned() } else { format!("{count} keys") }
}

fn told(copied: Copied) -> String {
    format!("{}, of which {} had changed since they were copied", keys(copied.keys), copied.put + copied.deleted)
}

/// What ends by itself is waited for.
fn halted(halt: Halt) -> Result<GateAnswer, Diagnostic> {
    match halt {
        Halt::Waiting(why) => Ok(GateAnswer::Waiting(why)),
        Halt::Refused(why) => Err(*why),
        Halt::Changed => Err(Diagnostic::error(
            "A move to another etcd met another one",
            "The mark of the prefix changed while it was copied: somebody else is at work there.",
        )
        .with_hint("Plan again: it says whose the prefix is.")),
        // A key that was about to end did so while it was copied: it is none any more by the next try.
        Halt::Etcd(Error::GRpcStatus(status)) if status.code() as i32 == NOT_FOUND => {
            Ok(GateAnswer::Waiting("a lease has ended".to_owned()))
        }
        Halt::Etcd(error) => match passing(&error).filter(|why| !why.contains("space exceeded")) {
            Some(why) => Ok(GateAnswer::Waiting(why)),
            None => {
                let refused = Diagnostic::error("What is in an etcd can't be copied", format!("It was refused: {}.", reason(&error)));
                let is_full = reason(&error).contains("space exceeded");
                let refused =
                    if is_full { refused.with_hint("Raise the new etcd's `quota-backend-bytes`, or give it more room.") } else { refused };
                Err(refused.with_hint(
                    "Apply again: it goes on from what is copied. Or put `etcd` back, plan and apply: the old one is as it was.",
                ))
            }
        },
    }
}

fn silent(is_before: bool, why: &str) -> Diagnostic {
    let which = if is_before { "The etcd that was used" } else { "The etcd that is to be used" };
    let found = Diagnostic::error("A move to another etcd can't begin", format!("{which} does not answer ({why}). Nobody was stopped."));
    match is_before {
        true => found.with_hint("See whether it works and can be reached from here, then apply again.").with_hint(
            "If it is gone for good, and the new one holds what counts (restored from a backup), say so with `adopt_etcd_data = true`.",
        ),
        false => found.with_hint("See whether it works and can be reached from here, then apply again."),
    }
}

fn not_ours(prefix: &str, which: &str) -> Diagnostic {
    let detail = format!("{prefix} in the etcd {which} is not marked as this one's own any more. Nothing was copied.");
    Diagnostic::error("A prefix in etcd that is somebody else's", detail).with_hint("Plan again: it says whose it is.")
}

fn stale(prefix: &str) -> Diagnostic {
    let detail = format!(
        "What was below {prefix} in the etcd that was used has gone to another one, by a move that the state knows nothing of, or did not come there to its \
         end: what was written since is not there. Nothing was copied."
    );
    Diagnostic::error("An etcd that was left", detail)
        .with_hint("Write the etcd that it went to into `etcd`, plan and apply. Then go on from there, in a change of its own.")
}

fn far_behind(ends: &Ends) -> Diagnostic {
    Diagnostic::error(
        "The new etcd is too far behind",
        format!(
            "Its revision is {}, that of the one that was used {}: whoever watches the Karmada API would miss what is written until it gets there, \
             and it is too far to get there by writing. Nobody was stopped.",
            ends.to.revision, ends.from.revision
        ),
    )
    .with_hint(
        "Let the new one begin with a snapshot of the old one: `karmaform etcd snapshot OLD -out=FILE`, and a block `restore` in the new \
         `etcd_cluster`. That raises its revision, and only what was written since is copied.",
    )
}
