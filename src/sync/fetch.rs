//! What is fetched from a server: which artifacts are wanted, and those that came.

use std::collections::{HashSet, VecDeque};
use std::path::Path;

use rusqlite::Connection;

use super::connection::Limits;
use crate::error::{Error, Kind, Result};
use crate::format::sync_message::{Card, FileCard, cluster_members};
use crate::name::Hash;
use crate::repo::store::connect;
use crate::transfer::{Arrival, Keep, Origin, Progress, Spool, SpoolLimits, Staged, check};

/// The least and the most artifacts that one request asks for. A server answers with as much as fits into its reply.
const ASKED: std::ops::RangeInclusive<usize> = 500..=5000;

/// What is fetched.
pub(super) struct Fetch {
    /// The repository that they are for. A clone has none yet.
    here: Option<Connection>,
    private: bool,
    spool: Spool,
    /// What is to be asked for, each once.
    wanted: VecDeque<Hash>,
    /// Whatever was wanted by now.
    known: HashSet<Hash>,
    known_max: usize,
    /// What the last request asked for.
    asked: HashSet<Hash>,
    /// How many came by the last reply.
    came: usize,
    next_is_private: bool,
    /// What is held as private, and public on the server.
    pub published: Vec<Hash>,
    progress: Option<Progress>,
}

/// A set that came, and what it still lacks.
pub(super) struct Fetched {
    pub staged: Staged,
    /// Artifacts that it names, which are not here, and which the server does not give.
    pub gaps: Vec<Hash>,
}

impl Fetch {
    /// For a repository. What it knows by name only is wanted.
    pub fn into(path: &Path, limits: &Limits, private: bool, progress: Option<Progress>) -> Result<Self> {
        let db = connect(path)?;
        let sql = "SELECT uuid FROM phantom JOIN blob USING(rid)
                   WHERE uuid NOT IN (SELECT uuid FROM shun) AND (?1 OR rid NOT IN (SELECT rid FROM private))";
        let phantoms = db
            .prepare(sql)?
            .query_map([private], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        let mut fetch = Self::new(path, limits, private, progress)?;
        fetch.here = Some(db);
        phantoms
            .iter()
            .filter_map(|hash| Hash::parse(hash).ok())
            .try_for_each(|hash| fetch.want(hash).map(drop))?;
        Ok(fetch)
    }

    /// For a clone, which is to stand beside `path`.
    pub fn new(path: &Path, limits: &Limits, private: bool, progress: Option<Progress>) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let spool = SpoolLimits { bytes: limits.sync_bytes, artifacts: limits.sync_artifacts };
        Ok(Self {
            here: None,
            private,
            spool: Spool::new(folder, spool)?,
            wanted: VecDeque::new(),
            known: HashSet::new(),
            known_max: limits.sync_artifacts,
            asked: HashSet::new(),
            came: 0,
            next_is_private: false,
            published: Vec::new(),
            progress,
        })
    }

    /// Whether anything is to be asked for.
    pub fn is_wanting(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// The cards that ask for what is wanted next.
    pub fn cards(&mut self) -> String {
        let count = (self.came * 2).clamp(*ASKED.start(), *ASKED.end()).min(self.wanted.len());
        self.came = 0;
        self.asked = self.wanted.drain(..count).collect();
        self.asked.iter().fold(String::new(), |cards, hash| cards + "gimme " + hash.as_str() + "\n")
    }

    /// Takes a card of the reply. Returns whether it brought an artifact.
    pub fn take(&mut self, card: &Card<'_>) -> Result<bool> {
        match card {
            Card::NextIsPrivate => self.next_is_private = true,
            Card::File(file) => return self.file(file),
            // What is private there is not given, and need not be asked for.
            Card::Have { private: true, .. } if !self.private => {}
            // What does not fit into a reply is listed there.
            Card::Have { hash, .. } if self.asked.remove(hash) => self.wanted.push_back(*hash),
            Card::Have { hash, private } => self.have(*hash, *private)?,
            _ => {}
        }
        Ok(false)
    }

    fn have(&mut self, hash: Hash, private: bool) -> Result<()> {
        match self.standing(&hash)? {
            Standing::Unknown => self.want(hash).map(drop),
            Standing::Private if !private => {
                self.published.push(hash);
                Ok(())
            }
            Standing::Private | Standing::Public | Standing::Shunned => Ok(()),
        }
    }

    fn file(&mut self, file: &FileCard<'_>) -> Result<bool> {
        let is_private = std::mem::take(&mut self.next_is_private);
        if is_private && !self.private {
            return Ok(false);
        }
        self.asked.remove(&file.hash);
        let keep = match self.standing(&file.hash)? {
            Standing::Public => return Ok(false),
            Standing::Private if is_private => return Ok(false),
            Standing::Shunned => Keep::ForOthers,
            Standing::Unknown | Standing::Private if is_private => Keep::Private,
            Standing::Unknown | Standing::Private => Keep::Public,
        };
        let FileCard { hash, basis, is_packed, data } = *file;
        let before = self.spool.len();
        self.spool.add(&Arrival { hash, basis, is_packed, data, keep })?;
        self.known.insert(hash);
        if !is_packed && basis.is_none() {
            self.find_members(data)?;
        }
        self.came += 1;
        if let Some(progress) = &self.progress {
            let done = self.spool.len() as u64;
            progress(done, done + (self.wanted.len() + self.asked.len()) as u64);
        }
        Ok(self.spool.len() > before)
    }

    /// Wants what a cluster names.
    fn find_members(&mut self, content: &[u8]) -> Result<()> {
        if !content.starts_with(b"M ") {
            return Ok(());
        }
        for hash in cluster_members(content) {
            if self.standing(&hash)? == Standing::Unknown {
                self.want(hash)?;
            }
        }
        Ok(())
    }

    /// Wants an artifact, unless it was wanted before. Returns whether it is asked for.
    fn want(&mut self, hash: Hash) -> Result<bool> {
        if !self.known.insert(hash) {
            return Ok(false);
        }
        if self.known.len() > self.known_max {
            let what = format!("the server names more than {} artifacts, which is the limit", self.known_max);
            return Err(
                Error::new(Kind::TooLarge, what).with_hint("Raise the limit if the server can be trusted.")
            );
        }
        self.wanted.push_back(hash);
        Ok(true)
    }

    fn standing(&self, hash: &Hash) -> Result<Standing> {
        let Some(db) = &self.here else { return Ok(Standing::Unknown) };
        let sql = "SELECT 2 FROM shun WHERE uuid=?1 UNION ALL
                   SELECT EXISTS(SELECT 1 FROM private WHERE private.rid=blob.rid) FROM blob WHERE uuid=?1 AND size>=0";
        let mut query = db.prepare_cached(sql)?;
        let mut rows = query.query([hash.as_str()])?;
        Ok(match rows.next()?.map(|row| row.get(0)).transpose()? {
            None => Standing::Unknown,
            Some(0) => Standing::Public,
            Some(1) => Standing::Private,
            Some(_) => Standing::Shunned,
        })
    }

    /// Whether the artifact is here with its content.
    fn is_here(&self, hash: &Hash) -> Result<bool> {
        Ok(matches!(self.standing(hash)?, Standing::Public | Standing::Private))
    }

    /// Wants those anew that are deltas from something that nobody has. They may come whole.
    pub fn want_whole(&mut self) -> Result<()> {
        let lacking = self.spool.without_basis(|hash| self.is_here(hash))?;
        self.wanted.extend(lacking);
        Ok(())
    }

    /// Leaves out what cannot be expanded, verifies all that came, and wants what it names and nobody has yet. Returns
    /// the set if there is nothing more to ask for.
    pub fn finish(&mut self) -> Result<Option<Fetched>> {
        let lacking = self.spool.without_basis(|hash| self.is_here(hash))?;
        self.spool.leave_out(&lacking);
        let staged = self.spool.staged("sync")?;
        let empty;
        let db = if let Some(db) = &self.here {
            db
        } else {
            empty = Connection::open_in_memory()?;
            empty.execute_batch(EMPTY)?;
            &empty
        };
        let findings = check(db, &staged, Origin::Server)?;
        let mut gaps = Vec::new();
        let mut is_wanting = false;
        for hash in findings.named() {
            if !self.spool.holds(hash) && self.standing(hash)? == Standing::Unknown {
                is_wanting |= self.want(*hash)?;
                gaps.push(*hash);
            }
        }
        Ok((!is_wanting).then_some(Fetched { staged, gaps }))
    }
}

/// The tables of a repository without artifacts, as far as judging reads them.
const EMPTY: &str = "CREATE TABLE blob(rid INTEGER PRIMARY KEY, uuid TEXT UNIQUE, size INT, content BLOB);
    CREATE TABLE delta(rid INTEGER PRIMARY KEY, srcid INT); CREATE TABLE private(rid INTEGER PRIMARY KEY);
    CREATE TABLE shun(uuid TEXT PRIMARY KEY); CREATE TABLE event(objid INTEGER PRIMARY KEY, type TEXT);";

/// How an artifact stands in the repository.
#[derive(PartialEq, Eq)]
enum Standing {
    /// It is not here, or by name only.
    Unknown,
    Public,
    Private,
    Shunned,
}
