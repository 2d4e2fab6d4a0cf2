//! The one way into every tool: find it, check the input, check who calls, plan, and, unless it is a dry run, perform.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::answer::{Answer, Operation, Refusal};
use super::binding::Binding;
use super::catalogue::{self, Acts, Tool};
use super::control::CallControl;
use super::input::Input;
use super::plan::Permit;
use super::result::AnyResult;
use super::service::{Call, Service};
use super::{repair, suggest};
use crate::error::{Error, Kind};

/// Calls a tool by name and answers, whatever happens.
#[must_use]
pub fn call(service: &Service, name: &str, input: Value, control: &CallControl) -> Answer {
    let dry_run = input.get("dry_run") == Some(&Value::Bool(true));
    let Some(tool) = catalogue::find(name) else {
        return unknown(name, &input, dry_run);
    };
    let name = tool.declaration().name;
    let (log, outcome) = catch_unwind(AssertUnwindSafe(|| run(service, tool, input, control)))
        .unwrap_or_else(|_| {
            service.forget();
            (Vec::new(), Err(Error::new(Kind::Internal, format!("`{name}` broke down")).into()))
        });
    match outcome {
        Ok(result) => Answer::done(name, dry_run, log, result),
        Err(stop) => Answer::refused(name, dry_run, log, checked(stop)),
    }
}

fn run(service: &Service, tool: &'static dyn Tool, input: Value, control: &CallControl) -> Logged {
    match steps(service, tool, input, control) {
        Ok(logged) => logged,
        Err(stop) => (Vec::new(), Err(stop)),
    }
}

type Logged = (Vec<Operation>, Result<Box<dyn AnyResult>, Refusal>);

fn steps(
    service: &Service,
    tool: &'static dyn Tool,
    input: Value,
    control: &CallControl,
) -> Result<Logged, Refusal> {
    let declaration = tool.declaration();
    if let Err(error) = Input::fits(declaration, &input) {
        return Err(Refusal::from(error).or_next(repair::call(service, tool, &input, control)));
    }
    let input = Input::of(input);
    let call = Call::open(service, declaration, control)?;
    admit(&call, tool, &input)?;
    if input.flag("dry_run") {
        let (log, known) = tool.plan(&call, &input)?.preview();
        return Ok((log, Ok(known)));
    }
    let done = perform(tool, &call, &input);
    // What was looked at is a matter of speed only, and nothing that a call could fail for.
    let _ = call.run().checkout().remember();
    done
}

/// Refuses what would act on files that are not the caller's to change, or not here at all.
fn admit(call: &Call<'_>, tool: &dyn Tool, input: &Input) -> Result<(), Refusal> {
    let (acts, name) = (tool.acts(), tool.declaration().name);
    if acts == Acts::OnCallersFiles && call.binding() == Binding::Remote {
        let what =
            format!("`{name}` acts on the caller's own files, and this connection's checkout is another");
        let hint = "Nothing was done. Save what was changed in this checkout with ocx_save; your own files are saved where \
                    they are.";
        return Err(saved_here(Error::new(Kind::Denied, what).with_hint(hint).into(), input));
    }
    if acts != Acts::OnRecords {
        call.require_own_checkout(name)?;
    }
    Ok(())
}

/// The refusal with the same four lines for the checkout of this connection.
fn saved_here(stop: Refusal, input: &Input) -> Refusal {
    let Some(save) = catalogue::find("ocx_save").map(Tool::declaration) else { return stop };
    let lines = save.fields.iter().filter_map(|f| Some((f.name.to_owned(), input.value(f.name)?.clone())));
    let lines = Value::Object(lines.collect());
    if Input::check(save, lines.clone()).is_ok() { stop.next(save.name, lines) } else { stop }
}

fn perform(tool: &dyn Tool, call: &Call<'_>, input: &Input) -> Result<Logged, Refusal> {
    let turn = tool.writes().then(|| call.turn());
    let plan = tool.plan(call, input)?;
    Ok(plan.perform(&Permit::new(turn)))
}

fn unknown(name: &str, input: &Value, dry_run: bool) -> Answer {
    let shown: String = name.chars().take(60).collect();
    let names = catalogue::TOOLS.iter().map(|t| t.declaration().name);
    let (words, meant) = match suggest::tool(name, &names) {
        Some(meant) => (format!("no tool `{shown}`; did you mean `{meant}`?"), Some(meant)),
        None => (format!("no tool `{shown}`"), None),
    };
    let all: Vec<&str> = names.collect();
    let error = Error::new(Kind::NotFound, words).with_hint(format!("The tools are {}.", all.join(", ")));
    let next = meant.and_then(catalogue::find).and_then(|t| repair::named(t.declaration(), input));
    Answer::refused(&shown, dry_run, Vec::new(), Refusal::from(error).or_next(next))
}

/// A next call that its own tool would refuse helps nobody.
fn checked(stop: Refusal) -> Refusal {
    debug_assert!(
        stop.next_call().is_none_or(|next| catalogue::find(next.tool).is_some_and(|t| Input::check(
            t.declaration(),
            next.arguments.clone()
        )
        .is_ok())),
        "the next call must be valid: {:?}",
        stop.next_call()
    );
    stop
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::checkout::Checkout;
    use crate::name::User;
    use crate::process::Leash;
    use crate::record::Users;
    use crate::repo::{NewRepository, Repository};
    use crate::tool::declare::{Capability, Declaration, Hints};
    use crate::tool::plan::Plan;

    /// A tool that acts on the caller's files and takes what a save takes.
    struct Elsewhere;

    static ELSEWHERE: Declaration = Declaration {
        name: "ocx_elsewhere",
        title: "Elsewhere",
        summary: "Acts elsewhere.",
        needs: Capability::CheckIn,
        hints: Hints::LOOKS,
        fields: &[],
    };

    impl Tool for Elsewhere {
        fn declaration(&self) -> &'static Declaration {
            &ELSEWHERE
        }

        fn acts(&self) -> Acts {
            Acts::OnCallersFiles
        }

        fn plan<'a>(&self, _: &'a Call<'a>, _: &'a Input) -> Result<Plan<'a>, Refusal> {
            unreachable!("only its admission is tested")
        }
    }

    fn admitted(service: &Service, input: Value) -> Result<(), Refusal> {
        let control = CallControl::default();
        admit(&Call::open(service, &ELSEWHERE, &control)?, &Elsewhere, &Input::of(input))
    }

    fn checkout(folder: &std::path::Path) -> Service {
        let ann = User::parse("ann").unwrap();
        let repository =
            Repository::create(&folder.join("r.fossil"), &NewRepository { user: ann.clone() }).unwrap();
        Checkout::open(&repository, &folder.join("work"), None, Some(&ann)).unwrap();
        Users::of(&repository).create(&User::parse("bob").unwrap(), "io", "", None, &ann).unwrap();
        Service::with_leash(folder.join("work"), Leash::at("ocx"))
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
}
