//! What was merged into the files since the parent check-in.

use super::open::Checkout;
use crate::error::Result;
use crate::merge::MergeHow;
use crate::name::Hash;

impl Checkout {
    /// The check-ins that were merged into the files since the parent.
    pub(crate) fn merged(&self) -> Result<Vec<(Hash, MergeHow)>> {
        self.state(|db| {
            let mut query =
                db.prepare_cached("SELECT id, mhash FROM vmerge WHERE id<=0 ORDER BY id DESC, mhash")?;
            let rows = query.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            let mut merged = Vec::new();
            for row in rows {
                let (id, hash) = row?;
                let how = match id {
                    -1 => MergeHow::Cherrypick,
                    -2 => MergeHow::Backout,
                    -4 => MergeHow::Integrate,
                    _ => MergeHow::Whole,
                };
                merged.push((Hash::parse(&hash)?, how));
            }
            Ok(merged)
        })
    }
}
