//! One line that says what is waited for: redrawn in place on a terminal, else printed when it changes.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::Instant;

/// A line on standard error.
pub(crate) struct Progress {
    terminal: bool,
    begun: Instant,
    last: Mutex<String>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
            begun: Instant::now(),
            last: Mutex::default(),
        }
    }

    /// Shows what is waited for.
    pub(crate) fn show(&self, text: &str) {
        let text = text.replace(char::is_control, " ");
        let mut stderr = std::io::stderr().lock();
        let Ok(mut last) = self.last.lock() else { return };
        if self.terminal {
            let seconds = self.begun.elapsed().as_secs();
            let text: String = text.chars().take(100).collect();
            let _ = write!(stderr, "\r\x1b[2K{text} ({seconds} s)");
            let _ = stderr.flush();
        } else if *last != text {
            let _ = writeln!(stderr, "{text}");
        }
        *last = text;
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if self.terminal {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[2K");
            let _ = stderr.flush();
        }
    }
}
