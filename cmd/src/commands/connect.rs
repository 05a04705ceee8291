//! `connect`: a way into a Kubernetes API that something in the state gives a connection to, for a person or for one program.
//!
//! Nothing is exposed for it: where the API is only inside a cluster, or behind hosts, a local port leads there for as long as this runs.

mod relay;

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_engine::Pool;
use karmaform_model::{Address, Connections as _, Diagnostic, Object, Snapshot, Value};
use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use crate::app::{App, Ended};
use crate::disk::{reason, reason_to_write};
use crate::flags::PlaceFlags;
use crate::planning::addresses;
use crate::reading::current_state;
use crate::ui::json::state::attributes;

/// The port of URLs that name none.
const HTTPS: u16 = 443;
/// How the names of kubeconfigs begin and end.
const PREFIX: &str = "connect-";
const SUFFIX: &str = ".kubeconfig";
/// After so long without a lock, one is nobody's any more.
const STALE: Duration = Duration::from_secs(60);

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
        Some((program, arguments)) => run_with(file.path(), program, arguments),
        None => {
            let name = file.path().display();
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
async fn local_port(pool: &Arc<Pool>, connection: &Object) -> Result<Option<SocketAddr>, Diagnostic> {
    let Some(via) = connection.get("via").and_then(Value::as_entries) else { return Ok(None) };
    let (host, port) = target(connection).ok_or_else(no_address)?;
    match relay::Ways::of(pool, via, host, port) {
        Some(ways) => relay::listen(ways).await.map(Some),
        None => pool.forward(via, host, port).await.map(Some),
    }
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

/// A file that goes when this does: it holds a key. Its name is of its own: in a container all runs have the same process number.
fn write(directory: &Path, address: &Address, kubeconfig: &Json) -> Result<NamedTempFile, Diagnostic> {
    let folder = directory.join(crate::wiring::WORKING_DIRECTORY);
    // Another shell is somewhere else.
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let failed = |e: std::io::Error| {
        let detail = format!("A file in {} can't be written: {}.", folder.display(), reason_to_write(&e));
        Diagnostic::error("The kubeconfig can't be written", detail)
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    clear(&folder);
    let name: String = address.to_string().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let prefix = format!("{PREFIX}{}-", name.trim_matches('-'));
    let mut file = tempfile::Builder::new().prefix(&prefix).suffix(SUFFIX).tempfile_in(&folder).map_err(failed)?;
    // There are disks without locks; nothing is cleared there.
    let _ = file.as_file().try_lock();
    let text = kubeconfig.as_str().map_or_else(|| format!("{kubeconfig:#}\n"), str::to_owned);
    file.write_all(text.as_bytes()).map_err(failed)?;
    Ok(file)
}

/// Removes what those left who were killed: keys.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_str().is_some_and(|n| n.starts_with(PREFIX) && n.ends_with(SUFFIX));
        // Only a file itself: to open a pipe would wait for ever, and a link is none that we made.
        let age = |m: Metadata| m.modified().ok().filter(|_| m.is_file())?.elapsed().ok();
        let is_old = || entry.metadata().ok().and_then(age).is_some_and(|age| age > STALE);
        if is_one && is_old() && File::open(entry.path()).is_ok_and(|f| f.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
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
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file.path()).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let path = file.path().to_owned();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_run_left_goes_and_is_in_nobodys_way() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::managed("karmada_control_plane", "prod");
        let made = || write(folder.path(), &address, &json!({ "a": 1 })).unwrap();
        let make_old = |path: &Path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * STALE).unwrap();
        };
        let (_, left) = made().keep().unwrap();
        let fresh = made();
        assert!(left.exists() && fresh.path() != left, "it may have been made this very moment");
        make_old(&left);
        make_old(fresh.path());
        // What is no file is none of ours, and nobody waits for who writes into a pipe.
        let below = left.parent().unwrap();
        let (pipe, link) = (below.join("connect-pipe.kubeconfig"), below.join("connect-link.kubeconfig"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(Command::new("touch").args(["-d", "2001-01-01"]).arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(fresh.path(), &link).unwrap();
        assert!(Command::new("touch").args(["-h", "-d", "2001-01-01"]).arg(&link).status().unwrap().success());
        let another = made();
        assert!(!left.exists() && fresh.path().exists() && another.path().exists());
        assert!(pipe.exists() && link.is_symlink());
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
