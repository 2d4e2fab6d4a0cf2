//! A history that is the same in every run, in Fossil's form and in git's form. A second repository has only its
//! beginning.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ocx::bundle::Selection;
use ocx::checkout::{CheckIn, Checkout};
use ocx::name::{Hash, User};
use ocx::repo::{NewRepository, Repository};

use super::programs::{GIT, USER};
use super::{Result, corpus};

/// The number of files in the tree of a generated history.
const FILES: usize = 200;

/// A repository with a history, and a repository that holds only what came before the history.
pub struct History {
    /// The repository that has everything.
    pub whole: PathBuf,
    /// The repository of a receiver. It has everything up to the first check-in's parent.
    pub start: PathBuf,
    /// The first check-in of the history.
    pub first: Hash,
    /// The last check-in of the history.
    pub last: Hash,
    /// The same history in git, with a tag `start`. Only a generated history has it, and only if git is installed.
    pub git: Option<PathBuf>,
}

impl History {
    /// The check-ins that are exported and imported.
    pub fn selection(&self) -> Selection {
        Selection::range(self.first, self.last)
    }

    /// Makes a history of `count` check-ins. Each of them changes one to three of 200 files.
    pub fn generated(count: usize, folder: &Path) -> Result<Self> {
        let (whole, start) = (folder.join("whole.fossil"), folder.join("start.fossil"));
        let user = User::parse(USER)?;
        let repository = Repository::create(&whole, &NewRepository { user: user.clone() })?;
        let checkout = Checkout::open(&repository, &folder.join("tree"), None, Some(&user))?;
        corpus::write_tree(checkout.root(), FILES)?;
        let paths = corpus::files(checkout.root())?;
        save(&checkout, "start")?;
        Repository::clone_file(&whole, &start, &user)?;
        let mut git = GitStream::new(checkout.root(), &paths)?;
        let mut first = None;
        for round in 0..count {
            for part in 0..=round % 3 {
                corpus::edit(checkout.root(), &paths, round * 3 + part)?;
            }
            let made = save(&checkout, &format!("change {round}"))?;
            first.get_or_insert(made);
            let edited = (0..=round % 3).map(|part| corpus::edited(&paths, round * 3 + part));
            git.commit(checkout.root(), edited, round)?;
        }
        let (first, last) = (first.ok_or("no check-ins")?, checkout.parent()?);
        let git = if GIT.version().is_some() { Some(git.load(folder)?) } else { None };
        ocx::engine::close_all();
        Ok(Self { whole, start, first, last, git })
    }

    /// Takes the newest `count` check-ins of a repository, on the line of first parents from trunk's tip.
    pub fn of(repository: &Path, count: usize, folder: &Path) -> Result<Self> {
        let (whole, start) = (folder.join("whole.fossil"), folder.join("start.fossil"));
        let user = User::parse(USER)?;
        Repository::clone_file(repository, &whole, &user)?;
        let store = Repository::open(&whole)?;
        let store = store.store();
        let last = store.resolve("trunk")?;
        let (mut first, mut before) = (last, store.check_in(&last)?.parents);
        for _ in 1..count {
            let Some(parent) = before.first() else { break };
            (first, before) = (*parent, store.check_in(parent)?.parents);
        }
        let before = *before.first().ok_or("the repository has fewer check-ins")?;
        // The receiver gets everything that it has from a bundle too.
        let root =
            std::iter::successors(Some(before), |at| store.check_in(at).ok()?.parents.first().copied())
                .last();
        let root = root.ok_or("no first check-in")?;
        let file = folder.join("start.bundle");
        let whole_repository = Repository::open(&whole)?;
        whole_repository.export_bundle(&file, &Selection::range(root, before))?;
        let code = store.project_code()?;
        let receiver = Repository::create(&start, &NewRepository { user: user.clone() })?;
        let db = rusqlite::Connection::open(&start)?;
        db.execute("UPDATE config SET value=?1 WHERE name='project-code'", [code])?;
        drop(db);
        receiver.import_bundle(&ocx::bundle::Bundle::open(&file)?, &ocx::bundle::Import::by(user))?;
        ocx::engine::close_all();
        Ok(Self { whole, start, first, last, git: None })
    }
}

fn save(checkout: &Checkout, comment: &str) -> Result<Hash> {
    let what = CheckIn { comment: comment.to_owned(), branch: None, user: User::parse(USER)?, time: None };
    Ok(checkout.check_in(&what, &checkout.status()?)?.hash)
}

/// The history in the form that `git fast-import` reads.
struct GitStream(Vec<u8>);

impl GitStream {
    fn new(root: &Path, paths: &[PathBuf]) -> Result<Self> {
        let mut stream = Self(Vec::new());
        stream.write(root, paths.iter(), "start", 0)?;
        stream.0.extend_from_slice(b"reset refs/tags/start\nfrom refs/heads/main\n\n");
        Ok(stream)
    }

    fn commit<'a>(
        &mut self,
        root: &Path,
        edited: impl Iterator<Item = &'a PathBuf>,
        round: usize,
    ) -> Result<()> {
        self.write(root, edited, &format!("change {round}"), round + 1)
    }

    fn write<'a>(
        &mut self,
        root: &Path,
        paths: impl Iterator<Item = &'a PathBuf>,
        comment: &str,
        nth: usize,
    ) -> Result<()> {
        let mut head = String::new();
        write!(
            head,
            "commit refs/heads/main\ncommitter {USER} <ann@localhost> {} +0000\ndata {}\n{comment}\n",
            1_700_000_000 + nth,
            comment.len()
        )?;
        self.0.extend_from_slice(head.as_bytes());
        for path in paths {
            let bytes = fs::read(root.join(path))?;
            self.0.extend_from_slice(
                format!("M 100644 inline {}\ndata {}\n", path.display(), bytes.len()).as_bytes(),
            );
            self.0.extend_from_slice(&bytes);
            self.0.push(b'\n');
        }
        Ok(())
    }

    fn load(self, folder: &Path) -> Result<PathBuf> {
        let git = folder.join("git");
        fs::create_dir_all(&git)?;
        GIT.run(folder, &git, ["init", "-q", "--bare", "."])?;
        let file = folder.join("stream");
        fs::write(&file, self.0)?;
        let mut command = GIT.command(folder, &git, ["fast-import", "--quiet"]);
        let status = command.stdin(Stdio::from(fs::File::open(&file)?)).status()?;
        if !status.success() {
            return Err("git fast-import failed".into());
        }
        GIT.run(folder, &git, ["repack", "-q", "-a", "-d"])?;
        fs::remove_file(file)?;
        Ok(git)
    }
}
