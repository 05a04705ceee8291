//! What is encrypted: everything that is written, with the old key and the new one while they change, and nothing of it told.

use super::{Done, Place};

const SECRET: &str = "hunter2-is-secret";
const FIRST: &str = "a passphrase that is long";
const SECOND: &str = "another one that is long";

fn configuration(encryption: &str) -> String {
    format!(
        "variable \"first\" {{\n  sensitive = true\n  default   = null\n}}\nvariable \"second\" {{\n  sensitive = true\n  default   = null\n}}\n\
         variable \"color\" {{\n  default = \"red\"\n}}\n\
         karmaform {{\n{encryption}\n}}\nresource \"terraform_data\" \"s\" {{\n  input = {{ color = var.color, password = sensitive(\"{SECRET}\") }}\n}}\n"
    )
}

const BY_FIRST: &str = "  encryption {\n    passphrase = var.first\n  }";

fn encrypted(block: &str) -> Place {
    let mut place = Place::new(&configuration(block));
    place.set("KF_VAR_first", FIRST);
    place.set("KF_VAR_second", SECOND);
    place
}

fn is_sealed(place: &Place, file: &str) {
    let text = place.read(file);
    assert!(
        text.starts_with("{\"karmaform_encrypted\":1,") && !text.contains(SECRET) && !text.contains("terraform_data"),
        "{file}: {text}"
    );
}

fn refused(done: &Done, words: &[&str]) {
    assert_eq!(done.code, 1, "{done:#?}");
    let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(text.contains(word), "{text}");
    }
    assert!(!text.contains(FIRST) && !text.contains(SECRET), "{text}");
}

#[test]
fn all_that_is_written_is_sealed() {
    let place = encrypted(BY_FIRST);
    place.check(&["init"], 0);
    let planned = place.check(&["plan", "-out=p"], 0);
    assert!(!planned.stdout.contains("holds secrets in clear"), "{}", planned.stdout);
    is_sealed(&place, "p");
    assert!(place.check(&["show", "p"], 0).stdout.contains("Plan: 1 to add"));
    place.check(&["show", "-json", "p"], 0);
    place.check(&["apply", "p"], 0);
    is_sealed(&place, "karmaform.tfstate");
    let done = place.check(&["plan", "-detailed-exitcode"], 0);
    assert!(done.stdout.contains("No changes."), "{}", done.stdout);
    place.check(&["apply", "-auto-approve", "-var=color=blue"], 0);
    is_sealed(&place, "karmaform.tfstate.backup");
    assert_eq!(place.check(&["state", "list"], 0).stdout, "terraform_data.s\n");
    // Out it comes in clear, and in again.
    let pulled = place.check(&["state", "pull"], 0).stdout;
    assert!(pulled.contains(SECRET) && pulled.contains("\"version\": 4"), "{pulled}");
    place.write("pulled", &pulled);
    place.write("sealed", &place.read("karmaform.tfstate"));
    assert!(place.check(&["show", "sealed"], 0).stdout.contains("resource \"terraform_data\" \"s\""));
    for file in ["pulled", "sealed"] {
        place.check(&["state", "push", "-force", file], 0);
        is_sealed(&place, "karmaform.tfstate");
    }
    place.check(&["destroy", "-auto-approve"], 0);
}

#[test]
fn the_key_may_be_given_to_every_command() {
    let place = Place::new(&configuration(BY_FIRST));
    place.write("key.kfvars.hcl", &format!("first = \"{FIRST}\"\n"));
    let with = |arguments: &[&str], code: i32| {
        // Without it none of them gets anywhere.
        let done = place.run(arguments);
        assert!(done.code == 1 && !done.stderr.contains(FIRST), "{arguments:?}: {done:#?}");
        place.check(&[arguments, &["-var-file=key.kfvars.hcl"]].concat(), code)
    };
    with(&["apply", "-auto-approve"], 0);
    with(&["plan", "-out=p"], 0);
    for read in [
        &["state", "list"][..],
        &["state", "show", "terraform_data.s"],
        &["state", "pull"],
        &["show"],
        &["show", "-json", "p"],
        &["show", "karmaform.tfstate"],
        &["graph", "-full"],
    ] {
        with(read, 0);
    }
    with(&["state", "mv", "terraform_data.s", "terraform_data.t"], 0);
    with(&["workspace", "new", "more"], 0);
    with(&["workspace", "delete", "default"], 1);
    with(&["state", "rm", "terraform_data.t"], 1);
    place.check(&["workspace", "select", "default"], 0);
    with(&["workspace", "delete", "more"], 0);
    with(&["state", "rm", "terraform_data.t"], 0);
}

#[test]
fn a_wrong_key_and_none_are_said_and_nothing_is_touched() {
    let mut place = encrypted(BY_FIRST);
    place.check(&["apply", "-auto-approve"], 0);
    place.check(&["plan", "-out=p"], 0);
    let before = place.read("karmaform.tfstate");
    place.set("KF_VAR_first", SECOND);
    let wrong = ["Encryption failed", "was encrypted with a passphrase, and the passphrase that is given is another one"];
    for arguments in
        [&["plan"] as &[&str], &["apply", "-auto-approve"], &["state", "list"], &["show"], &["show", "p"], &["apply", "p"], &["output"]]
    {
        refused(&place.run(arguments), &wrong);
    }
    place.write("main.kf.hcl", &configuration(""));
    for arguments in [&["plan"] as &[&str], &["apply", "-auto-approve"], &["show", "p"], &["destroy", "-auto-approve"]] {
        refused(&place.run(arguments), &["it is encrypted, and the configuration has no encryption block"]);
    }
    assert_eq!(place.read("karmaform.tfstate"), before);
}

#[test]
fn a_damaged_state_is_found_and_not_written_over() {
    let place = encrypted(BY_FIRST);
    place.check(&["apply", "-auto-approve"], 0);
    let good = place.read("karmaform.tfstate");
    let data = good.find("\"data\":\"").unwrap() + 20;
    let other = if &good[data..=data] == "A" { "B" } else { "A" };
    let damaged = format!("{}{other}{}", &good[..data], &good[data + 1..]);
    let older = good.replace("\"serial\":1,", "\"serial\":9,");
    for text in [damaged, older, good[..good.len() / 2].to_owned()] {
        assert_ne!(text, good);
        place.write("karmaform.tfstate", &text);
        refused(&place.run(&["apply", "-auto-approve", "-var=color=blue"]), &["it is damaged, or somebody changed it"]);
        assert_eq!(place.read("karmaform.tfstate"), text);
    }
}

#[test]
fn a_state_in_clear_is_taken_in_keys_are_changed_and_back_it_goes() {
    let block = |first: &str, fallback: &str| format!("  encryption {{\n    {first}\n    fallback {{\n      {fallback}\n    }}\n  }}");
    let place = encrypted("");
    let planned = place.check(&["plan"], 0).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "Note: The state is not encrypted, and holds secrets in clear: those of terraform_data.s. An \"encryption\" block in the configuration encrypts it.";
    assert!(planned.contains(note), "{planned}");
    place.check(&["apply", "-auto-approve"], 0);
    assert!(place.read("karmaform.tfstate").contains(SECRET));
    place.write("main.kf.hcl", &configuration(BY_FIRST));
    refused(
        &place.run(&["plan"]),
        &["it is not encrypted, and the encryption block does not allow that", "fallback { unencrypted = true }"],
    );
    // Each step is an apply that changes something; a plan alone reads what the fallback opens.
    let steps = [
        ("passphrase = var.first", "unencrypted = true", "blue", true),
        ("passphrase = var.second", "passphrase = var.first", "green", true),
        ("unencrypted = true", "passphrase = var.second", "red", false),
    ];
    for (first, fallback, color, seals) in steps {
        place.write("main.kf.hcl", &configuration(&block(first, fallback)));
        let color = format!("-var=color={color}");
        place.check(&["plan", &color], 0);
        place.check(&["apply", "-auto-approve", &color], 0);
        assert!(place.check(&["plan", &color], 0).stdout.contains("No changes."));
        if seals { is_sealed(&place, "karmaform.tfstate") } else { assert!(place.read("karmaform.tfstate").contains(SECRET)) }
    }
    place.write("main.kf.hcl", &configuration(""));
    assert!(place.check(&["plan"], 0).stdout.contains("No changes."));
}

#[test]
fn wrong_blocks_are_told_of_at_their_line() {
    let mut place = encrypted("");
    for (block, words) in [
        ("passphrse = var.first", "The encryption block has no argument \"passphrse\"."),
        ("passphrase = \"short\"", "fewer than 16 characters"),
        ("passphrase = var.first\n    key_file = \"k\"", "several ways to a key: \"passphrase\", \"key_file\""),
        ("key_file = \"nowhere\"", "can't be read"),
        ("aws_kms {\n      key = \"k\"\n    }", "\"aws_kms\" has no argument \"key\""),
        ("aws_kms {\n      region = \"eu-west-1\"\n    }", "\"aws_kms\" does not say which key"),
        (
            "passphrase = var.first\n    fallback {\n      unencrypted = true\n    }\n    fallback {\n      passphrase = var.second\n    }",
            "fallback",
        ),
    ] {
        place.write("main.kf.hcl", &configuration(&format!("  encryption {{\n    {block}\n  }}")));
        for command in ["plan", "validate"] {
            refused(&place.run(&[command]), &["--> main.kf.hcl:", words]);
        }
    }
    place.environment.remove("KF_VAR_first");
    place.write("main.kf.hcl", &configuration(BY_FIRST).replace("  default   = null\n", ""));
    refused(&place.run(&["state", "list"]), &["must be known before planning", "KF_VAR_<name>"]);
}
