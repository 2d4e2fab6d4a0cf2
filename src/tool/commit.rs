//! The check-in of every change of the checkout, as `ocx_save` and `ocx_commit_and_sync` make it: the same four lines,
//! the same gate, the same words. The two tools differ in what they do with the check-in then.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{Operation, Refusal};
use super::call::Call;
use super::changes::ChangedFile;
use super::context::changed;
use super::declare::{Field, FieldKind};
use super::input::Input;
use super::left_out::LeftOutFiles;
use super::plan::Permit;
use super::result::ToolResult;
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, TreePath, shown};
use crate::testing::evidence::TestEvidence;
use crate::work::{
    Comment, Delivery, ReadySave, SavePlan, ToInclude, Unresolved, Untested, settings_changed,
};

/// How many names of each list are shown.
const NAMES_MAX: usize = 40;

/// How many lines say what plain Fossil would do or ask, and the most characters of one.
const PASSED_OVER_MAX: usize = 20;
const LINE_MAX: usize = 240;

/// The most bytes of a part, before its line breaks are read as spaces; the rule for the line is the comment's.
const PART_BYTES_MAX: usize = 4_000;

/// What would be committed, or what is to be sent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum CommitPreview {
    Make {
        #[serde(flatten)]
        taken: Box<Taken>,
        committed: bool,
        would_commit: bool,
    },
    Send {
        committed: bool,
        checkin: Option<Hash>,
        not_pushed: Vec<Hash>,
        tests: TestsPassed,
    },
    /// Files that are taken from now on, and must be tested before they can be committed.
    Include {
        included: Vec<String>,
        included_of: usize,
        committed: bool,
        would_commit: bool,
        note: &'static str,
    },
}

impl ToolResult for CommitPreview {}

/// A check-in that is made, and what it takes in if this call made it.
#[derive(Debug, Clone)]
pub(super) struct Committed {
    pub checkin: Option<Hash>,
    pub taken: Option<Taken>,
    /// What is known of the tests if it was made before.
    pub tests: Option<TestsPassed>,
}

/// What a check-in takes in, and what a reader of it should look at.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Taken {
    branch: String,
    parent: Hash,
    user: String,
    tree: Hash,
    changed: Vec<ChangedFile>,
    shown: usize,
    of: usize,
    tests: TestsPassed,
    #[serde(skip_serializing_if = "Option::is_none")]
    tests_changed: Option<Vec<ChangedTest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings_changed: Option<Vec<String>>,
    /// What plain Fossil would do or ask at this check-in, and is not done here.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<Vec<String>>,
    /// How many there are, where not all are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over_of: Option<usize>,
    /// What would be left out, had the call not included it.
    #[serde(skip_serializing_if = "Option::is_none")]
    included: Option<Vec<String>>,
    #[serde(flatten)]
    left_out: LeftOutFiles,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum TestsPassed {
    None(&'static str),
    Declared(Vec<PassedTest>),
}

/// The evidence that a test passed on the tree.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct PassedTest {
    name: String,
    passed: bool,
    /// Whether it ran as in a fresh checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandboxed: Option<bool>,
    /// Why there was no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsandboxed: Option<String>,
    /// What it had beside the tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<String>,
}

impl PassedTest {
    fn of(standing: &TestEvidence) -> Self {
        let run = standing.pass.as_ref().map(|pass| &pass.run);
        Self {
            name: standing.test.clone(),
            passed: run.is_some(),
            fresh: run.map(|run| run.fresh),
            sandboxed: run.map(|run| run.unsandboxed.is_none()),
            unsandboxed: run.and_then(|run| run.unsandboxed.clone()),
            with: run.map(|run| run.brought.clone()).unwrap_or_default(),
        }
    }
}

impl TestsPassed {
    fn of(tests: &[TestEvidence]) -> Self {
        match tests {
            [] => Self::None("none declared"),
            some => Self::Declared(some.iter().map(PassedTest::of).collect()),
        }
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ChangedTest {
    name: String,
    old: Option<String>,
    new: Option<String>,
}

/// What a save takes: the four lines of its comment, and what it takes along.
pub(super) const FIELDS: [Field; 5] = [PARTS[0], PARTS[1], PARTS[2], PARTS[3], INCLUDE];

const INCLUDE: Field = Field::new("include", FieldKind::Paths { count_max: 100 })
    .doc("files that a save leaves out, or folders with all in them, to take along (`left_out` names them)");

/// The four lines of the comment.
pub(super) const PARTS: [Field; 4] = [
    part("title", "what the check-in does, in one line"),
    part("intent", "why, in one line"),
    part("expression", "what changed and where, in one line"),
    part("demonstrates", "the test that shows it works, in one line"),
];

const fn part(name: &'static str, doc: &'static str) -> Field {
    Field::text(name, PART_BYTES_MAX).required().doc(doc)
}

/// The comment of these four lines.
pub(super) fn comment(input: &Input) -> Result<Comment> {
    let part = |name| input.required(name);
    Comment::new(part("title")?, part("intent")?, part("expression")?, part("demonstrates")?)
}

/// The input that was probably meant: a whole comment in `title` is its four parts.
pub(super) fn repair(mut fields: Map<String, Value>) -> Value {
    let whole = fields.get("title").and_then(Value::as_str).unwrap_or_default().to_owned();
    for line in whole.lines() {
        let part = line
            .split_once(':')
            .and_then(|(label, _)| PARTS.iter().find(|f| f.name.eq_ignore_ascii_case(label)));
        match part {
            Some(part) if !fields.contains_key(part.name) => {
                fields.insert(part.name.into(), line.into());
                fields.insert("title".into(), whole.lines().next().unwrap_or_default().into());
            }
            _ => {}
        }
    }
    Value::Object(fields)
}

/// What would be committed now, or what is committed and not sent yet.
///
/// # Errors
/// Whatever forbids the check-in, with the call that brings it nearer.
pub(super) fn prepare(call: &Call<'_>, input: &Input, delivery: Delivery) -> Result<SavePlan, Refusal> {
    let include = input.paths(INCLUDE.name)?;
    call.workspace()?.plan_save(call.user(), delivery, &include, call.control().handle()).map_err(explained)
}

/// What it would do: look, then these.
pub(super) fn operations(call: &Call<'_>, saving: &SavePlan) -> Result<Vec<Operation>> {
    let mut log = vec![Operation::reads("read_status")];
    match saving {
        SavePlan::Make(ready) => {
            log.extend((!ready.status.included.is_empty()).then(|| Operation::changes("include")));
            log.extend((ready.continues() && call.has_remote()?).then(|| Operation::changes("pull")));
            log.push(Operation::changes("check_in"));
        }
        SavePlan::Include(_) => log.push(Operation::changes("include")),
        SavePlan::Send(_) => {}
    }
    Ok(log)
}

/// What a dry run says of it.
pub(super) fn preview(saving: &SavePlan) -> CommitPreview {
    match saving {
        SavePlan::Make(ready) => {
            CommitPreview::Make { taken: Box::new(taken(ready)), committed: false, would_commit: true }
        }
        SavePlan::Send(unsent) => CommitPreview::Send {
            committed: true,
            checkin: unsent.check_ins.last().copied(),
            not_pushed: unsent.check_ins.clone(),
            tests: TestsPassed::of(&unsent.tests),
        },
        SavePlan::Include(to) => included(to),
    }
}

fn included(to: &ToInclude) -> CommitPreview {
    CommitPreview::Include {
        included: named(&to.files),
        included_of: to.files.len(),
        committed: false,
        would_commit: false,
        note: "Saves take these files from now on. Tests have not seen them: run ocx_test, then save again.",
    }
}

/// The first of these paths.
fn named(paths: &[TreePath]) -> Vec<String> {
    paths.iter().take(NAMES_MAX).map(TreePath::shown).collect()
}

/// Makes the check-in, if there is one to make.
pub(super) fn perform(
    call: &Call<'_>,
    permit: &Permit<'_>,
    saving: &SavePlan,
    comment: &Comment,
) -> Result<Committed, Refusal> {
    let ready = match saving {
        SavePlan::Make(ready) => ready,
        SavePlan::Send(unsent) => {
            permit.end_turn();
            let tests = Some(TestsPassed::of(&unsent.tests));
            return Ok(Committed { checkin: unsent.check_ins.last().copied(), taken: None, tests });
        }
        SavePlan::Include(to) => {
            call.workspace()?.checkout().include(&to.files)?;
            permit.did("include");
            return Err(explained(to.untested.clone()).reached(included(to)));
        }
    };
    if !ready.status.included.is_empty() {
        call.workspace()?.checkout().include(&ready.status.included)?;
        permit.did("include");
    }
    // Others may write from here on: the check-in refuses files that are no longer those that were looked at.
    permit.end_turn();
    call.control().progress("making the check-in");
    if call.workspace()?.catch_up(ready, call.control().handle()) {
        permit.did("pull");
    }
    let hash = call.workspace()?.make(ready, comment, call.control().handle()).map_err(explained)?;
    permit.did("check_in");
    Ok(Committed { checkin: Some(hash), taken: Some(taken(ready)), tests: None })
}

fn taken(ready: &ReadySave) -> Taken {
    let mut changes = changed(&ready.status);
    let of = changes.len();
    changes.truncate(NAMES_MAX);
    let tests_changed = ready.tests_changed.iter();
    let tests_changed: Vec<_> = tests_changed
        .map(|c| ChangedTest { name: c.name.clone(), old: c.old.clone(), new: c.new.clone() })
        .collect();
    let settings: Vec<_> = settings_changed(&ready.status).iter().map(|path| path.shown()).collect();
    Taken {
        branch: ready.branch.to_string(),
        parent: ready.parent.hash,
        user: ready.user.to_string(),
        tree: ready.tree,
        shown: changes.len(),
        changed: changes,
        of,
        tests: TestsPassed::of(&ready.tests),
        tests_changed: some(tests_changed),
        settings_changed: some(settings),
        passed_over: some(ready.passed_over.iter().take(PASSED_OVER_MAX).map(|line| line_of(line)).collect()),
        passed_over_of: Some(ready.passed_over.len()).filter(|of| *of > PASSED_OVER_MAX),
        included: some(named(&ready.status.included)),
        left_out: LeftOutFiles::of(&ready.status.left_out),
    }
}

/// The beginning of a text, on one line.
fn line_of(text: &str) -> String {
    let cut = text.char_indices().nth(LINE_MAX).map_or(text, |(end, _)| &text[..end]);
    let more = if cut.len() < text.len() { " ..." } else { "" };
    shown(cut.as_bytes()) + more
}

/// The list. Nothing if it is empty.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

/// The refusal of a check-in, with the call that brings it nearer.
fn explained(error: Error) -> Refusal {
    let source = std::error::Error::source(&error);
    let untested = source.and_then(|s| s.downcast_ref::<Untested>());
    let unresolved = source.and_then(|s| s.downcast_ref::<Unresolved>()).and_then(|u| u.0.first());
    let next = match (error.kind(), untested.map(|u| u.0.as_slice())) {
        (Kind::Untested, Some([only])) => Some(("ocx_test", json!({"name": only}))),
        (Kind::Untested, _) => Some(("ocx_test", json!({}))),
        (Kind::Unchanged | Kind::Changed, _) => Some(("ocx_context", json!({}))),
        _ => unresolved.map(|file| {
            (
                "ocx_read",
                json!({"path": file.path.as_str(), "from": file.lines.first().copied().unwrap_or(1)}),
            )
        }),
    };
    let stop = Refusal::from(worded(error));
    match next {
        Some((tool, arguments)) => stop.next(tool, arguments),
        None => stop,
    }
}

/// Names the tool or the command by which the hint of a refusal is followed.
fn worded(error: Error) -> Error {
    match error.kind() {
        Kind::Untested => error.with_hint(
            "Run ocx_test, mend what fails, and save when every test has passed since the last change.",
        ),
        Kind::WouldFork => error.with_hint(
            "Your files are as they were. Bring the checkout to the newest check-in (`ocx update`), then test \
             and save again.",
        ),
        Kind::Unchanged if !error.to_string().ends_with("check-in") => error.with_hint(
            "There is nothing to save; edit a file first, or name what is left out in `include`.",
        ),
        _ => error,
    }
}
