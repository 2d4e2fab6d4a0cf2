//! Commands, whatever they do: no process is left, no call hangs, memory is bounded.

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use super::HANG;
use ocx::process::{Command, Exit, Leftover, Mark, Running, Supervisor};

/// Less than the 600 s for which commands here sleep: what waits for them times out.
const LIMIT: Duration = Duration::from_mins(5);

/// What is asserted of a command that has ended.
#[derive(Debug)]
struct Ended {
    exit: Exit,
    tail: Vec<String>,
    lines: u64,
    bytes: u64,
    left_behind: Vec<Leftover>,
}

fn wait(running: Running) -> Ended {
    let (finished, output) = running.wait().unwrap();
    let (tail, count) = (output.tail(100), output.count());
    let (exit, left_behind) = (finished.exit, finished.left_behind);
    Ended { exit, tail, lines: count.lines(), bytes: count.bytes, left_behind }
}

fn supervisor() -> Supervisor {
    Supervisor::at(env!("CARGO_BIN_EXE_ocx"))
}

struct Bench {
    folder: tempfile::TempDir,
    mark: Mark,
}

impl Bench {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), mark: Mark::fresh() }
    }

    fn start(&self, text: &str, limit: Duration) -> Running {
        let mut command = Command::new(text, self.folder.path(), limit);
        command.mark = self.mark.clone();
        command.start(&supervisor()).unwrap()
    }

    /// Runs `text` to its end; then no process of it may be left.
    fn run(&self, text: &str, limit: Duration) -> Ended {
        let ended = wait(self.start(text, limit));
        assert_eq!(self.left(), Vec::<String>::new(), "left by `{text}`");
        ended
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// The processes that carry this bench's mark or work in its folder.
    fn left(&self) -> Vec<String> {
        let mark = self.mark.to_string();
        let mut left = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let process = entry.path();
            let environ = fs::read(process.join("environ")).unwrap_or_default();
            let here =
                fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.folder.path()));
            let dead = fs::read_to_string(process.join("stat")).is_ok_and(|s| s.contains(") Z "));
            if !dead && (here || String::from_utf8_lossy(&environ).contains(&mark)) {
                let line = fs::read(process.join("cmdline")).unwrap_or_default();
                left.push(String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
        left
    }

    fn wait_until_gone(&self) {
        let start = Instant::now();
        while !self.left().is_empty() {
            assert!(start.elapsed() < HANG, "still there: {:?}", self.left());
            sleep(Duration::from_millis(10));
        }
    }

    fn wait_for(&self, name: &str) {
        let start = Instant::now();
        while self.file(name).is_empty() {
            assert!(start.elapsed() < HANG, "`{name}` did not come");
            sleep(Duration::from_millis(5));
        }
    }
}

fn names(ended: &Ended, text: &str) -> bool {
    ended.left_behind.iter().any(|left| left.ended && left.command.contains(text))
}

#[test]
fn r01_a_background_child_does_not_keep_the_call() {
    let ended = Bench::new().run("sleep 600 & echo done", LIMIT);
    assert_eq!((ended.exit.clone(), ended.tail.clone()), (Exit::Status(0), vec!["done".into()]));
    assert!(names(&ended, "sleep 600"), "{ended:?}");
}

#[test]
fn r02_a_child_in_its_own_session_is_ended_and_named() {
    let ended = Bench::new().run("setsid sleep 600 & echo done", LIMIT);
    assert_eq!(ended.exit, Exit::Status(0));
    assert!(names(&ended, "sleep 600"), "{ended:?}");
}

#[test]
fn r02_a_daemon_that_forks_twice_is_ended() {
    let twice = "(setsid sh -c '(setsid sh -c \"trap : TERM HUP INT; echo up > up; while :; do sleep 1; done\" \
                 </dev/null >/dev/null 2>&1 &) &' &) ; while [ ! -s up ]; do sleep 0.01; done; exit 3";
    let ended = Bench::new().run(twice, LIMIT);
    assert_eq!(ended.exit, Exit::Status(3));
    assert!(!ended.left_behind.is_empty());
}

#[test]
fn r02_a_daemon_that_clears_its_environment_is_ended() {
    let bench = Bench::new();
    let ended = bench.run("(cd / ; env -i setsid sleep 601.25 &) ; exit 0", LIMIT);
    assert!(names(&ended, "sleep 601.25"), "{ended:?}");
    assert!(!ended.left_behind.is_empty());
    assert!(!Path::new(&format!("/proc/{}", ended.left_behind[0].pid)).exists());
}

#[test]
fn r03_a_time_out_ends_grandchildren_that_ignore_term() {
    let start = Instant::now();
    let ended = Bench::new().run("sh -c 'trap \"\" TERM; sleep 600' & wait", Duration::from_secs(1));
    assert_eq!(ended.exit, Exit::TimedOut);
    assert!(start.elapsed() > Duration::from_secs(1), "not before its time");
}

#[test]
fn r03_a_time_out_lets_a_test_clean_up() {
    let bench = Bench::new();
    let ended = bench.run("trap 'echo bye > bye; exit 1' TERM; sleep 600 & wait", Duration::from_millis(500));
    assert_eq!(ended.exit, Exit::TimedOut);
    assert_eq!(bench.file("bye"), "bye\n");
}

#[test]
fn r03_a_stopped_child_is_ended_too() {
    let ended = Bench::new().run("sleep 600 & kill -STOP $!; exit 0", LIMIT);
    assert_eq!(ended.exit, Exit::Status(0));
}

#[test]
fn r03_a_fork_storm_is_ended() {
    let storm =
        "for i in $(seq 60); do (trap '' TERM; while :; do sleep 0.02 & sleep 0.02; done) & done; wait";
    let ended = Bench::new().run(storm, Duration::from_millis(700));
    assert_eq!(ended.exit, Exit::TimedOut);
}

#[test]
fn g05_a_failure_in_a_pipe_fails_the_test() {
    assert_eq!(Bench::new().run("false | tail -1", LIMIT).exit, Exit::Status(1));
}

#[test]
fn r05_a_flood_ends_at_the_limit_with_bounded_memory() {
    let before = peak_kib();
    let ended = Bench::new().run("yes", Duration::from_secs(2));
    assert_eq!((ended.exit, ended.tail.len()), (Exit::TimedOut, 100));
    assert!(ended.lines > 1_000_000 && ended.bytes >= 2 * (ended.lines - 1));
    let ended = Bench::new().run("head -c 3000000000 /dev/zero", Duration::from_secs(4));
    assert!(ended.exit == Exit::TimedOut || ended.bytes == 3_000_000_000, "{ended:?}");
    assert_eq!((ended.lines, ended.tail.len()), (1, 1));
    assert!(ended.bytes > 10_000_000 && ended.tail[0].len() < 3_000 && ended.tail[0].contains("cut"));
    assert!(peak_kib() - before < 200_000, "{} KiB more", peak_kib() - before);
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn r06_undecodable_output_is_told() {
    let ended = Bench::new().run(r"printf 'a\360b\n\000\033[31m'", LIMIT);
    assert_eq!(ended.exit, Exit::Status(0));
    assert_eq!(ended.tail, ["a\u{fffd}b", "\0\u{1b}[31m"]);
}

#[test]
fn r07_a_silent_command_passes_at_once() {
    let ended = Bench::new().run("true", LIMIT);
    assert_eq!((ended.exit, ended.tail.len(), ended.lines, ended.bytes), (Exit::Status(0), 0, 0, 0));
    assert!(ended.left_behind.is_empty());
}

#[test]
fn r07_input_is_at_its_end_and_no_terminal_is_there() {
    let asks = "cat; if (: < /dev/tty) 2>/dev/null; then echo tty; fi; ulimit -c; pwd -P";
    let bench = Bench::new();
    let ended = bench.run(asks, LIMIT);
    let root = fs::canonicalize(bench.folder.path()).unwrap();
    assert_eq!(ended.tail, ["0", root.to_str().unwrap()]);
}

#[test]
fn r08_a_test_that_kills_its_parent_is_lost_and_leaves_nothing() {
    let ended = Bench::new().run("setsid sleep 600 & kill -9 $PPID; sleep 600", LIMIT);
    assert!(matches!(ended.exit, Exit::Lost { .. }), "{ended:?}");
}

#[test]
fn r08_a_test_that_kills_its_parents_parent_leaves_nothing() {
    let up = "setsid sleep 600 & read -r _ _ _ outer _ < /proc/$PPID/stat; kill -9 $outer; sleep 600";
    let ended = Bench::new().run(up, LIMIT);
    assert!(matches!(ended.exit, Exit::Lost { .. }), "{ended:?}");
}

#[test]
fn r08_a_test_that_kills_both_is_swept_up() {
    let both = "setsid sleep 600 & read -r _ _ _ outer _ < /proc/$PPID/stat; kill -9 $outer $PPID; sleep 600";
    let ended = Bench::new().run(both, LIMIT);
    assert!(matches!(ended.exit, Exit::Lost { .. }), "{ended:?}");
}

#[test]
fn r08_a_test_that_stops_its_parent_still_times_out() {
    let ended = Bench::new().run("kill -STOP $PPID; sleep 600", Duration::from_secs(1));
    assert_eq!(ended.exit, Exit::TimedOut);
}

#[test]
fn r09_a_test_sees_no_secret_and_no_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let secret = fs::File::create(folder.path().join("secret")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let ended = Bench::new().run("env; ls -l /proc/self/fd /proc/$PPID/fd; cat /proc/$PPID/environ", LIMIT);
    let seen = ended.tail.join("\n");
    // Cargo itself sets this for each test; it stands for any variable that is not allowed.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!seen.contains("CARGO_MANIFEST_DIR") && seen.contains("PATH=") && seen.contains("TERM=dumb"));
    assert!(seen.contains("0 -> /dev/null"));
    assert!(!seen.contains("secret") && !seen.contains("socket:"), "{seen}");
}

#[test]
fn r10_what_a_killed_caller_ran_is_gone() {
    const CALLER: &str = "OCX_TEST_IS_CALLER";
    let text = "trap '' TERM; setsid sleep 600 & echo up > up; sleep 600";
    if let Some(folder) = std::env::var_os(CALLER) {
        let _never = Command::new(text, folder, LIMIT).start(&supervisor()).unwrap().wait();
        return;
    }
    let bench = Bench::new();
    let mut caller = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "command::r10_what_a_killed_caller_ran_is_gone"])
        .env(CALLER, bench.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    bench.wait_for("up");
    assert!(!bench.left().is_empty());
    caller.kill().unwrap();
    caller.wait().unwrap();
    bench.wait_until_gone();
}

#[test]
fn m07_a_cancelled_test_is_gone() {
    let bench = Bench::new();
    let started = bench.start("trap '' TERM; setsid sleep 600 & echo up > up; sleep 600", LIMIT);
    let stopper = started.stopper();
    bench.wait_for("up");
    let canceller = std::thread::spawn(move || stopper.stop());
    let ended = wait(started);
    canceller.join().unwrap();
    assert_eq!(ended.exit, Exit::Cancelled);
    assert_eq!(bench.left(), Vec::<String>::new());
}

#[test]
fn the_end_of_a_line_through_tee_is_not_lost() {
    let ended = Bench::new().run("exec > >(sleep 0.05; cat); echo through", LIMIT);
    assert_eq!(ended.tail, ["through"]);
    assert!(ended.left_behind.is_empty());
}

#[test]
fn a_folder_or_a_supervisor_that_is_missing_is_named() {
    let gone = Command::new("true", "nowhere-at-all", LIMIT).start(&supervisor());
    assert!(gone.err().unwrap().to_string().contains("nowhere-at-all"));
    let bench = Bench::new();
    let other = Command::new("true", bench.folder.path(), LIMIT).start(&Supervisor::at("/bin/true")).unwrap();
    assert!(matches!(wait(other).exit, Exit::Lost { .. }));
}
