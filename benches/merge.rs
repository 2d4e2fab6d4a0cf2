//! How long does it take to merge two versions into the files of a checkout, to update it, and to say what either would
//! do? Ten files differ on each side. It is compared with `fossil merge` and `fossil update`, and with the number of
//! files.
//!
//! `cargo bench --bench merge -- [--quick|--alone] [FILES ...]`.
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::programs::{FOSSIL, OCX_FOSSIL, Program, USER};
use common::{Options, Result, Way, interleaved, table, timed};
use ocx::checkout::{CheckIn, Checkout, MergeHow};
use ocx::merge::in_memory;
use ocx::name::{Branch, Hash, User};
use ocx::repo::{NewRepository, Repository};

/// How many files each side changes.
const CHANGED: usize = 10;

fn main() -> Result<()> {
    let options = Options::read();
    common::heading("Merge of ten files changed on each side, and update to them", &options);
    let present: Vec<_> = [FOSSIL, OCX_FOSSIL].iter().filter_map(Program::version).collect();
    println!("Compared: {}.", present.join(", "));
    let sizes: Vec<usize> =
        options.words.iter().map(|word| word.parse()).collect::<std::result::Result<_, _>>()?;
    let sizes = match sizes.as_slice() {
        [] if options.quick => &[100, 500],
        [] => &[1_000, 10_000][..],
        given => given,
    };
    sizes.iter().try_for_each(|&files| measure(files, &options))
}

fn measure(files: usize, options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place::new(folder.path(), files)?;
    let kept = place.checkout("kept")?;
    let spawned: Vec<Program> = [FOSSIL, OCX_FOSSIL].into_iter().filter(|_| !options.alone).collect();
    let spawned: Vec<_> = spawned.into_iter().filter(|program| program.version().is_some()).collect();
    let mut ways = vec![
        Way::new("merge, in-process", |_| {
            let done = timed(|| kept.merge("side", MergeHow::Whole).map(drop).map_err(Into::into));
            kept.undo()?;
            done
        }),
        Way::plain("what it would do", || {
            kept.would_merge("side", MergeHow::Whole).map(drop).map_err(Into::into)
        }),
        Way::plain("in memory, without a checkout", || {
            let store = place.repository.store();
            in_memory(store, &place.trunk, &place.side, MergeHow::Whole).map(drop).map_err(Into::into)
        }),
        Way::new("update there, in-process", |_| {
            let done = timed(|| kept.update("side").map(drop).map_err(Into::into));
            kept.update("trunk")?;
            done
        }),
    ];
    for program in &spawned {
        let root = place.checkout(program.name)?.root().to_owned();
        let place = &place;
        let run = move |args: &[&str]| program.run(&place.folder, &root, args).map(drop);
        let again = run.clone();
        ways.push(Way::new(format!("{} merge", program.name), move |_| {
            let done = timed(|| run(&["merge", "side"]));
            run(&["undo"])?;
            done
        }));
        ways.push(Way::new(format!("{} update", program.name), move |_| {
            let done = timed(|| again(&["update", "--nosync", "side"]));
            again(&["update", "--nosync", "trunk"])?;
            done
        }));
    }
    table(&format!("{files} files"), &interleaved(ways, options.rounds(15))?);
    Ok(())
}

/// A repository with two versions that differ from their common parent.
struct Place {
    folder: PathBuf,
    repository: Repository,
    trunk: Hash,
    side: Hash,
}

impl Place {
    fn new(folder: &Path, files: usize) -> Result<Self> {
        let repository = Repository::create(&folder.join("r.fossil"), &NewRepository { user: user()? })?;
        let first = Checkout::open(&repository, &folder.join("first"), None, Some(&user()?))?;
        for file in 0..files {
            let path = first.root().join(name(file));
            fs::create_dir_all(path.parent().unwrap_or(first.root()))?;
            fs::write(path, text(file))?;
        }
        save(&first, None)?;
        let second = Checkout::open(&repository, &folder.join("second"), None, Some(&user()?))?;
        for at in 0..CHANGED {
            let (ours, theirs) = (at * files / CHANGED, at * files / CHANGED + 1);
            fs::write(first.root().join(name(ours)), text(ours) + "ours\n")?;
            fs::write(second.root().join(name(theirs)), text(theirs) + "theirs\n")?;
            if at % 2 == 0 {
                // One that both sides change.
                fs::write(second.root().join(name(ours)), "theirs\n".to_owned() + &text(ours))?;
            }
        }
        let side = save(&second, Some("side"))?;
        let trunk = save(&first, None)?;
        Ok(Self { folder: folder.to_owned(), repository, trunk, side })
    }

    fn checkout(&self, name: &str) -> Result<Checkout> {
        let dir = self.folder.join(name.replace(' ', "-"));
        let checkout = Checkout::open(&self.repository, &dir, Some("trunk"), Some(&user()?))?;
        // Files that are older than their entries need not be read again.
        std::thread::sleep(std::time::Duration::from_millis(2_100));
        checkout.status()?;
        checkout.remember()?;
        Ok(checkout)
    }
}

fn save(checkout: &Checkout, branch: Option<&str>) -> Result<Hash> {
    let branch = branch.map(Branch::parse).transpose()?;
    let check_in = CheckIn { comment: "some files".into(), branch, user: user()?, time: None };
    Ok(checkout.check_in(&check_in, &checkout.status()?)?.hash)
}

fn user() -> Result<User> {
    Ok(User::parse(USER)?)
}

fn name(file: usize) -> String {
    format!("d{}/e{}/f{file}.txt", file % 10, file / 10 % 10)
}

fn text(file: usize) -> String {
    (0..60).map(|line| format!("line {line} of file {file}\n")).collect::<Vec<_>>().concat()
}
