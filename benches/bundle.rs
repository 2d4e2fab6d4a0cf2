//! How long does it take to export a history as a bundle and to import it? It is compared with `fossil bundle` and
//! `git bundle`. How much memory does that need? How much does the repository grow? How small is the bundle on the
//! wire?
//!
//! `cargo bench --bench bundle -- [--quick|--alone] [CHECK-INS ...]`. `OCX_BENCH_REPOSITORY=path` uses the history of your
//! own repository: the check-ins between its main branch's tip and the ancestor that lies the number given before it.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::cost::peak_memory;
use common::history::History;
use common::picture::{self, Picture};
use common::programs::{FOSSIL, GIT, OCX, OCX_FOSSIL, Program, USER};
use common::{Options, Result, Series, Way, interleaved, table, timed};
use ocx::bundle::Bundle;
use ocx::bundle::Import;
use ocx::name::User;
use ocx::repo::Repository;

fn main() -> Result<()> {
    let options = Options::read();
    common::heading("Export and import of a bundle, standalone, durable", &options);
    let compared: Vec<_> = [FOSSIL, OCX_FOSSIL, GIT].iter().filter_map(Program::version).collect();
    println!("Compared: {}.", compared.join(", "));
    let sizes =
        match options.words.iter().map(|w| w.parse()).collect::<std::result::Result<Vec<usize>, _>>()? {
            given if !given.is_empty() => given,
            _ if options.quick => vec![60],
            _ => vec![1_000, 3_000],
        };
    let mut pictures = [("export", Picture::default()), ("import", Picture::default())];
    for size in sizes {
        let series = measure(size, &options)?;
        for ((_, picture), series) in pictures.iter_mut().zip(&series) {
            picture.add(size, series);
        }
    }
    for (what, picture) in &pictures {
        let path = picture::folder().join(format!("bundle-{what}.svg"));
        picture.write(&path, &format!("Bundle {what}, durable"), "check-ins")?;
        println!("\nPicture of {what} against size: {}", path.display());
    }
    Ok(())
}

/// What is measured for one size: a history, a bundle of it, and receivers that have only its beginning.
struct Place<'a> {
    folder: PathBuf,
    history: &'a History,
    bundle: PathBuf,
}

impl Place<'_> {
    fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Makes a new receiver for one way.
    fn receiver(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}.fossil"));
        ocx::engine::close(&path)?;
        for end in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(format!("{}{end}", path.display()));
        }
        fs::copy(&self.history.start, &path)?;
        Ok(path)
    }

    fn fossil(&self, program: Program, args: &[&str]) -> Result<()> {
        program.run(&self.home(), &self.folder, args).map(drop)
    }
}

fn measure(check_ins: usize, options: &Options) -> Result<[Vec<Series>; 2]> {
    let folder = tempfile::tempdir()?;
    let history = match common::own_repository() {
        Some(path) => History::of(&path, check_ins, folder.path())?,
        None => History::generated(check_ins, folder.path())?,
    };
    let place = Place {
        folder: folder.path().to_owned(),
        bundle: folder.path().join("kept.bundle"),
        history: &history,
    };
    fs::create_dir_all(place.home())?;
    let exported = Repository::open(&history.whole)?.export_bundle(&place.bundle, &history.selection())?;
    let bundle = Bundle::open(&place.bundle)?;
    let expanded = bundle.contents()?.expanded;
    println!(
        "\n# {} check-ins: {} artifacts, {:.1} MB expanded",
        exported.check_ins.len(),
        exported.artifacts,
        megabytes(expanded)
    );
    let rounds = options.rounds(if check_ins > 2_000 { 3 } else { 5 });
    let exports = interleaved(export_ways(&place, options)?, rounds)?;
    table("Export", &exports);
    table("Verify", &interleaved(verify_ways(&place), rounds)?);
    let imports = interleaved(import_ways(&place, options)?, rounds)?;
    table("Import", &imports);
    for (what, series) in [("export", &exports), ("import", &imports)] {
        if let Some(first) = series.first().map(Series::median).filter(|time| !time.is_zero()) {
            let count = f64::from(u32::try_from(exported.artifacts)?);
            println!(
                "\nOCX, {what}: {:.0} artifacts/s, {:.1} MB/s expanded.",
                count / first.as_secs_f64(),
                megabytes(expanded) / first.as_secs_f64()
            );
        }
    }
    sizes(&place, &bundle, expanded, options)?;
    Ok([exports, imports])
}

fn export_ways<'a>(place: &'a Place<'a>, options: &Options) -> Result<Vec<Way<'a>>> {
    let path = place.folder.join("out.bundle");
    let repository = Repository::open(&place.history.whole)?;
    let ours = path.clone();
    let mut ways = vec![Way::new("OCX, in-process", move |_| {
        let _ = fs::remove_file(&ours);
        timed(|| Ok(repository.export_bundle(&ours, &place.history.selection()).map(drop)?))
    })];
    if options.alone {
        return Ok(ways);
    }
    for (name, program) in [("fossil bundle export", FOSSIL), ("ocx fossil bundle export", OCX_FOSSIL)] {
        if program.version().is_some() {
            let (path, whole) = (path.clone(), place.history.whole.clone());
            ways.push(Way::new(name, move |_| {
                let _ = fs::remove_file(&path);
                let (from, file) = (place.history.first.to_string(), path.display().to_string());
                let whole = whole.display().to_string();
                let mut args = vec!["bundle", "export", &file, "--standalone", "--from", &from, "-R", &whole];
                let to = place.history.last.map(|last| last.to_string());
                args.extend(to.iter().flat_map(|to| ["--to", to]));
                timed(|| place.fossil(program, &args))
            }));
        }
    }
    if let Some(git) = &place.history.git {
        ways.push(Way::new("git bundle create", move |_| {
            let file = place.folder.join("out.git-bundle").display().to_string();
            let _ = fs::remove_file(&file);
            timed(|| GIT.run(&place.home(), git, git_bundle(&file)).map(drop))
        }));
    }
    Ok(ways)
}

/// The words with which git bundles what follows the start.
fn git_bundle(file: &str) -> [&str; 6] {
    ["bundle", "create", "-q", file, "--branches", "^start"]
}

/// Nothing else verifies a bundle: `fossil bundle ls` lists what it says of itself.
fn verify_ways<'a>(place: &'a Place<'a>) -> Vec<Way<'a>> {
    let mut spawned = std::process::Command::new(OCX);
    spawned.args(["bundle", "ls"]).arg(&place.bundle).stdout(std::process::Stdio::null());
    spawned.env("HOME", place.home()).current_dir(&place.folder);
    let in_process = || Ok(Bundle::open(&place.bundle)?.contents().map(drop)?);
    let spawned = move || {
        if spawned.status()?.success() { Ok(()) } else { Err("ocx bundle ls failed".into()) }
    };
    vec![Way::plain("OCX, in-process", in_process), Way::plain("ocx bundle ls, spawned", spawned)]
}

fn import_ways<'a>(place: &'a Place<'a>, options: &Options) -> Result<Vec<Way<'a>>> {
    let mut ways = vec![Way::new("OCX, in-process", move |_| {
        let repository = Repository::open(&place.receiver("ours")?)?;
        timed(|| {
            Ok(repository
                .import_bundle(&Bundle::open(&place.bundle)?, &Import::by(User::parse(USER)?))
                .map(drop)?)
        })
    })];
    if options.alone {
        return Ok(ways);
    }
    ways.push(Way::new("ocx bundle import, spawned", move |_| {
        let receiver = place.receiver("spawned")?;
        timed(|| peak_memory(spawned_import(place, &receiver)).map(drop))
    }));
    for (name, program) in [("fossil bundle import", FOSSIL), ("ocx fossil bundle import", OCX_FOSSIL)] {
        if program.version().is_some() {
            ways.push(Way::new(name, move |_| {
                let receiver = place.receiver("other")?.display().to_string();
                let bundle = place.bundle.display().to_string();
                timed(|| place.fossil(program, &["bundle", "import", "--publish", &bundle, "-R", &receiver]))
            }));
        }
    }
    if let Some(git) = &place.history.git {
        let bundle = place.folder.join("kept.git-bundle").display().to_string();
        GIT.run(&place.home(), git, git_bundle(&bundle))?;
        ways.push(Way::new("git bundle unbundle", move |_| {
            let clone = place.folder.join("clone.git");
            let _ = fs::remove_dir_all(&clone);
            let to = clone.display().to_string();
            let from = git.display().to_string();
            GIT.run(&place.home(), &place.folder, ["init", "-q", "--bare", &to])?;
            GIT.run(&place.home(), &clone, ["fetch", "-q", &from, "start"])?;
            timed(|| GIT.run(&place.home(), &clone, ["bundle", "unbundle", &bundle]).map(drop))
        }));
    }
    Ok(ways)
}

fn spawned_import(place: &Place<'_>, receiver: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(OCX);
    command.args(["bundle", "import", "--user", USER]).arg(&place.bundle).arg("-R").arg(receiver);
    command.env("HOME", place.home()).current_dir(&place.folder);
    command
}

/// Prints the memory, the growth of the repository, and the size on the wire.
fn sizes(place: &Place<'_>, bundle: &Bundle, expanded: u64, options: &Options) -> Result<()> {
    println!("\n## Sizes\n\n| what | OCX | fossil |\n|---|---:|---:|");
    let ours = place.receiver("ours")?;
    let before = fs::metadata(&ours)?.len();
    let memory = peak_memory(spawned_import(place, &ours))?;
    let grown = fs::metadata(&ours)?.len().saturating_sub(before);
    let (mut other_memory, mut other_grown, mut other_artifacts) = (0, 0, 0);
    if !options.alone && FOSSIL.version().is_some() {
        let other = place.receiver("other")?;
        let (file, path) = (place.bundle.display().to_string(), other.display().to_string());
        let args = ["bundle", "import", "--publish", &file, "-R", &path];
        other_memory = peak_memory(FOSSIL.command(&place.home(), &place.folder, args))?;
        other_grown = fs::metadata(&other)?.len().saturating_sub(before);
        other_artifacts = artifacts(&other)?;
    }
    println!(
        "| peak memory of the import | {:.0} MB | {:.0} MB |",
        megabytes(memory),
        megabytes(other_memory)
    );
    let ratio = |part: u64, whole: u64| megabytes(part) / megabytes(whole.max(1));
    println!(
        "| growth of the repository / bundle | {:.2} | {:.2} |",
        ratio(grown, bundle.size()),
        ratio(other_grown, bundle.size())
    );
    println!(
        "| of it artifacts, without what Fossil derives / bundle | {:.2} | {:.2} |",
        ratio(artifacts(&ours)?.saturating_sub(artifacts(&place.history.start)?), bundle.size()),
        ratio(other_artifacts.saturating_sub(artifacts(&place.history.start)?), bundle.size())
    );
    let plain = place.folder.join("out.bundle");
    let plain = fs::metadata(&plain).map_or(0, |meta| meta.len());
    println!("| bundle file | {:.2} MB | {:.2} MB |", megabytes(bundle.size()), megabytes(plain));
    println!("| expanded / bundle file | {:.0} | |", ratio(expanded, bundle.size()));
    println!("| artifacts in it that are whole | {} | |", wholes(&place.bundle)?);
    let wire = place.folder.join("wire");
    let mut written = 0;
    let writing = timed(|| {
        written = bundle.save_wire(&wire)?;
        Ok(())
    })?;
    let reading: Duration = timed(|| Ok(Bundle::open(&wire).map(drop)?))?;
    println!("| wire / bundle file | {:.2} | |", ratio(written, bundle.size()));
    println!("| deltas and texts in it / wire | {:.0} | |", ratio(inflated(&place.bundle)?, written));
    println!("| wire written, read in | {}, {} | |", common::shown(writing), common::shown(reading));
    Ok(())
}

/// The number of bytes of the pages that hold artifacts and deltas.
fn artifacts(repository: &Path) -> Result<u64> {
    let db = rusqlite::Connection::open(repository)?;
    let sql = "SELECT sum(pgsize) FROM dbstat WHERE name IN ('blob', 'delta')";
    Ok(db.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// The number of artifacts of a bundle that are no deltas.
fn wholes(bundle: &Path) -> Result<i64> {
    let db = rusqlite::Connection::open(bundle)?;
    Ok(db.query_row("SELECT count(*) FROM bblob WHERE delta IS NULL", [], |row| row.get(0))?)
}

/// The number of bytes of a bundle's rows when they are inflated, deltas kept. Each says it in its first four bytes.
fn inflated(bundle: &Path) -> Result<u64> {
    let db = rusqlite::Connection::open(bundle)?;
    let mut query = db.prepare("SELECT substr(data, 1, 4) FROM bblob WHERE length(data)>=4")?;
    let sizes = query.query_map([], |row| row.get::<_, [u8; 4]>(0))?;
    sizes.map(|size| Ok(u64::from(u32::from_be_bytes(size?)))).sum()
}

#[allow(clippy::cast_precision_loss, reason = "sizes are far below what a double holds exactly")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
