//! Where calls act and as whom: one checkout, opened when first needed, and the login that it belongs to or that the
//! caller has proved.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::answer::{NextCall, Refusal};
use super::binding::Binding;
use super::control::CallControl;
use super::declare::Declaration;
use super::input::Input;
use super::read::{FILE_BYTES_MAX, not_there};
use super::repair;
use super::result::ToolResult;
use crate::checkout::Checkout;
use crate::error::{Error, Kind, Result};
use crate::name::Password;
use crate::name::{Hash, TreePath, User};
use crate::process::Leash;
use crate::repo::store::{Files, Store};
use crate::tree::{Found, Search, Tree};
use crate::work::Run;

/// Where calls act: the checkout that holds a folder. Clones share it.
#[derive(Clone)]
pub struct Service {
    folder: PathBuf,
    leash: Leash,
    password: Option<Password>,
    binding: Binding,
    login: Option<User>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    run: Mutex<Option<Arc<Run>>>,
    /// Held by the one call that writes in the checkout.
    writing: Mutex<()>,
}

impl Service {
    /// A service in the checkout that holds `folder`; there need not be one yet. Only for the `ocx` program:
    /// it keeps test commands on a leash that is the program itself.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self::with_leash(folder, Leash::this_program())
    }

    /// As [`at`](Self::at), for a host that is another program.
    #[must_use]
    pub fn with_leash(folder: impl Into<PathBuf>, leash: Leash) -> Self {
        Self {
            folder: folder.into(),
            leash,
            password: None,
            binding: Binding::default(),
            login: None,
            shared: Arc::default(),
        }
    }

    /// The same, bound so.
    #[must_use]
    pub fn bound(self, binding: Binding) -> Self {
        Self { binding, ..self }
    }

    /// Where its calls act, seen from who makes them.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// The same for a caller who has proved to be `login`, instead of the checkout's user. Its rights are those of that
    /// login in the repository.
    #[must_use]
    pub fn acting_as(&self, login: User) -> Self {
        Self { login: Some(login), ..self.clone() }
    }

    /// The same with the password for the server, used where the repository keeps none. It is written nowhere.
    #[must_use]
    pub fn with_password(self, password: Option<&str>) -> Self {
        Self { password: password.and_then(|p| Password::parse(p).ok()), ..self }
    }

    /// The run of the checkout; opened again when the checkout was closed or replaced meanwhile.
    fn run(&self) -> Result<Arc<Run>> {
        let mut run = self.shared.run.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = run.as_ref().filter(|r| r.checkout().is_there()) {
            return Ok(Arc::clone(open));
        }
        let checkout = Checkout::at(&self.folder).map_err(|e| self.no_checkout(e))?;
        let opened = Arc::new(Run::open(checkout, self.leash.clone()).with_password(self.password.clone()));
        *run = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Lets go of the checkout; the next call opens it anew.
    pub(super) fn forget(&self) {
        self.shared.run.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn no_checkout(&self, error: Error) -> Error {
        if error.kind() != Kind::NotFound {
            return error;
        }
        let folder = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        Error::new(
            Kind::NotFound,
            format!("no Fossil checkout in `{}` or above it: {error}", folder.display()),
        )
        .with_hint(
            "Open one with `ocx open REPO DIR` and start ocx there, or name its folder with `ocx -C DIR`.",
        )
        .caused_by(error)
    }
}

/// One call: where it acts, as whom, and what watches it.
pub struct Call<'a> {
    service: &'a Service,
    tool: &'static str,
    run: Arc<Run>,
    /// Who calls.
    user: User,
    /// Whose the checkout is.
    owner: User,
    control: &'a CallControl,
}

impl<'a> Call<'a> {
    /// Opens the checkout and checks that the caller may call the tool.
    pub(super) fn open(
        service: &'a Service,
        tool: &'static Declaration,
        control: &'a CallControl,
    ) -> Result<Self> {
        let run = service.run()?;
        let owner = run.checkout().user()?;
        let user = service.login.clone().unwrap_or_else(|| owner.clone());
        let call = Self { service, tool: tool.name, run, user, owner, control };
        if service.login.is_some() && call.store().user(&call.user)?.is_none() {
            let what = format!("the repository has no user `{}`", call.user);
            return Err(Error::new(Kind::Denied, what)
                .with_hint("Have someone with setup add the login, or call with the token of another."));
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
            "Have someone with setup give it (`ocx fossil user capabilities`), or open the checkout as another user.",
        ))
    }

    /// Refuses a caller who is not the checkout's user what acts on its files: a check-in would carry that user's name.
    ///
    /// # Errors
    /// `Denied`.
    pub(super) fn require_own_checkout(&self, what: &str) -> Result<()> {
        if self.owns_checkout() {
            return Ok(());
        }
        let what = format!(
            "`{what}` acts on the files of this checkout, which are `{}`'s alone, and you are `{}`",
            self.owner, self.user
        );
        Err(Error::new(Kind::Denied, what).with_hint(
            "Nothing was changed. What reads and what writes records (ocx_post, ocx_audit, ocx_wiki_edit, ...) is open to \
             you; to change files, have a checkout of your own opened and served.",
        ))
    }

    /// Whether the caller is the checkout's user.
    #[must_use]
    pub fn owns_checkout(&self) -> bool {
        self.user == self.owner
    }

    /// Whose the checkout is.
    #[must_use]
    pub fn owner(&self) -> &User {
        &self.owner
    }

    /// Where the call acts, seen from the caller.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.service.binding
    }

    /// Waits until no other call of this process writes in the checkout.
    pub(super) fn turn(&self) -> MutexGuard<'a, ()> {
        self.service.shared.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The repository, read.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.run.checkout().repository().store()
    }

    /// The checkout's files.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        self.run.checkout().tree()
    }

    /// Who calls.
    #[must_use]
    pub fn user(&self) -> &User {
        &self.user
    }

    /// What watches the call.
    #[must_use]
    pub fn control(&self) -> &CallControl {
        self.control
    }

    /// The same call with another input.
    pub(super) fn again(&self, input: Value) -> NextCall {
        NextCall::new(self.tool, input)
    }

    /// The path that the input names, as `parse` takes it. What it does not take comes with the same call of the file
    /// that was probably meant; with `may_be_new` that need not be there.
    ///
    /// # Errors
    /// Those of `parse`.
    pub(super) fn path(
        &self,
        input: &Input,
        may_be_new: bool,
        parse: impl Fn(&str) -> Result<TreePath>,
    ) -> Result<TreePath, Refusal> {
        let text = input.required("path")?;
        parse(text).map_err(|error| {
            let meant = repair::path(self, text, may_be_new).filter(|path| parse(path.as_str()).is_ok());
            Refusal::from(error).or_next(meant.map(|path| self.again(input.with("path", path.as_str()))))
        })
    }

    /// The content of a file of the checkout, and its SHA3-256.
    ///
    /// # Errors
    /// As [`Tree::read`]; a path that is not there comes with the call that `offer` makes of the nearest one that is.
    pub(super) fn read_file(
        &self,
        path: &TreePath,
        offer: &dyn Fn(&TreePath) -> NextCall,
    ) -> Result<(Vec<u8>, Hash), Refusal> {
        self.run.checkout().read_file(path, FILE_BYTES_MAX).map_err(|e| match (e.kind(), self.tracked()) {
            (Kind::NotFound, Ok(files)) => not_there(e, path, &files.keys(), offer),
            (Kind::Invalid, Ok(files)) => match entries(files.keys(), Some(path)) {
                none if none.is_empty() => Refusal::from(e),
                some => Refusal::from(e.with_hint("Name a file; the folder's entries are in `result`."))
                    .reached(FolderResult { folder: path.to_string(), entries: shortened(some) }),
            },
            (_, _) => Refusal::from(e),
        })
    }

    /// The same, and nothing when there is no such file.
    ///
    /// # Errors
    /// As [`Tree::read`], but for a file that is not there.
    pub fn read_if_there(&self, path: &TreePath) -> Result<Option<(Vec<u8>, Hash)>, Refusal> {
        match self.run.checkout().read_file(path, FILE_BYTES_MAX) {
            Ok(content) => Ok(Some(content)),
            Err(e) if e.kind() == Kind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Looks for a text in the files that a save would commit.
    ///
    /// # Errors
    /// As [`Tree::find`].
    pub fn find(&self, text: &[u8], under: Option<&TreePath>, limit: usize) -> Result<Found> {
        let ignore = self.run.checkout().ignore()?;
        let tracked = self.tracked()?;
        self.tree().find(text, &Search { under, ignore: &ignore, tracked: &*tracked, limit })
    }

    /// The files of the check-in that the checkout builds on.
    ///
    /// # Errors
    /// Those of reading the checkout and the repository.
    pub fn tracked(&self) -> Result<Arc<Files>> {
        self.store().files(&self.run.checkout().parent()?)
    }
}

/// What a refusal gives of a folder where a file is wanted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct FolderResult {
    folder: String,
    entries: Vec<String>,
}

impl ToolResult for FolderResult {}

/// How many entries of a folder are shown.
const ENTRIES_MAX: usize = 60;

/// What lies directly in a folder, or at the top: files by name, folders with `/` and how many files they hold.
pub(super) fn entries<'a>(
    files: impl Iterator<Item = &'a TreePath>,
    folder: Option<&TreePath>,
) -> Vec<String> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for path in files.filter(|p| folder.is_none_or(|f| *p != f && p.is_within(f))) {
        let below = folder.map_or(path.as_str(), |f| &path.as_str()[f.as_str().len() + 1..]);
        let (name, inside) =
            below.split_once('/').map_or((below.to_owned(), 0), |(f, _)| (format!("{f}/"), 1));
        match found.last_mut().filter(|(last, _)| inside == 1 && *last == name) {
            Some((_, count)) => *count += 1,
            None => found.push((name, inside)),
        }
    }
    let show = |(name, count): (String, usize)| {
        let name = crate::name::shown(name.as_bytes());
        if count == 0 { name } else { format!("{name} ({count})") }
    };
    found.into_iter().map(show).collect()
}

/// The entries that are shown, and how many there are beside them.
pub(super) fn shortened(mut entries: Vec<String>) -> Vec<String> {
    let more = entries.len().saturating_sub(ENTRIES_MAX);
    entries.truncate(ENTRIES_MAX);
    if more > 0 {
        entries.push(format!("and {more} more"));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_directly_within_with_folders_counted() {
        let files: Vec<TreePath> = ["a.c", "src/b.c", "src/x/c.c", "src/x/d.c", "srcs"]
            .iter()
            .map(|p| TreePath::parse(p).unwrap())
            .collect();
        assert_eq!(entries(files.iter(), None), ["a.c", "src/ (3)", "srcs"]);
        let src = TreePath::parse("src").unwrap();
        assert_eq!(entries(files.iter(), Some(&src)), ["b.c", "x/ (2)"]);
    }
}
