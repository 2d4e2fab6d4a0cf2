//! Storing a check-in: one write transaction of Fossil's code, beside which the caller may do its own part.
//!
//! The modules above decide what goes into the artifacts.

use std::ffi::c_char;
use std::path::Path;
use std::sync::mpsc;

use super::bindings as c;
use super::pool::{SessionPool, start};
use super::session::c_string;
use crate::error::{Error, Kind, Result};

/// One file content that a check-in brings.
#[derive(Debug)]
pub struct Content {
    /// Its artifact hash: 40 or 64 hex digits.
    pub hash: String,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Hash of the content that it replaces, which may be stored as a delta from it.
    pub previous: Option<String>,
}

/// A check-in, ready to be stored.
#[derive(Debug)]
pub struct Artifacts {
    /// Login that it is received from.
    pub user: String,
    /// Hash of the parent check-in.
    pub parent: String,
    /// The branch it will be on.
    pub branch: String,
    /// Whether a second leaf on that branch is wanted.
    pub allow_fork: bool,
    /// Contents that the repository may lack.
    pub contents: Vec<Content>,
    /// The manifest's text.
    pub manifest: Vec<u8>,
    /// The manifest's hash.
    pub manifest_hash: String,
    /// Whether the check-in is private.
    pub private: bool,
    /// A note that the repository keeps with the record of who brought the artifacts. No two records have the same note.
    pub note: Option<String>,
}

/// Stores a check-in in the repository at `path`, in one transaction.
///
/// # Errors
/// [`Kind::WouldFork`], [`Kind::Closed`], [`Kind::NotFound`] (parent or user), [`Kind::Invalid`] (the
/// parent is younger, or the manifest is none), [`Kind::Busy`], [`Kind::DiskFull`], [`Kind::Corrupt`].
pub fn check_in(path: &Path, artifacts: Artifacts) -> Result<()> {
    check_in_while(path, artifacts, || ()).0
}

/// As [`check_in`]. Once nobody else can write to the repository, `meanwhile` runs beside it on the calling thread.
///
/// Returns what `meanwhile` returned, or nothing if the check-in did not get that far.
pub fn check_in_while<T>(
    path: &Path,
    artifacts: Artifacts,
    meanwhile: impl FnOnce() -> T,
) -> (Result<()>, Option<T>) {
    let path = path.to_owned();
    let (begun, has_begun) = mpsc::sync_channel(1);
    match start(move |pool| check_in_at(pool, &path, &artifacts, &begun)) {
        Err(e) => (Err(e), None),
        Ok(started) => {
            let done = started.receive(&has_begun).map(|()| meanwhile());
            (started.wait().flatten(), done)
        }
    }
}

fn check_in_at(
    pool: &SessionPool,
    path: &Path,
    artifacts: &Artifacts,
    begun: &mpsc::SyncSender<()>,
) -> Result<()> {
    let text = |b: &[u8]| c::OcxText { data: b.as_ptr().cast::<c_char>(), size: b.len() };
    let string = |what, s: &str| c_string(what, s.as_bytes());
    let names = artifacts
        .contents
        .iter()
        .map(|a| {
            Ok((string("a hash", &a.hash)?, a.previous.as_deref().map(|p| string("a hash", p)).transpose()?))
        })
        .collect::<Result<Vec<_>>>()?;
    let contents: Vec<c::OcxContent> = artifacts
        .contents
        .iter()
        .zip(&names)
        .map(|(content, (hash, previous))| c::OcxContent {
            hash: hash.as_ptr(),
            content: text(&content.bytes),
            previous: previous.as_ref().map_or(std::ptr::null(), |p| p.as_ptr()),
        })
        .collect();
    let (user, parent) = (string("the user", &artifacts.user)?, string("the parent", &artifacts.parent)?);
    let (branch, hash) =
        (string("the branch", &artifacts.branch)?, string("a hash", &artifacts.manifest_hash)?);
    let note = artifacts.note.as_deref().map(|n| string("the note", n)).transpose()?;
    let raw = c::OcxCheckIn {
        user: user.as_ptr(),
        parent: parent.as_ptr(),
        branch: branch.as_ptr(),
        allow_fork: i32::from(artifacts.allow_fork),
        contents: contents.as_ptr(),
        content_count: contents.len(),
        manifest: text(&artifacts.manifest),
        manifest_hash: hash.as_ptr(),
        is_private: i32::from(artifacts.private),
        note: note.as_ref().map_or(std::ptr::null(), |n| n.as_ptr()),
    };
    let outcome = pool.warm(path, "cannot store the check-in", |s| {
        let locked = s.check_in_begin();
        if locked.left {
            return locked;
        }
        // Nobody listens if the caller has panicked.
        let _ = begun.send(());
        s.check_in(&raw)
    })?;
    refusal(outcome.code.unsigned_abs(), artifacts)
}

/// The refusals of `ocx_check_in`, in words.
fn refusal(code: u32, a: &Artifacts) -> Result<()> {
    let (kind, what, hint) = match code {
        c::OCX_STORED => return Ok(()),
        c::OCX_NO_USER => (
            Kind::NotFound,
            format!("no user `{}` in the repository", a.user),
            "Name a login of this repository.",
        ),
        c::OCX_NO_PARENT => (
            Kind::NotFound,
            format!("the parent `{}` is not a check-in of this repository", a.parent),
            "Pull first.",
        ),
        c::OCX_WOULD_FORK => (
            Kind::WouldFork,
            format!("a check-in after `{:.10}` would be a second leaf of branch `{}`", a.parent, a.branch),
            "Update the checkout to the tip of the branch and try again.",
        ),
        c::OCX_BRANCH_CLOSED => {
            (Kind::Closed, format!("branch `{}` is closed", a.branch), "Continue on another branch.")
        }
        c::OCX_PARENT_YOUNGER => (
            Kind::Invalid,
            format!("the parent `{:.10}` is not older than the new check-in", a.parent),
            "Set the clock right, or wait until it has passed the parent's time.",
        ),
        _ => (
            Kind::Invalid,
            "Fossil's parser does not take the manifest as a check-in".to_owned(),
            "Check the comment, the branch and the file names.",
        ),
    };
    Err(Error::new(kind, what).with_hint(hint))
}
