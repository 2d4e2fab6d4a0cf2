//! Plain Fossil beside the library, for tests: the installed 2.21, and 2.28 as `ocx fossil`.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ocx::checkout::{CheckIn, CheckedIn, Checkout, How};
use ocx::error::Result;
use ocx::name::{Branch, User};
use ocx::repo::{NewRepository, Repository};
use ocx::sync::Remote;
use tempfile::TempDir;

/// A plain Fossil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fossil {
    /// Debian's.
    V221,
    /// This project's own, as a command.
    V228,
}

impl Fossil {
    pub const BOTH: [Self; 2] = [Self::V221, Self::V228];

    /// A command not yet started, with a home folder of its own.
    pub fn command(self, home: &Path, dir: &Path, args: &[&str]) -> Command {
        let mut command = match self {
            Self::V221 => Command::new("fossil"),
            Self::V228 => Command::new(env!("CARGO_BIN_EXE_ocx")),
        };
        if self == Self::V228 {
            command.arg("fossil");
        }
        command.args(args).current_dir(dir).stdin(Stdio::null());
        command.env("FOSSIL_HOME", home).env("HOME", home).env("USER", "ann");
        command
    }

    /// Runs a command that must succeed; gives all that it wrote.
    pub fn run(self, home: &Path, dir: &Path, args: &[&str]) -> String {
        let out = self.command(home, dir, args).output().expect("fossil is installed");
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{self:?} {args:?}: {text}");
        text
    }
}

/// A repository and a checkout of it, by OCX, in a temporary folder.
pub struct Place {
    pub dir: TempDir,
    pub repository: Repository,
    pub checkout: Checkout,
    pub user: User,
}

impl Place {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let user = ann();
        let repository =
            Repository::create(&dir.path().join("r.fossil"), &NewRepository { user: user.clone() }).unwrap();
        Self::of(dir, repository)
    }

    /// A checkout of `repository`, which lies in `dir`.
    pub fn of(dir: TempDir, repository: Repository) -> Self {
        let checkout = Checkout::open(&repository, &dir.path().join("work"), None, Some(&ann())).unwrap();
        Self { dir, repository, checkout, user: ann() }
    }

    /// A checkout by OCX of a repository that plain Fossil made with these words after `init`.
    pub fn by_plain_fossil(init: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let args = [&["init", "-A", "ann"], init, &["r.fossil"]].concat();
        Fossil::V221.run(dir.path(), dir.path(), &args);
        let repository = Repository::open(&dir.path().join("r.fossil")).unwrap();
        Self::of(dir, repository)
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.checkout.root().join(path)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn check_in(&self, comment: &str, branch: Option<&str>) -> Result<CheckedIn> {
        check_in(&self.checkout, comment, branch)
    }

    /// The changes: path and how.
    pub fn changes(&self) -> Vec<(String, How)> {
        changes(&self.checkout)
    }

    pub fn fossil(&self, args: &[&str]) -> String {
        self.by(Fossil::V221, args)
    }

    pub fn by(&self, fossil: Fossil, args: &[&str]) -> String {
        fossil.run(self.dir.path(), self.checkout.root(), args)
    }

    /// How many check-ins the repository has.
    pub fn check_ins(&self) -> i64 {
        self.sql("SELECT count(*) FROM event WHERE type='ci'")
    }

    pub fn sql(&self, sql: &str) -> i64 {
        let db = rusqlite::Connection::open(self.repository.path()).unwrap();
        db.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Both Fossils find the repository whole, and so does the library.
    pub fn assert_whole(&self) {
        let file = self.repository.path().to_str().unwrap();
        for fossil in Fossil::BOTH {
            let found = self.by(fossil, &["test-integrity", "-R", file]);
            assert!(found.contains(" 0 errors"), "{found}");
        }
        self.repository.verify().unwrap();
        let db = rusqlite::Connection::open(self.repository.path()).unwrap();
        let found: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(found, "ok");
    }
}

pub fn ann() -> User {
    User::parse("ann").unwrap()
}

pub fn check_in(checkout: &Checkout, comment: &str, branch: Option<&str>) -> Result<CheckedIn> {
    let branch = branch.map(|b| Branch::parse(b).unwrap());
    let check_in = CheckIn { comment: comment.into(), branch, user: ann(), time: None };
    checkout.check_in(&check_in, &checkout.status()?)
}

pub fn changes(checkout: &Checkout) -> Vec<(String, How)> {
    let status = checkout.status().unwrap();
    status.changes.iter().map(|c| (c.path.to_string(), c.how)).collect()
}

/// A plain Fossil that serves a repository on loopback until it is dropped.
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
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
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

/// A repository `server.fossil` served by `fossil`, with the logins ann:secret (all) and bob:pw (may read).
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
