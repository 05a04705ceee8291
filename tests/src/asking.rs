//! An apply that asks for approval, and holds the lock until it is answered.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::Project;

/// Longer than it takes until it asks, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// It is killed when it is dropped.
pub(crate) struct Asking {
    child: Child,
    out: PathBuf,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Asking {
    /// Ours.
    pub(crate) fn start(project: &Project) -> Self {
        Self::of(env!("CARGO_BIN_EXE_karmaform-under-test"), project, &[])
    }

    /// `PROGRAM apply`, with these environment variables.
    pub(crate) fn of(program: &str, project: &Project, environment: &[(&str, &str)]) -> Self {
        let out = project.path().join("asked");
        let file = fs::File::create(&out).expect("a file");
        let child = Command::new(program)
            .arg("apply")
            .current_dir(project.path())
            .envs([("NO_COLOR", "1"), ("CHECKPOINT_DISABLE", "1")])
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(file.try_clone().expect("a file"))
            .stderr(file)
            .spawn();
        Self { child: child.expect("the command"), out }
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a process").is_none()
    }

    /// Waits until it asks.
    #[track_caller]
    pub(crate) fn asks(self) -> Self {
        let until = Instant::now() + PATIENCE;
        while !self.text().contains("Enter a value:") {
            assert!(Instant::now() < until, "it never asks: {}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    /// Answers, if there is an answer, and gives its exit code and all it said.
    pub(crate) fn end(mut self, answer: &str) -> (Option<i32>, String) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // Who ended already does not listen.
            let _ = stdin.write_all(answer.as_bytes());
        }
        (self.child.wait().expect("a process").code(), self.text())
    }

    /// Gives no answer but a signal, and tells the same.
    pub(crate) fn signalled(mut self, signal: &str) -> (Option<i32>, String) {
        // Held until it has ended: the end of its input would be an answer.
        let _input = self.child.stdin.take();
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success(), "it has ended before {signal}");
        (self.child.wait().expect("a process").code(), self.text())
    }

    /// SIGKILL.
    pub(crate) fn kill(self) {}
}
