//! When a request is made again. Servers restart, shed load and lose connections, and most of that is over in seconds; whatever is not
//! ends in one failure, soon, and not in one wait per request. Knows no request, and shows nothing to users.
//!
//! All requests may be made twice: objects are applied, deleted by their UID, or only asked about; of what is made under a name of its own a conflict says that it was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::failure::Failure;

/// Of a server that has answered before, so long it is believed that it comes back. An API server restarts within this.
const PATIENCE: Duration = Duration::from_secs(15);
/// And of one that has not.
const FIRST_PATIENCE: Duration = Duration::from_secs(3);
/// The first pause; each further one is twice as long, up to the longest.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Who is asked to ask less often waits so long at least. It is what API servers say themselves (`Retry-After: 1`).
const COURTESY: Duration = Duration::from_secs(1);
/// No server's own wish makes us wait longer.
const LONGEST_COURTESY: Duration = Duration::from_secs(5);
/// What is only read is asked for once more after this long without an answer: what was lost on the way never comes. And nobody waits longer
/// for a server that was never heard of.
const LOST: Duration = Duration::from_secs(15);

/// How a server was when it was last asked.
#[derive(Debug, Default)]
pub(crate) struct Health {
    answered: AtomicBool,
    /// It was waited for in vain. Until it answers nobody waits for it like that again.
    given_up: AtomicBool,
}

impl Health {
    /// How long an answer is waited for.
    pub(crate) fn limit(&self, only_reads: bool, tries: u32, limit: Duration) -> Duration {
        let is_known = self.answered.load(Ordering::Relaxed) && !self.given_up.load(Ordering::Relaxed);
        let is_short = !is_known || (only_reads && tries == 1);
        if is_short { limit.min(LOST) } else { limit }
    }

    /// It answered, if only to refuse.
    pub(crate) fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
        self.given_up.store(false, Ordering::Relaxed);
    }

    /// The pause before a request that failed is made again, after so many tries during so much time; none if it is not.
    pub(crate) fn pause(&self, failure: &Failure, only_reads: bool, tries: u32, since: Duration) -> Option<Duration> {
        let pause = self.next(failure, only_reads, tries, since);
        if pause.is_none() && failure.is_trouble() {
            self.given_up.store(true, Ordering::Relaxed);
        }
        pause
    }

    fn next(&self, failure: &Failure, only_reads: bool, tries: u32, since: Duration) -> Option<Duration> {
        if !failure.is_trouble() || self.given_up.load(Ordering::Relaxed) {
            return None;
        }
        if matches!(failure, Failure::Timeout) {
            return (only_reads && tries == 1).then_some(Duration::ZERO);
        }
        let answered = self.answered.load(Ordering::Relaxed);
        // A wrong address says so at once; so does a certificate that is not trusted, whenever it comes.
        if failure.is_final() || (!answered && failure.is_refused_connection()) {
            return None;
        }
        let doubled = PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(LONGEST_PAUSE);
        let pause = match failure.code() {
            Some(429) => failure.wish().unwrap_or(COURTESY).clamp(COURTESY, LONGEST_COURTESY),
            _ => doubled,
        };
        let patience = if answered { PATIENCE } else { FIRST_PATIENCE };
        (since + pause <= patience).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(code: u16, message: &str) -> Failure {
        let status = serde_json::from_value(json!({ "code": code, "message": message })).unwrap();
        Failure::Kube(Box::new(kube::Error::Api(Box::new(status))))
    }

    fn waited(health: &Health, failure: &Failure) -> Duration {
        let (mut since, mut tries) = (Duration::ZERO, 0);
        loop {
            tries += 1;
            assert!(tries < 100, "for ever");
            match health.pause(failure, true, tries, since) {
                Some(pause) => since += pause,
                None => return since,
            }
        }
    }

    #[test]
    fn trouble_is_waited_for_once_and_an_answer_ends_it() {
        let health = Health::default();
        health.answered();
        let first = waited(&health, &told(503, "x"));
        assert!(first > Duration::from_secs(10) && first <= PATIENCE, "{first:?}");
        assert_eq!(waited(&health, &told(500, "x")), Duration::ZERO, "nobody waits for it again");
        health.answered();
        let again = waited(&health, &told(429, "x"));
        assert!(again > Duration::from_secs(10) && again <= PATIENCE, "{again:?}");
    }

    #[test]
    fn a_refusal_is_an_answer_and_a_stranger_is_not_waited_for_long() {
        for code in [400, 401, 403, 404, 409, 422] {
            assert_eq!(waited(&Health::default(), &told(code, "x")), Duration::ZERO, "{code}");
        }
        assert!(waited(&Health::default(), &told(503, "x")) <= FIRST_PATIENCE);
    }

    #[test]
    fn what_is_lost_on_the_way_is_asked_for_once_more() {
        let health = Health::default();
        let whole = Duration::from_secs(45);
        let lost = Failure::Timeout;
        assert_eq!(health.limit(true, 2, whole), LOST, "it never answered");
        health.answered();
        assert_eq!((health.limit(true, 1, whole), health.limit(true, 2, whole), health.limit(false, 1, whole)), (LOST, whole, whole));
        assert_eq!(health.pause(&lost, true, 1, LOST), Some(Duration::ZERO));
        assert_eq!(health.pause(&lost, true, 2, whole), None);
        assert_eq!(health.limit(false, 1, whole), LOST, "it was waited for in vain");
        assert_eq!(Health::default().pause(&lost, false, 1, whole), None, "a change may be under way");
    }
}
