//! A repository and a checkout of it. The library makes both.

use std::fs;
use std::path::PathBuf;

use ocx::checkout::{CheckIn, CheckedIn, Checkout, How};
use ocx::error::Result;
use ocx::name::{Branch, User};
use ocx::repo::{NewRepository, Repository};
use tempfile::TempDir;

use super::fossil::Fossil;

/// A repository and a checkout of it, in a temporary folder.
pub struct Place {
    pub dir: TempDir,
    pub repository: Repository,
    pub checkout: Checkout,
    pub user: User,
}

impl Place {
    pub fn new() -> Self {
        Self::named("r.fossil")
    }

    /// Makes a new repository in a file of this name.
    pub fn named(file: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::create(&dir.path().join(file), &NewRepository { user: ann() }).unwrap();
        Self::of(dir, repository)
    }

    /// Makes a checkout of `repository`. The repository is in `dir`.
    pub fn of(dir: TempDir, repository: Repository) -> Self {
        let checkout = Checkout::open(&repository, &dir.path().join("work"), None, Some(&ann())).unwrap();
        Self { dir, repository, checkout, user: ann() }
    }

    /// Plain Fossil makes a repository with these words after `init`. OCX makes a checkout of it.
    pub fn by_plain_fossil(init: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args = [&["init", "-A", "ann"], init, &["r.fossil"]].concat();
        Fossil::Reference.run(dir.path(), dir.path(), &args);
        let repository = Repository::open(&dir.path().join("r.fossil")).unwrap();
        Self::of(dir, repository)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.checkout.root().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn check_in(&self, comment: &str, branch: Option<&str>) -> Result<CheckedIn> {
        check_in(&self.checkout, comment, branch)
    }

    /// The changes: each path, and how it changed.
    pub fn changes(&self) -> Vec<(String, How)> {
        changes(&self.checkout)
    }

    pub fn fossil(&self, args: &[&str]) -> String {
        self.by(Fossil::Reference, args)
    }

    pub fn by(&self, fossil: Fossil, args: &[&str]) -> String {
        fossil.run(self.dir.path(), self.checkout.root(), args)
    }

    /// How many check-ins the repository has.
    pub fn check_ins(&self) -> i64 {
        self.sql("SELECT count(*) FROM event WHERE type='ci'")
    }

    pub fn sql(&self, sql: &str) -> i64 {
        let db = rusqlite::Connection::open(self.repository.path()).unwrap();
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Checks that both Fossils and the library find no damage in the repository.
    pub fn assert_whole(&self) {
        let file = self.repository.path().to_str().unwrap();
        for &fossil in Fossil::each() {
            let found = self.by(fossil, &["test-integrity", "-R", file]);
            assert!(found.contains(" 0 errors"), "{found}");
        }
        self.repository.verify().unwrap();
        let db = rusqlite::Connection::open(self.repository.path()).unwrap();
        let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok");
    }
}

pub fn ann() -> User {
    User::parse("ann").unwrap()
}

pub fn check_in(checkout: &Checkout, comment: &str, branch: Option<&str>) -> Result<CheckedIn> {
    let branch = branch.map(|b| Branch::parse(b).unwrap());
    let check_in = CheckIn { comment: comment.into(), branch, user: ann(), time: None };
    checkout.check_in(&check_in, &checkout.status()?)
}

pub fn changes(checkout: &Checkout) -> Vec<(String, How)> {
    let status = checkout.status().unwrap();
    status.changes.iter().map(|c| (c.path.to_string(), c.how)).collect()
}
