//! Plain Fossil as the reference for unit tests: a process with a home folder of its own.
//!
//! `tests/support/reference.rs` says which program that is. Where it is this project's own Fossil, the running test
//! program starts itself again and becomes Fossil, since `cargo test --lib` builds no other program.

#[path = "../tests/support/reference.rs"]
mod reference;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;

/// A repository `r.fossil`, open in the folder `tree`, all in one temporary folder.
pub(crate) struct PlainFossil {
    dir: TempDir,
}

impl PlainFossil {
    /// Makes a repository for the user `ann` and opens it.
    pub(crate) fn new() -> Self {
        let this = Self::empty();
        this.run(["init", "-A", "ann", "--date-override", "2026-01-01T00:00:00", "../r.fossil"]);
        this.run(["open", "../r.fossil", "--user", "ann"]);
        this
    }

    fn empty() -> Self {
        let this = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(this.home()).unwrap();
        fs::create_dir_all(this.tree()).unwrap();
        this
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.dir.path().join("r.fossil")
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Writes a file of the tree, and the folders above it.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Whether it is this project's own Fossil.
    pub(crate) fn is_own() -> bool {
        reference::program().is_none()
    }

    /// A command not yet started, in the tree.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = reference::program().map_or_else(own, Command::new);
        command.args(args).current_dir(self.tree()).stdin(std::process::Stdio::null());
        command.env("HOME", self.home()).env("FOSSIL_HOME", self.home()).env("USER", "ann");
        command
    }

    /// Runs a command that may fail.
    pub(crate) fn try_run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed and gives what it printed.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        String::from_utf8(self.bytes(args)).unwrap()
    }

    /// As [`run`](Self::run), for output that need not be text.
    pub(crate) fn bytes<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Vec<u8> {
        let output = self.try_run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Saves the tree as a check-in at a date in 2026, with more arguments.
    pub(crate) fn commit(&self, date: &str, comment: &str, more: &[&str]) {
        self.run(["addremove"]);
        let date = format!("2026-{date}");
        let mut args = vec!["commit", "--no-warnings", "--hash", "-m", comment, "--date-override", &date];
        args.extend(more);
        self.run(args);
    }

    /// A connection that may change the repository behind Fossil's back.
    pub(crate) fn db(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.repository()).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        db
    }

    /// The rows of an SQL query against the repository, columns separated by `|`.
    pub(crate) fn sql(&self, sql: &str) -> Vec<String> {
        let db = self.db();
        let mut query = db.prepare(sql).unwrap();
        let columns = query.column_count();
        let line = |row: &rusqlite::Row<'_>| {
            let cells = (0..columns).map(|i| crate::repo::store::tests::cell(row, i));
            Ok(cells.collect::<Vec<_>>().join("|"))
        };
        query.query_map([], line).unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// A repository with a history of some variety, made once and copied.
    pub(crate) fn with_history() -> Self {
        static MADE: OnceLock<Vec<u8>> = OnceLock::new();
        let made = MADE.get_or_init(|| fs::read(Self::with_new_history().repository()).unwrap());
        let this = Self::empty();
        fs::write(this.repository(), made).unwrap();
        this.run(["open", "../r.fossil", "--user", "ann"]);
        this
    }

    /// A history of some variety: edits, modes, links, renames, odd names, a branch,
    /// a merge, a closed leaf, tags, an amended comment, delta manifests, a wiki page.
    fn with_new_history() -> Self {
        let this = Self::new();
        this.run(["settings", "allow-symlinks", "on"]);
        let long: String = (0..400).fold(String::new(), |text, i| text + &format!("line {i}\n"));
        this.write("long.txt", &long);
        this.write("a file with spaces.txt", "a\n");
        this.write("dir/sub/caf\u{e9}.txt", [0_u8, 1, 2, 255]);
        this.write("back'slash\"less.txt", "");
        let script = this.write("run.sh", "#!/bin/sh\n");
        make_executable(&script);
        std::os::unix::fs::symlink("long.txt", this.tree().join("link")).unwrap();
        this.commit("02-01 10:00:00.250", "first\n\\s [trunk] <b>\ttab", &[]);
        for i in 0..12 {
            this.write("long.txt", long.replace(&format!("line {}\n", i * 7), "changed\n"));
            this.commit(&format!("02-02 10:{:02}:00", i + 10), &format!("edit {i}"), &["--delta"]);
        }
        this.run(["mv", "--hard", "run.sh", "bin.sh"]);
        this.run(["mv", "--hard", "a file with spaces.txt", "a new name.txt"]);
        this.commit("02-03 10:00:00", "rename", &["--delta"]);
        this.write("side.txt", "side\n");
        this.commit("02-04 10:00:00", "on a branch", &["--branch", "side", "--tag", "v1.0"]);
        this.run(["update", "trunk"]);
        this.write("main.txt", "main\n");
        this.commit("02-05 10:00:00", "on trunk", &[]);
        this.run(["merge", "side"]);
        this.commit("02-06 10:00:00", "merge", &[]);
        this.write("dead.txt", "dead\n");
        this.commit("02-07 10:00:00", "a dead end", &["--branch", "ended", "--close"]);
        this.run(["update", "trunk"]);
        this.run(["amend", "side", "-m", "amended comment", "--author", "bob"]);
        this.run(["user", "new", "bob", "bob's contact", "secret"]);
        this.run(["user", "capabilities", "bob", "v"]);
        let page = this.write("../page.wiki", "some *wiki* text\n");
        this.run(["wiki", "create", "A Page", page.to_str().unwrap(), "--mimetype", "text/x-markdown"]);
        this
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The end of the test harness's own arguments.
const END: &str = "--";

/// This test program as plain Fossil. Its standard output is kept for Fossil; what the harness prints is dropped.
fn own() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 3>&1 >/dev/null"]).arg(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "plain_fossil::as_plain_fossil",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    // Fossil counts on the stack of a program's first thread.
    command.arg(END).env("RUST_MIN_STACK", "8388608");
    command
}

#[test]
#[ignore = "becomes plain Fossil; the other tests start it in a process of its own"]
fn as_plain_fossil() {
    let output = fs::OpenOptions::new().write(true).open("/dev/fd/3").unwrap();
    rustix::stdio::dup2_stdout(&output).unwrap();
    drop(output);
    let words = std::env::args_os().skip_while(|word| word != END).skip(1);
    std::process::exit(crate::engine::plain(
        std::iter::once(OsString::from("fossil")).chain(words).collect(),
    ));
}
