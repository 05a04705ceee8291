//! What starts a unit at its boot, by its file and by the links that there are. systemd calls a unit enabled that has any link at all, in whatever target.

use karmaform_model::{Object, Value};

use crate::look::{PathSeen, UnitSeen};
use crate::values::{boolean, text};

/// The folders in which a unit file wants links to the unit, going by its `[Install]` section; `None` where only systemd can read it.
fn wanted(content: &str) -> Option<Vec<String>> {
    let (mut is_install, mut found) = (false, Vec::new());
    for line in content.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            is_install = line == "[Install]";
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| is_install) else { continue };
        let folder = match name.trim() {
            "WantedBy" => "wants",
            "RequiredBy" => "requires",
            _ => continue,
        };
        // Specifiers, quotes, and a line that goes on in the next one.
        if value.contains(['%', '"', '\'', '\\']) {
            return None;
        }
        if value.trim().is_empty() {
            found.retain(|f: &String| !f.ends_with(folder));
        }
        found.extend(value.split_whitespace().map(|unit| format!("{unit}.{folder}")));
    }
    Some(found)
}

/// The folders in which there should be links to a unit whose file is as it was made; `None` where that can't be told. Of other files that change it
/// systemd reads the `[Install]` section, too.
fn wanted_of(unit: &UnitSeen, file: Option<&PathSeen>, known: Option<&Object>) -> Option<Vec<String>> {
    let known = known.filter(|_| unit.drop_ins.is_empty() && unit.for_many.is_empty())?;
    let sum = file?.sha256.as_deref()?;
    wanted(text(known, "content").filter(|_| text(known, "sha256") == Some(sum))?)
}

/// True for a unit that is to be enabled, and is started elsewhere than where its file says.
pub(super) fn lacks(unit: &UnitSeen, file: Option<&PathSeen>, known: Option<&Object>) -> bool {
    let is_to_be = known.is_some_and(|k| boolean(k, "enabled") == Some(true));
    // Where there is no link at all systemd has said so.
    is_to_be
        && !unit.starters.is_empty()
        && wanted_of(unit, file, known).is_some_and(|wanted| wanted.iter().any(|folder| !unit.starters.contains(folder)))
}

/// What is to be said of links that its file says nothing of, where somebody has said what may change the unit at all.
pub(super) fn beside(unit: &UnitSeen, file: Option<&PathSeen>, known: Option<&Object>) -> Vec<String> {
    let is_watched = known.and_then(|k| k.get("drop_ins")).and_then(Value::as_items).is_some();
    let Some(wanted) = wanted_of(unit, file, known).filter(|_| is_watched) else { return Vec::new() };
    let others = unit.starters.iter().filter(|folder| !wanted.contains(folder));
    others.map(|folder| format!("a link in {folder} starts it, too, of which its file says nothing")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_from_the_install_section_alone() {
        let of = |content: &str| wanted(content).map(|f| f.join(" "));
        assert_eq!(of("[Unit]\nWantedBy=x.target\n[Install]\n# WantedBy=y.target\nWantedBy = a.target  b.target\nRequiredBy=c.service\nAlias=d.service\n").as_deref(), Some("a.target.wants b.target.wants c.service.requires"));
        assert_eq!(of("[Install]\nWantedBy=a.target\nWantedBy=\nWantedBy=b.target\n").as_deref(), Some("b.target.wants"));
        assert_eq!(of("[Service]\nExecStart=/bin/true\n").as_deref(), Some(""));
        assert_eq!(of("[Install]\nWantedBy=a@%i.target\n"), None);
        assert_eq!(of("[Install]\nWantedBy=a.target \\\n b.target\n"), None);
    }
}
