//! The place of the demonstration: a server with its repository, and an agent's clone and checkout.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::story::Story;
use crate::checkout::{CheckIn, Checkout};
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::format::artifact::Manifest;
use crate::name::User;
use crate::repo::{NewRepository, Repository};
use crate::sync::Remote;

/// The agent's login.
pub const AGENT: &str = "scout";
const OWNER: &str = "ann";
const PASSWORD: &str = "a-demo-password";
/// The longest time that the server may take until it listens.
const START: Duration = Duration::from_secs(10);

/// The tests that the tree declares. The one test checks that the change log begins with the version of the tree.
const TESTS: &str = r#"{"tests":[{"name":"version","timeout":"1m","command":
"v=$(cat VERSION); grep -m1 'Changes for version' www/changes.wiki | grep -q \"version $v \" || { echo \"the first heading of www/changes.wiki is not that of VERSION $v\"; exit 1; }"}]}
"#;

/// The temporary folder and the server in it. Both are removed when this is dropped.
pub struct Place {
    folder: tempfile::TempDir,
    files: usize,
    port: u16,
    server: Option<Child>,
}

impl Place {
    /// Makes the server's repository from `source`, serves it, and opens a clone of it for the agent.
    pub fn make(source: &Path, story: &mut Story<'_>) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a temporary folder", e))?;
        let mut place = Self { folder, files: 0, port: free_port()?, server: None };
        let started = Instant::now();
        place.import(source)?;
        let took = started.elapsed().as_millis();
        story.say(&format!(
            "A repository with Fossil's own source tree and its tests: {} files, checked in within {took} ms",
            place.files
        ))?;
        place.start_server()?;
        let started = Instant::now();
        let remote = Remote::parse(&format!("http://{AGENT}:{PASSWORD}@127.0.0.1:{}/", place.port))?;
        let agent = User::parse(AGENT)?;
        let clone = Repository::clone_from(&remote, &place.path("clone.fossil"), &agent)?;
        clone.set_remote(Some(&remote), true)?;
        Checkout::open(&clone, &place.checkout(), None, Some(&agent))?;
        let took = started.elapsed().as_millis();
        story.say(&format!(
            "Served at {remote} and cloned from there by `{AGENT}`, opened as a checkout, in {took} ms"
        ))?;
        Ok(place)
    }

    /// The agent's checkout.
    pub fn checkout(&self) -> PathBuf {
        self.path("work")
    }

    /// The server's repository file.
    pub fn server_repository(&self) -> PathBuf {
        self.path("server.fossil")
    }

    /// How many files the tree has.
    pub fn file_count(&self) -> usize {
        self.files
    }

    /// Starts the server. It is this program, run as plain Fossil.
    pub fn start_server(&mut self) -> Result<()> {
        let cannot = |e| Error::io("cannot start the server", e);
        let child = Command::new(std::env::current_exe().map_err(cannot)?)
            .args(["fossil", "server", "--localhost", "--port", &self.port.to_string()])
            .arg(self.server_repository())
            .env("FOSSIL_HOME", self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot)?;
        let child = self.server.insert(child);
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line).map_err(cannot)?;
        }
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if started.elapsed() > START || child.try_wait().map_err(cannot)?.is_some() {
                return Err(Error::new(
                    Kind::Unreachable,
                    format!("the server does not listen: {}", line.trim()),
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Stops the server.
    pub fn stop_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            // The server may have ended by itself. In both cases nothing of it is left.
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn import(&mut self, source: &Path) -> Result<()> {
        let owner = User::parse(OWNER)?;
        let file = self.server_repository();
        let repository = Repository::create(&file, &NewRepository { user: owner.clone() })?;
        let checkout = Checkout::open(&repository, &self.path("import"), None, Some(&owner))?;
        copy_tree(source, checkout.root())?;
        let tests = checkout.root().join("ocx-tests.json");
        std::fs::write(tests, TESTS).map_err(|e| Error::io("cannot write ocx-tests.json", e))?;
        // Fossil's tree tracks some files that its own ignore rules exclude.
        let all = ["add", "--dotfiles", "--ignore", "", "."];
        engine::command(checkout.root(), &all, Some(OWNER))?;
        let status = checkout.status()?;
        self.files = status.files.len();
        let comment = format!(
            "Fossil's own source tree\nIntent: something real to work on\nExpression: {} files\nDemonstrates: ocx-tests.json",
            self.files
        );
        checkout.check_in(&CheckIn { comment, branch: None, user: owner, time: None }, &status)?;
        let path = file.to_str().unwrap_or_default();
        engine::command(
            Path::new("/"),
            &["user", "new", AGENT, "An agent", PASSWORD, "-R", path],
            Some(OWNER),
        )?;
        engine::command(Path::new("/"), &["user", "capabilities", AGENT, "gio", "-R", path], Some(OWNER))
            .map(drop)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop_server();
    }
}

/// A port that was free a moment ago. If it is no longer free, the server says so.
fn free_port() -> Result<u16> {
    let cannot = |e| Error::io("cannot find a free port", e);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(cannot)?;
    Ok(listener.local_addr().map_err(cannot)?.port())
}

/// Copies the files of a check-in. `from` is the check-in's source archive, and its manifest lists the files.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let cannot = |what: &Path, e| Error::io(format!("cannot copy `{}`", what.display()), e);
    let manifest = from.join("manifest");
    let manifest = Manifest::parse(&std::fs::read(&manifest).map_err(|e| cannot(&manifest, e))?)?;
    for file in manifest.files.iter().map(|card| &card.name) {
        let (source, target) = (from.join(file), to.join(file));
        // An archive may leave out files that no build needs.
        if source.is_file() {
            let folder = target.parent().unwrap_or(to);
            let copied = std::fs::create_dir_all(folder).and_then(|()| std::fs::copy(&source, &target));
            copied.map_err(|e| cannot(&source, e))?;
        }
    }
    Ok(())
}
