//! The gate `ssh_disk`: what is written below a path is on the disk fast enough.

use std::sync::LazyLock;
use std::time::Duration;

use karmaform_model::{Attribute, BoxFuture, Diagnostic, Gate, GateAnswer, Object, Schema, Type};

use crate::client::{Act, Client};
use crate::failure;
use crate::script::quote;
use crate::values::{number, text};

/// How many writes are tried, of as many bytes as a small entry of etcd's log (`etcd`'s FAQ tries 2300).
const WRITES: u64 = 50;
/// How long all of them may take, in seconds. Who needs longer is far too slow.
const LONGEST: u64 = 30;
/// Milliseconds that a good disk stays below. Source: etcd's FAQ, on `wal_fsync_duration_seconds`.
const GOOD: f64 = 10.0;

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::new(
        "Tries how long a write takes until it is on the disk, and fails if that is too long. What it writes it takes away.",
        vec![
            Attribute::required("host", Type::Any, "Connection to the host."),
            Attribute::required("path", Type::String, "A directory, or where one will be: the nearest one above it is tried."),
            Attribute::required("limit", Type::Number, "Milliseconds that a write may take on average."),
            Attribute::optional("advice", Type::String, "What else can be done where it takes longer."),
        ],
    )
    .through("host")
});

/// The script, behind `path=`. What dd says last has the seconds.
const SCRIPT: &str = "while [ ! -d \"$path\" ]; do path=${path%/*}; [ -n \"$path\" ] || path=/; done
kf_new=$path/.karmaform.disk.$$
section written
timeout \"$longest\" dd if=/dev/zero of=\"$kf_new\" bs=2300 count=\"$count\" oflag=dsync 2>&1 >/dev/null
echo status $?";

/// The gate `ssh_disk`.
pub(crate) struct Disk;

impl Gate<Client> for Disk {
    fn name(&self) -> &'static str {
        "ssh_disk"
    }

    fn schema(&self) -> &Schema {
        &SCHEMA
    }

    fn check<'a>(&'a self, client: &'a Client, arguments: &'a Object) -> BoxFuture<'a, Result<GateAnswer, Diagnostic>> {
        Box::pin(async move {
            let path = text(arguments, "path").unwrap_or("/");
            let limit = number(arguments, "limit").unwrap_or_default();
            let body = format!("path={}\ncount={WRITES}\nlongest={LONGEST}\n{SCRIPT}", quote(path));
            let what = format!("Trying the disk of {path}");
            let act = Act::new(what.as_str(), body).with_timeout(Duration::from_secs(LONGEST + 30));
            let output = client.change(act).await?;
            if output.status != 0 || output.reason().is_some() {
                return Err(failure::failed(&format!("{what} on {}", client.place()), &output, &[]));
            }
            let said = String::from_utf8_lossy(output.section("written").unwrap_or_default()).into_owned();
            judge(&said, limit as f64, path, &client.place()).map_err(|slow| match text(arguments, "advice") {
                Some(advice) => slow.with_hint(advice),
                None => slow,
            })
        })
    }
}

/// What the tool said, in the words of a gate.
fn judge(said: &str, limit: f64, path: &str, place: &str) -> Result<GateAnswer, Diagnostic> {
    let status = said.lines().find_map(|l| l.strip_prefix("status "));
    let seconds = said.lines().filter_map(|l| l.rsplit_once(" copied, ")?.1.split_once(" s")?.0.parse::<f64>().ok()).next_back();
    let each = match (status, seconds) {
        (Some("124"), _) => (LONGEST * 1000) as f64 / WRITES as f64,
        (Some("0"), Some(seconds)) => seconds * 1000.0 / WRITES as f64,
        // A host whose tools say nothing of it is no reason to stop.
        _ => return Ok(GateAnswer::Passed(format!("how fast the disk of {path} is can't be told"))),
    };
    if each <= limit {
        let good = if each > GOOD { format!("; a good disk takes less than {GOOD:.0}") } else { String::new() };
        return Ok(GateAnswer::Passed(format!("{each:.1} ms until a write is on the disk{good}")));
    }
    let more = if status == Some("124") { "more than " } else { "" };
    Err(Diagnostic::error(
        "A disk is too slow",
        format!("On {place} a write below {path} takes {more}{each:.0} ms until it is on the disk; {limit:.0} ms are allowed. What was to write there was not made."),
    )
    .with_hint("Put it on a disk of its own, an SSD if possible; another guest on the same disk may be what slows it down."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_judged_by_what_a_write_takes() {
        let check = |said: &str, limit: f64| match judge(said, limit, "/var/lib/etcd", "10.0.0.1") {
            Ok(GateAnswer::Passed(seen) | GateAnswer::Waiting(seen)) => seen,
            Err(error) => format!("{}: {}", error.summary, error.detail),
        };
        let dd = |seconds: &str| {
            format!("50+0 records in\n50+0 records out\n115000 bytes (115 kB, 112 KiB) copied, {seconds} s, 2.2 MB/s\nstatus 0\n")
        };
        assert_eq!(check(&dd("0.0523"), 100.0), "1.0 ms until a write is on the disk");
        assert!(check(&dd("2.5"), 100.0).contains("50.0 ms until a write is on the disk; a good disk"));
        assert!(check(&dd("2.5"), 20.0).starts_with("A disk is too slow: On 10.0.0.1 a write below /var/lib/etcd takes 50 ms"));
        assert!(check("status 124\n", 100.0).contains("takes more than 600 ms"));
        assert!(check("dd: unknown flag\nstatus 1\n", 100.0).contains("can't be told"));
    }
}
