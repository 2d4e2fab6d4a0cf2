//! A workspace: one checkout with its objective, its tests and what it has saved.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};

use super::branch::working_branch;
use crate::checkout::{Checkout, Status};
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, Password, TreePath};
use crate::process::Supervisor;
use crate::sync::Remote;
use crate::testing::evidence::TestEvidence;
use crate::testing::{
    DECLARED_FILE, Declared, Jobs, StateFolder, Test, TestReport, TreesTaken, Waiter, Which, log,
};
use crate::tree::LeftOut;

/// The largest `ocx-tests.json` that is read, in bytes.
const DECLARED_BYTES_MAX: u64 = 1 << 20;

/// The longest objective, in bytes.
const OBJECTIVE_BYTES_MAX: usize = 4_000;

/// Under which name the checkout's database keeps the objective.
const OBJECTIVE: &str = "ocx-objective";

/// Where an agent or a person works: a checkout, and what OCX keeps of the work in it.
pub struct Workspace {
    checkout: Arc<Checkout>,
    jobs: Jobs,
    password: Option<Password>,
}

/// What is known of a declared test for the files as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The test.
    pub name: String,
    /// Its command.
    pub command: String,
    /// `passed`, `running`, or how it last ended and that it counts for other files.
    pub word: String,
}

impl Standing {
    /// Whether it has passed on exactly these files.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.word == "passed"
    }
}

impl Workspace {
    /// The workspace of a checkout. Its tests run under `supervisor`, and `state` keeps what is known of them.
    #[must_use]
    pub fn open(checkout: Checkout, supervisor: Supervisor, state: StateFolder) -> Self {
        let checkout = Arc::new(checkout);
        let jobs = Jobs::new(Arc::clone(&checkout), supervisor, state);
        let workspace = Self { checkout, jobs, password: None };
        // The check-in is in the repository in any case. Without the note, it is sent only with the next one.
        let _ = workspace.note_recovered();
        workspace
    }

    /// The same with a password for the server, used if the repository keeps none.
    #[must_use]
    pub fn with_password(self, password: Option<Password>) -> Self {
        Self { password, ..self }
    }

    /// The server that check-ins are sent to, and the login there.
    ///
    /// # Errors
    /// As [`remote`](crate::repo::Repository::remote).
    pub fn remote(&self) -> Result<Option<Remote>> {
        let remote = self.checkout.repository().remote()?;
        Ok(remote.map(|remote| remote.with_password(self.password.as_ref())))
    }

    /// The checkout.
    #[must_use]
    pub fn checkout(&self) -> &Checkout {
        &self.checkout
    }

    /// What the work is for, if it was given an objective.
    ///
    /// # Errors
    /// Those of reading the checkout's database.
    pub fn objective(&self) -> Result<Option<String>> {
        self.state(|state| {
            let sql = "SELECT value FROM vvar WHERE name=?1";
            Ok(state.query_row(sql, [OBJECTIVE], |r| r.get(0)).optional()?)
        })
    }

    /// The branch that a save goes to.
    ///
    /// # Errors
    /// Those of reading the repository.
    pub fn branch(&self) -> Result<Branch> {
        let store = self.checkout.repository().store();
        let parent = store.check_in(&self.checkout.parent()?)?;
        working_branch(store, &parent, &self.checkout.user()?, &self.checkout.id()?)
    }

    /// The declared tests of what a save would store now.
    ///
    /// # Errors
    /// `Invalid`, saying what is wrong with the file, and those of [`Checkout::status`].
    pub fn declared(&self) -> Result<Declared> {
        let status = self.checkout.status()?;
        self.declared_in(&status)
    }

    /// The declared tests of exactly the files of a status. A list that is left out is refused: it would seem to count.
    pub(crate) fn declared_in(&self, status: &Status) -> Result<Declared> {
        let Some(file) = status.files.get(DECLARED_FILE) else {
            return match status.left_out.iter().find(|left| left.path == DECLARED_FILE) {
                None => Ok(Declared::default()),
                Some(left) => Err(left_out_list(left)),
            };
        };
        let content = self.checkout.tree().read(&declared_path()?, DECLARED_BYTES_MAX)?;
        if !file.hash.names(&content) {
            return Err(Error::new(Kind::Changed, format!("`{DECLARED_FILE}` changed at this moment")));
        }
        Declared::parse(&content)
    }

    /// What is known of each declared test for the files of a status.
    ///
    /// # Errors
    /// As [`declared`](Self::declared), and those of reading the checkout's database.
    pub fn standings(&self, status: &Status) -> Result<Vec<Standing>> {
        let declared = self.declared_in(status)?;
        let tree = status.tree_hash();
        let running = self.jobs.running();
        let latest = self.jobs.latest()?;
        let evidence = self.evidence(status, &declared)?;
        let standing = |(test, known): (&Test, TestEvidence)| {
            let word = if known.pass.is_some() {
                "passed".into()
            } else if running.as_ref().is_some_and(|r| r.test == test.name) {
                "running".into()
            } else {
                last_word(latest.iter().find(|e| e.test == test.name), &tree)
            };
            Standing { name: test.name.clone(), command: test.command.clone(), word }
        };
        Ok(declared.tests().iter().zip(evidence).map(standing).collect())
    }

    /// What is known of each declared test on exactly the files of a status.
    ///
    /// # Errors
    /// As [`Jobs::evidence`].
    pub(crate) fn evidence(&self, status: &Status, declared: &Declared) -> Result<Vec<TestEvidence>> {
        self.jobs.evidence(declared.tests(), status)
    }

    /// Runs tests and waits, as [`Jobs::test`] does.
    ///
    /// # Errors
    /// As [`Jobs::test`].
    pub fn test(&self, declared: &Declared, which: &Which, waiter: &mut Waiter<'_>) -> Result<TestReport> {
        self.jobs.test(declared, which, waiter)
    }

    /// What test trees take on the disk.
    ///
    /// # Errors
    /// As [`Jobs::taken`].
    pub fn test_trees(&self) -> Result<TreesTaken> {
        self.jobs.taken()
    }

    /// A stretch of the last log of a test.
    ///
    /// # Errors
    /// As [`log::read`].
    pub fn log(&self, test: &str, from: u64, count: usize) -> Result<log::LogPart> {
        self.jobs.log(test, from, count)
    }

    /// What an earlier process left behind, in words; nothing if it left all in order.
    ///
    /// # Errors
    /// Those of reading the checkout.
    pub fn recovered(&self) -> Result<Option<String>> {
        let made = match self.checkout.recovered() {
            Some(hash) => Some(hash),
            None => self.cut_short()?,
        };
        let made = made.map(|hash: Hash| {
            format!("check-in {hash} was made by a process that ended before it could say so")
        });
        let all: Vec<String> = made.into_iter().chain(self.checkout.finished()).collect();
        Ok((!all.is_empty()).then(|| all.join("; ")))
    }

    pub(crate) fn state<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.checkout.state(act)
    }
}

/// Sets what the work in a checkout is for.
///
/// # Errors
/// `Invalid` if it is empty or longer than 4,000 bytes, and those of writing the checkout's database.
pub fn set_objective(checkout: &Checkout, objective: &str) -> Result<()> {
    let objective = objective.trim();
    if objective.is_empty() || objective.len() > OBJECTIVE_BYTES_MAX {
        let what = format!("an objective of {} bytes", objective.len());
        return Err(Error::new(Kind::Invalid, what)
            .with_hint(format!("Say what the work is for, in 1 to {OBJECTIVE_BYTES_MAX} bytes.")));
    }
    checkout.state(|state| {
        state.execute("REPLACE INTO vvar(name, value) VALUES(?1, ?2)", [OBJECTIVE, objective])?;
        Ok(())
    })
}

fn left_out_list(left: &LeftOut) -> Error {
    Error::new(Kind::Invalid, format!("a save would leave out {left}, so it declares no tests"))
        .with_hint("Include the file in a save, remove it, or change the rule that leaves it out.")
}

fn declared_path() -> Result<TreePath> {
    TreePath::parse(DECLARED_FILE)
}

fn last_word(last: Option<&log::LogEntry>, tree: &Hash) -> String {
    let Some(last) = last else { return "not run".into() };
    let Some(outcome) = &last.outcome else { return "running in another process".into() };
    if last.tree == *tree { outcome.to_string() } else { format!("{outcome}, on other files than now") }
}
