//! State in etcd, as people run it.

use crate::etcd_server::EtcdServer;
use crate::project::Project;

fn configure(project: &Project, url: &str, count: usize) {
    let text = format!(
        "karmaform {{\n  backend \"etcd\" {{\n    endpoints = [\"{url}\"]\n    prefix    = \"karmaform/test\"\n  }}\n}}\n\n\
         resource \"terraform_data\" \"thing\" {{\n  count = {count}\n  input = join(\"\", [for i in range(1000) : \"{count}-${{i}}-${{count.index}}\"])\n}}\n"
    );
    project.write("main.kf.hcl", &text);
}

#[test]
fn a_state_larger_than_a_request_lives_in_etcd() {
    let Some(etcd) = EtcdServer::start("a state in etcd") else { return };
    let project = Project::new();
    configure(&project, &etcd.url, 2);
    assert!(project.must(0, &["init"]).contains("The state will be kept in etcd karmaform/test at http"));
    project.apply();
    configure(&project, &etcd.url, 150);
    project.apply();
    project.no_changes();
    assert!(project.must(0, &["state", "pull"]).len() > 2_000_000);
    // From another directory, and with what is left of an earlier run.
    let other = Project::new();
    configure(&other, &etcd.url, 150);
    other.no_changes();
    assert!(other.must(0, &["doctor"]).contains("exactly one won"));
    configure(&other, &etcd.url, 1);
    other.apply();
    assert_eq!(other.must(0, &["state", "history"]).matches("OperationTypeApply").count(), 3);
    let refused = {
        drop(etcd);
        other.must(1, &["plan"])
    };
    assert!(refused.contains("can't be reached") || refused.contains("did not"), "{refused}");
}
