//! Texts that were joined, compared with what plain Fossil's `3-way-merge` makes of them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::support::Fossil;
use ocx::merge::{Joined, join};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const CASES: usize = 2100;
/// From how many different lines the texts of a case are made. With few of them, most lines repeat.
const KINDS: [u32; 3] = [6, 30, 1_000_000];
/// The first words of Fossil's mark before this side of a conflict.
const MARK: &str = "<<<<<<< BEGIN MERGE CONFLICT";

type Texts = [Vec<String>; 3];

fn line(kinds: u32) -> impl Strategy<Value = String> {
    (0..kinds).prop_map(|n| format!("line {n}\n"))
}

/// A base, and two sides that each replaced, inserted or deleted up to three lines in up to three places.
fn texts(kinds: u32) -> impl Strategy<Value = Texts> {
    let edit =
        move || (any::<prop::sample::Index>(), 0..4_usize, prop::collection::vec(line(kinds), 0..4)).boxed();
    let edits = move || prop::collection::vec(edit(), 1..4);
    (prop::collection::vec(line(kinds), 4..24), edits(), edits()).prop_map(|(base, here, there)| {
        let [here, there] = [here, there].map(|edits| {
            let mut side = base.clone();
            for (at, deleted, new) in edits {
                let at = at.index(side.len() + 1);
                let end = side.len().min(at + deleted);
                side.splice(at..end, new);
            }
            side
        });
        [base, here, there]
    })
}

fn joined_by_fossil(dir: &Path, texts: &Texts) -> String {
    for (name, text) in ["base", "here", "there"].iter().zip(texts) {
        fs::write(dir.join(name), text.concat()).unwrap();
    }
    let args = ["3-way-merge", "base", "here", "there", "joined"];
    Fossil::Reference.command(dir, dir, &args).output().unwrap();
    let joined = fs::read_to_string(dir.join("joined")).unwrap();
    fs::remove_file(dir.join("joined")).unwrap();
    joined
}

fn joined_by_ocx(texts: &Texts) -> (bool, String) {
    let [base, here, there] = texts.each_ref().map(|text| text.concat().into_bytes());
    match join(&base, &here, &there) {
        Joined::Clean(text) => (true, String::from_utf8(text).unwrap()),
        Joined::Marked(text) => (false, String::from_utf8(text).unwrap()),
        Joined::Not(why) => panic!("{why}"),
    }
}

fn has_repeated_line(text: &[String]) -> bool {
    text.iter().collect::<HashSet<_>>().len() < text.len()
}

/// Which of equal lines stayed is a guess, and Fossil's guess is another. So texts with a repeated line may be joined
/// otherwise, but few of them are. All others are joined as Fossil joins them.
#[test]
fn texts_that_plain_fossil_joins_are_joined_to_the_same_text() {
    let dir = tempfile::tempdir().unwrap();
    let mut runner = TestRunner::deterministic();
    let (mut same, mut other) = ([0; 2], 0);
    for case in 0..CASES {
        let texts = texts(KINDS[case % KINDS.len()]).new_tree(&mut runner).unwrap().current();
        let fossil = joined_by_fossil(dir.path(), &texts);
        let fossil_is_clean = !fossil.contains(MARK);
        let (is_clean, text) = joined_by_ocx(&texts);
        let lines: HashSet<&str> = text.split_inclusive('\n').collect();
        let new = texts[1..].iter().flatten().filter(|line| !texts[0].contains(line));
        for line in new {
            assert!(lines.contains(line.as_str()), "{line:?} is lost: {texts:?}\n{text}");
        }
        let repeats = texts.iter().any(|text| has_repeated_line(text));
        if is_clean == fossil_is_clean && (!is_clean || text == fossil) {
            same[usize::from(repeats)] += usize::from(is_clean);
        } else {
            assert!(repeats, "{texts:?}\nFossil: {fossil}\nOCX: {text}");
            other += 1;
        }
    }
    println!("joined as by Fossil: {same:?} (without and with repeated lines), otherwise: {other}");
    assert!(same.iter().all(|count| *count > 200), "{same:?}");
    assert!(other * 20 < CASES, "{other} of {CASES} are joined otherwise");
}
