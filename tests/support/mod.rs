//! What tests use: repositories and checkouts, plain Fossil, servers, clients.
#![allow(dead_code, unused_imports, reason = "each test program uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends at the first surprise, and says so"
)]
#![allow(clippy::needless_pass_by_value, reason = "inputs are written where they are used")]

use std::time::{Duration, Instant};

pub mod alone;
pub mod answer;
pub mod client;
pub mod clones;
pub mod files;
pub mod fixture;
pub mod fossil;
pub mod front;
pub mod http;
pub mod place;
pub mod reference;
pub mod served;

/// The program under test.
pub const OCX: &str = env!("CARGO_BIN_EXE_ocx");
/// Much longer than anything takes. Only a hang reaches this limit. No test is timed.
pub const HANG: Duration = Duration::from_mins(3);

/// Waits until `holds` returns true.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < HANG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether this machine gives sandboxes. If it gives none, this says why: then nothing is shown of them.
pub fn sandboxes() -> bool {
    let had = ocx::process::Supervisor::at(OCX).sandboxes();
    had.map_err(|why| eprintln!("not tried without a sandbox: {why}")).is_ok()
}

pub use files::files_below;
pub use fixture::{Fixture, fitting, four, required};
pub use fossil::{Fossil, Server, remote, served};
pub use place::{Place, ann, changes, check_in};
