//! Random trees and edits: what OCX checks in is what plain Fossil checks in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Fossil, Place, changes};
use ocx::checkout::Checkout;
use ocx::error::Kind;
use proptest::prelude::*;

/// One thing that happens to the files.
#[derive(Debug, Clone)]
enum Edit {
    Write(String, Vec<u8>),
    Link(String, String),
    /// The file of this number, modulo their count.
    Delete(usize),
    Chmod(usize),
    /// `fossil mv` to that path, where there is nothing yet.
    Move(usize, String),
}

/// What a path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File(Vec<u8>),
    Executable(Vec<u8>),
    Link(String),
}

type Model = BTreeMap<String, Node>;

fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "a", "b", "sp ace", "\u{e9}t\u{e9}", ".dot", "-dash", "--all", "star*", "[ab]", "q?", "it's", "\"q\"",
            "\u{65e5}\u{672c}", "UP", "up", "a.txt", "$HOME", "#", "%s", "~", "a;b", "{x,y}", "@", "=",
        ]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9_ +,é~*?-]{1,12}x",
    ]
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..4).prop_map(|parts| parts.join("/"))
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        Just(b"caf\xe9\n".to_vec()),
        Just(b"a\0b\n".to_vec()),
        Just(b"a\r\nb\n".to_vec()),
        Just(b"a\r\nb\r\n".to_vec()),
        Just(b"\xef\xbb\xbfbom\n".to_vec()),
        Just(b"\xff\xfeu\0t\0f\0\n\0".to_vec()),
        Just(vec![b'x'; 20_000]),
        "[ -~\n]{0,80}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..200),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        8 => (path(), content()).prop_map(|(p, c)| Edit::Write(p, c)),
        2 => (path(), path()).prop_map(|(p, t)| Edit::Link(p, t)),
        3 => any::<usize>().prop_map(Edit::Delete),
        2 => any::<usize>().prop_map(Edit::Chmod),
        2 => (any::<usize>(), path()).prop_map(|(n, p)| Edit::Move(n, p)),
    ]
}

/// Removes what stands in the way of a file at `path`: a file that is a folder of it, or a folder of its name.
fn clear(model: &mut Model, path: &str) {
    let below = format!("{path}/");
    model.retain(|other, _| !other.starts_with(&below) && !path.starts_with(&format!("{other}/")));
}

fn nth(model: &Model, n: usize) -> Option<String> {
    model.keys().nth(n % model.len().max(1)).cloned()
}

/// Applies an edit; gives the move for plain Fossil, where it is one.
fn apply(model: &mut Model, tracked: &Model, edit: &Edit) -> Option<(String, String)> {
    match edit {
        Edit::Write(path, content) => {
            clear(model, path);
            model.insert(path.clone(), Node::File(content.clone()));
        }
        Edit::Link(path, target) => {
            clear(model, path);
            model.insert(path.clone(), Node::Link(target.clone()));
        }
        Edit::Delete(n) => drop(nth(model, *n).and_then(|path| model.remove(&path))),
        Edit::Chmod(n) => {
            if let Some(node) = nth(model, *n).and_then(|path| model.get_mut(&path)) {
                *node = match node.clone() {
                    Node::File(c) => Node::Executable(c),
                    Node::Executable(c) => Node::File(c),
                    link @ Node::Link(_) => link,
                };
            }
        }
        Edit::Move(n, to) => {
            let from = nth(model, *n)?;
            let mut cleared = model.clone();
            clear(&mut cleared, to);
            let free = cleared.len() == model.len() && !model.contains_key(to) && !tracked.contains_key(to);
            let inside = to.starts_with(&format!("{from}/")) || from.starts_with(&format!("{to}/"));
            if !free
                || inside
                || !tracked.contains_key(&from)
                || tracked.keys().any(|t| t.starts_with(&format!("{to}/")))
            {
                return None;
            }
            let node = model.remove(&from)?;
            model.insert(to.clone(), node);
            return Some((from, to.clone()));
        }
    }
    None
}

/// Makes the folder hold just the model, touching only what differs from `before`.
fn put_on_disk(root: &Path, before: &Model, model: &Model) {
    for path in before.keys().filter(|path| before.get(*path) != model.get(*path)) {
        let _ = fs::remove_file(root.join(path));
        for folder in Path::new(path).ancestors().skip(1).take_while(|f| !f.as_os_str().is_empty()) {
            let _ = fs::remove_dir(root.join(folder));
        }
    }
    for (path, node) in model.iter().filter(|(path, node)| before.get(*path) != Some(node)) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Plain Fossil's `mv` leaves an empty folder behind.
        let _ = fs::remove_dir(&path);
        match node {
            Node::Link(target) => std::os::unix::fs::symlink(target, &path).unwrap(),
            Node::File(content) | Node::Executable(content) => {
                fs::write(&path, content).unwrap();
                let mode = if matches!(node, Node::Executable(_)) { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// The `F` cards of a check-in, as they stand in it.
fn file_cards(place: &Place, checkout: &Checkout) -> Vec<String> {
    let content = place.repository.store().content(&checkout.parent().unwrap()).unwrap();
    let text = String::from_utf8(content).unwrap();
    text.lines().filter(|line| line.starts_with("F ")).map(str::to_owned).collect()
}

/// A name that plain Fossil does not take for an option.
fn argument(path: &str) -> String {
    format!("./{path}")
}

/// Checks in by plain Fossil what is on disk; whether there was something.
fn commit_by_plain_fossil(place: &Place, before: &Model, model: &Model) -> bool {
    let gone: Vec<String> =
        before.keys().filter(|path| !model.contains_key(*path)).map(|p| argument(p)).collect();
    if !gone.is_empty() {
        // `addremove` alone stumbles over a file that became a folder.
        let args: Vec<&str> = ["rm", "--soft"].into_iter().chain(gone.iter().map(String::as_str)).collect();
        place.fossil(&args);
        // Of a folder that has taken a file's place, `rm` took what is in it.
        let within = |path: &str| gone.iter().any(|g| argument(path).starts_with(&format!("{g}/")));
        let swept: Vec<String> = model.keys().filter(|path| within(path)).map(|p| argument(p)).collect();
        if !swept.is_empty() {
            place.fossil(&["add"].into_iter().chain(swept.iter().map(String::as_str)).collect::<Vec<_>>());
        }
    }
    place.fossil(&["addremove", "--dotfiles"]);
    let args = ["commit", "-m", "round", "--no-warnings", "--hash"];
    let out = Fossil::Reference.command(place.dir.path(), place.checkout.root(), &args).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() || said.contains("nothing has changed"), "{said}");
    out.status.success()
}

fn check_rounds(rounds: &[Vec<Edit>]) {
    let (ours, theirs) = (Place::new(), Place::by_plain_fossil(&[]));
    for place in [&ours, &theirs] {
        place.fossil(&["settings", "allow-symlinks", "on"]);
        place.fossil(&["settings", "dotfiles", "on"]);
    }
    let mut model = Model::new();
    for edits in rounds {
        let before = model.clone();
        let mut on_disk = before.clone();
        for edit in edits {
            if let Some((from, to)) = apply(&mut model, &before, edit) {
                // A move wants the files as they were until then; one of a new file is a plain rename.
                let at_move = {
                    let mut at = model.clone();
                    let node = at.remove(&to).unwrap();
                    at.insert(from.clone(), node);
                    at
                };
                for place in [&ours, &theirs] {
                    put_on_disk(place.checkout.root(), &on_disk, &at_move);
                    place.fossil(&["mv", "--hard", &argument(&from), &argument(&to)]);
                }
                on_disk = model.clone();
            }
        }
        for place in [&ours, &theirs] {
            put_on_disk(place.checkout.root(), &on_disk, &model);
        }
        let their_checkout = Checkout::at(theirs.checkout.root()).unwrap();
        assert_eq!(changes(&ours.checkout), changes(&their_checkout));
        let committed = commit_by_plain_fossil(&theirs, &before, &model);
        match ours.check_in("round", None) {
            Ok(_) => assert!(committed),
            Err(e) => assert_eq!((e.kind(), committed), (Kind::Unchanged, false), "{e}"),
        }
        assert_eq!(file_cards(&ours, &ours.checkout), file_cards(&theirs, &their_checkout));
        assert_eq!(changes(&ours.checkout), []);
        assert_eq!(changes(&their_checkout), []);
    }
    assert_eq!(ours.fossil(&["changes", "--hash"]), "");
    let parent = ours.checkout.parent().unwrap();
    for (path, node) in &model {
        if let Node::File(content) | Node::Executable(content) = node {
            let args = ["cat", "-r", parent.as_str(), &argument(path)];
            let out =
                Fossil::Reference.command(ours.dir.path(), ours.checkout.root(), &args).output().unwrap();
            assert_eq!(&out.stdout, content, "{path} {out:?}");
        }
    }
    ours.repository.verify().unwrap();
}

/// `PROPTEST_CASES`, or as many as take some 20 seconds.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(16)
}

#[test]
fn a_file_moves_below_a_link_that_was_removed() {
    use Edit::{Delete, Link, Move, Write};
    let made = |path: &str| Write(path.into(), vec![]);
    // Sorted, the files are `.dot`, `a`, `~`; after the removal `.dot`, `a`.
    let first = vec![Link("~".into(), "a".into()), made(".dot"), made("a")];
    check_rounds(&[first, vec![Delete(2), Move(1, "~/a".into())]]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c05_c15_random_trees_are_checked_in_as_plain_fossil_does(
        rounds in prop::collection::vec(prop::collection::vec(edit(), 1..12), 1..4)
    ) {
        check_rounds(&rounds);
    }
}
