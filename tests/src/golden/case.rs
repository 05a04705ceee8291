//! The text format of a case: a comment, then sections under `-- NAME --` lines. Knows nothing of what sections mean.

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    /// What it shows: the lines above the first section.
    pub(super) comment: String,
    /// In their order.
    pub(super) sections: Vec<Section>,
}

/// One section.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    /// Between the dashes.
    pub(super) name: String,
    /// Up to the next section, without blank lines around it.
    pub(super) body: String,
}

pub(super) fn parse(text: &str) -> Case {
    let mut case = Case { comment: String::new(), sections: Vec::new() };
    for line in text.lines() {
        let name = line.strip_prefix("-- ").and_then(|l| l.strip_suffix(" --"));
        match (name, case.sections.last_mut()) {
            (Some(name), _) => case.sections.push(Section { name: name.to_owned(), body: String::new() }),
            (None, Some(section)) => section.body.extend([line, "\n"]),
            (None, None) => case.comment.extend([line, "\n"]),
        }
    }
    for section in &mut case.sections {
        section.body = trimmed(&section.body);
    }
    case
}

pub(super) fn print(case: &Case) -> String {
    let sections = case.sections.iter().map(|s| format!("-- {} --\n{}", s.name, s.body));
    case.comment.clone() + &sections.collect::<String>()
}

/// Without blank lines around it and blanks at line ends; a newline at its end if it is not empty.
pub(super) fn trimmed(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    let start = lines.iter().position(|l| !l.is_empty()).unwrap_or(lines.len());
    let end = lines.iter().rposition(|l| !l.is_empty()).map_or(start, |e| e + 1);
    lines[start..end].iter().flat_map(|l| [l, "\n"]).collect()
}

#[test]
fn a_case_prints_as_it_was_written() {
    let text = "# A case.\n-- main.kf.hcl --\na = 1\n\nb = 2\n-- $ plan --\n-- world --\nx\n";
    assert_eq!(print(&parse(text)), text);
    assert_eq!(print(&parse("# A.\n-- x --\n\n  y  \n\n")), "# A.\n-- x --\n  y\n");
}
