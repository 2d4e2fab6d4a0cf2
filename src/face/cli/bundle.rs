//! `ocx bundle`: makes, shows and imports files that hold check-ins.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use serde::Serialize;

use super::bar::Bar;
use super::options;
use super::target::{Target, repository};
use super::terminal::Terminal;
use crate::bundle::Bundle;
use crate::bundle::{Contents, Exported, Import, Imported, Selection};
use crate::error::{Error, Kind, Result};
use crate::name::{Branch, Hash, shown};

/// The command and its four parts.
pub fn command() -> Command {
    Command::new("bundle")
        .about("Carry check-ins in a file: make a bundle, look into it, take it in")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(
            [
                export_command(),
                with_common("import", "Take all of a bundle into the repository, or nothing", "The bundle"),
                with_common("ls", "List the check-ins of a bundle", "The bundle"),
                with_common("verify", "Verify every artifact of a bundle without importing it", "The bundle"),
            ]
            .map(options::fitted),
        )
}

fn with_common(name: &'static str, about: &'static str, file: &'static str) -> Command {
    let path = |name| Arg::new(name).value_parser(value_parser!(PathBuf));
    Command::new(name)
        .about(about)
        .arg(path("file").value_name("FILE").required(true).help(file))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the outcome as JSON"))
}

fn export_command() -> Command {
    let named = |name: &'static str| Arg::new(name).long(name).value_name("CHECK-IN");
    with_common(
        "export",
        "Write check-ins with their files and tags into a new bundle file",
        "The file to make",
    )
    .arg(Arg::new("branch").long("branch").value_name("BRANCH").help("All check-ins of a branch"))
    .arg(named("from").requires("to").help("The first of a range of check-ins"))
    .arg(named("to").requires("from").help("The last of the range"))
    .arg(named("check-in").help("One check-in"))
    .arg(named("descendants").help("All descendants of a check-in, without itself"))
    .arg(
        named("have")
            .value_name("HASH")
            .help("What the receiver holds: a check-in's full hash. Deltas may build on it"),
    )
    .arg(
        Arg::new("wire")
            .long("wire")
            .action(ArgAction::SetTrue)
            .help("Write the smaller form for the wire, which only OCX reads"),
    )
    .group(ArgGroup::new("which").args(["branch", "from", "check-in", "descendants"]).required(true))
}

/// Runs one of the parts and returns the text to print.
pub fn run(given: &ArgMatches, folder: &Path, terminal: &Terminal<'_>) -> Result<String> {
    let Some((part, given)) = given.subcommand() else { return Ok(String::new()) };
    let file = folder.join(given.get_one::<PathBuf>("file").map_or(Path::new(""), PathBuf::as_path));
    let is_json = given.get_flag("json");
    match part {
        "export" => {
            let hint = "Publish them first with `ocx fossil publish`.";
            let exported = export(given, folder, &file, terminal)
                .map_err(|e| if e.kind() == Kind::Denied { e.with_hint(hint) } else { e })?;
            said(&exported, is_json, || exported_words(&exported, &file))
        }
        "import" => {
            let imported = import(given, &file, terminal)?;
            said(&imported, is_json, || imported_words(&imported))
        }
        _ => {
            let contents = contents(given, folder, &file)?;
            said(&contents, is_json, || if part == "ls" { listed(&contents) } else { verified(&contents) })
        }
    }
}

fn said(outcome: &impl Serialize, is_json: bool, words: impl FnOnce() -> String) -> Result<String> {
    if !is_json {
        return Ok(words());
    }
    serde_json::to_string(outcome)
        .map_err(|e| Error::new(Kind::Internal, "the outcome cannot be written as JSON").caused_by(e))
}

fn export(given: &ArgMatches, folder: &Path, file: &Path, terminal: &Terminal<'_>) -> Result<Exported> {
    let repository = repository(given, folder, terminal.global_settings.as_deref())?;
    let store = repository.store();
    let text = |name: &str| given.get_one::<String>(name).map(String::as_str);
    let selection = if let Some(branch) = text("branch") {
        Selection::branch(Branch::parse(branch)?)
    } else if let (Some(from), Some(to)) = (text("from"), text("to")) {
        Selection::range(store.resolve(from)?, store.resolve(to)?)
    } else if let Some(one) = text("check-in") {
        Selection::one(store.resolve(one)?)
    } else {
        Selection::descendants(store.resolve(text("descendants").unwrap_or_default())?)
    };
    let selection = match text("have") {
        Some(have) => selection.for_one_who_has(Hash::parse(have)?),
        None => selection,
    };
    let bar = Bar::new("exporting", terminal);
    let selection = match bar.progress() {
        Some(progress) => selection.with_progress(progress),
        None => selection,
    };
    if !given.get_flag("wire") {
        return repository.export_bundle(file, &selection);
    }
    let unpacked = tempfile::tempdir().map_err(|e| Error::io("no room for a bundle", e))?;
    let unpacked = unpacked.path().join("bundle");
    let exported = repository.export_bundle(&unpacked, &selection)?;
    let size = Bundle::open(&unpacked)?.save_wire(file)?;
    Ok(Exported { size, ..exported })
}

fn import(given: &ArgMatches, file: &Path, terminal: &Terminal<'_>) -> Result<Imported> {
    let bundle = Bundle::open(file)?;
    let (repository, user) = Target::of(given)?.acting(terminal.global_settings.as_deref())?;
    let bar = Bar::new("importing", terminal);
    repository.import_bundle(&bundle, &Import { progress: bar.progress(), ..Import::by(user) })
}

/// The contents of a bundle. A standalone bundle needs no repository.
fn contents(given: &ArgMatches, folder: &Path, file: &Path) -> Result<Contents> {
    let bundle = Bundle::open(file)?;
    let contents = if bundle.is_standalone() {
        bundle.contents()?
    } else {
        bundle.contents_with(repository(given, folder, None)?.store())?
    };
    // A bundle in the form for the wire was unpacked: people ask for the size of the file that they have.
    let size = file.metadata().map_or(contents.size, |meta| meta.len());
    Ok(Contents { size, ..contents })
}

fn exported_words(exported: &Exported, file: &Path) -> String {
    format!(
        "Wrote {} check-ins, {} artifacts in all, into {} ({} bytes).",
        exported.check_ins.len(),
        exported.artifacts,
        file.display(),
        exported.size
    )
}

fn imported_words(imported: &Imported) -> String {
    let mut words = format!(
        "Took in {} check-ins; {} artifacts are new, {} were here already.",
        imported.check_ins.len(),
        imported.artifacts,
        imported.present
    );
    if let Some(last) = imported.check_ins.last() {
        let _ = write!(words, "\nThe newest is {last}.");
    }
    if let [one, rest @ ..] = imported.gaps.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        let _ = write!(
            words,
            "\nThey name `{one}`{more}, which nobody here has: it was left out where they come from."
        );
    }
    words
}

fn listed(contents: &Contents) -> String {
    let mut words =
        format!("project {}", shown(contents.project_code.as_deref().unwrap_or("none").as_bytes()));
    for one in &contents.check_ins {
        let line = one.comment.lines().next().unwrap_or_default();
        let branch = one.branch.as_deref().unwrap_or("(the parent's branch)");
        let _ = write!(
            words,
            "\n{} {} {} on {}: {}",
            one.hash.short(),
            shown(one.date.as_bytes()),
            shown(one.user.as_bytes()),
            shown(branch.as_bytes()),
            shown(line.as_bytes())
        );
    }
    let _ = write!(words, "\n{}", verified(contents));
    words
}

fn verified(contents: &Contents) -> String {
    format!(
        "{} artifacts verified: {} check-ins, {} other control artifacts, {} bytes expanded, {} in the file, {} bases outside.",
        contents.artifacts,
        contents.check_ins.len(),
        contents.other_controls,
        contents.expanded,
        contents.size,
        contents.bases.len()
    )
}
