//! The key of the case ids in names of tests, `tests/cases.tsv`: an id, what it means, and a test that covers it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{files_below, root};

/// The rows of the key: id, meaning, test.
fn key() -> Vec<[String; 3]> {
    let text = fs::read_to_string(root().join("tests/cases.tsv")).expect("the key is there");
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<_> = line.split('\t').map(str::to_owned).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("{cells:?} are not an id, a meaning and a test"))
    });
    rows.collect()
}

/// The ids that a test's name begins with: `s02_a06_a_wrong_password` gives `S02` and `A06`.
fn ids(name: &str) -> Vec<String> {
    let is_id = |word: &&str| {
        let (letters, digits) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
        letters.len() == 1 && digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    name.split('_').take_while(is_id).map(str::to_uppercase).collect()
}

/// Every function that is a test in `tests` and `src`, with its ids.
fn tests() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for (_, text) in files_below("tests").into_iter().chain(files_below("src")) {
        let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
        for name in names.filter_map(|rest| rest.split_once('(').map(|(name, _)| name)) {
            found.insert(name.to_owned(), ids(name));
        }
    }
    found
}

#[test]
fn each_case_id_of_a_test_stands_in_the_key() {
    let known: BTreeSet<_> = key().into_iter().map(|[id, ..]| id).collect();
    let mut missing = Vec::new();
    for (name, ids) in tests() {
        missing.extend(ids.into_iter().filter(|id| !known.contains(id)).map(|id| format!("{id} of {name}")));
    }
    assert!(missing.is_empty(), "not in tests/cases.tsv: {missing:#?}");
}

#[test]
fn each_row_of_the_key_names_a_test_of_its_case() {
    let tests = tests();
    let mut before = String::new();
    for [id, meaning, test] in key() {
        assert!(id > before, "{id} does not come after {before}");
        assert!(!meaning.trim().is_empty(), "{id} has no meaning");
        let ids = tests.get(&test).unwrap_or_else(|| panic!("{id}: no test is called {test}"));
        assert!(ids.contains(&id), "{test} does not carry the id {id}");
        before = id;
    }
}
