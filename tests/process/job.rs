//! The tests of a checkout as jobs: waiting, joining, evidence, cancelling, and coming back after a crash.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread::sleep,
    time::Duration,
};

use crate::bench::checkout_in;
use crate::until;
use ocx::cancel::Cancel;
use ocx::checkout::Checkout;
use ocx::error::{Kind, Result};
use ocx::process::Supervisor;
use ocx::testing::{Activity, Declared, Jobs, Outcome, Progress, StateFolder, TestReport, Waiter, Which};

const OCX: &str = env!("CARGO_BIN_EXE_ocx");

/// A checkout in `tree/` of an empty repository, and room beside it where no status looks.
struct Bench {
    folder: tempfile::TempDir,
    checkout: Arc<Checkout>,
    jobs: Jobs,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let checkout = checkout_in(folder.path());
        fs::write(folder.path().join("tree/base.txt"), "one\n").unwrap();
        Self { jobs: jobs(&checkout, folder.path()), checkout, folder }
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.checkout.root().join(name), content).unwrap();
    }

    /// Where a file beside the tree is.
    fn aside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn ask(&self, declared: &Declared, limit: Duration) -> Result<TestReport> {
        ask(&self.jobs, declared, limit, &Cancel::new())
    }

    fn run(&self, command: &str) -> TestReport {
        self.ask(&unit(command), Duration::from_secs(20)).unwrap()
    }

    fn passes(&self, declared: &Declared) -> bool {
        passes(&self.jobs, &self.checkout, declared)
    }
}

fn checkout(base: &Path) -> Arc<Checkout> {
    Arc::new(Checkout::at(&base.join("tree")).unwrap())
}

/// Jobs without a sandbox, so that tests can tell each other things by files beside the tree.
fn jobs(checkout: &Arc<Checkout>, base: &Path) -> Jobs {
    let supervisor = Supervisor::at(OCX).without_sandboxes();
    Jobs::new(Arc::clone(checkout), supervisor, StateFolder::at(base.join("state")))
}

fn passes(jobs: &Jobs, checkout: &Checkout, declared: &Declared) -> bool {
    let status = checkout.status().unwrap();
    jobs.evidence(declared.tests(), &status).unwrap().iter().all(|known| known.pass.is_some())
}

fn ask(jobs: &Jobs, declared: &Declared, limit: Duration, cancel: &Cancel) -> Result<TestReport> {
    jobs.test(declared, &Which::All, &mut Waiter { limit, cancel, progress: &mut |_| () })
}

fn declared(tests: &[(&str, &str)]) -> Declared {
    let test = |(name, command): &(&str, &str)| serde_json::json!({"name": name, "command": command});
    let tests: Vec<_> = tests.iter().map(test).collect();
    Declared::parse(serde_json::json!({ "tests": tests }).to_string().as_bytes()).unwrap()
}

fn unit(command: &str) -> Declared {
    declared(&[("unit", command)])
}

#[test]
fn a_pass_is_evidence_for_the_tree_it_ran_on() {
    let bench = Bench::new();
    assert!(!bench.passes(&unit("echo fine")));
    let report = bench.run("echo fine");
    assert!(report.passed());
    assert_eq!(report.results[0].tree, bench.checkout.status().unwrap().tree_hash());
    assert!(bench.passes(&unit("echo fine")));
    let part = bench.jobs.log("unit", 1, 10).unwrap();
    assert_eq!(part.lines, [(1, "fine".into())]);
}

#[test]
fn c04_a_touch_does_not_undo_a_pass() {
    let bench = Bench::new();
    bench.run("true");
    bench.write("base.txt", "one\n");
    assert!(bench.passes(&unit("true")));
}

#[test]
fn g02_what_a_test_writes_stays_in_its_own_tree_and_is_undone_before_the_next() {
    let bench = Bench::new();
    let command = "[ $(cat base.txt) = one ] && echo two > base.txt && echo y > new.txt && chmod +x base.txt";
    for _ in 0..2 {
        let report = bench.run(command);
        assert!(report.passed(), "{report:?}");
        let changes: Vec<_> =
            report.results[0].changes.iter().map(|c| format!("{} {}", c.path, c.how)).collect();
        assert_eq!(changes, ["base.txt edited"]);
    }
    assert!(bench.passes(&unit(command)));
    assert_eq!(fs::read(bench.checkout.root().join("base.txt")).unwrap(), b"one\n");
    assert!(!bench.checkout.root().join("new.txt").exists());
}

#[test]
fn g02_a_tree_that_cannot_be_saved_is_not_tested() {
    let bench = Bench::new();
    bench.write("a\nb", "");
    let refused = bench.ask(&unit("true"), Duration::from_secs(20)).unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
}

#[test]
fn g07_an_edit_and_back_keeps_the_pass() {
    let bench = Bench::new();
    bench.run("true");
    bench.write("base.txt", "two\n");
    assert!(!bench.passes(&unit("true")));
    bench.write("base.txt", "one\n");
    assert!(bench.passes(&unit("true")));
}

#[test]
fn all_tests_run_though_one_fails() {
    let bench = Bench::new();
    let two = declared(&[("bad", "exit 7"), ("good", "true")]);
    let report = bench.ask(&two, Duration::from_secs(20)).unwrap();
    assert_eq!(report.results[0].outcome, Outcome::Failed { exit: 7 });
    assert_eq!(report.results[1].outcome, Outcome::Passed);
    assert!(report.finished && !report.passed() && !bench.passes(&two));
    let none = bench.ask(&Declared::default(), Duration::from_secs(20)).unwrap();
    assert!(none.finished && none.results.is_empty());
}

#[test]
fn a_call_that_stops_waiting_is_joined_by_the_same_call() {
    let bench = Bench::new();
    let command = format!(
        "echo >> {0}; echo begun; while [ ! -e {1} ]; do sleep 0.02; done",
        bench.aside("starts").display(),
        bench.aside("go").display()
    );
    let first = bench.ask(&unit(&command), Duration::from_millis(300)).unwrap();
    assert!(!first.finished && !first.passed());
    until(|| bench.jobs.running().is_some_and(|now| now.tail == ["begun"]));
    fs::write(bench.aside("go"), "").unwrap();
    until(|| bench.jobs.is_idle());
    let second = bench.ask(&unit(&command), Duration::from_secs(20)).unwrap();
    assert!(second.passed());
    assert_eq!(fs::read(bench.aside("starts")).unwrap(), b"\n", "it ran once");
    assert!(bench.run(&command).passed());
    assert_eq!(fs::read(bench.aside("starts")).unwrap(), b"\n\n", "a result that was told is not told again");
}

#[test]
fn a_result_of_another_tree_is_not_told() {
    let bench = Bench::new();
    let command = format!("echo >> {0}; sleep 0.3", bench.aside("starts").display());
    assert!(!bench.ask(&unit(&command), Duration::from_millis(50)).unwrap().finished);
    until(|| bench.jobs.is_idle());
    bench.write("base.txt", "two\n");
    assert!(bench.run(&command).passed());
    assert_eq!(fs::read(bench.aside("starts")).unwrap(), b"\n\n");
    assert!(bench.passes(&unit(&command)));
}

#[test]
fn a_run_that_nobody_waits_for_makes_room_for_other_files() {
    let bench = Bench::new();
    assert!(!bench.ask(&unit("sleep 600"), Duration::from_millis(300)).unwrap().finished);
    bench.write("base.txt", "two\n");
    assert!(bench.run("true").passed(), "the old run was ended");
    let ended = bench.jobs.latest().unwrap();
    assert_eq!(ended[0].outcome, Some(Outcome::Passed), "{ended:?}");
}

#[test]
fn n31_a_call_for_other_files_waits_until_those_that_run_are_done() {
    let bench = Bench::new();
    let go = bench.aside("go");
    let command = format!("while [ ! -e {} ]; do sleep 0.02; done; grep one base.txt", go.display());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| bench.run(&command));
        until(|| bench.jobs.running().is_some());
        bench.write("base.txt", "two\n");
        let waits = bench.ask(&unit(&command), Duration::from_millis(300)).unwrap();
        let Some(Activity::Waiting { on, .. }) = &waits.now else { panic!("{waits:?}") };
        assert!(on.contains("`unit`") && !waits.finished && waits.not_run == ["unit"], "{waits:?}");
        let second = scope.spawn(|| bench.run(&command));
        fs::write(&go, "").unwrap();
        assert!(first.join().unwrap().passed(), "on the files that it started with");
        let second = second.join().unwrap();
        assert_eq!(second.results[0].outcome, Outcome::Failed { exit: 1 }, "on its own files");
    });
}

#[test]
fn n31_cancelling_what_runs_lets_the_next_go_on() {
    let bench = Bench::new();
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let first =
            scope.spawn(|| ask(&bench.jobs, &unit("sleep 600"), Duration::from_mins(5), &cancel).unwrap());
        until(|| bench.jobs.running().is_some());
        bench.write("base.txt", "two\n");
        let second = scope.spawn(|| bench.run("true"));
        sleep(Duration::from_millis(100));
        cancel.cancel();
        assert_eq!(first.join().unwrap().results[0].outcome, Outcome::Cancelled);
        assert!(second.join().unwrap().passed());
    });
}

#[test]
fn progress_is_told_while_a_call_waits() {
    let bench = Bench::new();
    let mut seen: Vec<Progress> = Vec::new();
    let cancel = Cancel::new();
    let mut progress = |now: &Activity| match now {
        Activity::Running(now) => seen.push(now.clone()),
        Activity::Waiting { .. } => panic!("nothing else runs"),
    };
    let mut waiter = Waiter { limit: Duration::from_secs(20), cancel: &cancel, progress: &mut progress };
    bench.jobs.test(&unit("echo a; echo b; sleep 2.3"), &Which::Named("unit".into()), &mut waiter).unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!((&*seen[1].test, seen[1].lines, seen[1].tail.len()), ("unit", 2, 2));
}

#[test]
fn a_test_that_is_not_declared_is_refused() {
    let bench = Bench::new();
    let mut waiter = Waiter { limit: Duration::ZERO, cancel: &Cancel::new(), progress: &mut |_| () };
    let e = bench.jobs.test(&unit("true"), &Which::Named("lint".into()), &mut waiter);
    assert_eq!(e.unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn m07_cancelling_the_call_ends_the_tests() {
    let bench = Bench::new();
    let cancel = Cancel::new();
    let two = declared(&[("long", "sleep 300"), ("next", "true")]);
    let report = thread_scope(&bench, &two, &cancel);
    assert_eq!(report.results.len(), 1);
    assert_eq!(report.results[0].outcome, Outcome::Cancelled);
    assert_eq!(report.not_run, ["next"]);
    assert!(report.finished);
    assert!(bench.run("true").passed(), "the next call is answered");
}

fn thread_scope(bench: &Bench, declared: &Declared, cancel: &Cancel) -> TestReport {
    std::thread::scope(|scope| {
        let call = scope.spawn(|| ask(&bench.jobs, declared, Duration::from_mins(1), cancel).unwrap());
        until(|| bench.jobs.running().is_some());
        cancel.cancel();
        call.join().unwrap()
    })
}

#[test]
fn m09_a_long_test_does_not_block_who_asks_about_it() {
    let bench = Bench::new();
    assert!(!bench.ask(&unit("sleep 60"), Duration::from_millis(200)).unwrap().finished);
    assert!(bench.jobs.running().is_some());
    bench.checkout.status().unwrap();
    let seen = bench.jobs.latest().unwrap();
    assert_eq!((seen[0].pid, &seen[0].outcome), (std::process::id().cast_signed(), &None));
    assert!(bench.jobs.running().is_some(), "all this was told while the test ran");
    bench.jobs.stop();
    assert!(bench.jobs.running().is_none());
}

#[test]
fn two_owners_of_one_checkout_do_not_test_at_once() {
    let bench = Bench::new();
    let other = jobs(&bench.checkout, bench.folder.path());
    bench.ask(&unit("sleep 60"), Duration::from_millis(300)).unwrap();
    let waits = ask(&other, &unit("true"), Duration::from_millis(300), &Cancel::new()).unwrap();
    let Some(Activity::Waiting { on, .. }) = &waits.now else { panic!("{waits:?}") };
    assert!(on.contains("`unit`") && on.contains(&std::process::id().to_string()), "{on}");
    bench.jobs.stop();
    assert!(ask(&other, &unit("true"), Duration::from_secs(20), &Cancel::new()).unwrap().passed());
}

#[test]
fn r10_a_run_of_a_killed_process_is_lost_and_leaves_no_lock() {
    const CALLER: &str = "OCX_TEST_IS_CALLER";
    if let Some(base) = std::env::var_os(CALLER) {
        let jobs = jobs(&checkout(Path::new(&base)), Path::new(&base));
        let _never =
            ask(&jobs, &unit("setsid sleep 600 & sleep 600"), Duration::from_mins(1), &Cancel::new());
        return;
    }
    let bench = Bench::new();
    let mut caller = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "job::r10_a_run_of_a_killed_process_is_lost_and_leaves_no_lock"])
        .env(CALLER, bench.folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until(|| bench.jobs.latest().is_ok_and(|runs| runs.first().is_some_and(|run| run.outcome.is_none())));
    caller.kill().unwrap();
    caller.wait().unwrap();
    let seen = bench.jobs.latest().unwrap();
    assert!(matches!(seen[0].outcome, Some(Outcome::Lost { .. })), "{seen:?}");
    assert!(!bench.passes(&unit("setsid sleep 600 & sleep 600")));
    assert!(bench.run("true").passed());
}

#[test]
fn r08_a_test_that_kills_its_parent_leaves_no_lock() {
    let bench = Bench::new();
    let report = bench.run("kill -9 $PPID; sleep 60");
    assert!(matches!(report.results[0].outcome, Outcome::Lost { .. }));
    assert!(bench.run("true").passed());
}

#[test]
fn a_supervisor_that_cannot_start_leaves_no_run_behind() {
    let bench = Bench::new();
    let state = StateFolder::at(bench.aside("state"));
    let broken = Jobs::new(Arc::clone(&bench.checkout), Supervisor::at("/nowhere/ocx"), state);
    let e = ask(&broken, &unit("true"), Duration::from_secs(5), &Cancel::new()).unwrap_err();
    assert_eq!(e.kind(), Kind::NotFound);
    assert!(bench.jobs.latest().unwrap().iter().all(|run| run.outcome.is_some()));
    assert!(bench.run("true").passed());
}
