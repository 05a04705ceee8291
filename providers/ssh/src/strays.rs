//! What a host remembers as karmaform's, below a directory that is ours, and nobody knows any more. Reads only.
//!
//! The host does not remember whose a thing is, and several states may share one; so only what is in a directory of a composite of ours is told, which
//! nobody else puts anything into.

use std::collections::BTreeSet;

use karmaform_model::{Diagnostic, Diagnostics, Known, Stray};

use crate::client::Client;
use crate::look::Look;
use crate::owned::{ADOPTED, Owned};
use crate::values::text;

/// Types that are told, and named by their `path`.
const TYPES: [&str; 3] = ["ssh_file", "ssh_directory", "ssh_artifact"];
const DIRECTORY: &str = "ssh_directory";

/// Looks: once for what the host remembers, and once more for what of that is still there, if there is anything.
pub(crate) async fn strays(client: &Client, known: &[Known]) -> (Vec<Stray>, Diagnostics) {
    let (mut found, mut wrong) = (Vec::new(), Diagnostics::default());
    match look(client, known).await {
        Ok(looked) => {
            for (path, beside, is_there) in looked {
                match is_there {
                    Ok(true) => found.push(Stray { name: format!("{path} on {}", client.place()), beside }),
                    Ok(false) => {}
                    Err(error) => wrong.push(error),
                }
            }
        }
        Err(error) => wrong.push(error),
    }
    (found, wrong)
}

/// Each that may be one: its path, the place of the directory it is in, and whether it is there.
async fn look(client: &Client, known: &[Known]) -> Result<Vec<(String, usize, Result<bool, Diagnostic>)>, Diagnostic> {
    let candidates = candidates(&client.look(&[]).await?.owned, known);
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let looks: Vec<Look> = candidates.iter().map(|(path, _)| Look::Directory { path: path.clone() }).collect();
    let seen = client.look(&looks).await?;
    let told = |(path, beside): (String, usize)| {
        let is_there = seen.path(&path).map(|found| found.is_some());
        (path, beside, is_there)
    };
    Ok(candidates.into_iter().map(told).collect())
}

fn candidates(owned: &Owned, known: &[Known]) -> Vec<(String, usize)> {
    let path = |one: &Known| TYPES.contains(&one.resource_type.as_str()).then(|| text(&one.object, "path").map(str::to_owned)).flatten();
    let names: BTreeSet<String> = known.iter().filter_map(path).collect();
    let directories: Vec<(String, usize)> = known
        .iter()
        .enumerate()
        .filter(|(_, one)| one.is_ours && one.is_part && one.resource_type == DIRECTORY)
        .filter_map(|(index, one)| Some((path(one)?, index)))
        // A disk that was there, empty.
        .filter(|(path, _)| !owned.has(ADOPTED, path))
        .map(|(path, index)| (format!("{path}/"), index))
        .collect();
    // The nearest directory: the longest of those that it is below.
    let nearest = |path: &str| directories.iter().filter(|(d, _)| path.starts_with(d.as_str())).max_by_key(|(d, _)| d.len());
    let remembered = TYPES.iter().flat_map(|kind| owned.of(kind)).filter(|path| !names.contains(*path));
    remembered.filter_map(|path| Some((path.to_owned(), nearest(path)?.1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_directory_of_ours_and_not_known_is_a_stray() {
        let known = |resource_type: &str, path: &str, is_ours: bool| Known {
            resource_type: resource_type.to_owned(),
            is_part: path != "/srv",
            is_ours,
            object: [("path".to_owned(), path.into())].into_iter().collect(),
        };
        let known = [
            known("ssh_directory", "/etc/etcd/main", true),
            known("ssh_directory", "/etc/etcd/main/pki", true),
            known("ssh_file", "/etc/etcd/main/pki/ca.crt", true),
            known("ssh_file", "/etc/etcd/main/pki/new.crt", false),
            known("ssh_directory", "/etc/planned", false),
            // A user's own, and a disk that was there.
            known("ssh_directory", "/srv", true),
            known("ssh_directory", "/data", true),
        ];
        let owned = Owned::parse(
            "ssh_file\t/etc/etcd/main/pki/ca.crt\t\nssh_file\t/etc/etcd/main/pki/new.crt\t\nssh_file\t/etc/etcd/main/pki/old.crt\t\n\
             ssh_directory\t/etc/etcd/main\t\nssh_directory\t/etc/etcd/main/old\t\nssh_file\t/etc/etcd/mainly\t\nssh_file\t/etc/planned/x\t\nssh_user\tetcd\t\n\
             ssh_file\t/srv/x\t\nssh_file\t/data/x\t\nadopted\t/data\t\n",
        );
        let found = candidates(&owned, &known);
        assert_eq!(found, [("/etc/etcd/main/pki/old.crt".to_owned(), 1), ("/etc/etcd/main/old".to_owned(), 0)]);
    }
}
