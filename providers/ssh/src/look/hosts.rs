//! Blocks of ours in the hosts file: their markers, and what was seen between them.

use karmaform_model::Diagnostic;

use super::Seen;

/// The file.
pub(crate) const HOSTS: &str = "/etc/hosts";

/// How the first line of a block begins; `script/looks.sh` looks for it, too.
const BEGIN: &str = "# BEGIN karmaform ";

/// How the last line of a block begins.
const END: &str = "# END karmaform ";

/// The first and the last line of a block.
pub(crate) fn markers(name: &str) -> (String, String) {
    (format!("{BEGIN}{name}"), format!("{END}{name}"))
}

/// What is said of a block of which a marker is gone, or there twice.
pub(crate) const DAMAGED: &str = "Block in the hosts file is damaged";

/// A block without an end: which lines are ours and which are not can't be told, so none is touched.
pub(crate) fn damaged(place: &str, name: &str) -> Diagnostic {
    let (begin, end) = markers(name);
    Diagnostic::error(DAMAGED, format!("In {HOSTS} on {place}, the block that begins with \"{begin}\" does not end with \"{end}\"."))
        .with_hint("Put that line back, or remove what is left of the block.")
}

impl Seen {
    /// The lines in the block of this name; `None` if there is no such block, and within what is there why it is none any more.
    pub(crate) fn hosts_block(&self, name: &str) -> Result<Option<Result<Vec<&str>, Diagnostic>>, Diagnostic> {
        let is_marker = |line: &str| line.starts_with(BEGIN) || line.starts_with(END);
        let lines: Vec<&str> = self.hosts.lines().collect();
        // the host prints nothing but blocks, unless it complains
        if let Some(complaint) = lines.first().filter(|l| !is_marker(l)) {
            let why = complaint.rsplit(": ").next().unwrap_or(complaint);
            return Err(Diagnostic::error("Hosts file can't be read", format!("{HOSTS} on {}: {why}.", self.place))
                .with_hint("Let the user that logs in read it, or log in as root."));
        }
        let (begin, end) = markers(name);
        let mut starts = (0..lines.len()).filter(|i| lines[*i] == begin);
        let Some(start) = starts.next() else { return Ok(None) };
        if starts.next().is_some() {
            let detail = format!("In {HOSTS} on {}, more than one block begins with \"{begin}\".", self.place);
            return Ok(Some(Err(Diagnostic::error(DAMAGED, detail).with_hint("Remove one of them, to its last line."))));
        }
        let inside: Vec<&str> = lines[start + 1..].iter().copied().take_while(|l| !is_marker(l)).collect();
        if lines.get(start + 1 + inside.len()) != Some(&end.as_str()) {
            return Ok(Some(Err(damaged(&self.place, name))));
        }
        Ok(Some(Ok(inside)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_what_its_markers_say() {
        let check = |hosts: &str, expected: Result<Option<&[&str]>, &str>| {
            let seen = Seen { hosts: hosts.to_owned(), place: "h".to_owned(), ..Seen::default() };
            match (seen.hosts_block("a").and_then(Option::transpose), expected) {
                (Ok(found), Ok(lines)) => assert_eq!(found.as_deref(), lines, "{hosts}"),
                (Err(e), Err(summary)) => assert!(e.summary == summary && !e.hints.is_empty(), "{hosts}: {e:?}"),
                (found, _) => panic!("{hosts}: {found:?}"),
            }
        };
        let other = "# BEGIN karmaform a.b\n10.0.0.9 z\n# END karmaform a.b\n";
        check("", Ok(None));
        check(other, Ok(None));
        check("# BEGIN karmaform a\n# END karmaform a\n", Ok(Some(&[])));
        check(&format!("{other}# BEGIN karmaform a\n10.0.0.1 x\n\n# END karmaform a\n{other}"), Ok(Some(&["10.0.0.1 x", ""])));
        check("# BEGIN karmaform a\n10.0.0.1 x\n", Err(DAMAGED));
        check(&format!("# BEGIN karmaform a\n10.0.0.1 x\n{other}"), Err(DAMAGED));
        check("# BEGIN karmaform a\n# END karmaform a\n# BEGIN karmaform a\n# END karmaform a\n", Err(DAMAGED));
        check("sed: can't read /etc/hosts: Permission denied\n", Err("Hosts file can't be read"));
    }
}
