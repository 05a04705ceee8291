//! State on a server that speaks Terraform's REST protocol, as people run it.

pub(crate) mod gitlab;
mod kill;
mod terraform;

use crate::asking::Asking;
use crate::places::{configure, lock_id};
use crate::project::Project;
use gitlab::{GitLab, TOKEN, USER};

fn project(backend: &str, count: usize) -> Project {
    let project = Project::new();
    configure(&project, backend, count);
    project
}

#[test]
fn a_state_lives_on_gitlab() {
    let server = GitLab::start();
    let backend = server.backend("life");
    let first = project(&backend, 3);
    let text = first.must(0, &["init"]);
    assert!(text.contains(&format!("The state will be kept in {}", server.url("life"))) && !text.contains("Warning"), "{text}");
    first.apply();
    let second = project(&backend, 3);
    second.no_changes();
    let text = second.must(0, &["doctor"]);
    assert!(text.contains("it can be read: 3 resources") && text.contains("it can be locked and unlocked"), "{text}");
    configure(&second, &backend, 5);
    second.apply();
    assert_eq!(first.must(0, &["state", "list"]).lines().count(), 5);
    assert!(first.must(1, &["state", "history"]).contains("Error"), "it keeps none");
    assert_eq!(server.states()["life"].lock, None);
    second.must(0, &["destroy", "-auto-approve"]);
    assert!(!first.must(0, &["state", "pull"]).contains("terraform_data"));
}

#[test]
fn what_is_wrong_is_said_at_init_and_without_secrets() {
    let server = GitLab::start();
    let good = server.backend("wrong");
    let url = server.url("wrong");
    for (from, to, code, words) in [
        ("lock_method", "lokc_method", 1, "Did you mean \"lock_method\"?"),
        ("lock_method    = \"POST\"", "lock_method = \"LOCK\"", 0, "does not know how to lock the state"),
        ("unlock_address", "# unlock_address", 1, "no lock would ever be released"),
        ("/42/", "/43/", 0, "404 Project Not Found"),
        (url.as_str(), "ftp://here", 1, "An address is http:// or https://"),
        (url.as_str(), "http://127.0.0.1:9/x", 1, "can't be reached"),
        ("http://", "http://me:glpat-hunter2@", 1, "no user and no password in it"),
        (TOKEN, "glpat-other", 1, "did not accept username and password"),
    ] {
        assert!(good.contains(from), "{from}");
        let project = project(&good.replace(from, to), 1);
        let text = project.must(code, &["init"]);
        assert!(text.contains(words) && !text.contains("hunter2") && !text.replace("...", "").contains(".."), "{to}: {text}");
        assert_eq!(text.contains("Warning"), code == 0, "{text}");
    }
}

#[test]
fn the_environment_says_what_the_block_does_not() {
    let server = GitLab::start();
    let url = server.url("environment");
    let lock = format!("{url}/lock");
    let environment = [
        ("TF_HTTP_ADDRESS", url.as_str()),
        ("TF_HTTP_LOCK_ADDRESS", &lock),
        ("TF_HTTP_UNLOCK_ADDRESS", &lock),
        ("TF_HTTP_LOCK_METHOD", "POST"),
        ("TF_HTTP_UNLOCK_METHOD", "DELETE"),
        ("TF_HTTP_USERNAME", USER),
        ("TF_HTTP_PASSWORD", TOKEN),
    ];
    let project = project("  backend \"http\" {}\n", 2);
    let ended = project.start_with(&["apply", "-auto-approve"], &environment).end();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    let refused = project.must(1, &["plan"]);
    assert!(refused.contains("needs the argument \"address\"") && refused.contains("TF_HTTP_ADDRESS"), "{refused}");
    let ended = project.start_with(&["plan"], &[&environment[..6], &[("TF_HTTP_PASSWORD", "wrong")]].concat()).end();
    assert!(ended.code == Some(1) && ended.text.contains("did not accept username and password"), "{}", ended.text);
    let ended = project.start_with(&["plan"], &environment[..5]).end();
    assert!(ended.text.contains("wants to know who asks") && ended.text.contains("TF_HTTP_USERNAME"), "{}", ended.text);
    let kept = std::fs::read_to_string(project.path().join(".karmaform/backend.json")).expect("read");
    assert!(!kept.contains(TOKEN), "{kept}");
}

#[test]
fn a_lock_of_the_dead_is_removed_by_hand() {
    let server = GitLab::start();
    let backend = server.backend("dead");
    let (first, second) = (project(&backend, 3), project(&backend, 3));
    Asking::start(&first).asks().kill();
    // It can't give signs of life, so it is never taken for dead.
    let refused = second.must(1, &["apply", "-auto-approve", "-lock-timeout=2s"]);
    assert!(!refused.contains("taken over"), "{refused}");
    let id = lock_id(&refused);
    let other = second.must(1, &["force-unlock", "-force", "another"]);
    assert!(other.contains(&format!("the lock has the id \"{id}\", not \"another\"")), "{other}");
    second.must(0, &["force-unlock", "-force", &id]);
    let other = second.must(1, &["force-unlock", "-force", &id]);
    assert!(other.contains("the state is not locked"), "{other}");
    second.apply();
    first.no_changes();
}

#[test]
fn who_is_interrupted_while_it_asks_leaves_no_lock() {
    let server = GitLab::start();
    let project = project(&server.backend("interrupted"), 3);
    // Tests that run below `nohup` have the last one ignored, and so has what they start.
    let status = std::fs::read_to_string("/proc/self/status").expect("read");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask").trim();
    let hears_all = u64::from_str_radix(ignored, 16).expect("a mask") & 1 == 0;
    for signal in ["-INT", "-TERM", "-HUP"].into_iter().take(if hears_all { 3 } else { 2 }) {
        let (code, said) = Asking::start(&project).asks().signalled(signal);
        assert!(code == Some(1) && said.ends_with("\nInterrupted.\n"), "{signal}: {said}");
        assert!(server.states().get("interrupted").is_none_or(|kept| kept.lock.is_none()), "{signal}");
    }
    project.apply();
}

#[test]
fn who_lost_its_lock_does_nothing() {
    let server = GitLab::start();
    let backend = server.backend("lost");
    let (first, second, third) = (project(&backend, 3), project(&backend, 3), project(&backend, 4));
    // Somebody else has it now, and has not written yet: only the server can tell.
    let asking = Asking::start(&first).asks();
    let id = lock_id(&second.must(1, &["apply", "-auto-approve"]));
    second.must(0, &["force-unlock", "-force", &id]);
    let other = Asking::start(&second).asks();
    let (code, said) = asking.end("yes\n");
    assert!(code == Some(1) && said.contains("Nothing was done") && said.contains("the lock was lost: me@here took it"), "{said}");
    let (code, said) = other.end("yes\n");
    assert_eq!(code, Some(0), "{said}");
    // Somebody else had it and wrote.
    configure(&first, &backend, 5);
    let asking = Asking::start(&first).asks();
    let id = lock_id(&second.must(1, &["apply", "-auto-approve"]));
    third.must(0, &["force-unlock", "-force", &id]);
    third.apply();
    let (code, said) = asking.end("yes\n");
    assert!(code == Some(1) && said.contains("The state was changed meanwhile"), "{said}");
    third.no_changes();
}

#[test]
fn without_a_lock_it_is_said_and_two_at_once_are_found_out() {
    let server = GitLab::start();
    let backend: String = server.backend("unlocked").lines().filter(|l| !l.contains("lock_")).map(|l| format!("{l}\n")).collect();
    let (first, second) = (project(&backend, 3), project(&backend, 4));
    for command in ["init", "doctor"] {
        let text = first.must(0, &[command]);
        assert!(text.contains("State without a lock") && text.contains("lock_address and unlock_address"), "{text}");
        assert!(!text.contains("it can be locked"), "{text}");
    }
    let asking = Asking::start(&first).asks();
    second.apply();
    let (code, said) = asking.end("yes\n");
    assert!(code == Some(1) && said.contains("The state was changed meanwhile") && said.contains("Nothing was done"), "{said}");
    second.no_changes();
    assert!(second.must(1, &["force-unlock", "-force", "x"]).contains("the state is not locked"));
}

#[test]
fn a_state_moves_there_and_back() {
    let server = GitLab::start();
    let backend = server.backend("moving");
    let moving = project("", 3);
    moving.apply();
    configure(&moving, &backend, 3);
    let refused = moving.must(1, &["plan"]);
    assert!(refused.contains("Backend configuration changed"), "{refused}");
    let moved = moving.must(0, &["init", "-migrate-state"]);
    assert!(moved.contains("(3 resources) was copied from karmaform.tfstate to http://"), "{moved}");
    moving.no_changes();
    project(&backend, 3).no_changes();
    configure(&moving, &backend, 4);
    moving.apply();
    // Back. Secrets of a block that is gone are nowhere remembered.
    configure(&moving, "", 4);
    let back = ["init", "-migrate-state", "-force-copy"];
    let refused = moving.must(1, &back);
    assert!(refused.contains("Can't lock the state") && refused.contains("did not accept username and password"), "{refused}");
    let ended = moving.start_with(&back, &[("TF_HTTP_PASSWORD", TOKEN)]).end();
    assert!(ended.code == Some(0) && ended.text.contains("(4 resources) was copied from http://"), "{}", ended.text);
    moving.no_changes();
    assert_eq!(server.states()["moving"].lock, None);
}

#[test]
fn a_place_that_only_the_environment_named_is_not_mistaken_for_another() {
    let server = GitLab::start();
    let (old, new) = (server.url("old"), server.url("new"));
    let login = [("TF_HTTP_USERNAME", USER), ("TF_HTTP_PASSWORD", TOKEN)];
    let at = |url| [&login[..], &[("TF_HTTP_ADDRESS", url)]].concat();
    let moving = project("  backend \"http\" {}\n", 3);
    let ended = moving.start_with(&["apply", "-auto-approve"], &at(&old)).end();
    assert_eq!(ended.code, Some(0), "{}", ended.text);
    let ended = moving.start_with(&["init", "-migrate-state"], &at(&new)).end();
    assert!(ended.code == Some(1) && ended.text.contains("State not copied") && ended.text.contains(&old), "{}", ended.text);
    let retold = format!("  backend \"http\" {{\n    address = \"{new}\"\n  }}\n");
    configure(&moving, &retold, 3);
    let ended = moving.start_with(&["init", "-migrate-state"], &at(&old)).end();
    assert!(ended.code == Some(0) && ended.text.contains("(3 resources) was copied"), "{}", ended.text);
}
