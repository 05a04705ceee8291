//! Two lists against each other: which elements belong together, and what is shown of each.

use karmaform_model::{Kind, PathStep, Value};

use crate::redact::{same_marks, same_or_withheld};

use super::align::{Edit, LARGEST_ALIGNMENT, align, is_change, near_changes};
use super::style::Mark;
use super::values::Printer;

/// Of more secrets that come at once, what goes may be any.
const MOST_SECRETS: usize = 100;

impl Printer {
    pub(super) fn list_difference(&mut self, indent: usize, prefix: &str, before: &[Value], after: &[Value], suffix: &str) {
        self.line(indent, Mark::Change, format!("{prefix}["));
        // As in Terraform: one that only becomes secret, or is not any more, has its counterpart, and is shown as a change.
        let same = |i: usize, j: usize| same_or_withheld(Some(&before[i]), Some(&after[j]));
        let is_marked = |edit: &Edit| matches!(edit, Edit::Keep(i, j) if !same_marks(&before[*i], &after[*j]));
        let pairs = self.manner.untyped && is_by_place(before.len(), after.len(), same);
        let edits = if pairs { by_place(before.len(), same) } else { align(before.len(), after.len(), same) };
        let shown =
            if self.manner.whole { vec![true; edits.len()] } else { near_changes(&edits, 1, |edit| is_change(edit) || is_marked(edit)) };
        let secrets: Vec<&Value> = after.iter().filter(|new| new.secret).collect();
        let mut at = 0;
        while at < edits.len() {
            match edits[at] {
                Edit::Keep(i, j) if is_marked(&edits[at]) => self.inner_difference(indent + 4, "", &before[i], &after[j], ","),
                Edit::Keep(i, _) if shown[at] => self.value(indent + 4, Mark::None, "", &before[i], ","),
                Edit::Keep(..) => {
                    let run = shown[at..].iter().take_while(|s| !**s).count();
                    self.hidden(indent + 4, run, "element");
                    at += run;
                    continue;
                }
                // Elements that changed inside are shown as such, not as some gone and some new.
                Edit::Drop(_) | Edit::Insert(_) => {
                    let run = edits[at..].iter().take_while(|e| is_change(e)).count();
                    let belong = |a: &Value, b: &Value| pairs || alike(a, b, self.manner.untyped);
                    for (old, new) in paired(&edits[at..at + run], |i, j| belong(&before[i], &after[j])) {
                        match (old, new) {
                            (Some(i), Some(j)) if i == j => self.inner_difference(indent + 4, "", &before[i], &after[j], ","),
                            (Some(i), Some(j)) => {
                                self.inner_difference(indent + 4, "", &going(&before[i], after.get(i), &secrets), &after[j], ",")
                            }
                            (Some(i), None) => self.value(indent + 4, Mark::Remove, "", &going(&before[i], after.get(i), &secrets), ","),
                            (None, Some(j)) => self.value(indent + 4, Mark::Add, "", &after[j], ","),
                            (None, None) => {}
                        }
                    }
                    at += run;
                    continue;
                }
            }
            at += 1;
        }
        self.line(indent, Mark::None, format!("]{suffix}"));
    }
}

/// An element that leaves its place, as secret as what comes `there`, and as what is the same among the `secrets` that come: who makes
/// elements of a list secret means those that were there, too.
fn going(old: &Value, there: Option<&Value>, secrets: &[&Value]) -> Value {
    // So many are not looked at one by one.
    let is_told = secrets.len() > MOST_SECRETS || secrets.iter().any(|new| same_or_withheld(Some(old), Some(new)));
    there.map_or_else(|| old.clone(), |new| as_secret_as(old, new)).secret_if(is_told)
}

/// A value with the marks of another, too, as far as both have the same parts.
fn as_secret_as(value: &Value, other: &Value) -> Value {
    let part = |step: PathStep, part: &Value| match other.at(std::slice::from_ref(&step)) {
        Some(counterpart) => as_secret_as(part, &counterpart),
        None => part.clone(),
    };
    value.map_parts(part).secret_if(other.secret)
}

/// True if as many elements are compared place by place: some went for good. Where all are still there, they only changed places.
pub(super) fn is_by_place(before: usize, after: usize, same: impl Fn(usize, usize) -> bool) -> bool {
    // So many are not looked for one by one.
    let is_large = before.saturating_mul(after) > LARGEST_ALIGNMENT;
    before == after && (is_large || (0..before).any(|i| !same(i, i) && (0..after).all(|j| !same(i, j))))
}

/// Of two sides with as many elements, those of the same place belong together.
pub(super) fn by_place(count: usize, same: impl Fn(usize, usize) -> bool) -> Vec<Edit> {
    let place = |i| if same(i, i) { vec![Edit::Keep(i, i)] } else { vec![Edit::Drop(i), Edit::Insert(i)] };
    (0..count).flat_map(place).collect()
}

/// What goes and what comes between two elements that stay: each that goes with the next that comes if they belong together, then what is left.
fn paired(edits: &[Edit], belong: impl Fn(usize, usize) -> bool) -> Vec<(Option<usize>, Option<usize>)> {
    let new = |e: &Edit| if let Edit::Insert(j) = e { Some(*j) } else { None };
    let mut coming = edits.iter().filter_map(new).peekable();
    let mut pairs = Vec::new();
    for edit in edits {
        if let Edit::Drop(i) = edit {
            pairs.push((Some(*i), coming.next_if(|j| belong(*i, *j))));
        }
    }
    pairs.extend(coming.map(|j| (None, Some(j))));
    pairs
}

/// Objects can change inside, and lists where they have a type; anything else is another element.
fn alike(a: &Value, b: &Value, untyped: bool) -> bool {
    let shape = |v: &Value| match v.kind {
        Kind::Map(..) | Kind::Object(_) => 1,
        Kind::List(..) | Kind::Tuple(_) if !untyped => 2,
        _ => 0,
    };
    !a.secret && !b.secret && shape(a) == shape(b) && shape(a) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::style::Theme;
    use crate::ui::values::Manner;

    fn check(before: Vec<Value>, after: Vec<Value>, expected: &[&str]) {
        let mut printer = Printer::comparing(Manner { untyped: true, whole: false });
        printer.difference(4, "x = ", &Value::tuple(before), &Value::tuple(after), "");
        let text = printer.finish(&Theme::plain());
        let shown: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.starts_with("# display in")).collect();
        assert_eq!(shown[1..shown.len() - 1], *expected);
    }

    fn secret(text: &str) -> Value {
        Value::from(text).secret()
    }

    const WARNING: &str = "# Warning: this attribute value will be marked as sensitive and will not";
    const HIDDEN: &str = "~ (sensitive value),";

    #[test]
    fn an_element_that_becomes_secret_has_its_counterpart() {
        let five = || ["1", "2", "3", "4", "5"].map(Value::from).to_vec();
        let change = |place: usize, value: Value| {
            let mut all = five();
            all[place] = value;
            all
        };
        check(five(), change(3, secret("4")), &["# (2 unchanged elements hidden)", "\"3\",", WARNING, HIDDEN, "\"5\","]);
        check(five(), change(0, secret("new")), &[WARNING, HIDDEN, "\"2\",", "# (3 unchanged elements hidden)"]);
        let moved = vec!["0".into(), "1".into(), secret("2"), "3".into()];
        check(vec!["1".into(), "2".into(), "3".into()], moved, &["+ \"0\",", "\"1\",", WARNING, HIDDEN, "\"3\","]);
    }

    #[test]
    fn what_goes_is_as_secret_as_what_comes() {
        let now = vec!["a".into(), secret("new"), "b".into()];
        check(vec!["a".into(), "old".into()], now, &["\"a\",", "- (sensitive value),", "+ (sensitive value),", "+ \"b\","]);
        // The same, elsewhere.
        let now = vec!["b".into(), secret("a")];
        check(vec!["a".into(), "b".into()], now, &["- (sensitive value),", "\"b\",", "+ (sensitive value),"]);
        let object = |key: Value, n: i64| Value::object([("key", key), ("n", n.into())]);
        let now = vec![object("other".into(), 1), object(secret("new"), 2), "a".into()];
        let new = ["+ {", "+ key = \"other\"", "+ n   = 1", "},", "+ {", "+ key = (sensitive value)", "+ n   = 2", "},"];
        let old = ["\"a\",", "- {", "- key = (sensitive value)", "- n   = 1", "},"];
        check(vec!["a".into(), object("old".into(), 1)], now, &[&new[..], &old[..]].concat());
        check(vec![object("old".into(), 1)], vec![], &["- {", "- key = \"old\"", "- n   = 1", "},"]);
    }
}
