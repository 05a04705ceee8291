//! From one backend to another, and what is said when a configuration names another one all of a sudden.

use super::Server;

#[test]
fn a_state_moves_and_an_empty_one_is_never_taken_for_the_truth() {
    for server in Server::all("moving a state to S3 and back") {
        let key = server.key("moving");
        let project = server.project(&key);
        let with_backend = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("read");
        let backend = server.backend(&key);
        let local = with_backend.replace(&backend, "");
        project.write("main.kf.hcl", &local);
        project.apply();

        project.write("main.kf.hcl", &with_backend);
        for command in [&["plan"][..], &["apply", "-auto-approve"], &["init"], &["state", "list"], &["destroy", "-auto-approve"]] {
            let refused = project.must(1, command);
            assert!(refused.contains("Backend configuration changed") && refused.contains("init -migrate-state"), "{command:?}: {refused}");
        }
        let moved = project.must(0, &["init", "-migrate-state"]);
        assert!(moved.contains("(3 resources) was copied from karmaform.tfstate to s3://"), "{moved}");
        project.no_changes();
        server.project(&key).no_changes();
        // What earlier runs left came along.
        let history = server.project(&key).must(0, &["state", "history", "-json"]);
        let all: Vec<serde_json::Value> = serde_json::from_str(&history).expect("JSON");
        assert!(moved.contains(" with its history") && all.len() == 1 && all[0]["operation"] == "OperationTypeApply", "{moved}{history}");
        let flag = format!("-generation={}", all[0]["serial"]);
        assert!(project.must(0, &["state", "show", &flag, "terraform_data.thing[2]"]).contains("\"n2\""));

        // Back, and the state that is there in the meantime is newer.
        server.configure(&project, &key, 4);
        project.apply();
        project.write("main.kf.hcl", &local.replace("count = 3", "count = 4"));
        let forced = ["init", "-migrate-state", "-force-copy"];
        // Secrets of a block that is gone are nowhere remembered.
        let refused = project.must(1, &forced);
        assert!(
            refused.contains("No credentials for the s3 backend") && refused.contains("Secrets of the former block are not remembered"),
            "{refused}"
        );
        let keys = [("AWS_ACCESS_KEY_ID", server.access_key.as_str()), ("AWS_SECRET_ACCESS_KEY", server.secret_key.as_str())];
        let ended = project.start_with(&forced[..2], &keys).end();
        assert!(ended.text.contains("There is a state at karmaform.tfstate already"), "{}", ended.text);
        let ended = project.start_with(&forced, &keys).end();
        assert_eq!(ended.code, Some(0), "{}", ended.text);
        project.no_changes();
        // Left where it is.
        project.write(
            "main.kf.hcl",
            &local
                .replace("count = 3", "count = 4")
                .replace("karmaform {\n", "karmaform {\n  backend \"local\" {\n    path = \"other.tfstate\"\n  }\n"),
        );
        assert!(project.must(1, &["plan"]).contains("Backend configuration changed"));
        project.must(0, &["init", "-reconfigure"]);
        assert!(project.must(0, &["plan"]).contains("4 to add"));
    }
}

#[test]
fn what_is_wrong_with_a_backend_is_said_once_and_clearly() {
    for server in Server::all("wrong backends") {
        let key = server.key("wrong");
        let project = server.project(&key);
        let good = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("read");
        let bucket = format!("\"{}\"", server.bucket);
        let secret = format!("\"{}\"", server.secret_key);
        let is_strict = server.name == "seaweedfs";
        for (from, to, words) in [
            ("bucket ", "bukcet ", "main.kf.hcl:3:22"),
            ("bucket ", "bukcet ", "Did you mean \"bucket\"?"),
            (bucket.as_str(), "\"nobody-made-this\"", "There is no bucket \"nobody-made-this\""),
            (server.endpoint.as_str(), "http://127.0.0.1:9", "can't be reached"),
            (server.endpoint.as_str(), "ftp://here", "An endpoint is http:// or https://"),
            ("use_lockfile   = true", "use_lockfile = \"perhaps\"", "bool required"),
            ("use_lockfile   = true", "dynamodb_table = \"t\"", "not with a DynamoDB table"),
            (secret.as_str(), "\"not-this-one\"", if is_strict { "did not accept the secret key" } else { "The state will be kept" }),
        ] {
            assert!(good.contains(from), "{from}");
            project.write("main.kf.hcl", &good.replace(from, to));
            let ended = project.run(&["init"]);
            assert!(ended.text.contains(words), "{}: {to}: {}", server.name, ended.text);
            assert!(!ended.text.replace("...", "").contains("..") && !ended.text.contains(&server.secret_key), "{}", ended.text);
            assert!(ended.text.matches("Error").count() <= 2, "{}", ended.text);
        }
    }
}

#[test]
fn what_the_configuration_leaves_open_is_given_to_init() {
    for server in Server::all("partial configuration of S3") {
        let key = server.key("partial");
        let project = server.project(&key);
        let text = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("read");
        let backend = server.backend(&key);
        project.write("main.kf.hcl", &text.replace(&backend, "  backend \"s3\" {\n    bucket = \"other\"\n  }\n"));
        let refused = project.must(1, &["plan"]);
        assert!(refused.contains("needs the argument \"key\"") && refused.contains("main.kf.hcl:2:3"), "{refused}");
        let inside: String =
            backend.lines().skip(1).take_while(|l| *l != "  }").filter(|l| !l.contains("key  ")).map(|l| format!("{l}\n")).collect();
        project.write("s3.config", &inside);
        let secret = format!("-backend-config=secret_key={}", server.secret_key);
        let access = format!("-backend-config=access_key={}", server.access_key);
        let key_flag = format!("-backend-config=key={key}");
        let text = project.must(0, &["init", "-backend-config=s3.config", &key_flag, &secret, &access]);
        assert!(!text.contains(&server.secret_key), "{text}");
        project.apply();
        server.project(&key).no_changes();
        for (flag, words) in [
            ("-backend-config=buckt=x", "gives \"buckt\", which this backend does not have"),
            ("-backend-config=nowhere.config", "\"nowhere.config\" given with -backend-config can't be read"),
            ("-backend-config=use_path_style=perhaps", "use_path_style"),
        ] {
            let refused = project.must(1, &["init", flag]);
            assert!(refused.contains(words), "{refused}");
        }
        project.no_changes();
    }
}
