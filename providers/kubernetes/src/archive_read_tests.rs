use super::*;
use serde_json::json;

/// A .tar.gz of these files; a path is written as it is.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn recipe<'a>(substitutions: &[(&'a str, &'a str)]) -> Recipe<'a> {
    Recipe { include: "m/", patches: Some("p/"), substitutions: substitutions.iter().copied().collect(), overrides: Vec::new() }
}

fn read(files: &[(&str, &str)], substitutions: &[(&str, &str)]) -> Result<Vec<Json>, Diagnostic> {
    manifests("a.tgz", &archive(files), &recipe(substitutions))
}

#[track_caller]
fn refused(files: &[(&str, &str)], expected: &str) {
    let error = read(files, &[]).unwrap_err();
    assert!(error.detail.contains(expected), "{}", error.detail);
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: \"1\", gone: x}\n";

#[test]
fn manifests_are_patched_and_other_files_left_out() {
    let patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: \"2\", gone: null, new: n}\n";
    let other = "# nothing here\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: n\n  creationTimestamp: null\nstatus: {}\n---\n";
    let files = [
        ("./m/a.yaml", MAP),
        ("m/b.yml", other),
        ("m/kustomization.yaml", "resources: []"),
        ("m/README.md", "x"),
        ("p/p.yaml", patch),
        ("x.yaml", "x"),
    ];
    let found = read(&files, &[]).unwrap();
    assert_eq!(
        Json::Array(found),
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "k": "2", "new": "n" } },
            { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n", "creationTimestamp": null } }])
    );
}

#[test]
fn scalars_are_what_the_server_takes_them_for() {
    let scalars = "  n: 3\n  f: 1.5\n  b: true\n  t: \"true\"\n  y: yes\n  v: \"1\"\n  l: |-\n    two\n    lines\n";
    let text = format!("apiVersion: v1\nkind: X\nmetadata: {{name: a}}\nspec:\n{scalars}");
    let found = read(&[("m/a.yaml", &text)], &[]).unwrap();
    assert_eq!(found[0]["spec"], json!({ "n": 3, "f": 1.5, "b": true, "t": "true", "y": "yes", "v": "1", "l": "two\nlines" }));
}

#[test]
fn placeholders_are_filled_in_whatever_the_value_holds() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  url: \"https://{{name}}.{{ns}}.svc\"\n  bare: {{name}}\n  pem: \"{{pem}}\"\n  go: \"{{ .Name }}\"\n";
    let pem = "-----BEGIN X-----\n\"quoted\": '{{name}}'\n";
    let found = read(&[("m/a.yaml", text)], &[("name", "w"), ("ns", "n"), ("pem", pem)]).unwrap();
    assert_eq!(found[0]["data"], json!({ "url": "https://w.n.svc", "bare": "w", "pem": pem, "go": "{{ .Name }}" }));
    let error = read(&[("m/a.yaml", text)], &[("name", "w"), ("ns", "n")]).unwrap_err();
    assert!(error.detail.contains("m/a.yaml has the placeholder {{pem}}"), "{}", error.detail);
}

#[test]
fn what_leads_out_or_is_not_usable_is_refused() {
    refused(&[("../a.yaml", MAP)], "leads out of it");
    refused(&[("m/../../a.yaml", MAP)], "leads out of it");
    refused(&[("/m/a.yaml", MAP)], "leads out of it");
    refused(&[("x/a.yaml", MAP)], "no manifests below \"m/\"");
    refused(&[("m/a.yaml", MAP), ("m/b.yaml", MAP)], "ConfigMap \"a\" more than once; the second time in m/b.yaml");
    refused(&[("m/a.yaml", MAP), ("p/b.yaml", &MAP.replace("name: a", "name: b"))], "p/b.yaml in a.tgz patches ConfigMap \"b\"");
    refused(&[("m/a.yaml", "a: {")], "m/a.yaml is no readable YAML");
    refused(&[("m/a.yaml", "a: 1")], "m/a.yaml is no manifest");
    assert!(manifests("a.tgz", b"no archive", &recipe(&[])).unwrap_err().detail.contains("a.tgz is no readable .tar.gz archive"));
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    builder.append_link(&mut header, "m/a.yaml", "/etc/passwd").unwrap();
    let link = builder.into_inner().unwrap().finish().unwrap();
    assert!(manifests("a.tgz", &link, &recipe(&[])).unwrap_err().detail.contains("no regular file"));
}

#[test]
fn the_definitions_of_karmada() {
    let Some(data) = std::env::var_os("KARMAFORM_SHARED_DATA") else {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED the_definitions_of_karmada: KARMAFORM_SHARED_DATA is not set");
        return;
    };
    let bytes = std::fs::read(Path::new(&data).join("karmada-crds-v1.19.tar.gz")).unwrap();
    let substitutions = [("name", "karmada-webhook"), ("namespace", "karmada-system"), ("caBundle", "Q0E=")].into();
    let recipe = Recipe { include: "crds/bases/", patches: Some("crds/patches/"), substitutions, overrides: Vec::new() };
    let found = manifests("crds", &bytes, &recipe).unwrap();
    assert_eq!(found.len(), 19);
    let hooks: Vec<_> = found.iter().filter_map(|m| m.pointer("/spec/conversion/webhook/clientConfig")).collect();
    let hook = json!({ "url": "https://karmada-webhook.karmada-system.svc:443/convert", "caBundle": "Q0E=" });
    assert_eq!(hooks, [&hook, &hook]);

    // A patch of one's own comes last, and must be of something that is there.
    let patch = |name: &str| {
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name },
                "spec": { "conversion": { "webhook": { "clientConfig": { "url": "https://w:8443/convert" } } } } })
    };
    let with = |name: &str| manifests("crds", &bytes, &Recipe { overrides: vec![patch(name)], ..recipe.clone() });
    let found = with("resourcebindings.work.karmada.io").unwrap();
    let urls: Vec<_> = found.iter().filter_map(|m| m.pointer("/spec/conversion/webhook/clientConfig")).collect();
    let mine = json!({ "url": "https://w:8443/convert", "caBundle": "Q0E=" });
    assert_eq!(urls, [&hook, &mine]);
    assert!(with("nothing.karmada.io").unwrap_err().detail.contains("an entry of `overrides` patches"));
}
