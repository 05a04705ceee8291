use serde_json::Map;

use super::*;

fn at(text: &str) -> Address {
    text.parse().unwrap()
}

/// `ADDRESS` or `ADDRESS -> DEPENDENCY DEPENDENCY`, a line each; `ADDRESS (deposed KEY)` for an object set aside.
fn state(lines: &[&str]) -> Snapshot {
    let mut snapshot = Snapshot { lineage: "l".into(), serial: 1, ..Snapshot::default() };
    for line in lines {
        let (address, on) = line.split_once(" -> ").unwrap_or((line, ""));
        let resource = ResourceState {
            resource_type: "t".into(),
            provider: "p".into(),
            schema_version: 0,
            attributes: Map::new().into(),
            secret_paths: Vec::new(),
            dependencies: on.split_whitespace().map(at).collect(),
            create_before_destroy: false,
            protected: false,
            status: karmaform_model::Status::Ready,
        };
        match address.split_once(" (deposed ") {
            Some((address, key)) => drop(snapshot.deposed.insert((at(address), key.trim_end_matches(')').into()), resource)),
            None => drop(snapshot.resources.insert(at(address), resource)),
        }
    }
    snapshot
}

fn lines(snapshot: &Snapshot) -> Vec<String> {
    let resources = snapshot.resources.iter().map(|(a, r)| (a.to_string(), r));
    let deposed = snapshot.deposed.iter().map(|((a, key), r)| (format!("{a} (deposed {key})"), r));
    let line = |(address, resource): (String, &ResourceState)| {
        let on: Vec<_> = resource.dependencies.iter().map(ToString::to_string).collect();
        if on.is_empty() { address } else { format!("{address} -> {}", on.join(" ")) }
    };
    resources.chain(deposed).map(line).collect()
}

#[test]
fn addresses_and_dependencies_move_together() {
    let one = ["a.x", "b.y -> a.x", "a.x (deposed 0a1b2c3d)", "b.y (deposed 0a1b2c3d) -> a.x"];
    let counted = ["a.x[0]", "a.x[1]", "b.y -> a.x", "b.z -> a.x[0]", "b.one -> a.x[1]"];
    let composite = [
        "c.main",
        "c.main/ca",
        "c.main/member[\"a\"]/unit -> c.main/ca",
        "c.main/member[\"b\"]/unit -> c.main/ca",
        "b.y -> c.main",
        "b.z -> c.main/ca",
        "c.main2",
    ];
    for (before, from, to, after) in [
        (&one[..], "a.x", "a.new", &["a.new", "b.y -> a.new", "a.new (deposed 0a1b2c3d)", "b.y (deposed 0a1b2c3d) -> a.new"][..]),
        (&one, "a.x", "a.x[0]", &["a.x[0]", "b.y -> a.x[0]", "a.x[0] (deposed 0a1b2c3d)", "b.y (deposed 0a1b2c3d) -> a.x[0]"]),
        (&counted, "a.x", "a.n", &["a.n[0]", "a.n[1]", "b.one -> a.n[1]", "b.y -> a.n", "b.z -> a.n[0]"]),
        (&counted, "a.x[0]", "a.x[\"k\"]", &["a.x[1]", "a.x[\"k\"]", "b.one -> a.x[1]", "b.y -> a.x", "b.z -> a.x[\"k\"]"]),
        (&counted, "a.x[0]", "a.n", &["a.n", "a.x[1]", "b.one -> a.x[1]", "b.y -> a.n a.x", "b.z -> a.n"]),
        (&counted, "a.x[0]", "a.x", &["a.x", "a.x[1]", "b.one -> a.x[1]", "b.y -> a.x", "b.z -> a.x"]),
        (&["a.x[0]", "b.y -> a.x"], "a.x[0]", "a.n[5]", &["a.n[5]", "b.y -> a.n[5]"]),
        (
            &composite,
            "c.main",
            "c.prod",
            &[
                "b.y -> c.prod",
                "b.z -> c.prod/ca",
                "c.main2",
                "c.prod",
                "c.prod/ca",
                "c.prod/member[\"a\"]/unit -> c.prod/ca",
                "c.prod/member[\"b\"]/unit -> c.prod/ca",
            ],
        ),
        (
            &["c.m/member[\"a\"]", "c.m/member[\"a\"]/unit -> c.m/member[\"a\"]", "c.m/member[\"b\"]"],
            "c.m/member[\"a\"]",
            "c.m/member[\"x\"]",
            &["c.m/member[\"b\"]", "c.m/member[\"x\"]", "c.m/member[\"x\"]/unit -> c.m/member[\"x\"]"],
        ),
    ] {
        let next = moved(&state(before), &at(from), &at(to)).unwrap_or_else(|d| panic!("{from} to {to}: {d:?}"));
        assert_eq!(lines(&next), after, "{from} to {to}");
    }
}

#[test]
fn what_terraform_refuses_is_refused() {
    let snapshot = state(&["a.x[0]", "a.x[1]", "a.y", "c.m", "c.m/ca", "c.m/key", "c.n", "a.left (deposed 0a1b2c3d)"]);
    for (from, to, summary, words) in [
        ("a.nope", "a.z", "No such resource in the state", "holds nothing at a.nope"),
        ("a.x[5]", "a.z", "No such resource in the state", "holds nothing at a.x[5]"),
        ("a.y", "b.y", "Invalid state move request", "not of one type"),
        ("a.y", "data.a.y", "Invalid state move request", "not of one type"),
        ("c.m/ca", "c.n/key", "Invalid state move request", "not of one type"),
        ("c.m", "c.n/ca", "Invalid state move request", "not of one type"),
        ("a.y", "a.x[1]", "Invalid target address", "a.x[1] is in the state already"),
        ("a.x", "a.y", "Invalid target address", "a.y is in the state already"),
        ("a.x[0]", "a.y", "Invalid target address", "a.y is in the state already"),
        ("a.y", "a.y", "Invalid target address", "a.y is in the state already"),
        ("a.y", "a.left", "Invalid target address", "a.left is in the state already"),
        ("c.m", "c.n", "Invalid target address", "c.n is in the state already"),
        ("a.x", "a.z[0]", "Invalid target address", "a whole resource with 2 instances"),
    ] {
        let refused = moved(&snapshot, &at(from), &at(to)).expect_err(from);
        assert!(refused.summary == summary && refused.detail.contains(words), "{from} to {to}: {refused:?}");
    }
}
