//! A checkout of an empty repository whose tests run in the sandbox, on their own tree.
#![allow(clippy::needless_pass_by_value, reason = "declarations are written where they are used")]

use std::fs::{self, FileTimes};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ocx::cancel::Cancel;
use ocx::checkout::Checkout;
use ocx::error::Result;
use ocx::process::Supervisor;
use ocx::testing::{Declared, Jobs, StateFolder, TestReport, TestResult, Waiter, Which};
use serde_json::{Value, json};

const OCX: &str = env!("CARGO_BIN_EXE_ocx");

/// A checkout in `tree/`, the state folder in `state/`.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub checkout: Arc<Checkout>,
    pub jobs: Jobs,
    pub declared: Value,
}

impl Bench {
    /// A checkout with these files and one test, `unit`.
    pub fn new(command: &str, files: &[(&str, &str)]) -> Self {
        Self::declaring(json!({"name": "unit", "command": command}), files)
    }

    /// A checkout with these files and this one test.
    pub fn declaring(test: Value, files: &[(&str, &str)]) -> Self {
        Self::under(Supervisor::at(OCX), test, files)
    }

    /// As `declaring`, with tests that run under `supervisor`.
    pub fn under(supervisor: Supervisor, test: Value, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let checkout = checkout_in(folder.path());
        let state = StateFolder::at(folder.path().join("state"));
        let jobs = Jobs::new(Arc::clone(&checkout), supervisor, state);
        let mut bench = Self { folder, checkout, jobs, declared: Value::Null };
        for (name, content) in files {
            bench.write(name, content);
        }
        bench.declare(test);
        bench
    }

    /// Declares this one test instead.
    pub fn declare(&mut self, test: Value) {
        self.declared = json!({"tests": [test]});
        self.write("ocx-tests.json", &self.declared.to_string());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.checkout.root().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Gives a file a time long ago.
    pub fn age(&self, name: &str) {
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_hours(438_288);
        let file = fs::File::options().write(true).open(self.path(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(long_ago)).unwrap();
    }

    /// The folder in which tests run, as the machine sees it.
    pub fn test_tree(&self) -> PathBuf {
        self.state_of_checkout().join("tree")
    }

    /// What is kept of this checkout.
    pub fn state_of_checkout(&self) -> PathBuf {
        fs::read_dir(self.folder.path().join("state")).unwrap().next().unwrap().unwrap().path()
    }

    pub fn declared(&self) -> Declared {
        Declared::parse(self.declared.to_string().as_bytes()).unwrap()
    }

    pub fn ask(&self, cancel: &Cancel) -> Result<TestReport> {
        let mut waiter = Waiter { limit: Duration::from_mins(5), cancel, progress: &mut |_| () };
        self.jobs.test(&self.declared(), &Which::All, &mut waiter)
    }

    /// Runs the test; it ends.
    #[track_caller]
    pub fn run(&self) -> TestResult {
        let report = self.ask(&Cancel::new()).unwrap();
        report.results.into_iter().next().expect("a result")
    }

    /// Runs the test, which must pass.
    #[track_caller]
    pub fn passes(&self) -> TestResult {
        let result = self.run();
        assert!(result.passed(), "{}: {}", result.outcome, result.tail.join("\n"));
        result
    }

    /// Runs the test, which must not pass.
    #[track_caller]
    pub fn fails(&self) -> TestResult {
        let result = self.run();
        assert!(!result.passed(), "a wrong pass: {}", result.tail.join("\n"));
        result
    }
}

/// Makes a checkout in `tree/` of an empty repository.
pub fn checkout_in(folder: &Path) -> Arc<Checkout> {
    for args in
        [["init", "r.fossil", "--user", "alice"].as_slice(), &["open", "r.fossil", "tree", "--user", "alice"]]
    {
        let ocx = Command::new(OCX).args(args).current_dir(folder).output().unwrap();
        assert!(ocx.status.success(), "{ocx:?}");
    }
    Arc::new(Checkout::at(&folder.join("tree")).unwrap())
}

/// Whether the tests of a project can run here. Says so if they cannot: then nothing is shown of it.
pub fn has(tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |tool: &&str| std::env::split_paths(&path).any(|dir| dir.join(tool).is_file());
    let missing: Vec<_> = tools.iter().filter(|tool| !found(tool)).collect();
    if !missing.is_empty() {
        eprintln!("not tried: {missing:?} are not installed");
    }
    missing.is_empty()
}

/// How often a check is repeated: more where `OCX_FULL` is set.
pub fn times(few: usize, many: usize) -> usize {
    if std::env::var_os("OCX_FULL").is_some() { many } else { few }
}

/// Whether this machine gives sandboxes. If it gives none, this says why: then nothing is shown of them.
pub fn sandboxes() -> bool {
    let had = Supervisor::at(OCX).sandboxes();
    had.map_err(|why| eprintln!("not tried without a sandbox: {why}")).is_ok()
}
