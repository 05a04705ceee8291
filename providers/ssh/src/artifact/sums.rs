//! What the sum of a source must be: as it was given, or as a file says that was published with it.

use std::fs;
use std::io::{self, Read, Write};

use karmaform_model::{Diagnostic, Supply, without_credentials};

use super::fetch::receive;
use super::local;
use super::trust::Trusted;
use crate::sum::is_sum;

/// The largest file of sums that is read, in bytes. A release of Kubernetes has some hundred lines.
const LARGEST: usize = 1 << 20;

/// The sum that a supply asks for.
pub(super) fn expected(supply: &Supply, trusted: &Trusted) -> Result<Option<String>, Diagnostic> {
    match &supply.sha256 {
        Some(place) if !is_sum(place) => published(place, &supply.source, trusted).map(Some),
        sum => Ok(sum.clone()),
    }
}

/// What a file says of a source.
fn published(place: &str, source: &str, trusted: &Trusted) -> Result<String, Diagnostic> {
    let text = read(place, trusted)?;
    let path = source.split(['?', '#']).next().unwrap_or(source);
    find(&text, path).ok_or_else(|| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let detail = format!("{} has no SHA-256 sum of {name}, or several. Nothing was fetched.", without_credentials(place));
        Diagnostic::error("Source has no published sum", detail)
            .with_hint("It must have a line \"SUM  NAME\" for it, or hold its sum alone. Check that both are of one release.")
    })
}

/// Lines as `sha256sum` writes them, with or without `--tag`; or one sum without any name. Of several files of that name, the one whose
/// folders are most like the source's.
fn find(text: &str, path: &str) -> Option<String> {
    let lines: Vec<(&str, &str)> = text
        .lines()
        .map(|line| match line.strip_prefix("SHA256 (").and_then(|l| l.split_once(") = ")) {
            Some((name, sum)) => (sum.trim(), name),
            None => {
                let (sum, name) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
                (sum, name.trim_start().trim_start_matches('*'))
            }
        })
        .filter(|(sum, _)| is_sum(sum))
        .collect();
    if let [(sum, "")] = lines[..] {
        return Some(sum.to_lowercase());
    }
    let alike = |name: &str| name.rsplit('/').zip(path.rsplit('/')).take_while(|(a, b)| a == b).count();
    let most = lines.iter().map(|(_, name)| alike(name)).max().filter(|most| *most > 0)?;
    let mut sums: Vec<String> = lines.iter().filter(|(_, name)| alike(name) == most).map(|(sum, _)| sum.to_lowercase()).collect();
    sums.dedup();
    if sums.len() == 1 { sums.pop() } else { None }
}

fn read(place: &str, trusted: &Trusted) -> Result<String, Diagnostic> {
    let mut text = Limited(Vec::new());
    if place.starts_with("http://") || place.starts_with("https://") {
        receive(place, &mut text, trusted)?;
    } else {
        let unreadable = |why: String| {
            let place = without_credentials(local(place).and_then(|p| p.to_str()).unwrap_or(place));
            let detail = format!("\"sha256\" is no sum of 64 hexadecimal digits, so it is where one is written; but {place} {why}.");
            Diagnostic::error("Sum can't be read", detail).with_hint("Give the sum, or the path or URL of a file with it.")
        };
        let path = local(place).ok_or_else(|| unreadable("is no path and no http or https URL".to_owned()))?;
        let file = fs::File::open(path).map_err(|e| unreadable(format!("can't be opened on this machine ({e})")))?;
        io::copy(&mut file.take(LARGEST as u64 + 1), &mut text).map_err(|e| unreadable(format!("can't be read ({e})")))?;
    }
    Ok(String::from_utf8_lossy(&text.0).into_owned())
}

/// Takes no more than so much.
struct Limited(Vec<u8>);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST {
            return Err(io::Error::other("it is too large for a file of sums"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_found_by_name() {
        let (a, b) = ("a".repeat(64), "B".repeat(64));
        let check = |text: &str, expected: Option<&str>| assert_eq!(find(text, "e.tar.gz").as_deref(), expected, "{text}");
        check(&format!("{b}  other.tar.gz\n{a}  e.tar.gz\n"), Some(&a));
        check(&format!("{a} *release/e.tar.gz\r\n"), Some(&a));
        check(&format!("SHA256 (e.tar.gz) = {b}\n"), Some(&b.to_lowercase()));
        check(&format!("{a}\n"), Some(&a));
        check(&a, Some(&a));
        check(&format!("{a}  other.tar.gz\n"), None);
        check(&format!("{a}\n{b}\n"), None);
        check(&format!("{b}  amd64/e.tar.gz\n{a}  arm64/e.tar.gz\n"), None);
        let folders = format!("{b}  bin/amd64/e\n{a}  bin/arm64/e\n");
        assert_eq!(find(&folders, "https://x/bin/arm64/e").as_deref(), Some(a.as_str()));
        check("<html>not found</html>", None);
        check("", None);
    }
}
