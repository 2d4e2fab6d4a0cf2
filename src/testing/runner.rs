//! What runs a job, in a thread of its own: for each test the tree, its fetch command, the test, the evidence.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::beside::Beside;
use super::evidence::{self, Circumstances, Subject};
use super::job::Job;
use super::outcome::TAIL_LINES;
use super::room::{Bounds, Room};
use super::stage::{Role, Stage, packages, told};
use super::state::{CheckoutState, StateFolder, TestLock};
use super::test_tree::{Readiness, TestTree, Wanted};
use super::{Declared, Outcome, RunsIn, Test, TestResult, log};
use crate::checkout::{Change, Checkout, How, Status};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath};
use crate::process::{Command, Environment, Exit, Finished, NoSandboxes, Output, Supervisor};
use crate::tree::Stamp;

/// Runs a job. It is on the job's thread and holds the lock on the checkout's tests.
pub(super) struct Runner {
    checkout: Arc<Checkout>,
    supervisor: Supervisor,
    state: Arc<CheckoutState>,
    job: Arc<Job>,
    folder: StateFolder,
    /// A hash over the declarations of all tests.
    declaration: Hash,
    status: Status,
    /// Why there is no sandbox, if there is none.
    unsandboxed: Option<String>,
}

/// Whose tests run, and where what is known of them is kept.
pub(super) struct Owner {
    pub checkout: Arc<Checkout>,
    pub supervisor: Supervisor,
    pub state: Arc<CheckoutState>,
    pub folder: StateFolder,
}

/// A test, and all that it is run on.
struct Run<'a> {
    test: &'a Test,
    beside: Beside,
    readiness: Readiness,
    tree: TestTree<'a>,
}

/// A command that has ended.
struct Ended {
    finished: Finished,
    lines: u64,
    tail: Vec<String>,
}

impl Runner {
    /// What runs `job` on the files of `status`.
    pub fn new(job: Arc<Job>, owner: Owner, declared: &Declared, status: Status) -> Self {
        let digests: Vec<_> = declared.tests().iter().map(|test| test.digest().to_string()).collect();
        let declaration = Hash::of(digests.join("\n").as_bytes());
        let Owner { checkout, supervisor, state, folder } = owner;
        Self { checkout, supervisor, state, folder, job, declaration, status, unsandboxed: None }
    }

    pub fn run(mut self, lock: TestLock) {
        let ending = Ending(Arc::clone(&self.job));
        match self.supervisor.sandboxes() {
            Err(none) if none.passing => self.job.fail(not_now(&none)),
            sandboxes => {
                self.unsandboxed = sandboxes.err().map(|none| none.why);
                self.tests();
            }
        }
        drop(ending);
        // Nobody waits for this any more but the next run.
        self.look_after_room(lock);
    }

    /// Runs the job's tests, until it is stopped or one cannot be run.
    fn tests(&self) {
        for test in &self.job.tests {
            if self.job.is_stopping() {
                break;
            }
            let done = match self.one(test) {
                // What an earlier run left may be what stands in the way.
                Err(e)
                    if matches!(e.kind(), Kind::Unavailable | Kind::DiskFull | Kind::Denied | Kind::Io) =>
                {
                    self.empty().and_then(|()| self.one(test))
                }
                done => done,
            };
            match done {
                Ok(result) => self.job.enter(result),
                Err(e) => {
                    self.job.fail(self.after_failure(test, e));
                    break;
                }
            }
        }
    }

    /// Notes how much room the tests take now, and makes room where there is too little.
    fn look_after_room(&self, lock: TestLock) {
        let Room { bytes, newest_ns } = Room::of(&self.state);
        let noted = TestTree::open(&self.state).and_then(|tree| tree.note_room(bytes, newest_ns));
        drop(lock);
        if let Err(e) = noted.and_then(|()| self.folder.make_room(Bounds::default()).map(drop)) {
            tracing::warn!("cannot look after the room of test trees: {e}");
        }
    }

    /// The error that a call gets. A test that fills the disk leaves nothing there: all that OCX keeps needs room too.
    fn after_failure(&self, test: &Test, error: Error) -> Error {
        if error.kind() != Kind::DiskFull || self.empty().is_err() {
            return error;
        }
        let disk = self.folder.path().display();
        Error::new(Kind::DiskFull, format!("test `{}` filled the disk of OCX's state, `{disk}`", test.name))
            .with_hint("What it left was removed. Have the test write less, or name a folder with more room in OCX_STATE.")
            .caused_by(error)
    }

    fn empty(&self) -> Result<()> {
        TestTree::open(&self.state)?.empty()
    }

    /// Runs one test and stores its result.
    fn one(&self, test: &Test) -> Result<TestResult> {
        let stage =
            Stage { state: &self.state, checkout: &self.checkout, sandboxed: self.unsandboxed.is_none() };
        let beside = Beside::of(test, &self.checkout, &self.status.files)?;
        let mut tree = TestTree::open(&self.state)?;
        let seen_at = stage.seen_at();
        let wanted = Wanted {
            checkout: &self.checkout,
            status: &self.status,
            declaration: self.declaration,
            seen_at: &seen_at,
            empty: test.fresh,
        };
        let readiness = tree.bring(&wanted)?;
        let mut run = Run { test, beside, readiness, tree };
        if let Some(failed) = self.fetch(&stage, &run)? {
            return Ok(failed);
        }
        if test.fetch.is_some() {
            // What a fetch command did to stored files is undone, as what a test did.
            run.tree.bring(&Wanted { empty: false, ..wanted })?;
        }
        let before = (test.place == RunsIn::Checkout).then(|| self.stamps());
        run.tree.note_use()?;
        let ended = self.command(&stage, &run, Role::Test)?;
        let mut result = self.result(&run, ended);
        result.changes = if before.is_none() { run.tree.changes() } else { Vec::new() };
        result.void = self.void(&run, before)?;
        if result.void.is_none() {
            let subject = Subject { tree: self.job.tree, test, beside: run.beside.digest() };
            self.state.with(|db| evidence::record(db, &subject, &result.outcome, &result.run))?;
        }
        Ok(result)
    }

    /// Runs the fetch command if the tree has not had it for these packages. Returns a result if that failed.
    fn fetch(&self, stage: &Stage<'_>, run: &Run<'_>) -> Result<Option<TestResult>> {
        let Some(fetch) = &run.test.fetch else { return Ok(None) };
        let word = format!("fetched {}", Hash::of(fetch.as_bytes()).short());
        let packages = packages(&self.status).to_string();
        if run.tree.word(&word)?.as_ref() == Some(&packages) && stage.has_fetched(&run.beside) {
            return Ok(None);
        }
        stage.begin_fetch(&run.beside)?;
        let ended = self.command(stage, run, Role::Fetch)?;
        if ended.finished.exit == Exit::Status(0) {
            run.tree.keep_word(&word, &packages)?;
            return Ok(None);
        }
        Ok(Some(TestResult { in_fetch: true, ..self.result(run, ended) }))
    }

    /// Runs a command of a test to its end, with its log.
    fn command(&self, stage: &Stage<'_>, run: &Run<'_>, role: Role) -> Result<Ended> {
        let mut command = stage.command(role, run.test, &run.beside, &run.tree)?;
        command.environment = told(command.environment, &self.checkout, &self.status.parent, &self.job.tree)?;
        let logged = Test { command: role.text(run.test).to_owned(), ..run.test.clone() };
        let id = self.state.with(|db| log::begin(db, &logged, &self.job.tree, &command.mark))?;
        let (finished, output) = match self.to_its_end(run.test, role == Role::Fetch, &command) {
            Ok(done) => done,
            Err(e) => {
                self.state.with(|db| log::lose(db, id, &e.to_string()))?;
                return Err(e);
            }
        };
        if let Exit::NoSandbox { why } = &finished.exit {
            self.state.with(|db| log::lose(db, id, why))?;
            return Err(no_sandbox(run.test, why));
        }
        run.tree.ended()?;
        let (lines, tail) = (output.count().lines(), output.tail(TAIL_LINES));
        let kept = output.finish().map_err(|e| Error::io("cannot keep a test's output", e))?;
        self.state.with(|db| log::end(db, id, &finished, &kept))?;
        Ok(Ended { finished, lines, tail })
    }

    fn to_its_end(&self, test: &Test, fetching: bool, command: &Command) -> Result<(Finished, Output)> {
        let running = command.start(&self.supervisor)?;
        self.job.show(test, fetching, running.stopper(), running.output());
        running.wait()
    }

    fn result(&self, run: &Run<'_>, ended: Ended) -> TestResult {
        let outcome = Outcome::from(&ended.finished.exit);
        let withheld = if outcome == Outcome::Passed {
            Vec::new()
        } else {
            let declared = |name: &String| run.test.env.iter().any(|v| v.name == *name);
            let mut names = Environment::held_back(std::env::vars_os());
            names.retain(|name| !declared(name));
            names
        };
        let fresh = run.readiness.fresh && run.test.place == RunsIn::Tree;
        let unsandboxed = self.unsandboxed.clone();
        TestResult {
            test: run.test.clone(),
            tree: self.job.tree,
            outcome,
            in_fetch: false,
            run: Circumstances { fresh, unsandboxed, brought: run.beside.shown() },
            emptied: run.readiness.emptied.clone(),
            duration: ended.finished.duration,
            lines: ended.lines,
            tail: ended.tail,
            left_behind: ended.finished.left_behind,
            out_of_memory: ended.finished.out_of_memory,
            changes: Vec::new(),
            void: None,
            withheld,
            notes: notes(&run.beside),
        }
    }

    /// Why the outcome counts for no tree: what it was seen on did not stay as it was.
    fn void(
        &self,
        run: &Run<'_>,
        before: Option<BTreeMap<TreePath, Option<Stamp>>>,
    ) -> Result<Option<String>> {
        let mut moved = Vec::new();
        if let Some(before) = before {
            let now = self.checkout.status()?;
            moved = now.changes_since(&self.status);
            let written = before.iter().filter(|(path, stamp)| self.checkout.tree().stamp(path) != **stamp);
            let named: Vec<_> = moved.iter().map(|change| change.path.clone()).collect();
            let written = written.filter(|(path, _)| !named.contains(path));
            moved.extend(written.map(|(path, _)| Change { path: path.clone(), how: How::Edited }));
        }
        let shown = |change: &Change| format!("`{}`", change.path.shown());
        let mut names: Vec<_> = moved.iter().take(5).map(shown).collect();
        let beside = Beside::of(run.test, &self.checkout, &self.status.files);
        let was = &run.beside.paths;
        let is = beside.as_ref().map(|b| b.paths.clone()).unwrap_or_default();
        names.extend(was.iter().filter(|b| !is.contains(b)).map(|b| format!("`{}`", b.path.shown())));
        let folder = beside.ok().and_then(|b| b.folder);
        if names.is_empty() && folder != run.beside.folder {
            names.push("something in the working folder".to_owned());
        }
        Ok((!names.is_empty()).then(|| format!("{} changed while it ran", names.join(", "))))
    }

    /// What tells of each stored file in the working folder that it is still the same.
    fn stamps(&self) -> BTreeMap<TreePath, Option<Stamp>> {
        let files = self.status.files.keys();
        files.map(|path| (path.clone(), self.checkout.tree().stamp(path))).collect()
    }
}

/// The error while a machine that gives sandboxes has none left.
fn not_now(none: &NoSandboxes) -> Error {
    Error::new(Kind::Unavailable, format!("no test was run: a sandbox cannot be had at this moment, {none}"))
        .with_hint("Try again when less runs on this machine.")
}

/// The error for a test whose own sandbox cannot be made on a machine that gives sandboxes. It never runs without.
fn no_sandbox(test: &Test, why: &str) -> Error {
    Error::new(
        Kind::Unavailable,
        format!("test `{}` was not run: its sandbox cannot be made, {why}", test.name),
    )
    .with_hint("Look at what it is given beside the tree (`with`), and at the path of the checkout.")
}

fn notes(beside: &Beside) -> Vec<String> {
    let unset = beside.variables.iter().filter(|(_, value)| value.is_none());
    let unset = unset.map(|(name, _)| format!("`{name}` of `env` is not set where OCX runs"));
    let out = beside.leading_out().map(|link| format!("`{link}` is a link that leads out of the checkout"));
    unset.chain(out).collect()
}

/// Ends the job also if its thread panics, so that no call waits for a thread that is gone.
struct Ending(Arc<Job>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.finish();
    }
}
