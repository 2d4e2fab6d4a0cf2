//! `ocx_status`: who calls, with which capabilities, on which repository and host. Anyone may ask, so it tells nothing
//! of what the files hold.

use serde_json::{Map, Value, json};

use super::answer::{NextCall, Operation, Stop};
use super::catalogue::Tool;
use super::declare::{Capability, Declaration, Hints};
use super::facts;
use super::input::Input;
use super::plan::Plan;
use super::session::Call;

/// The tool.
pub struct Status;

static DECLARATION: Declaration = Declaration {
    name: "ocx_status",
    title: "Who and where you are",
    summary: "Who and where you are: your login and its capabilities, the repository, the host and the tools of this \
              connection. For the work itself call ocx_context.",
    needs: Capability::Anyone,
    hints: Hints::LOOKS,
    fields: &facts::CALLER,
};

impl Tool for Status {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan<'a>(&self, call: &'a Call<'a>, input: &'a Input) -> Result<Plan<'a>, Stop> {
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
        result.insert("server_facts".into(), facts::server_facts(call)?);
        result.insert("caller_report".into(), facts::caller_report(input));
        if call.may(Capability::Read.letters())? {
            result.insert("next_call".into(), NextCall::new("ocx_context", said(input)).to_json());
        } else {
            result.insert("next_call".into(), Value::Null);
            let blocker =
                format!("`{}` lacks capability `o`, without which no file can be read", call.user());
            result.insert("blocker".into(), blocker.into());
        }
        Ok(Plan::looked(vec![Operation::reads("read_user")], Value::Object(result)))
    }
}

/// What the caller said of itself, so that the next tool hears it too.
fn said(input: &Input) -> Value {
    let field = |name: &'static str| Some((name.to_owned(), Value::from(input.text(name)?)));
    Value::Object(facts::CALLER.iter().filter_map(|f| field(f.name)).collect())
}

fn host() -> String {
    crate::name::shown(rustix::system::uname().nodename().to_bytes())
}
