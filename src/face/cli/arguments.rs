//! The command line, built from the catalogue: one subcommand per tool, one flag per field.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use serde_json::{Map, Value, json};

use super::options;
use crate::process::Supervisor;
use crate::tool::{Acts, Declaration, Field, FieldKind, catalogue};

/// The whole command line.
pub fn command() -> Command {
    Command::new("ocx")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Work in a Fossil repository: tools for agents and people, with Fossil itself inside")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .args(options::all())
        .subcommands(places().map(options::fitted))
        .subcommand(super::bundle::command())
        .subcommands(super::sync::commands().map(options::fitted))
        .subcommands(catalogue::TOOLS.iter().map(|t| subcommand(t.declaration())))
        .subcommands(others().map(options::fitted))
}

/// The tool's input, from the arguments of its subcommand. A number that cannot be read stays text, so that the tool
/// refuses it.
pub fn input(tool: &Declaration, given: &ArgMatches) -> Value {
    let mut input = Map::new();
    for field in tool.fields() {
        if let Some(value) = value(field, given) {
            input.insert(field.name.into(), value);
        }
    }
    Value::Object(input)
}

fn value(field: &Field, given: &ArgMatches) -> Option<Value> {
    let texts = || given.get_many::<String>(field.name).unwrap_or_default();
    match field.kind {
        FieldKind::Flag => given.get_flag(field.name).then(|| true.into()),
        FieldKind::Switch => given.get_flag(field.name).then(|| false.into()),
        FieldKind::Number { .. } => {
            texts().next().map(|text| text.parse::<u64>().map_or_else(|_| text.as_str().into(), Value::from))
        }
        FieldKind::Logins { .. } | FieldKind::Paths { .. } | FieldKind::Wake { .. } => {
            let is_wake = matches!(field.kind, FieldKind::Wake { .. });
            let entries: Vec<Value> =
                texts().map(|text| if is_wake { event(text) } else { text.as_str().into() }).collect();
            (!entries.is_empty()).then(|| entries.into())
        }
        _ => texts().next().map(|text| text.as_str().into()),
    }
}

/// An event that wakes an agent, from the text of a flag: `post` or `check-in:BRANCH`.
fn event(text: &str) -> Value {
    match text.split_once(':') {
        Some((on, branch)) => json!({"on": on, "branch": branch}),
        None => json!({"on": text}),
    }
}

fn places() -> [Command; 5] {
    let repository =
        || Arg::new("file").value_name("REPO").required(true).value_parser(value_parser!(PathBuf));
    let user = || Arg::new("user").long("user").value_name("NAME");
    let flag = |name: &'static str, long: &'static str, help: &'static str| {
        Arg::new(name).long(long).action(ArgAction::SetTrue).help(help)
    };
    [
        Command::new("init")
            .about("Make a new repository file")
            .arg(repository().help("The file to make"))
            .arg(user().help("Its first user, who may do everything; the one in USER unless given")),
        super::sync::reaching(
            Command::new("clone")
                .about("Clone a repository from a server; the password is the URL's, or that in OCX_PASSWORD")
                .arg(
                    Arg::new("url")
                        .value_name("URL")
                        .required(true)
                        .help("http://[USER[:PASSWORD]@]HOST[:PORT]/PATH"),
                )
                .arg(repository().help("The file to make"))
                .arg(user().help("The clone's user; the URL's otherwise, or else the one in USER"))
                .arg(
                    Arg::new("save_password")
                        .long("save-password")
                        .action(ArgAction::SetTrue)
                        .help("Keep the password in the file, for later saves to push with"),
                ),
        ),
        Command::new("open")
            .about("Open a repository into a folder, as a checkout to work in")
            .arg(repository().help("The repository file"))
            .arg(
                Arg::new("dir")
                    .value_name("DIR")
                    .required(true)
                    .value_parser(value_parser!(PathBuf))
                    .help("The folder; it is made where it does not exist"),
            )
            .arg(
                Arg::new("version")
                    .value_name("VERSION")
                    .help("A branch, tag or hash; the newest of trunk otherwise"),
            )
            .arg(user().help("The user as whom saves are made"))
            .arg(
                Arg::new("objective")
                    .long("objective")
                    .value_name("TEXT")
                    .help("What the work there is for; ocx_context tells it"),
            ),
        Command::new("update")
            .about("Bring the checkout to another version, merging what is changed in it")
            .arg(
                Arg::new("version")
                    .value_name("VERSION")
                    .help("A branch, tag or hash; the newest of its own branch otherwise"),
            )
            .arg(flag("dry_run", "dry-run", "Only say what it would do")),
        Command::new("merge")
            .about("Join another version's changes into the files of the checkout")
            .arg(Arg::new("version").value_name("VERSION").required(true).help("A branch, tag or hash"))
            .arg(flag("integrate", "integrate", "Close the merged branch with the next check-in"))
            .arg(flag("cherrypick", "cherrypick", "Take the changes of that one check-in"))
            .arg(flag("backout", "backout", "Take the changes of that one check-in back"))
            .group(ArgGroup::new("how").args(["integrate", "cherrypick", "backout"]))
            .arg(flag("dry_run", "dry-run", "Only say what it would do")),
    ]
}

fn subcommand(tool: &Declaration) -> Command {
    let command = Command::new(tool.command())
        .about(tool.summary)
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print the answer as JSON, exactly as over MCP"),
        )
        .args(tool.fields().map(argument));
    if tool.acts == Acts::OnRecords { command } else { options::fitted_to_files(command) }
}

fn argument(field: &Field) -> Arg {
    let arg = Arg::new(field.name).help(field.words().into_owned()).required(field.required);
    let long = field.name.replace('_', "-");
    let arg = match field.kind {
        FieldKind::Flag => return arg.long(long).action(ArgAction::SetTrue),
        FieldKind::Switch => return arg.long(format!("no-{long}")).action(ArgAction::SetTrue),
        FieldKind::Span { .. } => arg.value_name("SPAN"),
        FieldKind::Amount { .. } => arg.value_name("AMOUNT"),
        FieldKind::Logins { .. } => arg.value_name("LOGIN").action(ArgAction::Append),
        FieldKind::Paths { .. } => arg.value_name("PATH").action(ArgAction::Append),
        FieldKind::Wake { .. } => arg.value_name("EVENT").action(ArgAction::Append),
        FieldKind::Text { .. } => arg.value_name("TEXT"),
        FieldKind::Number { .. } => arg.value_name("N"),
        FieldKind::Word(_) => arg.value_name("WORD"),
    };
    if field.positional {
        arg.value_name(field.name.to_uppercase())
    } else {
        arg.long(long).allow_hyphen_values(true)
    }
}

fn others() -> [Command; 5] {
    let rest =
        || Arg::new("args").value_name("ARGS").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    [
        Command::new("call")
            .about("Call a tool with JSON and print the answer exactly as over MCP")
            .arg(Arg::new("tool").value_name("TOOL").required(true).help("Its name, such as ocx_read"))
            .arg(
                Arg::new("input")
                    .value_name("JSON")
                    .default_value("{}")
                    .help("Its input; - reads standard input"),
            )
            .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).hide(true)),
        super::serve::command(),
        Command::new("fossil").about("Plain Fossil, all of it").disable_help_flag(true).arg(rest()),
        Command::new("demo").about("Show the main job end to end, in a temporary folder"),
        Command::new(Supervisor::ARGUMENT).hide(true).disable_help_flag(true).arg(rest()),
    ]
}
