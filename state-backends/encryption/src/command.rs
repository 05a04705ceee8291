//! Keys that a program wraps: any key management there is, without us knowing it.
//!
//! The program is called with one more argument: `wrap`, then it reads a key in base64 from its standard input and prints it wrapped;
//! or `unwrap`, then it reads what it printed and prints the key. Both are one line.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karmaform_model::{BoxFuture, KeyService, SealError};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

/// Long enough for one that asks somebody on a network.
const LIMIT: Duration = Duration::from_secs(60);
/// So much of what it says on standard error is shown.
const SAID: usize = 300;

/// A program and its first arguments.
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    pub(crate) directory: PathBuf,
}

impl Program {
    async fn run(&self, verb: &str, input: &str) -> Result<String, SealError> {
        let failed = |why: &str| SealError::Failed(format!("the command of the encryption block ({verb}) {why}"));
        let (program, arguments) = self.words.split_first().ok_or_else(|| failed("is empty"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg(verb)
            .current_dir(&self.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|e| failed(&format!("can't be started: {}", e.kind())))?;
        let stdin = child.stdin.take();
        let talk = async {
            if let Some(mut stdin) = stdin {
                // One that does not read its input says why by how it ends.
                let _ = stdin.write_all(format!("{input}\n").as_bytes()).await;
            }
            child.wait_with_output().await
        };
        let output = timeout(LIMIT, talk).await.map_err(|_| failed("does not end within a minute"))?;
        let output = output.map_err(|e| failed(&format!("can't be run: {}", e.kind())))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: String = said.trim().chars().filter(|c| !c.is_control()).take(SAID).collect();
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            return Err(failed(&format!("failed{said}")));
        }
        let text = String::from_utf8(output.stdout).map_err(|_| failed("prints something else than text"))?;
        match text.trim() {
            "" => Err(failed("prints nothing")),
            text => Ok(text.to_owned()),
        }
    }
}

impl KeyService for Program {
    fn wrap<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<String, SealError>> {
        Box::pin(async move { self.run("wrap", &STANDARD.encode(key)).await })
    }

    fn unwrap<'a>(&'a self, wrapped: &'a str) -> BoxFuture<'a, Result<Vec<u8>, SealError>> {
        Box::pin(async move {
            let text = self.run("unwrap", wrapped).await?;
            STANDARD.decode(text).map_err(|_| SealError::Failed("the command of the encryption block (unwrap) prints no key".to_owned()))
        })
    }
}
