//! Sync with servers of 2.21 and 2.28, with what may stand before them, and with servers that lie.

mod command;
mod direction;
mod hostile;
mod liar;
mod mutation;
mod refused;
mod stop;
mod tls;
mod unversioned;

use std::path::Path;

use crate::support::{Fossil, Place, ann};
use ocx::repo::Repository;
use ocx::sync::Remote;

/// A clone by OCX of what `server` serves, open in a folder of its own.
fn cloned(remote: &Remote) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let repository = Repository::clone_from(remote, &dir.path().join("r.fossil"), &ann()).unwrap();
    Place::of(dir, repository)
}

/// What is derived from artifacts, table by table, in an order of its own.
fn derived(path: &Path) -> Vec<String> {
    let db = rusqlite::Connection::open(path).unwrap();
    let tables = [
        "SELECT json_array('event', type, mtime, objid, uid, bgcolor, euser, user, ecomment, comment, brief, omtime)
         FROM event",
        "SELECT json_array('plink', pid, cid, isprim, mtime, baseid) FROM plink",
        "SELECT json_array('leaf', rid) FROM leaf",
        "SELECT json_array('tag', tagname, tagtype, srcid, origid, value, mtime, rid) FROM tagxref JOIN tag USING(tagid)",
        "SELECT json_array('mlink', mid, fid, pmid, pid, mperm, isaux, a.name, b.name) FROM mlink
         LEFT JOIN filename a USING(fnid) LEFT JOIN filename b ON b.fnid=pfnid",
        "SELECT json_array('phantom', rid) FROM phantom",
        "SELECT json_array('private', rid) FROM private",
        "SELECT json_array('cherrypick', parentid, childid, isExclude) FROM cherrypick",
    ];
    let mut rows = Vec::new();
    for sql in tables {
        let mut query = db.prepare(sql).unwrap();
        let found = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.extend(found.map(|row| row.unwrap()));
    }
    rows.sort_unstable();
    rows
}

/// Both Fossils find the repository whole, and deriving all anew changes nothing.
fn assert_derived(home: &Path, path: &Path) {
    let file = path.to_str().unwrap();
    let before = derived(path);
    for &fossil in Fossil::each() {
        let found = fossil.run(home, home, &["test-integrity", "-R", file]);
        assert!(found.contains(" 0 errors"), "{found}");
        fossil.run(home, home, &["rebuild", file]);
        let after = derived(path);
        let gone: Vec<_> = before.iter().filter(|row| !after.contains(row)).collect();
        let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
        assert!(before == after, "{fossil:?}: gone {gone:#?}, new {new:#?}");
    }
}
