//! A repository with a checkout, and calls on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ocx::checkout::{CheckedIn, Checkout};
use ocx::engine;
use ocx::error::{Error, Kind, Result};
use ocx::repo::Repository;
use rusqlite::Connection;

use crate::support::{self, ann, check_in};

/// Makes each content new.
static SAVES: AtomicU32 = AtomicU32::new(0);

pub struct Place {
    pub dir: tempfile::TempDir,
    pub repository: Repository,
    pub checkout: Checkout,
}

/// Runs a Fossil command in `dir` as ann.
pub fn fossil(dir: &Path, args: &[&str]) -> Result<engine::Output> {
    engine::command(dir, args, Some("ann"))
}

impl Place {
    pub fn new() -> Self {
        let support::Place { dir, repository, checkout, .. } = support::Place::new();
        let place = Self { dir, repository, checkout };
        place.save("first").unwrap();
        place
    }

    pub fn path(&self) -> PathBuf {
        self.repository.path().to_owned()
    }

    pub fn another_checkout(&self, name: &str) -> Checkout {
        Checkout::open(&self.repository, &self.dir.path().join(name), None, Some(&ann())).unwrap()
    }

    /// Checks in a new content of `a.txt`.
    pub fn save(&self, text: &str) -> Result<CheckedIn> {
        save(&self.checkout, text, None)
    }

    /// Runs a Fossil command in the checkout.
    pub fn fossil(&self, args: &[&str]) -> Result<engine::Output> {
        fossil(self.checkout.root(), args)
    }

    /// Nothing is damaged, and the engine still works on this repository.
    pub fn is_well(&self, after: &str) {
        assert_eq!(integrity(&self.path()), "ok", "after {after}");
        let nth = SAVES.fetch_add(1, Ordering::Relaxed);
        self.save(&format!("after {after} {nth}")).unwrap_or_else(|e| panic!("after {after}: {e}"));
        let out = self.fossil(&["timeline", "-n", "1"]).unwrap();
        assert!(out.out.contains("trunk"), "after {after}: {out:?}");
    }
}

/// Checks in a new content of `a.txt`.
pub fn save(checkout: &Checkout, text: &str, branch: Option<&str>) -> Result<CheckedIn> {
    fs::write(checkout.root().join("a.txt"), text).unwrap();
    check_in(checkout, &format!("save {text}"), branch)
}

pub fn integrity(path: &Path) -> String {
    let db = Connection::open(path).unwrap();
    db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// Asserts the kind of an error and a part of its words.
pub fn expect<T>(what: &str, result: Result<T>, kind: Kind, words: &str) -> Error {
    let Err(e) = result else { panic!("{what}: it did not fail") };
    assert_eq!(e.kind(), kind, "{what}: {e}");
    assert!(e.to_string().contains(words), "{what}: {e}");
    e
}
