//! Typing that nobody sees, for secrets.

use std::io::stdin;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

/// How the terminal was before, while something is hidden. Whoever ends the process in between puts it back by [`restore`].
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While it lives, the terminal does not show what is typed. Where the input is no terminal it does nothing.
pub(crate) struct Hidden;

impl Hidden {
    pub(crate) fn begin() -> Self {
        let input = stdin();
        if isatty(&input)
            && let Ok(before) = tcgetattr(&input)
        {
            let mut now = before.clone();
            now.local_modes.remove(LocalModes::ECHO);
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
            let _ = tcsetattr(&input, OptionalActions::Now, &now);
        }
        Self
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        restore();
    }
}

/// Shows again what is typed, if it was hidden.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}
