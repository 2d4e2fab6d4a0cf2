//! How long does a check-in of one changed file take, compared with `fossil commit` and `git commit`? The check-in is
//! durable and updates the checkout. How does the time grow with the number of files?
//!
//! `cargo bench --bench checkin -- [--quick|--alone] [FILES ...]`. `OCX_BENCH_REPOSITORY=path` measures on the tip of
//! your own repository instead of generated trees. The benchmark prints tables and writes a picture of time against
//! size.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use common::picture::{self, Picture};
use common::programs::{FOSSIL, GIT, OCX_FOSSIL, Program, USER};
use common::{Options, Result, Series, Way, corpus, cost, interleaved, table, timed};
use ocx::checkout::{CheckIn, Checkout};
use ocx::name::User;
use ocx::repo::{NewRepository, Repository};

/// The first argument when this program starts itself. The child makes some check-ins in a place and ends.
const CHILD: &str = "child";

fn main() -> Result<()> {
    let options = Options::read();
    if let [child, rounds, folder] = options.words.as_slice()
        && child == CHILD
    {
        return be_child(rounds.parse()?, Path::new(folder));
    }
    common::heading("Check-in of one changed file, durable, checkout updated", &options);
    println!("Compared: {}; plain Fossil in its default journal mode.", present().join(", "));
    if let Some(repository) = common::own_repository() {
        return measure(&Source::Repository(repository), 15, &options, &mut Picture::default());
    }
    let sizes =
        match options.words.iter().map(|w| w.parse()).collect::<std::result::Result<Vec<usize>, _>>()? {
            given if !given.is_empty() => given,
            _ if options.quick => vec![50, 300],
            _ => vec![50, 1_000, 10_000],
        };
    let mut picture = Picture::default();
    for files in sizes {
        measure(&Source::Generated(files), if files < 5_000 { 25 } else { 11 }, &options, &mut picture)?;
    }
    let path = picture::folder().join("checkin.svg");
    picture.write(&path, "Check-in of one changed file, by the number of files in the tree", "files")?;
    println!("\nPicture: {}", path.display());
    Ok(())
}

/// Where the tree comes from.
enum Source {
    Generated(usize),
    Repository(PathBuf),
}

fn present() -> Vec<String> {
    [FOSSIL, OCX_FOSSIL, GIT].iter().filter_map(Program::version).collect()
}

fn measure(source: &Source, rounds: usize, options: &Options, picture: &mut Picture) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let warm = Place::new(folder.path(), "warm", source)?;
    let cold = Place::new(folder.path(), "cold", source)?;
    let kept = warm.open_with_ocx(source)?;
    drop(cold.open_with_ocx(source)?);
    let spawned = if options.alone { Vec::new() } else { others(folder.path(), source)? };
    let parts = RefCell::new((Vec::new(), Vec::new()));
    let mut ways = vec![
        Way::new("OCX, in-process", |round| {
            warm.edit(round)?;
            let (status, stored) = check_in(&kept, round)?;
            if round > 0 {
                parts.borrow_mut().0.push(status);
                parts.borrow_mut().1.push(stored);
            }
            Ok(status + stored)
        }),
        Way::new("OCX, checkout opened anew", |round| {
            cold.edit(round)?;
            timed(|| check_in(&Checkout::at(&cold.tree())?, round).map(drop))
        }),
    ];
    ways.truncate(if options.alone { 1 } else { ways.len() });
    ways.extend(spawned.iter().map(Spawned::way));
    let series = interleaved(ways, options.rounds(rounds))?;
    let files = corpus::files(&warm.tree())?.len();
    table(&format!("{files} files"), &series);
    let (status, stored) = parts.into_inner();
    let of = |name, times| format!("{name} {}", common::shown(Series::new(name, times).median()));
    println!("\nOf the first: {}, {}.", of("status", status), of("check-in", stored));
    picture.add(files, &series);
    warm.check(options.rounds(rounds))?;
    if options.alone {
        return Ok(());
    }
    cold.check(options.rounds(rounds))?;
    costs(&cold, &spawned)
}

/// Prints the costs of one check-in other than time.
fn costs(own: &Place, spawned: &[Spawned]) -> Result<()> {
    let me = std::env::current_exe()?;
    let child = |rounds: &str| {
        let mut command = Command::new(&me);
        command.args([CHILD, rounds]).arg(&own.folder);
        command
    };
    println!("\n| way | peak memory | waits for the disk |\n|---|---:|---:|");
    let row = |name: &str, memory: u64, syncs: Option<usize>| {
        let syncs = syncs.map_or_else(|| "no strace".to_owned(), |n| n.to_string());
        println!("| {name} | {} | {syncs} |", cost::megabytes(memory));
    };
    let syncs = |rounds| cost::syncs(&child(rounds), &own.folder);
    // Opening and closing wait for the disk too. So we count only what nine more check-ins add.
    let each = syncs("1")?.zip(syncs("10")?).map(|(one, ten)| ten.saturating_sub(one).div_ceil(9));
    row("OCX, in a process of its own", cost::peak_memory(child("10"))?, each);
    for one in spawned {
        one.place.edit(1_001)?;
        let syncs = cost::syncs(&one.command(1_001), &one.place.folder)?;
        one.place.edit(1_002)?;
        row(&one.name, cost::peak_memory(one.command(1_002))?, syncs);
    }
    Ok(())
}

/// Makes check-ins in a place that already exists.
fn be_child(rounds: usize, folder: &Path) -> Result<()> {
    let place = Place { folder: folder.to_owned(), home: folder.join("home"), edited: RefCell::default() };
    let checkout = Checkout::at(&place.tree())?;
    for round in 0..rounds {
        place.edit(2_000 + round)?;
        check_in(&checkout, 2_000 + round)?;
    }
    Ok(())
}

/// Runs a status and a check-in by OCX. Returns the time of each.
fn check_in(checkout: &Checkout, round: usize) -> Result<(Duration, Duration)> {
    let start = Instant::now();
    let status = checkout.status()?;
    let (looked, start) = (start.elapsed(), Instant::now());
    let what = CheckIn { comment: comment(round), branch: None, user: User::parse(USER)?, time: None };
    checkout.check_in(&what, &status)?;
    Ok((looked, start.elapsed()))
}

fn comment(round: usize) -> String {
    format!("round {round}")
}

/// A repository and a tree that only one way uses.
struct Place {
    folder: PathBuf,
    home: PathBuf,
    edited: RefCell<Vec<PathBuf>>,
}

impl Place {
    fn new(parent: &Path, name: &str, source: &Source) -> Result<Self> {
        let folder = parent.join(name);
        let this = Self { home: folder.join("home"), edited: RefCell::default(), folder };
        fs::create_dir_all(&this.home)?;
        fs::create_dir_all(this.tree())?;
        if let Source::Repository(path) = source {
            fs::copy(path, this.repository())?;
            let file = this.repository();
            let file = file.to_str().ok_or("a path that is not UTF-8")?;
            // The user may exist already.
            let _ = FOSSIL.run(&this.home, &this.folder, ["user", "new", USER, "", "-", "-R", file]);
            FOSSIL.run(&this.home, &this.folder, ["user", "capabilities", USER, "s", "-R", file])?;
        }
        Ok(this)
    }

    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("r.fossil")
    }

    fn edit(&self, round: usize) -> Result<()> {
        let mut paths = self.edited.borrow_mut();
        if paths.is_empty() {
            *paths = corpus::files(&self.tree())?;
        }
        corpus::edit(&self.tree(), &paths, round)
    }

    /// Fills the repository and the tree with OCX.
    fn open_with_ocx(&self, source: &Source) -> Result<Checkout> {
        let user = User::parse(USER)?;
        let Source::Generated(files) = source else {
            let repository = Repository::open(&self.repository())?;
            return Ok(Checkout::open(&repository, &self.tree(), None, Some(&user))?);
        };
        let repository = Repository::create(&self.repository(), &NewRepository { user: user.clone() })?;
        let checkout = Checkout::open(&repository, &self.tree(), None, Some(&user))?;
        corpus::write_tree(&self.tree(), *files)?;
        // The status does not trust the times of a file that was written just now.
        std::thread::sleep(Duration::from_millis(200));
        check_in(&checkout, 0)?;
        Ok(checkout)
    }

    /// Fills the repository and the tree with Fossil.
    fn open_with(&self, fossil: Program, source: &Source) -> Result<()> {
        let run = |args: &[&str]| fossil.run(&self.home, &self.tree(), args);
        if let Source::Generated(files) = source {
            run(&["init", "-A", USER, "../r.fossil"])?;
            run(&["open", "../r.fossil", "--user", USER])?;
            corpus::write_tree(&self.tree(), *files)?;
            run(&["addremove"])?;
            run(&["commit", "--no-warnings", "--no-prompt", "-m", "first"])?;
        } else {
            run(&["open", "../r.fossil", "--user", USER])?;
        }
        Ok(())
    }

    /// Checks that plain Fossil sees the last round as the checkout's version, and sees no change.
    fn check(&self, rounds: usize) -> Result<()> {
        let run = |args: &[&str]| FOSSIL.run(&self.home, &self.tree(), args);
        let (status, changes) = (run(&["status"])?, run(&["changes", "--differ"])?);
        if !status.contains(&format!(" {} (user: {USER})", comment(rounds))) || !changes.trim().is_empty() {
            return Err(format!("plain Fossil does not agree: {status}{changes}").into());
        }
        Ok(())
    }
}

/// The way of another program, and its place.
struct Spawned {
    name: String,
    program: Program,
    args: Vec<&'static str>,
    place: Place,
}

impl Spawned {
    fn way(&self) -> Way<'_> {
        Way::new(self.name.clone(), |round| {
            self.place.edit(round)?;
            let comment = comment(round);
            let args = self.args.iter().copied().chain(["-m", &comment]);
            timed(|| self.program.run(&self.place.home, &self.place.tree(), args).map(drop))
        })
    }

    /// The same command, not yet started.
    fn command(&self, round: usize) -> Command {
        let comment = comment(round);
        let args = self.args.iter().copied().chain(["-m", &comment]);
        self.program.command(&self.place.home, &self.place.tree(), args)
    }
}

fn others(folder: &Path, source: &Source) -> Result<Vec<Spawned>> {
    let commit = || vec!["commit", "--no-warnings", "--no-prompt"];
    let mut all = Vec::new();
    for (name, program, checksum) in [
        ("fossil commit", FOSSIL, true),
        ("fossil commit, repo-cksum off", FOSSIL, false),
        ("ocx fossil commit", OCX_FOSSIL, true),
    ] {
        if program.version().is_none() {
            continue;
        }
        let place = Place::new(folder, &name.replace([' ', ','], "-"), source)?;
        place.open_with(program, source)?;
        if !checksum {
            program.run(&place.home, &place.tree(), ["settings", "repo-cksum", "off"])?;
        }
        all.push(Spawned { name: name.to_owned(), program, args: commit(), place });
    }
    if let (Source::Generated(files), Some(_)) = (source, GIT.version()) {
        let place = Place::new(folder, "git", source)?;
        corpus::write_tree(&place.tree(), *files)?;
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "first"]] {
            GIT.run(&place.home, &place.tree(), args)?;
        }
        let name = "git commit -a, fsync".to_owned();
        all.push(Spawned { name, program: GIT, args: vec!["commit", "-q", "-a"], place });
    }
    Ok(all)
}
