//! How long things may take. Nothing here waits for ever.

use std::time::Duration;

/// How long a store may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// To connect.
    pub connect: Duration,
    /// One try, from sending to the first byte of the answer. Doubled if more than a megabyte is sent. The rest of the answer may take
    /// twice as long again, if the line is never silent for half as long.
    pub one_try: Duration,
    /// All tries of one call together; no try begins after that. Extended by one try if more than a megabyte is sent.
    pub whole: Duration,
    /// The first pause before a request is repeated; each further one is twice as long, up to five seconds.
    pub first_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            one_try: Duration::from_secs(30),
            whole: Duration::from_secs(60),
            first_pause: Duration::from_millis(200),
        }
    }
}

impl Limits {
    /// For the metadata services of machines and containers, which are near or not there at all.
    pub(crate) fn near() -> Self {
        Self { connect: Duration::from_secs(1), one_try: Duration::from_secs(2), whole: Duration::from_secs(5), ..Self::default() }
    }

    /// For files: their parts are larger than states, and a store takes its time to join those of a large one.
    pub(crate) fn of_files() -> Self {
        Self { one_try: Duration::from_secs(60), whole: Duration::from_secs(180), ..Self::default() }
    }

    /// Limits for one try and the whole call when `size` bytes go over the line.
    pub(crate) fn of(&self, size: usize) -> (Duration, Duration) {
        // A slow line gets through with 32 KiB/s.
        let line = Duration::from_secs(size as u64 >> 15);
        match size > 1 << 20 {
            true => (self.one_try * 2 + line, self.whole + self.one_try + 2 * line),
            false => (self.one_try, self.whole),
        }
    }

    /// The pause after so many tries. Up to a half is left to chance, so that many writers don't come back together.
    pub(crate) fn pause(&self, tries: u32) -> Duration {
        let full = (self.first_pause * 2u32.saturating_pow(tries.min(10))).min(Duration::from_secs(5));
        full.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}
