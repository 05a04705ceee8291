//! Encrypted on the client, as people run it: in S3, with keys from AWS KMS (moto's), killed at any moment.

use std::path::Path;
use std::time::Duration;

use karmaform_model::{Item, StateStore as _};

use crate::project::Project;
use crate::s3::Server;

const SECRET: &str = "hunter2-is-secret";
/// Kills in an ordinary run.
const KILLS: usize = 6;

/// Things with a secret, and two outputs.
fn configure(project: &Project, settings: &str, count: usize) {
    project.write(
        "main.kf.hcl",
        &format!(
            "karmaform {{\n{settings}}}\n\nresource \"terraform_data\" \"thing\" {{\n  count = {count}\n  input = sensitive(\"{SECRET}-${{count.index}}\")\n}}\n\n\
             output \"open\" {{\n  value = {count}\n}}\n\noutput \"hidden\" {{\n  value     = terraform_data.thing[0].output\n  sensitive = true\n}}\n"
        ),
    );
}

fn passphrase() -> String {
    format!("a passphrase {:016x}", fastrand::u64(..))
}

fn by(passphrase: &str) -> String {
    format!("  encryption {{\n    passphrase = \"{passphrase}\"\n  }}\n")
}

fn is_sealed(bytes: &[u8], what: &str) {
    let text = String::from_utf8_lossy(bytes);
    assert!(text.starts_with("{\"karmaform_encrypted\":1,") && !text.contains("terraform_data"), "{what}: {text}");
}

#[test]
fn a_store_sees_nothing_and_others_read_with_the_key() {
    for server in Server::all("an encrypted state in S3") {
        let key = server.key("encrypted");
        let (store, words) = (server.store(&key), passphrase());
        let project = Project::new();
        for count in [2, 4] {
            configure(&project, &format!("{}{}", server.backend(&key), by(&words)), count);
            project.apply();
        }
        project.no_changes();
        let kept = crate::parts::block_on(store.generations()).expect("generations");
        assert_eq!(kept.len(), 2);
        for item in kept.iter().map(|serial| Item::Generation(*serial)).chain([Item::State]) {
            let found = crate::parts::block_on(store.get(&item)).expect("an answer").expect("an item");
            is_sealed(&found.bytes, &format!("{item:?}"));
        }
        let first = format!("-generation={}", kept[0]);
        assert_eq!(project.must(0, &["state", "pull", &first]).matches("\"index_key\"").count(), 2);
        project.must(0, &["state", "restore", &kept[0].to_string()]);
        assert!(project.must(0, &["plan"]).contains("2 to add"));

        let inside: String = server.backend(&key).lines().skip(1).take_while(|l| *l != "  }").map(|l| format!("{l}\n")).collect();
        let reader = |encryption: &str| {
            let reader = Project::new();
            reader.write(
                "main.kf.hcl",
                &format!(
                    "data \"terraform_remote_state\" \"other\" {{\n  backend = \"s3\"\n  config = {{\n{inside}  }}\n{encryption}}}\n\n\
                     output \"open\" {{\n  value = data.terraform_remote_state.other.outputs.open\n}}\n"
                ),
            );
            reader
        };
        let with_key = reader(&format!("  encryption = {{ passphrase = \"{words}\" }}\n"));
        let text = with_key.apply();
        assert!(!text.contains(&words), "{text}");
        assert_eq!(with_key.output("open"), "2");
        let refused = reader("").must(1, &["plan"]);
        assert!(refused.contains("Encryption failed") && refused.contains("it is encrypted"), "{refused}");
        // Into a file and it is still sealed; the file is no use without the key.
        configure(&project, &by(&words), 2);
        let keys = [("AWS_ACCESS_KEY_ID", server.access_key.as_str()), ("AWS_SECRET_ACCESS_KEY", &server.secret_key)];
        let moved = project.start_with(&["init", "-migrate-state"], &keys).end();
        assert_eq!(moved.code, Some(0), "{}", moved.text);
        is_sealed(&std::fs::read(project.path().join("karmaform.tfstate")).expect("a state"), "the file");
        project.no_changes();
    }
}

#[test]
fn aws_kms_keeps_the_key() {
    let Some(server) = Server::moto() else {
        return crate::parts::tell("SKIPPED (no moto): a key in AWS KMS");
    };
    let block = |key: &str| {
        format!(
            "  encryption {{\n    aws_kms {{\n      key_id     = \"{key}\"\n      region     = \"us-east-1\"\n      endpoints  = {{ kms = \"{}\" }}\n      \
             access_key = \"{}\"\n      secret_key = \"{}\"\n    }}\n  }}\n",
            server.endpoint, server.access_key, server.secret_key
        )
    };
    let project = Project::new();
    // moto has the keys of Amazon's own services without being asked.
    configure(&project, &block("alias/aws/s3"), 2);
    project.apply();
    is_sealed(&std::fs::read(project.path().join("karmaform.tfstate")).expect("a state"), "the file");
    project.no_changes();
    configure(&project, &block("alias/aws/ebs"), 2);
    let refused = project.must(1, &["plan"]);
    assert!(
        refused.contains("Encryption failed") && refused.contains("AWS KMS at http") && refused.contains("refused the key"),
        "{refused}"
    );
    configure(&project, &block("alias/nobody"), 2);
    let refused = Project::must(&project, 1, &["plan"]);
    assert!(refused.contains("NotFoundException"), "{refused}");
    // One that does not answer is told of, and nothing is done.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port");
    configure(&project, &block("alias/aws/s3").replace(&server.endpoint, &format!("http://{nobody}")), 2);
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("can't be reached"), "{refused}");
}

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), found);
        } else {
            found.push((entry.path().display().to_string(), std::fs::read(entry.path()).unwrap_or_default()));
        }
    }
}

#[test]
fn killed_at_any_moment_nothing_lies_in_clear_and_the_next_run_goes_on() {
    let (kills, mut moments) = crate::parts::kills(KILLS);
    let words = passphrase();
    let project = Project::new();
    for round in 0..kills {
        let count = 100 + round % 3;
        configure(&project, &by(&words), count);
        let mut running = project.start(&["apply", "-auto-approve"]);
        std::thread::sleep(Duration::from_millis(moments.u64(20..600)));
        let _ = running.child.kill();
        running.child.wait().expect("a process");
        let mut found = Vec::new();
        files(project.path(), &mut found);
        for (name, bytes) in found.iter().filter(|(name, _)| !name.ends_with(".kf.hcl")) {
            assert!(!String::from_utf8_lossy(bytes).contains(SECRET), "round {round}: {name}");
        }
        project.apply();
        assert_eq!(project.must(0, &["state", "list"]).matches("terraform_data.thing[").count(), count, "round {round}");
        project.no_changes();
    }
}
