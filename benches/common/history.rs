//! A history that is the same in every run, in Fossil's form and in git's form. A second repository has only its
//! beginning.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ocx::bundle::Selection;
use ocx::checkout::{CheckIn, Checkout};
use ocx::name::{Branch, Hash, User};
use ocx::repo::{NewRepository, Repository};

use super::programs::{GIT, USER};
use super::{Result, corpus};

/// The number of files in the tree of a generated history.
const FILES: usize = 400;
/// Every so many check-ins a side branch begins, of so many check-ins.
const SIDE: (usize, usize) = (40, 6);

/// A repository with a history, and a repository that holds only what came before the history.
pub struct History {
    /// The repository that has everything.
    pub whole: PathBuf,
    /// The repository of a receiver. It has everything up to the first check-in's parent.
    pub start: PathBuf,
    /// The first check-in of the history.
    pub first: Hash,
    /// The last check-in of the history, if it ends with one. Else all that descends from the first belongs to it.
    pub last: Option<Hash>,
    /// The same history in git, with a tag `start`. Only a generated history has it, and only if git is installed.
    pub git: Option<PathBuf>,
    /// The parent of the first check-in.
    before: Hash,
}

impl History {
    /// The check-ins that are exported and imported.
    pub fn selection(&self) -> Selection {
        match self.last {
            Some(last) => Selection::range(self.first, last),
            None => Selection::descendants(self.before),
        }
    }

    /// Makes a history of `count` check-ins, in the proportions of real ones: files grow by lines, some get another
    /// name, and side branches leave the trunk.
    pub fn generated(count: usize, folder: &Path) -> Result<Self> {
        let (whole, start) = (folder.join("whole.fossil"), folder.join("start.fossil"));
        let user = User::parse(USER)?;
        let repository = Repository::create(&whole, &NewRepository { user: user.clone() })?;
        let checkout = Checkout::open(&repository, &folder.join("tree"), None, Some(&user))?;
        corpus::write_sources(checkout.root(), FILES)?;
        let mut paths = corpus::files(checkout.root())?;
        let before = save(&checkout, "start", None)?;
        Repository::clone_file(&whole, &start, &user)?;
        let mut git = GitStream::new(checkout.root(), &paths)?;
        let mut first = None;
        // While a side branch goes on: the trunk's tip, its mark, and its files.
        let mut trunk: Option<(Hash, usize, Vec<PathBuf>)> = None;
        for round in 0..count {
            let in_turn = (round + SIDE.0 / 2) % SIDE.0;
            let side = (in_turn < SIDE.1 && round > 0).then(|| format!("side-{}", round / SIDE.0));
            if let Some((tip, mark, its_paths)) = trunk.take_if(|_| side.is_none()) {
                checkout.update(tip.as_str())?;
                (paths, git.parent) = (its_paths, mark);
            }
            if side.is_some() && trunk.is_none() {
                trunk = Some((checkout.parent()?, git.parent, paths.clone()));
            }
            let changed = corpus::develop(checkout.root(), &mut paths, round)?;
            let begins = side.as_deref().filter(|_| in_turn == 0);
            let made = save(&checkout, &corpus::message(round), begins)?;
            first.get_or_insert(made);
            git.commit(checkout.root(), side.as_deref().unwrap_or("main"), &changed, round)?;
        }
        let first = first.ok_or("no check-ins")?;
        let git = if GIT.version().is_some() { Some(git.load(folder)?) } else { None };
        ocx::engine::close_all();
        Ok(Self { whole, start, first, last: None, git, before })
    }

    /// Takes the newest check-ins of a repository: those between the main branch's tip and its ancestor `count` first
    /// parents before.
    pub fn of(repository: &Path, count: usize, folder: &Path) -> Result<Self> {
        let (whole, start) = (folder.join("whole.fossil"), folder.join("start.fossil"));
        let user = User::parse(USER)?;
        Repository::clone_file(repository, &whole, &user)?;
        let store = Repository::open(&whole)?;
        let store = store.store();
        let last = store.resolve("trunk").or_else(|_| store.resolve("master"))?;
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
        Ok(Self { whole, start, first, last: Some(last), git: None, before })
    }
}

fn save(checkout: &Checkout, comment: &str, branch: Option<&str>) -> Result<Hash> {
    let branch = branch.map(Branch::parse).transpose()?;
    let what = CheckIn { comment: comment.to_owned(), branch, user: User::parse(USER)?, time: None };
    Ok(checkout.check_in(&what, &checkout.status()?)?.hash)
}

/// The history in the form that `git fast-import` reads.
struct GitStream {
    text: Vec<u8>,
    /// The mark of the commit on which the next one builds, and the last mark of all.
    parent: usize,
    last: usize,
}

impl GitStream {
    fn new(root: &Path, paths: &[PathBuf]) -> Result<Self> {
        let mut stream = Self { text: Vec::new(), parent: 0, last: 0 };
        stream.write(root, "main", paths, "start")?;
        stream.text.extend_from_slice(b"reset refs/tags/start\nfrom :1\n\n");
        Ok(stream)
    }

    fn commit(&mut self, root: &Path, branch: &str, changed: &[PathBuf], round: usize) -> Result<()> {
        self.write(root, branch, changed, &corpus::message(round))
    }

    /// Writes a commit of the paths that have changed or are gone.
    fn write(&mut self, root: &Path, branch: &str, changed: &[PathBuf], comment: &str) -> Result<()> {
        self.last += 1;
        let mut head = String::new();
        write!(
            head,
            "commit refs/heads/{branch}\nmark :{}\ncommitter {USER} <ann@localhost> {} +0000\ndata {}\n{comment}\n",
            self.last,
            1_700_000_000 + self.last,
            comment.len()
        )?;
        if self.parent > 0 {
            writeln!(head, "from :{}", self.parent)?;
        }
        self.parent = self.last;
        self.text.extend_from_slice(head.as_bytes());
        for path in changed {
            let Ok(bytes) = fs::read(root.join(path)) else {
                self.text.extend_from_slice(format!("D {}\n", path.display()).as_bytes());
                continue;
            };
            self.text.extend_from_slice(
                format!("M 100644 inline {}\ndata {}\n", path.display(), bytes.len()).as_bytes(),
            );
            self.text.extend_from_slice(&bytes);
            self.text.push(b'\n');
        }
        Ok(())
    }

    fn load(self, folder: &Path) -> Result<PathBuf> {
        let git = folder.join("git");
        fs::create_dir_all(&git)?;
        GIT.run(folder, &git, ["init", "-q", "--bare", "."])?;
        let file = folder.join("stream");
        fs::write(&file, self.text)?;
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
