//! `etcd backup install`: this program and whom it trusts as files in a folder. An image of etcd has no program that copies and perhaps no authorities, and
//! one of karmaform no etcd: so a pod begins with the one, and does its work in the other.

use std::fs::{File, Permissions};
use std::io::copy;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::Diagnostic;
use rustls_native_certs::load_native_certs;

use crate::app::{App, Ended};
use crate::disk::{reason, reason_to_write};

/// What the program is called.
const NAME: &str = "karmaform";
/// What the file with the authorities is called (PEM), if there are any.
const AUTHORITIES: &str = "ca-certificates.crt";

/// Arguments of `etcd backup install`.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The folder
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Runs it.
pub(super) fn run(app: &mut App, args: &Args) -> Ended {
    let directory = app.directory.join(&args.directory);
    let own = std::env::current_exe().and_then(File::open);
    let mut from = own.map_err(|e| Diagnostic::error("Not installed", format!("The program that runs can't be read: {}.", reason(&e))))?;
    let placed = File::create(directory.join(NAME)).and_then(|mut file| {
        copy(&mut from, &mut file)?;
        file.set_permissions(Permissions::from_mode(0o755))?;
        match authorities() {
            text if text.is_empty() => Ok(()),
            text => std::fs::write(directory.join(AUTHORITIES), text),
        }
    });
    placed.map_err(|e| {
        Diagnostic::error("Not installed", format!("{} can't be written: {}.", directory.join(NAME).display(), reason_to_write(&e)))
    })?;
    Ok(0)
}

/// Whom this machine trusts, as PEM (RFC 7468).
fn authorities() -> String {
    let pem = |der: &[u8]| {
        let text = STANDARD.encode(der);
        let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|l| std::str::from_utf8(l).ok()).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    };
    load_native_certs().certs.iter().map(|c| pem(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_written_as_others_read_them() {
        let found = load_native_certs().certs;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), authorities()).unwrap();
        let read = rustls_native_certs::load_certs_from_paths(Some(file.path()), None).certs;
        assert_eq!(read, found);
    }
}
