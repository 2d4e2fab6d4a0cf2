//! `ocx push` and `ocx pull`: they sync the repository with its server. `ocx sync` is not here: it is the command of a
//! tool, and takes a bundle.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use serde_json::{Value, json};

use super::bar::Bar;
use super::target;
use super::terminal::Terminal;
use crate::error::{Error, Kind, Result};
use crate::name::Password;
use crate::sync::{Connection, Outcome, Reach, Remote, SyncOptions, Synced};

/// The two commands.
pub fn commands() -> [Command; 2] {
    let command = |name: &'static str, about: &'static str| {
        reaching(Command::new(name).about(about))
            .arg(Arg::new("url").value_name("URL").help("The server; the remembered one otherwise"))
            .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the outcome as JSON"))
    };
    [
        command("push", "Send what the server lacks, and make sure that it holds it"),
        command("pull", "Fetch what the server has and the repository lacks").arg(
            Arg::new("push")
                .long("push")
                .action(ArgAction::SetTrue)
                .help("Send what the server lacks too, in the same exchange"),
        ),
    ]
}

/// Adds the options that say what else is synced and how the server is reached.
pub fn reaching(command: Command) -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    command
        .arg(flag("private", "Take private check-ins along"))
        .arg(flag("unversioned", "Make unversioned files the same on both sides: of each the newer stays"))
        .arg(
            Arg::new("ca_file")
                .long("ca-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Trust the certificates in this PEM file too"),
        )
        .arg(Arg::new("proxy").long("proxy").value_name("URL").help("Go through this HTTP proxy"))
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(1..))
                .help("The most that one exchange with the server may take; 120 otherwise"),
        )
        .arg(
            Arg::new("whole_timeout")
                .long("whole-timeout")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(1..))
                .help("The most that all exchanges may take together; 3600 otherwise"),
        )
}

/// Runs the command if it is one of these. Returns the words that say what was done.
pub fn run(
    command: &str,
    given: &ArgMatches,
    folder: &Path,
    terminal: &Terminal<'_>,
) -> Option<Result<String>> {
    let options = match command {
        "push" => SyncOptions::push(),
        "pull" if given.get_flag("push") => SyncOptions::both(),
        "pull" => SyncOptions::pull(),
        _ => return None,
    };
    Some(synced(options, given, folder, terminal))
}

fn synced(
    options: SyncOptions,
    given: &ArgMatches,
    folder: &Path,
    terminal: &Terminal<'_>,
) -> Result<String> {
    let repository = target::repository(given, folder, terminal.global_settings.as_deref())?;
    let remote = match given.get_one::<String>("url") {
        Some(url) => Remote::parse(url)?,
        None => repository.remote()?.ok_or_else(|| {
            Error::new(Kind::NotFound, "the repository remembers no server")
                .with_hint("Give the server's URL.")
        })?,
    };
    let remote = reached(remote, given, folder, terminal)?;
    let bar = Bar::new("receiving", terminal);
    let options = SyncOptions { progress: bar.progress(), ..taking_along(options, given) };
    let synced = repository.sync(&remote, &options)?;
    drop(bar);
    if given.get_flag("json") {
        return Ok(as_json(&synced).to_string());
    }
    Ok(format!("With {remote}: {synced}."))
}

/// The options, with what the command line says is synced too.
pub fn taking_along(options: SyncOptions, given: &ArgMatches) -> SyncOptions {
    SyncOptions { private: given.get_flag("private"), unversioned: given.get_flag("unversioned"), ..options }
}

/// The remote, reached as the command line says. If it has no password, it gets the terminal's.
pub fn reached(remote: Remote, given: &ArgMatches, folder: &Path, terminal: &Terminal<'_>) -> Result<Remote> {
    let remote = match (remote.user().cloned(), terminal.password.as_deref()) {
        (Some(user), Some(password)) if remote.password().is_none() => {
            remote.with_login(user, Password::parse(password)?)
        }
        _ => remote,
    };
    let usual = Connection::default().reach().clone();
    let mut reach = usual.clone();
    if let Some(seconds) = given.get_one::<u64>("timeout") {
        reach.limits.whole = Duration::from_secs(*seconds);
    }
    if let Some(seconds) = given.get_one::<u64>("whole_timeout") {
        reach.limits.sync = Duration::from_secs(*seconds);
    }
    if let Some(file) = given.get_one::<PathBuf>("ca_file") {
        reach.ca_file = Some(folder.join(file));
    }
    if let Some(proxy) = given.get_one::<String>("proxy") {
        reach = Reach {
            limits: reach.limits,
            ca_file: reach.ca_file,
            proxy: Some(proxy.clone()),
            ..Reach::default()
        };
    }
    if reach == usual { Ok(remote) } else { Ok(remote.over(Connection::new(&reach)?)) }
}

fn as_json(synced: &Synced) -> Value {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Sent { check_ins, artifacts } => json!({"check_ins": check_ins, "artifacts": artifacts}),
        Outcome::Received { artifacts } => json!({"artifacts": artifacts}),
        _ => json!({"artifacts": 0}),
    };
    let unversioned = synced.unversioned.as_ref();
    json!({
        "sent": synced.sent.as_ref().map(outcome),
        "received": synced.received.as_ref().map(outcome),
        "unversioned": unversioned.map(|u| json!({"sent": u.sent, "received": u.received, "replaced": u.replaced})),
    })
}
