//! Repositories with a history, and what Fossil derives in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ocx::bundle::Bundle;
use ocx::bundle::{Import, Imported, Selection};
use ocx::checkout::{CheckedIn, Checkout};
use ocx::format::packed::pack;
use ocx::name::Hash;
use ocx::repo::Repository;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{Fossil, OCX, Place, ann, check_in};

/// A repository `here` with a checkout, and `there`, a clone of its beginning.
pub struct Clones {
    pub dir: tempfile::TempDir,
    pub here: Repository,
    pub there: Repository,
    pub checkout: Checkout,
}

impl Clones {
    pub fn new() -> Self {
        let Place { dir, repository: here, checkout, .. } = Place::named("here.fossil");
        let there = Repository::clone_file(here.path(), &dir.path().join("there.fossil"), &ann()).unwrap();
        Self { dir, here, there, checkout }
    }

    /// Makes a varied history: several files and versions, a branch, a tag.
    pub fn with_history() -> Self {
        let place = Self::new();
        for i in 0..12 {
            place.edit(&format!("f{}.txt", i % 4), &text(i));
            place.edit("all.txt", &text(i * 7));
            place.save(&format!("edit {i}"), (i == 6).then_some("side"));
        }
        place.fossil(&["tag", "add", "marked", "side", "-R", "here.fossil"]);
        place.fossil(&["amend", "side", "-m", "a better comment", "-R", "here.fossil"]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn edit(&self, file: &str, text: &str) {
        fs::write(self.checkout.root().join(file), text).unwrap();
    }

    pub fn save(&self, comment: &str, branch: Option<&str>) -> CheckedIn {
        check_in(&self.checkout, comment, branch).unwrap()
    }

    pub fn tip(&self) -> Hash {
        self.checkout.parent().unwrap()
    }

    /// The empty check-in at the beginning of both repositories.
    pub fn root(&self) -> Hash {
        self.there.store().resolve("trunk").unwrap()
    }

    /// Runs the reference. It must succeed.
    #[track_caller]
    pub fn fossil(&self, args: &[&str]) -> String {
        said(&self.by(Fossil::Reference, args))
    }

    /// Runs a plain Fossil. It may fail.
    pub fn by(&self, fossil: Fossil, args: &[&str]) -> Output {
        fossil.command(self.dir.path(), self.dir.path(), args).output().unwrap()
    }

    /// Runs the program `ocx`. It may fail.
    pub fn ocx(&self, args: &[&str]) -> Output {
        let mut command = Command::new(OCX);
        command.args(args).current_dir(self.dir.path()).env("HOME", self.dir.path());
        command.env("FOSSIL_HOME", self.dir.path()).env("USER", "ann").output().unwrap()
    }

    /// Makes a bundle file of everything after the beginning.
    pub fn bundle(&self, name: &str) -> Bundle {
        let path = self.path(name);
        self.here.export_bundle(&path, &Selection::descendants(self.root())).unwrap();
        Bundle::open(&path).unwrap()
    }

    pub fn import(&self, bundle: &Bundle) -> ocx::error::Result<Imported> {
        self.there.import_bundle(bundle, &Import::by(ann()))
    }
}

#[track_caller]
pub fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A text of some lines. The texts of two numbers differ a little.
pub fn text(number: usize) -> String {
    lines(120, |i| if i % 40 == number % 40 { i * 1000 + number } else { i * 1000 })
}

/// A text of `count` lines. Each line holds a number.
pub fn lines(count: usize, number: impl Fn(usize) -> usize) -> String {
    (0..count).fold(String::new(), |text, i| text + &format!("line {}\n", number(i)))
}

/// Everything that Fossil derives from the artifacts. The words do not depend on the order in which artifacts arrived.
pub fn derived(path: &Path) -> Vec<String> {
    const TABLES: [&str; 9] = [
        "SELECT 'event', type, mtime, u(objid), bgcolor, euser, user, ecomment, comment, omtime FROM event",
        "SELECT 'mlink', u(mid), u(fid), u(pmid), u(pid), n(fnid), n(pfnid), mperm, isaux FROM mlink",
        "SELECT 'plink', u(pid), u(cid), isprim, mtime, u(baseid) FROM plink",
        "SELECT 'tagxref', tagname, tagtype, u(srcid), u(origid), value, mtime, u(rid) FROM tagxref JOIN tag USING(tagid)",
        "SELECT 'leaf', u(rid) FROM leaf",
        "SELECT 'backlink', target, srctype, u(srcid), mtime FROM backlink",
        "SELECT 'cherrypick', u(parentid), u(childid), isexclude FROM cherrypick",
        "SELECT 'orphan', u(rid), u(baseline) FROM orphan",
        "SELECT 'phantom', u(rid) FROM phantom",
    ];
    let db = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for sql in TABLES {
        let sql = named(sql);
        let mut query = db.prepare(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let columns = query.column_count();
        let mut rows = query.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let cells: Vec<String> = (0..columns).map(|i| cell(row.get_ref(i).unwrap())).collect();
            all.push(cells.join(" "));
        }
    }
    all.sort();
    all
}

/// A value as text. Times are shown in whole milliseconds, because their last digits as days depend on how they were
/// computed.
fn cell(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Real(days) => format!("{:.0} ms", days * 86_400_000.0),
        other => format!("{other:?}"),
    }
}

/// Replaces `u(x)` by the hash of a row number, and `n(x)` by a file's name.
fn named(sql: &str) -> String {
    let mut text = sql.to_owned();
    for (word, table) in [
        ("u(", "(SELECT uuid FROM blob WHERE blob.rid="),
        ("n(", "(SELECT name FROM filename AS f WHERE f.fnid="),
    ] {
        text = text.replace(&format!(" {word}"), &format!(" {table}"));
    }
    text
}

/// Checks that everything is readable, and that a rebuild by plain Fossil derives the same as now.
#[track_caller]
pub fn assert_whole(place: &Clones, repository: &Path) {
    let name = repository.to_str().unwrap();
    let before = derived(repository);
    let told = place.fossil(&["test-integrity", "-R", name]);
    assert!(told.contains(" 0 errors"), "{told}");
    place.fossil(&["rebuild", name]);
    assert_eq!(before, derived(repository));
}

pub fn count(repository: &Path, sql: &str) -> i64 {
    Connection::open(repository).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Adds an artifact to a bundle. Returns its hash.
pub fn add(bundle: &Path, content: &[u8]) -> Hash {
    let hash = Hash::of(content);
    let sql = "INSERT INTO bblob(uuid,sz,delta,notes,data) VALUES(?1,?2,NULL,'',?3)";
    let size = i64::try_from(content.len()).unwrap();
    Connection::open(bundle).unwrap().execute(sql, (hash.as_str(), size, pack(content).unwrap())).unwrap();
    hash
}

/// Now, as a D card has it.
pub fn now() -> String {
    ocx::name::time::date_card(ocx::name::time::julian_now())
}

/// A control artifact of these cards. It ends with its checksum.
pub fn artifact(cards: &str) -> Vec<u8> {
    use md5::{Digest, Md5};
    let sum = Md5::digest(cards.as_bytes());
    let sum: Vec<String> = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{cards}Z {}\n", sum.concat()).into_bytes()
}

/// Changes the database of a bundle directly, so that the library does not notice.
pub fn forge(bundle: &Path, sql: &str) {
    let db = Connection::open(bundle).unwrap();
    db.execute_batch(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}
