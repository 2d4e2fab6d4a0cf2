//! What a check-in takes: one rule, and plain Fossil as the judge of Fossil's part of it.

use std::collections::BTreeSet;
use std::fs;

use crate::support::{Place, ann};
use ocx::checkout::Checkout;
use ocx::error::Kind;
use ocx::name::TreePath;
use ocx::tree::Why;

/// A file of the table: where it lies, whom it is known to, and what becomes of it where `dotfiles` is off, and on.
struct Row {
    path: &'static str,
    off: Option<Why>,
    on: Option<Why>,
    /// Whether plain Fossil's own rules decide.
    by_fossil: bool,
}

const fn row(path: &'static str, off: Option<Why>, on: Option<Why>) -> Row {
    Row { path, off, on, by_fossil: true }
}

/// Plain Fossil knows neither `.gitignore` nor other systems.
const fn ours(path: &'static str, off: Option<Why>, on: Option<Why>) -> Row {
    Row { path, off, on, by_fossil: false }
}

const GLOB: Option<Why> = Some(Why::IgnoreGlob);
const GIT: Option<Why> = Some(Why::GitIgnore);
const DOT: Option<Why> = Some(Why::DotFile);
const DATA: Option<Why> = Some(Why::DataOf("git"));
const NESTED: Option<Why> = Some(Why::NestedCheckout);

/// Files that nobody told Fossil of.
const UNTRACKED: [Row; 16] = [
    row("plain", None, None),
    row("sub/plain", None, None),
    row(".dot", DOT, None),
    row("sub/.a.txt.swp", DOT, None),
    row(".ci/run", DOT, None),
    row(".ci/deep/run", DOT, None),
    row("x.glob", GLOB, GLOB),
    row("globbed/x", GLOB, GLOB),
    row(".dot.glob", GLOB, GLOB),
    ours("x.git-ignored", GIT, GIT),
    ours("out/x", GIT, GIT),
    row("kept.git-ignored", None, None),
    ours(".ci/x.git-ignored", GIT, GIT),
    ours(".git/HEAD", DATA, DATA),
    ours("module/.git", DATA, DATA),
    row("nested/file", NESTED, NESTED),
];

/// A file that lies beside it in the same folder.
fn beside(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/tracked-{name}"),
        None => format!("tracked-{path}"),
    }
}

/// A place with the rules of the table, and `dotfiles` on or off.
fn place(dotfiles: bool) -> Place {
    let place = Place::new();
    place.fossil(&["settings", "ignore-glob", "*.glob,globbed"]);
    place.fossil(&["settings", "dotfiles", if dotfiles { "on" } else { "off" }]);
    place.write(".gitignore", "*.git-ignored\n!kept.git-ignored\n/out/\n");
    place
}

/// The files that the next check-in would take.
fn taken(place: &Place, include: &[TreePath]) -> BTreeSet<String> {
    place.checkout.status_including(include).unwrap().files.keys().map(ToString::to_string).collect()
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

/// The reason that a status gives for a file: its own, or that of a folder it is in.
fn reason(place: &Place, path: &str) -> Option<Why> {
    let status = place.checkout.status().unwrap();
    let names = |out: &str| out == path || (out.ends_with('/') && path.starts_with(out));
    status.left_out.iter().find(|out| names(&out.path)).map(|out| out.why)
}

#[test]
fn g11_each_untracked_file_is_taken_or_left_out_with_its_reason() {
    for dotfiles in [false, true] {
        let place = place(dotfiles);
        for row in &UNTRACKED {
            place.write(row.path, "x");
        }
        fs::create_dir_all(place.path("nested")).unwrap();
        fs::write(place.path("nested/.fslckout"), [0; 2048]).unwrap();
        let taken = taken(&place, &[]);
        for row in &UNTRACKED {
            let why = if dotfiles { row.on } else { row.off };
            // A folder's own reason stands for all in it.
            let said = if row.path == ".ci/x.git-ignored" && !dotfiles { DOT } else { why };
            assert_eq!(reason(&place, row.path), said, "{} {dotfiles}", row.path);
            assert_eq!(place.checkout.why_left_out(&path(row.path)).unwrap(), why, "{} {dotfiles}", row.path);
            assert_eq!(taken.contains(row.path), why.is_none(), "{} {dotfiles}", row.path);
        }
        place.fossil(&["addremove"]);
        let theirs = place.fossil(&["changes", "--added", "--no-classify"]);
        let theirs: BTreeSet<&str> = theirs.lines().collect();
        for row in UNTRACKED.iter().filter(|row| row.by_fossil) {
            let why = if dotfiles { row.on } else { row.off };
            assert_eq!(theirs.contains(row.path), why.is_none(), "plain Fossil: {} {dotfiles}", row.path);
        }
    }
}

#[test]
fn g11_a_tracked_file_is_always_taken_and_those_beside_it_are_named() {
    for dotfiles in [false, true] {
        let place = place(dotfiles);
        place.write("nested/.fslckout", [0; 2048]);
        let all: Vec<String> = UNTRACKED.iter().map(|row| beside(row.path)).collect();
        for (row, tracked) in UNTRACKED.iter().zip(&all) {
            place.write(tracked, "1");
            place.fossil(&["add", "--force", "--dotfiles", tracked]);
            place.write(row.path, "x");
        }
        place.check_in("tracked", None).unwrap();
        for row in &UNTRACKED {
            // What was taken is tracked now.
            if row.off.is_some() && row.on.is_some() {
                assert_eq!(reason(&place, row.path), if dotfiles { row.on } else { row.off }, "{}", row.path);
            }
        }
        for tracked in &all {
            place.write(tracked, "two");
        }
        let changed: Vec<String> = place.changes().into_iter().map(|(path, _)| path).collect();
        for tracked in &all {
            assert!(changed.contains(tracked), "{tracked}");
        }
        for row in UNTRACKED.iter().filter(|row| row.off.is_some() && row.on.is_some()) {
            assert!(!changed.iter().any(|path| path == row.path), "{}", row.path);
        }
    }
}

#[test]
fn g10_what_is_included_is_taken_from_then_on_by_plain_fossil_too() {
    for row in UNTRACKED.iter().filter(|row| row.off.is_some()) {
        let place = place(false);
        place.write(row.path, "x");
        place.write("plain", "x");
        if row.off == NESTED {
            fs::write(place.path("nested/.fslckout"), [0; 2048]).unwrap();
        }
        let top = row.path.split('/').next().unwrap();
        for asked in BTreeSet::from([row.path, top]) {
            let asked = [path(asked)];
            let possible = row.off.is_some_and(Why::can_be_included);
            assert_eq!(taken(&place, &asked).contains(row.path), possible, "{}", row.path);
            let refused = asked[0].as_str() != "module" && !possible;
            assert_eq!(place.checkout.check_included(&asked[0]).is_err(), refused, "{}", row.path);
            if !possible {
                continue;
            }
            let status = place.checkout.status_including(&asked).unwrap();
            assert_eq!(status.included, [path(row.path)]);
            assert!(!taken(&place, &[]).contains(row.path), "a look marks nothing");
            place.checkout.include(&status.included).unwrap();
            assert_eq!(taken(&place, &[]), taken(&place, &asked));
            assert_eq!(place.checkout.status().unwrap().tree_hash(), status.tree_hash());
            assert!(place.fossil(&["changes"]).contains(row.path), "plain Fossil has it as added");
            place.fossil(&["rm", "--soft", row.path]);
        }
    }
}

#[test]
fn g10_only_what_is_there_and_is_no_other_systems_can_be_included() {
    let place = place(false);
    place.write("sub/.git/config", "x");
    place.write("a.txt", "x");
    Checkout::open(&place.repository, &place.path("nested"), None, Some(&ann())).unwrap();
    let refused = |text: &str| place.checkout.check_included(&path(text)).unwrap_err().to_string();
    assert!(
        refused("sub/.git").contains("data of git") && refused("sub/.git/config").contains("data of git")
    );
    assert!(refused("nested").contains("another checkout") && refused("nested/x").contains("nested/x"));
    assert!(refused("gone").contains("no file `gone`") && refused("gone/x").contains("gone/x"));
    place.checkout.check_included(&path("a.txt")).unwrap();
    place.checkout.check_included(&path("sub")).unwrap();
    let status = place.checkout.status_including(&[path("sub")]).unwrap();
    assert!(status.left_out.iter().any(|out| out.path == "sub/.git/"), "{:?}", status.left_out);
}

#[test]
fn g11_settings_are_read_as_fossil_reads_them() {
    let place = Place::new();
    place.write("a.tmp", "x");
    place.write("b.key", "x");
    place.write(".dot", "x");
    let user = place.dir.path().join("user.db");
    let db = rusqlite::Connection::open(&user).unwrap();
    db.execute_batch("CREATE TABLE global_config(name TEXT PRIMARY KEY, value TEXT)").unwrap();
    db.execute_batch("INSERT INTO global_config VALUES('ignore-glob','*.tmp'),('dotfiles','on')").unwrap();
    let names = |checkout: &Checkout| -> Vec<String> {
        checkout.status().unwrap().files.keys().map(ToString::to_string).collect()
    };
    // The library looks for no user's settings.
    assert_eq!(names(&place.checkout), ["a.tmp", "b.key"]);
    let with = Checkout::at_with(place.checkout.root(), Some(&user)).unwrap();
    assert_eq!(names(&with), [".dot", "b.key"]);
    let without = Checkout::at_with(place.checkout.root(), Some(&place.dir.path().join("none"))).unwrap();
    assert_eq!(names(&without), ["a.tmp", "b.key"]);
    // The repository's value counts before the user's, and that in the tree before both.
    place.fossil(&["settings", "ignore-glob", "*.key"]);
    assert_eq!(names(&with), [".dot", "a.tmp"]);
    place.write(".fossil-settings/ignore-glob", "# all but\n*.tmp\n\\#x\n");
    place.write(".fossil-settings/dotfiles", "# no\noff\n");
    assert_eq!(names(&with), ["b.key"]);
    place.fossil(&["addremove"]);
    let theirs = place.fossil(&["changes", "--added", "--no-classify"]);
    assert_eq!(theirs.lines().filter(|line| !line.contains(' ')).collect::<Vec<_>>(), ["b.key"]);
}

/// The answers of the real git, where it is installed: the files of the folder that its rules do not leave out.
fn taken_by_git(folder: &std::path::Path) -> Option<BTreeSet<String>> {
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(folder).args(args).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env_remove("XDG_CONFIG_HOME").output().ok().filter(|output| output.status.success())
    };
    git(&["init", "-q"])?;
    let listed = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let names = String::from_utf8(listed.stdout).ok()?;
    Some(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 40, ..Default::default() })]

    #[test]
    fn g10_gitignore_means_what_git_says(
        root in line(),
        sub in line(),
        names in proptest::collection::btree_set("[ab]{1,2}(/[ab]{1,2}){0,3}", 1..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        for name in &names {
            let file = folder.path().join(name);
            // Where a file lies already, there can be no folder.
            if fs::create_dir_all(file.parent().unwrap()).is_ok() {
                let _ = fs::write(file, "x");
            }
        }
        fs::write(folder.path().join(".gitignore"), root).unwrap();
        let _ = fs::write(folder.path().join("a/.gitignore"), sub);
        let rules = ocx::tree::Rules { dotfiles: true, ..Default::default() };
        let walk = ocx::tree::Tree::open(folder.path()).unwrap().walk(&rules, &()).unwrap();
        let ours: BTreeSet<String> = walk.entries.iter().map(|entry| entry.path.to_string()).collect();
        if let Some(theirs) = taken_by_git(folder.path()) {
            proptest::prop_assert_eq!(ours, theirs);
        }
    }
}

/// Lines of a `.gitignore`, most of which match some name over `a`, `b` and `/`.
fn line() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::strategy::Strategy;
    let line = "!?/?([ab*?]|\\*\\*/|/|\\[ab\\]|\\[!a\\]|\\\\a){1,5}/?( |\\\\ |\t)?";
    proptest::collection::vec(line, 0..5).prop_map(|lines| lines.join("\n") + "\n")
}

/// One policy: what a bundle of this would be refused for is not made here.
#[test]
fn a_check_in_that_nobody_would_take_from_here_is_not_made() {
    let place = Place::new();
    place.write("a.txt", "new");
    let before = place.checkout.parent().unwrap();
    let e = place.check_in(&"x".repeat((4 << 20) + 1), None).unwrap_err();
    assert!(e.kind() == Kind::Invalid && e.to_string().contains("a card `C` of 4194305 bytes"), "{e}");
    assert_eq!(place.checkout.parent().unwrap(), before);
    place.check_in("x", None).unwrap();
}
