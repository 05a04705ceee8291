//! States come back as they were written, and what is none is refused.

use super::*;
use crate::PathStep;

fn resource(dependencies: &[&str], status: Status) -> ResourceState {
    ResourceState {
        resource_type: "ssh_file".into(),
        provider: "ssh".into(),
        schema_version: 0,
        attributes: json!({"path": "/a"}).as_object().unwrap().clone().into(),
        secret_paths: vec![Path(vec![PathStep::Name("x".into()), PathStep::Index(0)])],
        dependencies: dependencies.iter().map(|d| d.parse().unwrap()).collect(),
        create_before_destroy: false,
        protected: false,
        status,
    }
}

#[test]
fn a_state_comes_back_as_it_was_written() {
    let mut snapshot = Snapshot { tool_version: "0.1.0".into(), lineage: "l".into(), serial: 3, ..Snapshot::default() };
    for (address, deps, status) in [
        ("ssh_file.a", &["data.ssh_host.h"] as &[&str], Status::Ready),
        ("ssh_file.b[0]", &["ssh_file.a"], Status::Tainted),
        ("ssh_file.c[\"k\"]", &["ssh_file.b[0]"], Status::Unfinished),
        ("etcd_cluster.main/member[\"a\"]/unit", &["etcd_cluster.main/ca"], Status::Ready),
        ("etcd_cluster.main[\"x\"]/env", &[], Status::Ready),
        ("module.m.ssh_file.a", &["ssh_file.a", "module.m.data.ssh_host.h"], Status::Ready),
        ("module.m[\"p\"].module.n[0].ssh_file.a[1]", &["module.m[\"p\"].ssh_file.a"], Status::Tainted),
        ("module.m[\"p\"].etcd_cluster.main[\"x\"]/env", &["module.m[\"p\"].etcd_cluster.main[\"x\"]/ca"], Status::Ready),
    ] {
        snapshot.resources.insert(address.parse().unwrap(), resource(deps, status));
    }
    snapshot.deposed.insert(("ssh_file.a".parse().unwrap(), "0a1b2c3d".into()), resource(&[], Status::Ready));
    snapshot.outputs.insert("o".into(), OutputState { value: Value::strings(["x"]).secret(), sensitive: true });
    let text = snapshot.to_text();
    assert_eq!(Snapshot::from_text(&text).unwrap(), snapshot);
    assert_eq!(Snapshot::from_text(&text).unwrap().to_text(), text);
    let module = "\"module\": \"module.m[\\\"p\\\"].module.n[0]\",\n      \"mode\": \"managed\",\n      \"type\": \"ssh_file\"";
    assert!(text.contains(module), "{text}");
    assert!(text.contains("\"module.m.ssh_file.a\""), "dependencies have no keys, as Terraform wants them: {text}");
    assert!(text.starts_with("{\n  \"version\": 4,\n  \"terraform_version\": \"0.1.0\",\n  \"serial\": 3"));
}

#[test]
fn what_is_no_state_is_refused() {
    for (text, message) in [
        ("", "not a state file"),
        ("{}", "no \"version\""),
        (r#"{"version":5}"#, "version 5"),
        (r#"{"version":4,"serial":"x"}"#, "serial"),
        (r#"{"version":4,"serial":18446744073709551615}"#, "no state ever reaches"),
        (r#"{"version":4,"lineage":7}"#, "\"lineage\""),
        (r#"{"version":4,"resources":{}}"#, "\"resources\""),
        (r#"{"version":4,"outputs":[]}"#, "\"outputs\""),
        (r#"{"version":4,"outputs":{"a":{"value":1}}}"#, "no valid type"),
        (r#"{"version":4,"resources":[{"mode":"managed","type":"a","name":"b","instances":[{},{}]}]}"#, "twice"),
    ] {
        let error = Snapshot::from_text(text).unwrap_err().to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    assert_eq!(Snapshot::from_text(r#"{"version":4}"#).unwrap(), Snapshot::default());
}

#[test]
fn an_instance_that_is_half_understood_is_refused() {
    for module in ["", "m", "module.", "a.b", "module.m.a.b", "module.m[x]"] {
        let resource = json!({"module": module, "mode": "managed", "type": "a", "name": "b", "instances": []});
        let error = Snapshot::from_text(&json!({"version": 4, "resources": [resource]}).to_string()).unwrap_err().to_string();
        assert!(error.contains("module"), "{module}: {error}");
    }
    for (name, value) in [
        ("sensitive_attributes", json!("x")),
        ("sensitive_attributes", json!([{"a": 1}])),
        ("sensitive_attributes", json!([[{"type": "splat"}]])),
        ("deposed", json!(["x"])),
        ("attributes", json!([])),
        ("schema_version", json!("1")),
        ("dependencies", json!("a.b")),
        ("dependencies", json!([1])),
        ("create_before_destroy", json!("yes")),
        ("index_key", json!(-1)),
        ("status", json!(true)),
    ] {
        let file = json!({"version": 4, "resources": [{"mode": "managed", "type": "a", "name": "b", "instances": [{ name: value }]}]});
        let error = Snapshot::from_text(&file.to_string()).unwrap_err().to_string();
        assert!(error.contains(name), "{file}: {error}");
    }
    for instances in [json!({}), json!(null), json!([7])] {
        let file = json!({"version": 4, "resources": [{"mode": "managed", "type": "a", "name": "b", "instances": instances}]});
        assert!(Snapshot::from_text(&file.to_string()).is_err(), "{file}");
    }
}
