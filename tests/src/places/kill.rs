//! Killed at any moment while it writes; the next one goes on from there.

use std::time::Duration;

use super::{Place, configure};

/// Kills in an ordinary run.
const KILLS: usize = 12;

#[test]
fn killed_while_writing_nothing_is_lost_and_nothing_doubled() {
    let (kills, mut moments) = crate::parts::kills(KILLS);
    for place in Place::with_file("kill -9 while writing the state") {
        let project = place.project();
        for round in 0..kills {
            let count = 3 + round % 5;
            configure(&project, &place.backend, count);
            let running = project.start_with(&["apply", "-auto-approve", "-lock-timeout=30s"], &[("KF_LOCK_LEASE", "1")]);
            std::thread::sleep(Duration::from_millis(moments.u64(20..900)));
            running.kill();
            // Whatever it left: a lock, half of the work, a journal.
            let ended = project.must(0, &["apply", "-auto-approve", "-lock-timeout=60s"]);
            let listed = project.must(0, &["state", "list"]);
            assert_eq!(listed.matches("terraform_data.thing[").count(), count, "{} {round}:\n{ended}\n{listed}", place.name);
            project.no_changes();
        }
        // Another directory, which knows of no journal, sees the same.
        configure(&project, &place.backend, 3);
        project.apply();
        place.project().no_changes();
    }
}
