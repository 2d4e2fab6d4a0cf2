//! Random histories: where plain Fossil's update or merge is right, ours is the same; where it is not, the test names what
//! plain Fossil loses or does otherwise. `OCX_MERGE_CASES` is how many, `OCX_MERGE_SEED` the first one's seed.

mod history;
mod judge;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Fossil, check_in};
use history::{Act, History, Node, Random, tree};
use judge::{Outcome, judge};
use ocx::checkout::Checkout;
use ocx::error::Kind;
use rusqlite::Connection;

/// As many as take about two minutes on two cores.
const CASES: u64 = 600;
const WORKERS: usize = 2;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Copies the checkout and the repository of a history. Returns the root of the copy.
fn copy(history: &History) -> PathBuf {
    let to = history.place.dir.path().join("copy");
    fs::create_dir(&to).unwrap();
    let root = to.join("work");
    fs::create_dir(&root).unwrap();
    let copy_database = |from: &Path, to: &Path| {
        Connection::open(from).unwrap().execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
    };
    let repository = to.join("r.fossil");
    copy_database(history.place.repository.path(), &repository);
    copy_database(&history.place.path(".fslckout"), &root.join(".fslckout"));
    let db = Connection::open(root.join(".fslckout")).unwrap();
    db.execute("UPDATE vvar SET value=?1 WHERE name='repository'", [repository.to_str().unwrap()]).unwrap();
    for (path, node) in tree(history.place.checkout.root()) {
        let (from, path) = (history.place.path(&path), root.join(path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match node {
            Node::Link(target) => symlink(target, path).unwrap(),
            Node::File { .. } => drop(fs::copy(from, path).unwrap()),
        }
    }
    root
}

/// Each path that plain Fossil finds changed here.
fn changed_by_plain_fossil(checkout: &Checkout) -> BTreeMap<String, String> {
    let said =
        ocx::engine::command(checkout.root(), &["changes", "--differ", "--rel-paths"], Some("ann")).unwrap();
    let said = said.out;
    let mut changed = BTreeMap::new();
    for line in said.lines() {
        let Some((word, path)) = line.split_once(' ') else { continue };
        for path in path.trim().split("  ->  ") {
            changed.insert(path.to_owned(), word.to_owned());
        }
    }
    changed
}

/// Fails unless plain Fossil and OCX see the same changes (K08).
fn assert_same_changes(checkout: &Checkout, when: &str) {
    let theirs = changed_by_plain_fossil(checkout);
    let ours: BTreeMap<String, String> =
        crate::support::changes(checkout).into_iter().map(|(path, how)| (path, how.to_string())).collect();
    // A file that a merge has brought to the state of the check-in is named by plain Fossil and is no change.
    let only_named = |(_, word): &(&String, &String)| !word.contains("MERGE") && !word.contains("INTEGRATE");
    // So is a file that was added and is gone again.
    let parent = checkout.repository().store().files(&checkout.parent().unwrap()).unwrap();
    let is_saved = |path: &str| {
        let content = std::fs::read(checkout.root().join(path));
        content.is_ok_and(|content| parent.get(path).is_some_and(|entry| entry.hash.names(&content)))
    };
    // OCX leaves what was put beside out of check-ins, and says so.
    let left_out = checkout.status().unwrap().left_out;
    let is_left_out = |path: &str| left_out.iter().any(|left| left.path == path);
    let is_nothing = |path: &str| !parent.contains_key(path) && !is_file(&checkout.root().join(path));
    let theirs_only: Vec<_> = theirs
        .iter()
        .filter(only_named)
        .filter(|(path, _)| {
            !ours.contains_key(*path) && !is_nothing(path) && !is_saved(path) && !is_left_out(path)
        })
        .collect();
    let ours_only: Vec<_> = ours.iter().filter(|(path, _)| !theirs.contains_key(*path)).collect();
    assert!(
        theirs_only.is_empty() && ours_only.is_empty(),
        "{when}: plain Fossil alone sees {theirs_only:?}, OCX alone sees {ours_only:?}, \
         OCX: {ours:?}, plain Fossil: {theirs:?}, files: {:?}, saved: {:?}",
        tree(checkout.root()).keys(),
        parent.keys()
    );
}

fn is_file(path: &Path) -> bool {
    path.is_symlink() || path.is_file()
}

/// Does the same by both; returns what differs, in words.
fn compare(seed: u64) -> Vec<String> {
    let history = History::new(&mut Random::new(seed));
    let checkout = &history.place.checkout;
    assert_same_changes(checkout, &format!("before {:?}", history.log));
    let before = tree(checkout.root());
    let theirs_root = copy(&history);
    let version = history.version.as_str();
    let done = match history.act {
        Act::Update => checkout.update(version),
        Act::Merge(how) => checkout.merge(version, how),
    };
    let args = history.act.args(version);
    let out = Fossil::Reference.command(history.place.dir.path(), &theirs_root, &args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    let outcome = Outcome {
        before,
        ours: tree(checkout.root()),
        theirs: tree(&theirs_root),
        plain_fossil: if out.status.success() { Ok(said.clone()) } else { Err(said.clone()) },
        done,
    };
    let context = || format!("seed {seed}: {:?}\n{:#?}\nplain Fossil: {said}", history.act, history.log);
    if let Err(e) = &outcome.done {
        assert!(matches!(e.kind(), Kind::Unchanged | Kind::Exists | Kind::Invalid), "{e}\n{}", context());
        assert_eq!(outcome.ours, outcome.before, "{e}\n{}", context());
    }
    assert_same_changes(checkout, &format!("after {}", context()));
    let found = judge(&history, &outcome);
    if variable("OCX_MERGE_SHOW").is_some() {
        eprintln!("{}\n{:#?}\n{outcome:#?}\n{found:#?}", context(), judge::shown(&outcome));
    }
    match check_in(checkout, "saved", None) {
        Ok(_) => assert_same_changes(checkout, "after a save"),
        Err(e) => assert!(matches!(e.kind(), Kind::Unchanged | Kind::WouldFork), "{e}\n{}", context()),
    }
    assert_eq!(tree(checkout.root()), outcome.ours, "a save changes no file\n{}", context());
    found
}

#[test]
fn plain_fossils_right_results_are_ours_and_its_wrong_ones_have_a_name() {
    let first = variable("OCX_MERGE_SEED").unwrap_or(1);
    let end = first + variable("OCX_MERGE_CASES").unwrap_or(CASES);
    let next = AtomicU64::new(first);
    let counts = Mutex::new(BTreeMap::<String, (u64, u64)>::new());
    let failed = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let compared = std::panic::catch_unwind(|| compare(seed));
                    match compared {
                        Ok(found) => {
                            let names = if found.is_empty() { vec!["the same".to_owned()] } else { found };
                            for name in names {
                                counts.lock().unwrap().entry(name).or_insert((0, seed)).0 += 1;
                            }
                        }
                        Err(why) => {
                            let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
                            failed.lock().unwrap().insert(seed, why);
                        }
                    }
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    for (name, (count, seed)) in &counts {
        println!("{count:6} {name} (first by seed {seed})");
    }
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} cases: {failed:#?}", failed.len(), end - first);
    let unnamed: Vec<_> = counts.keys().filter(|name| name.starts_with('?')).collect();
    assert!(unnamed.is_empty(), "differences without a name: {unnamed:#?}");
}
