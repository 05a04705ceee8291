//! What is only listed: the members of a control plane, for one. A fact `items` is such a list; each gets a table of its own.

use std::collections::BTreeSet;

use karmaform_model::{Address, Value};
use serde_json::Value as Json;

use super::Seen;
use crate::ui::resource::path_text;
use crate::ui::style::{Theme, Tone};
use crate::ui::table::table;
use crate::ui::values::visible;

/// The fact that is a list.
pub(super) const ITEMS: &str = "items";

/// A list below a composite, or on its own.
pub(super) struct Listed<'a> {
    /// What it is a list of: `members of karmada_control_plane.main`.
    title: String,
    composite: Option<Address>,
    name: String,
    /// The entries, or why there are none.
    items: Result<&'a [Value], String>,
}

/// What was seen of lists, as such.
pub(super) fn lists<'a>(seen: &[&'a Seen]) -> Vec<Listed<'a>> {
    seen.iter()
        .map(|one| {
            let composite = one.address.composite();
            let name = path_text(&one.address);
            let title = composite.as_ref().map_or_else(|| one.address.to_string(), |c| format!("{name} of {c}"));
            let items = match &one.facts {
                Ok(Some(facts)) => facts.get(ITEMS).and_then(Value::as_items).ok_or_else(|| {
                    let why = facts.get("problem").and_then(Value::as_str);
                    why.unwrap_or("Its API does not answer.").to_owned()
                }),
                Ok(None) => Err("It is not there.".to_owned()),
                Err(error) => Err(error.detail.clone()),
            };
            Listed { title, composite, name, items }
        })
        .collect()
}

impl Listed<'_> {
    /// Nothing in it says that it is not ready.
    pub(super) fn is_well(&self) -> bool {
        self.items.as_ref().is_ok_and(|items| items.iter().all(|i| ready(i) != Some(false)))
    }

    /// It is a part of this composite: under which name it is told, and its entries; null if nobody could list them.
    pub(super) fn of(&self, composite: &Address) -> Option<(&str, Json)> {
        let entries = || self.items.as_ref().map_or(Json::Null, |items| items.iter().map(karmaform_model::to_json).collect());
        (self.composite.as_ref() == Some(composite)).then(|| (self.name.as_str(), entries()))
    }
}

/// `None` if it does not say.
fn ready(item: &Value) -> Option<bool> {
    item.get("ready").and_then(Value::as_str).map(|r| r == "True")
}

/// A table for each.
pub(super) fn text(lists: &[Listed<'_>], theme: &Theme) -> String {
    let mut out = String::new();
    for list in lists {
        out.push_str(&format!("\n{}\n", theme.strong(Tone::Plain, &list.title)));
        match &list.items {
            Err(why) => out.push_str(&format!("Can't be listed. {}\n", visible(why))),
            Ok([]) => out.push_str("None.\n"),
            Ok(items) => out.push_str(&entries(items, theme)),
        }
    }
    out
}

fn entries(items: &[Value], theme: &Theme) -> String {
    let names: BTreeSet<&str> = items.iter().filter_map(Value::as_entries).flat_map(|e| e.keys().map(String::as_str)).collect();
    // What it is called comes first, and then how it is.
    let first = ["name", "mode", "ready", "version"].into_iter().filter(|n| names.contains(n));
    let columns: Vec<&str> = first.clone().chain(names.iter().copied().filter(|n| !first.clone().any(|f| f == *n))).collect();
    let header: Vec<String> = columns.iter().map(|n| n.replace('_', " ")).collect();
    let cell = |item: &Value, name: &str| {
        let Some(text) = item.get(name).and_then(Value::as_str).filter(|t| !t.is_empty()) else { return ("-".to_owned(), Tone::Faint) };
        let tone = match (name, ready(item)) {
            ("name", _) => Tone::Bold,
            ("ready", Some(true)) => Tone::Add,
            ("ready", _) => Tone::Remove,
            _ => Tone::Plain,
        };
        (visible(text), tone)
    };
    let rows: Vec<Vec<(String, Tone)>> = items.iter().map(|item| columns.iter().map(|n| cell(item, n)).collect()).collect();
    table(&header, &rows, theme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karmaform_model::{Diagnostic, Object, Type};

    fn seen(facts: Result<Option<Object>, Diagnostic>) -> Seen {
        let address = Address::managed("karmada_control_plane", "a").with_child(&[karmaform_model::ChildStep::new("members")]);
        Seen { address, resource_type: "kubernetes_list".to_owned(), known: Object::new(), facts }
    }

    fn member(cells: &[(&str, &str)]) -> Value {
        Value::map(Type::String, cells.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect())
    }

    #[test]
    fn members_are_told_with_how_they_are() {
        let items = vec![
            member(&[("name", "eu1"), ("version", "v1.30.1"), ("mode", "Push"), ("ready", "True"), ("age", "3d")]),
            member(&[("name", "eu2"), ("version", ""), ("mode", "Pull"), ("ready", "Unknown"), ("age", "1h")]),
        ];
        let facts = Object::from([(ITEMS.to_owned(), Value::list(Type::map(Type::String), items))]);
        let all = [seen(Ok(Some(facts)))];
        let lists = lists(&all.each_ref());
        let text = text(&lists, &Theme::plain());
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(['│', '┆', ' ']).filter(|w| !w.is_empty()).collect()).collect();
        assert!(lines.contains(&vec!["members", "of", "karmada_control_plane.a"]), "{text}");
        assert!(lines.contains(&vec!["name", "mode", "ready", "version", "age"]), "{text}");
        assert!(lines.contains(&vec!["eu2", "Pull", "Unknown", "-", "1h"]), "{text}");
        assert!(!lists[0].is_well());
        let (name, json) = lists[0].of(&Address::managed("karmada_control_plane", "a")).unwrap();
        assert_eq!((name, json[0]["mode"].as_str()), ("members", Some("Push")));
        assert!(lists[0].of(&Address::managed("karmada_control_plane", "b")).is_none());
    }

    #[test]
    fn what_could_not_be_listed_says_why() {
        let all = [seen(Ok(Some(Object::new()))), seen(Err(Diagnostic::error("No", "Nobody is there.")))];
        let lists = lists(&all.each_ref());
        let text = text(&lists, &Theme::plain());
        assert!(text.contains("Can't be listed. Its API does not answer.") && text.contains("Nobody is there."), "{text}");
        assert_eq!(lists[0].of(&Address::managed("karmada_control_plane", "a")).unwrap().1, Json::Null);
    }
}
