//! Every file that a flag names: it is there, and is what it should be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::certificates::{Pair, authorities, certificates, dns_names, identifies, pair, read, serves};
use crate::component::Component;
use crate::flags::Flags;

/// What was given in files.
pub(crate) struct Given {
    /// The Karmada API, by the flag that names the kubeconfig: who we are, and who we are when we ask about callers.
    pub(crate) karmada: Vec<(&'static str, kube::Config)>,
    /// What it serves with, if it does.
    pub(crate) serving: Option<Pair>,
    pub(crate) etcd: Option<Etcd>,
}

/// etcd, and who we are to it.
pub(crate) struct Etcd {
    /// `https://HOST:PORT`
    pub(crate) servers: Vec<String>,
    pub(crate) roots: RootCertStore,
    pub(crate) client: Pair,
}

const KUBECONFIGS: [&str; 3] = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];

impl Given {
    pub(crate) async fn read(component: Component, flags: &Flags) -> Result<Self, String> {
        for (name, path) in flags.iter().filter(|(n, p)| n.ends_with("file") && *n != "log-file" && !p.is_empty()) {
            let bytes = read(&format!("--{name}"), path)?;
            if name.ends_with("ca-file") || name.ends_with("cafile") {
                roots(&format!("--{name}"), &bytes)?;
            }
        }
        let mut karmada = Vec::new();
        for flag in KUBECONFIGS {
            if let Some(path) = flags.get(flag) {
                karmada.push((flag, kubeconfig(&format!("--{flag}"), path).await?));
            }
        }
        let ders = karmada.first().and_then(|(_, config)| config.root_cert.clone());
        let ders = ders.ok_or("--kubeconfig has no certificate authority")?;
        let ours = authorities("the CA in --kubeconfig", &ders.into_iter().map(CertificateDer::from).collect::<Vec<_>>())?;
        if let Some(estimator) = files_pair(flags, "scheduler-estimator-cert-file", "scheduler-estimator-key-file")? {
            identifies("--scheduler-estimator-cert-file", &estimator)?;
        }
        Ok(Self { karmada, serving: serving(component, flags, &ours)?, etcd: etcd(flags)? })
    }
}

fn roots(what: &str, pem: &[u8]) -> Result<RootCertStore, String> {
    authorities(what, &certificates(what, pem)?)
}

/// A kubeconfig with a client's certificate in it.
async fn kubeconfig(what: &str, path: &str) -> Result<kube::Config, String> {
    read(what, path)?;
    let parsed = Kubeconfig::read_from(path).map_err(|e| format!("{what}: {path} is no kubeconfig: {e}"))?;
    let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
    let config = config.map_err(|e| format!("{what}: {path}: {e}"))?;
    if config.cluster_url.scheme_str() != Some("https") || config.accept_invalid_certs {
        return Err(format!("{what}: {} is not reached over a TLS that is verified", config.cluster_url));
    }
    let user = serde_json::to_value(&config.auth_info).map_err(|e| format!("{what}: {e}"))?;
    let part = |name: &str| match (user[format!("{name}-data")].as_str(), user[name].as_str()) {
        (Some(data), _) => STANDARD.decode(data).map_err(|e| format!("{what}: {name}-data: {e}")),
        (None, Some(path)) => read(what, path),
        (None, None) => Err(format!("{what} has no {name}")),
    };
    let client = pair(what, &part("client-certificate")?, &part("client-key")?)?;
    identifies(&format!("{what}: the client's certificate"), &client)?;
    Ok(config)
}

/// Certificate and key by two flags, both or none.
fn files_pair(flags: &Flags, certificate: &str, key: &str) -> Result<Option<Pair>, String> {
    match (flags.get(certificate), flags.get(key)) {
        (None, None) => Ok(None),
        (Some(cert), Some(path)) => {
            let what = format!("--{certificate}");
            pair(&what, &read(&what, cert)?, &read(&format!("--{key}"), path)?).map(Some)
        }
        _ => Err(format!("--{certificate} and --{key} are not both given")),
    }
}

/// What it serves with; the names are those that the Karmada API will look for.
fn serving(component: Component, flags: &Flags, ours: &RootCertStore) -> Result<Option<Pair>, String> {
    let (what, pair, name) = if component == Component::Webhook {
        let folder = flags.get("cert-dir").unwrap_or_default();
        let file = |flag: &str, usual: &str| format!("{folder}/{}", flags.get(flag).unwrap_or(usual));
        let (cert, key) = (file("tls-cert-file-name", "tls.crt"), file("tls-private-key-file-name", "tls.key"));
        let what = "the certificate in --cert-dir";
        let pair = pair(what, &read(what, &cert)?, &read(what, &key)?)?;
        let names = dns_names(what, &pair)?;
        let name = names.iter().find(|n| n.contains("webhook") && n.ends_with(".svc"));
        let name = name.ok_or_else(|| format!("{what} is for {names:?}, and none of these is a webhook's SERVICE.NAMESPACE.svc"))?.clone();
        (what, pair, name)
    } else if let Some(name) = component.served_name() {
        let pair = files_pair(flags, "tls-cert-file", "tls-private-key-file")?.ok_or("--tls-cert-file is missing")?;
        ("--tls-cert-file", pair, name)
    } else {
        return Ok(None);
    };
    serves(what, &pair, ours, &name)?;
    Ok(Some(pair))
}

fn etcd(flags: &Flags) -> Result<Option<Etcd>, String> {
    let Some(servers) = flags.get("etcd-servers") else { return Ok(None) };
    let servers: Vec<_> = servers.split(',').map(str::to_owned).collect();
    if let Some(plain) = servers.iter().find(|s| !s.starts_with("https://")) {
        return Err(format!("--etcd-servers: {plain} is not reached over TLS"));
    }
    if flags.get("etcd-prefix").is_some_and(|prefix| !prefix.starts_with('/')) {
        return Err("--etcd-prefix does not start with \"/\"".to_owned());
    }
    let what = "--etcd-cafile";
    let roots = roots(what, &read(what, flags.get("etcd-cafile").unwrap_or_default())?)?;
    let client = files_pair(flags, "etcd-certfile", "etcd-keyfile")?.ok_or("--etcd-certfile is missing")?;
    identifies("--etcd-certfile", &client)?;
    Ok(Some(Etcd { servers, roots, client }))
}
