//! A check-in: from the state of a checkout to artifacts in the repository.
//!
//! Rust walks, hashes and writes the manifest. Fossil's code stores it and links it in, in one transaction. Then the
//! checkout's own database follows. If the process ends in between, opening the checkout again repairs that
//! ([`Checkout::recovered`](super::Checkout::recovered)).

mod file_cards;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use file_cards::FileCards;
use rusqlite::Row;

use super::open::Checkout;
use super::status::Status;
use crate::engine::{self, Artifacts, Content};
use crate::error::{Error, Kind, Result};
use crate::format::FILE_MAX;
use crate::format::artifact::{Cherrypick, Manifest, TagAction, TagCard, looks_like_artifact};
use crate::merge::MergeHow;
use crate::name::{Branch, Hash, TreePath, User, time};
use crate::repo::store::{CheckInInfo, FileEntry, Files};
use crate::transfer::judge_own;
use crate::tree::Entry;

/// What a check-in says of itself.
#[derive(Debug, Clone)]
pub struct CheckIn {
    /// The comment: any text without a NUL.
    pub comment: String,
    /// The branch that begins here. `None` stays on the parent's branch.
    pub branch: Option<Branch>,
    /// Who makes it; a login of the repository.
    pub user: User,
    /// When, as `2026-11-30T10:23:45.120` in UTC. `None` is now.
    pub time: Option<String>,
}

/// A check-in that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedIn {
    /// Its hash.
    pub hash: Hash,
    /// The branch it is on.
    pub branch: String,
    /// When it was made, as the manifest says it.
    pub time: String,
}

impl Checkout {
    /// Makes a check-in of exactly the files that `status` describes, and moves the checkout to it.
    ///
    /// # Errors
    /// [`Kind::Unchanged`] when nothing differs from the parent; [`Kind::Invalid`] for a file that cannot be stored or would be
    /// taken for a control artifact, and for a clock that is behind the parent; [`Kind::Changed`] for a file that changed
    /// since `status`; [`Kind::WouldFork`], [`Kind::Closed`], [`Kind::Denied`] for a private parent, [`Kind::NotFound`] for an
    /// unknown user; [`Kind::Refused`] where the setting `dont-commit` is on; [`Kind::Busy`], [`Kind::DiskFull`]. In each case nothing is stored.
    pub fn check_in(&self, check_in: &CheckIn, status: &Status) -> Result<CheckedIn> {
        let draft = Draft::of(self, check_in, status)?;
        self.wait_for_turn()?;
        let bytes = draft.manifest.write()?;
        let hash = self.hash_of(&bytes)?;
        judge_own(&bytes, &hash)?;
        let Draft { parent, branch, manifest, contents } = draft;
        let artifacts = Artifacts {
            user: check_in.user.to_string(),
            parent: parent.hash.to_string(),
            branch: branch.clone(),
            allow_fork: false,
            contents,
            manifest: bytes,
            manifest_hash: hash.to_string(),
            private: false,
            note: Some(self.note(&hash)?),
        };
        // The check-in is stored now, whatever keeps the checkout from moving. The next look at the checkout moves it.
        if let Err(e) = self.store_and_follow(artifacts, &hash, status)? {
            tracing::warn!("check-in {hash} is stored, but the checkout has not moved to it yet: {e}");
        }
        let time = manifest.date.clone();
        let store = self.repository().store();
        if let Ok(before) = store.files(&status.parent) {
            let changed = status.changes.iter().map(|change| &change.path);
            self.stat_cache().go_on_to(&status.files, &before, changed);
        }
        store.remember(&hash, manifest, Arc::clone(&status.files));
        // If this fails, only time is lost.
        let _ = self.remember();
        Ok(CheckedIn { hash, branch, time })
    }

    /// Stores a check-in and moves the checkout to it. The inner result says what kept the checkout from moving.
    fn store_and_follow(&self, artifacts: Artifacts, hash: &Hash, status: &Status) -> Result<Result<()>> {
        let new = artifacts.contents.iter().map(|new| Hash::parse(&new.hash)).collect::<Result<Vec<_>>>()?;
        // Taken as late as possible, because the engine may have to wait for a server first.
        let state = OnceCell::new();
        let take = || state.get_or_init(|| self.state_to_move());
        let (stored, moving) = engine::check_in_while(self.repository().path(), artifacts, || {
            self.begin_move(take(), hash, status, &new)
        });
        stored?;
        let followed = self.follow(take(), moving.and_then(Result::ok), hash, status);
        drop(state);
        Ok(followed.and_then(|()| self.write_manifest(hash)))
    }
}

/// A check-in that has passed all checks that need no lock.
struct Draft {
    parent: CheckInInfo,
    branch: String,
    manifest: Manifest,
    contents: Vec<Content>,
}

impl Draft {
    fn of(checkout: &Checkout, check_in: &CheckIn, status: &Status) -> Result<Self> {
        checkout.refuse_if_forbidden()?;
        refuse_unstorable(status)?;
        let store = checkout.repository().store();
        let parent = store.check_in(&checkout.parent()?)?;
        if parent.hash != status.parent {
            return Err(Error::new(Kind::Changed, "the checkout has moved to another check-in meanwhile")
                .with_hint("Look at the changes again."));
        }
        let merged = checkout.merged()?;
        if status.changes.is_empty() && merged.is_empty() {
            return Err(Error::new(Kind::Unchanged, "nothing has changed since the parent check-in")
                .with_hint("Edit a file first."));
        }
        if parent.private {
            return Err(Error::new(Kind::Denied, format!("the parent `{}` is private", parent.hash.short()))
                .with_hint("Open a check-in that is public; a public one must not name a private parent."));
        }
        let date = date_after(checkout, &parent, check_in.time.as_deref())?;
        let contents = contents(checkout, status, &*store.files(&parent.hash)?)?;
        let branch = check_in.branch.as_ref().map_or(parent.branch.clone(), ToString::to_string);
        let FileCards { baseline, cards } = FileCards::of(store, &parent.hash, status)?;
        let mut manifest = Manifest {
            baseline,
            comment: Some(check_in.comment.clone()),
            date,
            files: cards,
            parents: vec![parent.hash],
            tags: tags(checkout, &parent, &branch)?,
            user: Some(check_in.user.to_string()),
            ..Manifest::default()
        };
        for (hash, how) in merged {
            name_merged(checkout, &mut manifest, hash, how)?;
        }
        Ok(Self { parent, branch, manifest, contents })
    }
}

/// Names in the manifest what was merged. Leaves out what is private, because no public check-in may name it.
fn name_merged(checkout: &Checkout, manifest: &mut Manifest, hash: Hash, how: MergeHow) -> Result<()> {
    let other = checkout.repository().store().check_in(&hash)?;
    if other.private {
        return Ok(());
    }
    match how {
        MergeHow::Whole => manifest.parents.push(hash),
        MergeHow::Integrate => {
            manifest.parents.push(hash);
            if other.leaf && !other.closed {
                let name = "closed".to_owned();
                manifest.tags.push(TagCard { action: TagAction::Add, name, target: Some(hash), value: None });
            }
        }
        MergeHow::Cherrypick | MergeHow::Backout => {
            let backout = how == MergeHow::Backout;
            manifest.cherrypicks.push(Cherrypick { target: hash, base: None, backout });
        }
    }
    Ok(())
}

fn refuse_unstorable(status: &Status) -> Result<()> {
    let Some((name, why)) = status.refused.first() else { return Ok(()) };
    let more = status.refused.len() - 1;
    let more = if more == 0 { String::new() } else { format!(", and {more} more such") };
    Err(Error::new(Kind::Invalid, format!("`{name}` cannot be checked in: {why}{more}"))
        .with_hint("Rename or remove it, or ignore it by `.fossil-settings/ignore-glob`; a check-in holds every file or none."))
}

/// Returns the contents that the repository may lack, read again and checked against the status.
fn contents(checkout: &Checkout, status: &Status, before: &Files) -> Result<Vec<Content>> {
    let mut contents = Vec::new();
    // Only a changed or renamed file can have other content.
    let touched: BTreeSet<&TreePath> =
        status.changes.iter().map(|c| &c.path).chain(status.renamed.keys()).collect();
    for (path, file) in touched.into_iter().filter_map(|path| status.files.get_key_value(path)) {
        let old = before.get(status.renamed.get(path).unwrap_or(path));
        if old.is_some_and(|old| old.hash == file.hash) {
            continue;
        }
        let bytes = checkout.tree().content(&entry(checkout, path)?, FILE_MAX)?;
        check_content(path, file, &bytes)?;
        contents.push(Content {
            hash: file.hash.to_string(),
            bytes,
            previous: old.map(|old| old.hash.to_string()),
        });
    }
    Ok(contents)
}

fn entry(checkout: &Checkout, path: &TreePath) -> Result<Entry> {
    checkout.tree().stat(path).map_err(|e| {
        Error::new(Kind::Changed, format!("`{}` changed while it was looked at: {e}", path.shown()))
            .with_hint("Look at the changes again.")
    })
}

fn check_content(path: &TreePath, file: &FileEntry, bytes: &[u8]) -> Result<()> {
    if !file.hash.names(bytes) {
        return Err(Error::new(Kind::Changed, format!("`{}` changed while it was looked at", path.shown()))
            .with_hint("Look at the changes again."));
    }
    if looks_like_artifact(bytes) {
        return Err(Error::new(
            Kind::Invalid,
            format!(
                "`{}` has the form of a Fossil control artifact, which every server would obey",
                path.shown()
            ),
        )
        .with_hint(
            "Change the file so that it is no well-formed artifact, for instance by a first line of text.",
        ));
    }
    Ok(())
}

/// Returns the time of the new check-in, which must be after its parent's.
fn date_after(checkout: &Checkout, parent: &CheckInInfo, wanted: Option<&str>) -> Result<String> {
    // If the parent was made in this very millisecond, wait until it has passed.
    for _ in 0..5 {
        let now = time::julian_now();
        let (date, julian) = match wanted {
            Some(time) => given_date(checkout, time)?,
            None => (time::date_card(now), now),
        };
        if julian > parent.julian {
            return Ok(date);
        }
        if wanted.is_some() || parent.julian - julian > 0.01 / 86400.0 {
            return Err(Error::new(
                Kind::Invalid,
                format!(
                    "the clock is behind: now is {date}, and the parent `{}` is from {}",
                    parent.hash.short(),
                    parent.time
                ),
            )
            .with_hint(
                "Set the clock right, or wait until it has passed the parent's time; nothing was stored.",
            ));
        }
        std::thread::sleep(std::time::Duration::from_millis(4));
    }
    Err(Error::new(Kind::Busy, "the clock does not move").with_hint("Try again."))
}

/// Reads a time that somebody wrote, as SQLite does. Returns it for a D card and as a Julian day.
fn given_date(checkout: &Checkout, time: &str) -> Result<(String, f64)> {
    let sql = "SELECT strftime('%Y-%m-%dT%H:%M:%f', ?1), julianday(?1)";
    let read = checkout.state(|db| {
        let row = |row: &Row<'_>| Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<f64>>(1)?));
        Ok(db.prepare_cached(sql)?.query_row([time], row)?)
    })?;
    read.0.zip(read.1).ok_or_else(|| {
        Error::new(Kind::Invalid, "the time of the check-in is no time")
            .with_hint("Give it as `2026-11-30T10:23:45.120`.")
    })
}

/// Returns the tags by which the check-in leaves the parent's branch for its own. There are none if it stays.
fn tags(checkout: &Checkout, parent: &CheckInInfo, branch: &str) -> Result<Vec<TagCard>> {
    if parent.branch == branch {
        return Ok(Vec::new());
    }
    let mut tags = TagCard::new_branch(branch);
    for name in checkout.repository().store().propagating_symbols(&parent.hash)? {
        if name != format!("sym-{branch}") {
            tags.push(TagCard { action: TagAction::Cancel, name, target: None, value: None });
        }
    }
    Ok(tags)
}
