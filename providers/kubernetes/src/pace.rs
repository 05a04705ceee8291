//! How many requests a second a cluster is asked at most, by all who use one connection.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Turns, each a while after the one before it.
pub(crate) struct Pace {
    every: Duration,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    /// With this long between two requests; none at all if that is no time.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, next: Mutex::default() }
    }

    /// Waits until it is the caller's turn.
    pub(crate) async fn turn(&self) {
        if !self.every.is_zero() {
            sleep_until(self.take(Instant::now())).await;
        }
    }

    /// The next turn, for who comes now. Time that nobody used is not saved up.
    fn take(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.map_or(now, |next| next.max(now));
        *next = Some(turn + self.every);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_apart_and_time_that_nobody_used_is_not_saved() {
        let pace = Pace::new(Duration::from_millis(20));
        let start = Instant::now();
        let after = |wait: u64| start + Duration::from_millis(wait);
        assert_eq!([0, 0, 5].map(|now| pace.take(after(now))), [0, 20, 40].map(after));
        assert_eq!([1000, 1000].map(|now| pace.take(after(now))), [1000, 1020].map(after));
    }
}
