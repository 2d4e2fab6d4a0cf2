//! Commands in a sandbox: what they can do, what they cannot, and that nothing of them stays. Each test runs as the
//! user of the tests and, if that is root, as an ordinary user too.

mod bench;
mod reach;
mod view;

use std::{fs, os::unix::fs::PermissionsExt, thread::sleep, time::Duration};

use bench::{Bench, LIMIT, as_caller, everyone, supervisor};
use ocx::process::{Command, Exit, Mount, MountKind, Sandbox, Supervisor};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn n23_a_killed_caller_leaves_no_process_and_no_file() {
    if let Some(folder) = as_caller() {
        let bench = Bench::at(folder);
        let mut command = bench.command("setsid sleep 600.23 & sleep 600.23");
        command.sandbox = Some(bench.sandbox());
        fs::write(bench.path("begun"), command.mark.to_string()).unwrap();
        let _never = command.start(&supervisor()).unwrap().wait();
        return;
    }
    everyone("n23_a_killed_caller_leaves_no_process_and_no_file", || {
        for half_ms in 0..40 {
            let bench = Bench::new();
            let mut caller = bench.start_caller("n23_a_killed_caller_leaves_no_process_and_no_file");
            bench.wait_for("begun");
            sleep(Duration::from_micros(500 * half_ms));
            caller.kill().unwrap();
            caller.wait().unwrap();
            bench.wait_until_gone(&bench.file("begun"));
            assert_eq!(bench.names(), ["begun"], "after {half_ms} half milliseconds");
        }
    });
}

#[test]
fn v20_stopped_watchers_leave_nothing_when_the_caller_ends() {
    if let Some(folder) = as_caller() {
        let bench = Bench::at(folder);
        let sandboxed = bench.path("sandboxed").exists();
        let mut command = bench.command("setsid env -i sleep 600.20 & echo up > up; sleep 600.20");
        command.sandbox = sandboxed.then(|| bench.sandbox());
        fs::write(bench.path("begun"), command.mark.to_string()).unwrap();
        let _never = command.start(&supervisor()).unwrap().wait();
        return;
    }
    everyone("v20_stopped_watchers_leave_nothing_when_the_caller_ends", || {
        for sandboxed in [false, true] {
            let bench = Bench::new();
            if sandboxed {
                fs::write(bench.path("sandboxed"), "").unwrap();
            }
            let mut caller = bench.start_caller("v20_stopped_watchers_leave_nothing_when_the_caller_ends");
            bench.wait_for("up");
            let watch = bench::child_of(caller.id().cast_signed());
            let hold = bench::child_of(watch);
            stop(&[watch, hold]);
            caller.kill().unwrap();
            caller.wait().unwrap();
            bench.wait_until_gone(&bench.file("begun"));
            bench::wait_until_ended(&[watch, hold]);
        }
    });
}

#[test]
fn v20_stopped_watchers_leave_nothing_at_the_deadline() {
    everyone("v20_stopped_watchers_leave_nothing_at_the_deadline", || {
        let bench = Bench::new();
        let mut command = bench.command("setsid env -i sleep 600.21 & echo up > up; sleep 600.21");
        command.sandbox = Some(bench.sandbox());
        command.limit = Duration::from_secs(1);
        let running = command.start(&supervisor()).unwrap();
        let watching = std::thread::spawn(move || running.wait().unwrap().0);
        bench.wait_for("up");
        let line = bench::line_to("sleep 600.21");
        // The two next to the test itself are the watchers.
        stop(&line[line.len() - 2..]);
        let finished = watching.join().unwrap();
        assert!(matches!(finished.exit, Exit::Lost { .. } | Exit::TimedOut), "{finished:?}");
        bench.wait_until_gone(&command.mark.to_string());
        bench::wait_until_ended(&line);
    });
}

fn stop(pids: &[i32]) {
    for pid in pids {
        kill_process(Pid::from_raw(*pid).unwrap(), Signal::STOP).unwrap();
    }
}

#[test]
fn n49_orphans_are_reaped_and_change_no_exit_status() {
    everyone("n49_orphans_are_reaped_and_change_no_exit_status", || {
        let orphans = "for i in $(seq 500); do ( (exit 3) & ); done; sleep 0.05; \
                       set -- /proc/[0-9]*; echo $#; exit 7";
        for _ in 0..5 {
            let bench = Bench::new();
            let ended = bench.run(orphans);
            assert_eq!(ended.exit, Exit::Status(7));
            assert!(ended.tail[0].parse::<usize>().unwrap() < 20, "{:?}", ended.tail);
            assert!(ended.left_behind.is_empty(), "{ended:?}");
        }
        assert_eq!(Bench::new().run("sh -c 'exit 5'").exit, Exit::Status(5));
        assert_eq!(Bench::new().run("kill -9 $$").exit, Exit::Signal(9));
    });
}

#[test]
fn what_the_shell_leaves_is_ended_and_named() {
    everyone("what_the_shell_leaves_is_ended_and_named", || {
        let ended = Bench::new().run("setsid sleep 600.5 & setsid env -i sleep 600.6 & echo done");
        assert_eq!((ended.exit.clone(), ended.tail.clone()), (Exit::Status(0), vec!["done".to_owned()]));
        assert_eq!(
            ended.left_behind.iter().filter(|l| l.ended && l.command.starts_with("sleep 600")).count(),
            2
        );
        let bench = Bench::new();
        let mut command = bench.command("trap '' TERM; setsid sleep 600.7 & sleep 600.7");
        command.limit = Duration::from_secs(1);
        command.sandbox = Some(bench.sandbox());
        let (finished, _) = command.start(&supervisor()).unwrap().wait().unwrap();
        assert_eq!((finished.exit, finished.sandboxed), (Exit::TimedOut, true));
        bench.wait_until_gone(&command.mark.to_string());
    });
}

#[test]
fn a_cancelled_command_can_clean_up() {
    everyone("a_cancelled_command_can_clean_up", || {
        let bench = Bench::new();
        let mut command = bench.command("trap 'echo bye > bye; exit 1' TERM; echo up > up; sleep 600 & wait");
        command.sandbox = Some(bench.sandbox());
        let running = command.start(&supervisor()).unwrap();
        let stopper = running.stopper();
        let watching = std::thread::spawn(move || running.wait().unwrap().0);
        bench.wait_for("up");
        stopper.stop();
        let finished = watching.join().unwrap();
        assert_eq!((finished.exit, finished.sandboxed), (Exit::Cancelled, true));
        assert_eq!(bench.file("bye"), "bye\n");
    });
}

#[test]
fn a_command_cannot_end_or_stop_its_watchers() {
    everyone("a_command_cannot_end_or_stop_its_watchers", || {
        let ended =
            Bench::new().run("kill -9 $PPID; kill -STOP $PPID; kill -9 1; sleep 0.1; echo alive; exit 4");
        assert_eq!((ended.exit, ended.tail), (Exit::Status(4), vec!["alive".to_owned()]));
        let ended = Bench::new().run("trap '' TERM; kill -9 -1; exit 6");
        assert!(matches!(ended.exit, Exit::Signal(9) | Exit::Status(6)), "{:?}", ended.exit);
    });
}

#[test]
fn n22_namespaces_of_its_own_are_had_when_asked_for() {
    everyone("n22_namespaces_of_its_own_are_had_when_asked_for", || {
        let bench = Bench::new();
        let unshare = "unshare -Ur true 2>/dev/null && echo made || echo refused";
        assert_eq!(bench.run(unshare).tail, ["refused"]);
        let nested = Sandbox { nested: true, ..bench.sandbox() };
        assert_eq!(bench.run_in(nested.clone(), unshare).tail, ["made"]);
        let out = "unshare -Urm sh -c 'mount -o remount,rw /usr; touch /usr/x; echo 0 > /proc/sys/vm/swappiness' \
                   2>/dev/null && echo out || echo kept";
        assert_eq!(bench.run_in(nested, out).tail, ["kept"]);
    });
}

#[test]
fn n22_a_sandbox_in_a_sandbox_stands() {
    const INSIDE: &str = "OCX_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        supervisor().sandboxes().unwrap();
        let ended = Bench::new().run("unshare -Ur true 2>/dev/null && echo made; sh -c '(exit 3) &'; exit 7");
        assert_eq!((ended.exit, ended.tail), (Exit::Status(7), vec![]));
        return;
    }
    everyone("n22_a_sandbox_in_a_sandbox_stands", || {
        for nested in [true, false] {
            let bench = Bench::new();
            let mut sandbox = Sandbox { nested, ..bench.sandbox() };
            let programs =
                [("tests", std::env::current_exe().unwrap()), ("ocx", supervisor().program().into())];
            sandbox.mounts.extend(programs.map(|(name, program)| Mount {
                at: std::path::Path::new("/inside").join(name),
                what: MountKind::ReadOnly(program),
            }));
            let text = "/inside/tests --exact sandbox::n22_a_sandbox_in_a_sandbox_stands --nocapture";
            let mut command = bench.command(text);
            command.environment = command.environment.with(INSIDE, "1").with(bench::PROGRAM, "/inside/ocx");
            command.sandbox = Some(sandbox);
            let (finished, output) = command.start(&supervisor()).unwrap().wait().unwrap();
            let tail = output.tail(50).join("\n");
            assert_eq!(finished.exit == Exit::Status(0), nested, "{tail}");
            assert!(tail.contains(if nested { "1 passed" } else { "no namespaces can be made" }), "{tail}");
        }
    });
}

/// A supervisor that answers that the sandbox stood, whatever it did.
fn liar(bench: &Bench, does: &str) -> Supervisor {
    let path = bench.path("liar");
    let says = r#"{"exit":{"Status":0},"left_behind":[],"sandboxed":true}"#;
    fs::write(&path, format!("#!/bin/sh\n{does}\nprintf '%s' '{says}'\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Supervisor::at(path)
}

#[test]
fn n50_a_sandbox_is_judged_by_its_effect_and_not_by_words() {
    everyone("n50_a_sandbox_is_judged_by_its_effect_and_not_by_words", || {
        for does in ["", "readlink /proc/self/ns/* >&2", "exit 1", "echo oops; exit 0"] {
            let why = liar(&Bench::new(), does).sandboxes().unwrap_err();
            assert!(!why.why.is_empty() && !why.why.contains('\n'), "{does}: {why}");
        }
        assert!(Supervisor::at("/nowhere/ocx").sandboxes().is_err());
        supervisor().sandboxes().unwrap();
    });
}

#[test]
fn what_cannot_be_sandboxed_does_not_run() {
    everyone("what_cannot_be_sandboxed_does_not_run", || {
        let bench = Bench::new();
        let mut command = Command::new("echo ran; touch ran", bench.path("nowhere"), LIMIT);
        command.sandbox = Some(bench.sandbox());
        let (finished, output) = command.start(&supervisor()).unwrap().wait().unwrap();
        assert!(matches!(&finished.exit, Exit::NoSandbox { why } if why.contains("nowhere")), "{finished:?}");
        assert!(!finished.sandboxed && output.tail(10).is_empty());
        assert!(bench.names().is_empty());
    });
}

#[test]
fn memory_that_runs_out_is_counted() {
    const GROUP: &str = "OCX_TEST_GROUP";
    if let Some(group) = std::env::var_os(GROUP) {
        fs::write(std::path::Path::new(&group).join("cgroup.procs"), std::process::id().to_string()).unwrap();
        let bench = Bench::new();
        let mut command = bench.command("head -c 400000000 /dev/zero | tail > /dev/null");
        command.sandbox = supervisor().sandboxes().is_ok().then(|| bench.sandbox());
        let (finished, _) = command.start(&supervisor()).unwrap().wait().unwrap();
        assert!(finished.out_of_memory >= 1, "{finished:?}");
        assert_ne!(finished.exit, Exit::Status(0));
        return;
    }
    let ended = Bench::new().run_open("sh -c 'kill -9 $$'; exit 137");
    assert_eq!((ended.exit, ended.out_of_memory), (Exit::Status(137), 0), "a status is no proof");
    let Some(group) = bench::memory_group(256 << 20) else {
        eprintln!("no control group with a memory limit can be made here");
        return;
    };
    let ran = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::memory_that_runs_out_is_counted", "--nocapture"])
        .env(GROUP, &group)
        .output();
    while fs::remove_dir(&group).is_err_and(|e| e.kind() == std::io::ErrorKind::ResourceBusy) {
        sleep(Duration::from_millis(10));
    }
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
