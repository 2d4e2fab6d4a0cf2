//! A service: where calls act, as whom, and the tools that it offers.

use std::path::PathBuf;

use super::answer::NextCall;
use super::binding::Binding;
use super::call::{Call, Origin};
use super::catalogue::Catalogue;
use super::control::CallControl;
use super::declare::{Acts, Declaration, Declarations};
use super::input::Input;
use super::place::Place;
use crate::error::Result;
use crate::name::{Password, TreePath, User};
use crate::process::Supervisor;
use crate::testing::StateFolder;

/// Where calls act and as whom. Clones share what is open.
///
/// ```
/// use ocx::{name::User, repo::{NewRepository, Repository}, tool::{self, CallControl, Service}};
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("r.fossil");
/// Repository::create(&path, &NewRepository { user: User::parse("ann")? })?;
/// let service = Service::of_repository(&path);
/// let answer = tool::call(&service, "ocx_wiki_read", serde_json::json!({}), &CallControl::default());
/// assert!(answer.ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Service {
    place: Place,
    binding: Binding,
    login: Option<User>,
    catalogue: Catalogue,
    declarations: Declarations,
}

impl Service {
    /// A service in the checkout that holds `folder`. There need not be one yet. Only for the `ocx` program:
    /// the program itself supervises test commands.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self::with_supervisor(folder, Supervisor::this_program())
    }

    /// As [`at`](Self::at), for a host that is another program.
    #[must_use]
    pub fn with_supervisor(folder: impl Into<PathBuf>, supervisor: Supervisor) -> Self {
        Self::in_place(Place::of_folder(folder.into(), supervisor))
    }

    /// A service on a repository file without a checkout. Calls that act on files are refused. Unless
    /// [`acting_as`](Self::acting_as) names a login, calls act as the repository's default user.
    #[must_use]
    pub fn of_repository(path: impl Into<PathBuf>) -> Self {
        Self::in_place(Place::of_repository(path.into()))
    }

    /// Without a checkout it offers only what acts on records. All that it says and lists follows from that.
    fn in_place(place: Place) -> Self {
        let catalogue = Catalogue::whole();
        let offered = |tool: &Declaration| place.is_checkout() || tool.acts == Acts::OnRecords;
        let declarations = Declarations::of(catalogue.declarations(), offered);
        Self { place, binding: Binding::default(), login: None, catalogue, declarations }
    }

    /// The same, bound so.
    #[must_use]
    pub fn bound(self, binding: Binding) -> Self {
        Self { binding, ..self }
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
        let password = password.and_then(|p| Password::parse(p).ok());
        Self { place: self.place.with_password(password), ..self }
    }

    /// The same with the folder that keeps what is known of tests, out of their reach. Without one it lies beside the
    /// repository.
    #[must_use]
    pub fn keeping_state_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { place: self.place.keeping_state_in(StateFolder::at(folder)), ..self }
    }

    /// The same for a program whose user has settings for all repositories: the path of Fossil's file of those. They
    /// count in checkouts, as for plain Fossil.
    #[must_use]
    pub fn with_global_settings(self, path: Option<PathBuf>) -> Self {
        Self { place: self.place.with_global_settings(path), ..self }
    }

    /// Where its calls act, seen from who makes them.
    #[must_use]
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// Whether its calls act in a checkout, and not on a repository alone.
    #[must_use]
    pub fn is_in_checkout(&self) -> bool {
        self.place.is_checkout()
    }

    /// The declarations of the tools that it offers.
    #[must_use]
    pub fn offered(&self) -> &Declarations {
        &self.declarations
    }

    /// What a caller is told of a tool, with the line that says what a call needs.
    #[must_use]
    pub fn description(&self, tool: &Declaration) -> String {
        self.declarations.said(&self.binding.description(tool))
    }

    /// Whether it offers this call, and the call fits its tool as far as that can be seen without the disk.
    pub(super) fn offers(&self, call: &NextCall) -> bool {
        let Some(tool) = self.catalogue.find(call.tool) else { return false };
        if Input::fits(tool.declaration(), &call.arguments).is_err() {
            return false;
        }
        let input = Input::of(call.arguments.clone());
        let here = self.is_in_checkout() || tool.acts(&input) == Acts::OnRecords;
        let is_path = input.text("path").is_none_or(|path| TreePath::parse_stored(path).is_ok());
        here && is_path && tool.judge(&input).is_ok()
    }

    /// The tools that it knows. Those that it does not offer are refused with what to do.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        self.catalogue
    }

    /// Opens a call of a tool, for a caller who may make it.
    pub(super) fn open<'a>(
        &'a self,
        tool: &'static Declaration,
        control: &'a CallControl,
    ) -> Result<Call<'a>> {
        let origin = Origin {
            place: &self.place,
            declarations: &self.declarations,
            binding: self.binding,
            login: self.login.as_ref(),
            control,
        };
        Call::open(&origin, tool)
    }

    /// Lets go of the checkout or repository. The next call opens it anew.
    pub(super) fn forget(&self) {
        self.place.forget();
    }
}
