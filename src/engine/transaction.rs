//! One write transaction of a repository, in which Fossil's code and SQL of our own take turns on one handle.
//!
//! Everything that writes artifacts other than a check-in's goes through it: bundles, pages, posts, tags, users.
//! The modules above decide what is written; this one keeps the transaction whole.

use std::ffi::CString;
use std::ops::Deref;

use rusqlite::Connection;

use super::bindings as c;
use super::failure::error_of;
use super::session::{self, CallOutcome, Session, c_string};
use crate::error::{Error, Kind, Result};

/// A write transaction under way, on the engine thread.
///
/// ```
/// use ocx::{engine, name::User, repo::{NewRepository, Repository}};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("r.fossil");
/// Repository::create(&path, &NewRepository { user: User::parse("ann")? })?;
/// let page = b"D 2026-11-30T10:00:00\nL Notes\nU ann\nW 5\nhello\nZ 17cf0b1f5fa03ff2f01ef9d2cc1e5b30\n";
/// // The checksum in the last line is wrong, so Fossil does not take it, and nothing is stored.
/// let hash = "1".repeat(64);
/// assert!(engine::transaction(&path, "ann", move |t| t.put(page, &hash, None)).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Transaction<'a> {
    /// Declared before the session, so it is dropped first.
    connection: Connection,
    session: &'a mut Session,
    broken: bool,
}

impl<'a> Transaction<'a> {
    pub(super) fn begin(session: &'a mut Session, user: &CString) -> Result<Self> {
        let (outcome, db) = session.transaction_begin(user);
        completed("cannot begin to write", &outcome)?;
        if outcome.code.unsigned_abs() == c::OCX_NO_USER {
            let name = user.to_string_lossy();
            return Err(Error::new(Kind::NotFound, format!("no user `{name}` in the repository"))
                .with_hint("Name a login of this repository."));
        }
        // SAFETY: I9 - the handle is the session's, which outlives the connection made of it.
        let connection = unsafe { Connection::from_handle(db) }?;
        Ok(Self { connection, session, broken: false })
    }

    /// Returns Fossil's own SQLite handle, in the same transaction. It refuses statements that would call Fossil's
    /// functions or virtual tables or write to a full-text table. It also refuses a commit, and a write to `user` or
    /// `config` outside of [`unprotected`](Self::unprotected).
    // Not public: an interrupt handle taken from it would outlive the session (I9).
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs `f`, in which statements may write to the tables `user` and `config`.
    pub(crate) fn unprotected<T>(&self, f: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        struct Again;
        impl Drop for Again {
            fn drop(&mut self) {
                session::unprotect(false);
            }
        }
        let _again = Again;
        session::unprotect(true);
        f(&self.connection)
    }

    /// Has Fossil's code store a control artifact (a page, a post, a tag, ...) under `hash`. That code also parses it,
    /// links it in and notes that it is to be sent. The artifact `previous` may become a delta from it. Returns its rid.
    ///
    /// # Errors
    /// [`Kind::Invalid`] when Fossil's parser does not take it. After this and every other error the transaction cannot
    /// go on.
    pub fn put(&mut self, artifact: &[u8], hash: &str, previous: Option<&str>) -> Result<i64> {
        let hash = c_string("a hash", hash.as_bytes())?;
        let previous = previous.map(|p| c_string("a hash", p.as_bytes())).transpose()?;
        if i32::try_from(artifact.len()).is_err() {
            return Err(Error::new(Kind::TooLarge, "a control artifact is over 2 GiB"));
        }
        let (outcome, rid) = self.turn(|s| s.transaction_put(artifact, &hash, previous.as_ref()))?;
        self.finish("cannot store the artifact", &outcome)?;
        if outcome.code != 0 {
            self.broken = true;
            return Err(Error::new(Kind::Invalid, "Fossil's parser does not take the artifact")
                .with_hint("Check its cards; nothing was stored."));
        }
        Ok(rid.into())
    }

    /// Has Fossil's code link stored artifacts into the derived tables, as after a pull. `next` gives some at a time, and
    /// none at the end. Mere contents stay as they are. Each row number comes with the artifact's expanded text, or with
    /// no text if Fossil's code is to expand it.
    ///
    /// # Errors
    /// Those of `next`, and what Fossil's code met. The transaction cannot go on then.
    pub fn link<T>(&mut self, mut next: impl FnMut() -> Result<Vec<(i64, T)>>) -> Result<()>
    where
        T: Deref<Target: AsRef<[u8]>>,
    {
        let what = "cannot link the artifacts in";
        let outcome = self.turn(Session::transaction_link_begin)?;
        self.finish(what, &outcome)?;
        loop {
            // What was begun cannot be left.
            let some = next().inspect_err(|_| self.broken = true)?;
            if some.is_empty() {
                break;
            }
            let numbers = numbers(some.iter().map(|&(rid, _)| rid))?;
            // Fossil's code cannot count a larger text. It expands such content itself and finds that it is no artifact.
            let texts = some.iter().map(|(_, text)| text.as_ref());
            let texts = texts.map(|text| if i32::try_from(text.len()).is_ok() { text } else { &[] });
            let stored: Vec<(i32, &[u8])> = numbers.into_iter().zip(texts).collect();
            let outcome = self.turn(|s| s.transaction_link(&stored))?;
            self.finish(what, &outcome)?;
        }
        let outcome = self.turn(Session::transaction_link_end)?;
        self.finish(what, &outcome)
    }

    /// As [`link`](Self::link), with all artifacts at once.
    ///
    /// # Errors
    /// As for [`link`](Self::link).
    pub fn crosslink(&mut self, artifacts: &[(i64, &[u8])]) -> Result<()> {
        let mut all = Some(artifacts.to_vec());
        self.link(|| Ok(all.take().unwrap_or_default()))
    }

    /// Links in what waited for artifacts that were known without their content and have it now.
    ///
    /// # Errors
    /// As [`crosslink`](Self::crosslink).
    pub fn filled(&mut self, rids: &[i64]) -> Result<()> {
        let numbers = numbers(rids.iter().copied())?;
        let outcome = self.turn(|s| s.transaction_filled(&numbers))?;
        self.finish("cannot link in what has waited", &outcome)
    }

    /// Returns the `rcvid` under which this transaction receives artifacts: who brought them, and when.
    ///
    /// # Errors
    /// [`Kind::DiskFull`], [`Kind::Io`].
    pub fn receipt(&mut self) -> Result<i64> {
        let (outcome, number) = self.turn(Session::transaction_receipt)?;
        self.finish("cannot note who brings the artifacts", &outcome)?;
        Ok(number.into())
    }

    pub(super) fn commit(self) -> Result<()> {
        if self.broken {
            return Err(broken());
        }
        let Self { connection, session, .. } = self;
        drop(connection);
        completed("cannot commit the transaction", &session.transaction_end())
    }

    /// Makes a call into Fossil's code, unless an earlier one has left.
    fn turn<R>(&mut self, f: impl FnOnce(&mut Session) -> R) -> Result<R> {
        if self.broken { Err(broken()) } else { Ok(f(self.session)) }
    }

    fn finish(&mut self, what: &str, outcome: &CallOutcome) -> Result<()> {
        self.broken |= outcome.left;
        completed(what, outcome)
    }
}

/// Returns row numbers in the type that Fossil's code uses.
fn numbers(rids: impl Iterator<Item = i64>) -> Result<Vec<i32>> {
    rids.map(i32::try_from).collect::<Result<_, _>>().map_err(|e| {
        Error::new(Kind::Unsupported, "the repository has more artifacts than Fossil can count").caused_by(e)
    })
}

fn completed(what: &str, outcome: &CallOutcome) -> Result<()> {
    if outcome.left { Err(error_of(what, outcome)) } else { Ok(()) }
}

fn broken() -> Error {
    Error::new(Kind::Internal, "an earlier step of this transaction has failed")
        .with_hint("Return that step's error; nothing was stored.")
}
