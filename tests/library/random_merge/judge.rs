//! What becomes of the two results: whether ours keeps everything, and the name of each difference.

use std::collections::BTreeSet;

use super::history::{Act, History, Node, Tree, all_words, words};
use ocx::checkout::{MergeHow, Updated};
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
    let paths: BTreeSet<_> = outcome.ours.keys().chain(outcome.theirs.keys()).chain(outcome.before.keys()).collect();
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
        assert!(lost.is_empty(), "OCX loses {lost:?} by {:?}: {:#?}\n{:#?}", history.act, shown(outcome), history.log);
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
            names.insert(name(outcome, path, our, their));
        }
    }
    names.into_iter().collect()
}

fn refusal(said: &str) -> String {
    said.lines().last().unwrap_or_default().chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

const MARK: &[u8] = b"<<<<<<< BEGIN MERGE";

fn is_marked(node: &Node) -> bool {
    matches!(node, Node::File { bytes, .. } if bytes.windows(MARK.len()).any(|part| part == MARK))
}

fn name(outcome: &Outcome, path: &str, our: Option<&Node>, their: Option<&Node>) -> String {
    let step = outcome.done.as_ref().ok().and_then(|done| {
        done.files.iter().find(|file| {
            file.path == path
                || [&file.from, &file.backup, &file.theirs].into_iter().flatten().any(|name| name == path)
        })
    });
    let what = step.map_or("untouched by us".to_owned(), |file| format!("{:?}", file.what));
    let side = match (our, their) {
        (Some(_), None) => "only ours has it",
        (None, Some(_)) => "only plain Fossil has it",
        (Some(our), Some(their)) => match (is_marked(our), is_marked(their)) {
            (true, false) => "only ours is marked",
            (false, true) => "only plain Fossil's is marked",
            (true, true) => "both are marked, otherwise",
            (false, false) => "other content",
        },
        (None, None) => "",
    };
    format!("? {what}: {side}")
}
