//! What the demonstration prints while it runs, and the error for a step that is not as expected.

use std::io::Write;

use crate::error::{Error, Kind, Result};

/// The output that the demonstration prints to.
pub struct Story<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Story<'a> {
    /// Makes a story that prints to `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// Prints a line immediately.
    pub fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).map_err(|e| Error::io("cannot print", e))
    }
}

/// The error for a step that is not as expected.
pub fn unexpected(step: &str, what: &str) -> Error {
    Error::new(Kind::Internal, format!("the demonstration stopped at {step}: {what}"))
        .with_hint("Please report this with the lines above.")
}
