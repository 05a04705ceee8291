//! What goes to a command's standard input: its script, then a payload from memory or from a file, in pieces.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use karmaform_model::Diagnostic;

use super::{Payload, Request};

/// How much of a file is held in memory at once.
const PIECE: usize = 1 << 20;

/// Bytes on their way to a command.
pub(super) struct Input {
    pending: Vec<u8>,
    sent: usize,
    /// And the place where to go on.
    file: Option<(Arc<File>, u64)>,
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
            Payload::File(file, from) => Some((Arc::clone(file), *from)),
        };
        Ok(Self { pending, sent: 0, file })
    }

    /// What is to be sent next; the same bytes until [`Input::sent`] is told. `None` at the end.
    pub(super) fn pending(&mut self) -> std::io::Result<Option<&[u8]>> {
        if self.sent == self.pending.len() {
            let Some((file, at)) = &mut self.file else { return Ok(None) };
            self.pending.resize(PIECE, 0);
            let n = file.read_at(&mut self.pending, *at)?;
            *at += n as u64;
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
