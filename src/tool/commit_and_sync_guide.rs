//! `ocx_commit_and_sync_guide`: what `ocx_commit_and_sync` does, as steps of plain Fossil for the caller's own shell, with
//! the values of this connection. Nothing is done here.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::commit::PARTS;
use super::declare::{Acts, Capability, Declaration, Hints};
use super::facts::{self, CALLER, CallerReport};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use crate::error::{Kind, Result};
use crate::name::{Branch, Hash};
use crate::repo::Store;
use crate::sync::{Limits, Remote};
use crate::testing::{DECLARED_FILE, Declared};
use crate::work::{Comment, working_branch};

/// What asking whether the URL can be read may cost.
const ASKING: Limits = Limits {
    connect: Duration::from_secs(3),
    whole: Duration::from_secs(6),
    stall: Duration::from_secs(4),
    reply_bytes: 64 << 20,
    ..Limits::USUAL
};

/// What to do without a clone.
const IN_CHECKOUT: &str = "Without a clone or a shell of your own, work in the checkout of this connection: ocx_context, \
                           ocx_read, ocx_edit, ocx_test, ocx_save.";

/// The same where this connection has no checkout.
const NO_CHECKOUT: &str = "Without a clone or a shell of your own, no file can be changed: this connection has a \
                           repository and no checkout.";

/// The largest `ocx-tests.json` that is read from a check-in, in bytes.
const DECLARED_BYTES_MAX: usize = 1 << 20;

/// What is not claimed.
const TESTS: &str = "ocx_sync judges the branch, the users and the comments; it does not run the tests again, nor \
                     certify that they passed. What they print in your shell is your evidence: keep it.";

/// How the steps are run.
const HOW: &str = "Run the steps in order in one shell of your own computer: each goes on in the folder where the one \
                   before ended. Nothing here runs them.";

/// The tool.
pub struct Guide;

static DECLARATION: Declaration = Declaration {
    name: "ocx_commit_and_sync_guide",
    title: "Steps for your own shell",
    summary: "Get the shell steps, with plain Fossil and real values, that commit in a clone of your own and bundle the \
              branch for ocx_sync. Only reads; without a clone or a shell, edit with ocx_edit instead.",
    needs: Capability::Read,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: true },
    fields: &[
        PARTS[0].optional(),
        PARTS[1].optional(),
        PARTS[2].optional(),
        PARTS[3].optional(),
        CALLER[0],
        CALLER[1],
    ],
    result: schema_of::<GuideResult>,
};

/// The steps, and what they are built on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct GuideResult {
    read_url: Option<String>,
    read_url_verified: bool,
    base: Hash,
    branch: String,
    login: String,
    blockers: Vec<String>,
    how: &'static str,
    steps: Vec<Step>,
    tests: &'static str,
    caller_report: CallerReport,
    /// Where there are no steps: how to work in this connection's checkout.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
    /// What to do with what the last step printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<Then>,
    remote_route: &'static str,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Step {
    #[serde(rename = "step")]
    number: usize,
    name: &'static str,
    #[serde(rename = "where")]
    place: &'static str,
    run: String,
    why: &'static str,
}

/// The call of this connection that publishes the bundle; its `bundle` is what the last step printed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Then {
    connection: &'static str,
    tool: &'static str,
    #[schemars(with = "Map<String, Value>")]
    arguments: SyncInput,
    bundle: &'static str,
}

#[derive(Debug, Clone, Serialize)]
struct SyncInput {
    branch: String,
    have: Hash,
}

impl ToolResult for GuideResult {}

impl Tool for Guide {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let message = message(input)?;
        let values = Values::of(call)?;
        let source = Source::of(call, &values.base)?;
        let has_clone = input.text("caller") == Some("clone_available");
        let mut blockers = Vec::new();
        blockers.extend(source.blocker.clone());
        if !call.may(Capability::CheckIn.letters())? {
            blockers.push(format!(
                "`{}` lacks capability `i`, without which ocx_sync takes nothing",
                call.user()
            ));
        }
        let steps = if has_clone || source.verified {
            steps(&values, &source, has_clone, &message)
        } else {
            Vec::new()
        };
        let branch = values.branch.to_string();
        let has_checkout = call.workspace_if_any().is_some();
        let (next_call, then) = if steps.is_empty() {
            let begin = if has_checkout { "ocx_context" } else { "ocx_status" };
            (Some(NextCall::new(begin, json!({}))), None)
        } else {
            let then = Then {
                connection: "current",
                tool: "ocx_sync",
                arguments: SyncInput { branch: branch.clone(), have: values.base },
                bundle: "add `bundle`: the text that the last step printed",
            };
            (None, Some(then))
        };
        let result = GuideResult {
            read_url: source.url,
            read_url_verified: source.verified,
            base: values.base,
            branch,
            login: call.user().to_string(),
            blockers,
            how: HOW,
            steps,
            tests: TESTS,
            caller_report: facts::caller_report(input),
            next_call,
            then,
            remote_route: if has_checkout { IN_CHECKOUT } else { NO_CHECKOUT },
        };
        Ok(Plan::looked(vec![Operation::reads("read_status"), Operation::reads("ask_server")], result))
    }
}

/// What the steps are about.
struct Values {
    project: String,
    base: Hash,
    branch: Branch,
    /// Whether the base is on the branch already.
    continues: bool,
    login: String,
    tests: Vec<String>,
}

impl Values {
    fn of(call: &Call<'_>) -> Result<Self> {
        let (store, project) = (call.store(), call.store().project_code()?);
        let (base, id, tests) = if let Some(workspace) = call.workspace_if_any() {
            let checkout = workspace.checkout();
            (checkout.parent()?, checkout.id()?, workspace.declared())
        } else {
            // The same caller gets the same branch in each call.
            let base = store.resolve(&store.main_branch()?)?;
            let id = Hash::of(format!("{project} {}", call.user()).as_bytes()).as_str()[..8].to_owned();
            (base, id, declared(store, &base))
        };
        let base = store.check_in(&base)?;
        // The caller's own, whoever's the checkout is.
        let branch = working_branch(store, &base, call.user(), &id)?;
        // Broken ones are for ocx_test to tell.
        let tests = tests.map(|d| d.tests().iter().map(|t| t.command.clone()).collect());
        Ok(Self {
            project,
            base: base.hash,
            continues: base.branch == branch.as_str(),
            branch,
            login: call.user().to_string(),
            tests: tests.unwrap_or_default(),
        })
    }
}

/// The tests that a check-in declares.
fn declared(store: &Store, check_in: &Hash) -> Result<Declared> {
    match store.files(check_in)?.get(DECLARED_FILE) {
        Some(file) => Declared::parse(&store.content_within(&file.hash, DECLARED_BYTES_MAX)?),
        None => Ok(Declared::default()),
    }
}

/// Where anyone can clone from.
struct Source {
    url: Option<String>,
    verified: bool,
    blocker: Option<String>,
}

impl Source {
    /// The remote without its login, and whether the base is to be had there without one.
    fn of(call: &Call<'_>, base: &Hash) -> Result<Self> {
        let repository = call.repository();
        let Some(remote) = repository.remote()? else {
            let blocker = "this repository has no remote, so there is no URL to clone from".to_owned();
            return Ok(Self { url: None, verified: false, blocker: Some(blocker) });
        };
        let found = repository.anyone_finds(&remote, base, ASKING);
        let blocker = match &found {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "{remote} holds no check-in {} for those without a login; if it is not pushed yet, call ocx_save",
                base.short()
            )),
            Err(e) if e.kind() == Kind::Denied => {
                Some(format!("{remote} lets nobody read and clone without a login: {e}"))
            }
            Err(e) => Some(format!("whether {remote} can be read without a login is not known: {e}")),
        };
        Ok(Self { url: Some(Remote::url(&remote)), verified: blocker.is_none(), blocker })
    }
}

/// The lines of the message file, as words of a shell; a part that is not given stops the shell with what is missing.
fn message(input: &Input) -> Result<String> {
    let given = PARTS.map(|part| input.text(part.name).unwrap_or("-"));
    let comment = Comment::new(given[0], given[1], given[2], given[3])?.to_string();
    let labels = ["", "Intent: ", "Expression: ", "Demonstrates: "];
    let words = PARTS.iter().zip(labels).zip(comment.lines()).map(|((part, label), line)| {
        if input.text(part.name).is_some() {
            return quoted(line);
        }
        format!("\"{label}${{{}:?{}}}\"", part.name.to_ascii_uppercase(), part.doc)
    });
    Ok(words.collect::<Vec<_>>().join(" "))
}

fn steps(values: &Values, source: &Source, has_clone: bool, message: &str) -> Vec<Step> {
    let mut steps = Steps(Vec::new());
    if has_clone {
        existing(&mut steps, values, source);
    } else {
        bootstrap(&mut steps, values, source);
    }
    let branch = quoted(values.branch.as_str());
    steps.add("edit", "# Edit the files of the task here.", "The change itself");
    if !values.tests.is_empty() {
        let test = |command: &String| format!("bash -o pipefail -c {}", quoted(command));
        let tests: Vec<String> = values.tests.iter().map(test).collect();
        steps.add("test", &tests.join(" && "), "The tests that the project declares");
    }
    steps.add(
        "message",
        &format!("printf '%s\\n' {message} > ../ocx-message.txt"),
        "The comment of four lines that every check-in needs, outside the tree",
    );
    steps.add(
        "look",
        "fossil extras && fossil status",
        "New files are listed first: `fossil add` each that belongs to the task. All that is changed is committed",
    );
    let begin = if values.continues { String::new() } else { format!(" --branch {branch}") };
    steps.add(
        "commit",
        &format!(
            "fossil commit --nosync --nosign --no-prompt -M ../ocx-message.txt{begin} --user-override {}",
            quoted(&values.login)
        ),
        "One check-in on the working branch, in the name of the login that publishes it",
    );
    steps.add(
        "bundle",
        &format!(
            "rm -f ../ocx-push.bundle && fossil bundle export ../ocx-push.bundle --branch {branch} --standalone"
        ),
        "The branch in one file, outside the tree",
    );
    steps.add("print", "base64 < ../ocx-push.bundle | tr -d '\\n'", "The text for `bundle` of ocx_sync");
    steps.0
}

/// In a clone that is there: that it is of this project and clean, and as new as the base.
fn existing(steps: &mut Steps, values: &Values, source: &Source) {
    steps.add(
        "look_first",
        &format!("fossil info | grep -F {} && fossil status", quoted(&values.project)),
        "In the top folder of your clone: that it is of this project, and holds no changes but those of the task",
    );
    if let Some(url) = source.url.as_ref().filter(|_| source.verified) {
        steps.add(
            "pull",
            &format!("fossil pull {} --once", quoted(url)),
            "So that your clone holds the base",
        );
    }
    steps.add(
        "base",
        &format!("fossil update {} --nosync", quoted(values.base.as_str())),
        "The starting revision; your changes are merged into it",
    );
}

/// Without a clone: a new folder that holds it.
fn bootstrap(steps: &mut Steps, values: &Values, source: &Source) {
    let (Some(url), base) = (&source.url, quoted(values.base.as_str())) else { return };
    let login = quoted(&values.login);
    let folder = quoted(&values.branch.as_str().replace('/', "-"));
    steps.add(
        "folder",
        &format!("mkdir {folder} && cd {folder}"),
        "A new folder, in one that you may write in",
    );
    steps.add(
        "clone",
        &format!("fossil clone --no-open --admin-user {login} {} repo.fossil", quoted(url)),
        "A clone that keeps no password; this URL gives the base to everyone",
    );
    steps.add(
        "open",
        &format!(
            "mkdir tree && cd tree && fossil open ../repo.fossil {base} --nosync && fossil user default {login}"
        ),
        "The files of the starting revision",
    );
}

struct Steps(Vec<Step>);

impl Steps {
    fn add(&mut self, name: &'static str, run: &str, why: &'static str) {
        let step = self.0.len() + 1;
        self.0.push(Step { number: step, name, place: "local shell", run: run.to_owned(), why });
    }
}

/// A value as one word of a POSIX shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_value_holds_a_shell_reads_it_as_one_word() {
        for value in ["plain", "it's", "$(touch x)`y`", "a b\n\"c\"", "'", "\\", "-n", "*"] {
            let script = format!("printf '%s' {}", quoted(value));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), value);
        }
    }
}
