//! What each content of a bundle is: whether it has its hash, and whether Fossil would obey it. On several
//! threads, since hashing takes most of the time.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::Bundle;
use super::file::in_bundle;
use super::walk::Expanded;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::{Glance, Manifest, glance, looks_like_artifact};
use crate::name::Hash;

/// Bytes of contents that may wait for a thread.
const WAITING_MAX: usize = 16 << 20;
/// Bytes of likely artifacts that stay at hand after the walk.
const KEPT_MAX: usize = 24 << 20;

/// What was found in a bundle.
#[derive(Default)]
pub(super) struct Findings {
    /// Rows that are control artifacts, in no order.
    pub controls: Vec<Control>,
    /// Contents that check-ins in the bundle name as their files.
    pub files: HashSet<Hash>,
}

/// A control artifact.
pub(super) struct Control {
    pub row: usize,
    /// What it says, if it is a check-in; without its files.
    pub check_in: Option<Manifest>,
}

/// What may be a control artifact, by its first bytes.
pub(super) struct Likely {
    pub row: usize,
    pub glance: Glance,
    content: Option<Arc<Vec<u8>>>,
}

impl Likely {
    /// What it is, not verified yet; nothing where it did not stay at hand.
    pub fn text(&self) -> &[u8] {
        self.content.as_deref().map_or(&[], Vec::as_slice)
    }
}

/// Contents on their way to the threads.
pub(super) struct Queue<'a> {
    bundle: &'a Bundle,
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(usize, Arc<Vec<u8>>)>,
    bytes: usize,
    closed: bool,
    findings: Findings,
    failure: Option<Error>,
}

impl Bundle {
    /// Runs `work`, which walks the bundle, and verifies every artifact meanwhile, some when `work` is already
    /// past the walk: what it does must be undone on an error.
    pub(super) fn judge<T>(&self, work: impl FnOnce(&Queue<'_>) -> Result<T>) -> Result<(Findings, T)> {
        let queue = Queue { bundle: self, state: Mutex::default(), more: Condvar::new() };
        // One is for the caller, who works too.
        let threads = thread::available_parallelism().map_or(1, |n| n.get() - 1).clamp(1, 8);
        let worked = thread::scope(|scope| {
            // Also when `work` panics: the threads must end.
            let closing = Closing(&queue);
            for _ in 0..threads {
                // Without a thread the walk does its work.
                let _ = thread::Builder::new().spawn_scoped(scope, || queue.work());
            }
            let worked = work(&queue);
            drop(closing);
            while queue.take_one() {}
            worked
        });
        let state = queue.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let findings = state.failure.map_or(Ok(state.findings), Err)?;
        let worked = worked?;
        self.refuse_control_as_content(&findings)?;
        Ok((findings, worked))
    }

    /// Content never becomes control: what a check-in holds as a file must not be a check-in itself.
    fn refuse_control_as_content(&self, findings: &Findings) -> Result<()> {
        let hash = |control: &Control| self.inner.rows[control.row].hash;
        match findings.controls.iter().map(hash).find(|hash| findings.files.contains(hash)) {
            Some(hash) => Err(control_as_content(&hash)),
            None => Ok(()),
        }
    }
}

pub(super) fn control_as_content(hash: &Hash) -> Error {
    let what = format!(
        "the file content `{hash}` has the form of a Fossil control artifact, which every server would obey"
    );
    Error::new(Kind::Invalid, what).with_hint("Leave the check-in with that file out of the bundle.")
}

/// Lets the threads end.
struct Closing<'a, 'b>(&'a Queue<'b>);

impl Drop for Closing<'_, '_> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.more.notify_all();
    }
}

impl Queue<'_> {
    /// Expands every artifact, calls `visit` with each and has it verified. Gives what may be control artifacts.
    pub(super) fn walk(
        &self,
        external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>,
        mut visit: impl FnMut(&Expanded<'_>) -> Result<()>,
    ) -> Result<Vec<Likely>> {
        let (mut likely, mut kept) = (Vec::new(), 0);
        self.bundle.walk(external, |expanded| {
            visit(&expanded)?;
            let Expanded { row, content, .. } = expanded;
            if let Some(glance) = glance(&content) {
                kept += content.len();
                let content = (kept <= KEPT_MAX).then(|| Arc::clone(&content));
                likely.push(Likely { row, glance, content });
            }
            self.push(row, content)
        })?;
        Ok(likely)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a content over; where too much waits already, does a part of the work.
    fn push(&self, row: usize, content: Arc<Vec<u8>>) -> Result<()> {
        let mut state = self.state();
        if let Some(e) = state.failure.take() {
            return Err(e);
        }
        state.bytes += content.len();
        let too_much = state.bytes > WAITING_MAX;
        state.waiting.push_back((row, content));
        drop(state);
        self.more.notify_one();
        if too_much {
            self.take_one();
        }
        Ok(())
    }

    /// Judges one content, if one waits.
    fn take_one(&self) -> bool {
        let mut state = self.state();
        let Some((row, content)) = state.waiting.pop_front() else { return false };
        state.bytes -= content.len();
        drop(state);
        self.judge(row, &content);
        true
    }

    fn work(&self) {
        loop {
            let mut state = self.state();
            while state.waiting.is_empty() && !state.closed {
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.waiting.is_empty() {
                return;
            }
            drop(state);
            self.take_one();
        }
    }

    fn judge(&self, row: usize, content: &[u8]) {
        let hash = self.bundle.inner.rows[row].hash;
        if !hash.names(content) {
            let what = format!("artifact `{hash}` does not have that hash");
            let failure = Error::new(Kind::Corrupt, what).with_hint("Get the bundle anew.");
            self.state().failure = Some(in_bundle(&self.bundle.inner.name, failure));
            return;
        }
        let (check_in, files) = Manifest::parse_apart(content).ok().unzip();
        if check_in.is_none() && !looks_like_artifact(content) {
            return;
        }
        let mut state = self.state();
        state.findings.files.extend(files.unwrap_or_default());
        state.findings.controls.push(Control { row, check_in });
    }
}
