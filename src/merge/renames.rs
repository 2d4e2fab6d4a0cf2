//! Which files were renamed between two check-ins, as Fossil recorded it in each check-in's changes.
//!
//! The way between them leads over primary parents: back to the nearest ancestor that both have, and from there on.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::name::{Hash, TreePath};
use crate::repo::store::{Store, optional_text, text};

/// Where files of one check-in are in another: nothing if they are gone.
type Moves = BTreeMap<String, Option<String>>;

/// Returns for each path in `to` of a renamed file the one that it has in `from`. Empty if the two have no ancestor in
/// common over primary parents.
///
/// # Errors
/// As for any read.
pub fn renames(store: &Store, from: &Hash, to: &Hash) -> Result<BTreeMap<TreePath, TreePath>> {
    if from == to {
        return Ok(BTreeMap::new());
    }
    let all = store.ask(|db| moves(db, from, to))?;
    all.into_iter()
        .filter_map(|(old, new)| new.map(|new| (new, old)))
        .filter(|(new, old)| new != old)
        .map(|(new, old)| Ok((TreePath::parse_stored(&new)?, TreePath::parse_stored(&old)?)))
        .collect()
}

fn moves(db: &Connection, from: &Hash, to: &Hash) -> rusqlite::Result<Moves> {
    let mut moves = Moves::new();
    let row = |check_in: &Hash| {
        db.prepare_cached("SELECT rid FROM blob WHERE uuid=?1")?
            .query_row([check_in.as_str()], |row| row.get::<_, i64>(0))
            .optional()
    };
    let (Some(from), Some(to)) = (row(from)?, row(to)?) else { return Ok(moves) };
    let Some((back, on)) = way(db, from, to)? else { return Ok(moves) };
    for child in back {
        follow(&mut moves, &changes(db, child, Direction::Back)?);
    }
    for child in on.into_iter().rev() {
        follow(&mut moves, &changes(db, child, Direction::On)?);
    }
    Ok(moves)
}

/// Returns the check-ins from each of the two back to their nearest common ancestor, without that one.
fn way(db: &Connection, from: i64, to: i64) -> rusqlite::Result<Option<(Vec<i64>, Vec<i64>)>> {
    let mut parent = db.prepare_cached("SELECT pid FROM plink WHERE cid=?1 AND isprim")?;
    let mut chains = [vec![from], vec![to]];
    let mut seen = [HashMap::from([(from, 0)]), HashMap::from([(to, 0)])];
    let mut ended = [false; 2];
    // One step on each side by turns, so that the cost follows the distance and not the length of the history.
    while !(ended[0] && ended[1]) {
        for side in 0..2 {
            let last = chains[side].last().copied().unwrap_or_default();
            if let Some(at) = seen[1 - side].get(&last).copied() {
                chains[side].pop();
                chains[1 - side].truncate(at);
                let [back, on] = chains;
                return Ok(Some((back, on)));
            }
            if ended[side] {
                continue;
            }
            match parent.query_row([last], |row| row.get::<_, i64>(0)).optional()? {
                Some(next) if !seen[side].contains_key(&next) => {
                    seen[side].insert(next, chains[side].len());
                    chains[side].push(next);
                }
                _ => ended[side] = true,
            }
        }
    }
    Ok(None)
}

/// Which way a check-in's changes are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// From the parent to the child.
    On,
    /// From the child to the parent.
    Back,
}

/// Where a check-in, against its primary parent, moved files. As with Fossil, a file that it added keeps its name on the
/// way back: it may have come by a merge, and be known under this name on the way on.
fn changes(db: &Connection, child: i64, direction: Direction) -> rusqlite::Result<Moves> {
    let sql = "SELECT new.name, old.name, coalesce(fid, 0)=0
         FROM mlink JOIN filename new ON new.fnid=mlink.fnid LEFT JOIN filename old ON old.fnid=nullif(pfnid, 0)
         WHERE mid=?1 AND NOT isaux";
    let mut query = db.prepare_cached(sql)?;
    let mut rows = query.query([child])?;
    let mut moves = Moves::new();
    while let Some(row) = rows.next()? {
        let (new, old) = (text(row, 0)?, optional_text(row, 1)?);
        let removed: bool = row.get(2)?;
        match (old, direction) {
            (Some(old), Direction::On) => drop(moves.insert(old, Some(new))),
            (Some(old), Direction::Back) => drop(moves.insert(new, Some(old))),
            // A renamed file may be told as removed from its old path, too.
            (None, Direction::On) if removed => drop(moves.entry(new).or_insert(None)),
            _ => {}
        }
    }
    Ok(moves)
}

/// Follows the files over one more step.
fn follow(so_far: &mut Moves, step: &Moves) {
    if step.is_empty() {
        return;
    }
    let now: HashMap<String, String> =
        so_far.iter().filter_map(|(first, now)| Some((now.clone()?, first.clone()))).collect();
    let mut next = Vec::new();
    for (path, moved) in step {
        match now.get(path) {
            Some(first) => next.push((first.clone(), moved.clone())),
            // Otherwise the file is younger than where the way began.
            None if !so_far.contains_key(path) => next.push((path.clone(), moved.clone())),
            None => {}
        }
    }
    so_far.extend(next);
}
