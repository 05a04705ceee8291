//! An `import` block on the way through plans, saved plans and drift.

use karmaform_memory::World;
use karmaform_model::{ResourceEntry, implied_from_json};
use serde_json::Value as Json;

use super::Place;

const CONFIG: &str =
    "import {\n  to = memory_thing.a\n  id = \"a\"\n}\nresource \"memory_thing\" \"a\" {\n  name  = \"a\"\n  value = \"x\"\n}\n";

fn place(value: &str) -> Place {
    let world = World::new();
    world.preset(&format!("memory_thing - a = {{\"id\":\"i-1\",\"value\":\"{value}\"}}\n")).unwrap();
    Place::new(CONFIG).over(&world)
}

#[test]
fn what_is_as_it_should_be_is_only_taken_into_the_state() {
    let place = place("x");
    place.check(&["fmt", "-check"], 0);
    let done = place.check(&["plan", "-out=p", "-detailed-exitcode"], 2);
    assert!(done.stdout.contains("\n  # memory_thing.a will be imported\n    resource \"memory_thing\" \"a\" {\n"), "{done:#?}");
    assert!(done.stdout.contains("\nPlan: 1 to import, 0 to add, 0 to change, 0 to destroy.\n"), "{done:#?}");
    let json: Json = serde_json::from_str(&place.check(&["show", "-json", "p"], 0).stdout).unwrap();
    let change = &json["resource_changes"][0]["change"];
    assert_eq!((&change["actions"], &change["importing"]), (&serde_json::json!(["no-op"]), &serde_json::json!({ "id": "a" })));
    let lines = place.check(&["plan", "-json"], 0).stdout;
    assert!(lines.contains("\"import\":1") && lines.contains("memory_thing.a: Plan to import"), "{lines}");
    let done = place.check(&["drift"], 2);
    assert!(done.stdout.contains("it is there and to be imported, and was not yet"), "{done:#?}");
    let done = place.check(&["apply", "p"], 0);
    assert!(done.stdout.contains("\nApply complete! Resources: 1 imported, 0 added, 0 changed, 0 destroyed.\n"), "{done:#?}");
    place.check(&["plan", "-detailed-exitcode"], 0);
    place.check(&["drift"], 0);
}

#[test]
fn what_differs_is_changed_with_it() {
    let place = place("y");
    let done = place.check(&["plan"], 0);
    assert!(done.stdout.contains("  # memory_thing.a will be updated in-place\n  # (imported from \"a\")\n"), "{done:#?}");
    assert!(done.stdout.contains("\nPlan: 1 to import, 0 to add, 1 to change, 0 to destroy.\n"), "{done:#?}");
    place.write("main.kf.hcl", &CONFIG.replace("id = \"a\"", "id = \"b\""));
    assert!(place.check(&["plan"], 1).stderr.contains("Import of another thing"));
}

#[test]
fn ids_are_what_people_call_things() {
    let registry = crate::Wiring::real().registry;
    let check = |kind: &str, wanted: &str, expected: Option<&str>| {
        let Some(ResourceEntry::Type(_, spec)) = registry.resource(kind) else { panic!("{kind}") };
        let wanted = implied_from_json(&serde_json::from_str(wanted).unwrap()).as_entries().cloned().unwrap_or_default();
        assert_eq!(spec.import_id(&spec.derived(wanted)).as_deref(), expected, "{kind}");
    };
    check("ssh_file", r#"{"path":"/etc/motd","content":"x"}"#, Some("/etc/motd"));
    check("ssh_systemd_unit", r#"{"name":"etcd.service"}"#, Some("etcd.service"));
    check("etcd_prefix", r#"{"prefix":"/a"}"#, Some("/a"));
    let manifest = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"web","name":"w"}}"#;
    let id = "apiVersion=apps/v1,kind=Deployment,namespace=web,name=w";
    check("kubernetes_object", &format!("{{\"manifest\":{manifest}}}"), Some(id));
    let manifest = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}"#;
    check("kubernetes_object", &format!("{{\"manifest\":{manifest}}}"), Some("apiVersion=v1,kind=Namespace,name=web"));
}

#[test]
fn a_file_that_is_there_is_taken_over() {
    let place = Place::new("");
    place.write("motd", "hello\n");
    let path = place.path().join("motd").display().to_string();
    let text = |content: &str| {
        format!(
            "import {{\n  to = local_file.motd\n  id = \"{path}\"\n}}\nresource \"local_file\" \"motd\" {{\n  filename        = \"{path}\"\n  content         = {content:?}\n  file_permission = \"0644\"\n}}\n"
        )
    };
    std::fs::set_permissions(place.path().join("motd"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    place.write("main.kf.hcl", &text("hello\n"));
    let done = place.check(&["plan"], 0);
    // What the disk can't tell is written into the state with it.
    assert!(done.stdout.contains("  # (imported from \"") && done.stdout.contains("+ directory_permission = \"0755\""), "{done:#?}");
    assert!(!done.stdout.contains("content "), "{done:#?}");
    place.write("main.kf.hcl", &text("new\n"));
    let done = place.check(&["apply", "-auto-approve"], 0);
    assert!(done.stdout.contains("\nApply complete! Resources: 1 imported, 0 added, 1 changed, 0 destroyed.\n"), "{done:#?}");
    assert_eq!(place.read("motd"), "new\n");
    place.check(&["plan", "-detailed-exitcode"], 0);
    std::fs::remove_file(place.path().join("motd")).unwrap();
    std::fs::remove_file(place.path().join("karmaform.tfstate")).unwrap();
    assert!(place.check(&["plan"], 1).stderr.contains("Cannot import non-existent remote object"));
}
