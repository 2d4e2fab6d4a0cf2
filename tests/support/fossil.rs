//! Plain Fossil as a command, and as a server on loopback.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ocx::repo::{NewRepository, Repository};
use ocx::sync::Remote;
use tempfile::TempDir;

use super::place::ann;
use super::{OCX, reference, until};

/// A plain Fossil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fossil {
    /// The Fossil that tests compare with. It is an installed one of any release, if there is one.
    Reference,
    /// This project's own Fossil, as the command `ocx fossil`.
    Own,
}

impl Fossil {
    pub const BOTH: [Self; 2] = [Self::Reference, Self::Own];

    /// Both Fossils. If the reference is this project's own too, there is only one.
    pub fn each() -> &'static [Self] {
        if reference::program().is_some() { &Self::BOTH } else { &[Self::Own] }
    }

    /// A command that is not yet started, in the environment of this process.
    pub fn program(self) -> Command {
        if let (Self::Reference, Some(program)) = (self, reference::program()) {
            return Command::new(program);
        }
        let mut command = Command::new(OCX);
        command.arg("fossil");
        command
    }

    /// A command that is not yet started, with a home folder of its own.
    pub fn command(self, home: &Path, dir: &Path, args: &[&str]) -> Command {
        let mut command = self.program();
        command.args(args).current_dir(dir).stdin(Stdio::null());
        command.env("FOSSIL_HOME", home).env("HOME", home).env("USER", "ann");
        command
    }

    /// Runs a command that must succeed. Returns everything that it wrote.
    #[track_caller]
    pub fn run(self, home: &Path, dir: &Path, args: &[&str]) -> String {
        let out = self.command(home, dir, args).output().expect("plain Fossil runs");
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{self:?} {args:?}: {text}");
        text
    }
}

/// A plain Fossil that serves a repository on loopback until this is dropped.
pub struct Server {
    child: Child,
    pub url: String,
    pub port: u16,
}

impl Server {
    pub fn start(fossil: Fossil, home: &Path, repository: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port_text = port.to_string();
        let args = ["server", "--localhost", "--port", &port_text, repository.to_str().unwrap()];
        let child =
            fossil.command(home, home, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { child, url: format!("http://127.0.0.1:{port}"), port }
    }

    pub fn remote(&self, login: &str) -> Remote {
        remote(&self.url, login)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The remote at `url` for a login `USER:PASSWORD`.
pub fn remote(url: &str, login: &str) -> Remote {
    Remote::parse(&url.replace("http://", &format!("http://{login}@"))).unwrap()
}

/// A repository `server.fossil` that `fossil` serves. Its logins are ann:secret (may do everything) and bob:pw (may
/// read).
pub fn served(fossil: Fossil) -> (TempDir, PathBuf, Server) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.fossil");
    Repository::create(&path, &NewRepository { user: ann() }).unwrap();
    for args in [
        ["user", "password", "ann", "secret", "-R", "server.fossil"].as_slice(),
        &["user", "new", "bob", "Bob", "pw", "-R", "server.fossil"],
        &["user", "capabilities", "bob", "go", "-R", "server.fossil"],
    ] {
        fossil.run(dir.path(), dir.path(), args);
    }
    let server = Server::start(fossil, dir.path(), &path);
    (dir, path, server)
}
