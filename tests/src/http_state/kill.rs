//! Killed at any moment while it writes: its lock stays, and once it is removed the next one goes on from there.

use std::time::Duration;

use super::gitlab::GitLab;
use super::project;
use crate::places::{configure, lock_id};

/// Kills in an ordinary run.
const KILLS: usize = 12;

#[test]
fn killed_while_writing_nothing_is_lost_and_nothing_doubled() {
    let (kills, mut moments) = crate::parts::kills(KILLS);
    let server = GitLab::start();
    let backend = server.backend("kill");
    let project = project(&backend, 3);
    for round in 0..kills {
        let count = 3 + round % 5;
        configure(&project, &backend, count);
        let running = project.start(&["apply", "-auto-approve"]);
        std::thread::sleep(Duration::from_millis(moments.u64(20..400)));
        running.kill();
        // Its lock stays, whatever else it left.
        let left = server.states().get("kill").and_then(|kept| kept.lock.clone());
        if let Some(id) = left {
            assert_eq!(lock_id(&project.must(1, &["apply", "-auto-approve"])), id);
            project.must(0, &["force-unlock", "-force", &id]);
        }
        // What it had asked for last may have come to the server behind its end: then its lock does, too.
        let mut ended = project.run(&["apply", "-auto-approve"]);
        if ended.code == Some(1) && ended.text.contains("force-unlock ") {
            project.must(0, &["force-unlock", "-force", &lock_id(&ended.text)]);
            ended = project.run(&["apply", "-auto-approve"]);
        }
        assert_eq!(ended.code, Some(0), "{round}:\n{}", ended.text);
        let ended = ended.text;
        let listed = project.must(0, &["state", "list"]);
        assert_eq!(listed.matches("terraform_data.thing[").count(), count, "{round}:\n{ended}\n{listed}");
        project.no_changes();
    }
}
