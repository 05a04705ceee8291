//! The load balancer with programs of one's own in place of the hosts' packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::faults::holders;
use super::site::{EVERYBODYS, Site};

const PROGRAMS: [&str; 2] = ["haproxy", "keepalived"];
/// How long the virtual IP may take to be on one host, with an API behind it.
const SETTLED: Duration = Duration::from_secs(20);
/// A unit of nobody that names the packages' programs: so they stay, and with them what the same programs elsewhere are linked with.
const KEEPS: &str = "/etc/systemd/system/kf-keeps.service";

/// They are used, and come again from packages; what does not read the configuration never takes the place of what does.
pub(super) fn come_and_go(site: &Site<'_>) {
    if site.vip.is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let own = PROGRAMS.map(|name| taken(site, folder.path(), name));
    on_all(site, &format!("echo '# /usr/sbin/haproxy /usr/sbin/keepalived' >{KEEPS}"));
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "#!/bin/sh\necho this is too much for me >&2\nexit 1\n").expect("written");
    for (at, name) in PROGRAMS.iter().enumerate() {
        with_sources(site, &own);
        site.converge();
        let runs = running(site);
        assert!(runs.values().all(|run| run.contains("/opt/karmaform/karmada-demo/load-balancer/")), "{runs:?}");
        serves(site);

        let mut sources = own.clone();
        sources[at].clone_from(&broken);
        with_sources(site, &sources);
        let refused = site.project.must(1, &["apply", "-auto-approve"]);
        let told = refused.contains("File was refused") && refused.contains("this is too much for me");
        // Of the first host; nobody else is asked then.
        assert!(told && refused.matches("Error: ").count() == 1, "{name}:\n{refused}");
        assert_eq!(running(site), runs, "a {name} that was refused changed what runs");
        serves(site);
    }

    site.with_balancer("");
    site.converge();
    on_all(site, &format!("rm {KEEPS}"));
    let runs = running(site);
    assert!(runs.values().all(|run| run.contains("/usr/sbin/")), "{runs:?}");
    serves(site);
}

/// A program of a host, in a file here.
fn taken(site: &Site<'_>, folder: &Path, name: &str) -> PathBuf {
    let text = site.lab.shell("a", &format!("base64 -w0 /usr/sbin/{name}"));
    let path = folder.join(name);
    std::fs::write(&path, STANDARD.decode(text.trim()).expect("base64")).expect("written");
    path
}

fn with_sources(site: &Site<'_>, sources: &[PathBuf; 2]) {
    let lines: Vec<String> = PROGRAMS.iter().zip(sources).map(|(name, path)| format!("{name}_source = {path:?}")).collect();
    site.with_balancer(&lines.join("\n"));
}

fn on_all(site: &Site<'_>, command: &str) {
    for (host, _) in &site.lab.hosts {
        site.lab.shell(host, command);
    }
}

/// Which process of which program runs on each host, and what a start would run.
fn running(site: &Site<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (host, _) in &site.lab.hosts {
        for name in PROGRAMS {
            let asked = format!(
                "pid=$(systemctl show --property=MainPID --value karmada-demo-{name}.service); path=$(readlink /proc/$pid/exe); \
                 echo $pid $path $(sha256sum <\"$path\")"
            );
            all.insert(format!("{name} on {host}"), site.lab.shell(host, &asked).trim().to_owned());
        }
    }
    all
}

/// One host has the address, and the API answers there.
fn serves(site: &Site<'_>) {
    site.answers_within(SETTLED, EVERYBODYS, &["get", "--raw", "/readyz"]);
    assert_eq!(holders(site, site.vip.as_deref().unwrap_or_default()).len(), 1);
}
