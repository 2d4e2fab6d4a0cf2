//! What OCX and the two processes of a supervisor say to each other.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::confine::Outside;
use super::exit::{Exit, Leftover};
use super::sandbox::Sandbox;

/// The first argument of a program that is run as a supervisor.
pub(super) const ARGUMENT: &str = "supervise";
/// The byte that asks over the control pipe for the command's end.
pub(super) const CANCEL: u8 = b'c';
/// The time between TERM and KILL.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// What `hold` says once the sandbox stands and is judged, before its report.
pub(super) const STANDS: &[u8] = b"the sandbox stands\n";
/// More than any order has. A longer one is damaged.
const ORDER_BYTES_MAX: usize = 64 << 20;

/// What to run: the start of a supervisor's standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub command: String,
    pub folder: PathBuf,
    pub limit_ms: u64,
    /// The command's variables. They are no variables of the supervisor, because they may come from the sources under
    /// test: a library that they name is never loaded outside the sandbox.
    pub environment: Vec<(Word, Word)>,
    pub sandbox: Option<Sandbox>,
    /// The home of the caller, which a sandbox hides.
    pub home: Option<PathBuf>,
    /// Set by `watch` for `hold`.
    pub outside: Option<Outside>,
}

/// A word that need not be UTF-8.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Word {
    Text(String),
    Bytes(OsString),
}

impl From<OsString> for Word {
    fn from(word: OsString) -> Self {
        word.into_string().map_or_else(Self::Bytes, Self::Text)
    }
}

impl From<Word> for OsString {
    fn from(word: Word) -> Self {
        match word {
            Word::Text(text) => text.into(),
            Word::Bytes(bytes) => bytes,
        }
    }
}

impl Order {
    /// The bytes to send: their number in eight digits, then the order.
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let order = serde_json::to_vec(self)?;
        Ok([format!("{:08x}", order.len()).as_bytes(), &order].concat())
    }

    /// Reads an order and not a byte more: what follows is read when `poll` announces it.
    pub(super) fn read(from: BorrowedFd<'_>) -> io::Result<Self> {
        let mut digits = [0; 8];
        Exactly(from).read_exact(&mut digits)?;
        let length = std::str::from_utf8(&digits).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(length) = length.filter(|length| *length <= ORDER_BYTES_MAX) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut order = vec![0; length];
        Exactly(from).read_exact(&mut order)?;
        Ok(serde_json::from_slice(&order)?)
    }
}

/// What came of it: the standard output of a supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    pub exit: Exit,
    pub left_behind: Vec<Leftover>,
    pub sandboxed: bool,
}

impl Report {
    pub(super) fn write(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, self)?;
        out.flush()
    }
}

/// Reads without a buffer.
struct Exactly<'a>(BorrowedFd<'a>);

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, buffer)?)
    }
}

/// Reads once, also if a signal comes between.
pub(super) fn raw_read(from: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(from, &mut *buffer) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Waits for at most `wait`; returns which of `sources` have something to read or are at their end. An interrupted wait
/// returns none.
pub(super) fn ready<const N: usize>(sources: [BorrowedFd<'_>; N], wait: Duration) -> [bool; N] {
    let mut asked = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN));
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut asked, Some(&wait)) {
        Ok(_) => std::array::from_fn(|i| !asked[i].revents().is_empty()),
        Err(_) => [false; N],
    }
}

/// Whether standard input has something to read or is at its end.
pub(super) fn is_input_ready() -> bool {
    ready([io::stdin().as_fd()], Duration::ZERO)[0]
}
