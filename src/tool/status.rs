//! `ocx_status`: who calls, with which capabilities, on which repository and host. Anyone may ask, so it tells nothing
//! of what the files hold.

use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Refusal};
use super::call::Call;
use super::declare::{Acts, Capability, Declaration, Hints};
use super::facts;
use super::input::Input;
use super::interface::Tool;
use super::plan::Plan;
use super::publication::{self, Asking};

/// The tool.
pub struct Status;

static DECLARATION: Declaration = Declaration {
    name: "ocx_status",
    title: "Who and where you are",
    summary: "Who and where you are: your login and its capabilities, the repository, the host, the tools of this \
              connection, and whether the server takes pushes. For the work itself call ocx_context.",
    needs: Capability::Anyone,
    acts: Acts::OnRecords,
    writes: false,
    hints: Hints { open_world: true, ..Hints::LOOKS },
    fields: &facts::CALLER,
};

impl Tool for Status {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Refusal> {
        let store = call.store();
        let mut result = Map::new();
        result.insert("login".into(), call.user().as_str().into());
        result.insert("capabilities".into(), store.capabilities(call.user())?.to_string().into());
        result.insert(
            "repository".into(),
            json!({
                "project": store.project_name()?,
                "project_code": store.project_code()?,
                "file": store.path().file_name().map(|name| crate::name::shown(name.as_encoded_bytes())),
            }),
        );
        result.insert("host".into(), host().into());
        let asking = Asking::of(call)?;
        result.insert("server_facts".into(), facts::server_facts(call, &asking.unasked())?);
        result.insert("caller_report".into(), facts::caller_report(input));
        result.insert("guidance".into(), facts::guidance(call, input));
        if call.may(Capability::Read.letters())? {
            let begin = match call.workspace_if_any() {
                Some(_) => NextCall::new("ocx_context", facts::caller_fields(input)),
                None => NextCall::new("ocx_queue", json!({})),
            };
            let next = facts::next_call(call, input, Some(begin));
            result.insert("next_call".into(), next.map_or(Value::Null, |n| n.to_json()));
        } else {
            result.insert("next_call".into(), Value::Null);
            let blocker =
                format!("`{}` lacks capability `o`, without which no file can be read", call.user());
            result.insert("blocker".into(), blocker.into());
        }
        let mut known = Value::Object(result);
        let mut log = vec![Operation::reads("read_user")];
        let Some(remote) = asking.remote else { return Ok(Plan::looked(log, known)) };
        log.push(Operation::reads("ask_server"));
        Ok(Plan::change(log, known.clone(), move |_| {
            known["server_facts"]["publication"] = publication::asked(call, &remote);
            Ok(known)
        }))
    }
}

fn host() -> String {
    crate::name::shown(rustix::system::uname().nodename().to_bytes())
}
