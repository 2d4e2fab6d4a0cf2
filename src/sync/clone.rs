//! A clone: all of a server's artifacts come, are judged, and are linked into a new repository. Nothing else of the server
//! is taken but its project's code and name: no users, no scripts, no settings.

use std::path::Path;

use super::fetch::{Fetch, Fetched};
use super::options::SyncOptions;
use super::peer::{Peer, check_login, private_card};
use super::pull::complete;
use super::remote::Remote;
use super::rounds::Rounds;
use crate::engine::{self, Transaction};
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::{Card, setting};
use crate::name::User;
use crate::repo::{Repository, make_aside, new_file, remove_unless, vacuum};
use crate::transfer::{Origin, compact, receive};

/// The most characters that a project's name may have.
const NAME_MAX: usize = 200;

impl Repository {
    /// Clones the repository of a server into a new file, in which `user` may do everything. Compares each artifact
    /// with its hash, and takes nothing else but the project's code and name. Remembers the server without the password.
    ///
    /// # Errors
    /// Those of [`create`](Self::create) and of [`pull`](Self::pull); `Kind::Refused` also when an artifact is
    /// not what its hash says. Nothing is left at `path`.
    pub fn clone_from(remote: &Remote, path: &Path, user: &User) -> Result<Self> {
        Self::clone_with(remote, path, user, &SyncOptions::default())
    }

    /// As [`clone_from`](Self::clone_from), with private check-ins, unversioned files or a handle that cancels, as
    /// the options say. Their direction does not matter.
    ///
    /// # Errors
    /// Those of [`clone_from`](Self::clone_from), and `Kind::Cancelled`.
    pub fn clone_with(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<Self> {
        let path = new_file(path)?;
        check_login(remote)?;
        make_aside(&path, |aside| clone_aside(remote, aside, user, options))?;
        let made = Self::open(&path).and_then(|repository| {
            repository.set_remote(Some(remote), false)?;
            if options.unversioned {
                let options = SyncOptions { push: false, pull: false, ..options.clone() };
                repository.sync(remote, &options)?;
            }
            Ok(repository)
        });
        remove_unless(made, &path)
    }
}

fn clone_aside(remote: &Remote, path: &Path, user: &User, options: &SyncOptions) -> Result<()> {
    let mut rounds = Rounds::new(Peer::stranger(remote, &options.cancel));
    let mut fetch = Fetch::new(path, &rounds.limits(), options.private, options.progress.clone())?;
    everything(&mut rounds, &mut fetch, options.private)?;
    // What was written there meanwhile, and what some artifact names and the server did not send by itself.
    let Fetched { staged, .. } = complete(&mut rounds, &mut fetch, options.private)?;
    let name = project_name(&mut rounds)?;
    engine::new_clone(path, user.as_str(), rounds.peer.project())?;
    let received = engine::transaction(path, user.as_str(), move |transaction| {
        set_name(transaction, name.as_deref())?;
        let received = receive(transaction, &staged, Origin::Server, None)?;
        compact(transaction.connection())?;
        Ok(received)
    });
    received.map_err(|e| rounds.peer.blame(e))?;
    engine::close(path)?;
    vacuum(path)
}

/// Asks for all artifacts by their numbers there.
fn everything(rounds: &mut Rounds<'_>, fetch: &mut Fetch, private: bool) -> Result<()> {
    let mut number = 1;
    let mut with_login = false;
    while number > 0 {
        let pragma = private_card(private && with_login);
        let (mut next, mut project) = (0, None);
        let cards = format!("{pragma}clone 3 {number}\n");
        let reply = rounds.exchange(cards.as_bytes(), with_login, |card| {
            match *card {
                Card::CloneGoesOn(number) => next = number,
                Card::Project(code) => project = Some(code.to_owned()),
                _ => {}
            }
            fetch.take(card)
        })?;
        if let Some(project) = project.filter(|_| rounds.peer.project().is_empty()) {
            rounds.peer.is_of(&project);
        }
        let may_log_in = !with_login && rounds.peer.remote().login().is_some();
        match reply.error() {
            // A login proves itself by the project's code, too, which only the first reply tells.
            Some(_) if may_log_in && !rounds.peer.project().is_empty() => next = 1,
            Some(e) => return Err(e),
            None if rounds.peer.project().is_empty() => return Err(no_project(&rounds.peer)),
            // What is private comes only with the login.
            None if may_log_in && private => next = 1,
            None if next != 0 && next <= number => return Err(no_end(&rounds.peer)),
            None => {}
        }
        (number, with_login) = (next, rounds.peer.remote().login().is_some());
    }
    Ok(())
}

fn no_project(peer: &Peer<'_>) -> Error {
    Error::new(Kind::Refused, format!("{peer} sent no project, so nothing was cloned"))
        .with_hint("Check the URL: it must be that of a repository on a Fossil server.")
}

fn no_end(peer: &Peer<'_>) -> Error {
    Error::new(Kind::Refused, format!("{peer} sends the same artifacts over and over"))
        .with_hint("Have the server checked; nothing of it was kept.")
}

/// The name of the server's project, if it tells one.
fn project_name(rounds: &mut Rounds<'_>) -> Result<Option<String>> {
    let mut name = None;
    let cards = format!("{}reqconfig /project\n", rounds.peer.pull_card());
    let reply = rounds.exchange(cards.as_bytes(), true, |card| {
        if let Card::Config(content) = card {
            name = name.take().or_else(|| setting(content, "project-name"));
        }
        Ok(false)
    })?;
    reply.error().map_or(Ok(()), Err)?;
    Ok(name.filter(|name| name.chars().count() <= NAME_MAX && !name.chars().any(char::is_control)))
}

fn set_name(transaction: &Transaction<'_>, name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    transaction.unprotected(|db| {
        let sql = "REPLACE INTO config(name, value, mtime) VALUES('project-name', ?1, unixepoch())";
        Ok(db.execute(sql, [name]).map(drop)?)
    })
}
