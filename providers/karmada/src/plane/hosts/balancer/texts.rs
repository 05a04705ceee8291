//! The files of a load balancer of ours: the configurations of its programs, and their units.

use karmaform_model::{Arg, Value};

use super::super::{Host, Hosts, unit};
use super::{Balancer, Ours, Program, on};
use crate::plane::arguments::Arguments;
use crate::systemd::{SANDBOX, awaits, each_text, is_listening, quote};
use crate::versions::Component;

/// How often it is looked whether haproxy listens, each a tenth of a second after the last.
const LOOKS: i64 = 100;

/// Where its files are.
pub(super) fn folder(plane: &Arguments) -> String {
    format!("{}/load-balancer", plane.folder())
}

/// `haproxy.cfg`: connections as they are, to API servers that are ready. One that dies without a word is found out by a connection that
/// stands, within seconds, and not only by the next one: `tcp-ut` (which haproxy passes over in `default-server`) and `srvtcpka`. Nothing is cut that an API server still answers when it
/// says that it is no longer ready.
pub(super) fn haproxy(plane: &Arguments, hosts: &Hosts, balancer: &Balancer) -> Arg {
    let any = if balancer.address.as_str().is_some_and(|a| a.contains(':')) { "[::]" } else { "0.0.0.0" };
    let port = balancer.port;
    let mut text = vec![
        format!(
            "# In front of the API servers of {name}. Written by karmaform; it undoes changes made here.
defaults
  mode tcp
  timeout connect 2s
  timeout check 2s
  timeout client 1h
  timeout server 1h
  retries 3
  option redispatch 1
  option clitcpka
  option srvtcpka
  srvtcpka-idle 2s
  srvtcpka-intvl 1s
  srvtcpka-cnt 2

frontend karmada
  bind {any}:{port}
  default_backend apiservers

backend apiservers
  balance leastconn
  option httpchk GET /readyz
  http-check expect status 200
  default-server check check-ssl verify none inter 1s fastinter 500ms fall 2 rise 2
",
            name = plane.name,
        )
        .into(),
    ];
    let server = hosts.ports.of(Component::ApiServer);
    for (name, host) in on(plane, hosts) {
        let address = Arg::UrlHost(Box::new(host.address.clone().into()));
        text.extend([format!("  server {name} ").into(), address, format!(":{server} tcp-ut 4s\n").into()]);
    }
    Arg::Text(text)
}

/// `keepalived.conf` of a host: the virtual IP is on one host whose haproxy listens. The hosts tell each other and nobody else, so that it
/// works where multicast does not; a host that comes back leaves the address where it is.
pub(super) fn keepalived(plane: &Arguments, hosts: &Hosts, balancer: &Balancer, ours: &Ours, host: &str) -> Arg {
    let all = on(plane, hosts);
    let place = all.iter().position(|(n, _)| *n == host).unwrap_or_default();
    let interface = all.get(place).map_or(Value::null(karmaform_model::Type::String), |(_, h)| ours.interface(h));
    let vip = balancer.address.as_str().unwrap_or_default();
    // A mark by which everybody sees that it is not the host's own.
    let (bits, mark) = if vip.contains(':') { (128, "preferred_lft 0") } else { (32, "label karmada:kf") };
    let mut text = vec![
        format!(
            "# The virtual IP of {name}. Written by karmaform; it undoes changes made here.
global_defs {{
  router_id karmada-{name}-{host}
  vrrp_version 3
  vrrp_check_unicast_src
  # Who asked the wrong one after hosts had lost each other is told soon.
  vrrp_higher_prio_send_advert true
  vrrp_garp_master_refresh 5
  max_auto_priority -1
  script_user root
  enable_script_security
}}

vrrp_script haproxy {{
  script \"/bin/sh {folder}/check\"
  interval 1
  timeout 2
  fall 2
  rise 2
}}

vrrp_instance karmada {{
  state BACKUP
  nopreempt
  interface ",
            name = plane.name,
            folder = folder(plane),
        )
        .into(),
        interface.clone().into(),
        format!(
            "
  virtual_router_id {router}
  priority {priority}
  advert_int 0.5
",
            router = ours.router,
            // The first of them takes it first.
            priority = 200 - place,
        )
        .into(),
    ];
    let others: Vec<&Host> = all.iter().filter(|(n, _)| *n != host).map(|(_, h)| *h).collect();
    if let (Some((_, own)), false) = (all.get(place), others.is_empty()) {
        text.extend(["  unicast_src_ip ".into(), own.address.clone().into(), "\n  unicast_peer {\n".into()]);
        for other in others {
            text.extend(["    ".into(), other.address.clone().into(), "\n".into()]);
        }
        text.push("  }\n".into());
    }
    text.extend([
        format!("  virtual_ipaddress {{\n    {vip}/{bits} dev ").into(),
        interface.into(),
        format!(" {mark}\n  }}\n  track_script {{\n    haproxy\n  }}\n}}\n").into(),
    ]);
    Arg::Text(text)
}

/// For a shell: the program reads a configuration, and ends.
pub(super) fn test(program: Program, path: &str, configuration: &str) -> String {
    match program {
        Program::Haproxy => format!("{path} -c -q -f {configuration}"),
        Program::Keepalived => format!("{path} --config-test -f {configuration}"),
    }
}

/// For a shell: a program that is still to take its place, `$FILE`, reads the configuration that it will have, and ends.
pub(super) fn trial(program: Program, configuration: Arg) -> Arg {
    let test = test(program, "\"$FILE\"", "\"$folder/configuration\"");
    Arg::Text(vec![
        "folder=$(mktemp -d) || exit\ntrap 'rm -rf \"$folder\"' EXIT\nprintf %s '".into(),
        each_text(configuration, &quote),
        format!("' >\"$folder/configuration\" && {test}").into(),
    ])
}

/// What of it only one control plane on a host can have. Two virtual routers of one number would hear each other.
pub(super) fn claims(balancer: &Balancer, ours: &Ours, host: &Host) -> Vec<Arg> {
    let router = vec![format!("the virtual router {} on ", ours.router).into(), ours.interface(host).into()];
    let vip = balancer.address.as_str().map(|vip| format!("the virtual IP {vip}").into());
    [Arg::Text(router)].into_iter().chain(vip).collect()
}

/// Where the API servers say behind the virtual IP whether they are ready, as a URL.
pub(super) fn readyz(balancer: &Balancer) -> String {
    let vip = balancer.address.as_str().unwrap_or_default();
    let host = if vip.contains(':') { format!("[{vip}]") } else { vip.to_owned() };
    format!("https://{host}:{}/readyz", balancer.port)
}

/// What keepalived asks every second: a shell's text.
pub(super) fn check(balancer: &Balancer) -> String {
    format!("# Says whether haproxy listens. Written by karmaform; it undoes changes made here.\n{}\n", is_listening(balancer.port))
}

/// The unit of haproxy.
pub(super) fn haproxy_unit(plane: &Arguments, balancer: &Balancer, program: &str, user: &str) -> String {
    let port = balancer.port;
    format!(
        "# Written by karmaform; it undoes changes made here.
[Unit]
Description=haproxy in front of the Karmada API of {name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
User={user}
Group={user}
ExecStart={program} -db -f {folder}/haproxy.cfg
{awaits}
Restart=always
RestartSec=1
TimeoutStopSec=10
{SANDBOX}
[Install]
WantedBy=multi-user.target
",
        name = plane.name,
        folder = folder(plane),
        awaits = awaits(port, LOOKS, &format!("echo \"it does not listen on port {port}\" >&2; exit 1")),
    )
}

/// The unit of keepalived. It sets addresses and speaks VRRP, which is a protocol beside TCP: root's work, but no more of root's rights than
/// these. Without CAP_SETGID it takes its scripts for having succeeded.
pub(super) fn keepalived_unit(plane: &Arguments, program: &str) -> String {
    let run = format!("karmada-{}-keepalived", plane.name);
    format!(
        "# Written by karmaform; it undoes changes made here.
[Unit]
Description=keepalived for the virtual IP of the Karmada API of {name}
Wants=network-online.target
After=network-online.target {haproxy}
StartLimitIntervalSec=0

[Service]
Type=exec
RuntimeDirectory={run}
ExecStart={program} --dont-fork --vrrp --log-console --no-syslog -f {folder}/keepalived.conf --pid /run/{run}/pid --vrrp_pid /run/{run}/vrrp.pid
Restart=always
RestartSec=1
TimeoutStopSec=10
{SANDBOX}CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_SETGID
RestrictAddressFamilies=AF_PACKET

[Install]
WantedBy=multi-user.target
",
        name = plane.name,
        haproxy = unit::name(plane, Program::Haproxy.name()),
        folder = folder(plane),
    )
}
