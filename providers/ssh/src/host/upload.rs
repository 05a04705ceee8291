//! What goes to a command's standard input: its script, then a payload from memory or from a file, in pieces.

use std::fs::File;
use std::io::Read;

use karmaform_model::Diagnostic;

use super::{Payload, Request};

/// How much of a file is held in memory at once.
const PIECE: usize = 1 << 20;

/// Bytes on their way to a command.
pub(super) struct Input {
    pending: Vec<u8>,
    sent: usize,
    file: Option<File>,
}

impl Input {
    /// The script of a request, then its payload.
    pub(super) fn new(request: &Request) -> Result<Self, Diagnostic> {
        let mut pending = request.script.text().as_bytes().to_vec();
        let file = match &request.payload {
            Payload::Nothing => None,
            Payload::Bytes(bytes) => {
                pending.extend_from_slice(bytes);
                None
            }
            Payload::File(path) => Some(File::open(path).map_err(|e| {
                Diagnostic::error(
                    "File can't be read",
                    format!("The file {} is to be sent to the host, but it can't be read: {e}.", path.display()),
                )
            })?),
        };
        Ok(Self { pending, sent: 0, file })
    }

    /// What is to be sent next; the same bytes until [`Input::sent`] is told. `None` at the end.
    pub(super) fn pending(&mut self) -> std::io::Result<Option<&[u8]>> {
        if self.sent == self.pending.len() {
            let Some(file) = &mut self.file else { return Ok(None) };
            self.pending.resize(PIECE, 0);
            let n = file.read(&mut self.pending)?;
            self.pending.truncate(n);
            self.sent = 0;
            if n == 0 {
                self.file = None;
                return Ok(None);
            }
        }
        Ok(Some(&self.pending[self.sent..]))
    }

    /// So many bytes went out.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }
}
