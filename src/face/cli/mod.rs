//! The catalogue as commands, and the few commands that make the places where tools work.
//!
//! Nothing here reads the state of the process. The program passes in the arguments, the streams, and whether there is
//! a terminal.

mod arguments;
mod bundle;
mod place;
mod serve;
mod show;
mod sync;
mod target;
mod terminal;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::Value;

pub use self::serve::{Listen, Serve};
pub use self::target::Target;
use self::terminal::{DONE, REFUSED, USAGE};
pub use self::terminal::{Terminal, complain};
use crate::error::{Error, Kind, Result};
use crate::tool::{self, CallControl, Catalogue};

/// What the program does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// The command has run: the program ends with this exit code.
    Exit(u8),
    /// `ocx mcp`: the program serves the protocol.
    Serve(Serve),
    /// `ocx demo`: the program shows the main job end to end.
    Demo,
}

/// The folder and the words of the command line `ocx [-C DIR] WORD ...`, if its command is `word`. It is for `fossil`
/// and `supervise`: they take their arguments unchanged, and must run before any thread is started.
#[must_use]
pub fn verbatim(args: &[OsString], word: &str) -> Option<(Option<PathBuf>, Vec<OsString>)> {
    let (folder, rest) = match args {
        [flag, folder, rest @ ..] if flag == "-C" => (Some(PathBuf::from(folder)), rest),
        rest => (None, rest),
    };
    let (first, rest) = rest.split_first()?;
    (first == word).then(|| (folder, rest.to_vec()))
}

/// Runs a command line, without the program's name.
#[must_use]
pub fn run(args: Vec<OsString>, terminal: &mut Terminal<'_>) -> Next {
    let words = std::iter::once(OsString::from("ocx")).chain(args);
    let matches = match arguments::command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(e) => return Next::Exit(terminal.show_usage(&e)),
    };
    let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| PathBuf::from("."));
    let Some((command, given)) = matches.subcommand() else {
        return Next::Exit(USAGE);
    };
    if command == "mcp" {
        return match Target::of(&matches) {
            Ok(target) => Next::Serve(Serve::of(target, given)),
            Err(e) => Next::Exit(terminal.say(Err(e)).unwrap_or(REFUSED)),
        };
    }
    if let Some(option) = without_use(command, &matches) {
        let error = Error::new(Kind::Invalid, format!("`ocx {command}` has no use for `{option}`"))
            .with_hint(format!("Leave `{option}` out."));
        return Next::Exit(complain(&error, terminal.err).map_or(REFUSED, |()| USAGE));
    }
    if command == "demo" {
        return Next::Demo;
    }
    let made = match command {
        "bundle" => Some(bundle::run(given, &folder, terminal)),
        _ => place::run(command, given, &folder, terminal)
            .or_else(|| sync::run(command, given, &folder, terminal)),
    };
    let code = match (made, Target::of(&matches)) {
        (Some(done), _) => terminal.say(done),
        (None, Ok(target)) => run_tool(command, given, target, terminal),
        (None, Err(e)) => terminal.say(Err(e)),
    };
    Next::Exit(code.unwrap_or(REFUSED))
}

/// A given option that other commands have, but that this command does not use.
fn without_use(command: &str, matches: &ArgMatches) -> Option<&'static str> {
    let options: &[(&str, &str)] = match command {
        "update" | "merge" | "demo" => &[("repository", "-R"), ("user", "--user")],
        "push" | "pull" => &[("user", "--user")],
        _ => &[],
    };
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    options.iter().find(|(id, _)| given(id)).map(|(_, option)| *option)
}

fn run_tool(
    command: &str,
    given: &ArgMatches,
    target: Target,
    terminal: &mut Terminal<'_>,
) -> std::io::Result<u8> {
    let json = given.get_flag("json");
    let (name, input) = if command == "call" {
        match called(given, terminal) {
            Ok(call) => call,
            Err(e) => return complain(&e, terminal.err).map(|()| USAGE),
        }
    } else {
        let declared = Catalogue::whole().declarations().find(|d| d.command() == command);
        let Some(declaration) = declared else { return Ok(USAGE) };
        (declaration.name.to_owned(), arguments::input(declaration, given))
    };
    let service = target.service(terminal.state.clone()).with_password(terminal.password.as_deref());
    let service = service.with_global_settings(terminal.global_settings.clone());
    let answer = tool::call(&service, &name, input, &CallControl::patient());
    if json || command == "call" {
        writeln!(terminal.out, "{answer}")?;
    } else {
        terminal.show(&answer)?;
    }
    Ok(if answer.ok() { DONE } else { REFUSED })
}

/// The tool and the input of `ocx call`. The input `-` means standard input.
fn called(given: &ArgMatches, terminal: &mut Terminal<'_>) -> Result<(String, Value)> {
    let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
    let mut input = text("input");
    if input == "-" {
        input.clear();
        terminal.input.read_to_string(&mut input).map_err(|e| Error::io("cannot read standard input", e))?;
    }
    let input = serde_json::from_str(&input).map_err(|e| {
        Error::new(Kind::Invalid, format!("the input is not JSON: {e}"))
            .with_hint("Give one JSON object, such as '{\"path\":\"README.md\"}'.")
    })?;
    Ok((text("tool"), input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Binding;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn fossil_takes_its_words_as_they_stand() {
        let (folder, rest) = verbatim(&words("-C dir fossil -C x --json"), "fossil").expect("fossil");
        assert_eq!((folder, rest), (Some(PathBuf::from("dir")), words("-C x --json")));
        assert_eq!(verbatim(&words("read fossil"), "fossil"), None);
    }

    #[test]
    fn a_server_that_others_reach_is_remote_to_its_callers() {
        let bound = |line: &str| {
            let mut terminal = Terminal {
                input: &mut std::io::empty(),
                out: &mut std::io::sink(),
                err: &mut std::io::sink(),
                out_is_terminal: false,
                err_is_terminal: false,
                login: None,
                password: None,
                state: None,
                global_settings: None,
            };
            match run(words(line), &mut terminal) {
                Next::Serve(serve) => serve.binding,
                other => panic!("{other:?}"),
            }
        };
        for line in ["mcp", "mcp --listen", "mcp --listen 127.0.0.1:8765", "mcp --listen [::1]:0"] {
            assert_eq!(bound(line), Binding::Local, "{line}");
        }
        for line in
            ["mcp --remote", "mcp --listen --remote", "mcp --listen 0.0.0.0:0", "mcp --listen [::]:80"]
        {
            assert_eq!(bound(line), Binding::Remote, "{line}");
        }
    }

    #[test]
    fn every_command_line_of_the_table_is_well_formed() {
        arguments::command().debug_assert();
    }
}
