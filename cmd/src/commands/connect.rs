//! `connect`: a way into a Kubernetes API that something in the state gives a connection to, for a person or for one program.
//!
//! Nothing is exposed for it: where the API is only inside a cluster, a local port leads there for as long as this runs.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_engine::Pool;
use karmaform_model::{Address, Connections as _, Diagnostic, Object, Snapshot, Value};
use serde_json::{Value as Json, json};

use crate::app::{App, Ended};
use crate::disk::{reason, reason_to_write};
use crate::flags::PlaceFlags;
use crate::planning::addresses;
use crate::reading::current_state;
use crate::ui::json::state::attributes;

/// The port of URLs that name none.
const HTTPS: u16 = 443;

/// Arguments of `connect`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// What to connect to: a karmada_control_plane, or any other resource with a connection to a Kubernetes API
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// A command that is run with KUBECONFIG set; without one, this waits until Ctrl-C
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
    #[command(flatten)]
    state: PlaceFlags,
}

/// Runs it. Its exit code is the command's.
pub(crate) fn run(app: &mut App, args: &Args) -> Ended {
    let wanted = addresses("ADDRESS", std::slice::from_ref(&args.address))?;
    let state = current_state(app, &args.state)?.unwrap_or_default();
    let Some(address) = wanted.first() else { return Ok(0) };
    let connection = connection(app, &state, address)?;
    let pool = Pool::new(Arc::clone(app.wiring.registry.catalog()), BTreeMap::new());
    let local = app.executor.block_on(local_port(&pool, &connection))?;
    let kubeconfig = kubeconfig(&connection, local)?;
    // From here on a signal only asks: the file has to go.
    let asking = app.interrupt.ask_first();
    let file = write(&app.directory, address, &kubeconfig)?;
    let ended = match args.command.split_first() {
        Some((program, arguments)) => run_with(&file.0, program, arguments),
        None => {
            let name = file.0.display();
            let way = local.map(|l| format!(" through {l}")).unwrap_or_default();
            app.output.print(&format!("Connected to {address}{way}. In another shell:\n\n  export KUBECONFIG={name}\n\nCtrl-C ends it.\n"));
            app.executor.block_on(app.interrupt.wait());
            Ok(0)
        }
    };
    drop(file);
    drop(asking);
    ended
}

/// The connection that a resource in the state gives, or is.
fn connection(app: &App, state: &Snapshot, address: &Address) -> Result<Object, Diagnostic> {
    let Some(resource) = state.resources.get(address) else {
        let kind = "karmada_control_plane";
        let known: Vec<String> = state.resources.keys().filter(|a| a.kind == kind && !a.is_child()).map(ToString::to_string).collect();
        let error = Diagnostic::error("Not in the state", format!("The state has no {address}."));
        return Err(if known.is_empty() { error } else { error.with_hint(format!("There is {}.", known.join(", "))) });
    };
    let known = attributes(address, resource, &app.wiring.registry);
    let connection = known.get("connection").and_then(Value::as_entries);
    match connection.filter(|c| c.get("provider").and_then(Value::as_str) == Some("kubernetes")) {
        Some(connection) => Ok(connection.clone()),
        None => Err(Diagnostic::error(
            "Nothing to connect to",
            format!("{address} gives no connection to a Kubernetes API, or it was never finished."),
        )
        .with_hint("Connect to a `karmada_control_plane`.")),
    }
}

/// Host and port of a URL.
fn target(connection: &Object) -> Option<(&str, u16)> {
    let place = connection.get("address").and_then(Value::as_str)?.strip_prefix("https://")?.trim_end_matches('/');
    match place.rsplit_once(':') {
        Some((host, port)) => Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?)),
        None => Some((place, HTTPS)),
    }
}

/// The local end of the way, if one is needed.
async fn local_port(pool: &Pool, connection: &Object) -> Result<Option<SocketAddr>, Diagnostic> {
    let Some(via) = connection.get("via").and_then(Value::as_entries) else { return Ok(None) };
    let (host, port) = target(connection).ok_or_else(no_address)?;
    pool.forward(via, host, port).await.map(Some)
}

fn no_address() -> Diagnostic {
    Diagnostic::error("Nothing to connect to", "The connection has no usable address.")
}

/// A kubeconfig for it. JSON is YAML.
fn kubeconfig(connection: &Object, local: Option<SocketAddr>) -> Result<Json, Diagnostic> {
    let text = |name: &str| connection.get(name).and_then(Value::as_str);
    if let Some(given) = text("kubeconfig") {
        return Ok(Json::String(given.to_owned()));
    }
    let (host, _) = target(connection).ok_or_else(no_address)?;
    let address = text("address").ok_or_else(no_address)?;
    let mut cluster = json!({ "server": local.map_or_else(|| address.to_owned(), |l| format!("https://{l}")) });
    if local.is_some() {
        cluster["tls-server-name"] = host.into();
    }
    if let Some(pem) = text("ca_certificate") {
        cluster["certificate-authority-data"] = STANDARD.encode(pem).into();
    }
    let mut user = json!({});
    for (name, field) in [("client_certificate", "client-certificate-data"), ("client_key", "client-key-data")] {
        if let Some(pem) = text(name) {
            user[field] = STANDARD.encode(pem).into();
        }
    }
    if let Some(token) = text("token") {
        user["token"] = token.into();
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "karmada",
        "clusters": [{ "name": "karmada", "cluster": cluster }],
        "users": [{ "name": "admin", "user": user }],
        "contexts": [{ "name": "karmada", "context": { "cluster": "karmada", "user": "admin" } }],
    }))
}

/// A file that goes when this does: it holds a key.
struct Secret(PathBuf);

impl Drop for Secret {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn write(directory: &Path, address: &Address, kubeconfig: &Json) -> Result<Secret, Diagnostic> {
    let folder = directory.join(crate::wiring::WORKING_DIRECTORY);
    let name: String = address.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let path = folder.join(format!("connect-{}-{}.kubeconfig", name.trim_matches('-'), std::process::id()));
    let failed = |e: std::io::Error| {
        Diagnostic::error("The kubeconfig can't be written", format!("{} can't be written: {}.", path.display(), reason_to_write(&e)))
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    // Another shell is somewhere else.
    let secret = Secret(std::path::absolute(&path).unwrap_or_else(|_| path.clone()));
    let text = kubeconfig.as_str().map_or_else(|| format!("{kubeconfig:#}\n"), str::to_owned);
    file.write_all(text.as_bytes()).map_err(failed)?;
    Ok(secret)
}

fn run_with(kubeconfig: &Path, program: &str, arguments: &[String]) -> Ended {
    let status = Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig).status();
    match status {
        Ok(status) => Ok(status.code().unwrap_or(1)),
        Err(error) => {
            Err(Diagnostic::error("The command can't be run", format!("\"{program}\" could not be started: {}.", reason(&error)))
                .with_hint("Give the path of a program, or the name of one in PATH.")
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Object {
        Object::from([
            ("provider".to_owned(), "kubernetes".into()),
            ("address".to_owned(), "https://prod-apiserver.karmada.svc:5443".into()),
            ("ca_certificate".to_owned(), "CA".into()),
            ("client_certificate".to_owned(), "CERT".into()),
            ("client_key".to_owned(), Value::from("KEY").secret()),
        ])
    }

    #[test]
    fn a_kubeconfig_leads_to_the_local_port_and_expects_the_real_name() {
        let made = kubeconfig(&connection(), Some("127.0.0.1:4711".parse().unwrap())).unwrap();
        let cluster = &made["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://127.0.0.1:4711");
        assert_eq!(cluster["tls-server-name"], "prod-apiserver.karmada.svc");
        assert_eq!(cluster["certificate-authority-data"], "Q0E=");
        assert_eq!(made["users"][0]["user"]["client-key-data"], "S0VZ");
        let direct = kubeconfig(&connection(), None).unwrap();
        assert_eq!(direct["clusters"][0]["cluster"]["server"], "https://prod-apiserver.karmada.svc:5443");
        assert!(direct["clusters"][0]["cluster"]["tls-server-name"].is_null());
    }

    #[test]
    fn the_file_is_for_nobody_else_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::managed("karmada_control_plane", "prod");
        let file = write(folder.path(), &address, &json!({ "a": 1 })).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file.0).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let path = file.0.clone();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn urls_are_taken_apart() {
        let of = |url: &str| {
            let connection = Object::from([("address".to_owned(), url.into())]);
            target(&connection).map(|(h, p)| (h.to_owned(), p))
        };
        assert_eq!(of("https://a.b:5443"), Some(("a.b".to_owned(), 5443)));
        assert_eq!(of("https://a.b/"), Some(("a.b".to_owned(), 443)));
        assert_eq!(of("https://[fd00::1]:6443"), Some(("fd00::1".to_owned(), 6443)));
        assert_eq!(of("http://a.b"), None);
    }
}
