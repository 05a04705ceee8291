//! A second control plane on a host of the first one's, in the same etcd: what both would have is told, and when it goes the first one stays.

use std::process::Command;

use super::site::{EVERYBODYS, Site};

/// Where its load balancer listens.
const PORT: u16 = 6543;

/// The first one's processes on a host.
const PROCESSES: &str = "systemctl show --property=MainPID --value 'karmada-demo-*' | sort";

/// Its block, under a name, with a virtual IP if there is one.
fn block(name: &str, vip: Option<&str>) -> String {
    let balancer = vip.map(|vip| format!("  load_balancer {{\n    vip  = {vip:?}\n    port = {PORT}\n  }}\n")).unwrap_or_default();
    format!(
        r#"
resource "karmada_control_plane" "second" {{
  name           = {name:?}
  version        = var.karmada_version
  kube_version   = var.kube_version
  etcd           = merge(etcd_cluster.main.client, {{ prefix = "/second" }})
  crds           = var.crds
  hosts          = {{ a = data.ssh_host.cp["a"] }}
  karmada_source = var.karmada_source
  kube_source    = var.kube_source
  ports          = {{
    apiserver = 5543, aggregated-apiserver = 7543, webhook = 8543, search = 9543, metrics-adapter = 9544, kube-controller-manager = 11257
    scheduler-health = 11351, controller-manager-health = 11357, descheduler-health = 11358, webhook-health = 11359
    controller-manager-metrics = 11380, scheduler-metrics = 11381, descheduler-metrics = 11382, webhook-metrics = 11383
    metrics-adapter-metrics = 11384
  }}
{balancer}}}
"#
    )
}

pub(super) fn comes_and_goes(site: &Site<'_>) {
    const FILE: &str = "second.kf.hcl";
    let before = site.lab.shell("a", PROCESSES);
    let own = site.vip.as_ref().map(|vip| vip.replace(".90", ".91"));
    // Units of both would have the same names.
    site.project.write(FILE, &block("demo-kube", own.as_deref()));
    let told = site.project.must(1, &["plan"]);
    assert!(told.contains("unit[\"kube-controller-manager\"] names the same thing") && told.matches("Error: ").count() == 1, "{told}");
    if site.vip.is_some() {
        site.project.write(FILE, &block("second", site.vip.as_deref()));
        let told = site.project.must(1, &["plan"]);
        assert!(told.contains("only one there can have") && told.matches("Error: ").count() == 1, "{told}");
    }
    site.project.write(FILE, &block("second", own.as_deref()));
    let plan = site.project.must(2, &["plan", "-detailed-exitcode"]);
    // Packages that are there are taken into the state as they are.
    let counts = if own.is_some() { " to add, 2 to change, 0 to destroy" } else { " to add, 0 to change, 0 to destroy" };
    assert!(plan.contains(counts) && !plan.contains("Two resources for one thing"), "{plan}");
    site.converge();
    let address = &site.lab.hosts[0].1;
    let places = [format!("{address}:5543")].into_iter().chain(own.as_ref().map(|vip| format!("{vip}:{PORT}")));
    for place in places {
        let mut asked = Command::new("curl");
        asked.args(["-sk", "--retry", "20", "--retry-delay", "1", "--retry-all-errors", "--fail"]);
        let output = asked.arg(format!("https://{place}/readyz")).output().expect("curl");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok", "{place}");
    }
    // What both need of the host stays for who stays.
    site.project.remove(FILE);
    site.converge();
    assert_eq!(site.lab.shell("a", PROCESSES), before, "nothing of the first one was touched");
    site.lab.shell("a", "! ls -d /etc/karmada/second /opt/karmaform/karmada-second /etc/systemd/system/karmada-second-* 2>/dev/null");
    site.ask(EVERYBODYS, &["get", "clusters.cluster.karmada.io"]);
}
