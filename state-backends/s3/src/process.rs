//! Credentials that a program prints. <https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html>

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use karmaform_model::StoreError;
use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

use crate::credentials::Issued;
use crate::source::Keys;

/// As long as Amazon's SDK for Go waits.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Printed {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<jiff::Timestamp>,
}

/// Runs the command with this environment and reads what it prints. Neither the command nor its output is ever shown: both may hold secrets.
pub(crate) async fn credentials(command: &str, environment: &BTreeMap<String, String>) -> Result<Issued, StoreError> {
    let bad = |why: &str| StoreError::Refused(format!("The profile's credential_process {why}; run it by hand to see what it says."));
    let running = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(LIMIT, running).await.map_err(|_| bad("does not end within a minute"))?.map_err(|_| bad("can't be started"))?;
    if !output.status.success() {
        return Err(bad("failed"));
    }
    let printed: Printed = serde_json::from_slice(&output.stdout).map_err(|_| bad("prints something else than credentials"))?;
    if printed.version != 1 {
        return Err(bad("prints credentials of a version other than 1"));
    }
    let Printed { access_key_id, secret_access_key, session_token, expiration, .. } = printed;
    Ok(Issued { keys: Keys { access: access_key_id, secret: secret_access_key, token: session_token }, until: expiration })
}
