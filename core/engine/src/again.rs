//! When that is tried again of which its error says that it may work later.

use karmaform_model::Diagnostic;

/// How often something is tried: for about a quarter of a minute, unless whoever is asked wants more time.
const TRIES: u32 = 5;
/// The first pause between two tries, in milliseconds; each further one is twice as long.
pub(crate) const PAUSE: u64 = 1_000;

/// How long is waited in all for who wants more time, in milliseconds. Many steps may stand in line behind this one.
const LONGEST: u64 = 120_000;

/// A next try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// How long to wait for it, in milliseconds.
    pub pause: u64,
    /// What is told of the wait.
    pub note: String,
}

/// The next try after so many that failed, the last one so; `None`: it is given up.
pub fn again(error: &Diagnostic, tries: u32) -> Option<Again> {
    if !error.retryable || tries >= TRIES {
        return None;
    }
    let usual = PAUSE << tries.saturating_sub(1);
    let asked = error.retry_after.map(|seconds| seconds.saturating_mul(1_000)).filter(|asked| *asked > usual);
    if asked.is_some_and(|asked| asked.saturating_mul(u64::from(tries)) > LONGEST) {
        return None;
    }
    let when = asked.map(|asked| format!(" in {} s", asked / 1_000)).unwrap_or_default();
    Some(Again { pause: asked.unwrap_or(usual), note: format!("trying again{when} after: {}", error.summary) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_as_long_as_asked_for() {
        let pauses = |error: &Diagnostic| (1..=5).map_while(|tries| again(error, tries).map(|next| next.pause)).collect::<Vec<_>>();
        let error = || Diagnostic::error("Not now", "");
        assert_eq!(pauses(&error()), [0_u64; 0]);
        assert_eq!(pauses(&error().retryable()), [1_000, 2_000, 4_000, 8_000]);
        assert_eq!(pauses(&error().retryable_after(3)), [3_000, 3_000, 4_000, 8_000]);
        assert_eq!(pauses(&error().retryable_after(30)), [30_000; 4]);
        assert_eq!(pauses(&error().retryable_after(40)), [40_000; 3]);
        assert_eq!(pauses(&error().retryable_after(7_200)), [60_000; 2]);
        let note = |error: &Diagnostic| again(error, 1).map(|next| next.note);
        assert_eq!(note(&error().retryable()).as_deref(), Some("trying again after: Not now"));
        assert_eq!(note(&error().retryable_after(30)).as_deref(), Some("trying again in 30 s after: Not now"));
    }
}
