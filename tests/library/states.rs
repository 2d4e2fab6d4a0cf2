//! Each pair of what two sides can do to one file, on a real disk: by update, merge, integrate, cherrypick and backout, with
//! this side saved and unsaved. All pairs stand in one tree, each in a folder of its own. What is to come out stands
//! in `src/merge/states.txt`; here each way must come to the same files, lose nothing, and be taken back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{Fossil, Place, ann, check_in, files_below};
use ocx::checkout::{Checkout, MergeHow, Updated};
use ocx::name::Hash;

/// A file, by its name in the folder of its pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum File {
    Text(&'static str),
    Program(&'static str),
    Link(&'static str),
}

/// What there is of one side in the folder of a pair.
type Files = &'static [(&'static str, File)];

/// What can be there of one file: a name, the files, and whether `f` has become `g` or `h`.
type State = (&'static str, Files, Option<&'static str>);

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";
const HERE: &str = "ours\none\ntwo\nthree\nfour\nfive\nsix\n";
const THERE: &str = "one\ntwo\nthree\nfour\nfive\nsix\ntheirs\n";
/// Stands for the text that the side in question makes of the base's.
const EDITED: &str = "edited";
const OTHER: &str = "other";

const OF_A_FILE: &[State] = &[
    ("same", &[("f", File::Text(LINES))], None),
    ("edited", &[("f", File::Text(EDITED))], None),
    ("deleted", &[], None),
    ("renamed", &[("g", File::Text(LINES))], Some("g")),
    ("renamed and edited", &[("g", File::Text(EDITED))], Some("g")),
    ("renamed otherwise", &[(OTHER, File::Text(LINES))], Some(OTHER)),
    ("mode changed", &[("f", File::Program(LINES))], None),
    ("mode changed and edited", &[("f", File::Program(EDITED))], None),
    ("file to link", &[("f", File::Link(EDITED))], None),
    ("file to folder", &[("f/in", File::Text(EDITED))], None),
];

const OF_A_LINK: &[State] = &[
    ("same", &[("f", File::Link("target"))], None),
    ("deleted", &[], None),
    ("renamed", &[("g", File::Link("target"))], Some("g")),
    ("link to other target", &[("f", File::Link(EDITED))], None),
    ("link to file", &[("f", File::Text(EDITED))], None),
    ("link to folder", &[("f/in", File::Text(EDITED))], None),
];

const OF_A_FOLDER: &[State] = &[
    ("same", &[("f/in", File::Text(LINES))], None),
    ("edited", &[("f/in", File::Text(EDITED))], None),
    ("deleted", &[], None),
    ("folder to file", &[("f", File::Text(EDITED))], None),
    ("folder to link", &[("f", File::Link(EDITED))], None),
];

const OF_NOTHING: &[State] = &[
    ("absent", &[], None),
    ("added equal", &[("f", File::Text(LINES))], None),
    ("added different", &[("f", File::Text(EDITED))], None),
    ("added link", &[("f", File::Link(EDITED))], None),
    ("added folder", &[("f/in", File::Text(EDITED))], None),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Nothing,
    Base,
    Here,
    There,
}

impl File {
    fn content(self, side: Side, is_joined: bool) -> String {
        let (Self::Text(text) | Self::Program(text) | Self::Link(text)) = self;
        match (text, side, self, is_joined) {
            (EDITED, side, Self::Link(_), _) => format!("target-of-{side:?}"),
            (EDITED, Side::Here, _, true) => HERE.to_owned(),
            (EDITED, Side::There, _, true) => THERE.to_owned(),
            (EDITED, side, _, false) => format!("written by {side:?}\n"),
            (text, ..) => text.to_owned(),
        }
    }
}

/// A pair of states of one file.
struct Cell {
    folder: String,
    base: Files,
    here: State,
    there: State,
}

impl Cell {
    fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for states in [OF_A_FILE, OF_A_LINK, OF_A_FOLDER, OF_NOTHING] {
            for here in states {
                for there in states {
                    let folder = format!("c{:03}", cells.len());
                    cells.push(Self { folder, base: states[0].1, here: *here, there: *there });
                }
            }
        }
        cells
    }

    fn of(&self, side: Side) -> State {
        match side {
            Side::Nothing => ("nothing", &[], None),
            Side::Base => ("base", self.base, None),
            Side::Here => self.here,
            Side::There => self.there,
        }
    }

    /// A text that was there keeps its lines when it is edited.
    fn is_joined(&self) -> bool {
        self.base == OF_A_FILE[0].1
    }

    fn name(name: &'static str, side: Side) -> &'static str {
        match (name, side) {
            (OTHER, Side::Here) => "h",
            (OTHER, _) => "t",
            (name, _) => name,
        }
    }

    /// Turns what one side has into what another one has.
    fn turn(&self, place: &Place, root: &Path, from: Side, to: Side) {
        let folder = root.join(&self.folder);
        let (old, new) = (self.of(from), self.of(to));
        let old_name = old.2.map_or("f", |name| Self::name(name, from));
        let new_name = new.2.map_or("f", |name| Self::name(name, to));
        let is_one_file = old.1.len() == 1 && new.1.len() == 1;
        if old_name != new_name && is_one_file {
            let path = |name: &str| format!("{}/{name}", self.folder);
            Fossil::Reference.run(
                place.dir.path(),
                root,
                &["mv", "--hard", &path(old_name), &path(new_name)],
            );
        }
        let _ = fs::remove_dir_all(&folder);
        for (name, file) in new.1 {
            let path = folder.join(Self::name(name, to));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let content = file.content(to, self.is_joined());
            if let File::Link(_) = file {
                symlink(content, &path).unwrap();
                continue;
            }
            fs::write(&path, content).unwrap();
            let mode = if matches!(file, File::Program(_)) { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn of_cell<'a>(files: &'a BTreeMap<String, String>, cell: &Cell) -> Vec<(&'a str, &'a str)> {
    let folder = format!("{}/", cell.folder);
    let own = files.iter().filter(|(name, _)| name.starts_with(&folder));
    own.map(|(name, content)| (&name[folder.len()..], content.as_str())).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Update,
    Merge(MergeHow),
}

/// A checkout in which this side's changes are made, and the version that comes in.
struct Made {
    place: Place,
    incoming: Hash,
}

impl Made {
    fn new(cells: &[Cell], way: Way, is_saved: bool) -> Self {
        let place = Place::new();
        place.fossil(&["settings", "allow-symlinks", "on"]);
        place.write("kept", "kept\n");
        let root = place.checkout.root();
        let incoming = if way == Way::Merge(MergeHow::Backout) {
            for cell in cells {
                cell.turn(&place, root, Side::Nothing, Side::There);
            }
            place.check_in("there", None).unwrap();
            for cell in cells {
                cell.turn(&place, root, Side::There, Side::Base);
            }
            place.check_in("base", None).unwrap().hash
        } else {
            for cell in cells {
                cell.turn(&place, root, Side::Nothing, Side::Base);
            }
            place.check_in("base", None).unwrap();
            let there = place.dir.path().join("there");
            let there = Checkout::open(&place.repository, &there, None, Some(&ann())).unwrap();
            for cell in cells {
                cell.turn(&place, there.root(), Side::Base, Side::There);
            }
            check_in(&there, "there", Some("side")).unwrap().hash
        };
        for cell in cells {
            cell.turn(&place, root, Side::Base, Side::Here);
        }
        if is_saved {
            place.check_in("here", None).unwrap();
        }
        Self { place, incoming }
    }

    fn act(&self, way: Way) -> Updated {
        let (checkout, version) = (&self.place.checkout, self.incoming.as_str());
        let (would, did) = match way {
            Way::Update => (checkout.would_update(version), checkout.update(version)),
            Way::Merge(how) => (checkout.would_merge(version, how), checkout.merge(version, how)),
        };
        let did = did.unwrap();
        assert_eq!(would.unwrap(), did, "the plan is what is done");
        did
    }
}

/// Each content that one of the sides wrote is there, or its lines are in a joined text.
fn assert_nothing_lost(cell: &Cell, files: &[(&str, &str)], what: &str) {
    // As a file of its own, or between the marks of a conflict.
    let is_there = |content: &str| files.iter().any(|(_, found)| found.contains(content));
    for side in [Side::Here, Side::There] {
        for (name, file) in cell.of(side).1 {
            if cell.base.contains(&(name, *file)) || matches!(file, File::Text(LINES) | File::Program(LINES))
            {
                continue;
            }
            let content = file.content(side, cell.is_joined());
            let own_line = if side == Side::Here { "ours\n" } else { "theirs\n" };
            let is_joined =
                content.contains(own_line) && files.iter().any(|(_, found)| found.contains(own_line));
            let content = if matches!(file, File::Link(_)) { format!("-> {content}") } else { content };
            // A link that was only renamed is the base's own.
            let is_base = cell.base.iter().any(|(_, base)| base == file);
            assert!(is_base || is_joined || is_there(&content), "{what}: {content:?} is not in {files:?}");
        }
    }
}

#[test]
fn each_pair_of_states_comes_to_the_same_files_by_each_way_and_loses_nothing() {
    let cells = Cell::all();
    let ways = [
        Way::Update,
        Way::Merge(MergeHow::Whole),
        Way::Merge(MergeHow::Integrate),
        Way::Merge(MergeHow::Cherrypick),
        Way::Merge(MergeHow::Backout),
    ];
    let mut first: Option<BTreeMap<String, String>> = None;
    let mut looked_at = 0;
    for way in ways {
        for is_saved in [false, true] {
            if way == Way::Update && is_saved {
                continue;
            }
            let made = Made::new(&cells, way, is_saved);
            let root = made.place.checkout.root();
            let before = files_below(root);
            let changes = made.place.changes();
            let updated = made.act(way);
            let after = files_below(root);
            for cell in &cells {
                let files = of_cell(&after, cell);
                let touched: Vec<_> =
                    updated.files.iter().filter(|file| file.path.starts_with(&cell.folder)).collect();
                let what = format!(
                    "{way:?}, saved: {is_saved}, here {}, there {}: {touched:#?}",
                    cell.here.0, cell.there.0
                );
                assert_nothing_lost(cell, &files, &what);
                if let Some(first) = &first {
                    assert_eq!(of_cell(first, cell), files, "{what}");
                }
                looked_at += 1;
            }
            first.get_or_insert(after);
            let told = made.place.fossil(&["changes"]) + &made.place.fossil(&["extras", "--dotfiles"]);
            let renamed = made.place.checkout.status().unwrap().renamed;
            for (path, how) in made.place.changes() {
                // Plain Fossil names the new path of a renamed file.
                if renamed.values().any(|old| old.as_str() == path) {
                    continue;
                }
                let is_told = told.lines().any(|line| line.split_whitespace().any(|word| word == path));
                assert!(is_told, "{way:?}, saved: {is_saved}: {path} {how}, and plain Fossil says\n{told}");
            }
            made.place.checkout.undo().unwrap();
            assert_eq!(files_below(root), before, "{way:?}, saved: {is_saved}: taken back");
            assert_eq!(made.place.changes(), changes);
        }
    }
    println!("{looked_at} cells looked at");
}
