//! The `ocx` command: takes the arguments from the process and gives its exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use ocx::face::{cli, program};
use ocx::process::Supervisor;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // These two need a process without threads, so they come before everything else.
    if args.first().is_some_and(|first| first == Supervisor::ARGUMENT) {
        return Supervisor::main(args.into_iter().skip(1));
    }
    if let Some((folder, words)) = cli::verbatim(&args, "fossil") {
        return program::fossil(folder, &words);
    }
    program::run(args)
}
