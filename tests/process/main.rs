//! Child processes: commands and the tests of a checkout as jobs. In a program of their own, since storms of processes
//! and stopped schedulers would slow down every test beside them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::time::Duration;

mod bench;
mod command;
mod job;
mod projects;
mod sandbox;
mod wrong_pass;

/// Far longer than anything takes: only a hang meets it. No test is timed.
const HANG: Duration = Duration::from_mins(3);

fn until(what: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !what() {
        assert!(start.elapsed() < HANG, "it did not come about");
        std::thread::sleep(Duration::from_millis(5));
    }
}
