//! Programs, sums and archives from a site's own mirror, which shows a certificate of the site's own authority: Debian's registry with TLS,
//! and `karmaform bundle`, which fetches all that a configuration needs and reaches no host.

#[path = "../../providers/ssh/tests/hosts/images.rs"]
#[allow(dead_code, reason = "registries are started in more ways where programs are taken out of images")]
mod images;

use std::io::Write as _;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::project::Project;
use images::{Item, Part, Registry, image, layer};

/// Certificate and key of the mirror, and the certificate of who signed it; all PEM.
fn certificates() -> [String; 3] {
    let key = || KeyPair::generate().expect("a key");
    let mut site = CertificateParams::default();
    site.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    site.distinguished_name.push(DnType::CommonName, "site authority");
    let site_key = key();
    let authority = site.self_signed(&site_key).expect("an authority").pem();
    let mirror_key = key();
    let mirror = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    let mirror = mirror.signed_by(&mirror_key, &Issuer::new(site, site_key)).expect("a certificate");
    [mirror.pem(), mirror_key.serialize_pem(), authority]
}

fn archive(name: &str, content: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o755);
    builder.append_data(&mut header, name, content.as_bytes()).expect("added");
    builder.into_inner().and_then(flate2::write::GzEncoder::finish).expect("an archive")
}

/// A mirror with an image, an archive with its sum beside it, and Karmada's CRDs; and a configuration that wants each.
fn site(test: &str) -> Option<(Registry, Project, String)> {
    let [certificate, key, authority] = certificates();
    let mirror = Registry::start_with(test, false, Some((&certificate, &key)))?;
    let made = image("linux/amd64", &[layer(&[Item::File("bin/agent", b"out of an image")], true)], false);
    mirror.push("site/agent", &made);
    mirror.name("site/agent", "v1", &made.manifest);
    let keep = |bytes: Vec<u8>| mirror.keep("site/files", &Part::new("", bytes));
    let tool = Part::new("", archive("release/tool", "out of an archive"));
    let (tool_sum, tool) = (tool.sum(), keep(tool.bytes));
    let name = tool.rsplit('/').next().unwrap_or_default().to_owned();
    let sums = keep(format!("{tool_sum}  {name}\n").into_bytes());
    let crds = keep(archive("crds/bases/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"));
    let project = Project::new();
    project.write(
        "main.kf.hcl",
        &format!(
            r#"
provider "ssh" {{
  cache = "cache"
}}
data "ssh_host" "edge" {{
  address          = "10.255.0.1"
  private_key_file = "/none"
  known_hosts_file = "/none"
}}
resource "ssh_artifact" "agent" {{
  host   = data.ssh_host.edge.connection
  path   = "/usr/local/bin/agent"
  source = "oci://{}/site/agent:v1"
  member = "/bin/agent"
}}
resource "ssh_artifact" "tool" {{
  host   = data.ssh_host.edge.connection
  path   = "/usr/local/bin/tool"
  source = "{tool}"
  sha256 = "{sums}"
  member = "tool"
}}
data "kubernetes_cluster" "far" {{
  kubeconfig_file = "/none"
}}
resource "kubernetes_archive" "crds" {{
  cluster = data.kubernetes_cluster.far.connection
  name    = "crds"
  source  = "{crds}"
}}
"#,
            mirror.address
        ),
    );
    project.write("site-ca.pem", &authority);
    Some((mirror, project, authority))
}

#[track_caller]
fn bundled(project: &Project, environment: &[(&str, &str)]) {
    let ended = project.start_with(&["bundle", "-out=site.kfbundle"], environment).end();
    assert!(ended.code == Some(0) && ended.text.contains("Wrote site.kfbundle: 3 files"), "{}", ended.text);
    project.remove("site.kfbundle");
    let _ = std::fs::remove_dir_all(project.path().join("cache"));
}

#[test]
fn a_mirror_with_an_authority_of_its_own_is_trusted_if_it_is_said_to_be() {
    let Some((mirror, project, authority)) = site("a_mirror_with_an_authority_of_its_own") else { return };
    let everything = std::fs::read_to_string(project.path().join("main.kf.hcl")).expect("the configuration");

    // by the configuration, by the environment, and for one registry as docker has it
    let settings = |file: &str| project.write("settings.kf.hcl", &format!("karmaform {{\n  ca_file = \"{file}\"\n}}\n"));
    settings("site-ca.pem");
    bundled(&project, &[]);
    project.remove("settings.kf.hcl");
    bundled(&project, &[("SSL_CERT_FILE", "site-ca.pem")]);
    let folder = project.path().join("authorities");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("site.pem"), &authority).expect("written");
    bundled(&project, &[("SSL_CERT_DIR", "authorities")]);
    let docker = project.path().join("docker");
    let beside = docker.join("certs.d").join(&mirror.address);
    std::fs::create_dir_all(&beside).expect("a folder");
    std::fs::write(beside.join("ca.crt"), &authority).expect("written");
    let docker = docker.display().to_string();
    let image_alone = everything.split("resource \"ssh_artifact\" \"tool\"").next().unwrap_or_default();
    project.write("main.kf.hcl", image_alone);
    let ended = project.start_with(&["bundle", "-out=site.kfbundle"], &[("DOCKER_CONFIG", &docker)]).end();
    assert!(ended.code == Some(0) && ended.text.contains("1 file"), "{}", ended.text);
    std::fs::write(beside.join("ca.crt"), "nothing").expect("written");
    let ended = project.start_with(&["bundle", "-out=site.kfbundle"], &[("DOCKER_CONFIG", &docker)]).end();
    assert!(ended.code == Some(1) && ended.text.contains("Authority of a registry can't be read"), "{}", ended.text);
    project.write("main.kf.hcl", &everything);

    // What is asked of each, and fails, says what to do, once.
    let trusted = |source: &str| {
        let text = project.must(1, &["bundle", "-out=other.kfbundle"]);
        assert!(text.contains(source) && text.contains("is signed by no authority that is trusted"), "{text}");
        assert!(text.contains("\"ca_file\"") && text.contains("SSL_CERT_FILE"), "{text}");
        assert_eq!(text.matches("Error:").count(), 1, "{text}");
        text
    };
    let alone = |kind: &str, name: &str| {
        let begin = everything.find(&format!("resource \"{kind}\" \"{name}\"")).expect("it is there");
        let end = everything[begin..].find("\n}\n").map_or(everything.len(), |at| begin + at + 3);
        let data = everything.find("resource").expect("a resource");
        let cluster = "data \"kubernetes_cluster\" \"far\" {\n  kubeconfig_file = \"/none\"\n}\n";
        project.write("main.kf.hcl", &format!("{}{cluster}{}", &everything[..data], &everything[begin..end]));
    };
    alone("ssh_artifact", "agent");
    let text = trusted(&format!("oci://{}/site/agent:v1", mirror.address));
    assert!(text.contains("Image can't be fetched") && text.contains("certs.d"), "{text}");
    alone("ssh_artifact", "tool");
    assert!(trusted("/v2/site/files/blobs/").contains("Source can't be fetched"));
    alone("kubernetes_archive", "crds");
    assert!(trusted("/v2/site/files/blobs/").contains("Archive can't be fetched"));

    // A file without certificates is no reason to go on.
    settings("main.kf.hcl");
    let text = project.must(1, &["bundle", "-out=other.kfbundle"]);
    assert!(text.contains("Authorities can't be read") && text.contains("settings.kf.hcl") && text.contains("PEM"), "{text}");
    settings("none.pem");
    let text = project.must(1, &["bundle", "-out=other.kfbundle"]);
    assert!(text.contains("Authorities can't be read") && text.contains("none.pem"), "{text}");
    project.remove("settings.kf.hcl");
    let ended = project.start_with(&["bundle", "-out=other.kfbundle"], &[("SSL_CERT_FILE", "/none.pem")]).end();
    assert!(ended.code == Some(1) && ended.text.contains("which SSL_CERT_FILE in the environment names"), "{}", ended.text);
}

#[test]
fn an_authority_is_no_server() {
    let key = KeyPair::generate().expect("a key");
    let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).expect("parameters");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = parameters.self_signed(&key).expect("a certificate").pem();
    let Some(mirror) = Registry::start_with("an_authority_is_no_server", false, Some((&own, &key.serialize_pem()))) else { return };
    let project = Project::new();
    let mut text = std::fs::File::create(project.path().join("main.kf.hcl")).expect("a file");
    let written = write!(
        text,
        r#"
karmaform {{
  ca_file = "own.pem"
}}
data "ssh_host" "edge" {{
  address          = "10.255.0.1"
  private_key_file = "/none"
  known_hosts_file = "/none"
}}
resource "ssh_artifact" "agent" {{
  host   = data.ssh_host.edge.connection
  path   = "/usr/local/bin/agent"
  source = "oci://{}/site/agent:v1"
  member = "/bin/agent"
}}
"#,
        mirror.address
    );
    written.expect("written");
    project.write("own.pem", &own);
    let text = project.must(1, &["bundle", "-out=site.kfbundle"]);
    assert!(text.contains("certificate of an authority") && text.contains("CA:FALSE"), "{text}");
}
