//! The commands that make the places where tools work: a repository, a clone, a checkout.

use std::path::{Path, PathBuf};

use clap::ArgMatches;

use super::bar::Bar;
use super::sync;
use super::target::{self, open_repository};
use super::terminal::Terminal;
use crate::checkout::{Checkout, MergeHow, Updated};
use crate::error::Result;
use crate::name::{User, shown};
use crate::repo::{NewRepository, Repository};
use crate::sync::{Remote, SyncOptions};
use crate::work::set_objective;

/// Runs the command if it is one of these. Returns the words that say what was made.
pub fn run(
    command: &str,
    given: &ArgMatches,
    folder: &Path,
    terminal: &Terminal<'_>,
) -> Option<Result<String>> {
    let login = terminal.login.as_deref();
    match command {
        "init" => Some(init(given, folder, login)),
        "clone" => Some(clone(given, folder, terminal)),
        "open" => Some(open(given, folder, terminal)),
        "update" => Some(update(given, folder, terminal)),
        "merge" => Some(merge(given, folder, terminal)),
        _ => None,
    }
}

fn init(given: &ArgMatches, folder: &Path, login: Option<&str>) -> Result<String> {
    let path = path(given, "file", folder);
    let name = text(given, "user").or(login).unwrap_or("admin");
    let repository = Repository::create(&path, &NewRepository { user: User::parse_new(name)? })?;
    Ok(format!("Made the repository {} with the user {name}.", repository.path().display()))
}

/// The clone's user is the user of the URL. So saves are made and pushed as the same user.
fn clone(given: &ArgMatches, folder: &Path, terminal: &Terminal<'_>) -> Result<String> {
    let path = path(given, "file", folder);
    let login = terminal.login.as_deref();
    let remote = Remote::parse(text(given, "url").unwrap_or_default())?;
    let remote = sync::reached(remote, given, folder, terminal)?;
    let user = match text(given, "user") {
        Some(name) => target::login(name)?,
        None => remote.user().cloned().map_or_else(|| User::parse(login.unwrap_or("admin")), Ok)?,
    };
    let bar = Bar::new("receiving", terminal);
    let options =
        SyncOptions { progress: bar.progress(), ..sync::taking_along(SyncOptions::default(), given) };
    let repository = Repository::clone_with(&remote, &path, &user, &options)?;
    drop(bar);
    if given.get_flag("save_password") {
        repository.set_remote(Some(&remote), true)?;
    }
    let gaps = match repository.store().phantoms()?.as_slice() {
        [] => String::new(),
        [one, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            format!(" The server does not give `{}`{more}, which others name.", one.short())
        }
    };
    Ok(format!("Cloned {remote} into {} with the user {user}.{gaps}", repository.path().display()))
}

fn open(given: &ArgMatches, folder: &Path, terminal: &Terminal<'_>) -> Result<String> {
    let file = path(given, "file", folder);
    let repository = open_repository(&file, terminal.global_settings.as_deref())?;
    let user = text(given, "user").map(target::login).transpose()?;
    let dir = path(given, "dir", folder);
    let checkout = Checkout::open(&repository, &dir, text(given, "version"), user.as_ref())?;
    if let Some(objective) = text(given, "objective") {
        set_objective(&checkout, objective)?;
    }
    Ok(format!(
        "Opened check-in {} in {} as the user {}.",
        checkout.parent()?.short(),
        checkout.root().display(),
        checkout.user()?
    ))
}

fn update(given: &ArgMatches, folder: &Path, terminal: &Terminal<'_>) -> Result<String> {
    let checkout = target::checkout(folder, terminal.global_settings.as_deref())?;
    let version = match text(given, "version") {
        Some(version) => version.to_owned(),
        None => checkout.latest()?.to_string(),
    };
    let dry_run = given.get_flag("dry_run");
    let updated = if dry_run { checkout.would_update(&version)? } else { checkout.update(&version)? };
    let is = if dry_run { "would be" } else { "is" };
    let head = format!("The checkout {is} at check-in {} now.", updated.hash.short());
    Ok(listed(head, &updated, dry_run))
}

fn merge(given: &ArgMatches, folder: &Path, terminal: &Terminal<'_>) -> Result<String> {
    let checkout = target::checkout(folder, terminal.global_settings.as_deref())?;
    let version = text(given, "version").unwrap_or_default();
    let how = [
        ("integrate", MergeHow::Integrate),
        ("cherrypick", MergeHow::Cherrypick),
        ("backout", MergeHow::Backout),
    ];
    let how = how.into_iter().find(|(flag, _)| given.get_flag(flag)).map_or(MergeHow::Whole, |(_, how)| how);
    let dry_run = given.get_flag("dry_run");
    let merged = if dry_run { checkout.would_merge(version, how)? } else { checkout.merge(version, how)? };
    let head =
        if dry_run { "These files would change:" } else { "Merged; look at the files, test and save:" };
    Ok(listed(head.to_owned(), &merged, dry_run))
}

/// What happened to each file, one file a line. Below it stands why, for a conflict, and for each file of a plan.
fn listed(head: String, updated: &Updated, is_plan: bool) -> String {
    let path = |path: &str| shown(path.as_bytes());
    let lines = updated.files.iter().map(|file| {
        let from = file.from.as_deref().map(|from| format!(" (was {})", path(from)));
        let backup = file.backup.as_deref().map(|backup| format!(" (yours is in {})", path(backup)));
        let theirs = file.theirs.as_deref().map(|theirs| format!(" (theirs is in {})", path(theirs)));
        let more = [from, backup, theirs].into_iter().flatten().collect::<String>();
        let why =
            if is_plan || file.what.is_conflict() { format!("\n    {}", file.why) } else { String::new() };
        format!("{}: {}{more}{why}", path(&file.path), file.what)
    });
    std::iter::once(head).chain(lines).collect::<Vec<_>>().join("\n")
}

fn text<'a>(given: &'a ArgMatches, name: &str) -> Option<&'a str> {
    given.get_one::<String>(name).map(String::as_str)
}

fn path(given: &ArgMatches, name: &str, folder: &Path) -> PathBuf {
    folder.join(given.get_one::<PathBuf>(name).map_or(Path::new(""), PathBuf::as_path))
}
