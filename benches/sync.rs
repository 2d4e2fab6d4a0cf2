//! How long do a push and a pull of one check-in and a clone take with a server on this machine, beside spawned
//! `fossil`, `ocx fossil` and `git`?
//!
//! `cargo bench --bench sync -- [--quick|--alone]`. The servers are plain `fossil server`, which starts a process
//! for each request and closes the line after it, so what a kept line saves does not show; git's remote is a folder.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;

use std::cell::RefCell;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::programs::{FOSSIL, GIT, OCX_FOSSIL, Program, USER};
use common::{Options, Result, Way, corpus, interleaved, table, timed};
use ocx::name::User;
use ocx::repo::http::Exchange;
use ocx::repo::{Cancel, CheckIn, Checkout, NewRepository, Remote, Repository};

const PASSWORD: &str = "secret";
const FILES: usize = 200;

fn main() -> Result<()> {
    let options = Options::read();
    common::heading("Push and pull of one check-in, and a clone, with a server on this machine", &options);
    let present: Vec<_> = [FOSSIL, OCX_FOSSIL, GIT].iter().filter_map(Program::version).collect();
    println!("Compared: {}; the server is {} for all but git.", present.join(", "), FOSSIL.name);
    let folder = tempfile::tempdir()?;
    one(folder.path(), Direction::Push, &options)?;
    one(folder.path(), Direction::Pull, &options)?;
    let check_ins = if options.quick { 60 } else { 1_000 };
    clone(&folder.path().join("clone"), check_ins, &options)
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Push,
    Pull,
}

/// A push or pull of one check-in by each program.
fn one(folder: &Path, direction: Direction, options: &Options) -> Result<()> {
    let name = if direction == Direction::Push { "push" } else { "pull" };
    let folder = folder.join(name);
    let own = Side::new(&folder.join("own"))?;
    let exchange = Exchange::new(&own.server.remote, &Cancel::new());
    let git = git(&folder, options)?;
    let mut others = Vec::new();
    if !options.alone {
        for program in [FOSSIL, OCX_FOSSIL].into_iter().filter(|program| program.version().is_some()) {
            others.push((program, Side::new(&folder.join(program.name.replace(' ', "-")))?));
        }
    }
    let mut ways = vec![Way::new(format!("OCX {name}"), |round| {
        own.prepare(direction, round)?;
        let (repository, remote) = (own.acting(direction).repository(), &own.server.remote);
        timed(|| match direction {
            Direction::Push => Ok(repository.push(remote).map(drop)?),
            Direction::Pull => Ok(repository.pull(remote).map(drop)?),
        })
    })];
    for (program, side) in &others {
        ways.push(Way::new(format!("{} {name}", program.name), move |round| {
            side.prepare(direction, round)?;
            let acting = side.acting(direction).repository().path().to_owned();
            let file = acting.to_str().ok_or("a path that is not UTF-8")?;
            let args = [name, &side.server.url, "--once", "-R", file];
            timed(|| program.run(&side.folder, &side.folder, args).map(drop))
        }));
    }
    if let Some(git) = &git {
        ways.push(Way::new(format!("git {name}, folder as remote"), |round| git.one(direction, round)));
    }
    if !options.alone {
        ways.push(Way::plain("one exchange with the server, alone", || {
            Ok(exchange.exchange(None, b"pragma client-version 22800 20260311 113146\n").map(drop)?)
        }));
    }
    table(&format!("{name} of one check-in, {FILES} files"), &interleaved(ways, options.rounds(31))?);
    for side in std::iter::once(&own).chain(others.iter().map(|(_, side)| side)) {
        side.check(direction)?;
    }
    Ok(())
}

/// A server of a repository, and two clones of it with a checkout each.
struct Side {
    folder: PathBuf,
    server: Server,
    here: Checkout,
    there: Checkout,
    paths: RefCell<Vec<PathBuf>>,
}

impl Side {
    fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join("server.fossil");
        let repository = Repository::create(&path, &NewRepository { user: user()? })?;
        let first = Checkout::open(&repository, &folder.join("first"), None, Some(&user()?))?;
        corpus::write_tree(first.root(), FILES)?;
        check_in(&first, 0)?;
        let file = path.to_str().ok_or("a path that is not UTF-8")?;
        FOSSIL.run(folder, folder, ["user", "password", USER, PASSWORD, "-R", file])?;
        let server = Server::start(folder, &path)?;
        let open = |name: &str| -> Result<Checkout> {
            let file = folder.join(format!("{name}.fossil"));
            let repository = Repository::clone_from(&server.remote, &file, &user()?)?;
            Ok(Checkout::open(&repository, &folder.join(name), None, Some(&user()?))?)
        };
        let (here, there) = (open("here")?, open("there")?);
        let paths = RefCell::new(corpus::files(here.root())?);
        Ok(Self { folder: folder.to_owned(), server, here, there, paths })
    }

    /// The clone whose push or pull is measured.
    fn acting(&self, direction: Direction) -> &Checkout {
        if direction == Direction::Push { &self.here } else { &self.there }
    }

    /// One new check-in: here for a push, on the server for a pull.
    fn prepare(&self, direction: Direction, round: usize) -> Result<()> {
        corpus::edit(self.here.root(), &self.paths.borrow(), round)?;
        check_in(&self.here, round)?;
        if direction == Direction::Pull {
            self.here.repository().push(&self.server.remote)?;
        }
        Ok(())
    }

    /// The last check-in has arrived.
    fn check(&self, direction: Direction) -> Result<()> {
        let last = self.here.parent()?;
        let held = match direction {
            Direction::Push => Repository::open(&self.folder.join("server.fossil"))?.store().holds(&last)?,
            Direction::Pull => self.there.repository().store().holds(&last)?,
        };
        if held { Ok(()) } else { Err(format!("{last} has not arrived").into()) }
    }
}

fn user() -> Result<User> {
    Ok(User::parse(USER)?)
}

fn check_in(checkout: &Checkout, round: usize) -> Result<()> {
    let what = CheckIn { comment: format!("round {round}"), branch: None, user: user()?, time: None };
    checkout.check_in(&what, &checkout.status()?)?;
    Ok(())
}

/// Plain Fossil serving a repository on loopback until it is dropped.
struct Server {
    child: Child,
    url: String,
    remote: Remote,
}

impl Server {
    fn start(home: &Path, repository: &Path) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let args = ["server", "--localhost", "--port", &port.to_string()];
        let mut command = FOSSIL.command(home, home, args);
        command.arg(repository).stdout(Stdio::null()).stderr(Stdio::null());
        let url = format!("http://{USER}:{PASSWORD}@127.0.0.1:{port}/");
        let server = Self { child: command.spawn()?, remote: Remote::parse(&url)?, url };
        for _ in 0..500 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(server);
            }
            sleep(Duration::from_millis(20));
        }
        Err("the server does not start".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Git's side, where it is to be measured.
fn git(folder: &Path, options: &Options) -> Result<Option<Git>> {
    if options.alone || GIT.version().is_none() {
        return Ok(None);
    }
    Git::new(&folder.join("git")).map(Some)
}

/// A bare repository, and two trees that push to and fetch from it.
struct Git {
    folder: PathBuf,
    paths: Vec<PathBuf>,
}

impl Git {
    fn new(folder: &Path) -> Result<Self> {
        let tree = folder.join("here");
        fs::create_dir_all(&tree)?;
        corpus::write_tree(&tree, FILES)?;
        let paths = corpus::files(&tree)?;
        let this = Self { folder: folder.to_owned(), paths };
        this.run("here", &["init", "-q", "-b", "trunk"])?;
        this.run("here", &["add", "."])?;
        this.run("here", &["commit", "-q", "-m", "first"])?;
        this.run(".", &["clone", "-q", "--bare", "here", "bare.git"])?;
        this.run("here", &["remote", "add", "origin", "../bare.git"])?;
        this.run(".", &["clone", "-q", "bare.git", "there"])?;
        Ok(this)
    }

    fn run(&self, at: &str, args: &[&str]) -> Result<()> {
        GIT.run(&self.folder, &self.folder.join(at), args).map(drop)
    }

    fn commit(&self, round: usize) -> Result<()> {
        corpus::edit(&self.folder.join("here"), &self.paths, round)?;
        self.run("here", &["commit", "-q", "-a", "-m", &format!("round {round}")])
    }

    fn one(&self, direction: Direction, round: usize) -> Result<Duration> {
        self.commit(round)?;
        let push = || self.run("here", &["push", "-q", "origin", "trunk"]);
        if direction == Direction::Push {
            return timed(push);
        }
        push()?;
        timed(|| self.run("there", &["fetch", "-q", "origin"]))
    }
}

/// A clone of a history of many check-ins by each program.
fn clone(folder: &Path, check_ins: usize, options: &Options) -> Result<()> {
    let side = Side::new(folder)?;
    for round in 1..check_ins {
        corpus::edit(side.here.root(), &side.paths.borrow(), round)?;
        check_in(&side.here, round)?;
    }
    side.here.repository().push(&side.server.remote)?;
    let git = git(folder, options)?;
    let target = |name: &str, round: usize| folder.join(format!("{name}{round}"));
    let mut ways = vec![Way::new("OCX clone, each artifact checked", |round| {
        timed(|| Ok(Repository::clone_from(&side.server.remote, &target("ocx", round), &user()?).map(drop)?))
    })];
    let programs = if options.alone { &[][..] } else { &[FOSSIL, OCX_FOSSIL] };
    for program in programs.iter().filter(|program| program.version().is_some()) {
        let side = &side;
        ways.push(Way::new(format!("{} clone", program.name), move |round| {
            let file = target(&program.name.replace(' ', "-"), round);
            let file = file.to_str().ok_or("a path that is not UTF-8")?;
            timed(|| program.run(folder, folder, ["clone", "--once", &side.server.url, file]).map(drop))
        }));
    }
    if let Some(git) = &git {
        for round in 1..check_ins {
            git.commit(round)?;
        }
        git.run("here", &["push", "-q", "origin", "trunk"])?;
        ways.push(Way::new("git clone --bare --no-local of a folder", move |round| {
            let name = format!("clone{round}.git");
            timed(|| git.run(".", &["clone", "-q", "--bare", "--no-local", "bare.git", &name]))
        }));
    }
    let series = interleaved(ways, options.rounds(7))?;
    table(&format!("clone of {check_ins} check-ins, {FILES} files"), &series);
    let last = side.here.parent()?;
    if Repository::open(&target("ocx", 1))?.store().holds(&last)? {
        Ok(())
    } else {
        Err("the clone lacks the last check-in".into())
    }
}
