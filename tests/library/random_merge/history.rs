//! Random small histories: a base, two branches with edits, and edits that are not saved.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{Place, ann, check_in};
use ocx::checkout::{Checkout, MergeHow};
use ocx::engine;
use ocx::name::Hash;

/// Random numbers that are the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % end as u64).unwrap()
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }
}

/// What is done in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Update,
    Merge(MergeHow),
}

impl Act {
    /// Plain Fossil's words for it.
    pub fn args(self, version: &str) -> Vec<&str> {
        match self {
            Self::Update => vec!["update", version],
            Self::Merge(MergeHow::Whole) => vec!["merge", version],
            Self::Merge(MergeHow::Integrate) => vec!["merge", "--integrate", version],
            Self::Merge(MergeHow::Cherrypick) => vec!["merge", "--cherrypick", version],
            Self::Merge(MergeHow::Backout) => vec!["merge", "--backout", version],
        }
    }
}

/// What a path holds on the disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    File { executable: bool, bytes: Vec<u8> },
    Link(String),
}

pub type Tree = BTreeMap<String, Node>;

/// Everything below a folder but Fossil's database.
pub fn tree(root: &Path) -> Tree {
    let mut all = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap().to_str().unwrap().to_owned();
                all.insert(name, Node::Link(target));
            } else if !name.starts_with(".fslckout") {
                let executable = kind.permissions().mode() & 0o100 != 0;
                all.insert(name, Node::File { executable, bytes: fs::read(&path).unwrap() });
            }
        }
    }
    all
}

/// The words in a content that are written once only, as `~h12~`.
pub fn words(bytes: &[u8]) -> BTreeSet<String> {
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'~').collect();
    let is_word =
        |part: &&&[u8]| part.len() > 1 && part.len() < 8 && part.iter().all(u8::is_ascii_alphanumeric);
    parts.iter().filter(is_word).map(|part| String::from_utf8(part.to_vec()).unwrap()).collect()
}

impl Node {
    pub fn words(&self) -> BTreeSet<String> {
        match self {
            Self::File { bytes, .. } => words(bytes),
            Self::Link(target) => words(target.as_bytes()),
        }
    }
}

pub fn all_words(tree: &Tree) -> BTreeSet<String> {
    tree.values().flat_map(Node::words).collect()
}

/// A history, what is to be done to it, and with which check-in.
pub struct History {
    pub place: Place,
    pub act: Act,
    pub version: Hash,
    /// What the checkout stands on before.
    pub parent: Hash,
    pub log: Vec<String>,
}

const NAMES: [&str; 8] = ["a", "b", "c", "d/e", "d/f", "g", "h/i", "k"];

/// One who edits files in a checkout.
struct Editor<'a> {
    random: &'a mut Random,
    log: &'a mut Vec<String>,
    checkout: &'a Checkout,
    /// The letter that its words begin with.
    letter: char,
    count: usize,
}

impl Editor<'_> {
    fn word(&mut self) -> String {
        self.count += 1;
        format!("~{}{}~", self.letter, self.count)
    }

    fn fossil(&mut self, args: &[&str]) -> bool {
        engine::command(self.checkout.root(), args, Some("ann")).is_ok()
    }

    fn files(&self) -> Vec<String> {
        tree(self.checkout.root()).into_keys().collect()
    }

    fn put(&self, path: &str, bytes: &[u8]) -> bool {
        let path = self.checkout.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() && {
            if path.is_symlink() {
                fs::remove_file(&path).unwrap();
            }
            fs::write(path, bytes).is_ok()
        }
    }

    /// A new text of one of the kinds that merges have lost something of.
    fn text(&mut self) -> Vec<u8> {
        let mut lines: Vec<String> = (0..3 + self.random.below(7)).map(|_| self.word()).collect();
        let end = if self.random.one_in(6) { "\r\n" } else { "\n" };
        if !self.random.one_in(5) {
            lines.push(String::new());
        }
        let text = lines.join(end);
        match self.random.below(12) {
            0 => format!("\u{feff}{text}").into_bytes(),
            1 => format!("{}\0{text}", self.word()).into_bytes(),
            _ => text.into_bytes(),
        }
    }

    fn base(&mut self) {
        for name in &NAMES[..3 + self.random.below(4)] {
            let text = self.text();
            self.put(name, &text);
        }
        if self.random.one_in(3) {
            let word = self.word();
            symlink(word, self.checkout.root().join("l")).unwrap();
        }
        if self.random.one_in(2) {
            self.chmod("a");
        }
    }

    fn chmod(&self, path: &str) {
        let path = self.checkout.root().join(path);
        let Ok(kind) = fs::symlink_metadata(&path) else { return };
        if kind.is_file() {
            fs::set_permissions(path, fs::Permissions::from_mode(kind.permissions().mode() ^ 0o111)).unwrap();
        }
    }

    fn edit(&mut self, saved: bool) {
        let files = self.files();
        let Some(path) = self.random.pick(&files) else { return };
        let at = self.checkout.root().join(&path);
        let what = self.random.below(20);
        self.log.push(format!("{} {what} {path}", self.letter));
        match what {
            0..=6 if !at.is_symlink() => self.edit_line(&path),
            7 => drop(fs::remove_file(at)),
            8 => drop(self.fossil(&["rm", "--hard", &path])),
            9..=11 => self.rename(&path, &files),
            12 => self.chmod(&path),
            13 => {
                let word = self.word();
                fs::remove_file(&at).unwrap();
                symlink(word, at).unwrap();
            }
            14 => {
                fs::remove_file(at).unwrap();
                let word = self.word();
                self.put(&format!("{path}/in"), word.as_bytes());
            }
            15 => {
                if let Some((folder, _)) = path.split_once('/') {
                    fs::remove_dir_all(self.checkout.root().join(folder)).unwrap();
                    let word = self.word();
                    self.put(folder, word.as_bytes());
                }
            }
            16 => {
                let name = NAMES[self.random.below(NAMES.len())];
                self.put(name, b"equal\n");
            }
            _ => self.add(saved),
        }
    }

    fn edit_line(&mut self, path: &str) {
        let bytes = fs::read(self.checkout.root().join(path)).unwrap();
        let mut lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        let end: &[u8] = if bytes.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
        let new = [self.word().as_bytes(), end].concat();
        let at = self.random.below(lines.len() + 1);
        match self.random.below(4) {
            0 => lines.insert(at, new),
            1 if at < lines.len() => drop(lines.remove(at)),
            2 => lines.push(new[..new.len() - end.len()].to_vec()),
            _ if at < lines.len() => lines[at] = new,
            _ => lines.push(new),
        }
        self.put(path, &lines.concat());
    }

    fn add(&mut self, saved: bool) {
        let name = NAMES[self.random.below(NAMES.len())];
        let text = self.text();
        if self.put(name, &text) && (saved || self.random.one_in(2)) {
            self.fossil(&["add", "--force", name]);
        }
    }

    fn rename(&mut self, path: &str, files: &[String]) {
        let new = NAMES[self.random.below(NAMES.len())];
        if format!("{new}/").starts_with(&format!("{path}/")) || path.starts_with(&format!("{new}/")) {
            return;
        }
        self.log.push(format!("  renamed with {new}"));
        if !self.checkout.root().join(new).exists() {
            self.fossil(&["mv", "--hard", path, new]);
        } else if let Some(other) = self.random.pick(files).filter(|other| other != path) {
            // A swap, or a chain that leaves the other elsewhere.
            self.fossil(&["mv", "--hard", &other, "t"]);
            self.fossil(&["mv", "--hard", path, &other]);
            if self.random.one_in(2) {
                self.fossil(&["mv", "--hard", "t", path]);
            }
        }
    }
}

impl History {
    pub fn new(random: &mut Random) -> Self {
        let place = Place::new();
        let db = rusqlite::Connection::open(place.repository.path()).unwrap();
        let sql = "REPLACE INTO config(name, value, mtime) VALUES('allow-symlinks', 'on', 1)";
        db.execute(sql, []).unwrap();
        drop(db);
        let mut log = Vec::new();
        let mut counts = [0; 2];
        let mut edit = |random: &mut Random, checkout: &Checkout, side: usize, saved: bool, times: usize| {
            let letter = if side == 1 {
                's'
            } else if saved {
                't'
            } else {
                'u'
            };
            let mut editor = Editor { random, log: &mut log, checkout, letter, count: counts[side] };
            for _ in 0..times {
                editor.edit(saved);
            }
            counts[side] = editor.count;
        };
        Editor { random, log: &mut Vec::new(), checkout: &place.checkout, letter: 'b', count: 0 }.base();
        check_in(&place.checkout, "base", None).unwrap();
        let other =
            Checkout::open(&place.repository, &place.dir.path().join("other"), None, Some(&ann())).unwrap();
        let times = 1 + random.below(3);
        edit(random, &other, 1, true, times);
        let _unchanged = check_in(&other, "side", Some("side"));
        if random.one_in(2) {
            let times = 1 + random.below(3);
            edit(random, &place.checkout, 0, true, times);
            let _unchanged = check_in(&place.checkout, "trunk", None);
        }
        let (trunk, side) = (place.checkout.parent().unwrap(), other.parent().unwrap());
        if random.one_in(6) && trunk != side {
            for (checkout, from) in [(&place.checkout, &side), (&other, &trunk)] {
                if checkout.merge(from.as_str(), MergeHow::Whole).is_ok() {
                    let _fork = check_in(checkout, "criss-cross", None);
                }
            }
            edit(random, &other, 1, true, 2);
            let _unchanged = check_in(&other, "side", None);
            edit(random, &place.checkout, 0, true, 1);
            let _unchanged = check_in(&place.checkout, "trunk", None);
        }
        let times = random.below(4);
        edit(random, &place.checkout, 0, false, times);
        let (act, version) = match random.below(8) {
            0..=2 => (Act::Update, other.parent().unwrap()),
            3 | 4 => (Act::Merge(MergeHow::Whole), other.parent().unwrap()),
            5 => (Act::Merge(MergeHow::Integrate), other.parent().unwrap()),
            6 => (Act::Merge(MergeHow::Cherrypick), other.parent().unwrap()),
            _ => (Act::Merge(MergeHow::Backout), place.checkout.parent().unwrap()),
        };
        let parent = place.checkout.parent().unwrap();
        Self { place, act, version, parent, log }
    }
}
