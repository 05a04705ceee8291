//! Backups of etcd in a bucket that no state tells of: they are listed and got by their place, and chosen by it for what is restored.

use std::path::Path;

use karmaform_s3::S3Objects;
use sha2::{Digest as _, Sha256};

use super::Server;
use crate::parts::block_on;
use crate::project::Project;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A snapshot as etcd seals it, and its manifest.
fn snapshot(byte: u8) -> (Vec<u8>, String) {
    let mut data = vec![byte; 1024];
    let seal = Sha256::digest(&data);
    data.extend_from_slice(&seal);
    let manifest = serde_json::json!({
        "format": "karmaform etcd snapshot", "format_version": "1.0", "size": data.len(), "sha256": hexadecimal(&Sha256::digest(&data)),
        "revision": byte, "revision_at_most": byte, "cluster_id": "1f", "address": "etcd_backup.main",
    });
    (data, manifest.to_string())
}

/// Puts a snapshot and its manifest where backups lie. `file`: a place to send them from.
fn put(objects: &S3Objects, file: &Path, stem: &str, (data, manifest): &(Vec<u8>, String)) {
    for (ending, bytes) in [("db", data.as_slice()), ("db.json", manifest.as_bytes())] {
        std::fs::write(file, bytes).expect("written");
        block_on(objects.put(&format!("{stem}.{ending}"), file)).expect("put");
    }
}

#[test]
fn backups_are_found_without_a_state() {
    for server in Server::all("backups without a state") {
        let (project, prefix) = (Project::new(), server.key("lost"));
        let objects = server.objects(&prefix);
        let file = project.path().join("to-send");
        let first = snapshot(1);
        put(&objects, &file, "main-20260101T000000Z", &first);
        put(&objects, &file, "main-20260102T000000Z", &snapshot(2));
        let keys = [("AWS_ACCESS_KEY_ID", server.access_key.as_str()), ("AWS_SECRET_ACCESS_KEY", server.secret_key.as_str())];
        let place = format!("s3://{}/{prefix}/main", server.bucket);
        let endpoint = format!("-endpoint={}", server.endpoint);
        let run = |command: &str, place: &str, more: &[&str]| {
            let all = [&["etcd", "backup", command, place, endpoint.as_str(), "-path-style", "-region=us-east-1"][..], more].concat();
            let ended = project.start_with(&all, &keys).end();
            assert_eq!(ended.code, Some(0), "{}", ended.text);
            ended.text
        };
        let listed: serde_json::Value = serde_json::from_str(&run("list", &place, &["-json"])).expect("JSON");
        let names: Vec<_> = listed["backups"].as_array().expect("a list").iter().map(|b| b["name"].as_str().expect("a name")).collect();
        assert_eq!(names, ["main-20260102T000000Z", "main-20260101T000000Z"]);
        let got = run("get", &place, &["-out=newest.db"]);
        assert!(got.contains("Got main-20260102T000000Z") && got.contains("revision 2"), "{got}");
        run("get", &place, &["-before=2026-01-01T12:00:00Z", "-out=before.db"]);
        run("get", &format!("{place}-20260101T000000Z.db"), &["-out=named.db"]);
        for name in ["before.db", "named.db"] {
            assert_eq!(std::fs::read(project.path().join(name)).expect("got"), first.0, "{name}");
        }
    }
}

#[test]
fn what_was_chosen_stays_the_choice() {
    for server in Server::all("the choice of a backup") {
        let (project, prefix) = (Project::new(), server.key("chosen"));
        let objects = server.objects(&prefix);
        let file = project.path().join("to-send");
        let put = |stem: &str, byte: u8| put(&objects, &file, stem, &snapshot(byte));
        put("main-20260101T000000Z", 1);
        let chosen = |more: &str| {
            let from = format!("s3://{}/{prefix}/main", server.bucket);
            let text = format!(
                "resource \"etcd_backup_choice\" \"x\" {{\n  from = \"{from}\"\n  {more}\n}}\noutput \"place\" {{\n  value = \
                 etcd_backup_choice.x.place\n}}\noutput \"revision\" {{\n  value = etcd_backup_choice.x.revision\n}}\n"
            );
            project.write("main.kf.hcl", &text);
        };
        let keys = [
            ("AWS_ACCESS_KEY_ID", server.access_key.as_str()),
            ("AWS_SECRET_ACCESS_KEY", server.secret_key.as_str()),
            ("AWS_ENDPOINT_URL_S3", server.endpoint.as_str()),
            ("AWS_REGION", "us-east-1"),
        ];
        let run = |arguments: &[&str]| {
            let ended = project.start_with(arguments, &keys).end();
            assert!(matches!(ended.code, Some(0 | 2)), "{}", ended.text);
            (ended.code, ended.text)
        };
        chosen("");
        // The plan says which one it is, and the saved one takes that, whatever comes meanwhile.
        let plan = run(&["plan", "-out=plan"]).1;
        assert!(plan.contains("main-20260101T000000Z.db"), "{plan}");
        put("main-20260102T000000Z", 2);
        run(&["apply", "plan"]);
        assert!(project.output("place").contains("/main-20260101T000000Z.db"));
        assert_eq!(run(&["plan", "-detailed-exitcode"]).0, Some(0), "a newer one is no other choice");
        chosen("before = \"2026-01-02T12:00:00Z\"");
        run(&["apply", "-auto-approve"]);
        assert!(project.output("place").contains("/main-20260102T000000Z.db") && project.output("revision").contains('2'));
        let keyless = project.start_with(&["plan", "-detailed-exitcode"], &[]).end();
        assert_eq!(keyless.code, Some(0), "what is in the state needs no key: {}", keyless.text);
    }
}
