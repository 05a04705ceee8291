//! Commands that change the state, or look into what earlier runs left.

use serde_json::Value as Json;

use super::{Place, TWO};

#[test]
fn what_runs_left_in_a_local_file_can_be_seen_and_brought_back() {
    let place = Place::new(TWO);
    assert!(place.check(&["state", "history"], 0).stdout.contains("No run has left a generation yet"));
    place.check(&["plan"], 0);
    for input in ["one", "two", "two"] {
        place.write("main.kf.hcl", &TWO.replace("one", input));
        place.check(&["apply", "-auto-approve"], 0);
    }
    let listed = || -> Vec<Json> { serde_json::from_str(&place.check(&["state", "history", "-json"], 0).stdout).unwrap() };
    let all = listed();
    assert_eq!(all.len(), 2, "a run without changes leaves none: {all:?}");
    assert!(all.iter().all(|g| g["operation"] == "OperationTypeApply" && g["who"] == "user@host" && g["resources"] == 2), "{all:?}");
    let first = all[0]["serial"].to_string();
    let flag = format!("-generation={first}");
    assert!(place.check(&["state", "show", &flag, "terraform_data.a"], 0).stdout.contains("\"one\""));
    assert!(place.check(&["state", "pull", &flag], 0).stdout.contains("\"one\""));
    let refused = place.check(&["state", "restore", "4711"], 1).stderr;
    assert!(refused.contains("serial 4711 is not kept") && refused.contains(&format!("Kept are {first}, ")), "{refused}");
    assert!(place.check(&["state", "restore", &first], 0).stdout.contains("2 resources"));
    assert!(place.check(&["plan"], 0).stdout.contains("~ input  = \"one\" -> \"two\""));
    assert_eq!(listed().last().unwrap()["operation"], "state-restore");
    // Each state has a history of its own.
    std::fs::copy(place.path().join("karmaform.tfstate"), place.path().join("other.tfstate")).unwrap();
    place.check(&["state", "rm", "-state=other.tfstate", "terraform_data.a"], 0);
    let other: Vec<Json> = serde_json::from_str(&place.check(&["state", "history", "-json", "-state=other.tfstate"], 0).stdout).unwrap();
    assert_eq!((other.len(), &other[0]["operation"], &other[0]["resources"]), (1, &"state-rm".into(), &1.into()));
    let flag = format!("-generation={}", other[0]["serial"]);
    place.check(&["state", "show", "-state=other.tfstate", &flag, "terraform_data.b"], 0);
    place.check(&["state", "show", &flag, "terraform_data.b"], 1);
    assert_eq!(listed().len(), 3);
}
