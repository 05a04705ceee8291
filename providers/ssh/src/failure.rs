//! Everything that can go wrong, in words: what happened, why, and what to do. No secret gets in here unredacted.

mod connecting;
mod moving;
mod running;

pub(crate) use connecting::{
    at_bastion, behind_bastion, handshake, host_key_changed, host_key_revoked, host_key_unknown, key_unreadable, log_in_refused, lost,
    no_route, passphrase_missing, passphrase_wrong, refused, too_many_keys, unreachable, unresolved,
};
pub(crate) use running::{MAKE_ROOM, abandoned, did_not_run, failed, foreign, garbled, no_channel, thread_ended, timed_out};

/// The last lines of a text, for a message.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<_> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
