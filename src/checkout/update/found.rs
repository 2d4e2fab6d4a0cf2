//! What Fossil's code did to the files, read from them and from its table `mergestat`.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::backups::{Backups, Kept};
use super::outcome::{Updated, UpdatedFile};
use crate::checkout::open::Checkout;
use crate::checkout::status::{How, Status};
use crate::error::Result;
use crate::merge::FileOutcome;
use crate::name::{Hash, TreePath};
use crate::repo::store::{Files, has_table};

/// How many names Fossil tries for a backup.
const BACKUPS: usize = 10;

/// A file that Fossil joined, or could not join.
struct Joined {
    from: String,
    /// Both sides had changed it.
    both: bool,
    conflicts: bool,
    message: String,
}

/// Finds out what has become of the files since `before`, and puts back what would be lost.
pub(super) fn report(checkout: &Checkout, before: &Status, backups: &Backups) -> Result<Updated> {
    let joined = checkout.state(joined)?;
    let mut files = BTreeMap::new();
    for (path, kept) in backups.kept() {
        if let Some(file) = secured(checkout, backups, (path, kept), &joined)? {
            files.insert(file.path.clone(), file);
        }
    }
    let after = checkout.status()?;
    let names: Vec<String> = files.values().filter_map(|file| file.backup.clone()).collect();
    for file in differences(before, &after.files, &joined) {
        if !names.contains(&file.path) {
            files.entry(file.path.clone()).or_insert(file);
        }
    }
    let files: Vec<_> = files.into_values().collect();
    let conflicts = files.iter().filter(|f| f.what.is_conflict()).map(|f| f.path.clone()).collect();
    Ok(Updated { hash: checkout.parent()?, files, conflicts })
}

/// Reads the rows of `mergestat` about files that both sides touched, by the path that the file has now.
fn joined(db: &Connection) -> Result<BTreeMap<String, Joined>> {
    if !has_table(db, "mergestat")? {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT coalesce(fnr, fn, fnm, fnp), coalesce(fn, fnm), coalesce(fnp, fn, fnm), coalesce(nc, 0)>0, coalesce(msg, ''),
           op='MERGE'
         FROM mergestat WHERE op IN ('MERGE', 'CONFLICT', 'ERROR', 'DELETE', 'UPDATE')";
    let mut query = db.prepare(sql)?;
    let mut rows = query.query([])?;
    let mut all = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (path, name, pivot): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // An update calls the earlier file `fnp`; a merge calls it `fn`.
        let from = if name == path { pivot } else { name };
        all.insert(path, Joined { from, conflicts: row.get(3)?, message: row.get(4)?, both: row.get(5)? });
    }
    Ok(all)
}

/// Finds the bytes of a copied file on the disk, or puts them there. Returns what happened to the file, if anything.
fn secured(
    checkout: &Checkout,
    backups: &Backups,
    (path, kept): (&TreePath, &Kept),
    joined: &BTreeMap<String, Joined>,
) -> Result<Option<UpdatedFile>> {
    let there = |path: &TreePath| {
        let bytes = checkout.tree().stat(path).and_then(|e| checkout.tree().content(&e, u64::MAX));
        bytes.ok().map(|bytes| Hash::of(&bytes))
    };
    let outcome = |what, backup: Option<&TreePath>| UpdatedFile {
        path: path.to_string(),
        what,
        from: None,
        backup: backup.map(ToString::to_string),
    };
    let row = joined.get(path.as_str());
    if there(path) == Some(kept.entry.hash) {
        return Ok(row.filter(|row| row.conflicts).map(|row| outcome(kind(row), None)));
    }
    let moved = joined.iter().find(|(_, row)| row.from == path.as_str());
    if let Some((_, row)) = moved.filter(|_| !kept.unmanaged)
        && (!row.conflicts || row.message == "merge conflicts")
        && there(path).is_some() == joined.contains_key(path.as_str())
    {
        // The joined file has the lines of both sides.
        return Ok(None);
    }
    if there(path).is_none() {
        backups.restore(checkout, kept, path)?;
        checkout.state(|db| {
            let sql = "UPDATE vfile SET deleted=0, mtime=0 WHERE pathname=?1 AND deleted";
            Ok(db.execute(sql, [path.as_str()])?)
        })?;
        return Ok(Some(outcome(FileOutcome::ConflictRemovedThere, None)));
    }
    let mut free = None;
    for name in backup_names(path) {
        match there(&name) {
            Some(hash) if hash == kept.entry.hash => {
                return Ok(Some(outcome(overwritten(kept), Some(&name))));
            }
            Some(_) => {}
            None => free = free.or(Some(name)),
        }
    }
    let Some(free) = free else { return Ok(Some(outcome(overwritten(kept), None))) };
    backups.restore(checkout, kept, &free)?;
    Ok(Some(outcome(overwritten(kept), Some(&free))))
}

fn overwritten(kept: &Kept) -> FileOutcome {
    if kept.unmanaged { FileOutcome::ConflictInTheWay } else { FileOutcome::ConflictUnjoinable }
}

/// The names that Fossil gives to its own backups of files.
fn backup_names(path: &TreePath) -> impl Iterator<Item = TreePath> {
    let names = (0..BACKUPS).map(|n| if n == 0 { String::new() } else { format!("-{n}") });
    names.filter_map(move |n| TreePath::parse_stored(&format!("{path}-original{n}")).ok())
}

/// Reads the kind of a conflict from Fossil's message.
fn kind(row: &Joined) -> FileOutcome {
    match row.message.as_str() {
        "merge conflicts" => FileOutcome::ConflictMarked,
        "duplicate file" => FileOutcome::ConflictBothAdded,
        "edited locally but deleted by update" | "local edits lost" => FileOutcome::ConflictRemovedThere,
        "new file overwrites unmanaged file" => FileOutcome::ConflictInTheWay,
        _ => FileOutcome::ConflictUnjoinable,
    }
}

/// Returns what happened to a file that is there now.
fn happened(was_there: bool, removed_here: bool, row: Option<&Joined>) -> FileOutcome {
    match row {
        Some(row) if row.conflicts => kind(row),
        Some(row) if row.both && was_there => FileOutcome::Merged,
        _ if was_there => FileOutcome::Updated,
        _ if removed_here => FileOutcome::ConflictRemovedHere,
        _ => FileOutcome::Added,
    }
}

/// Returns what differs between the files before and after.
fn differences(before: &Status, after: &Files, joined: &BTreeMap<String, Joined>) -> Vec<UpdatedFile> {
    let mut files = Vec::new();
    let removed_here =
        |path: &TreePath| before.changes.iter().any(|c| c.path == *path && c.how == How::Deleted);
    let mut gone: Vec<&TreePath> = before.files.keys().filter(|path| !after.contains_key(*path)).collect();
    for (path, entry) in after {
        let row = joined.get(path.as_str());
        let old = before.files.get(path);
        if old == Some(entry) && !row.is_some_and(|row| row.conflicts) {
            continue;
        }
        let what = happened(old.is_some(), removed_here(path), row);
        let mut file = UpdatedFile { path: path.to_string(), what, from: None, backup: None };
        let source = gone.iter().position(|old| {
            row.is_some_and(|row| row.from == old.as_str()) || before.files.get(*old) == Some(entry)
        });
        if let Some(at) = source.filter(|_| !before.files.contains_key(path)) {
            file.from = Some(gone.remove(at).to_string());
            if file.what == FileOutcome::Added {
                file.what = FileOutcome::Renamed;
            }
        }
        files.push(file);
    }
    files.extend(gone.into_iter().map(|path| UpdatedFile {
        path: path.to_string(),
        what: FileOutcome::Removed,
        from: None,
        backup: None,
    }));
    files
}
