//! Ways to log in: a user with sudo, one without, a bastion.

use super::Lab;
use crate::project::Project;

/// One file on a host, by a data source with these arguments.
fn one_file(lab: &Lab, address: &str, arguments: &str) -> Project {
    let project = Project::new();
    project.write(
        "main.kf.hcl",
        &format!(
            "{}resource \"ssh_file\" \"f\" {{\n  host = data.ssh_host.x.connection\n  path = \"/etc/karmaform-test\"\n  content = \"x\\n\"\n  mode = \"0600\"\n}}\n\
             output \"name\" {{ value = data.ssh_host.x.hostname }}\n",
            lab.host_block(address, arguments)
        ),
    );
    project
}

#[test]
fn a_user_with_sudo_does_what_root_does() {
    let Some(lab) = Lab::fresh("a_user_with_sudo_does_what_root_does") else { return };
    let project = one_file(&lab, &lab.hosts[0].1, "  user = \"ops\"");
    project.apply();
    assert_eq!(lab.shell("a", "stat -c '%U %a' /etc/karmaform-test").trim(), "root 600");
    project.no_changes();
    project.must(0, &["destroy", "-auto-approve"]);
    lab.shell("a", "test ! -e /etc/karmaform-test");
}

#[test]
fn a_refused_sudo_is_said_once_and_clearly() {
    let Some(lab) = Lab::fresh("a_refused_sudo_is_said_once_and_clearly") else { return };
    let text = one_file(&lab, &lab.hosts[0].1, "  user = \"guest\"").must(1, &["apply", "-auto-approve"]);
    assert_eq!(text.matches("Error:").count(), 1, "{text}");
    assert!(text.contains("sudo"), "{text}");
    lab.shell("a", "test ! -e /etc/karmaform-test");
}

#[test]
fn a_bastion_leads_to_a_host() {
    let Some(lab) = Lab::fresh("a_bastion_leads_to_a_host") else { return };
    let bastion = format!(
        "  bastion = {{ address = \"{}\", user = \"guest\", private_key_file = \"{}\", known_hosts_file = \"{}\" }}",
        lab.hosts[1].1, lab.key, lab.known_hosts
    );
    let project = one_file(&lab, &lab.hosts[0].1, &bastion);
    project.apply();
    assert_eq!(project.output("name"), "a");
    project.no_changes();
    assert!(lab.shell("b", "journalctl -q -u ssh | grep -c 'Accepted publickey for guest'").trim() != "0");
    project.must(0, &["destroy", "-auto-approve"]);
}
