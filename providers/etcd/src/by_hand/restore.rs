//! etcd's own restore, for a scratch etcd and for a member.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use karmaform_model::Diagnostic;

/// A member that is to begin with a snapshot.
#[derive(Clone, Debug)]
pub struct Beginning<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where the others reach it: `https://HOST:PORT`.
    pub url: &'a str,
    /// All members, as etcd takes them: `NAME=URL,...`.
    pub members: &'a str,
    /// What names the new cluster.
    pub token: &'a str,
    /// By how much the revision is raised; 0: it stays. From etcd 3.5.10 on.
    pub bump: u64,
}

/// Restores a snapshot into a directory that does not exist yet, by the programs on the path.
///
/// # Errors
/// A program is missing, or refuses the snapshot.
pub fn restore(file: &Path, directory: &Path, beginning: &Beginning<'_>) -> Result<(), Diagnostic> {
    let Beginning { name, url, members, token, bump } = beginning;
    let mut told = vec![
        format!("--data-dir={}", directory.display()),
        format!("--name={name}"),
        format!("--initial-cluster={members}"),
        format!("--initial-advertise-peer-urls={url}"),
        format!("--initial-cluster-token={token}"),
    ];
    if *bump > 0 {
        told.extend([format!("--bump-revision={bump}"), "--mark-compacted".to_owned()]);
    }
    run(
        &|program| {
            let mut command = Command::new(program);
            command.env("ETCDCTL_API", "3").stdin(Stdio::null());
            command
        },
        file,
        &told,
    )
}

/// `command`: a program by its name, in the place where it is to work.
pub(super) fn run(command: &dyn Fn(&str) -> Command, file: &Path, told: &[String]) -> Result<(), Diagnostic> {
    let run = |program: &str| command(program).args(["snapshot", "restore"]).arg(file).args(told).output();
    // Before 3.5 it was etcdctl that restored, from 3.6 on it is etcdutl alone.
    let output: Output = match run("etcdutl") {
        Err(error) if error.kind() == ErrorKind::NotFound => run("etcdctl").map_err(|e| missing("etcdctl", &e))?,
        other => other.map_err(|e| missing("etcdutl", &e))?,
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().lines().next_back().unwrap_or("nothing was said").to_owned();
    Err(Diagnostic::error("The snapshot does not restore", format!("etcd's own restore refused it: {said}.")))
}

pub(super) fn missing(name: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("A program is missing", format!("\"{name}\" can't be run: {error}.")).with_hint(
        "etcd, etcdctl and (from 3.5 on) etcdutl of the cluster's minor version are needed; a drill takes their directory as -programs.",
    )
}
