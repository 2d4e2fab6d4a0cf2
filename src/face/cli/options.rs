//! The options that stand before or behind every command: `-C`, `-R` and `--user`. A command that has no use for one of
//! them does not list it in its help, and refuses it in one line.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, value_parser};

use crate::process::Supervisor;

/// Where the help lists these options: after the command's own options.
const AFTER_OWN: usize = 100;

/// The three options.
pub fn all() -> [Arg; 3] {
    [folder(), repository(), user()].map(|option| option.global(true))
}

fn folder() -> Arg {
    Arg::new("folder")
        .short('C')
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("Act in the checkout that holds DIR instead of the current folder")
}

fn repository() -> Arg {
    Arg::new("repository")
        .short('R')
        .long("repository")
        .value_name("REPO")
        .value_parser(value_parser!(PathBuf))
        .display_order(AFTER_OWN)
        .help("Act on the repository file REPO, without a checkout")
}

fn user() -> Arg {
    Arg::new("user")
        .long("user")
        .value_name("LOGIN")
        .display_order(AFTER_OWN + 1)
        .help("Act as LOGIN instead of the checkout's or the repository's own user")
}

/// An option that some commands have no use for.
struct Useless {
    id: &'static str,
    words: &'static str,
    commands: &'static [&'static str],
}

/// Which commands have no use for which option. The tools have a use for both.
const USELESS: [Useless; 2] = [
    Useless {
        id: "repository",
        words: "-R",
        commands: &["init", "clone", "open", "update", "merge", "demo", "fossil", Supervisor::ARGUMENT],
    },
    Useless {
        id: "user",
        words: "--user",
        commands: &[
            "update",
            "merge",
            "push",
            "pull",
            "export",
            "ls",
            "verify",
            "demo",
            "fossil",
            Supervisor::ARGUMENT,
        ],
    },
];

/// The command without the options in its help that it has no use for. They are still read there, so that
/// [`refused`] can say so in words of our own.
pub fn fitted(command: Command) -> Command {
    let useless = |id: &str| USELESS.iter().any(|u| u.id == id && u.commands.contains(&command.get_name()));
    let hidden: Vec<Arg> =
        [repository(), user()].into_iter().filter(|option| useless(option.get_id().as_str())).collect();
    command.args(hidden.into_iter().map(|option| option.hide(true)))
}

/// The same for a tool that acts on files: with a repository alone it is refused, in the words of the tools.
pub fn fitted_to_files(command: Command) -> Command {
    command.arg(repository().hide(true))
}

/// Why this command line is refused: it gives an option that its command has no use for.
pub fn refused(matches: &ArgMatches) -> Option<String> {
    let names = names(matches);
    let last = names.last()?;
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let useless = USELESS.iter().find(|u| u.commands.contains(last) && given(u.id))?;
    let (command, option) = (names.join(" "), useless.words);
    Some(match *last {
        "fossil" => {
            let value = if useless.id == "user" { "LOGIN" } else { "REPO" };
            format!("`{option}` belongs to Fossil's own command: write `ocx fossil COMMAND {option} {value}`")
        }
        "init" | "open" => {
            format!("`ocx {command}` has no use for `{option}`: name the file behind `{command}`")
        }
        _ => format!("`ocx {command}` has no use for `{option}`: leave it out"),
    })
}

/// The names of a command and the commands above it, the outermost first.
pub fn names(matches: &ArgMatches) -> Vec<&str> {
    let mut names = Vec::new();
    let mut at = matches;
    while let Some((name, inner)) = at.subcommand() {
        names.push(name);
        at = inner;
    }
    names
}

/// Whether the answer is wanted as JSON.
pub fn wants_json(matches: &ArgMatches) -> bool {
    let mut at = matches;
    while let Some((_, inner)) = at.subcommand() {
        at = inner;
    }
    // Not every command has the option.
    at.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or_default()
}
