//! What was on a host before is there afterwards: an empty directory that is used, by every way that leads through a plan and the state.

use super::Lab;
use crate::project::Project;

#[test]
fn a_directory_that_was_there_before_is_used_and_left() {
    let Some(lab) = Lab::fresh("a_directory_that_was_there_before_is_used_and_left") else { return };
    lab.shell("a", "mkdir -p /srv/kf-before/kept");
    let project = Project::new();
    let text = |content: &str| {
        format!(
            "{}resource \"ssh_directory\" \"d\" {{\n  host = data.ssh_host.x.connection\n  path = \"/srv/kf-before/kept\"\n  purge = true\n}}\n\
             resource \"ssh_file\" \"f\" {{\n  host = data.ssh_host.x.connection\n  path = \"${{ssh_directory.d.path}}/f\"\n  content = \"{content}\"\n}}\n",
            lab.host_block(&lab.hosts[0].1, "")
        )
    };
    for _ in 0..2 {
        project.write("main.kf.hcl", &text("x"));
        project.apply();
        lab.shell("a", "grep -q '^adopted.*/srv/kf-before/kept' /var/lib/karmaform/owned");
        project.no_changes();
        project.write("main.kf.hcl", &text("y"));
        project.apply();
        // Whether something would be lost was seen when the plan was made.
        let plan = project.must(0, &["plan", "-destroy"]);
        assert!(plan.contains("data in /srv/kf-before/kept on "), "{plan}");
        project.must(0, &["destroy", "-auto-approve"]);
        assert_eq!(lab.shell("a", "find /srv/kf-before").trim(), "/srv/kf-before\n/srv/kf-before/kept");
    }
    lab.shell("a", "! test -e /var/lib/karmaform && rm -r /srv/kf-before");
}
