//! How long do a push of one check-in, a pull of one check-in and a clone take with a server on this machine? They are
//! compared with spawned `fossil`, `ocx fossil` and `git`.
//!
//! `cargo bench --bench sync -- [--quick|--alone]`. `OCX_BENCH_REPOSITORY=path` clones your own repository. The servers are plain `fossil server`. It starts a process for each
//! request and closes the line after it. Git's remote is a folder. Two more ways push over a line that stays open. One
//! goes through a front before such a server. The other goes to a server that only remembers what came and answers at
//! once; its time is the time that OCX itself takes.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;
#[allow(dead_code, clippy::unwrap_used, reason = "it is the tests'")]
#[path = "../tests/support/front.rs"]
mod front;

use std::cell::RefCell;
use std::fs;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use common::cost::megabytes;
use common::history::History;
use common::programs::{FOSSIL, GIT, OCX_FOSSIL, Program, USER};
use common::{Options, Result, Way, corpus, interleaved, table, timed};
use front::Front;
use ocx::cancel::Cancel;
use ocx::checkout::{CheckIn, Checkout};
use ocx::format::packed::unpack;
use ocx::name::User;
use ocx::repo::{NewRepository, Repository};
use ocx::sync::client::Exchange;
use ocx::sync::{Remote, SyncOptions};

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
    clone(&folder.path().join("clone"), &options)
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Push,
    Pull,
}

/// Measures a push or pull of one check-in by each program.
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
    let kept = Kept::new(&folder.join("kept"))?;
    let mut ways =
        vec![Way::new(format!("OCX {name}"), |round| own.timed(direction, round, &own.server.remote))];
    ways.push(Way::new(format!("OCX {name}, line kept by a front"), |round| {
        kept.side.timed(direction, round, &kept.through_front)
    }));
    if direction == Direction::Push {
        let there = kept.side.there.repository();
        ways.push(Way::new("OCX push, line kept, server that answers at once", |round| {
            corpus::edit(kept.side.there.root(), &kept.side.paths.borrow(), round)?;
            check_in(&kept.side.there, round)?;
            timed(|| Ok(there.push(&kept.at_once).map(drop)?))
        }));
    }
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
    for side in [&own, &kept.side].into_iter().chain(others.iter().map(|(_, side)| side)) {
        side.check(direction)?;
    }
    Ok(())
}

/// A server of a repository, and two clones of the repository. Each clone has a checkout.
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

    /// Makes one new check-in: here for a push, on the server for a pull.
    fn prepare(&self, direction: Direction, round: usize) -> Result<()> {
        corpus::edit(self.here.root(), &self.paths.borrow(), round)?;
        check_in(&self.here, round)?;
        if direction == Direction::Pull {
            self.here.repository().push(&self.server.remote)?;
        }
        Ok(())
    }

    /// Measures a push or pull of one new check-in.
    fn timed(&self, direction: Direction, round: usize, remote: &Remote) -> Result<Duration> {
        self.prepare(direction, round)?;
        let repository = self.acting(direction).repository();
        timed(|| match direction {
            Direction::Push => Ok(repository.push(remote).map(drop)?),
            Direction::Pull => Ok(repository.pull(remote).map(drop)?),
        })
    }

    /// Checks that the last check-in has arrived.
    fn check(&self, direction: Direction) -> Result<()> {
        let last = self.here.parent()?;
        let held = match direction {
            Direction::Push => Repository::open(&self.folder.join("server.fossil"))?.store().holds(&last)?,
            Direction::Pull => self.there.repository().store().holds(&last)?,
        };
        if held { Ok(()) } else { Err(format!("{last} has not arrived").into()) }
    }
}

/// Servers that keep their line open: a front before plain Fossil, and a server that answers at once.
struct Kept {
    side: Side,
    through_front: Remote,
    at_once: Remote,
    _fronts: [Front; 2],
}

impl Kept {
    fn new(folder: &Path) -> Result<Self> {
        let side = Side::new(folder)?;
        let (front, at_once) = (Front::before(side.server.port), Front::new(answer_at_once()));
        let remote = |front: &Front| {
            let url = front.url().replacen("://", &format!("://{USER}:{PASSWORD}@"), 1);
            Remote::parse(&url)
        };
        Ok(Self {
            side,
            through_front: remote(&front)?,
            at_once: remote(&at_once)?,
            _fronts: [front, at_once],
        })
    }
}

/// Remembers the names of the artifacts that a push brings. Lists them in the reply to the next request that brings
/// none.
fn answer_at_once() -> impl Fn(TcpStream, &front::Counted) + Send + Sync {
    let last = Mutex::new(String::new());
    move |mut line, _| {
        let _ = line.set_nodelay(true);
        let Ok(read) = line.try_clone() else { return };
        let mut read = BufReader::new(read);
        while let Some(request) = front::request(&mut read) {
            let body = request.windows(4).position(|w| w == b"\r\n\r\n").map_or(0, |at| at + 4);
            let cards = unpack(&request[body..], 1 << 24).unwrap_or_default();
            let cards = String::from_utf8_lossy(&cards);
            let brought: String = cards
                .lines()
                .filter_map(|card| card.strip_prefix("file ")?.split(' ').next())
                // A line of some content may begin like a card.
                .filter(|hash| matches!(hash.len(), 40 | 64))
                .fold(String::new(), |all, hash| all + "igot " + hash + "\n");
            let Ok(mut last) = last.lock() else { return };
            let reply = if brought.is_empty() { std::mem::take(&mut *last) } else { String::new() };
            if !brought.is_empty() {
                *last = brought;
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-fossil-uncompressed\r\n";
            let reply = format!("{head}Content-Length: {}\r\n\r\n{reply}", reply.len());
            if line.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
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

/// A plain Fossil that serves a repository on loopback until this is dropped.
struct Server {
    child: Child,
    port: u16,
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
        let server = Self { child: command.spawn()?, port, remote: Remote::parse(&url)?, url };
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

/// Git's side, if git is measured.
fn git(folder: &Path, options: &Options) -> Result<Option<Git>> {
    if options.alone || GIT.version().is_none() {
        return Ok(None);
    }
    Git::new(&folder.join("git")).map(Some)
}

/// A bare repository, and two trees. The trees push to it and fetch from it.
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

/// Measures a clone of a history by each program, and compares the files that are made.
fn clone(folder: &Path, options: &Options) -> Result<()> {
    fs::create_dir_all(folder)?;
    let (path, git) = if let Some(own) = common::own_repository() {
        let path = folder.join("server.fossil");
        Repository::clone_file(&own, &path, &user()?)?;
        (path, None)
    } else {
        let history = History::generated(if options.quick { 60 } else { 1_000 }, folder)?;
        (history.whole, if options.alone { None } else { history.git })
    };
    let check_ins = count(&path, "SELECT count(*) FROM event WHERE type='ci'")?;
    let artifacts = count(&path, "SELECT count(*) FROM blob")?;
    let file = path.to_str().ok_or("a path that is not UTF-8")?;
    FOSSIL.run(folder, folder, ["user", "password", USER, PASSWORD, "-R", file])?;
    let server = Server::start(folder, &path)?;
    let target = |name: &str| folder.join(format!("{}.clone", name.replace(' ', "-")));
    let mut names = vec!["OCX"];
    let mut ways = vec![Way::new("OCX clone, each artifact checked", |_| {
        let target = target("OCX");
        ocx::engine::close(&target)?;
        let _ = fs::remove_file(&target);
        let options = SyncOptions::default();
        timed(|| Ok(Repository::clone_with(&server.remote, &target, &user()?, &options).map(drop)?))
    })];
    let programs = if options.alone { &[][..] } else { &[FOSSIL, OCX_FOSSIL] };
    for program in programs.iter().filter(|program| program.version().is_some()) {
        let (server, target) = (&server, target(program.name));
        names.push(program.name);
        ways.push(Way::new(format!("{} clone", program.name), move |_| {
            let _ = fs::remove_file(&target);
            let file = target.to_str().ok_or("a path that is not UTF-8")?;
            timed(|| program.run(folder, folder, ["clone", "--once", &server.url, file]).map(drop))
        }));
    }
    if let Some(git) = &git {
        ways.push(Way::new("git clone --bare --no-local of a folder", move |_| {
            let _ = fs::remove_dir_all(folder.join("clone.git"));
            let from = git.to_str().ok_or("a path that is not UTF-8")?;
            let args = ["clone", "-q", "--bare", "--no-local", from, "clone.git"];
            timed(|| GIT.run(folder, folder, args).map(drop))
        }));
    }
    let rounds = if common::own_repository().is_some() { 2 } else { 5 };
    let series = interleaved(ways, options.rounds(rounds))?;
    table(&format!("clone of {check_ins} check-ins, {artifacts} artifacts"), &series);
    println!("\n| made by | bytes | artifacts |\n|---|---:|---:|");
    println!("| the server's file | {} | {artifacts} |", megabytes(fs::metadata(&path)?.len()));
    for name in names {
        let made = target(name);
        let held = count(&made, "SELECT count(*) FROM blob WHERE size>=0")?;
        println!("| {name} | {} | {held} |", megabytes(fs::metadata(&made)?.len()));
    }
    if count(&target("OCX"), "SELECT count(*) FROM event WHERE type='ci'")? == check_ins {
        Ok(())
    } else {
        Err("the clone lacks check-ins".into())
    }
}

fn count(repository: &Path, sql: &str) -> Result<i64> {
    Ok(rusqlite::Connection::open(repository)?.query_row(sql, [], |row| row.get(0))?)
}
