//! One call: its repository, its checkout where there is one, who calls, and what controls it.

use std::cell::OnceCell;

use parking_lot::MutexGuard;
use serde_json::Value;

use super::answer::NextCall;
use super::binding::Binding;
use super::control::CallControl;
use super::declare::{Declaration, Declarations};
use super::place::{Open, Place};
use crate::error::{Error, Kind, Result};
use crate::name::{Hash, User};
use crate::repo::Repository;
use crate::repo::store::Store;
use crate::sync::{Remote, SyncOptions, Synced};
use crate::work::Workspace;

/// One call. It has a repository for every tool, and a workspace for those that act on files.
pub struct Call<'a> {
    place: &'a Place,
    declarations: &'a Declarations,
    binding: Binding,
    tool: &'static str,
    open: Open,
    /// Who calls.
    user: User,
    /// Whose the checkout is, where there is one.
    owner: Option<User>,
    control: &'a CallControl,
    /// The server as the store names it, looked up once.
    server: OnceCell<Option<Remote>>,
    /// The server with the login there, asked for once.
    remote: OnceCell<Option<Remote>>,
}

/// What a call takes from its service.
pub(super) struct Origin<'a> {
    pub place: &'a Place,
    pub declarations: &'a Declarations,
    pub binding: Binding,
    pub login: Option<&'a User>,
    pub control: &'a CallControl,
}

impl<'a> Call<'a> {
    /// Opens the place and checks that the caller may call the tool.
    pub(super) fn open(from: &Origin<'a>, tool: &'static Declaration) -> Result<Self> {
        let open = from.place.open()?;
        let owner = match &open {
            Open::Checkout(workspace) => Some(workspace.checkout().user()?),
            Open::Repository(_) => None,
        };
        let user = match from.login.or(owner.as_ref()) {
            Some(user) => user.clone(),
            None => default_user(open.repository().store())?,
        };
        let call = Self {
            place: from.place,
            declarations: from.declarations,
            binding: from.binding,
            tool: tool.name,
            open,
            user,
            owner,
            control: from.control,
            server: OnceCell::new(),
            remote: OnceCell::new(),
        };
        if from.login.is_some() && call.store().user(&call.user)?.is_none() {
            let what = format!("the repository has no user `{}`", call.user);
            return Err(Error::new(Kind::Denied, what)
                .with_hint("Have someone with setup add the login, or call as another."));
        }
        call.require(tool.needs.letters(), tool.name)?;
        Ok(call)
    }

    /// Whether the caller has one of these capability letters, where there are any.
    ///
    /// # Errors
    /// Those of reading the repository.
    pub(super) fn may(&self, letters: &str) -> Result<bool> {
        let has = self.store().capabilities(&self.user)?;
        Ok(letters.is_empty() || letters.chars().any(|letter| has.has(letter)))
    }

    /// Refuses unless the caller [may](Self::may) do what needs these letters.
    ///
    /// # Errors
    /// `Denied`, and those of reading the repository.
    pub(super) fn require(&self, letters: &str, what: &str) -> Result<()> {
        if self.may(letters)? {
            return Ok(());
        }
        let letters: Vec<String> = letters.chars().map(|letter| format!("`{letter}`")).collect();
        let what =
            format!("the user `{}` lacks capability {}, which {what} needs", self.user, letters.join(" or "));
        Err(Error::new(Kind::Denied, what).with_hint(
            "Have someone with setup give it (`ocx fossil user capabilities`), or call as another user.",
        ))
    }

    /// Refuses a caller who is not the checkout's user what acts on its files. A check-in would carry that user's name.
    ///
    /// # Errors
    /// `Denied`.
    pub(super) fn require_own_checkout(&self, what: &str) -> Result<()> {
        let Some(owner) = self.owner.as_ref().filter(|owner| **owner != self.user) else { return Ok(()) };
        let what = format!(
            "`{what}` acts on the files of this checkout, which are `{owner}`'s alone, and you are `{}`",
            self.user
        );
        Err(Error::new(Kind::Denied, what).with_hint(
            "Nothing was changed. What reads and what writes records (ocx_post, ocx_audit, ocx_wiki_edit, ...) is open to \
             you; to change files, have a checkout of your own opened and served.",
        ))
    }

    /// Whether there is a checkout, and the caller is its user.
    #[must_use]
    pub fn owns_checkout(&self) -> bool {
        self.owner.as_ref() == Some(&self.user)
    }

    /// Whose the checkout is, where there is one.
    #[must_use]
    pub fn owner(&self) -> Option<&User> {
        self.owner.as_ref()
    }

    /// Where the call acts, seen from the caller.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// The declarations of all tools of this service.
    pub(super) fn declarations(&self) -> &Declarations {
        self.declarations
    }

    /// Waits until no other call of this process writes here.
    pub(super) fn turn(&self) -> MutexGuard<'a, ()> {
        self.place.turn()
    }

    /// The workspace.
    ///
    /// # Errors
    /// `NotFound` where there is a repository and no checkout.
    pub fn workspace(&self) -> Result<&Workspace> {
        match &self.open {
            Open::Checkout(workspace) => Ok(workspace),
            Open::Repository(repository) => Err(needs_checkout(self.tool, repository)),
        }
    }

    /// The workspace, where there is a checkout.
    #[must_use]
    pub fn workspace_if_any(&self) -> Option<&Workspace> {
        match &self.open {
            Open::Checkout(workspace) => Some(workspace),
            Open::Repository(_) => None,
        }
    }

    /// The repository.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        self.open.repository()
    }

    /// The repository, read.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.repository().store()
    }

    /// Who calls.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.user
    }

    /// What controls the call.
    #[must_use]
    pub fn control(&self) -> &CallControl {
        self.control
    }

    /// Whether there is a server to push to.
    ///
    /// # Errors
    /// Those of reading the repository; `Invalid` or `Unsupported` when its URL is none that OCX can use.
    pub fn has_remote(&self) -> Result<bool> {
        Ok(self.server()?.is_some())
    }

    /// The server, with the login there.
    ///
    /// # Errors
    /// As [`remote`](Repository::remote).
    pub fn remote(&self) -> Result<Option<&Remote>> {
        if let Some(remote) = self.remote.get() {
            return Ok(remote.as_ref());
        }
        let remote = self.repository().remote()?.map(|r| r.with_password(self.place.password()));
        Ok(self.remote.get_or_init(|| remote).as_ref())
    }

    /// The page of an artifact on the server, where there is one.
    ///
    /// # Errors
    /// As [`has_remote`](Self::has_remote).
    pub fn link(&self, artifact: &Hash) -> Result<Option<String>> {
        let server = self.server()?;
        Ok(server.map(|server| format!("{}/info/{artifact}", server.to_string().trim_end_matches('/'))))
    }

    /// The server as the repository names it, without a password.
    ///
    /// # Errors
    /// As [`has_remote`](Self::has_remote).
    pub fn server(&self) -> Result<Option<&Remote>> {
        if let Some(server) = self.server.get() {
            return Ok(server.as_ref());
        }
        let server = self.repository().remote_without_password()?;
        Ok(self.server.get_or_init(|| server).as_ref())
    }

    /// Sends what is unsent to the server. Returns nothing if there is none.
    ///
    /// # Errors
    /// As [`sync`](Repository::sync).
    pub fn send(&self, options: &SyncOptions) -> Result<Option<Synced>> {
        let Some(remote) = self.remote()? else { return Ok(None) };
        match &self.open {
            Open::Checkout(workspace) => workspace.send(remote, options).map(Some),
            Open::Repository(repository) => repository.sync(remote, options).map(Some),
        }
    }

    /// The same call with another input.
    pub(super) fn again(&self, input: Value) -> NextCall {
        NextCall::new(self.tool, input)
    }
}

/// The login of one who names none, as plain Fossil chooses it for a local repository.
fn default_user(store: &Store) -> Result<User> {
    store.default_user()?.ok_or_else(|| {
        Error::new(Kind::NotFound, "the repository has no default user, and none who may do everything")
            .with_hint("Name the login to act as with `ocx --user LOGIN`.")
    })
}

fn needs_checkout(tool: &str, repository: &Repository) -> Error {
    let file = repository.path().file_name().unwrap_or_default();
    let what = format!(
        "this call needs a checkout: `{tool}` acts on files, and there is only the repository `{}` here",
        crate::name::shown(file.as_encoded_bytes())
    );
    Error::new(Kind::NotFound, what).with_hint(
        "Open the repository into a folder with `ocx open REPO DIR`, and call there (`ocx -C DIR`). Wiki, forum, audits, \
         queue and unversioned files need no checkout.",
    )
}
