//! Why a directory could not be moved.

use karmaform_model::Diagnostic;

/// In words, for what was being done, and what the script says of it.
pub(super) fn failed(what: &str, reason: &str, text: &str) -> Diagnostic {
    match reason {
        "room" => Diagnostic::error("No room on the other file system", format!("{what}: {text}. It is where it was."))
            .with_hint("Make room there (\"df -h\"), then run again; or choose another place."),
        "running" => Diagnostic::error("Unit does not stop", format!("{what}: {text} uses it and still runs. Nothing was moved."))
            .with_hint(format!("On the host, \"journalctl -u {text}\" shows more."))
            .retryable(),
        "root" => Diagnostic::error(
            "The root of a file system can't be moved",
            format!("{what}: a file system is mounted at {text}. Nothing was moved."),
        )
        .with_hint("To move to it, take a directory on it. What is at its root stays there; it can be mounted elsewhere."),
        "unmounted" => Diagnostic::error(
            "A file system is not mounted",
            format!("{what}: the host's /etc/fstab mounts one at {text}, and it is not mounted now. Nothing was moved."),
        )
        .with_hint(format!("On the host, \"mount {text}\"; then run again."))
        .with_hint("If that file system is lost for good, take its line out of /etc/fstab; then run again."),
        "closed" => Diagnostic::error("No way to the new place", format!("{what}: its owner may not enter {text}. Nothing was moved."))
            .with_hint(format!("On the host, \"chmod a+x {text}\" and the same for what is above it; or take another place.")),
        "moving" => Diagnostic::error(
            "A directory that is being moved can't be deleted",
            format!("{what}: an apply that moved it was cut off, and what it holds may be at either place. Nothing was deleted."),
        )
        .with_hint("Apply the configuration that moves it, or the path from before with `moves = true`; then delete it."),
        "inside" => Diagnostic::error(
            "A directory can't be moved into itself",
            format!("{what}: {text} is in it, by way of a link. Nothing was moved."),
        )
        .with_hint("Take another place."),
        "twice" => Diagnostic::error(
            "There are two of it",
            format!("{what}: something is in {text}, and nobody can say which counts. Nothing was moved."),
        )
        .with_hint("Look at both on the host (\"ls -lR --time-sort\"): move away what is old, or somebody else's; then run again."),
        "unit" => Diagnostic::error(
            "Another unit's data is on its way",
            format!("{what}: an apply that moved something to {text}, or from there, was cut off, and another unit uses that. Nothing was moved."),
        )
        .with_hint("Put `stopped_unit` back as it was, or apply what moves it; then run again.")
        .with_hint("If nobody does any more, take the lines \"moving\" out of /var/lib/karmaform/owned on the host, when all of it is in one place."),
        "left" => Diagnostic::error(
            "Something was left by a move",
            format!("{what}: {text} is there, and may be all that there is of it. Nothing was moved."),
        )
        .with_hint("If it is what is meant, take the ending \".karmaform-moved\" off its name on the host (\"mv\"); else move it away. Then run again."),
        "mounted" => Diagnostic::error(
            "Something is mounted inside",
            format!("{what}: a file system is mounted below {text}, and would be left behind. Nothing was moved."),
        )
        .with_hint("Unmount it, or move its content by hand first."),
        _ => Diagnostic::error(
            "Nothing to move",
            format!("{what}: there is nothing in any of the places where it may be. Nothing was moved."),
        )
        .with_hint("Is a file system not mounted? Mount it, and apply with the place on it.")
        .with_hint("If what was there is lost, apply with the place from before: then it can be replaced."),
    }
}
