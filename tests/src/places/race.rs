//! Many at once: one works, the others are told who it is.

use std::time::{Duration, Instant};

use super::{Place, configure, lock_id};
use crate::asking::Asking;

/// So many applies are started at once.
const MANY: usize = 50;
/// Longer than they take to find out, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn of_fifty_applies_at_once_one_works() {
    for place in Place::every("fifty applies at once") {
        let projects: Vec<_> = (0..MANY).map(|_| place.project()).collect();
        let mut running: Vec<_> = projects.iter().map(Asking::start).collect();
        let until = Instant::now() + PATIENCE;
        while running.iter_mut().map(Asking::runs).filter(|runs| *runs).count() > 1 {
            assert!(Instant::now() < until, "{}: more than one goes on:\n{}", place.name, still(&mut running));
            std::thread::sleep(Duration::from_millis(50));
        }
        let winner = running.iter_mut().position(Asking::runs).expect("a winner");
        let works = running.remove(winner).asks();
        let mut held = place.held.as_ref().map(|held| held().expect("a lock"));
        for other in running {
            let (code, said) = other.end("");
            assert_eq!(code, Some(1), "{}: {said}", place.name);
            for words in ["Error acquiring the state lock", place.holder, "OperationTypeApply"] {
                assert!(said.contains(words), "{} does not say \"{words}\": {said}", place.name);
            }
            // All of them name the same one.
            let id = lock_id(&said);
            assert_eq!(id, *held.get_or_insert(id.clone()), "{}: {said}", place.name);
            assert_eq!(said.contains("last sign of life"), place.has_lease, "{}: {said}", place.name);
        }
        let (code, said) = works.end("yes\n");
        assert_eq!(code, Some(0), "{said}");
        projects[(winner + 1) % MANY].no_changes();
    }
}

/// What those who go on have said so far.
fn still(running: &mut [Asking]) -> String {
    running.iter_mut().filter_map(|one| one.runs().then(|| one.text())).collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn a_lock_of_the_dead_is_taken_over_and_one_of_the_living_is_not() {
    for place in Place::all("locks of the dead") {
        let (first, second) = (place.project(), place.project());
        // The living renew it, far more often than once in a lease; so it is not taken, however long one waits.
        let living = Asking::of(env!("CARGO_BIN_EXE_karmaform-under-test"), &first, &[("KF_LOCK_LEASE", "4")]).asks();
        let refused = second.must(1, &["apply", "-auto-approve", "-lock-timeout=9s"]);
        assert!(refused.contains("Lease:     4 seconds") && !refused.contains("taken over, so"), "{refused}");
        living.kill();
        let refused = second.must(1, &["apply", "-auto-approve"]);
        assert!(refused.contains("taken over after 4 seconds without a sign of life"), "{refused}");
        let applied = second.must(0, &["apply", "-auto-approve", "-lock-timeout=60s"]);
        assert!(applied.contains("State lock taken over") && applied.contains("gave no sign of life for 4 seconds"), "{applied}");
        second.no_changes();
        // By hand, without waiting.
        configure(&first, &place.backend, 4);
        Asking::start(&first).asks().kill();
        let refused = second.must(1, &["apply", "-auto-approve"]);
        let id = lock_id(&refused);
        let other = second.must(1, &["force-unlock", "-force", "another"]);
        assert!(other.contains(&format!("the lock has the id \"{id}\"")), "{other}");
        second.must(0, &["force-unlock", "-force", &id]);
        second.apply();
    }
}

#[test]
fn who_lost_its_lock_does_nothing() {
    for place in Place::all("a lock that is lost") {
        let (first, second) = (place.project(), place.project());
        let asking = Asking::of(env!("CARGO_BIN_EXE_karmaform-under-test"), &first, &[("KF_LOCK_LEASE", "2")]).asks();
        let refused = second.must(1, &["apply", "-auto-approve"]);
        let id = lock_id(&refused);
        second.must(0, &["force-unlock", "-force", &id]);
        second.apply();
        // It had read the state before; whatever it is told now, it may not write.
        let (code, said) = asking.end("yes\n");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("The lock of the state was lost") || said.contains("The state was changed meanwhile"), "{said}");
        second.no_changes();
        assert_eq!(second.must(0, &["state", "list"]).lines().count(), 3);
    }
}
