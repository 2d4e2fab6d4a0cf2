//! What the benchmarks share: interleaved runs, medians, tables, corpora, and the programs that OCX is compared with.
//!
//! Timings are ratios from one run. In that run the ways of doing the same work take turns, so that a busy machine
//! slows all of them. Nothing is asserted about time. The result of the work is checked.
#![allow(dead_code, reason = "each benchmark uses its own part")]
#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

pub mod corpus;
pub mod cost;
pub mod history;
pub mod mcp;
pub mod picture;
pub mod programs;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The result of a step. An error ends the benchmark.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How a benchmark was started.
pub struct Options {
    /// Runs only a few rounds on small trees. This shows that the benchmark works, not how fast OCX is.
    pub quick: bool,
    /// Runs only OCX's own way, in many rounds, for a profiler.
    pub alone: bool,
    /// The words after `--` that are not options.
    pub words: Vec<String>,
}

impl Options {
    /// Reads the command line. Cargo adds `--bench`, which means nothing here.
    pub fn read() -> Self {
        let args: Vec<String> = std::env::args().skip(1).collect();
        Self {
            quick: args.iter().any(|a| a == "--quick"),
            alone: args.iter().any(|a| a == "--alone"),
            words: args.into_iter().filter(|a| !a.starts_with("--")).collect(),
        }
    }

    /// The number of rounds: `full` for a full run, few for a quick run, many for a profiler.
    pub fn rounds(&self, full: usize) -> usize {
        match self {
            Self { quick: true, .. } => full.min(3),
            Self { alone: true, .. } => full.max(200),
            _ => full,
        }
    }
}

/// The user's own repository to measure on, from the environment variable `OCX_BENCH_REPOSITORY`.
pub fn own_repository() -> Option<PathBuf> {
    std::env::var_os("OCX_BENCH_REPOSITORY").map(PathBuf::from)
}

/// One of the compared ways of doing the work.
pub struct Way<'a> {
    name: String,
    round: Box<dyn FnMut(usize) -> Result<Duration> + 'a>,
}

impl<'a> Way<'a> {
    /// `round` prepares the work and does it once. It returns the time that the work took.
    pub fn new(name: impl Into<String>, round: impl FnMut(usize) -> Result<Duration> + 'a) -> Self {
        Self { name: name.into(), round: Box::new(round) }
    }

    /// Like [`new`](Self::new), for work that needs no preparation.
    pub fn plain(name: impl Into<String>, mut work: impl FnMut() -> Result<()> + 'a) -> Self {
        Self::new(name, move |_| timed(&mut work))
    }
}

/// The time that `work` takes.
pub fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// The times of one way, sorted.
pub struct Series {
    name: String,
    times: Vec<Duration>,
}

impl Series {
    /// Sorts the times.
    pub fn new(name: impl Into<String>, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { name: name.into(), times }
    }

    /// The time that `percent` of the rounds did not exceed.
    pub fn percentile(&self, percent: usize) -> Duration {
        let last = self.times.len().saturating_sub(1);
        self.times.get((last * percent).div_ceil(100)).copied().unwrap_or_default()
    }

    /// The middle time.
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// Runs the ways in turn, A B C A B C. The first round is a warm-up and is not counted.
pub fn interleaved(mut ways: Vec<Way<'_>>, rounds: usize) -> Result<Vec<Series>> {
    let mut times = vec![Vec::with_capacity(rounds); ways.len()];
    for round in 0..=rounds {
        for (way, times) in ways.iter_mut().zip(&mut times) {
            let time = (way.round)(round).map_err(|e| format!("{}: {e}", way.name))?;
            if round > 0 {
                times.push(time);
            }
        }
    }
    Ok(ways.into_iter().zip(times).map(|(way, times)| Series::new(way.name, times)).collect())
}

/// Prints the question, the machine and the kind of run.
pub fn heading(question: &str, options: &Options) {
    println!("# {question}\n\n{}", machine());
    if options.quick {
        println!("Quick run: it shows that the benchmark works; its figures mean little.");
    }
    if cfg!(debug_assertions) {
        println!("Unoptimised build: its figures mean nothing.");
    }
}

/// Prints a table of medians. The last column is the ratio to the first series.
pub fn table(title: &str, series: &[Series]) {
    let Some(first) = series.first() else { return };
    let rounds = first.times.len();
    println!("\n## {title}\n\n| way | median | p90 | x the first, {rounds} rounds |\n|---|---:|---:|---:|");
    for one in series {
        let ratio = one.median().as_secs_f64() / first.median().as_secs_f64().max(f64::MIN_POSITIVE);
        println!("| {} | {} | {} | {ratio:.1} |", one.name, shown(one.median()), shown(one.percentile(90)));
    }
}

/// A time with the unit that suits it.
pub fn shown(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1000.0 { format!("{us:.1} us") } else { format!("{:.2} ms", us / 1000.0) }
}

/// One line about the machine and its load. A time means little without it.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!(
        "Machine: {}, {cores} cores, {} {}, load {load} at the start.",
        model.trim_start_matches(['\t', ' ', ':']),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}
