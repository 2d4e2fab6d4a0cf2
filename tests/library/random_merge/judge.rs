//! What becomes of the two results: whether ours keeps everything, and the name of each difference.

use std::collections::BTreeSet;

use super::history::{Act, History, Node, Tree, all_words, words};
use ocx::checkout::{FileOutcome, MergeHow, Updated};
use ocx::error::Result;
use ocx::merge::Versions;
use ocx::name::Hash;

/// What both have done.
#[derive(Debug)]
pub struct Outcome {
    pub before: Tree,
    pub ours: Tree,
    pub theirs: Tree,
    pub plain_fossil: std::result::Result<String, String>,
    pub done: Result<Updated>,
}

/// The words that must be there afterwards.
struct Owed {
    /// Those that this side wrote and the base has not.
    here: BTreeSet<String>,
    /// Those that the other side wrote and this side never had.
    there: BTreeSet<String>,
}

fn words_of(history: &History, check_in: &Hash) -> BTreeSet<String> {
    let store = history.place.repository.store();
    let files = store.files(check_in).unwrap();
    files.values().flat_map(|file| words(&store.content(&file.hash).unwrap())).collect()
}

fn owed(history: &History, before: &Tree) -> Owed {
    let store = history.place.repository.store();
    let Versions { base, there } = match history.act {
        Act::Update => Versions { base: history.parent, there: history.version },
        Act::Merge(how) => Versions::of(store, how, &history.version, &[history.parent]).unwrap(),
    };
    let base_words = words_of(history, &base);
    let here: BTreeSet<_> = &all_words(before) - &base_words;
    let mut there = &words_of(history, &there) - &base_words;
    if history.act == Act::Merge(MergeHow::Backout) {
        there.clear();
    }
    let mut queue = vec![history.parent];
    while let Some(check_in) = queue.pop() {
        there = &there - &words_of(history, &check_in);
        queue.extend(store.check_in(&check_in).unwrap().parents);
    }
    Owed { here, there }
}

/// The paths that differ, with both sides, for people.
pub fn shown(outcome: &Outcome) -> Vec<String> {
    let node = |node: Option<&Node>| match node {
        None => "nothing".to_owned(),
        Some(Node::Link(target)) => format!("link {target}"),
        Some(Node::File { executable, bytes }) => {
            format!("{}{:?}", if *executable { "x " } else { "" }, String::from_utf8_lossy(bytes))
        }
    };
    let paths: BTreeSet<_> =
        outcome.ours.keys().chain(outcome.theirs.keys()).chain(outcome.before.keys()).collect();
    let rows = paths.into_iter().map(|path| {
        let [b, o, t] = [&outcome.before, &outcome.ours, &outcome.theirs].map(|tree| tree.get(path));
        let mark = if o == t { " " } else { "!" };
        format!("{mark} {path}: before {}; ours {}; plain {}", node(b), node(o), node(t))
    });
    rows.collect()
}

/// The name of each difference. One that has none begins with a question mark.
pub fn judge(history: &History, outcome: &Outcome) -> Vec<String> {
    let owed = owed(history, &outcome.before);
    let (ours, theirs) = (all_words(&outcome.ours), all_words(&outcome.theirs));
    if outcome.done.is_ok() {
        let lost: Vec<_> = owed.here.union(&owed.there).filter(|word| !ours.contains(*word)).collect();
        assert!(
            lost.is_empty(),
            "OCX loses {lost:?} by {:?}: {:#?}\n{:#?}",
            history.act,
            shown(outcome),
            history.log
        );
    }
    if outcome.ours == outcome.theirs {
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    if let Err(said) = &outcome.plain_fossil {
        names.insert(format!("plain Fossil refuses: {}", refusal(said)));
        return names.into_iter().collect();
    }
    if let Err(e) = &outcome.done {
        if e.kind() == ocx::error::Kind::Unchanged {
            return vec!["plain Fossil merges what is part of what is here (2.28)".to_owned()];
        }
        names.insert(format!("? OCX refuses: {e}"));
        return names.into_iter().collect();
    }
    for (side, owed) in [("of this side", &owed.here), ("of the other side", &owed.there)] {
        let lost: Vec<_> = owed.iter().filter(|word| !theirs.contains(*word)).collect();
        if lost.iter().any(|word| word.starts_with('u')) {
            names.insert("plain Fossil loses an unsaved edit".to_owned());
        }
        if lost.iter().any(|word| !word.starts_with('u')) {
            names.insert(format!("plain Fossil drops a saved edit {side} from the tree"));
        }
    }
    let paths: BTreeSet<_> = outcome.ours.keys().chain(outcome.theirs.keys()).collect();
    for path in paths {
        let (our, their) = (outcome.ours.get(path), outcome.theirs.get(path));
        if our != their {
            let name = name(outcome, path, our, their);
            let is_through_link = outcome.before.values().any(|node| match node {
                Node::Link(target) => our.is_none() && path.ends_with(target.as_str()),
                Node::File { .. } => false,
            });
            let is_renaming = history.log.iter().any(|line| line.contains("renamed with"));
            names.insert(match name.split(':').next() {
                Some("? None") if history.log.contains(&format!("u 7 {path}")) => {
                    "plain Fossil brings back a file that was deleted here".to_owned()
                }
                Some("? None") if is_through_link => "plain Fossil writes through a link".to_owned(),
                Some("? None") if is_renaming => "plain Fossil undoes or misses a rename".to_owned(),
                _ => name,
            });
        }
    }
    names.into_iter().collect()
}

/// How plain Fossil refuses, by a part of what it says. It may have changed some files by then.
const REFUSALS: &[(&str, &str)] = &[
    ("cannot open", "a file is gone"),
    ("is directory, cannot overwrite", "a folder is to become a file"),
    ("non-dir", "a file is to become a folder"),
    ("abort due to prior errors", "a rename or a folder is in the way"),
    ("no such file", "a file is gone"),
    ("for writing", "it cannot write"),
    ("Assertion", "it crashes"),
    ("not an ordinary file", "a folder is to become a file"),
    ("Rolling back", "it stops in the middle and takes back"),
];

fn refusal(said: &str) -> &str {
    let known = REFUSALS.iter().find(|(part, _)| said.contains(part));
    known.map_or(said, |(_, name)| name)
}

const MARK: &[u8] = b"<<<<<<< BEGIN MERGE";

fn is_marked(node: Option<&Node>) -> bool {
    matches!(node, Some(Node::File { bytes, .. }) if bytes.windows(MARK.len()).any(|part| part == MARK))
}

fn is_same_but_for_mode(one: Option<&Node>, other: Option<&Node>) -> bool {
    let (Some(Node::File { bytes: one, .. }), Some(Node::File { bytes: other, .. })) = (one, other) else {
        return false;
    };
    one == other
}

/// Whether a file differs here because the two have it under different names.
fn is_elsewhere(one: &Tree, other: &Tree, node: Option<&Node>) -> bool {
    let found =
        |tree: &Tree| tree.iter().any(|(_, has)| is_same_but_for_mode(Some(has), node) || Some(has) == node);
    let differing = |tree: &Tree, than: &Tree| -> Tree {
        tree.iter()
            .filter(|(path, node)| than.get(*path) != Some(*node))
            .map(|(p, n)| (p.clone(), n.clone()))
            .collect()
    };
    node.is_some() && found(&differing(one, other)) && found(&differing(other, one))
}

fn name(outcome: &Outcome, path: &str, our: Option<&Node>, their: Option<&Node>) -> String {
    use FileOutcome as What;
    let done = outcome.done.as_ref().unwrap();
    let step = done.files.iter().find(|file| {
        file.path == path
            || [&file.from, &file.backup, &file.theirs].into_iter().flatten().any(|name| name == path)
    });
    let is_beside =
        step.is_some_and(|file| file.theirs.as_deref() == Some(path) || file.backup.as_deref() == Some(path));
    let what = step.map(|file| file.what);
    let (is_ours_marked, is_theirs_marked) = (is_marked(our), is_marked(their));
    let (ours, theirs) = (&outcome.ours, &outcome.theirs);
    let is_named_otherwise = is_elsewhere(ours, theirs, our) || is_elsewhere(ours, theirs, their);
    let is_suffixed = ["-original", "-merge", "-baseline"].iter().any(|suffix| path.contains(suffix));
    let text = match (what, our, their) {
        _ if is_same_but_for_mode(our, their) => "plain Fossil takes back a change of mode",
        (_, None, Some(_)) if is_suffixed => "plain Fossil puts ours beside, where we put theirs",
        (_, Some(_), None) if is_beside => "plain Fossil puts nothing beside",
        (Some(What::ConflictRemovedThere), Some(_), None) => {
            "plain Fossil drops a file changed here, removed there"
        }
        (Some(What::ConflictRemovedHere), Some(_), None) => {
            "plain Fossil drops a file removed here, changed there"
        }
        _ if is_theirs_marked && !is_ours_marked => "plain Fossil finds a conflict where none is",
        _ if is_named_otherwise => "plain Fossil undoes or misses a rename",
        (Some(What::ConflictMarked), ..) if is_ours_marked && is_theirs_marked => "the marks stand otherwise",
        (Some(What::ConflictBothAdded), Some(_), Some(_)) => {
            "plain Fossil takes theirs of two that were added"
        }
        (Some(What::ConflictUnjoinable), Some(_), Some(_)) => {
            "plain Fossil takes theirs of two that cannot be joined"
        }
        (Some(What::Added), Some(_), None) => "plain Fossil misses a file that the other side added",
        _ if is_ours_marked && !is_theirs_marked && is_glued(their) => "plain Fossil glues lines together",
        _ if is_ours_marked && is_theirs_marked && is_glued(their) => "plain Fossil glues lines together",
        _ if step.is_some_and(|file| file.why.contains("renamed")) => {
            "plain Fossil undoes or misses a rename"
        }
        (Some(What::Removed), None, Some(_)) => "plain Fossil misses a removal",
        _ if has_bom(our) && !has_bom(their) => "plain Fossil loses a byte-order mark",
        _ => return unnamed(what, our, their),
    };
    text.to_owned()
}

fn has_bom(node: Option<&Node>) -> bool {
    matches!(node, Some(Node::File { bytes, .. }) if bytes.starts_with("\u{feff}".as_bytes()))
}

/// Whether two words stand on one line. Each line has one word.
fn is_glued(node: Option<&Node>) -> bool {
    matches!(node, Some(Node::File { bytes, .. }) if bytes.windows(2).any(|two| two == b"~~"))
}

fn unnamed(what: Option<FileOutcome>, our: Option<&Node>, their: Option<&Node>) -> String {
    let looks = |node: Option<&Node>| match node {
        None => "has nothing",
        Some(_) if is_marked(node) => "has a marked file",
        Some(_) => "has a file",
    };
    format!("? {what:?}: OCX {}, plain Fossil {}", looks(our), looks(their))
}
