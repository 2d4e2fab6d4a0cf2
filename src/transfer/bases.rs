//! The contents of the repository that a set's deltas build on.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use super::staged::Staged;
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::repo::store::expand;

/// The contents that a set's deltas need from the repository.
pub(crate) struct Bases<'a> {
    db: &'a Connection,
    /// What messages call the set.
    noun: &'static str,
    rids: HashMap<Hash, i64>,
}

impl<'a> Bases<'a> {
    /// Finds them in the repository.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when one is not there with content.
    pub fn of(db: &'a Connection, staged: &Staged) -> Result<Self> {
        let mut query = db.prepare("SELECT rid, size FROM blob WHERE uuid=?1")?;
        let (noun, mut rids) = (staged.noun(), HashMap::new());
        for hash in staged.bases() {
            let found = query.query_row([hash.as_str()], |r| Ok((r.get(0)?, r.get::<_, i64>(1)?)));
            match found.optional()? {
                Some((rid, 0..)) => rids.insert(hash, rid),
                Some(_) => return Err(missing(noun, &hash, "is known here, but without its content")),
                None => return Err(missing(noun, &hash, "is not in the repository")),
            };
        }
        Ok(Self { db, noun, rids })
    }

    /// The content of one of them.
    ///
    /// # Errors
    /// [`Kind::Corrupt`] when its bytes do not have its hash.
    pub fn content(&mut self, hash: &Hash) -> Result<Arc<Vec<u8>>> {
        let content = self.rids.get(hash).map(|&rid| expand(self.db, rid)).transpose()?.flatten();
        match content {
            Some(content) if hash.names(&content) => Ok(content.into()),
            Some(_) => {
                let what =
                    format!("artifact `{hash}` of the repository is damaged: its bytes have another hash");
                Err(Error::new(Kind::Corrupt, what).with_hint("Pull it anew from a clone that holds it."))
            }
            None => Err(missing(self.noun, hash, "is known here, but without its content")),
        }
    }
}

fn missing(noun: &str, hash: &Hash, how: &str) -> Error {
    Error::new(Kind::NotFound, format!("the artifact `{hash}`, which the {noun} builds on, {how}"))
        .with_hint(format!("Pull first, or ask for a {noun} that stands alone."))
}
