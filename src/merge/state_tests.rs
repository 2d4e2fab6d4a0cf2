//! The table of states: each thing that can be done here with each that can be done there, and what follows. It stands in
//! `states.txt`; `OCX_BLESS=1` writes it anew.
//!
//! All happens to the path `p`. `B` is the base's content, `H` and `T` those of the sides, `J` the joined text, `N` what
//! both sides added alike. `@` is a link, `*` an executable file.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::plan_tests::{Contents, check, path, result};
use super::*;
use crate::name::Hash;
use crate::repo::store::{FileEntry, Files};
use crate::tree::FileKind::{Executable, Regular, Symlink};

/// What the base has at `p`, and what a side may do to it.
const STATES: [(&str, &[&str]); 4] = [
    (
        "nothing",
        &["absent", "added-equal", "added-different", "added-executable", "added-link", "added-folder"],
    ),
    (
        "file",
        &[
            "same",
            "edited",
            "deleted",
            "renamed",
            "renamed-elsewhere",
            "renamed-edited",
            "mode",
            "edited-mode",
            "to-link",
            "to-folder",
        ],
    ),
    ("link", &["same", "other-target", "deleted", "renamed", "to-file", "to-folder"]),
    ("folder", &["same", "edited", "deleted", "renamed", "to-file", "to-link"]),
];

const TEXTS: [(&str, &str); 4] = [
    ("B", "1\n2\n3\n4\n5\n"),
    ("H", "here\n2\n3\n4\n5\n"),
    ("T", "1\n2\n3\n4\nthere\n"),
    ("J", "here\n2\n3\n4\nthere\n"),
];

fn text(label: &str) -> String {
    TEXTS
        .iter()
        .find(|(known, _)| *known == label)
        .map_or_else(|| label.to_owned(), |(_, text)| (*text).to_owned())
}

fn entry(label: &str, kind: crate::tree::FileKind) -> FileEntry {
    FileEntry { hash: Hash::of(text(label).as_bytes()), kind }
}

fn base(kind: &str) -> Files {
    Files::from_iter(match kind {
        "nothing" => None,
        "file" => Some((path("p"), entry("B", Regular))),
        "link" => Some((path("p"), entry("B", Symlink))),
        _ => Some((path("p/x"), entry("B", Regular))),
    })
}

/// A side that did this. `own` is the label of its content.
fn side(kind: &str, state: &str, own: &str) -> Side {
    let (from, was) = match kind {
        "link" => ("p", Symlink),
        "folder" => ("p/x", Regular),
        _ => ("p", Regular),
    };
    let (to, label, is) = match state {
        "absent" | "deleted" => return Side::default(),
        "same" => (from, "B", was),
        "edited" | "added-different" => (from, own, was),
        "added-equal" => ("p", "N", Regular),
        "added-executable" => ("p", "N", Executable),
        "added-link" => ("p", "N", Symlink),
        "renamed" => ("q", "B", was),
        "renamed-elsewhere" => ("r", "B", was),
        "renamed-edited" => ("q", own, was),
        "mode" => (from, "B", Executable),
        "edited-mode" => (from, own, Executable),
        "to-link" | "other-target" => ("p", own, Symlink),
        "to-file" => ("p", own, Regular),
        "to-folder" | "added-folder" => ("p/x", own, Regular),
        other => panic!("{other}"),
    };
    let mut side = Side::default();
    side.files.insert(path(to), entry(label, is));
    if state.starts_with("renamed") {
        side.renames.insert(path(to), path(from));
    }
    side
}

fn shown(path: &crate::name::TreePath, entry: FileEntry) -> String {
    let label =
        ["B", "H", "T", "J", "N"].into_iter().find(|label| Hash::of(text(label).as_bytes()) == entry.hash);
    let mark = match entry.kind {
        Regular => "",
        Executable => "*",
        Symlink => "@",
    };
    format!("{path}={}{mark}", label.unwrap_or("?"))
}

/// What the plan says, in one line.
fn outcome(plan: &Plan) -> String {
    let mut files: Vec<_> = result(plan).iter().map(|(path, entry)| shown(path, *entry)).collect();
    files.extend(plan.backups().map(|backup| format!("[{}]", shown(&backup.path, backup.entry))));
    let steps = plan.steps.values().map(|step| {
        let what = serde_json::to_value(step.what).unwrap();
        format!("{} {}", step.path, what.as_str().unwrap())
    });
    let (files, steps) = (files.join(" "), steps.collect::<Vec<_>>().join(", "));
    let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    format!("{:24} | {}", dash(files), dash(steps))
}

#[test]
fn each_pair_of_states_has_the_expected_outcome() {
    let contents: Contents = ["B", "H", "T", "J", "N"]
        .map(|label| (Hash::of(text(label).as_bytes()), text(label).into_bytes()))
        .into();
    let mut table = format!("{:8}{:18}{:18}| {:24} | steps\n", "base", "here", "there", "files");
    let mut cells = 0;
    for (kind, states) in STATES {
        for here in states {
            for there in states {
                let mut trees = Trees {
                    base: base(kind),
                    here: side(kind, here, "H"),
                    there: side(kind, there, "T"),
                    ..Trees::default()
                };
                let saved = check(&trees, &contents);
                trees.unsaved = trees.here.files.keys().cloned().collect::<BTreeSet<_>>();
                let mut unsaved = check(&trees, &contents);
                for step in unsaved.steps.values_mut() {
                    assert_eq!(step.unsaved, step.here.is_some(), "{step:?}");
                    step.unsaved = false;
                }
                assert_eq!(saved, unsaved, "whether it is saved changes only what is said");
                let _ = writeln!(table, "{kind:8}{here:18}{there:18}| {}", outcome(&saved).trim_end());
                cells += 2;
            }
        }
    }
    assert_eq!(cells, 2 * (36 + 100 + 36 + 36));
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/merge/states.txt");
    if std::env::var_os("OCX_BLESS").is_some() {
        std::fs::write(&place, &table).unwrap();
    }
    let expected = std::fs::read_to_string(&place).unwrap();
    for (new, old) in table.lines().zip(expected.lines()) {
        assert_eq!(new, old);
    }
    assert_eq!(table, expected);
}

#[test]
fn a_plan_is_written_as_json_without_the_files_it_leaves_alone() {
    let there = side("file", "edited", "T");
    let trees = Trees { base: base("file"), here: side("file", "same", "H"), there, ..Trees::default() };
    let json = serde_json::to_value(Plan::of(&trees)).unwrap();
    assert_eq!(json["steps"]["p"]["what"], "updated");
    assert_eq!(json["steps"]["p"]["source"], "there");
    assert_eq!(json["steps"]["p"]["why"], "edited there: theirs is taken");
    assert!(json.get("tree").is_none());
}
