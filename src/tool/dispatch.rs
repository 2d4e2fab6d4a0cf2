//! The one way into every tool: find it, check the input, check who calls, plan, and, unless it is a dry run, perform.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use super::answer::{Answer, NextCall, Operation, Refusal};
use super::binding::Binding;
use super::call::Call;
use super::control::CallControl;
use super::declare::Acts;
use super::input::Input;
use super::interface::Tool;
use super::plan::Permit;
use super::result::AnyResult;
use super::service::Service;
use super::{repair, suggest, words};
use crate::engine;
use crate::error::{Error, Kind};

/// Calls a tool by name and answers, whatever happens.
#[must_use]
pub fn call(service: &Service, name: &str, input: Value, control: &CallControl) -> Answer {
    let dry_run = input.get("dry_run") == Some(&Value::Bool(true));
    let Some(tool) = service.catalogue().find(name) else {
        let shown: String = name.chars().take(60).collect();
        return Answer::refused(
            &shown,
            dry_run,
            Vec::new(),
            checked(service, unknown(service, &shown, &input)),
        );
    };
    let name = tool.declaration().name;
    // What waits for the engine ends with the call.
    let run = || engine::with_cancel(control.handle(), || run(service, tool, input, control));
    let (log, outcome) = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        service.forget();
        (Vec::new(), Err(Error::new(Kind::Internal, format!("`{name}` broke down")).into()))
    });
    match outcome {
        Ok(result) => Answer::done(name, dry_run, log, result),
        Err(refusal) => Answer::refused(name, dry_run, log, checked(service, refusal)),
    }
}

type Logged = (Vec<Operation>, Result<Box<dyn AnyResult>, Refusal>);

fn run(service: &Service, tool: &'static dyn Tool, input: Value, control: &CallControl) -> Logged {
    match steps(service, tool, input, control) {
        Ok(logged) => logged,
        Err(refusal) => (Vec::new(), Err(refusal)),
    }
}

fn steps(
    service: &Service,
    tool: &'static dyn Tool,
    input: Value,
    control: &CallControl,
) -> Result<Logged, Refusal> {
    let declaration = tool.declaration();
    let input = Input::given(declaration, input);
    if let Err(error) = Input::fits(declaration, &input) {
        return Err(Refusal::from(error).or_next(repaired(service, tool, &input, control)));
    }
    let input = Input::of(input);
    let call = service.open(declaration, control)?;
    admit(&call, tool, &input)?;
    tool.judge(&input)?;
    if input.flag("dry_run") {
        let (log, preview) = tool.plan(&call, &input)?.preview();
        return Ok((log, Ok(preview)));
    }
    let done = perform(tool, &call, &input);
    if let Some(workspace) = call.workspace_if_any() {
        // This only makes the next call faster, so a failure of it is none of this call's.
        let _ = workspace.checkout().remember();
    }
    done
}

/// The call that `given`, which does not fit the tool, was probably meant to be.
fn repaired(
    service: &Service,
    tool: &'static dyn Tool,
    given: &Value,
    control: &CallControl,
) -> Option<NextCall> {
    let fields = repair::fields(tool.declaration(), given)?;
    let call = service.open(tool.declaration(), control).ok()?;
    if tool.declaration().acts != Acts::OnRecords && call.workspace().is_err() {
        return None;
    }
    Some(tool.repair(&call, call.with_path(fields))).filter(|next| service.offers(next))
}

/// Refuses a call on files that are not here, or that the caller may not change.
fn admit(call: &Call<'_>, tool: &dyn Tool, input: &Input) -> Result<(), Refusal> {
    let (acts, name) = (tool.acts(input), tool.declaration().name);
    if acts == Acts::OnRecords {
        return Ok(());
    }
    call.workspace().map_err(|e| Refusal::from(e).next("ocx_status", json!({})))?;
    if acts == Acts::OnCallersFiles && call.binding() == Binding::Remote {
        let what =
            format!("`{name}` acts on the caller's own files, and this connection's checkout is another");
        let hint = "Nothing was done. Save what was changed in this checkout with ocx_save; your own files are saved where \
                    they are.";
        let refusal = Error::new(Kind::Denied, what).with_hint(hint).into();
        return Err(saved_here(call, refusal, input));
    }
    if acts != Acts::LooksAtCheckout {
        call.require_own_checkout(name)?;
    }
    Ok(())
}

/// The refusal with the same four lines for the checkout of this connection.
fn saved_here(call: &Call<'_>, refusal: Refusal, input: &Input) -> Refusal {
    let Some(save) = call.declarations().find("ocx_save") else { return refusal };
    let lines = save.fields.iter().filter_map(|f| Some((f.name.to_owned(), input.value(f.name)?.clone())));
    let lines = Value::Object(lines.collect());
    if Input::fits(save, &lines).is_ok() { refusal.next(save.name, lines) } else { refusal }
}

fn perform(tool: &dyn Tool, call: &Call<'_>, input: &Input) -> Result<Logged, Refusal> {
    let turn = tool.declaration().writes.then(|| call.turn());
    let plan = tool.plan(call, input)?;
    Ok(plan.perform(&Permit::new(turn)))
}

fn unknown(service: &Service, name: &str, input: &Value) -> Refusal {
    let names: Vec<&str> = service.offered().all().map(|tool| tool.name).collect();
    let (words, meant) = match suggest::tool(name, &names) {
        Some(meant) => (format!("no tool `{name}`; did you mean `{meant}`?"), Some(meant)),
        None => (format!("no tool `{name}`"), None),
    };
    let error = Error::new(Kind::NotFound, words).with_hint(format!("The tools are {}.", names.join(", ")));
    let meant = meant.and_then(|name| service.catalogue().find(name));
    let next = meant.and_then(|tool| repair::named(tool.declaration(), input));
    Refusal::from(error).or_next(next)
}

/// The refusal without a next call that would be refused too, and without words about what is not here.
fn checked(service: &Service, refusal: Refusal) -> Refusal {
    debug_assert!(
        refusal.next_call().is_none_or(|next| {
            let tool = service.catalogue().find(next.tool);
            tool.is_some_and(|tool| Input::fits(tool.declaration(), &next.arguments).is_ok())
        }),
        "the next call must fit its tool: {:?}",
        refusal.next_call()
    );
    let refusal = refusal.keep_next(|next| service.offers(next));
    let has_next = refusal.next_call().is_some();
    refusal.reworded(|hint| {
        let said = service.offered().said(hint);
        if has_next { said } else { words::without(&said, |part| part.contains("next_call")) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::Checkout;
    use crate::name::User;
    use crate::process::Supervisor;
    use crate::record::Users;
    use crate::repo::{NewRepository, Repository};
    use crate::tool::catalogue;
    use crate::tool::declare::{Capability, Declaration, Hints};
    use crate::tool::plan::Plan;

    /// A tool that acts on the caller's files and takes what a save takes.
    struct Elsewhere;

    static ELSEWHERE: Declaration = Declaration {
        name: "ocx_elsewhere",
        title: "Elsewhere",
        summary: "Acts elsewhere.",
        needs: Capability::CheckIn,
        acts: Acts::OnCallersFiles,
        writes: false,
        hints: Hints::LOOKS,
        fields: &[],
        result: || Value::Null,
    };

    impl Tool for Elsewhere {
        fn declaration(&self) -> &'static Declaration {
            &ELSEWHERE
        }

        fn plan<'a>(&self, _: &'a Call<'a>, _: &'a Input) -> Result<Plan<'a>, Refusal> {
            unreachable!("only its admission is tested")
        }
    }

    fn admitted(service: &Service, input: Value) -> Result<(), Refusal> {
        let control = CallControl::default();
        admit(&service.open(&ELSEWHERE, &control)?, &Elsewhere, &Input::of(input))
    }

    fn checkout(folder: &std::path::Path) -> Service {
        let ann = User::parse("ann").unwrap();
        let repository =
            Repository::create(&folder.join("r.fossil"), &NewRepository { user: ann.clone() }).unwrap();
        Checkout::open(&repository, &folder.join("work"), None, Some(&ann)).unwrap();
        Users::of(&repository).create(&User::parse("bob").unwrap(), "io", "", None, &ann).unwrap();
        Service::with_supervisor(folder.join("work"), Supervisor::at("ocx"))
    }

    #[test]
    fn what_acts_on_the_callers_files_is_refused_on_a_remote_endpoint_with_the_save_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let service = checkout(folder.path());
        let four = json!({"title": "t", "intent": "i", "expression": "e", "demonstrates": "d"});
        assert!(admitted(&service, four.clone()).is_ok());
        let remote = service.bound(Binding::Remote);
        let mut given = four.clone();
        given["base"] = "0".repeat(64).into();
        let stop = admitted(&remote, given).unwrap_err();
        assert_eq!(stop.kind(), Kind::Denied);
        let next = stop.next_call().expect("a call that helps");
        assert_eq!((next.tool, &next.arguments), ("ocx_save", &four));
        assert!(admitted(&remote, json!({})).unwrap_err().next_call().is_none(), "no four lines, no save");
    }

    #[test]
    fn the_files_of_a_checkout_are_its_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let service = checkout(folder.path());
        let as_login = |name| service.acting_as(User::parse(name).unwrap());
        assert!(admitted(&as_login("ann"), json!({})).is_ok());
        for name in ["bob", "nemo"] {
            assert_eq!(admitted(&as_login(name), json!({})).unwrap_err().kind(), Kind::Denied, "{name}");
        }
    }

    fn repaired(tool: &str, given: impl Into<Value>) -> Option<Value> {
        repair::named(catalogue::find(tool).expect("a tool").declaration(), &given.into())
            .map(|next| next.arguments)
    }

    #[test]
    fn amounts_and_lists_get_their_form() {
        let given = json!({
            "instructions": "x", "wall": "30 M", "memory": "2 GiB", "hears": "ann", "wake": "post", "network": "false",
        });
        let right = json!({
            "instructions": "x", "wall": "30m", "memory": "2G", "hears": ["ann"], "wake": [{"on": "post"}], "network": false,
        });
        assert_eq!(repaired("ocx_create", given), Some(right));
        assert_eq!(repaired("ocx_create", json!({"instructions": "x", "wall": 30})), None, "of which unit?");
    }

    #[test]
    fn fields_get_their_names_and_types() {
        assert_eq!(
            repaired("ocx_read", json!({"file_path": "a", "line": "10", "encoding": "utf8"})),
            Some(json!({"path": "a", "from": 10}))
        );
        assert_eq!(
            repaired(
                "ocx_edit",
                json!({"filename": "a", "old_string": 5, "new_str": ["x", "y"], "dry_run": "true"})
            ),
            Some(json!({"path": "a", "old": "5", "new": "x\ny", "dry_run": true}))
        );
        assert_eq!(
            repaired("ocx_read", json!({"path": "a", "from": 0})),
            Some(json!({"path": "a", "from": 1}))
        );
        assert_eq!(repaired("ocx_read", json!({"path": "a", "from": null})), Some(json!({"path": "a"})));
        assert_eq!(repaired("ocx_find", json!({"query": "x", "regex": true})), Some(json!({"text": "x"})));
    }

    #[test]
    fn wrapped_input_is_unwrapped() {
        for given in [
            json!("{\"path\":\"a\"}"),
            json!({"arguments": {"path": "a"}}),
            json!({"input": "{\"path\":\"a\"}"}),
        ] {
            assert_eq!(repaired("ocx_read", given), Some(json!({"path": "a"})));
        }
    }

    #[test]
    fn nothing_is_offered_that_would_be_refused() {
        assert_eq!(repaired("ocx_edit", json!({"path": "a", "new": "b"})), None);
        assert_eq!(repaired("ocx_read", json!(["a"])), None);
        assert_eq!(repaired("ocx_read", json!({"path": "a", "from": -1})), None);
    }
}
