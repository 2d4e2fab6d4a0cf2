//! The catalogue as commands, and the few commands that make the places where tools work.
//!
//! Nothing here reads the state of the process. The program passes in the arguments, the streams, and whether there is
//! a terminal.

mod arguments;
mod bar;
mod bundle;
mod options;
mod paste;
mod place;
mod serve;
mod show;
mod sync;
mod target;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::ArgMatches;
use serde_json::Value;

pub use self::serve::{Listen, Place, Serve};
pub use self::target::Target;
use self::terminal::{DONE, REFUSED, USAGE};
pub use self::terminal::{Terminal, complain};
use crate::error::{Error, Kind};
use crate::process::Supervisor;
use crate::tool::{self, Answer, CallControl, Catalogue};

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
        [first, rest @ ..] => match first.as_bytes().strip_prefix(b"-C") {
            Some(folder) => {
                let folder = folder.strip_prefix(b"=").unwrap_or(folder);
                (Some(PathBuf::from(OsStr::from_bytes(folder))), rest)
            }
            None => (None, args),
        },
        [] => return None,
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
    let Some((command, given)) = matches.subcommand() else {
        return Next::Exit(USAGE);
    };
    if let Some(words) = options::refused(&matches) {
        return Next::Exit(terminal.refuse(&words));
    }
    let target = Target::of(&matches);
    match (command, target) {
        ("demo", _) => Next::Demo,
        ("fossil" | Supervisor::ARGUMENT, _) => Next::Exit(
            terminal.refuse(&format!("`{command}` must be the first word, or stand behind `-C DIR`")),
        ),
        ("mcp", Ok(target)) => Next::Serve(Serve::of(target, given)),
        (_, Ok(target)) => Next::Exit(run_command(&matches, (command, given), target, terminal)),
        (_, Err(e)) => {
            Next::Exit(terminal.say(&options::names(&matches), options::wants_json(&matches), Err(e)))
        }
    }
}

/// Runs one of the commands that end with what they print, and returns its exit code.
fn run_command(
    matches: &ArgMatches,
    (command, given): (&str, &ArgMatches),
    target: Target,
    terminal: &mut Terminal<'_>,
) -> u8 {
    let folder = target.folder.clone();
    let made = match command {
        "bundle" => Some(bundle::run(given, &folder, terminal)),
        _ => place::run(command, given, &folder, terminal)
            .or_else(|| sync::run(command, given, &folder, terminal)),
    };
    match made {
        Some(done) => terminal.say(&options::names(matches), options::wants_json(matches), done),
        // A caller that does not read what is written learns of the failure from the exit code.
        None => run_tool(command, given, target, terminal).unwrap_or(REFUSED),
    }
}

fn run_tool(
    command: &str,
    given: &ArgMatches,
    target: Target,
    terminal: &mut Terminal<'_>,
) -> std::io::Result<u8> {
    let json = given.get_flag("json") || command == "call";
    let (name, input) = if command == "call" {
        match called(given, terminal) {
            Ok(call) => call,
            Err((name, e)) => {
                writeln!(terminal.out, "{}", Answer::refused(&name, false, Vec::new(), e.into()))?;
                return Ok(USAGE);
            }
        }
    } else {
        let declared = Catalogue::whole().declarations().find(|d| d.command() == command);
        let Some(declaration) = declared else { return Ok(USAGE) };
        (declaration.name.to_owned(), arguments::input(declaration, given))
    };
    let words = target.words();
    let service = target.service(terminal.state.clone()).with_password(terminal.password.as_deref());
    let service = service.with_global_settings(terminal.global_settings.clone());
    let answer = tool::call(&service, &name, input, &CallControl::patient());
    if json {
        writeln!(terminal.out, "{answer}")?;
    } else {
        terminal.show(&answer, &words)?;
    }
    Ok(if answer.ok() { DONE } else { REFUSED })
}

/// The tool and the input of `ocx call`. The input `-` means standard input.
fn called(given: &ArgMatches, terminal: &mut Terminal<'_>) -> Result<(String, Value), (String, Error)> {
    let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
    let mut input = text("input");
    let tool = text("tool");
    if input == "-" {
        input.clear();
        let read = terminal.input.read_to_string(&mut input);
        read.map_err(|e| (tool.clone(), Error::io("cannot read standard input", e)))?;
    }
    match serde_json::from_str(&input) {
        Ok(input) => Ok((tool, input)),
        Err(e) => Err((
            tool,
            Error::new(Kind::Invalid, format!("the input is not JSON: {e}"))
                .with_hint("Give one JSON object, such as '{\"path\":\"README.md\"}'."),
        )),
    }
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
        for line in ["-Cdir fossil info", "-C=dir fossil info"] {
            let taken = verbatim(&words(line), "fossil");
            assert_eq!(taken, Some((Some(PathBuf::from("dir")), words("info"))), "{line}");
        }
        for line in ["read fossil", "-R x fossil info", "-C", "-C fossil"] {
            assert_eq!(verbatim(&words(line), "fossil"), None, "{line}");
        }
    }

    /// Runs a command line, and returns what came of it and what it wrote.
    fn ran(args: Vec<OsString>) -> (Next, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut input = std::io::empty();
        let mut terminal = Terminal::on(&mut input, &mut out, &mut err);
        let next = run(args, &mut terminal);
        out.extend(err);
        (next, String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn no_command_with_any_options_panics_and_a_useless_option_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        let (repository, user) = (["-R", "none.fossil"], ["--user", "bob"]);
        let mut lines = Vec::new();
        for command in arguments::command().get_subcommands() {
            let parts: Vec<_> = command.get_subcommands().map(|part| part.get_name().to_owned()).collect();
            let name = command.get_name().to_owned();
            lines.push(vec![name.clone()]);
            lines.extend(parts.into_iter().map(|part| vec![name.clone(), part]));
        }
        for line in lines {
            for (options, given) in
                [vec![], repository.to_vec(), user.to_vec(), [repository, user].concat()].iter().enumerate()
            {
                for (before, rest) in
                    [(true, vec![]), (true, vec!["x"]), (true, vec!["x", "y"]), (false, vec!["x"])]
                {
                    let options_first = if before { given.clone() } else { Vec::new() };
                    let options_last = if before { Vec::new() } else { given.clone() };
                    let words = ["-C", &here].into_iter().chain(options_first);
                    let words = words.chain(line.iter().map(String::as_str)).chain(rest).chain(options_last);
                    let words: Vec<OsString> = words.map(OsString::from).collect();
                    let (next, said) = ran(words.clone());
                    let useless = said.contains("has no use for") || said.contains("belongs to Fossil");
                    assert!(!useless || said.lines().count() == 1, "{words:?}: {said}");
                    assert!(!useless || next == Next::Exit(USAGE), "{words:?}");
                    assert!(options > 0 || !useless, "{words:?}: {said}");
                }
            }
        }
        assert!(!folder.path().join("none.fossil").exists());
    }

    #[test]
    fn an_option_that_a_command_has_no_use_for_is_neither_taken_nor_offered() {
        for (line, option) in [
            ("-R a init b", "-R"),
            ("init b -R a", "-R"),
            ("clone http://h/ b -R a", "-R"),
            ("open a b -R c", "-R"),
            ("bundle export f --check-in trunk --user nosuch", "--user"),
            ("--user nosuch bundle ls f", "--user"),
            ("push --user bob", "--user"),
            ("-R a merge trunk", "-R"),
            ("--user bob update", "--user"),
            ("-R x.fossil fossil info", "-R"),
            ("--user bob fossil wiki list -R x.fossil", "--user"),
        ] {
            let (next, said) = ran(words(line));
            assert_eq!(next, Next::Exit(USAGE), "{line}: {said}");
            assert!(said.starts_with("ocx: ") && said.contains(&format!("`{option}")), "{line}: {said}");
            assert_eq!(said.lines().count(), 1, "{line}: {said}");
        }
        for (line, offered) in [
            ("init --help", [false, true]),
            ("update --help", [false, false]),
            ("push --help", [true, false]),
            ("bundle export --help", [true, false]),
            ("bundle import --help", [true, true]),
            ("wiki-read --help", [true, true]),
            ("edit --help", [false, true]),
            ("mcp --help", [true, true]),
        ] {
            let help = ran(words(line)).1;
            assert_eq!([help.contains("-R, --repo"), help.contains("--user")], offered, "{line}: {help}");
        }
    }

    #[test]
    fn a_refusal_is_json_on_standard_output_if_json_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        for (line, tool) in [
            ("push --json", "push"),
            ("pull --json", "pull"),
            ("bundle ls none --json", "bundle ls"),
            ("call ocx_read {bad", "ocx_read"),
        ] {
            let (next, said) = ran([words(&format!("-C {here}")), words(line)].concat());
            assert!(matches!(next, Next::Exit(1 | 2)), "{line}: {next:?}");
            let answer: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{line}: {e}: {said}"));
            assert_eq!((&answer["ok"], &answer["tool"]), (&Value::Bool(false), &tool.into()), "{said}");
            assert!(answer["stopped"].is_string() && answer["next_step"].is_string(), "{said}");
        }
    }

    #[test]
    fn a_server_that_others_reach_is_remote_to_its_callers() {
        let bound = |line: &str| {
            let mut input = std::io::empty();
            let mut out = std::io::sink();
            let mut err = std::io::sink();
            let mut terminal = Terminal::on(&mut input, &mut out, &mut err);
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
