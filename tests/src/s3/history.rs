//! What earlier runs left, looked at and brought back.

use super::Server;

#[test]
fn what_a_run_left_can_be_seen_and_brought_back() {
    for server in Server::all("the history of a state on S3") {
        let key = server.key("history");
        let project = server.project(&key);
        assert!(project.must(0, &["state", "history"]).contains("No run has left a generation yet"));
        for count in [3, 5, 1] {
            server.configure(&project, &key, count);
            project.apply();
        }
        // A run without changes leaves none.
        project.apply();
        let listed: Vec<serde_json::Value> = serde_json::from_str(&project.must(0, &["state", "history", "-json"])).expect("JSON");
        let counts: Vec<_> = listed.iter().map(|g| g["resources"].as_u64()).collect();
        assert_eq!(counts, [Some(3), Some(5), Some(1)], "{listed:?}");
        assert!(listed.iter().all(|g| g["operation"] == "OperationTypeApply" && g["who"].as_str().is_some_and(|w| w.contains('@'))));
        assert!(listed[0]["configuration"] != listed[1]["configuration"]);
        let serial = listed[1]["serial"].to_string();
        let flag = format!("-generation={serial}");
        assert!(project.must(0, &["state", "show", &flag, "terraform_data.thing[4]"]).contains("n4"));
        assert_eq!(project.must(0, &["state", "pull", &flag]).matches("\"index_key\"").count(), 5);
        let refused = project.must(1, &["state", "restore", "4711"]);
        assert!(
            refused.contains("serial 4711 is not kept") && refused.contains(&format!("Kept are {}, {serial}", listed[0]["serial"])),
            "{refused}"
        );

        let restored = project.must(0, &["state", "restore", &serial]);
        assert!(restored.contains("5 resources"), "{restored}");
        assert_eq!(project.must(0, &["state", "list"]).lines().count(), 5);
        assert!(project.must(0, &["plan"]).contains("4 to destroy"));
        project.apply();
        assert_eq!(project.must(0, &["state", "history"]).matches("state-restore").count(), 1);
    }
}
