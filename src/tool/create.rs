//! `ocx_create`: an agent with a login of its own, told by a record in the forum. Only where a node runs agents.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::Refusal;
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Field, FieldKind, Hints};
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use super::result::{ToolResult, schema_of};
use crate::error::{Error, Kind, Result};
use crate::name::User;
use crate::name::{Amount, Span};

/// The most logins that an agent hears, and events that wake it.
const LIST_MAX: usize = 20;

const WALL: Span = Span::hours(1);
const CPU: Span = Span::minutes(30);
const MEMORY: Amount = Amount::mebibytes(2_048);
const PROCESSES: u64 = 64;

/// The longest that an agent may run: a week.
const SPAN_MAX: Span = Span::hours(168);

/// The tool.
pub struct Create;

static DECLARATION: Declaration = Declaration {
    name: "ocx_create",
    title: "Create an agent",
    summary: "Create an agent: makes its login, writes its record as a new forum thread and starts it, on a server that \
              runs agents. The result is the record's hash, which ocx_stop takes.",
    needs: Capability::Admin,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints { read_only: false, destructive: false, idempotent: false, open_world: true },
    fields: &FIELDS,
    result: schema_of::<CreateResult>,
};

/// What a node would be asked for, and by whom.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct CreateResult {
    asked: Asked,
    user: String,
}

/// The agent that is asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Asked {
    runner: String,
    instructions: String,
    /// As the caller gave it.
    #[schemars(with = "Vec<Map<String, Value>>")]
    wake: Value,
    hears: Option<Vec<String>>,
    network: bool,
    limits: Limits,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Limits {
    wall: String,
    cpu: String,
    memory: String,
    processes: u64,
}

impl ToolResult for CreateResult {}

static FIELDS: [Field; 9] = [
    Field::text("instructions", 32 << 10).required().positional().doc("what the agent is to do"),
    Field::word("runner", &RUNNERS).doc("what runs it; claude unless given"),
    Field::new("wake", FieldKind::Wake { count_max: LIST_MAX }).doc("what wakes it: a post in its thread, or a check-in that arrives on a branch (as a flag: post or check-in:BRANCH)"),
    Field::new("hears", FieldKind::Logins { count_max: LIST_MAX }).doc("the logins whose posts wake it; any with admin or setup unless given"),
    Field::new("network", FieldKind::Switch).doc("false (as a flag: --no-network): it gets no network but this server"),
    Field::new("wall", span(WALL)).doc("the time it may run"),
    Field::new("cpu", span(CPU)).doc("the processor time it may use"),
    Field::new("memory", FieldKind::Amount { min: Amount::mebibytes(64), max: Amount::mebibytes(1 << 20), default: MEMORY }).doc("the memory it may use"),
    Field::number("processes", 1, 4_096, PROCESSES).doc("how many processes it may have at once"),
];

const fn span(default: Span) -> FieldKind {
    FieldKind::Span { min: Span::minutes(1), max: SPAN_MAX, default }
}

const RUNNERS: [&str; 2] = ["claude", "codex"];

impl Tool for Create {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn judge(&self, input: &Input) -> Result<()> {
        if input.required("instructions")?.trim().is_empty() {
            let error = Error::new(Kind::Invalid, "field `instructions` is blank");
            return Err(error.with_hint("Say what the agent is to do."));
        }
        Ok(())
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let asked = asked(input)?;
        for (at, login) in asked.hears.iter().flatten().enumerate() {
            let login = User::parse(login)?;
            if call.store().user(&login)?.is_none() {
                let error =
                    Error::new(Kind::NotFound, format!("field `hears[{at}]`: there is no user `{login}`"));
                return Err(error.with_hint("Name logins that this repository has.").into());
            }
        }
        let error = Error::new(Kind::Unavailable, "no node runs here, so no agent can be started").with_hint(
            "Nothing was made. Ask whoever runs the project's server to create the agent where a node runs, or do the \
             work yourself. ocx_context tells where it stands.",
        );
        Err(Refusal::from(error).reached(CreateResult { asked, user: call.user().to_string() }))
    }
}

/// What was asked for, with what stands for the fields that were left out.
fn asked(input: &Input) -> Result<Asked> {
    let span = |field: &str, default: Span| {
        Ok::<Span, Error>(input.text(field).map(str::parse).transpose()?.unwrap_or(default))
    };
    let memory: Amount = input.text("memory").map(str::parse).transpose()?.unwrap_or(MEMORY);
    let logins = |all: &Vec<Value>| all.iter().filter_map(|login| Some(login.as_str()?.to_owned())).collect();
    Ok(Asked {
        runner: input.text("runner").unwrap_or(RUNNERS[0]).to_owned(),
        instructions: input.required("instructions")?.to_owned(),
        wake: input.value("wake").cloned().unwrap_or_else(|| json!([{"on": "post"}])),
        hears: input.value("hears").and_then(Value::as_array).map(logins),
        network: input.switch("network"),
        limits: Limits {
            wall: span("wall", WALL)?.to_string(),
            cpu: span("cpu", CPU)?.to_string(),
            memory: memory.to_string(),
            processes: input.number("processes").unwrap_or(PROCESSES),
        },
    })
}
