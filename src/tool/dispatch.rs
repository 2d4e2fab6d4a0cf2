//! The one way into every tool: find it, check the input, check who calls, plan, and, unless it is a dry run, perform.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::answer::{Answer, Operation, Stop};
use super::binding::Binding;
use super::catalogue::{self, Acts, Tool};
use super::input::Input;
use super::plan::Permit;
use super::session::{Call, Session};
use super::watch::Watch;
use super::{meant, suggest};
use crate::error::{Error, Kind};

/// Calls a tool by name and answers, whatever happens.
#[must_use]
pub fn call(session: &Session, name: &str, input: Value, watch: &Watch) -> Answer {
    let dry_run = input.get("dry_run") == Some(&Value::Bool(true));
    let Some(tool) = catalogue::find(name) else {
        return unknown(name, &input, dry_run);
    };
    let name = tool.declaration().name;
    let (log, outcome) =
        catch_unwind(AssertUnwindSafe(|| run(session, tool, input, watch))).unwrap_or_else(|_| {
            session.forget();
            (Vec::new(), Err(Error::new(Kind::Internal, format!("`{name}` broke down")).into()))
        });
    match outcome {
        Ok(result) => Answer::done(name, dry_run, log, result),
        Err(stop) => Answer::refused(name, dry_run, log, &checked(stop)),
    }
}

fn run(
    session: &Session,
    tool: &'static dyn Tool,
    input: Value,
    watch: &Watch,
) -> (Vec<Operation>, Result<Value, Stop>) {
    match steps(session, tool, input, watch) {
        Ok(logged) => logged,
        Err(stop) => (Vec::new(), Err(stop)),
    }
}

type Logged = (Vec<Operation>, Result<Value, Stop>);

fn steps(session: &Session, tool: &'static dyn Tool, input: Value, watch: &Watch) -> Result<Logged, Stop> {
    let declaration = tool.declaration();
    if let Err(error) = Input::fits(declaration, &input) {
        return Err(Stop::from(error).or_next(meant::call(session, tool, &input, watch)));
    }
    let input = Input::of(input);
    let call = Call::open(session, declaration, watch)?;
    admit(&call, tool, &input)?;
    if input.flag("dry_run") {
        let (log, known) = tool.plan(&call, &input)?.told();
        return Ok((log, Ok(known)));
    }
    let done = perform(tool, &call, &input);
    // What was looked at is a matter of speed only, and nothing that a call could fail for.
    let _ = call.run().checkout().remember();
    done
}

/// Refuses what would act on files that are not the caller's to change, or not here at all.
fn admit(call: &Call<'_>, tool: &dyn Tool, input: &Input) -> Result<(), Stop> {
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
fn saved_here(stop: Stop, input: &Input) -> Stop {
    let Some(save) = catalogue::find("ocx_save").map(Tool::declaration) else { return stop };
    let lines = save.fields.iter().filter_map(|f| Some((f.name.to_owned(), input.value(f.name)?.clone())));
    let lines = Value::Object(lines.collect());
    if Input::check(save, lines.clone()).is_ok() { stop.next(save.name, lines) } else { stop }
}

fn perform(tool: &dyn Tool, call: &Call<'_>, input: &Input) -> Result<Logged, Stop> {
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
    let next = meant.and_then(catalogue::find).and_then(|t| meant::named(t.declaration(), input));
    Answer::refused(&shown, dry_run, Vec::new(), &Stop::from(error).or_next(next))
}

/// A next call that its own tool would refuse helps nobody.
fn checked(stop: Stop) -> Stop {
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
    use crate::process::Supervisor;
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

        fn plan<'a>(&self, _: &'a Call<'a>, _: &'a Input) -> Result<Plan<'a>, Stop> {
            Ok(Plan::looked(Vec::new(), Value::Null))
        }
    }

    fn admitted(session: &Session, input: Value) -> Result<(), Stop> {
        let watch = Watch::default();
        admit(&Call::open(session, &ELSEWHERE, &watch)?, &Elsewhere, &Input::of(input))
    }

    fn checkout(folder: &std::path::Path) -> Session {
        let ann = User::parse("ann").unwrap();
        let repository =
            Repository::create(&folder.join("r.fossil"), &NewRepository { user: ann.clone() }).unwrap();
        Checkout::open(&repository, &folder.join("work"), None, Some(&ann)).unwrap();
        Users::of(&repository).create(&User::parse("bob").unwrap(), "io", "", None, &ann).unwrap();
        Session::with_supervisor(folder.join("work"), Supervisor::at("ocx"))
    }

    #[test]
    fn what_acts_on_the_callers_files_is_refused_on_a_remote_endpoint_with_the_save_that_helps() {
        let folder = tempfile::tempdir().unwrap();
        let session = checkout(folder.path());
        let four = json!({"title": "t", "intent": "i", "expression": "e", "demonstrates": "d"});
        assert!(admitted(&session, four.clone()).is_ok());
        let remote = session.bound(Binding::Remote);
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
        let session = checkout(folder.path());
        let as_login = |name| session.acting_as(User::parse(name).unwrap());
        assert!(admitted(&as_login("ann"), json!({})).is_ok());
        for name in ["bob", "nemo"] {
            assert_eq!(admitted(&as_login(name), json!({})).unwrap_err().kind(), Kind::Denied, "{name}");
        }
    }
}
