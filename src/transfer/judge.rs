//! What each content of a set is: whether it has its hash, and whether Fossil would obey it. Hashing takes most of
//! the time, so it is done on several threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::findings::{Findings, Structural};
use super::likely::Likely;
use super::staged::{Seals, Staged};
use super::walk::Expanded;
use crate::engine::Stop;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::sniff;
use crate::name::Hash;

/// Bytes of contents that may wait for a thread.
const WAITING_MAX: usize = 8 << 20;
/// How many contents a thread takes at a time, and at most how many bytes, unless one has more. They are hashed side
/// by side.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 4 << 20;
/// Bytes of likely artifacts that stay at hand after the walk.
const KEPT_MAX: usize = 8 << 20;
/// The most threads that verify.
const THREADS_MAX: usize = 8;

/// Contents on their way to the threads that verify them.
pub(super) struct Queue<'a> {
    staged: &'a Staged,
    stop: Stop,
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

impl Staged {
    /// Verifies every artifact, unless that was done before. `external` gives the contents that are not in the set.
    pub(crate) fn verify(
        &self,
        external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>,
    ) -> Result<Arc<Findings>> {
        if let Some(findings) = self.findings() {
            return Ok(findings);
        }
        let stop = Stop::of_this_thread();
        let queue = Queue { staged: self, stop, state: Mutex::default(), more: Condvar::new() };
        // The caller's thread works too.
        let threads = thread::available_parallelism().map_or(1, |n| n.get() - 1).clamp(1, THREADS_MAX);
        let walked = thread::scope(|scope| {
            // The threads must end even if the walk panics.
            let closing = Closing(&queue);
            for _ in 0..threads {
                // If a thread cannot be had, the walk does its work.
                let _ = thread::Builder::new().spawn_scoped(scope, || queue.work());
            }
            let walked = queue.walk(external);
            drop(closing);
            while queue.take_some() {}
            walked
        });
        let state = queue.state.into_inner();
        let findings = state.failure.map_or(Ok(state.findings), Err)?;
        let (seals, likely) = walked?;
        Ok(self.set_verified(findings, seals, likely))
    }
}

/// Lets the threads end.
struct Closing<'a, 'b>(&'a Queue<'b>);

impl Drop for Closing<'_, '_> {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.more.notify_all();
    }
}

impl Queue<'_> {
    /// Expands every artifact and has it verified. Returns what tells the data again, and what may be structural.
    fn walk(&self, external: impl FnMut(&Hash) -> Result<Arc<Vec<u8>>>) -> Result<(Seals, Vec<Likely>)> {
        let (mut likely, mut kept) = (Vec::new(), 0);
        let mut seals = Seals::new(self.staged.rows().len());
        self.staged.walk(external, |Expanded { row, packed, content }| {
            if let Some(sniffed) = sniff(&content) {
                kept += content.len();
                let content = (kept <= KEPT_MAX).then(|| Arc::clone(&content));
                likely.push(Likely { row, sniffed, content });
            }
            seals.add(row, packed);
            self.push(row, content)
        })?;
        Ok((seals, likely))
    }

    /// Hands a content over. If too much waits already, does a part of the work.
    fn push(&self, row: usize, content: Arc<Vec<u8>>) -> Result<()> {
        let mut state = self.state.lock();
        if let Some(e) = state.failure.take() {
            return Err(e);
        }
        state.bytes += content.len();
        state.waiting.push_back((row, content));
        let (is_batch, is_too_much) = (state.is_batch(), state.bytes > WAITING_MAX);
        drop(state);
        if is_batch {
            self.more.notify_one();
        }
        if is_too_much {
            self.take_some();
        }
        Ok(())
    }

    /// Judges some of the contents that wait. Returns whether there were any.
    fn take_some(&self) -> bool {
        let batch = self.state.lock().batch();
        self.judge(&batch);
        !batch.is_empty()
    }

    fn work(&self) {
        loop {
            let mut state = self.state.lock();
            self.more.wait_while(&mut state, |state| !state.is_batch() && !state.closed);
            if state.waiting.is_empty() {
                return;
            }
            drop(state);
            self.take_some();
        }
    }

    fn judge(&self, batch: &[(usize, Arc<Vec<u8>>)]) {
        if let Err(e) = self.stop.check("the artifacts were not all verified; nothing was taken in") {
            return self.fail(e);
        }
        let rows = self.staged.rows();
        let named: Vec<_> = batch.iter().map(|(row, content)| (rows[*row].hash, &content[..])).collect();
        let wrong = Hash::name_all(&named).iter().position(|names| !names).map(|at| named[at].0);
        if let Some(hash) = wrong {
            let what = format!("artifact `{hash}` does not have that hash");
            let failure = Error::new(Kind::Corrupt, what).with_hint("Get it anew.");
            return self.fail(self.staged.source().blame(failure));
        }
        for ((row, _), (hash, content)) in batch.iter().zip(named) {
            self.look_into(*row, hash, content);
        }
    }

    /// Has the walk end. What waits is in vain.
    fn fail(&self, e: Error) {
        let mut state = self.state.lock();
        state.failure.get_or_insert(e);
        state.waiting.clear();
        state.bytes = 0;
    }

    /// Keeps what a verified content says, if Fossil would obey it.
    fn look_into(&self, row: usize, hash: Hash, content: &[u8]) {
        let Some((structural, files)) = Structural::of(row, hash, content) else { return };
        let mut state = self.state.lock();
        state.findings.files.extend(files);
        state.findings.structural.push(structural);
    }
}

impl State {
    /// Whether so much waits that a thread can work at its best.
    fn is_batch(&self) -> bool {
        self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES
    }

    /// Takes some contents out, the longest first, so that those that are hashed side by side end together.
    fn batch(&mut self) -> Vec<(usize, Arc<Vec<u8>>)> {
        let mut bytes = 0;
        let fits = |(_, content): &&(usize, Arc<Vec<u8>>)| {
            bytes += content.len();
            bytes <= BATCH_BYTES
        };
        let count = self.waiting.iter().take(BATCH).take_while(fits).count().max(1);
        let mut batch: Vec<_> = self.waiting.drain(..count.min(self.waiting.len())).collect();
        batch.sort_by_key(|(_, content)| std::cmp::Reverse(content.len()));
        self.bytes -= batch.iter().map(|(_, content)| content.len()).sum::<usize>();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Basis, Keep, Row};
    use super::super::staged::{Reader, Source};
    use super::*;
    use crate::format::packed::pack;

    /// A set whose data a test can change.
    struct Memory(Mutex<Vec<Vec<u8>>>);

    impl Source for Memory {
        fn received(&self) -> u64 {
            self.0.lock().iter().map(|data| data.len() as u64).sum()
        }

        fn noun(&self) -> &'static str {
            "set"
        }

        fn reader(&self) -> Result<Box<dyn Reader + '_>> {
            Ok(Box::new(MemoryReader(self)))
        }

        fn blame(&self, e: Error) -> Error {
            e
        }
    }

    struct MemoryReader<'a>(&'a Memory);

    impl Reader for MemoryReader<'_> {
        fn read(&mut self, id: i64, data: &mut Vec<u8>) -> Result<()> {
            data.clone_from(&self.0.0.lock()[usize::try_from(id).unwrap()]);
            Ok(())
        }
    }

    fn staged(contents: &[(&[u8], Hash)]) -> (Arc<Memory>, Staged) {
        let data = contents.iter().map(|(content, _)| pack(content).unwrap()).collect();
        let row = |(id, (content, hash)): (usize, &(&[u8], Hash))| Row {
            id: i64::try_from(id).unwrap(),
            hash: *hash,
            size: content.len(),
            basis: Basis::None,
            keep: Keep::Public,
        };
        let rows = contents.iter().enumerate().map(row).collect();
        let memory = Arc::new(Memory(Mutex::new(data)));
        (Arc::clone(&memory), Staged::new(rows, memory).unwrap())
    }

    fn nothing_external(hash: &Hash) -> Result<Arc<Vec<u8>>> {
        panic!("{hash} is asked for")
    }

    #[test]
    fn a_content_with_another_hash_is_refused() {
        let (_, staged) = staged(&[(b"one", Hash::of(b"one")), (b"two", Hash::of(b"2"))]);
        assert_eq!(staged.verify(nothing_external).unwrap_err().kind(), Kind::Corrupt);
        assert!(staged.findings().is_none());
    }

    #[test]
    fn a_set_is_verified_once_and_other_data_are_refused_then() {
        let (memory, staged) = staged(&[(b"one", Hash::of(b"one")), (b"two", Hash::of(b"two"))]);
        let found = staged.verify(nothing_external).unwrap();
        assert!(Arc::ptr_eq(&found, &staged.verify(nothing_external).unwrap()));
        staged.each_verified(|_, _, _| Ok(())).unwrap();
        memory.0.lock()[1] = pack(b"TWO").unwrap();
        let e = staged.each_verified(|_, _, _| Ok(())).unwrap_err();
        assert_eq!(e.kind(), Kind::Changed);
    }
}
