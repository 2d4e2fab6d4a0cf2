//! What was merged into the files since the parent check-in.

use super::open::Checkout;
use crate::error::Result;
use crate::name::Hash;

/// How a merge that is part of the next check-in took the other side's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merged {
    Whole,
    /// All of them; the merged branch ends with it.
    Integrated,
    Cherrypick,
    Backout,
}

impl Checkout {
    /// The check-ins that were merged into the files since the parent.
    pub(crate) fn merged(&self) -> Result<Vec<(Hash, Merged)>> {
        self.state(|db| {
            let mut query =
                db.prepare_cached("SELECT id, mhash FROM vmerge WHERE id<=0 ORDER BY id DESC, mhash")?;
            let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            let mut merged = Vec::new();
            for row in rows {
                let (id, hash) = row?;
                let how = match id {
                    -1 => Merged::Cherrypick,
                    -2 => Merged::Backout,
                    -4 => Merged::Integrated,
                    _ => Merged::Whole,
                };
                merged.push((Hash::parse(&hash)?, how));
            }
            Ok(merged)
        })
    }
}
