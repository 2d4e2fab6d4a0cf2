//! The same for everything else that is written in one transaction: each change is there whole or not at all, and
//! the call's answer says which.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use libsqlite3_sys as sqlite;
use ocx::bundle::Bundle;
use ocx::bundle::{Import, Selection};
use ocx::checkout::Checkout;
use ocx::error::Result;
use ocx::format::Markup;
use ocx::name::{Hash, PageName, UnversionedName};
use ocx::record::{Unversioned, Wiki, WikiText};
use ocx::repo::Repository;

use crate::disk::Loss;
use crate::support::{Place, ann, check_in};
use crate::vfs::{Fault, Op, Watch};
use crate::{Journal, STEPS_MAX, assert_intact, place};

/// One kind of change; its number makes each another.
trait Work {
    fn act(&self, repository: &Repository, number: usize) -> Result<()>;
    /// Whether the change is there; half of it is a failure.
    fn is_done(&self, repository: &Repository, number: usize) -> bool;
}

struct Page;

impl Work for Page {
    fn act(&self, repository: &Repository, number: usize) -> Result<()> {
        let text = format!("page {number}\n").repeat(300);
        let text = WikiText { text: &text, markup: Markup::Markdown, previous: None };
        Wiki::of(repository).write(&page(number), &text, &ann()).map(drop)
    }

    fn is_done(&self, repository: &Repository, number: usize) -> bool {
        let listed = Wiki::of(repository).list().unwrap().iter().any(|p| p.name == page(number).as_str());
        assert_eq!(Wiki::of(repository).read(&page(number), None).is_ok(), listed);
        listed
    }
}

fn page(number: usize) -> PageName {
    PageName::parse(&format!("Page {number}")).unwrap()
}

struct File;

impl Work for File {
    fn act(&self, repository: &Repository, number: usize) -> Result<()> {
        let bytes = number.to_le_bytes().repeat(900);
        Unversioned::of(repository).put(&file(number), &bytes, &ann()).map(drop)
    }

    fn is_done(&self, repository: &Repository, number: usize) -> bool {
        let files = Unversioned::of(repository);
        let listed = files.list().unwrap().iter().any(|f| f.name == file(number).as_str());
        assert_eq!(files.get(&file(number)).is_ok(), listed);
        listed
    }
}

fn file(number: usize) -> UnversionedName {
    UnversionedName::parse(&format!("file-{number}.bin")).unwrap()
}

/// Imports a bundle with a check-in that was made in a clone.
struct Bundled {
    clone: Place,
    made: RefCell<BTreeMap<usize, Hash>>,
}

impl Bundled {
    fn of(repository: &Repository) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clone =
            Repository::clone_file(repository.path(), &dir.path().join("clone.fossil"), &ann()).unwrap();
        Self { clone: Place::of(dir, clone), made: RefCell::default() }
    }

    fn made(&self, number: usize) -> Hash {
        *self.made.borrow_mut().entry(number).or_insert_with(|| {
            self.clone.write("a.txt", format!("bundled {number}\n").repeat(100));
            self.clone.check_in("bundled", None).unwrap().hash
        })
    }
}

impl Work for Bundled {
    fn act(&self, repository: &Repository, number: usize) -> Result<()> {
        let path = self.clone.dir.path().join("one.bundle");
        let _ = fs::remove_file(&path);
        self.clone.repository.export_bundle(&path, &Selection::one(self.made(number))).unwrap();
        repository.import_bundle(&Bundle::open(&path)?, &Import::by(ann())).map(drop)
    }

    fn is_done(&self, repository: &Repository, number: usize) -> bool {
        let there = repository.store().holds(&self.made(number)).unwrap();
        assert_eq!(repository.store().check_in(&self.made(number)).is_ok(), there);
        there
    }
}

/// Every single operation of one kind fails, in a change each, by turns alone and with all after it.
fn each_fails(
    watch: &Watch,
    repository: &Repository,
    work: &dyn Work,
    op: Op,
    code: i32,
    from: usize,
) -> usize {
    for nth in 0..STEPS_MAX {
        let number = from + nth;
        work.is_done(repository, number);
        let fault = Fault { op, code, nth, lasting: nth % 2 == 1 };
        let (done, failed) = watch.with(fault, || work.act(repository, number));
        assert_eq!(work.is_done(repository, number), done.is_ok(), "{fault:?}: {done:?}");
        if failed == 0 {
            done.unwrap();
            assert!(nth > 0, "the fault was never met");
            return number + 1;
        }
        if done.is_err() {
            work.act(repository, number).unwrap();
        }
    }
    panic!("more than {STEPS_MAX} steps")
}

/// The power goes at each moment of a change.
fn power_goes(watch: &Watch, repository: &Repository, work: &dyn Work, number: usize) {
    work.is_done(repository, number);
    let ((), pictures) = watch.pictures(|| work.act(repository, number).unwrap());
    let after = [Loss::All, Loss::Some(1), Loss::Some(2), Loss::None].map(|loss| watch.picture(loss));
    let mut there = 0;
    for (image, acknowledged) in pictures.iter().map(|i| (i, false)).chain(after.iter().map(|i| (i, true))) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.fossil");
        for (name, bytes) in image.iter().filter(|(name, _)| name.starts_with("r.fossil") || is_log(name)) {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        assert_intact(&path);
        let left = Repository::open(&path).unwrap();
        let is_done = work.is_done(&left, number);
        assert!(is_done || !acknowledged, "an acknowledged change is missing");
        there += usize::from(is_done);
        if !is_done {
            work.act(&left, number).unwrap();
        }
    }
    assert!(there >= after.len() && there < pictures.len() + after.len());
}

fn is_log(name: &Path) -> bool {
    name.to_str().unwrap().starts_with("r.fossil-")
}

fn holds(work: impl FnOnce(&Repository) -> Box<dyn Work>, journal: Journal) {
    let (watch, place) = place(journal);
    let work = work(&place.repository);
    let mut number = 0;
    for (op, code) in [(Op::Write, sqlite::SQLITE_FULL), (Op::Sync, sqlite::SQLITE_IOERR_FSYNC)] {
        number = each_fails(&watch, &place.repository, &*work, op, code, number);
    }
    power_goes(&watch, &place.repository, &*work, number);
    place.assert_whole();
    let checkout = Checkout::at(place.checkout.root()).unwrap();
    fs::write(checkout.root().join("c.txt"), "the work goes on\n").unwrap();
    check_in(&checkout, "the next", Some("another")).unwrap();
}

#[test]
fn a_wiki_edit_is_whole_or_not_there() {
    for journal in Journal::BOTH {
        holds(|_| Box::new(Page), journal);
    }
}

#[test]
fn an_unversioned_file_is_whole_or_not_there() {
    for journal in Journal::BOTH {
        holds(|_| Box::new(File), journal);
    }
}

#[test]
fn a_bundle_import_is_whole_or_not_there() {
    for journal in Journal::BOTH {
        holds(|repository| Box::new(Bundled::of(repository)), journal);
    }
}
