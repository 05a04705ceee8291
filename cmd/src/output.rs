//! Where a run reads and writes: three streams and what is known of the terminal. Tests give buffers.

use std::io::{BufRead, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Standard input is one.
    pub stdin: bool,
    /// Standard output is one.
    pub stdout: bool,
    /// Standard error is one.
    pub stderr: bool,
    /// Its columns.
    pub width: Option<usize>,
}

/// The three streams.
pub struct Output {
    /// Plans, progress, warnings, answers.
    pub stdout: Box<dyn Write + Send>,
    /// Errors.
    pub stderr: Box<dyn Write + Send>,
    /// Approvals and values of variables.
    pub stdin: Box<dyn BufRead + Send>,
    /// What is known of the terminal.
    pub terminal: Terminal,
}

/// What a run wrote, for tests.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    stdout: Buffer,
    stderr: Buffer,
}

#[derive(Clone, Debug, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Captured {
    /// What went to standard output.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What went to standard error.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }
}

impl Output {
    /// Streams in memory, with this to read; no terminal.
    pub fn captured(stdin: &str) -> (Self, Captured) {
        let captured = Captured::default();
        let output = Self {
            stdout: Box::new(captured.stdout.clone()),
            stderr: Box::new(captured.stderr.clone()),
            stdin: Box::new(Cursor::new(stdin.as_bytes().to_vec())),
            terminal: Terminal::default(),
        };
        (output, captured)
    }

    /// Writes to standard output. A reader that went away is no reason to stop an apply.
    pub fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush());
    }

    /// Writes to standard error.
    pub fn complain(&mut self, text: &str) {
        let _ = self.stderr.write_all(text.as_bytes()).and_then(|()| self.stderr.flush());
    }

    /// All of standard input.
    ///
    /// # Errors
    /// If it can't be read, or is no text.
    pub fn read_all(&mut self) -> std::io::Result<String> {
        let mut text = String::new();
        self.stdin.read_to_string(&mut text).map(|_| text)
    }

    /// One line from standard input, without its end; `None` at the end of the stream.
    pub fn read_line(&mut self) -> Option<String> {
        // Bytes that are no text become a sign that no answer and no expression holds.
        let mut line = Vec::new();
        match self.stdin.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        }
    }
}
