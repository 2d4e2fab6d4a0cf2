//! Saving: every change of the checkout becomes one check-in on the working branch, which is sent to the server.
//!
//! Made and sent are two states. What is made is never made again; what is not sent yet is sent by the next save.

use std::collections::BTreeMap;

use super::branch::{check_parent, working_branch};
use super::forbidden::{refuse_conflicted, refuse_names, refuse_untested, unchanged};
use super::journal::{Begun, Journal};
use super::{Comment, Workspace};
use crate::cancel::Cancel;
use crate::checkout::CheckoutLock;
use crate::checkout::{CheckIn, Status};
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, TreePath, User, time::julian_now};
use crate::repo::store::CheckInInfo;
use crate::sync::{Remote, SyncOptions, Synced};
use crate::testing::evidence::TestEvidence;
use crate::testing::{DECLARED_FILE, Declared, Test};

/// How a check-in gets to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is pushed to the remote, if there is one.
    Push,
    /// It is carried there in a bundle.
    Bundle,
}

/// What a save would do.
pub enum SavePlan {
    /// Make a check-in, and send it with whatever is unsent.
    Make(Box<ReadySave>),
    /// Nothing has changed; send these, which were saved before.
    Send(Unsent),
    /// Include files, which then must be tested before a save can be made.
    Include(Box<ToInclude>),
}

/// Check-ins that were saved before and not sent.
pub struct Unsent {
    /// The check-ins, the newest last.
    pub check_ins: Vec<Hash>,
    /// What is known of the tests on the files as they are.
    pub tests: Vec<TestEvidence>,
}

/// Files that a save was asked to take along, and that tests have not seen yet.
pub struct ToInclude {
    /// The files that will be taken from now on.
    pub files: Vec<TreePath>,
    /// Why they cannot be saved now.
    pub untested: Error,
}

/// A save that may be made.
pub struct ReadySave {
    /// The checkout's files, and how they differ from the parent.
    pub status: Status,
    /// The hash over all of them.
    pub tree: Hash,
    /// The check-in it builds on.
    pub parent: CheckInInfo,
    /// The branch it goes to.
    pub branch: Branch,
    /// Its user.
    pub user: User,
    /// The evidence of each declared test, which all have passed on exactly this tree; empty if none is declared.
    pub tests: Vec<TestEvidence>,
    /// Declared tests that differ from the parent's.
    pub tests_changed: Vec<TestChange>,
    /// What plain Fossil would do or ask at such a check-in, and OCX does not, one line each.
    pub passed_over: Vec<String>,
}

impl ReadySave {
    /// Whether the check-in is on its parent's branch.
    #[must_use]
    pub fn continues(&self) -> bool {
        self.parent.branch == self.branch.as_str()
    }
}

/// A declared test that differs from the parent check-in's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestChange {
    /// The test.
    pub name: String,
    /// The parent's command and what is declared beside it; nothing for a new test.
    pub old: Option<String>,
    /// The same now; nothing for a test that is gone.
    pub new: Option<String>,
}

impl Workspace {
    /// Finds what a save would do now that takes `include` along: files that a rule leaves out, and folders with all
    /// that is in them. Changes nothing.
    ///
    /// # Errors
    /// `Unchanged` if there is nothing to save or send; `Untested`, `Closed`, `WouldFork`, `Refused` or `Invalid` for
    /// what forbids the save, which it names.
    pub fn plan_save(
        &self,
        user: &User,
        delivery: Delivery,
        include: &[TreePath],
        cancel: &Cancel,
    ) -> Result<SavePlan> {
        let checkout = self.checkout();
        // While another save is stored and the checkout has not moved to it yet, it would look like a fork.
        let _lock = CheckoutLock::take(checkout, cancel)?;
        include.iter().try_for_each(|path| checkout.check_included(path))?;
        let status = checkout.status_including(include)?;
        if status.changes.is_empty() && status.refused.is_empty() && checkout.merged()?.is_empty() {
            let unsent = self.unsent()?;
            if !unsent.is_empty() && (delivery == Delivery::Bundle || self.remote()?.is_some()) {
                let tests = self.evidence(&status, &self.declared_in(&status)?)?;
                return Ok(SavePlan::Send(Unsent { check_ins: unsent, tests }));
            }
            return Err(unchanged(&status));
        }
        checkout.refuse_if_forbidden()?;
        refuse_names(&status)?;
        refuse_conflicted(checkout.conflicted(&status)?)?;
        let store = checkout.repository().store();
        let parent = store.check_in(&checkout.parent()?)?;
        check_parent(&parent, user, &self.saved()?, julian_now())?;
        let branch = working_branch(store, &parent, user, &checkout.id()?)?;
        let declared = self.declared_in(&status)?;
        let tree = status.tree_hash();
        let tests = self.evidence(&status, &declared)?;
        match refuse_untested(&tests) {
            Err(untested) if !status.included.is_empty() => {
                return Ok(SavePlan::Include(Box::new(ToInclude { files: status.included, untested })));
            }
            tested => tested?,
        }
        let tests_changed = tests_changed(&self.parent_tests(&parent.hash), &declared);
        let mut passed_over = checkout.passed_over()?;
        passed_over.extend(checkout.would_be_asked(&status)?);
        Ok(SavePlan::Make(Box::new(ReadySave {
            status,
            tree,
            parent,
            branch,
            user: user.clone(),
            tests,
            tests_changed,
            passed_over,
        })))
    }

    /// Fetches what others have put on the working branch since, so that a save that would fork it is seen. Returns
    /// whether it did. A server that cannot be reached now is no reason not to save.
    pub fn catch_up(&self, ready: &ReadySave, cancel: &Cancel) -> bool {
        let pull = SyncOptions::pull().until(cancel);
        let repository = self.checkout().repository();
        ready.continues()
            && self.remote().ok().flatten().is_some_and(|remote| repository.sync(&remote, &pull).is_ok())
    }

    /// Makes the check-in. It is noted in the journal first, so that a crash in between is seen.
    ///
    /// # Errors
    /// `Cancelled` before anything is made; `Busy`, `DiskFull` and the others of a check-in.
    pub fn make(&self, ready: &ReadySave, comment: &Comment, cancel: &Cancel) -> Result<Hash> {
        if cancel.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, "cancelled before anything was saved"));
        }
        let _lock = CheckoutLock::take(self.checkout(), cancel)?;
        self.adopt()?;
        if self.checkout().parent()? != ready.parent.hash {
            return Err(Error::new(Kind::Changed, "another save was made meanwhile")
                .with_hint("Look at what is left to save, then save again."));
        }
        let parent = self.checkout().repository().store().check_in(&ready.parent.hash)?;
        check_parent(&parent, &ready.user, &self.saved()?, julian_now())?;
        let begun = Begun {
            parent: ready.parent.hash,
            branch: ready.branch.to_string(),
            user: ready.user.clone(),
            comment: comment.to_string(),
        };
        self.state(|db| Journal::new(db).begin(&begun))?;
        let new_branch = (!ready.continues()).then(|| ready.branch.clone());
        let check_in = CheckIn {
            comment: comment.to_string(),
            branch: new_branch,
            user: ready.user.clone(),
            time: None,
        };
        let made = engine::with_cancel(cancel, || self.checkout().check_in(&check_in, &ready.status));
        let hash = made.as_ref().ok().map(|m| m.hash);
        if let Some(hash) = &hash {
            self.state(|db| Journal::new(db).end(Some((hash, ready.branch.as_str()))))?;
        } else {
            self.adopt()?;
        }
        made.map(|m| m.hash)
    }

    /// Sends what is unsent to the remote, with options that push.
    ///
    /// # Errors
    /// As [`sync`](crate::repo::Repository::sync): what is saved stays saved.
    pub fn send(&self, remote: &Remote, options: &SyncOptions) -> Result<Synced> {
        let repository = self.checkout().repository();
        self.settle()?;
        let unsent = self.unsent()?;
        let synced = repository.sync(remote, options)?;
        self.state(|db| Journal::new(db).sent(&unsent))?;
        Ok(synced)
    }

    /// The check-ins saved here that the server was not seen to take, the oldest first.
    ///
    /// # Errors
    /// Those of reading the checkout and the repository.
    pub fn unsent(&self) -> Result<Vec<Hash>> {
        let mut unsent: Vec<Hash> = self.saved()?.into_iter().filter(|s| !s.sent).map(|s| s.hash).collect();
        unsent.extend(self.cut_short()?.filter(|h| !unsent.contains(h)));
        Ok(unsent)
    }

    /// The check-in that an earlier process made and could not note, because it ended.
    ///
    /// # Errors
    /// Those of reading the checkout and the repository.
    pub fn cut_short(&self) -> Result<Option<Hash>> {
        let Some(begun) = self.state(|db| Journal::new(db).begun())? else { return Ok(None) };
        let store = self.checkout().repository().store();
        for hash in store.descendants(&begun.parent)? {
            let info = store.check_in(&hash)?;
            let same = info.user == begun.user.as_str()
                && info.branch == begun.branch
                && info.comment == begun.comment;
            if same && info.parents.first() == Some(&begun.parent) {
                return Ok(Some(hash));
            }
        }
        Ok(None)
    }

    /// Notes a check-in that opening the checkout has completed, so that it is sent like any other.
    pub(crate) fn note_recovered(&self) -> Result<()> {
        let Some(hash) = self.checkout().recovered() else { return Ok(()) };
        let branch = self.checkout().repository().store().check_in(&hash)?.branch;
        self.state(|db| Journal::new(db).end(Some((&hash, &branch))))
    }

    /// Notes what an ended process has left behind, once no other process is saving.
    fn settle(&self) -> Result<()> {
        if self.state(|db| Journal::new(db).begun())?.is_none() {
            return Ok(());
        }
        let _lock = CheckoutLock::take(self.checkout(), &Cancel::new())?;
        self.adopt()
    }

    /// Notes what [`cut_short`](Self::cut_short) finds.
    fn adopt(&self) -> Result<()> {
        let Some(begun) = self.state(|db| Journal::new(db).begun())? else { return Ok(()) };
        let made = self.cut_short()?;
        self.state(|db| Journal::new(db).end(made.as_ref().map(|hash| (hash, begun.branch.as_str()))))
    }

    fn saved(&self) -> Result<Vec<super::Saved>> {
        self.state(|db| Journal::new(db).saved())
    }

    /// The parent's declared tests; none if its file is missing or broken.
    fn parent_tests(&self, parent: &Hash) -> Declared {
        let store = self.checkout().repository().store();
        let content = store.files(parent).and_then(|files| match files.get(DECLARED_FILE) {
            Some(file) => store.content(&file.hash),
            None => Ok(Vec::new()),
        });
        content.and_then(|c| Declared::parse(&c)).unwrap_or_default()
    }
}

fn tests_changed(old: &Declared, new: &Declared) -> Vec<TestChange> {
    let commands = |d: &Declared| d.tests().iter().map(|t: &Test| (t.name.clone(), t.shown())).collect();
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (commands(old), commands(new));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|n| old.get(*n) != new.get(*n))
        .map(|n| TestChange { name: n.clone(), old: old.get(n).cloned(), new: new.get(n).cloned() })
        .collect()
}

/// Returns the changed paths that are Fossil's versioned settings, which act on everyone.
#[must_use]
pub fn settings_changed(status: &Status) -> Vec<&TreePath> {
    status.changes.iter().map(|c| &c.path).filter(|p| p.as_str().starts_with(".fossil-settings/")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g03_changed_tests_are_named_with_old_and_new_command() {
        let old =
            Declared::parse(br#"{"tests":[{"name":"a","command":"x"},{"name":"b","command":"y"}]}"#).unwrap();
        let new = Declared::parse(br#"{"tests":[{"name":"a","command":"true"},{"name":"c","command":"z"}]}"#)
            .unwrap();
        let changed: Vec<_> = tests_changed(&old, &new).into_iter().map(|c| (c.name, c.old, c.new)).collect();
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            changed,
            [
                ("a".into(), some("x"), some("true")),
                ("b".into(), some("y"), None),
                ("c".into(), None, some("z"))
            ]
        );
    }
}
