//! What the demonstration prints, as it happens, and the error for what was not to happen.

use std::io::Write;

use crate::error::{Error, Kind, Result};

/// Where it is printed.
pub struct Story<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Story<'a> {
    /// A story that is printed to `out`.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// Prints a line at once.
    pub fn say(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).map_err(|e| Error::io("cannot print", e))
    }
}

/// The error for a step that is not as expected.
pub fn unexpected(step: &str, what: &str) -> Error {
    Error::new(Kind::Internal, format!("the demonstration stopped at {step}: {what}"))
        .with_hint("Please report this with the lines above.")
}
