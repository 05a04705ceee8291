//! How long things may take. Nothing here waits for ever.

use std::time::Duration;

/// How long a server may take. How often it is asked again, and after which pauses, is the user's choice.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// To connect.
    pub connect: Duration,
    /// One try, from sending to the first byte of the answer. The rest of the answer may take twice as long again, if the line is never
    /// silent for half as long.
    pub one_try: Duration,
    /// So much more for each megabyte that is sent.
    pub megabyte: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), one_try: Duration::from_secs(30), megabyte: Duration::from_secs(10) }
    }
}

impl Limits {
    /// The limit for a try that sends so many bytes.
    pub(crate) fn of(&self, size: usize) -> Duration {
        self.one_try + self.megabyte * u32::try_from(size >> 20).unwrap_or(u32::MAX >> 8)
    }
}

/// How often a request is repeated, and after how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    pub(crate) most: u32,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
}

impl Retries {
    /// The pause after so many tries: each is twice as long as the one before. A server may ask for more, up to the longest there is.
    pub(crate) fn pause(&self, tries: u32, asked_for: Duration) -> Duration {
        let longest = self.longest_pause.max(self.first_pause);
        (self.first_pause * 2u32.saturating_pow(tries.min(16))).max(asked_for).min(longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let seconds = Duration::from_secs;
        let retries = Retries { most: 9, first_pause: seconds(1), longest_pause: seconds(30) };
        let pauses: Vec<_> = (0..7).map(|n| retries.pause(n, Duration::ZERO).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(retries.pause(0, seconds(7)), seconds(7));
        assert_eq!(retries.pause(0, seconds(600)), seconds(30));
        assert_eq!(retries.pause(99, Duration::ZERO), seconds(30));
    }

    #[test]
    fn more_takes_longer() {
        let limits = Limits::default();
        assert_eq!(limits.of(1000).as_secs(), 30);
        assert_eq!(limits.of(10 << 20).as_secs(), 130);
    }
}
