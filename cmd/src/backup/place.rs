//! `s3://BUCKET/PREFIX/NAME` where an address could stand: backups that no state tells of, as when it is lost with all the rest. Asks nobody.

use karmaform_model::Diagnostic;

use super::settings::Bucket;
use super::shelf::of_file;

/// What such a place says.
#[derive(Debug)]
pub(crate) struct Place {
    /// The bucket, with nothing but its name and the prefix.
    pub(crate) bucket: Bucket,
    /// What the backups' names begin with: the name of their `etcd_backup`.
    pub(crate) name: String,
    /// The one backup that it names, if it names one.
    pub(crate) backup: Option<String>,
}

/// Reads one. `None`: it is none, but an address.
///
/// # Errors
/// A part of it is missing.
pub(crate) fn read(text: &str) -> Result<Option<Place>, Diagnostic> {
    let Some(rest) = text.strip_prefix("s3://") else { return Ok(None) };
    let parts = rest.split_once('/').and_then(|(bucket, path)| Some((bucket, path.rsplit_once('/')?)));
    let Some((bucket, (prefix, file))) = parts.filter(|(_, (_, file))| !file.is_empty()) else { return Err(none(text)) };
    let (name, backup) = of_file(file);
    let bucket = Bucket {
        bucket: bucket.to_owned(),
        prefix: prefix.to_owned(),
        region: None,
        endpoint: None,
        use_path_style: false,
        ca_certificate: None,
        keys: None,
    };
    Ok(Some(Place { bucket, name: name.to_owned(), backup: backup.map(str::to_owned) }))
}

/// What is no such place.
pub(crate) fn none(text: &str) -> Diagnostic {
    let detail = format!("\"{text}\" does not say where in the bucket they are, or whose.");
    Diagnostic::error("Not a place of backups", detail).with_hint(
        "Write s3://BUCKET/PREFIX/NAME, with the bucket and the prefix of the block `s3`, and the name that its backups begin with.",
    )
}

/// A place that names one backup, where something else says which one, too.
pub(crate) fn named_twice(place: &str, other: &str) -> Diagnostic {
    let detail = format!("{place} names one backup, and {other} says which one, too.");
    Diagnostic::error("Which backup?", detail).with_hint("Leave one of the two out.")
}

/// What the store says in the words of its block, in those of the flags.
pub(crate) fn in_flags(why: Diagnostic) -> Diagnostic {
    in_words(why, "Give -region, or set AWS_REGION; or give -endpoint, for")
}

/// In those of the environment.
pub(crate) fn in_environment(why: Diagnostic) -> Diagnostic {
    in_words(why, "Set AWS_REGION; or AWS_ENDPOINT_URL_S3, for")
}

fn in_words(mut why: Diagnostic, region: &str) -> Diagnostic {
    let worded =
        |text: &str| text.replace("of the block s3", "of the bucket").replace("Set region, or AWS_REGION; or endpoints, for", region);
    (why.summary, why.detail) = (worded(&why.summary), worded(&why.detail));
    why.hints.iter_mut().for_each(|hint| *hint = worded(hint));
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let told = |text: &str| {
            let place = read(text).map_err(|d| d.summary)?;
            Ok::<_, String>(place.map(|p| format!("{} {} {}", p.bucket.place(), p.name, p.backup.unwrap_or_default())))
        };
        assert_eq!(told("etcd_backup.main"), Ok(None));
        assert_eq!(told("s3://b/p/q/main"), Ok(Some("s3://b/p/q main ".to_owned())));
        for ending in ["", ".db", ".db.age", ".db.json"] {
            let text = format!("s3://b/p/main-2-20260102T030405Z{ending}");
            assert_eq!(told(&text), Ok(Some("s3://b/p main-2 main-2-20260102T030405Z".to_owned())));
        }
        for text in ["s3://", "s3://b", "s3://b/main", "s3://b/p/"] {
            assert_eq!(told(text), Err("Not a place of backups".to_owned()), "{text}");
        }
    }
}
