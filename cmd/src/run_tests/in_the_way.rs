//! What is said where something around a run is in its way: a folder that went, a lock, the environment, the state of another configuration.

use karmaform_memory::World;
use karmaform_model::{Journal as _, JournalRecord, StateBackend};

use super::{Place, TWO, somebody};

const THING: &str = "resource \"memory_thing\" \"a\" {\n  name = \"a\"\n}\n";

#[test]
fn a_folder_that_went_is_told() {
    let place = Place::new(TWO);
    std::fs::remove_dir_all(place.path()).unwrap();
    let done = place.check(&["validate"], 1);
    assert!(done.stderr.contains("Error: Can't read the directory") && done.stderr.contains("there is no such file"), "{done:#?}");
}

#[test]
fn who_plans_while_another_one_works_is_told_of_that() {
    let place = Place::new(TWO);
    place.check(&["apply", "-auto-approve"], 0);
    let state = karmaform_model::Snapshot::from_text(&place.read("karmaform.tfstate")).unwrap();
    let mut journal = karmaform_local::FileJournal::open(place.path().join(".karmaform/journal")).unwrap();
    journal.append(&[JournalRecord::Begin { lineage: state.lineage, serial: state.serial, version: "0.1.0".into() }]).unwrap();
    drop(journal);
    let backend = karmaform_local::LocalBackend::new(place.path().join("karmaform.tfstate"));
    let who = somebody();
    let executor = crate::runtime::Executor::new().unwrap();
    let id = executor.block_on(StateBackend::lock(&backend, &who)).unwrap();
    let said = place.check(&["plan"], 0);
    let said = format!("{}{}", said.stdout, said.stderr);
    for part in ["Warning: The state is being changed", "somebody@elsewhere", "since 2026-01-01T00:00:00Z", "OperationTypeApply"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    executor.block_on(StateBackend::unlock(&backend, &id)).unwrap();
}

#[test]
fn a_lock_that_can_not_be_released_is_a_warning() {
    let world = World::new();
    let place = Place::new(THING).over(&world);
    let information = place.path().join(".karmaform.tfstate.lock.info");
    // While it is applied a folder comes to be where the file is that says who has the lock.
    world.on_apply(move |_, _| {
        std::fs::remove_file(&information).and_then(|()| std::fs::create_dir(&information)).unwrap();
        Ok(())
    });
    let done = place.check(&["apply", "-auto-approve"], 0);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(
        said.contains("Warning: Error releasing the state lock") && said.contains("The lock of the state at karmaform.tfstate"),
        "{said}"
    );
    assert!(done.stdout.contains("Apply complete!"), "{done:#?}");
}

#[test]
fn a_lease_of_a_lock_is_a_number_of_seconds() {
    let mut place =
        Place::new("karmaform {\n  backend \"etcd\" {\n    endpoints = [\"http://127.0.0.1:1\"]\n    prefix    = \"/state\"\n  }\n}\n");
    for value in ["soon", "0", "-5"] {
        place.set("KF_LOCK_LEASE", value);
        let done = place.check(&["plan"], 1);
        assert!(done.stderr.contains("Error: Invalid environment variable") && done.stderr.contains("KF_LOCK_LEASE must be"), "{done:#?}");
    }
}

#[test]
fn the_state_of_another_configuration_that_is_none_is_told() {
    let place = Place::new("");
    place.write("other.tfstate", "nothing");
    let other = place.path().join("other.tfstate");
    let config = format!(
        "data \"terraform_remote_state\" \"other\" {{\n  backend = \"local\"\n  config  = {{ path = \"{}\" }}\n}}\n",
        other.display()
    );
    place.write("main.kf.hcl", &config);
    let done = place.check(&["plan"], 1);
    assert!(
        done.stderr.contains("Error: Can't read the state") && done.stderr.contains("with data.terraform_remote_state.other"),
        "{done:#?}"
    );
}
