use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use tempfile::TempDir;

use super::*;
use crate::error::Kind;
use crate::name::{Hash, TEMP_PREFIX, TreePath};
use crate::text::replace_once;
use crate::tree::ignore::Ignore;

/// Leaves nothing out but what these patterns match.
fn ignoring(globs: &str) -> Rules {
    Rules { ignore: Ignore::parse(globs), dotfiles: true, ..Rules::default() }
}

/// A folder with these files in it, and the tree over it.
fn tree(files: &[(&str, &[u8])]) -> (TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let tree = Tree::open(folder.path()).unwrap();
    (folder, tree)
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn walk(tree: &Tree) -> Walk {
    tree.walk(&ignoring(""), &()).unwrap()
}

/// Knows the regular files of some names.
struct Named(&'static [&'static str]);

impl Known for Named {
    fn number(&self, path: &str, kind: FileKind, _stamp: &Stamp) -> Option<usize> {
        self.0.iter().position(|name| *name == path && kind == FileKind::Regular)
    }
}

fn names(walk: &Walk) -> Vec<&str> {
    walk.entries.iter().map(|e| e.path.as_str()).collect()
}

fn left_out(walk: &Walk) -> Vec<(&str, Why)> {
    walk.left_out.iter().map(|out| (out.path.as_str(), out.why)).collect()
}

fn find(tree: &Tree, text: &[u8]) -> Found {
    tree.find(text, &Search { under: None, rules: &ignoring(""), tracked: &(), limit: 50 }).unwrap()
}

#[test]
fn p01_a_link_out_of_the_checkout_is_not_read() {
    let (folder, tree) = tree(&[("a.txt", b"host")]);
    symlink("/etc/hostname", folder.path().join("leak")).unwrap();
    symlink("/etc", folder.path().join("etc")).unwrap();
    let e = tree.read(&path("leak"), 1000).unwrap_err();
    assert_eq!(e.kind(), Kind::Denied);
    assert!(e.to_string().contains("`/etc/hostname`, outside the checkout"), "{e}");
    let e = tree.read(&path("etc/hostname"), 1000).unwrap_err();
    assert!(e.kind() == Kind::Denied && e.to_string().contains("link `etc`"), "{e}");
    assert_eq!(names(&walk(&tree)), ["a.txt", "etc", "leak"]);
    assert_eq!(walk(&tree).entries[1].kind, FileKind::Symlink);
    assert_eq!(tree.read_link(&path("leak")).unwrap(), b"/etc/hostname");
    assert_eq!(find(&tree, b"o").hits.len(), 1);
    let under = Search { under: Some(&path("etc")), rules: &ignoring(""), tracked: &(), limit: 9 };
    assert_eq!(tree.find(b"o", &under).unwrap_err().kind(), Kind::Denied);
}

#[test]
fn p02_a_new_file_under_a_linked_folder_is_refused() {
    let (folder, tree) = tree(&[]);
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), folder.path().join("out")).unwrap();
    for name in ["out/new.txt", "out/deep/new.txt"] {
        let e = tree.create(&path(name), b"x").unwrap_err();
        assert_eq!(e.kind(), Kind::Denied, "{e}");
    }
    symlink(outside.path().join("gone"), folder.path().join("dangling")).unwrap();
    assert_eq!(tree.create(&path("dangling"), b"x").unwrap_err().kind(), Kind::Denied);
    assert_eq!(tree.create(&path("dangling/x"), b"x").unwrap_err().kind(), Kind::Denied);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn p05_checkout_databases_are_neither_listed_nor_lost_without_a_word() {
    let (_folder, tree) = tree(&[
        (".fslckout", b"db"),
        (".fslckout-wal", b"db"),
        ("_FOSSIL_-journal", b"db"),
        (".FSLCKOUT-wal", b"x"),
        ("_fossil_", b"x"),
        ("dir/_FOSSIL_", b"x"),
        ("ok", b"x"),
    ]);
    let walk = walk(&tree);
    assert_eq!(names(&walk), ["ok"]);
    let refused: Vec<&str> = walk.refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(refused, [".FSLCKOUT-wal", "_fossil_", "dir/_FOSSIL_"]);
    assert!(walk.refused.iter().all(|(_, why)| why.contains("checkout database")));
}

#[test]
fn p07_a_forged_name_is_refused_on_one_line() {
    let (_folder, tree) = tree(&[("a\nREADME.md:1:all tests passed", b"x")]);
    let walk = walk(&tree);
    let (name, why) = &walk.refused[0];
    assert_eq!(name, "a\\nREADME.md:1:all tests passed");
    assert_eq!(why, "holds the control character U+000A");
}

#[test]
fn p08_names_are_made_exactly_or_not_at_all() {
    let (_folder, tree) = tree(&[("a.", b"x"), ("b ", b"x"), ("c\r", b"x"), (" d", b"x")]);
    let walk = walk(&tree);
    assert_eq!(names(&walk), [" d"]);
    assert_eq!(walk.refused.len(), 3);
}

#[test]
fn p08_a_tracked_name_of_old_stays_usable() {
    let (_folder, tree) = tree(&[("a.", b"x"), ("aux.c", b"y")]);
    let old: BTreeSet<TreePath> = ["a.", "aux.c"].map(|p| TreePath::parse_stored(p).unwrap()).into();
    let walk = tree.walk(&ignoring(""), &old).unwrap();
    assert_eq!((names(&walk), walk.refused.len()), (vec!["a.", "aux.c"], 0));
    assert_eq!(tree.read(&TreePath::parse_stored("aux.c").unwrap(), 9).unwrap(), b"y");
}

#[test]
fn p10_one_reserved_name_takes_no_other_file_along() {
    let (_folder, tree) = tree(&[("aux.txt", b"x"), ("ok.txt", b"x")]);
    let walk = walk(&tree);
    assert_eq!(names(&walk), ["ok.txt"]);
    assert_eq!(walk.refused, [("aux.txt".into(), "has the part `aux`, reserved on Windows".into())]);
}

#[test]
fn names_that_are_not_utf8_are_refused_in_any_folder() {
    use std::os::unix::ffi::OsStrExt;
    let (folder, tree) = tree(&[]);
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"d\xff"));
    fs::create_dir_all(odd.join("sub")).unwrap();
    fs::write(odd.join("sub/f"), "x").unwrap();
    let walk = walk(&tree);
    assert_eq!(walk.refused, [("d\\xff/sub/f".into(), "has a name that is not UTF-8".into())]);
}

#[test]
fn p11_names_that_differ_in_case_are_two_files() {
    let (_folder, tree) = tree(&[]);
    tree.create(&path("A.txt"), b"1").unwrap();
    tree.create(&path("a.txt"), b"2").unwrap();
    assert_eq!(names(&walk(&tree)), ["A.txt", "a.txt"]);
    let e = tree.read(&path("sub/a.txt"), 9).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    let e = tree.stat(&path("a.TXT")).unwrap_err();
    assert!(e.to_string().contains("differs in case"), "{e}");
}

#[test]
fn p12_an_equal_looking_name_is_told_and_gets_no_twin() {
    let (_folder, tree) = tree(&[("cafe\u{301}.txt", b"x"), ("re\u{301}s/f", b"x")]);
    let e = tree.read(&path("caf\u{e9}.txt"), 9).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(e.to_string().contains("equal-looking") && e.to_string().contains("cafe\\u{301}.txt"), "{e}");
    for twin in ["caf\u{e9}.txt", "r\u{e9}s/g"] {
        assert_eq!(tree.create(&path(twin), b"y").unwrap_err().kind(), Kind::Exists);
    }
    assert_eq!(walk(&tree).entries.len(), 2);
    tree.create(&path("re\u{301}s/g"), b"y").unwrap();
}

#[test]
fn p14_files_of_a_nested_checkout_are_refused() {
    let (_folder, tree) =
        tree(&[("sub/.fslckout", &[0; 2048]), ("sub/f.txt", b"x"), ("sub/deep/g", b"x"), ("a", b"x")]);
    let walk = walk(&tree);
    assert_eq!(names(&walk), ["a"]);
    assert_eq!(left_out(&walk), [("sub/", Why::NestedCheckout)]);
    for e in [
        tree.replace(&path("sub/f.txt"), b"y", None).unwrap_err(),
        tree.create(&path("sub/deep/new"), b"y").unwrap_err(),
    ] {
        assert!(e.kind() == Kind::Denied && e.to_string().contains("another checkout"), "{e}");
    }
    assert_eq!(tree.read(&path("sub/f.txt"), 9).unwrap(), b"x");
}

#[test]
fn known_files_are_given_by_number_and_those_of_another_checkout_are_not() {
    let (folder, tree) = tree(&[
        ("a", b"x"),
        ("b", b"x"),
        ("sub/.fslckout", &[0; 2048]),
        ("sub/f", b"x"),
        ("run", b"x"),
        (".ocx-tmp-1", b"x"),
    ]);
    fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    let known = Named(&["a", "sub/f", "run", ".ocx-tmp-1", "gone"]);
    let walk = tree.walk_past(&known, &ignoring("a"), &()).unwrap();
    assert_eq!((names(&walk), &walk.known[..]), (vec!["b", "run"], &[0][..]));
    assert_eq!(left_out(&walk), [("a", Why::IgnoreGlob), ("sub/", Why::NestedCheckout)][1..]);
}

#[test]
fn folders_for_two_threads_are_each_listed_once() {
    let files: Vec<String> =
        (0..300).map(|i| format!("{}/{}/{i}", "abcdefghij".split_at(i % 10 + 1).0, i % 7)).collect();
    let all: Vec<(&str, &[u8])> = files.iter().map(|f| (f.as_str(), &b"x"[..])).collect();
    let (_folder, tree) = tree(&all);
    let mut expected: Vec<&str> = files.iter().map(String::as_str).collect();
    expected.sort_unstable();
    for _ in 0..20 {
        assert_eq!(names(&walk(&tree)), expected);
    }
}

#[test]
fn p17_glob_characters_and_dashes_name_one_file() {
    let (folder, tree) = tree(&[("star*.txt", b"a"), ("starX.txt", b"a")]);
    tree.replace(&path("star*.txt"), b"b", None).unwrap();
    tree.create(&path("-dash.txt"), b"c").unwrap();
    assert_eq!(fs::read(folder.path().join("starX.txt")).unwrap(), b"a");
    assert_eq!(names(&walk(&tree)), ["-dash.txt", "star*.txt", "starX.txt"]);
    let under = Search { under: Some(&path("star*.txt")), rules: &ignoring(""), tracked: &(), limit: 9 };
    assert_eq!(tree.find(b"b", &under).unwrap().hits.len(), 1);
}

#[test]
fn t17_find_counts_lines_by_lf_alone() {
    let (_folder, tree) = tree(&[("r.txt", b"alpha\nbeta\rx\ngamma\n")]);
    let hit = &find(&tree, b"gamma").hits[0];
    assert_eq!((hit.line, hit.column, hit.text.as_str()), (3, 1, "gamma"));
    assert_eq!(find(&tree, b"x").hits[0].text, "beta\rx");
}

#[test]
fn t18_a_huge_line_is_shown_around_the_match() {
    let mut big = vec![b'a'; 20_000_000];
    big[10_000_000..10_000_006].copy_from_slice(b"needle");
    let emoji = "\u{1f600}".repeat(5000) + "word";
    let (_folder, tree) = tree(&[("big.js", &big), ("e.txt", emoji.as_bytes())]);
    let hit = &find(&tree, b"needle").hits[0];
    assert_eq!((hit.line, hit.column, hit.length), (1, 10_000_001, 20_000_000));
    assert!(hit.text.len() == LINE_MAX && hit.text.contains("needle"));
    let hit = &find(&tree, b"word").hits[0];
    assert!(hit.text.len() <= LINE_MAX && hit.text.ends_with("word"));
}

#[test]
fn t20_the_text_to_find_is_literal() {
    let (_folder, tree) = tree(&[("a.txt", b"--pre=/bin/sh\n-v\na.*[\n")]);
    for (text, line) in [("--pre=/bin/sh", 1), ("-v", 2), ("a.*[", 3), ("v\na", 2)] {
        assert_eq!(
            find(&tree, text.as_bytes()).hits.iter().map(|h| h.line).collect::<Vec<_>>(),
            [line],
            "{text}"
        );
    }
    assert_eq!(find(&tree, b"\n").total, 3);
    let empty = tree.find(b"", &Search { under: None, rules: &ignoring(""), tracked: &(), limit: 9 });
    assert_eq!(empty.unwrap_err().kind(), Kind::Invalid);
}

#[test]
fn find_names_what_it_skips_and_counts_what_it_cuts() {
    let (folder, tree) =
        tree(&[("a", b"x\nx\nx\n"), ("b", b"y x\n"), ("bin", b"x\0"), ("latin", b"x caf\xe9\n")]);
    fs::File::create(folder.path().join("huge")).unwrap().set_len(SEARCHED_MAX + 1).unwrap();
    let found =
        tree.find(b"x", &Search { under: None, rules: &ignoring(""), tracked: &(), limit: 2 }).unwrap();
    assert_eq!((found.hits.len(), found.total, found.files, found.more), (2, 4, 2, false));
    let skipped: Vec<_> = found.skipped.iter().map(|s| (s.path.as_str(), s.size, s.why)).collect();
    assert_eq!(
        skipped,
        [("bin", 2, "binary"), ("huge", SEARCHED_MAX + 1, "over 64 MiB"), ("latin", 7, "binary")]
    );
}

#[test]
fn c19_a_huge_file_is_refused_by_size_without_being_read() {
    let (folder, tree) = tree(&[]);
    fs::File::create(folder.path().join("huge")).unwrap().set_len(2_200_000_000).unwrap();
    let e = tree.read(&path("huge"), SEARCHED_MAX).unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
    assert!(e.to_string().contains("2200000000"), "{e}");
}

#[test]
fn a_read_takes_all_bytes_or_says_how_many_there_are() {
    let text: Vec<u8> = (0u8..=255).cycle().take(100_000).collect();
    let (folder, tree) = tree(&[("f", &text), ("empty", b"")]);
    assert_eq!(tree.read(&path("f"), 100_000).unwrap(), text);
    assert_eq!(tree.read(&path("f"), 99_999).unwrap_err().kind(), Kind::TooLarge);
    assert_eq!(tree.read(&path("empty"), 0).unwrap(), b"");
    let mut content = b"old".to_vec();
    tree.read_into("f", 10, &mut content).unwrap();
    assert_eq!(content, text[..11], "one byte over the limit tells that there is more");
    // Files of the process table have content but no size.
    let status = Tree::open(Path::new("/proc/self")).unwrap().read(&path("status"), 1 << 20).unwrap();
    assert!(status.starts_with(b"Name:") && folder.path().exists());
}

#[test]
fn special_files_are_refused_and_never_waited_for() {
    let (folder, tree) = tree(&[]);
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    let walk = walk(&tree);
    assert_eq!(
        walk.refused,
        [("pipe".into(), "is a named pipe".into()), ("socket".into(), "is a socket".into())]
    );
    assert_eq!(tree.read(&path("pipe"), 9).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(tree.replace(&path("pipe"), b"", None).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(tree.read_into("pipe", 9, &mut Vec::new()).unwrap_err(), Errno::ISDIR);
}

#[test]
fn ignored_files_are_named_and_tracked_ones_are_never_ignored() {
    let (_folder, tree) = tree(&[
        ("a.o", b""),
        ("b.o", b""),
        ("target/x/1", b""),
        ("target/kept", b""),
        ("out/1", b""),
        ("src/c", b""),
    ]);
    let tracked: BTreeSet<TreePath> = ["b.o", "target/kept"].map(path).into();
    let walk = tree.walk(&ignoring("*.o target out/"), &tracked).unwrap();
    assert_eq!(names(&walk), ["b.o", "src/c", "target/kept"]);
    // A folder that is entered for a tracked file is told by what else is in it.
    assert_eq!(
        left_out(&walk),
        [("a.o", Why::IgnoreGlob), ("out/", Why::IgnoreGlob), ("target/x/", Why::IgnoreGlob)]
    );
}

#[test]
fn g10_a_gitignore_leaves_out_untracked_files_of_its_folder() {
    let (_folder, tree) = tree(&[
        (".gitignore", b"/target\n*.log\n!keep.log\nbuild/\n**/cache/*\n\\#x\n#y\n"),
        ("target/debug/x", b""),
        ("a.log", b""),
        ("keep.log", b""),
        ("build", b""),
        ("sub/build/x", b""),
        ("sub/target", b""),
        ("sub/.gitignore", b"!a.log\nonly-here\n"),
        ("sub/a.log", b""),
        ("sub/deep/a.log", b""),
        ("sub/only-here", b""),
        ("only-here", b""),
        ("a/cache/x", b""),
        ("#x", b""),
        ("#y", b""),
    ]);
    let tracked: BTreeSet<TreePath> = ["a.log", "sub/build/x"].map(path).into();
    let walk = tree.walk(&ignoring(""), &tracked).unwrap();
    let taken = [
        "#y",
        ".gitignore",
        "a.log",
        "build",
        "keep.log",
        "only-here",
        "sub/.gitignore",
        "sub/a.log",
        "sub/build/x",
        "sub/deep/a.log",
        "sub/target",
    ];
    assert_eq!(names(&walk), taken);
    let out = ["#x", "a/cache/x", "sub/only-here", "target/"].map(|path| (path, Why::GitIgnore));
    assert_eq!(left_out(&walk), out);
    assert_eq!(walk.refused, []);
    for (text, why) in [
        ("sub/new.log", Some(Why::GitIgnore)),
        ("target/new", Some(Why::GitIgnore)),
        ("a.log", None),
        ("sub/a.log", None),
    ] {
        assert_eq!(tree.why_left_out(&path(text), &ignoring(""), &tracked).unwrap(), why, "{text}");
    }
}

#[test]
fn g10_a_gitignore_that_cannot_be_read_refuses_and_hostile_ones_end() {
    let started = std::time::Instant::now();
    let deep = ["a"; 60].join("/");
    let hostile = ["*a".repeat(900) + "b", "[".repeat(3_000), "a*".repeat(3_000) + "b", "**/a/**/b/".into()];
    let (folder, tree) = tree(&[
        (".gitignore", hostile.join("\n").as_bytes()),
        (&deep, b""),
        (&"a".repeat(200), b""),
        ("big/.gitignore", &vec![b'x'; 300 << 10]),
        ("big/f", b""),
        ("stars/.gitignore", ("**/a/".repeat(500) + "b").as_bytes()),
        ("stars/a/a/a/a/f", b""),
    ]);
    symlink("/etc/passwd", folder.path().join("a/.gitignore")).unwrap();
    let walk = tree.walk(&ignoring(""), &()).unwrap();
    assert!(names(&walk).contains(&deep.as_str()));
    let [(big, too_big), (stars, too_many), ..] = &walk.refused[..] else { panic!("{:?}", walk.refused) };
    assert!(big == "big/.gitignore" && too_big.contains("262144 bytes"), "{too_big}");
    assert!(stars == "stars/.gitignore" && too_many.contains("too many `**`"), "{too_many}");
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn databases_of_the_repository_are_out_of_reach() {
    let (folder, tree) =
        tree(&[("r.fossil", b"db"), ("r.fossil-wal", b"db"), ("manifest.uuid", b"m"), ("a", b"x")]);
    fs::hard_link(folder.path().join("r.fossil"), folder.path().join("alias")).unwrap();
    let tree = tree.keeping_out(&folder.path().join("r.fossil")).leaving_out(&path("manifest.uuid"));
    assert_eq!(names(&walk(&tree)), ["a"]);
    for name in ["r.fossil", "r.fossil-wal", "alias"] {
        assert_eq!(tree.read(&path(name), 99).unwrap_err().kind(), Kind::Denied, "{name}");
        assert_eq!(tree.replace(&path(name), b"", None).unwrap_err().kind(), Kind::Denied, "{name}");
    }
    assert_eq!(tree.create(&path("r.fossil-shm"), b"").unwrap_err().kind(), Kind::Denied);
}

#[test]
fn t21_the_mode_stays() {
    let (folder, tree) = tree(&[("run.sh", b"echo a\n")]);
    let file = folder.path().join("run.sh");
    for mode in [0o755, 0o640, 0o4711] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let entry = tree.replace(&path("run.sh"), b"echo b\n", None).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, mode);
        assert_eq!(entry.kind == FileKind::Executable, mode & 0o100 != 0);
    }
}

#[test]
fn t22_links_are_neither_replaced_nor_parted() {
    let (folder, tree) = tree(&[("real.md", b"x"), ("one", b"x")]);
    symlink("real.md", folder.path().join("link.md")).unwrap();
    fs::hard_link(folder.path().join("one"), folder.path().join("two")).unwrap();
    let e = tree.replace(&path("link.md"), b"y", None).unwrap_err();
    assert!(e.kind() == Kind::Denied && e.to_string().contains("link to `real.md`"), "{e}");
    let e = tree.replace(&path("two"), b"y", None).unwrap_err();
    assert!(e.kind() == Kind::Denied && e.to_string().contains("2 hard links"), "{e}");
    assert_eq!((fs::read(folder.path().join("one")).unwrap(), walk(&tree).entries.len()), (b"x".to_vec(), 4));
}

#[test]
fn x01_two_edits_at_once_are_both_kept() {
    let (folder, _) = tree(&[("f", b"")]);
    let edit = |old: &str, new: &str| {
        let tree = Tree::open(folder.path()).unwrap();
        loop {
            let content = tree.read(&path("f"), 1000).unwrap();
            let done = replace_once(&content, old.as_bytes(), new.as_bytes()).unwrap();
            match tree.replace(&path("f"), &done.content, Some(&Hash::of(&content))) {
                Ok(_) => break,
                Err(e) => assert_eq!(e.kind(), Kind::Changed),
            }
        }
    };
    for _ in 0..200 {
        fs::write(folder.path().join("f"), "50\n75\n").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| edit("50", "A"));
            scope.spawn(|| edit("75", "B"));
        });
        assert_eq!(fs::read(folder.path().join("f")).unwrap(), b"A\nB\n");
    }
}

#[test]
fn x01_two_files_of_one_name_are_not_both_made() {
    let (folder, _) = tree(&[]);
    let made = |content: &[u8]| Tree::open(folder.path()).unwrap().create(&path("d/f"), content).is_ok();
    for _ in 0..50 {
        let _ = fs::remove_dir_all(folder.path().join("d"));
        let (one, two) = std::thread::scope(|scope| {
            let one = scope.spawn(|| made(b"1"));
            (made(b"2"), one.join().unwrap())
        });
        assert!(one != two, "exactly one is made");
    }
}

#[test]
fn a_leftover_is_never_listed_and_goes_with_the_next_write() {
    let (folder, tree) = tree(&[("a", b"x")]);
    let leftover = folder.path().join(format!("{TEMP_PREFIX}1-1"));
    fs::write(&leftover, "x").unwrap();
    assert_eq!((names(&walk(&tree)), find(&tree, b"x").files), (vec!["a"], 1));
    tree.replace(&path("a"), b"y", None).unwrap();
    assert!(!leftover.exists());
}

#[test]
fn create_refuses_what_is_there() {
    let (_folder, tree) = tree(&[("d/f", b"x")]);
    for name in ["d/f", "d"] {
        assert_eq!(tree.create(&path(name), b"y").unwrap_err().kind(), Kind::Exists, "{name}");
    }
    let e = tree.create(&path("d/f/g"), b"y").unwrap_err();
    assert!(e.to_string().contains("`d/f` is no folder"), "{e}");
    assert_eq!(tree.read(&path("d"), 9).unwrap_err().kind(), Kind::Invalid);
}

/// What the child processes of the two tests below do: write over `f` in the folder that
/// `OCX_TEST_TREE` names, without end or once.
#[test]
#[ignore = "runs as a child of other tests"]
fn child_that_writes() {
    let folder = std::env::var_os("OCX_TEST_TREE").expect("started by another test");
    let tree = Tree::open(Path::new(&folder)).unwrap();
    for n in 0u8.. {
        let content = vec![b'a' + n % 26; 10_000_000];
        if let Err(e) = tree.replace(&path("f"), &content, None) {
            assert_eq!(e.kind(), Kind::DiskFull);
            println!("full: {e}");
            return;
        }
    }
}

fn child(before: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    let run = format!("{before} exec \"$0\" --exact tree::tests::child_that_writes --ignored --nocapture");
    command.arg("-c").arg(run).arg(std::env::current_exe().unwrap()).env("OCX_TEST_TREE", folder);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
fn x05_a_full_disk_leaves_the_old_bytes() {
    let (folder, tree) = tree(&[("f", b"old")]);
    // A limit on file sizes stops a write half-way, as a full disk does, and gives the same error kind.
    let output = child("trap '' XFSZ; ulimit -f 4000;", folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("full: cannot write `f`"), "{said}");
    assert_eq!(tree.read(&path("f"), 9).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn x05_a_killed_writer_leaves_old_or_new_bytes() {
    let (folder, tree) = tree(&[("f", &vec![b'.'; 10_000_000])]);
    let mut written = 0;
    for wait_ms in [30, 45, 70, 100, 140] {
        let mut child = child("", folder.path()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        let content = tree.read(&path("f"), 20_000_000).unwrap();
        assert_eq!(content.len(), 10_000_000);
        assert!(content.iter().all(|b| *b == content[0]));
        assert_eq!(names(&walk(&tree)), ["f"]);
        written += usize::from(content[0] != b'.');
    }
    assert!(written > 0, "the child wrote before it was killed");
}

/// Every file below `folder`, by the plain way.
fn listed(folder: &Path, stem: &str, into: &mut Vec<String>) {
    for item in fs::read_dir(folder).unwrap() {
        let item = item.unwrap();
        let name = format!("{stem}{}", item.file_name().into_string().unwrap());
        if item.file_type().unwrap().is_dir() {
            listed(&item.path(), &format!("{name}/"), into);
        } else {
            into.push(name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_walk_is_a_naive_listing(
        files in prop::collection::btree_map("[ab.é-]{1,3}(/[ab*]{1,2}){0,3}", prop::collection::vec(any::<u8>(), 0..9), 0..20),
        ignore in prop::sample::select(vec!["", "*a", "a/*", "b"]),
    ) {
        let (folder, tree) = tree(&[]);
        for (name, content) in &files {
            let file = folder.path().join(name);
            if fs::create_dir_all(file.parent().unwrap()).is_ok() {
                let _ = fs::write(file, content);
            }
        }
        let mut all = Vec::new();
        listed(folder.path(), "", &mut all);
        let ignore = Ignore::parse(ignore);
        all.retain(|name| {
            let folders = name.match_indices('/').map(|(at, _)| &name[..at]);
            !ignore.matches(name) && !folders.into_iter().any(|folder| ignore.matches_folder(folder))
        });
        let (mut good, mut bad): (Vec<String>, Vec<String>) = all.into_iter().partition(|n| TreePath::parse(n).is_ok());
        good.sort();
        bad.sort();
        let walk = tree.walk(&Rules { ignore, dotfiles: true, ..Rules::default() }, &()).unwrap();
        prop_assert_eq!(names(&walk), good);
        prop_assert_eq!(walk.refused.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>(), bad);
    }

    #[test]
    fn what_is_written_is_what_is_read(
        name in "[a-cé *-]{0,3}[a-c](/[ab]{1,2}){0,3}",
        one in prop::collection::vec(any::<u8>(), 0..99),
        two in prop::collection::vec(any::<u8>(), 0..99),
    ) {
        let (_folder, tree) = tree(&[]);
        let name = path(&name);
        tree.create(&name, &one).unwrap();
        let entry = tree.replace(&name, &two, Some(&Hash::of(&one))).unwrap();
        prop_assert_eq!(tree.content(&entry, 99).unwrap(), two);
        prop_assert_eq!(tree.replace(&name, b"", Some(&Hash::of(b"?"))).unwrap_err().kind(), Kind::Changed);
        prop_assert_eq!(walk(&tree).entries, [entry]);
    }
}
