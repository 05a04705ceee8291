//! Whether a store can have answered as it did: histories of what clients asked of it, a register for each key, are judged to be linearizable or not.
//! Knows no store, no process and no clock.
//!
//! A history is linearizable if each of its operations can be given a moment between its begin and its end so that, done one after the other at
//! these moments, each read is of the last write before it. A store's is if that of each of its keys is (Herlihy and Wing, 1990).
//!
//! Nothing has to be searched for, because what is written to a key is different each time (Gibbons and Korach, 1997): a read says which write it
//! is of. In an order that is right each write stands together with its reads, it first and they after it, and nobody else among them. So the
//! question is in which order these groups may be.
//!
//! - Inside a group: if no read ended before the write began, the write and then its reads by their begins is an order that moments allow.
//! - A must come before B if something of A had ended when something of B began, so if the first end in A is before the last begin in B.
//! - There is an order of groups exactly if "must come before" has no circle. Then it has none of two groups either. And if it has one, it has one
//!   of two: take a shortest circle A, B, C and so on, of more than two. A needs not come before C, as that would make a shorter one; so no begin
//!   in C is after the first end in A. The first end in B is before the last begin in C, and so before the first end in A. It is the same for each
//!   step of the circle: all the way round, first ends come earlier and earlier, which can't be. So it is enough to look at each two of them.
//!
//! A write that nobody acknowledged may be done at any moment after its begin, or never: it has no end. Then nothing must come after it, unless
//! somebody read what it wrote.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What is read of a key that nothing was written to. Nobody writes it.
pub(crate) const NOTHING: usize = 0;

/// What a client asked for. Moments are since the same begin for all clients.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) key: String,
    pub(crate) began: Duration,
    pub(crate) done: Done,
}

/// What came of it. A read without an answer says nothing, and is no operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Done {
    Write { value: usize, acknowledged: Option<Duration> },
    Read { value: usize, answered: Duration },
}

impl Operation {
    fn value(&self) -> usize {
        match self.done {
            Done::Write { value, .. } | Done::Read { value, .. } => value,
        }
    }

    fn end(&self) -> Moment {
        match self.done {
            Done::Write { acknowledged, .. } => acknowledged.map_or(Moment::Never, Moment::At),
            Done::Read { answered, .. } => Moment::At(answered),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { began, .. } = self;
        match self.done {
            Done::Write { value, acknowledged: Some(end) } => write!(f, "{value} was written from {began:.3?} to {end:.3?}"),
            Done::Write { value, acknowledged: None } => write!(f, "{value} was to be written from {began:.3?} on"),
            Done::Read { value, answered } => write!(f, "{value} was read from {began:.3?} to {answered:.3?}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    BeforeAll,
    At(Duration),
    Never,
}

/// A write and its reads.
struct Group {
    write_began: Moment,
    first_end: Moment,
    last_begin: Moment,
}

/// Judges a history. Operations may stand in any order.
///
/// # Errors
/// It is not linearizable: why, with the operations that can't be.
pub(crate) fn judge(history: &[Operation]) -> Result<(), String> {
    let mut keys: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in history {
        keys.entry(operation.key.as_str()).or_default().push(operation);
    }
    keys.into_iter().try_for_each(|(key, operations)| register(&operations).map_err(|why| format!("{key}: {why}")))
}

fn register(operations: &[&Operation]) -> Result<(), String> {
    let nothing = Group { write_began: Moment::BeforeAll, first_end: Moment::BeforeAll, last_begin: Moment::BeforeAll };
    let mut groups = BTreeMap::from([(NOTHING, nothing)]);
    for operation in operations {
        if let Done::Write { value, .. } = operation.done {
            let began = Moment::At(operation.began);
            let group = Group { write_began: began, first_end: operation.end(), last_begin: began };
            if groups.insert(value, group).is_some() {
                return Err(format!("{value} is not written once alone, and nobody can tell which of them was read"));
            }
        }
    }
    for operation in operations {
        if let Done::Read { value, .. } = operation.done {
            let Some(group) = groups.get_mut(&value) else { return Err(format!("nobody wrote what was read: {operation}")) };
            if operation.end() < group.write_began {
                return Err(format!("it was read before anybody wrote it:{}", told(operations, &[value])));
            }
            group.first_end = group.first_end.min(operation.end());
            group.last_begin = group.last_begin.max(Moment::At(operation.began));
        }
    }
    let groups: Vec<(usize, Group)> = groups.into_iter().collect();
    for (i, (one, a)) in groups.iter().enumerate() {
        for (other, b) in &groups[i + 1..] {
            if a.first_end < b.last_begin && b.first_end < a.last_begin {
                return Err(format!("{one} and {other} were each there before the other one:{}", told(operations, &[*one, *other])));
            }
        }
    }
    Ok(())
}

/// The operations of these values, by their begins.
fn told(operations: &[&Operation], values: &[usize]) -> String {
    let mut found: Vec<&Operation> = operations.iter().copied().filter(|o| values.contains(&o.value())).collect();
    found.sort_by_key(|o| o.began);
    found.iter().map(|o| format!("\n  {o}")).collect()
}

fn at(moment: u64) -> Duration {
    Duration::from_millis(moment)
}

fn write(value: usize, began: u64, acknowledged: u64) -> Operation {
    Operation { key: "x".to_owned(), began: at(began), done: Done::Write { value, acknowledged: Some(at(acknowledged)) } }
}

fn unsure(value: usize, began: u64) -> Operation {
    Operation { key: "x".to_owned(), began: at(began), done: Done::Write { value, acknowledged: None } }
}

fn read(value: usize, began: u64, answered: u64) -> Operation {
    Operation { key: "x".to_owned(), began: at(began), done: Done::Read { value, answered: at(answered) } }
}

#[test]
fn what_a_store_may_do_is_accepted() {
    let check = |history: &[Operation]| assert_eq!(judge(history), Ok(()));
    check(&[]);
    check(&[read(NOTHING, 0, 1), write(1, 2, 3), read(1, 4, 5), write(2, 6, 7), read(2, 8, 9)]);
    // Beside a write either is right, and the new one may be read before the write is acknowledged.
    check(&[write(1, 0, 1), write(2, 2, 9), read(1, 3, 4), read(2, 5, 6)]);
    check(&[write(1, 0, 1), write(2, 2, 9), read(1, 3, 8)]);
    // Two writes beside each other are in the order that reads saw.
    check(&[write(1, 0, 9), write(2, 0, 9), read(2, 10, 11)]);
    check(&[write(1, 0, 9), write(2, 0, 9), read(2, 1, 3), read(1, 4, 6), read(1, 10, 11)]);
    // What nobody acknowledged is done at once, late, or never.
    check(&[write(1, 0, 1), unsure(2, 2), read(2, 3, 4), read(2, 5, 6)]);
    check(&[
        write(1, 0, 1),
        unsure(2, 2),
        read(1, 3, 4),
        write(3, 5, 6),
        read(3, 7, 8),
        read(2, 90, 91),
        write(4, 92, 93),
        read(4, 94, 95),
    ]);
    check(&[write(1, 0, 1), unsure(2, 2), read(1, 3, 4), write(3, 5, 6), read(3, 7, 8)]);
    // Moments that are the same come in either order.
    check(&[write(1, 0, 1), write(2, 1, 2), read(1, 2, 3)]);
    // Each key has a value of its own.
    check(&[write(1, 0, 1), Operation { key: "y".to_owned(), ..read(NOTHING, 2, 3) }]);
}

#[test]
fn what_a_store_may_not_do_is_refused() {
    let check = |why: &str, history: &[Operation]| {
        let told = judge(history).expect_err(why);
        assert!(told.starts_with("x: ") && told.contains(why), "{why:?} is not in {told:?}");
    };
    let before = "were each there before the other one";
    // After a write was acknowledged nobody reads what was before it, or nothing.
    check(before, &[write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)]);
    check(before, &[write(1, 0, 1), read(NOTHING, 2, 3)]);
    // Nobody goes back, whoever it is, and though the write is still under way.
    check(before, &[write(1, 0, 1), write(2, 2, 9), read(2, 3, 4), read(1, 5, 6)]);
    check(before, &[write(1, 0, 9), read(1, 2, 3), read(NOTHING, 4, 5)]);
    check(before, &[write(1, 0, 9), write(2, 0, 9), read(1, 10, 11), read(2, 12, 13)]);
    // What nobody acknowledged does not vanish again, and is not done twice.
    check(before, &[write(1, 0, 1), unsure(2, 2), read(2, 3, 4), read(1, 5, 6)]);
    check(before, &[unsure(2, 0), read(2, 1, 2), write(3, 3, 4), read(3, 5, 6), read(2, 7, 8)]);
    check("nobody wrote what was read: 7 was read from 2.000ms to 3.000ms", &[write(1, 0, 1), read(7, 2, 3)]);
    check("it was read before anybody wrote it", &[read(1, 0, 1), write(1, 2, 3)]);
    check("it was read before anybody wrote it", &[read(1, 0, 1), unsure(1, 2)]);
    check("1 is not written once alone", &[write(1, 0, 1), write(1, 2, 3)]);
    check("0 is not written once alone", &[write(NOTHING, 0, 1)]);
}

/// By what it means: somebody who is next, again and again. Bits of `left` are operations; what has no end may be left out.
fn can_be(history: &[Operation], left: u32, value: usize) -> bool {
    let is_left = |i: usize| left & (1 << i) != 0;
    if history.iter().enumerate().all(|(i, o)| !is_left(i) || o.end() == Moment::Never) {
        return true;
    }
    history.iter().enumerate().filter(|(i, _)| is_left(*i)).any(|(i, now)| {
        let is_next = !history.iter().enumerate().any(|(j, other)| is_left(j) && other.end() < Moment::At(now.began));
        let may_be = matches!(now.done, Done::Write { .. }) || now.value() == value;
        is_next && may_be && can_be(history, left & !(1 << i), now.value())
    })
}

#[test]
fn it_is_judged_as_by_trying_every_order() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut accepted, mut refused) = (0_usize, 0_usize);
    for _ in 0..20_000 {
        let (count, mut written) = (random.usize(1..=6), 0_usize);
        let mut history = Vec::new();
        for _ in 0..count {
            let began = random.u64(..12);
            let ended = began + random.u64(..8);
            let is_write = random.bool();
            written += usize::from(is_write);
            history.push(match (is_write, random.usize(..3)) {
                (true, 0) => unsure(written, began),
                (true, _) => write(written, began, ended),
                (false, _) => read(random.usize(..4), began, ended),
            });
        }
        let judged = judge(&history);
        assert_eq!(judged.is_ok(), can_be(&history, (1 << count) - 1, NOTHING), "{judged:?} of {history:#?}");
        accepted += usize::from(judged.is_ok());
        refused += usize::from(judged.is_err());
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

#[test]
fn a_long_history_is_judged_too() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut history, mut value) = (Vec::new(), NOTHING);
    // Each is done at a moment of its own, with others beside it.
    for moment in (1_000..).step_by(10).take(6_000) {
        let (began, ended) = (moment - random.u64(..40), moment + random.u64(..40));
        if random.bool() {
            value += 1;
            history.push(write(value, began, ended));
        } else {
            history.push(read(value, began, ended));
        }
    }
    assert_eq!(judge(&history), Ok(()));
    history.push(read(value / 2, 100_000, 100_001));
    assert!(judge(&history).is_err());
}
