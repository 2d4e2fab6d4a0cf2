//! Taking a bundle into a repository: all of it or nothing.

use rusqlite::{Connection, OptionalExtension};

use super::file::Bundle;
use super::list::Contents;
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::repo::Repository;
use crate::repo::store::connect;
use crate::transfer::{Import, Imported, check, receive};

impl Repository {
    /// Takes all of a bundle in, or nothing. What is new is public and will be sent by the next push.
    ///
    /// # Errors
    /// [`Kind::Foreign`] for a bundle of another project; [`Kind::NotFound`] when a basis is not here with content, or
    /// there is no such user; [`Kind::Corrupt`] for content that does not have its hash; [`Kind::TooLarge`]; [`Kind::Denied`] for what
    /// is shunned here, follows a private check-in, or is not what [`Import::only`] accepts; [`Kind::Invalid`] for file
    /// content that would be obeyed as a control artifact; [`Kind::Busy`], [`Kind::DiskFull`].
    pub fn import_bundle(&self, bundle: &Bundle, import: &Import) -> Result<Imported> {
        let user = import.user.to_string();
        let (bundle, import) = (bundle.clone(), import.clone());
        engine::transaction(self.path(), &user, move |transaction| {
            same_project(transaction.connection(), &bundle)?;
            receive(transaction, bundle.staged(), import.origin(), import.progress.as_ref())
                .map(|received| received.imported)
        })
    }

    /// Verifies a bundle and lists what is in it. It refuses what an import would refuse, except for the branch of the
    /// check-ins, which only Fossil's linking tells. Writes nothing.
    ///
    /// # Errors
    /// As [`import_bundle`](Self::import_bundle).
    pub fn check_bundle(&self, bundle: &Bundle, import: &Import) -> Result<Contents> {
        let db = connect(self.path())?;
        same_project(&db, bundle)?;
        let findings = check(&db, bundle.staged(), import.origin())?;
        Ok(bundle.contents_of(&findings))
    }
}

fn same_project(db: &Connection, bundle: &Bundle) -> Result<()> {
    let sql = "SELECT value FROM config WHERE name='project-code'";
    let here: String = db.query_row(sql, [], |row| row.get(0)).optional()?.unwrap_or_default();
    let there = bundle.project_code().unwrap_or("none");
    if here == there {
        return Ok(());
    }
    let there: String = there.chars().take(64).filter(|c| !c.is_control()).collect();
    let what = format!("the bundle is of the project `{there}`, and the repository of `{here}`");
    Err(Error::new(Kind::Foreign, what).with_hint("Import it into a clone of its own project."))
}
