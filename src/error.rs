//! The one public error: what kind of failure, what failed, why, and what to do next.
//!
//! A message is a lowercase fragment that names the thing (`cannot open repository x.fossil`);
//! the hint is a whole sentence. Callers match on [`Kind`], never on the text.

use std::sync::Arc;
use std::{error, fmt, io};

/// A result of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The named thing does not exist.
    NotFound,
    /// The name fits more than one thing.
    Ambiguous,
    /// The thing to be made is there already.
    Exists,
    /// The input breaks a rule that is stated in the message.
    Invalid,
    /// The input or content is over a stated limit.
    TooLarge,
    /// The user lacks the capability, or the place is out of bounds.
    Denied,
    /// Another process or call holds what is needed; the same call may work later.
    Busy,
    /// The content changed since it was read, so acting on it would lose something.
    Changed,
    /// Nothing differs, so there is nothing to do.
    Unchanged,
    /// A check-in here would be a second leaf on its branch.
    WouldFork,
    /// The branch is closed.
    Closed,
    /// Declared tests have not passed on exactly this tree.
    Untested,
    /// The check-in exists locally but the server does not hold it.
    NotPushed,
    /// The server cannot be reached.
    Unreachable,
    /// The server does not prove that it is the one that was meant: its certificate is not trusted, is for another
    /// name or not valid now.
    Untrusted,
    /// A stated time limit ran out.
    TimedOut,
    /// The server does not accept the login.
    LoginFailed,
    /// The server refused, in the words that the message repeats.
    Refused,
    /// The file is not a Fossil repository, or belongs to another project.
    Foreign,
    /// Stored data is damaged.
    Corrupt,
    /// The disk is full.
    DiskFull,
    /// The caller cancelled the call.
    Cancelled,
    /// The build or the platform lacks what is needed.
    Unsupported,
    /// What would do it does not run here.
    Unavailable,
    /// The operating system refused a read or write.
    Io,
    /// Fossil's C code failed in a way that has no kind of its own, or OCX broke a promise to itself.
    Internal,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 26] = [
        Self::NotFound,
        Self::Ambiguous,
        Self::Exists,
        Self::Invalid,
        Self::TooLarge,
        Self::Denied,
        Self::Busy,
        Self::Changed,
        Self::Unchanged,
        Self::WouldFork,
        Self::Closed,
        Self::Untested,
        Self::NotPushed,
        Self::Unreachable,
        Self::Untrusted,
        Self::TimedOut,
        Self::LoginFailed,
        Self::Refused,
        Self::Foreign,
        Self::Corrupt,
        Self::DiskFull,
        Self::Cancelled,
        Self::Unsupported,
        Self::Unavailable,
        Self::Io,
        Self::Internal,
    ];

    /// The stable word for this kind, as tools print it in `code`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::Exists => "exists",
            Self::Invalid => "invalid",
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::WouldFork => "would_fork",
            Self::Closed => "closed",
            Self::Untested => "untested",
            Self::NotPushed => "not_pushed",
            Self::Unreachable => "unreachable",
            Self::Untrusted => "untrusted",
            Self::TimedOut => "timed_out",
            Self::LoginFailed => "login_failed",
            Self::Refused => "refused",
            Self::Foreign => "foreign",
            Self::Corrupt => "corrupt",
            Self::DiskFull => "disk_full",
            Self::Cancelled => "cancelled",
            Self::Unsupported => "unsupported",
            Self::Unavailable => "unavailable",
            Self::Io => "io",
            Self::Internal => "internal",
        }
    }
}

/// A failure: its kind, what failed, the cause below it, and what to do next.
///
/// ```
/// use ocx::error::{Error, Kind};
/// let e = Error::new(Kind::NotFound, "no file `a.txt`").with_hint("List the folder first.");
/// assert_eq!(e.kind(), Kind::NotFound);
/// assert_eq!(e.to_string(), "no file `a.txt`");
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    what: String,
    hint: Option<String>,
    source: Option<Arc<dyn error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error of `kind`; `what` names the thing that failed.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), hint: None, source: None }
    }

    /// Makes an error from the operating system's; a full disk, a missing file and a refused
    /// access get their own kinds.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Kind::Denied,
            io::ErrorKind::AlreadyExists => Kind::Exists,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Kind::DiskFull
            }
            _ => Kind::Io,
        };
        let error = Self::new(kind, format!("{}: {source}", what.into())).caused_by(source);
        if kind == Kind::Denied { error.with_hint(Self::ON_DISK) } else { error }
    }

    /// What helps if the disk, and no capability, denies something.
    pub const ON_DISK: &'static str =
        "Have the file and its folder made readable and writable for the user whose process this is.";

    /// Adds the sentence that says what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn error::Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What to do next, where one thing is known to help.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}

impl From<rusqlite::Error> for Error {
    fn from(e: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as C;
        let kind = match e.sqlite_error_code() {
            Some(C::DatabaseBusy | C::DatabaseLocked) => Kind::Busy,
            Some(C::OperationInterrupted) => Kind::Cancelled,
            Some(C::DiskFull) => Kind::DiskFull,
            Some(C::DatabaseCorrupt) => Kind::Corrupt,
            Some(C::NotADatabase) => Kind::Foreign,
            Some(C::ReadOnly | C::PermissionDenied | C::AuthorizationForStatementDenied) => Kind::Denied,
            Some(C::CannotOpen) => Kind::NotFound,
            Some(C::TooBig) => Kind::TooLarge,
            Some(C::SystemIoFailure) => Kind::Io,
            _ if matches!(e, rusqlite::Error::QueryReturnedNoRows) => Kind::NotFound,
            _ => Kind::Internal,
        };
        let on_disk = matches!(e.sqlite_error_code(), Some(C::ReadOnly | C::PermissionDenied));
        let error = Self::new(kind, e.to_string()).caused_by(e);
        if on_disk { error.with_hint(Self::ON_DISK) } else { error }
    }
}
