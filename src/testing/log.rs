//! The last test runs of a checkout: what was run, how it ended, and what it printed.
//!
//! A run is stored when it starts, so a run that was never finished is seen later as lost.

use std::io::{BufRead, BufReader, Read};

use memchr::memchr;
use rusqlite::{Connection, Row, params};

use super::{Outcome, Test};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::process::{Count, Finished, Identity, Kept, Leftover, Mark, ShownLine};
use crate::repo::store::has_table;

const TABLE: &str = "log";

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS log(
  id INTEGER PRIMARY KEY, test TEXT NOT NULL, command TEXT NOT NULL, tree TEXT NOT NULL,
  mark TEXT NOT NULL, pid INTEGER NOT NULL, pid_start INTEGER NOT NULL,
  started TEXT NOT NULL, seconds REAL, outcome TEXT, code INTEGER, why TEXT, left_behind TEXT,
  bytes INTEGER, line_ends INTEGER, whole INTEGER, head_bytes INTEGER, gap_bytes INTEGER, gap_lines INTEGER,
  frame BLOB
)";
const FIELDS: &str = "id, test, command, tree, mark, pid, pid_start, started, seconds, outcome, code, why, \
                      left_behind, bytes, line_ends, whole, head_bytes, gap_bytes, gap_lines";
const LOGS_MAX: i64 = 20;
const SHOWN_MAX: usize = 1_000;

/// One test run.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    id: i64,
    mark: Mark,
    count: Count,
    /// The test's name.
    pub test: String,
    /// The command that was run.
    pub command: String,
    /// The tree it started on.
    pub tree: Hash,
    /// When it started, in UTC: `2026-01-31T12:00:00Z`.
    pub started: String,
    /// How long it took; nothing while it runs or if it was lost.
    pub seconds: Option<f64>,
    /// How it ended; nothing while it runs.
    pub outcome: Option<Outcome>,
    /// The process that runs or ran it.
    pub pid: i32,
    /// Processes that were ended with it.
    pub left_behind: Vec<Leftover>,
}

impl LogEntry {
    /// All lines it printed.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.count.lines()
    }

    /// All bytes it printed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count.bytes
    }

    /// The bytes in its middle that the log does not keep.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.count.gap_bytes
    }
}

/// A stretch of one run's output.
#[derive(Debug, Clone, PartialEq)]
pub struct LogPart {
    /// The run.
    pub entry: LogEntry,
    /// Each line's number, from 1, and its text without the line end; a long line is cut and says so.
    pub lines: Vec<(u64, String)>,
}

/// Stores a run that starts now, in this process; returns its id.
///
/// # Errors
/// Those of the database.
pub fn begin(state: &Connection, test: &Test, tree: &Hash, mark: &Mark) -> Result<i64> {
    state.execute_batch(SCHEMA)?;
    let Identity { pid, start } = Identity::this();
    state.execute(
        "INSERT INTO log(test, command, tree, mark, pid, pid_start, started)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))",
        params![test.name, test.command, tree.as_str(), mark.to_string(), pid, start.cast_signed()],
    )?;
    let id = state.last_insert_rowid();
    state.execute("DELETE FROM log WHERE id <= ?1", [id - LOGS_MAX])?;
    Ok(id)
}

/// Stores how the run `id` ended and what it printed.
///
/// # Errors
/// Those of the database.
pub fn end(state: &Connection, id: i64, finished: &Finished, kept: &Kept) -> Result<()> {
    let outcome = Outcome::from(&finished.exit);
    let Count { bytes, line_ends, whole, head_bytes, gap_bytes, gap_lines } = kept.count;
    state.execute(
        "UPDATE log SET seconds=?2, outcome=?3, code=?4, why=?5, left_behind=?6, bytes=?7, line_ends=?8, \
         whole=?9, head_bytes=?10, gap_bytes=?11, gap_lines=?12, frame=?13 WHERE id=?1",
        params![
            id,
            finished.duration.as_secs_f64(),
            outcome.word(),
            outcome.code(),
            outcome.why(),
            serde_json::to_string(&finished.left_behind).unwrap_or_default(),
            bytes.cast_signed(),
            line_ends.cast_signed(),
            whole,
            head_bytes.cast_signed(),
            gap_bytes.cast_signed(),
            gap_lines.cast_signed(),
            kept.frame,
        ],
    )?;
    Ok(())
}

/// Stores that the run `id` has no result, and why.
///
/// # Errors
/// Those of the database.
pub fn lose(state: &Connection, id: i64, why: &str) -> Result<()> {
    state.execute("UPDATE log SET outcome='lost', why=?2 WHERE id=?1", params![id, why])?;
    Ok(())
}

/// Returns the latest run of each test, newest first. A run whose process ended shows as lost.
///
/// # Errors
/// Those of the database.
pub fn latest(state: &Connection) -> Result<Vec<LogEntry>> {
    entries(state, "id IN (SELECT max(id) FROM log GROUP BY test)")
}

/// Returns the run that has no result yet and whose process lives.
///
/// # Errors
/// Those of the database.
pub fn running(state: &Connection) -> Result<Option<LogEntry>> {
    Ok(entries(state, "outcome IS NULL")?.into_iter().find(|entry| entry.outcome.is_none()))
}

/// Ends what is left of runs that nothing watches any more, and stores them as lost. The caller must hold the lock on
/// the checkout's tests.
///
/// # Errors
/// Those of the database.
pub fn abandon(state: &Connection) -> Result<Vec<LogEntry>> {
    let lost = entries(state, "outcome IS NULL")?;
    for entry in &lost {
        let _count = entry.mark.sweep();
        lose(state, entry.id, GONE)?;
    }
    Ok(lost)
}

/// Reads at most `count` lines (and at most 1,000) of the latest run of `test`, from line `from` on.
///
/// # Errors
/// `NotFound` if it never ran, `Busy` while it runs, `Invalid` for a line number that does not exist.
pub fn read(state: &Connection, test: &str, from: u64, count: usize) -> Result<LogPart> {
    let named = |entry: &LogEntry| entry.test == test;
    let Some(entry) = latest(state)?.into_iter().find(named) else {
        return Err(never_ran(test));
    };
    if entry.outcome.is_none() {
        return Err(Error::new(Kind::Busy, format!("test `{test}` still runs"))
            .with_hint("Wait for it by running the same test again."));
    }
    if from == 0 || from > entry.lines().max(1) {
        let what = match entry.lines() {
            0 => format!("the log of test `{test}` is empty: there is no line {from}"),
            last => format!("the log of test `{test}` has lines 1 to {last}, not {from}"),
        };
        return Err(Error::new(Kind::Invalid, what).with_hint("Ask for a line that there is."));
    }
    let frame: Option<Vec<u8>> =
        state.query_row("SELECT frame FROM log WHERE id=?1", [entry.id], |row| row.get(0))?;
    let mut lines = Lines::new(from, count.min(SHOWN_MAX));
    lines
        .read(&frame.unwrap_or_default(), &entry.count)
        .map_err(|e| Error::new(Kind::Corrupt, format!("the log of test `{test}`: {e}")).caused_by(e))?;
    Ok(LogPart { entry, lines: lines.found })
}

/// The error for a test without any run.
pub(super) fn never_ran(test: &str) -> Error {
    Error::new(Kind::NotFound, format!("no log of a test `{}`", test.escape_debug()))
        .with_hint("Run the test first.")
}

const GONE: &str = "the process that ran it ended";

fn entries(state: &Connection, which: &str) -> Result<Vec<LogEntry>> {
    if !has_table(state, TABLE)? {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT {FIELDS} FROM log WHERE {which} ORDER BY id DESC");
    let mut statement = state.prepare(&sql)?;
    let rows = statement.query_map([], |row| Ok(entry(row)))?;
    rows.map(|row| row?).collect()
}

fn entry(row: &Row<'_>) -> Result<LogEntry> {
    let (pid, start): (i32, i64) = (row.get("pid")?, row.get("pid_start")?);
    let number = |name: &str| row.get::<_, Option<i64>>(name).map(|n| n.unwrap_or_default().cast_unsigned());
    let word: Option<String> = row.get("outcome")?;
    let owner = Identity { pid, start: start.cast_unsigned() };
    let outcome = match word.as_deref() {
        None if owner.lives() => None,
        None => Some(Outcome::Lost { why: GONE.into() }),
        Some(word) => Some(Outcome::from_parts(word, row.get("code")?, row.get("why")?)),
    };
    let left = row.get::<_, Option<String>>("left_behind")?.unwrap_or_default();
    Ok(LogEntry {
        id: row.get("id")?,
        mark: Mark::from_stored(row.get("mark")?),
        count: Count {
            bytes: number("bytes")?,
            line_ends: number("line_ends")?,
            whole: row.get::<_, Option<bool>>("whole")?.unwrap_or(true),
            head_bytes: number("head_bytes")?,
            gap_bytes: number("gap_bytes")?,
            gap_lines: number("gap_lines")?,
        },
        test: row.get("test")?,
        command: row.get("command")?,
        tree: Hash::parse(&row.get::<_, String>("tree")?)?,
        started: row.get("started")?,
        seconds: row.get("seconds")?,
        outcome,
        pid,
        left_behind: serde_json::from_str(&left).unwrap_or_default(),
    })
}

/// Picks lines out of a stream.
struct Lines {
    number: u64,
    line: ShownLine,
    from: u64,
    count: usize,
    found: Vec<(u64, String)>,
}

impl Lines {
    fn new(from: u64, count: usize) -> Self {
        Self { number: 1, line: ShownLine::default(), from, count, found: Vec::new() }
    }

    fn read(&mut self, frame: &[u8], count: &Count) -> std::io::Result<()> {
        if frame.is_empty() {
            return Ok(());
        }
        let mut bytes = BufReader::new(zstd::stream::read::Decoder::new(frame)?);
        self.feed_from(&mut (&mut bytes).take(count.head_bytes))?;
        if count.gap_bytes > 0 {
            self.skip(count.gap_bytes, count.gap_lines);
        }
        self.feed_from(&mut bytes)?;
        if !self.line.is_empty() {
            self.end_line();
        }
        Ok(())
    }

    fn feed_from(&mut self, bytes: &mut dyn BufRead) -> std::io::Result<()> {
        while self.found.len() < self.count {
            let chunk = bytes.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let end = memchr(b'\n', chunk);
            let n = end.unwrap_or(chunk.len());
            self.line.push(&chunk[..n]);
            if end.is_some() {
                self.end_line();
            }
            bytes.consume(n + usize::from(end.is_some()));
        }
        Ok(())
    }

    fn skip(&mut self, bytes: u64, line_ends: u64) {
        let note = format!("[{bytes} bytes left out of the log here]");
        self.line.push(note.as_bytes());
        if line_ends == 0 {
            self.line.skip(bytes.saturating_sub(note.len() as u64));
        } else {
            self.end_line();
            self.number += line_ends - 1;
        }
    }

    fn end_line(&mut self) {
        let line = self.line.take();
        if self.number >= self.from && self.found.len() < self.count {
            self.found.push((self.number, line));
        }
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::{Exit, Output};

    fn test(name: &str) -> Test {
        Test::new(name, "make")
    }

    fn kept(chunks: &[&[u8]]) -> Kept {
        let mut output = Output::new().unwrap();
        for chunk in chunks {
            output.push(chunk);
        }
        output.finish().unwrap()
    }

    fn ran(state: &Connection, name: &str, exit: Exit, printed: &[&[u8]]) {
        let finished = Finished {
            exit,
            duration: Duration::from_millis(1500),
            left_behind: vec![Leftover { pid: 7, command: "sleep".into(), ended: true }],
            sandboxed: false,
            out_of_memory: 0,
        };
        let id = begin(state, &test(name), &Hash::of(b"t"), &Mark::fresh()).unwrap();
        end(state, id, &finished, &kept(printed)).unwrap();
    }

    #[test]
    fn a_log_is_read_in_parts() {
        let state = Connection::open_in_memory().unwrap();
        assert_eq!(read(&state, "unit", 1, 10).unwrap_err().kind(), Kind::NotFound);
        ran(&state, "unit", Exit::Status(0), &[b"old\n"]);
        ran(&state, "unit", Exit::Status(2), &[b"1\n2\n3\n", b"\n5"]);
        let part = read(&state, "unit", 2, 3).unwrap();
        assert_eq!(part.lines, [(2, "2".into()), (3, "3".into()), (4, String::new())]);
        assert_eq!(part.entry.outcome, Some(Outcome::Failed { exit: 2 }));
        assert_eq!((part.entry.lines(), part.entry.seconds), (5, Some(1.5)));
        assert_eq!(part.entry.left_behind[0].pid, 7);
        assert_eq!(read(&state, "unit", 5, 9).unwrap().lines, [(5, "5".into())]);
        for wrong in [0, 6] {
            assert_eq!(read(&state, "unit", wrong, 9).unwrap_err().kind(), Kind::Invalid);
        }
        ran(&state, "quiet", Exit::Status(0), &[]);
        assert!(read(&state, "quiet", 1, 9).unwrap().lines.is_empty());
    }

    #[test]
    fn a_log_with_a_gap_keeps_its_line_numbers() {
        let state = Connection::open_in_memory().unwrap();
        let block: Vec<u8> = (0..8192).flat_map(|n| format!("{n:07}\n").into_bytes()).collect();
        let blocks = vec![&block[..]; (80 << 20) / block.len()];
        ran(&state, "unit", Exit::TimedOut, &blocks);
        let last = 80 * 1024 * 128;
        let part = read(&state, "unit", last - 1, 9).unwrap();
        assert_eq!(part.lines, [(last - 1, "0008190".into()), (last, "0008191".into())]);
        assert!(part.entry.left_out() > 0);
        let first_after_head = 56 * 1024 * 128 + 1;
        let across = read(&state, "unit", first_after_head - 1, 3).unwrap().lines;
        assert_eq!(across[0], (first_after_head - 1, "0008191".into()));
        assert!(across[1].1.contains("left out"), "{across:?}");
        assert!(across[2].0 > first_after_head + 1000);
        let expected = format!("{:07}", (across[2].0 - 1) % 8192);
        assert_eq!(across[2].1, expected);
    }

    #[test]
    fn t18_one_huge_line_is_cut_and_says_its_length() {
        let state = Connection::open_in_memory().unwrap();
        ran(&state, "unit", Exit::Status(0), &[&vec![b'x'; 20 << 20]]);
        let lines = read(&state, "unit", 1, 10).unwrap().lines;
        assert_eq!(lines.len(), 1);
        assert!(lines[0].1.ends_with("[cut: a line of 20971520 bytes]") && lines[0].1.len() < 2_100);
    }

    #[test]
    fn only_the_last_logs_are_kept() {
        let state = Connection::open_in_memory().unwrap();
        for n in 0..25 {
            ran(&state, &format!("t{n}"), Exit::Status(0), &[b"x\n"]);
        }
        let names: Vec<_> = latest(&state).unwrap().into_iter().map(|entry| entry.test).collect();
        assert_eq!(names.len(), 20);
        assert_eq!((&*names[0], &*names[19]), ("t24", "t5"));
    }

    #[test]
    fn r08_a_run_whose_process_ended_is_lost() {
        let state = Connection::open_in_memory().unwrap();
        begin(&state, &test("unit"), &Hash::of(b"t"), &Mark::fresh()).unwrap();
        assert_eq!(running(&state).unwrap().unwrap().pid, Identity::this().pid);
        assert_eq!(read(&state, "unit", 1, 1).unwrap_err().kind(), Kind::Busy);
        state.execute("UPDATE log SET pid_start = pid_start + 1", []).unwrap();
        assert_eq!(running(&state).unwrap(), None);
        assert!(matches!(latest(&state).unwrap()[0].outcome, Some(Outcome::Lost { .. })));
        assert_eq!(abandon(&state).unwrap().len(), 1);
        assert_eq!(abandon(&state).unwrap().len(), 0);
        assert!(matches!(latest(&state).unwrap()[0].outcome, Some(Outcome::Lost { .. })));
    }
}
