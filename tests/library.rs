//! The library from end to end: made, opened, checked in, pushed, cloned, with plain Fossil as the judge.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ocx::error::Kind;
use ocx::name::{Branch, User};
use ocx::repo::{CheckIn, CheckedIn, Checkout, How, NewRepository, Outcome, Remote, Repository};

struct Place {
    dir: tempfile::TempDir,
    repository: Repository,
    checkout: Checkout,
    user: User,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let user = User::parse("ann").unwrap();
        let repository =
            Repository::create(&dir.path().join("r.fossil"), &NewRepository { user: user.clone() }).unwrap();
        let checkout = Checkout::open(&repository, &dir.path().join("work"), None, Some(&user)).unwrap();
        Self { dir, repository, checkout, user }
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.checkout.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn check_in(&self, comment: &str, branch: Option<&str>) -> ocx::error::Result<CheckedIn> {
        let branch = branch.map(|b| Branch::parse(b).unwrap());
        let check_in = CheckIn { comment: comment.into(), branch, user: self.user.clone(), time: None };
        self.checkout.check_in(&check_in, &self.checkout.status()?)
    }

    fn fossil(&self, args: &[&str]) -> String {
        fossil(self.dir.path(), self.checkout.root(), args)
    }
}

fn fossil(home: &Path, dir: &Path, args: &[&str]) -> String {
    let out = Command::new("fossil")
        .args(args)
        .current_dir(dir)
        .env("FOSSIL_HOME", home)
        .env("USER", "ann")
        .output()
        .expect("fossil is installed");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "fossil {args:?}: {text}");
    text
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(home: &Path, repository: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new("fossil")
            .args(["server", "--localhost", "--port", &port.to_string()])
            .arg(repository)
            .env("FOSSIL_HOME", home)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..200 {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self { child, url: format!("http://127.0.0.1:{port}") }
    }

    fn remote(&self, login: &str) -> Remote {
        Remote::parse(&self.url.replace("http://", &format!("http://{login}@"))).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server's repository with the login ann:secret, and a clone of it by OCX.
fn served() -> (tempfile::TempDir, PathBuf, Server) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.fossil");
    let user = User::parse("ann").unwrap();
    Repository::create(&path, &NewRepository { user }).unwrap();
    fossil(dir.path(), dir.path(), &["user", "password", "ann", "secret", "-R", "server.fossil"]);
    fossil(dir.path(), dir.path(), &["user", "new", "bob", "Bob", "pw", "-R", "server.fossil"]);
    fossil(dir.path(), dir.path(), &["user", "capabilities", "bob", "go", "-R", "server.fossil"]);
    let server = Server::start(dir.path(), &path);
    (dir, path, server)
}

#[test]
fn plain_fossil_sees_what_was_checked_in() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("dir/b.sh", "#!/bin/sh\n");
    let made = place.check_in("first\nwith \\ and spaces", None).unwrap();
    assert!(place.fossil(&["status"]).contains(&made.hash.as_str()[..40]));
    assert_eq!(place.fossil(&["changes"]), "");
    assert_eq!(place.fossil(&["ls"]), "a.txt\ndir/b.sh\n");
    place.write("a.txt", "two\n");
    let made = place.check_in("second", Some("agent/ann-12345678")).unwrap();
    assert!(place.fossil(&["branch", "current"]).contains("agent/ann-12345678"));
    assert_eq!(place.fossil(&["cat", "a.txt", "-r", made.hash.as_str()]), "two\n");
    assert_eq!(place.fossil(&["changes"]), "");
    place.fossil(&["test-integrity", "-R", place.repository.path().to_str().unwrap()]);
    place.repository.verify().unwrap();
    place.fossil(&["rebuild", place.repository.path().to_str().unwrap()]);
    let e = place.check_in("nothing", None).unwrap_err();
    assert_eq!(e.kind(), Kind::Unchanged);
}

#[test]
fn ocx_sees_what_plain_fossil_checked_in() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.check_in("first", None).unwrap();
    place.write("b.txt", "b\n");
    place.fossil(&["mv", "--hard", "a.txt", "c.txt"]);
    place.fossil(&["add", "b.txt"]);
    let status = place.checkout.status().unwrap();
    let hows: Vec<_> = status.changes.iter().map(|c| (c.path.as_str(), c.how)).collect();
    assert_eq!(hows, [("a.txt", How::Deleted), ("b.txt", How::Added), ("c.txt", How::Added)]);
    place.fossil(&["commit", "-m", "by fossil", "--no-warnings"]);
    let status = place.checkout.status().unwrap();
    assert!(status.changes.is_empty(), "{status:?}");
    place.fossil(&["mv", "--hard", "c.txt", "d.txt"]);
    let made = place.check_in("renamed", None).unwrap();
    assert!(
        place
            .repository
            .store()
            .manifest(&made.hash)
            .unwrap()
            .files
            .iter()
            .any(|f| f.prior.as_deref() == Some("c.txt"))
    );
    assert!(place.fossil(&["finfo", "d.txt"]).contains("renamed"));
}

#[test]
fn a_second_leaf_is_refused_and_loses_nothing() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let first = place.check_in("first", None).unwrap();
    let other =
        Checkout::open(&place.repository, &place.dir.path().join("other"), None, Some(&place.user)).unwrap();
    place.write("a.txt", "two\n");
    place.check_in("second", None).unwrap();
    fs::write(other.root().join("a.txt"), "mine\n").unwrap();
    let check_in = CheckIn { comment: "fork".into(), branch: None, user: place.user.clone(), time: None };
    let e = other.check_in(&check_in, &other.status().unwrap()).unwrap_err();
    assert_eq!(e.kind(), Kind::WouldFork);
    assert_eq!(other.parent().unwrap(), first.hash);
    assert_eq!(fs::read_to_string(other.root().join("a.txt")).unwrap(), "mine\n");
    let updated = other.update("trunk").unwrap();
    assert_eq!(updated.conflicts, ["a.txt"]);
}

#[test]
fn push_pull_and_clone_against_a_plain_server() {
    let (dir, path, server) = served();
    let ann = User::parse("ann").unwrap();
    let remote = server.remote("ann:secret");
    let clone = Repository::clone_from(&remote, &dir.path().join("clone.fossil"), &ann).unwrap();
    let checkout = Checkout::open(&clone, &dir.path().join("work"), None, Some(&ann)).unwrap();
    fs::write(checkout.root().join("a.txt"), "one\n").unwrap();
    let check_in = CheckIn { comment: "first".into(), branch: None, user: ann.clone(), time: None };
    let made = checkout.check_in(&check_in, &checkout.status().unwrap()).unwrap();
    assert!(!clone.server_holds(&remote, &made.hash).unwrap());
    assert_eq!(clone.push(&remote).unwrap(), Outcome::Sent { check_ins: 1, artifacts: 2 });
    assert!(clone.server_holds(&remote, &made.hash).unwrap());
    assert_eq!(clone.push(&remote).unwrap(), Outcome::NothingToSend);
    let there = Repository::open(&path).unwrap();
    assert_eq!(there.store().receipt(&made.hash).unwrap().unwrap().user, "ann");
    let second = Repository::clone_from(&remote, &dir.path().join("second.fossil"), &ann).unwrap();
    assert_eq!(second.store().content(&made.hash).unwrap(), clone.store().content(&made.hash).unwrap());

    fs::write(checkout.root().join("a.txt"), "two\n").unwrap();
    let made = checkout.check_in(&check_in, &checkout.status().unwrap()).unwrap();
    for (login, kind) in [("ann:wrong", Kind::LoginFailed), ("bob:pw", Kind::Denied)] {
        let e = clone.push(&server.remote(login)).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(!e.to_string().contains("wrong"), "{e}");
    }
    let other_dir = tempfile::tempdir().unwrap();
    let other = Repository::create(&other_dir.path().join("o.fossil"), &NewRepository { user: ann }).unwrap();
    let e = other.push(&remote).unwrap_err();
    assert_eq!(e.kind(), Kind::Foreign, "{e}");
    assert_eq!(clone.push(&remote).unwrap(), Outcome::Sent { check_ins: 1, artifacts: 2 });
    assert_eq!(second.pull(&remote).unwrap(), Outcome::Received { artifacts: 2 });
    assert!(second.store().check_in(&made.hash).is_ok());
    drop(server);
    let e = clone.push(&remote).unwrap_err();
    assert_eq!(e.kind(), Kind::Unreachable, "{e}");
}

#[test]
fn a_file_is_cloned_without_what_is_private() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let made = place.check_in("first", None).unwrap();
    let clone =
        Repository::clone_file(place.repository.path(), &place.dir.path().join("c.fossil"), &place.user)
            .unwrap();
    assert_eq!(clone.store().resolve("trunk").unwrap(), made.hash);
    clone.verify().unwrap();
    let e = Repository::clone_file(place.repository.path(), &place.dir.path().join("c.fossil"), &place.user)
        .unwrap_err();
    assert_eq!(e.kind(), Kind::Exists);
}

#[test]
fn remotes_are_remembered_without_password_unless_asked() {
    let place = Place::new();
    let remote = Remote::parse("http://ann:s3cret@127.0.0.1:9/x").unwrap();
    place.repository.set_remote(Some(&remote), false).unwrap();
    let kept = place.repository.remote().unwrap().unwrap();
    assert_eq!(kept.user().unwrap().as_str(), "ann");
    assert!(kept.password().is_none());
    place.repository.set_remote(Some(&remote), true).unwrap();
    assert_eq!(place.repository.remote().unwrap().unwrap(), remote);
    place.repository.set_remote(None, false).unwrap();
    assert!(place.repository.remote().unwrap().is_none());
}
