//! Whose the backups of a place are: it says so in the file `NAME.owner`, and so does the cluster. Two clusters that are called alike would remove each other's.

use karmaform_etcd::Turn;
use karmaform_model::Diagnostic;

use super::shelf::Shelf;
use super::work::Work;

/// Marks the place, or compares its mark. A restored cluster is the one that it was; one that is formed anew is another.
///
/// # Errors
/// The place is another cluster's, or can't be read or written.
pub(super) async fn check(shelf: &Shelf, name: &str, turn: &Turn, work: &Work) -> Result<(), Diagnostic> {
    let file = format!("{name}.owner");
    let there = shelf.read(&file).await?.map(|text| text.trim().to_owned());
    let here = turn.owner().await?;
    if there.is_some() && there == here {
        return Ok(());
    }
    if there.is_some() {
        let detail = format!("{} says that the backups there are of another cluster.", shelf.place(&file));
        return Err(Diagnostic::error("A place of another cluster", detail).with_hint(
            "Take another `s3.prefix`, directory or claim. If that cluster is gone and this one is in its place, remove that file: what lies there is this one's then.",
        ));
    }
    let owner = match here {
        Some(owner) => owner,
        None => {
            let owner = uuid::Uuid::new_v4().to_string();
            // A cluster that is full takes no note, and is saved all the same; the next one marks the place.
            if turn.own(&owner).await.is_err() {
                return Ok(());
            }
            owner
        }
    };
    shelf.put(&file, &work.file("owner", &owner)?).await
}
