//! Failures of what was run on a host.

use karmaform_model::{Diagnostic, redact};

use super::tail;
use crate::host::{Output, Request};

/// Lines of output in a message.
const LINES: usize = 12;

/// What the system says of a full disk, or of one without room for more files.
const FULL: &str = "No space left on device";

/// What to do about it.
pub(crate) const MAKE_ROOM: &str = "Make room on the host (\"df -h\", \"df -i\"), then run again.";

/// Complaints of the system that mean the same whatever was being done, with a summary and advice.
const CAUSES: &[(&str, &str, &str)] = &[
    (FULL, "Disk is full", MAKE_ROOM),
    ("Disk quota exceeded", "Disk quota is exceeded", "Make room, or raise the quota, then run again."),
    ("Read-only file system", "File system is read-only", "Choose another path, or mount the file system for writing."),
    ("Permission denied", "Permission denied", "Log in as root, or as a user that may use \"sudo\" without a password."),
    ("Operation not permitted", "Permission denied", "Log in as root, check \"sudo\", and that the file is not immutable (\"lsattr\")."),
    ("invalid user", "No such user or group", "Create it first, for example with an ssh_user that this resource refers to."),
    ("invalid group", "No such user or group", "Create it first, for example with an ssh_user that this resource refers to."),
    ("Device or resource busy", "Path is in use", "It is probably a mount point: unmount it first."),
    ("System has not been booted with systemd", "Host does not run systemd", "Units need systemd as the host's init."),
    ("command not found", "Command not found on the host", "Install the program that is missing."),
    (": not found", "Command not found on the host", "Install the program that is missing."),
];

/// A script ended with a failure.
pub(crate) fn failed(what: &str, output: &Output, secrets: &[String]) -> Diagnostic {
    let (reason, text) = output.reason().unwrap_or_default();
    let complaint = redact(&tail(&output.stderr, LINES), secrets);
    match reason.as_str() {
        "exists" => return foreign(what, &text),
        "checksum" => {
            return Diagnostic::error(
                "File did not arrive as it was sent",
                format!("{what}: what arrived has the SHA-256 sum {text}, not the expected one. Nothing was changed."),
            )
            .with_hint("Run again.")
            .retryable();
        }
        "check" => return refused(what, &text, output.section("said").unwrap_or_default(), secrets),
        "part" => {
            return Diagnostic::error("File did not arrive whole", format!("{what}: a part of it is there, and the rest is missing."))
                .with_hint("Run again; what has arrived need not be sent once more.")
                .retryable();
        }
        "held" => {
            let (seconds, who) = text.split_once(' ').unwrap_or(("", &text));
            return Diagnostic::error("Host is held by another run", format!("{what}: {who} works on this host. Nothing was changed."))
                .with_hint(format!(
                    "Wait for that run to end, then run again. A host is free as soon as the connection of who holds it has ended; this one at \
                     the latest in {seconds} s, if nothing more is heard."
                ))
                .retryable();
        }
        "kind" => {
            return Diagnostic::error("Something else is at this path", format!("{what}: {text} exists and is not what is wanted there."))
                .with_hint("Remove it, or choose another path.");
        }
        "link" => {
            let detail = format!("{what}: a symbolic link has taken the place of {text}, so it is elsewhere. It was left as it is.");
            return Diagnostic::error("A link has taken a directory's place", detail).with_hint(format!(
                "Put {text} itself back (\"mv\", or a bind mount); do not only remove the link: what it leads to would be missing."
            ));
        }
        "occupied" => {
            return Diagnostic::error("Directory is not empty", format!("{what}: it still holds {text}. Nothing was deleted."))
                .with_hint("Remove what is in it, or set \"purge = true\" to have everything in it deleted.");
        }
        "room" | "running" | "root" | "unmounted" | "closed" | "moving" | "twice" | "inside" | "unit" | "left" | "mounted" | "nothing" => {
            return super::moving::failed(what, &reason, &text);
        }
        "locked" => {
            return Diagnostic::error("Host is busy", format!("{what}: another run has been changing this host for 30 s."))
                .with_hint("Wait for it to end, then run again.")
                .retryable();
        }
        _ => {}
    }
    let full = output.section("nospace").map(|m| String::from_utf8_lossy(m).lines().next().unwrap_or_default().to_owned());
    let where_ = if text.is_empty() { String::new() } else { format!(" ({text})") };
    let cause = CAUSES.iter().find(|(sign, ..)| complaint.contains(sign));
    // whatever else is said then, it comes from that, unless it has a cause of its own
    if let Some(mount) = full.filter(|_| cause.is_none_or(|(sign, ..)| *sign == FULL)) {
        let left = format!("No space is left on the device: nothing is free on the file system at {mount}.");
        let said = if complaint.is_empty() { String::new() } else { format!(" The host says:\n{complaint}") };
        return Diagnostic::error("Disk is full", format!("{what} failed{where_}. {left}{said}")).with_hint(MAKE_ROOM);
    }
    let said =
        if complaint.is_empty() { format!("It ended with status {}.", output.status) } else { format!("The host says:\n{complaint}") };
    match cause {
        Some((_, summary, hint)) => Diagnostic::error(*summary, format!("{what} failed{where_}. {said}")).with_hint(*hint),
        None => Diagnostic::error("Change failed on the host", format!("{what} failed{where_}. {said}")),
    }
}

/// What was to take a place did not pass what tries it.
fn refused(what: &str, status: &str, said: &[u8], secrets: &[String]) -> Diagnostic {
    let said = redact(&tail(&String::from_utf8_lossy(said), LINES), secrets);
    let said = match (status, said.as_str()) {
        ("124", "") => "It did not end within 30 s.".to_owned(),
        (_, "") => format!("It ended with status {status} and said nothing."),
        _ => format!("It said:\n{said}"),
    };
    let detail = format!("{what}: the command \"check\" refused the new file, so nothing was changed. {said}");
    Diagnostic::error("File was refused", detail)
}

/// Something is there that is not ours.
pub(crate) fn foreign(what: &str, thing: &str) -> Diagnostic {
    Diagnostic::error("Exists already", format!("{what}: {thing} exists on the host, and karmaform did not make it. It was left as it is."))
        .with_hint("Remove it from the host, or choose another name.")
}

/// The script never began.
pub(crate) fn did_not_run(stdout: &[u8], stderr: &[u8], status: i32, signal: Option<&str>, request: &Request) -> Diagnostic {
    let stderr = String::from_utf8_lossy(stderr);
    if request.script.has_begun(stdout) {
        let how = signal.map_or_else(|| format!("with status {status}"), |s| format!("by the signal {s}"));
        return Diagnostic::error("Script was interrupted", format!("The script on the host was ended {how} before it was done."))
            .with_hint("Look for a reboot, the out-of-memory killer, or somebody who ended it; then run again.")
            .retryable();
    }
    let said = tail(&format!("{}\n{stderr}", String::from_utf8_lossy(stdout)), LINES);
    if stderr.contains("sudo:") || stderr.contains("sudoers") || stderr.contains("sudo: not found") {
        return sudo_refused(&tail(&stderr, 3));
    }
    let said = if said.is_empty() { format!("It ended with status {status} and said nothing.") } else { format!("It said:\n{said}") };
    Diagnostic::error(
        "Commands can't be run on the host",
        format!("The log-in worked, but the user's shell did not run what was asked. {said}"),
    )
    .with_hint("Check the user's shell on the host, and that no forced command is set for the key.")
}

fn sudo_refused(said: &str) -> Diagnostic {
    // The last is what sudo-rs says, which some distributions have in its place.
    let asks = ["password is required", "terminal is required", "authentication is required"];
    let summary = if asks.iter().any(|words| said.contains(words)) {
        "Sudo asks for a password"
    } else if said.contains("not found") {
        "Sudo is not installed on the host"
    } else {
        "Sudo is refused"
    };
    Diagnostic::error(summary, format!("The log-in worked, but \"sudo -n\" did not. It said:\n{said}")).with_hint(
        "Allow it in /etc/sudoers.d, for example: \"deploy ALL=(ALL) NOPASSWD: ALL\"; or log in as root; or set \"sudo = false\" to manage \
         only what this user may write itself, with \"owner\" and \"group\" set to its own.",
    )
}

/// It took too long.
pub(crate) fn timed_out(request: &Request, stdout: &[u8], stderr: &[u8]) -> Diagnostic {
    let seconds = request.timeout.as_secs();
    let state = if request.script.has_begun(stdout) { "did not end" } else { "did not begin" };
    let last = redact(&tail(&String::from_utf8_lossy(stderr), 5), &request.secrets);
    let last = if last.is_empty() { "It complained of nothing until then.".to_owned() } else { format!("The last that it said:\n{last}") };
    Diagnostic::error("Host took too long", format!("The script {state} within {seconds} s. {last}"))
        .with_hint("Look at the load of the host, and for a file system that hangs (NFS).")
}

/// The server gives no channel.
pub(crate) fn no_channel(why: &str) -> Diagnostic {
    Diagnostic::error("Commands can't be run on the host", format!("The server opens no session to run a command in: {why}."))
        .with_hint("Check \"MaxSessions\" and forced commands in the server's configuration.")
}

/// The output makes no sense.
pub(crate) fn garbled() -> Diagnostic {
    Diagnostic::error("Output of the host can't be read", "There was too much output, or something else wrote into it.")
}

/// Nobody waits for it.
pub(crate) fn abandoned() -> Diagnostic {
    Diagnostic::error("Given up", "Nobody waits for this any more.")
}

/// A bug of ours: the host's thread is gone.
pub(crate) fn thread_ended() -> Diagnostic {
    Diagnostic::error("Host's thread has ended", "The thread that talks to the host has ended. This is a bug.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_become_causes() {
        let check = |stderr: &str, summary: &str| {
            let output = Output { status: 1, stderr: stderr.to_owned(), ..Output::default() };
            let failure = failed("Writing /a on h", &output, &["hunter2".to_owned()]);
            assert_eq!(failure.summary, summary, "{stderr}");
            assert!(!failure.detail.contains("hunter2"));
        };
        check("cat: write error: No space left on device\n", "Disk is full");
        check("mktemp: failed: Read-only file system", "File system is read-only");
        check("chown: invalid user: 'x:y'", "No such user or group");
        check("sh: 3: useradd: not found", "Command not found on the host");
        check("bad password hunter2", "Change failed on the host");
        check("", "Change failed on the host");
    }

    #[test]
    fn reasons_of_scripts_come_first() {
        let check = |said: &str, summary: &str| {
            let output =
                Output { status: 3, stdout: format!("\nkfx fail {said}\n").into_bytes(), mark: "kfx".to_owned(), ..Output::default() };
            let failure = failed("Making /a on h", &output, &[]);
            assert_eq!(failure.summary, summary);
            assert!(failure.detail.starts_with("Making /a on h"), "{}", failure.detail);
        };
        check("exists /a", "Exists already");
        check("occupied a, b", "Directory is not empty");
        check("kind /a", "Something else is at this path");
        check("link /a", "A link has taken a directory's place");
        check("part", "File did not arrive whole");
        check("check 1", "File was refused");
        check("room 9 KiB are needed", "No room on the other file system");
        check("running a.service", "Unit does not stop");
        check("root /a", "The root of a file system can't be moved");
        check("unmounted /a", "A file system is not mounted");
        check("closed /a", "No way to the new place");
        check("moving /a", "A directory that is being moved can't be deleted");
        check("inside /a", "A directory can't be moved into itself");
        check("twice /a and /b", "There are two of it");
        check("unit /a", "Another unit's data is on its way");
        check("left /a.karmaform-moved", "Something was left by a move");
        check("locked", "Host is busy");
        check("mounted /a", "Something is mounted inside");
        check("nothing /a", "Nothing to move");
        check("held 300 ops@ci", "Host is held by another run");
        check("write /a", "Change failed on the host");
    }

    #[test]
    fn a_full_disk_is_named_whatever_the_shell_calls_it() {
        let check = |stderr: &str, summary: &str| {
            let stdout = b"\nkfx nospace\n/var\n\nkfx nospace\n/var\n\nkfx fail write /var/lib/karmaform/owned\n".to_vec();
            let output = Output { status: 3, stdout, mark: "kfx".to_owned(), stderr: stderr.to_owned(), ..Output::default() };
            let failure = failed("Creating the user etcd on h", &output, &[]);
            assert_eq!(failure.summary, summary);
            failure.detail
        };
        let detail = check("sh: 40: printf: printf: I/O error", "Disk is full");
        assert!(detail.contains("(/var/lib/karmaform/owned). No space is left on the device") && detail.contains("at /var."), "{detail}");
        assert!(check("cat: write error: No space left on device", "Disk is full").contains("at /var."));
        check("mkdir: Permission denied", "Permission denied");
    }

    #[test]
    fn what_is_foreign_has_advice_that_can_be_followed() {
        let hints = foreign("Writing /a on h", "/a").hints;
        assert!(!hints.is_empty() && hints.iter().all(|h| !h.to_lowercase().contains("import")), "{hints:?}");
    }

    #[test]
    fn sudo_has_its_own_words() {
        assert_eq!(sudo_refused("sudo: a password is required").summary, "Sudo asks for a password");
        assert_eq!(sudo_refused("sudo: interactive authentication is required").summary, "Sudo asks for a password");
        assert_eq!(sudo_refused("x is not in the sudoers file").summary, "Sudo is refused");
        assert_eq!(sudo_refused("sh: 1: exec: sudo: not found").summary, "Sudo is not installed on the host");
    }

    #[test]
    fn what_did_not_run_to_its_end_says_how_far_it_came() {
        let script = crate::script::Script::new("true");
        let mark = script.text().strip_prefix("kf=").unwrap().lines().next().unwrap().to_owned();
        let begun = format!("{mark} begin\n");
        let request = Request {
            what: "Writing /a on h".to_owned(),
            script,
            payload: crate::host::Payload::Nothing,
            timeout: std::time::Duration::from_secs(60),
            secrets: vec!["hunter2".to_owned()],
        };
        let cut = did_not_run(begun.as_bytes(), b"", 137, None, &request);
        assert_eq!((cut.summary.as_str(), cut.retryable), ("Script was interrupted", true));
        assert!(cut.detail.contains("with status 137"), "{}", cut.detail);
        assert!(did_not_run(begun.as_bytes(), b"", 0, Some("KILL"), &request).detail.contains("by the signal KILL"));
        let forced = did_not_run(b"only sftp here\n", b"", 1, None, &request);
        assert_eq!(forced.summary, "Commands can't be run on the host");
        assert!(forced.detail.ends_with("It said:\nonly sftp here"), "{}", forced.detail);
        assert!(did_not_run(b"", b"", 1, None, &request).detail.contains("ended with status 1 and said nothing"));
        let slow = timed_out(&request, begun.as_bytes(), b"the password is hunter2");
        assert_eq!(slow.summary, "Host took too long");
        assert!(slow.detail.contains("did not end within 60 s") && !slow.detail.contains("hunter2"), "{}", slow.detail);
        assert!(timed_out(&request, b"", b"").detail.contains("did not begin within 60 s. It complained of nothing"));
    }

    #[test]
    fn what_is_wrong_with_the_server_or_with_us_is_said() {
        let closed = no_channel("administratively prohibited");
        assert_eq!(closed.summary, "Commands can't be run on the host");
        assert!(closed.detail.contains("administratively prohibited") && closed.hints[0].contains("MaxSessions"), "{closed:?}");
        assert_eq!(garbled().summary, "Output of the host can't be read");
        assert_eq!(thread_ended().summary, "Host's thread has ended");
    }
}
