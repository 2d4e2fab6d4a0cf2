//! The place where tests work: a repository with one check-in on trunk, which a user opened as a checkout.
#![allow(clippy::needless_pass_by_value, reason = "inputs are written where they are used")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ocx::process::Supervisor;
use ocx::tool::{CallControl, Declaration, Field, FieldKind, Service};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Fossil, OCX, until};

/// A repository and a checkout of it. Both are removed when this is dropped.
pub struct Fixture {
    folder: TempDir,
    session: Service,
}

impl Fixture {
    /// Makes a checkout of a trunk check-in with these files. The user `alice` opens it. She may do everything.
    pub fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("co");
        let session = Service::with_supervisor(&root, Supervisor::at(OCX))
            .keeping_state_in(folder.path().join(".local/state/ocx"));
        let fixture = Self { folder, session };
        fixture.ocx(fixture.folder.path(), &["init", "r.fossil", "--user", "alice"]);
        fixture.ocx(fixture.folder.path(), &["open", "r.fossil", "co", "--user", "alice"]);
        // Plain Fossil compares file times, but tests change files within one second.
        fixture.fossil(&["settings", "mtime-changes", "off"]);
        if !files.is_empty() {
            for (path, content) in files {
                fixture.write(path, content);
            }
            fixture.fossil(&["addremove", "--dotfiles"]);
            fixture.fossil(&["commit", "-m", "start", "--no-warnings", "--user-override", "alice"]);
        }
        fixture
    }

    /// Makes a checkout with one declared test, `unit`, which runs `command`.
    pub fn tested(command: &str, files: &[(&str, &[u8])]) -> Self {
        let declared = json!({"tests": [{"name": "unit", "command": command, "timeout": "1m"}]}).to_string();
        let mut files = files.to_vec();
        files.push(("ocx-tests.json", declared.as_bytes()));
        Self::with(&files)
    }

    /// A place in the folder where tests run, which a test sees as its current folder. It waits until there is one.
    pub fn in_test_tree(&self, name: &str) -> PathBuf {
        let states = self.folder.path().join(".local/state/ocx");
        let tree = || Some(fs::read_dir(&states).ok()?.next()?.ok()?.path().join("tree"));
        until("there is a test tree", || tree().is_some_and(|tree| tree.join("ocx-tests.json").exists()));
        tree().expect("a tree").join(name)
    }

    pub fn session(&self) -> &Service {
        &self.session
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("co")
    }

    pub fn repository(&self) -> PathBuf {
        self.folder.path().join("r.fossil")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, content).expect("written");
    }

    pub fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).expect("readable")
    }

    /// Calls a tool in this process, and returns its answer.
    pub fn call(&self, tool: &str, input: Value) -> Value {
        super::answer::call(&self.session, tool, input)
    }

    /// Makes a call that must succeed, and returns its result.
    #[track_caller]
    pub fn done(&self, tool: &str, input: Value) -> Value {
        let answer = self.call(tool, input);
        assert_eq!(answer["ok"], true, "{answer:#}");
        answer["result"].clone()
    }

    /// Makes a call that must be refused with this code, and returns its answer.
    #[track_caller]
    pub fn refused(&self, code: &str, tool: &str, input: Value) -> Value {
        let answer = self.call(tool, input);
        assert_eq!((&answer["ok"], &answer["code"]), (&json!(false), &json!(code)), "{answer:#}");
        assert!(answer["next_step"].as_str().is_some_and(|s| s.ends_with('.')), "{answer:#}");
        answer
    }

    /// Runs the reference in the checkout.
    #[track_caller]
    pub fn fossil(&self, args: &[&str]) -> String {
        text(self.plain(&self.root()).args(args).output().expect("plain Fossil runs"))
    }

    /// A command of the reference in a folder, not yet started.
    pub fn plain(&self, folder: &Path) -> Command {
        self.shielded(Fossil::Reference.program(), folder)
    }

    /// Runs the `ocx` program in a folder.
    #[track_caller]
    pub fn ocx(&self, folder: &Path, args: &[&str]) -> String {
        text(self.command(OCX, folder).args(args).output().expect("ocx runs"))
    }

    /// A command of a program that sees nothing of this machine's users.
    pub fn command(&self, program: &str, folder: &Path) -> Command {
        self.shielded(Command::new(program), folder)
    }

    /// A shell in a folder. In the shell, `fossil` is the reference. The shell is bash, if it is installed.
    pub fn shell(&self, folder: &Path) -> Command {
        let bin = self.folder.path().join("bin");
        fs::create_dir_all(&bin).expect("a folder");
        let reference = Fossil::Reference.program();
        let words = std::iter::once(reference.get_program()).chain(reference.get_args());
        let words: Vec<_> = words.map(|word| format!("'{}'", word.display())).collect();
        let script = bin.join("fossil");
        fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(bin).chain(std::env::split_paths(&path));
        let is_here = std::env::split_paths(&path).any(|dir| dir.join("bash").is_file());
        let mut command = self.command(if is_here { "bash" } else { "sh" }, folder);
        command.env("PATH", std::env::join_paths(folders).expect("a path"));
        command
    }

    fn shielded(&self, mut command: Command, folder: &Path) -> Command {
        command.current_dir(folder).env("HOME", self.folder.path()).env("FOSSIL_HOME", self.folder.path());
        command.env("USER", "alice");
        for name in ["FOSSIL_USER", "OCX_STATE", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command
    }

    /// Changes a setting that plain Fossil's `settings` command does not know.
    pub fn set(&self, name: &str, value: &str) {
        let db = rusqlite::Connection::open(self.repository()).expect("a repository");
        let sql = "REPLACE INTO config(name, value, mtime) VALUES(?1, ?2, 1)";
        db.execute(sql, [name, value]).expect("set");
    }

    /// How many check-ins the repository holds.
    pub fn check_ins(&self) -> i64 {
        let db = rusqlite::Connection::open(self.repository()).expect("a repository");
        db.query_row("SELECT count(*) FROM event WHERE type='ci'", [], |r| r.get(0)).expect("a count")
    }

    /// Every file of the fixture with its bytes. A dry run must not change them.
    pub fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("listable") {
                let path = entry.expect("an entry").path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() {
                    folders.push(path);
                } else if !name.ends_with("-shm") && !name.ends_with("-wal") {
                    all.push((path.clone(), fs::read(&path).expect("readable")));
                }
            }
        }
        all.sort();
        all
    }
}

#[track_caller]
fn text(output: Output) -> String {
    let words =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    words
}

/// The four lines that a save needs.
pub fn four(title: &str) -> Value {
    json!({"title": title, "intent": "why", "expression": "where", "demonstrates": "unit"})
}

/// A value that fits a field.
pub fn fitting(field: &Field) -> Value {
    match field.kind {
        FieldKind::Text { .. } => "a.txt".into(),
        FieldKind::Number { default, .. } => default.into(),
        FieldKind::Word(words) => words[0].into(),
        FieldKind::Flag | FieldKind::Switch => true.into(),
        FieldKind::Span { default, .. } => default.to_string().into(),
        FieldKind::Amount { default, .. } => default.to_string().into(),
        FieldKind::Logins { .. } => json!(["alice"]),
        FieldKind::Paths { .. } => json!(["a.txt"]),
        FieldKind::Wake { .. } => json!([{"on": "post"}]),
    }
}

/// An input with only the fields that a tool requires.
pub fn required(tool: &Declaration) -> Value {
    let fields = tool.fields.iter().filter(|f| f.required);
    Value::Object(fields.map(|f| (f.name.to_owned(), fitting(f))).collect())
}
