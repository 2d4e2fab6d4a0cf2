//! The catalogue as commands, and the few commands that make what tools work in.
//!
//! Nothing here reads the process: arguments, streams and whether there is a terminal come from `main.rs`.

mod arguments;
mod bundle;
mod place;
mod show;
mod sync;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::name::User;
use crate::tool::{self, Answer, Binding, CallControl, Declaration, Service};

/// What was asked was done.
const DONE: u8 = 0;
/// It was refused.
const REFUSED: u8 = 1;
/// The command line makes no sense.
const USAGE: u8 = 2;

/// Where a command reads and writes.
pub struct Terminal<'a> {
    /// Standard input, read only where a command says so.
    pub input: &'a mut dyn Read,
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Where remarks and refusals go.
    pub err: &'a mut dyn Write,
    /// Whether `out` is a terminal, which must not be sent control characters.
    pub out_is_terminal: bool,
    /// Whether standard error is a terminal, at which a bar shows how far long work is.
    pub err_is_terminal: bool,
    /// The name that a new repository's first user gets where none is given.
    pub login: Option<String>,
    /// The password for the server, where its URL and the repository hold none.
    pub password: Option<String>,
}

/// What a command line asks for that is not a matter of text in and text out.
#[derive(Debug, PartialEq, Eq)]
pub enum Other {
    /// `ocx mcp`: serve the protocol for a checkout, on standard input and output or over HTTP.
    Mcp {
        /// Where calls act, and as whom.
        target: Target,
        /// Where callers' files are.
        binding: Binding,
        /// Where to listen instead of on standard input.
        listen: Option<Listen>,
    },
    /// `ocx demo`: show the main job end to end.
    Demo,
}

/// Where tools act, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The folder of the checkout.
    pub folder: PathBuf,
    /// The repository file, where calls act on it without a checkout.
    pub repository: Option<PathBuf>,
    /// The login to act as, where it is not the checkout's or the repository's own user.
    pub login: Option<User>,
}

impl Target {
    fn of(given: &ArgMatches) -> Result<Self> {
        let folder = given.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| PathBuf::from("."));
        let repository = given.get_one::<PathBuf>("repository").map(|path| folder.join(path));
        let login = given.get_one::<String>("user").map(|name| place::someone(name)).transpose()?;
        Ok(Self { folder, repository, login })
    }

    /// The service there.
    #[must_use]
    pub fn service(self) -> Service {
        let service = match self.repository {
            Some(path) => Service::of_repository(path),
            None => Service::at(self.folder),
        };
        match self.login {
            Some(login) => service.acting_as(login),
            None => service,
        }
    }
}

/// How `ocx mcp` is to listen.
#[derive(Debug, PartialEq, Eq)]
pub struct Listen {
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
    /// The file that holds the tokens of which callers must send one.
    pub token_file: Option<PathBuf>,
    /// What the server is called besides its address.
    pub hosts: Vec<String>,
}

/// How a command line ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exit(u8),
    /// It asks for what `main.rs` must do.
    Other(Other),
}

/// The words after `ocx [-C DIR] WORD`, and the folder, when the command is one that must run before any thread is
/// started: `fossil` and `supervise` take their arguments as they stand.
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
pub fn run(args: Vec<OsString>, terminal: &mut Terminal<'_>) -> Ended {
    let words = std::iter::once(OsString::from("ocx")).chain(args);
    let matches = match arguments::command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(e) => return Ended::Exit(show_usage(&e, terminal)),
    };
    let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(|| PathBuf::from("."));
    let Some((command, given)) = matches.subcommand() else {
        return Ended::Exit(USAGE);
    };
    if command == "mcp" {
        let (binding, listen) = (arguments::binding(given), arguments::listen(given));
        return match Target::of(&matches) {
            Ok(target) => Ended::Other(Other::Mcp { target, binding, listen }),
            Err(e) => Ended::Exit(complain(&e, terminal).unwrap_or(REFUSED)),
        };
    }
    if let Some(option) = without_use(command, &matches) {
        let error = Error::new(Kind::Invalid, format!("`ocx {command}` has no use for `{option}`"))
            .with_hint(format!("Leave `{option}` out."));
        return Ended::Exit(complain(&error, terminal).map_or(REFUSED, |_| USAGE));
    }
    if command == "demo" {
        return Ended::Other(Other::Demo);
    }
    let made = match command {
        "bundle" => Some(bundle::run(given, &folder, terminal)),
        _ => place::run(command, given, &folder, terminal)
            .or_else(|| sync::run(command, given, &folder, terminal)),
    };
    let code = match made {
        Some(done) => say(done, terminal),
        None => match Target::of(&matches) {
            Ok(target) => run_tool(command, given, target, terminal),
            Err(e) => complain(&e, terminal),
        },
    };
    Ended::Exit(code.unwrap_or(REFUSED))
}

/// The option that goes with every command but this one, where it was given.
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
            Err(e) => return complain(&e, terminal).map(|_| USAGE),
        }
    } else {
        let Some(declaration) = declared(command) else { return Ok(USAGE) };
        (declaration.name.to_owned(), arguments::input(declaration, given))
    };
    let session = target.service().with_password(terminal.password.as_deref());
    let answer = tool::call(&session, &name, input, &CallControl::patient());
    if json || command == "call" {
        writeln!(terminal.out, "{answer}")?;
    } else {
        show_answer(&answer, terminal)?;
    }
    Ok(if answer.ok() { DONE } else { REFUSED })
}

fn declared(command: &str) -> Option<&'static Declaration> {
    tool::catalogue::TOOLS.iter().map(|t| t.declaration()).find(|d| d.command() == command)
}

/// The tool and the input of `ocx call`; `-` reads the input from standard input.
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

fn show_answer(answer: &Answer, terminal: &mut Terminal<'_>) -> std::io::Result<()> {
    let shown = show::readable(answer, terminal.out_is_terminal);
    terminal.out.write_all(shown.out.as_bytes())?;
    terminal.err.write_all(shown.err.as_bytes())
}

fn say(done: Result<String>, terminal: &mut Terminal<'_>) -> std::io::Result<u8> {
    match done {
        Ok(words) => writeln!(terminal.out, "{words}").map(|()| DONE),
        Err(e) => complain(&e, terminal),
    }
}

fn complain(error: &Error, terminal: &mut Terminal<'_>) -> std::io::Result<u8> {
    writeln!(terminal.err, "ocx: {error}")?;
    if let Some(hint) = error.hint() {
        writeln!(terminal.err, "{hint}")?;
    }
    Ok(REFUSED)
}

/// Help goes to `out` and is no failure; a wrong command line goes to `err`.
fn show_usage(usage: &clap::Error, terminal: &mut Terminal<'_>) -> u8 {
    let text = usage.render();
    if usage.use_stderr() {
        let _ = write!(terminal.err, "{text}");
        USAGE
    } else {
        let _ = write!(terminal.out, "{text}");
        DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            };
            match run(words(line), &mut terminal) {
                Ended::Other(Other::Mcp { binding, .. }) => binding,
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
