//! Runs one test in a process of its own, where it may look at what the whole process has.

use std::process::Command;

/// Set in the child to the name of the test that runs there.
const NAME: &str = "OCX_TEST_ALONE";

/// True in the child; in the parent, runs the child with `prepare`d command and gives false.
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
