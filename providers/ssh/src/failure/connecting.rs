//! Failures on the way to a host: network, host key, log-in.

use karmaform_model::Diagnostic;

/// Nothing came back.
pub(crate) fn unreachable(place: &str, seconds: u64) -> Diagnostic {
    Diagnostic::error(
        "Host can't be reached",
        format!("{place} did not answer within {seconds} s. It is down, or a firewall drops what is sent to it."),
    )
    .with_hint("Check the address, that the host runs, and the network between; \"connect_timeout\" changes how long to wait.")
    .retryable()
}

/// Something came back: no.
pub(crate) fn refused(place: &str) -> Diagnostic {
    Diagnostic::error("Connection refused", format!("{place} is up, but nothing listens on its SSH port."))
        .with_hint("Check the port, and that the SSH server runs on the host.")
        .retryable()
}

/// The network knows no way.
pub(crate) fn no_route(place: &str, why: &str) -> Diagnostic {
    Diagnostic::error("Host can't be reached", format!("A connection to {place} could not be made: {why}."))
        .with_hint("Check the address and the network.")
        .retryable()
}

/// The name is not known.
pub(crate) fn unresolved(address: &str, why: &str) -> Diagnostic {
    Diagnostic::error("Host name can't be resolved", format!("The address of {address} could not be found: {why}."))
        .with_hint("Check the spelling, or give the IP address.")
}

/// It answers, but not as an SSH server should.
pub(crate) fn handshake(place: &str, why: &str) -> Diagnostic {
    Diagnostic::error("SSH handshake failed", format!("{place} was reached, but no SSH connection came about: {why}."))
        .with_hint("Check that an SSH server listens on this port; OpenSSH older than 7.2 is too old.")
        .retryable()
}

/// An established connection ended.
pub(crate) fn lost(place: &str, why: &str) -> Diagnostic {
    Diagnostic::error(
        "Connection to the host was lost",
        format!("The connection to {place} broke: {why}. What was running there may or may not have been carried out."),
    )
    .with_hint("Check that the host is up, then run again; every step is safe to repeat.")
    .retryable()
}

/// No key of this host is known.
pub(crate) fn host_key_unknown(place: &str, address: &str, port: u16, fingerprint: &str, source: &str) -> Diagnostic {
    let port = if port == 22 { String::new() } else { format!("-p {port} ") };
    Diagnostic::error(
        "Host key is not known",
        format!(
            "{place} showed a key with the fingerprint {fingerprint}, and {source} has no key for it. So it can't be told from an impostor."
        ),
    )
    .with_hint(
        "Compare the fingerprint with the host's own: \"for k in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $k; done\" on its console.",
    )
    .with_hint(format!(
        "If it is right, add it: \"ssh-keyscan {port}{address} >> {source}\"; or give the key in the argument \"host_key\"."
    ))
}

/// Another key than the known one.
pub(crate) fn host_key_changed(place: &str, name: &str, fingerprint: &str, expected: &[String], source: &str, pinned: bool) -> Diagnostic {
    let diagnostic = Diagnostic::error(
        "Host key has changed",
        format!(
            "{place} showed a key with the fingerprint {fingerprint}, but {source} says {}. Either the host was installed anew, or somebody is \
             between. Nothing was sent to it.",
            expected.join(" or ")
        ),
    )
    .with_hint("Find out why before anything else: compare with \"for k in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $k; done\" on the host's console.");
    if pinned {
        diagnostic.with_hint("If the new key is right, change \"host_key\".")
    } else {
        diagnostic.with_hint(format!(
            "If the new key is right, remove the old one: \"ssh-keygen -R '{name}' -f {source}\", and add the new one with ssh-keyscan."
        ))
    }
}

/// A key marked `@revoked`.
pub(crate) fn host_key_revoked(place: &str, fingerprint: &str, source: &str) -> Diagnostic {
    Diagnostic::error("Host key is revoked", format!("{place} showed the key {fingerprint}, which {source} marks as revoked."))
        .with_hint("Give the host a new key.")
}

/// No key to be had from there.
pub(crate) fn key_unreadable(source: &str, why: &str) -> Diagnostic {
    Diagnostic::error("Private key can't be used", format!("The private key from {source} can't be used: {why}."))
        .with_hint("Check the path and its permissions, and that it is the private key, not the \".pub\" file.")
}

/// Encrypted, and no passphrase.
pub(crate) fn passphrase_missing(source: &str) -> Diagnostic {
    Diagnostic::error("Private key needs a passphrase", format!("The private key from {source} is encrypted, and no passphrase is given."))
        .with_hint("Give \"passphrase\", or load the key into an agent and set \"agent = true\".")
}

/// Encrypted, and the wrong passphrase.
pub(crate) fn passphrase_wrong(source: &str) -> Diagnostic {
    Diagnostic::error("Passphrase is wrong", format!("The private key from {source} can't be decrypted with the given passphrase."))
}

/// The server wants something else.
pub(crate) fn log_in_refused(place: &str, user: &str, tried: &[String], accepted: &str) -> Diagnostic {
    let tried = if tried.is_empty() { "nothing, as no key, agent or password is given or found".to_owned() } else { tried.join(", ") };
    let accepted = if accepted.is_empty() { String::new() } else { format!(" The server accepts: {}.", accepted.replace(',', ", ")) };
    Diagnostic::error("Log-in refused", format!("{place} does not let the user \"{user}\" in. Tried: {tried}.{accepted}"))
        .with_hint("Check the user, and that the public key stands in the user's authorized_keys on the host.")
}

/// The connection ended while one key of an agent after the other was offered.
pub(crate) fn too_many_keys(lost: Diagnostic, count: usize) -> Diagnostic {
    lost.with_hint(format!(
        "The agent has {count} keys, and a server ends a log-in after some that it does not want (\"MaxAuthTries\", 6 by default): give \
         \"private_key_file\", or leave in the agent what this host wants (\"ssh-add -d\")."
    ))
}

/// It happened at the bastion.
pub(crate) fn at_bastion(mut error: Diagnostic, place: &str) -> Diagnostic {
    error.detail = format!("At the bastion {place}: {}", error.detail);
    error
}

/// The bastion can't get any further.
pub(crate) fn behind_bastion(place: &str, address: &str, port: u16, why: &str) -> Diagnostic {
    Diagnostic::error("Host can't be reached from the bastion", format!("The bastion {place} can't connect to {address}:{port}: {why}."))
        .with_hint("Check the address as seen from the bastion, and that it allows TCP forwarding.")
        .retryable()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_that_ends_after_many_keys_says_what_may_have_ended_it() {
        let told = too_many_keys(lost("h", "it was closed"), 9);
        assert_eq!((told.summary.as_str(), told.retryable), ("Connection to the host was lost", true));
        let says = |h: &String| h.contains("9 keys") && h.contains("MaxAuthTries") && h.contains("or leave in the agent");
        assert!(told.hints.iter().any(says), "{:?}", told.hints);
    }

    #[test]
    fn a_server_that_speaks_no_ssh_is_asked_again_and_named() {
        let failure = handshake("h:22", "Failed getting banner");
        assert_eq!((failure.summary.as_str(), failure.retryable), ("SSH handshake failed", true));
        assert_eq!(failure.detail, "h:22 was reached, but no SSH connection came about: Failed getting banner.");
    }
}
