//! A working directory with a configuration in it, and the command as a process there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::parts::root;

/// Longer than anything here takes; so a wait without end fails and does not hang.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) struct Project {
    directory: tempfile::TempDir,
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Both streams.
    pub(crate) text: String,
    pub(crate) took: Duration,
}

impl Project {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The configuration of one of `examples/`, without its values.
    pub(crate) fn example(name: &str) -> Self {
        let project = Self::new();
        for entry in fs::read_dir(root().join("examples").join(name)).expect("the example").flatten() {
            if entry.file_name().to_string_lossy().ends_with(".kf.hcl") {
                fs::copy(entry.path(), project.path().join(entry.file_name())).expect("copied");
            }
        }
        project
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("written");
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).expect("removed");
    }

    /// Starts a command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        self.start_with(arguments, &[])
    }

    /// Starts a command with these environment variables too.
    pub(crate) fn start_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Running {
        let (out, err) = (self.path().join("stdout"), self.path().join("stderr"));
        let file = |path: &PathBuf| Stdio::from(fs::File::create(path).expect("a file"));
        let child = Command::new(env!("CARGO_BIN_EXE_karmaform-under-test"))
            .args(arguments)
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err))
            .spawn()
            .expect("the command");
        Running { child, out, err, started: Instant::now(), line: arguments.join(" ") }
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Runs it; it must end with this code.
    #[track_caller]
    pub(crate) fn must(&self, code: i32, arguments: &[&str]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(code), "karmaform {}\n{}", arguments.join(" "), ended.text);
        ended.text
    }

    #[track_caller]
    pub(crate) fn apply(&self) -> String {
        self.must(0, &["apply", "-auto-approve"])
    }

    #[track_caller]
    pub(crate) fn no_changes(&self) {
        let text = self.must(0, &["plan", "-detailed-exitcode"]);
        assert!(text.contains("No changes"), "{text}");
    }

    #[track_caller]
    pub(crate) fn output(&self, name: &str) -> String {
        let output =
            Command::new(env!("CARGO_BIN_EXE_karmaform-under-test")).args(["output", "-raw", name]).current_dir(self.path()).output();
        let Output { status, stdout, stderr } = output.expect("the command");
        assert!(status.success(), "output {name}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8_lossy(&stdout).into_owned()
    }
}

/// A command under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    out: PathBuf,
    err: PathBuf,
    started: Instant,
    line: String,
}

impl Running {
    pub(crate) fn text(&self) -> String {
        [&self.out, &self.err].iter().map(|p| String::from_utf8_lossy(&fs::read(p).unwrap_or_default()).into_owned()).collect()
    }

    /// Waits until it has said this; false if it ended before.
    pub(crate) fn says(&mut self, words: &str) -> bool {
        while self.started.elapsed() < LIMIT {
            if self.text().contains(words) {
                return true;
            }
            if self.child.try_wait().expect("a process").is_some() {
                return self.text().contains(words);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub(crate) fn end(mut self) -> Ended {
        loop {
            if let Some(status) = self.child.try_wait().expect("a process") {
                return Ended { code: status.code(), text: self.text(), took: self.started.elapsed() };
            }
            if self.started.elapsed() > LIMIT {
                let _ = self.child.kill();
                panic!("karmaform {} did not end within {LIMIT:?}:\n{}", self.line, self.text());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.text()
    }
}
