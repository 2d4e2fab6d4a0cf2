//! Runs one test in a process of its own. There it may look at what the whole process has.

use std::process::Command;

/// The environment variable that holds, in the child, the name of the test that runs there.
const NAME: &str = "OCX_TEST_ALONE";

/// Returns true in the child. In the parent, lets `prepare` change the command, runs the child, and returns false.
pub fn is_alone(test: &str, prepare: impl FnOnce(&mut Command)) -> bool {
    if std::env::var(NAME).is_ok_and(|name| name == test) {
        return true;
    }
    let mut command = command(test);
    prepare(&mut command);
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("1 passed"), "{test} in its own process: {said}");
    print!("{said}");
    false
}

/// The command that runs `test` alone.
pub fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(NAME, test);
    command
}
