//! The `ocx` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ocx::run::leash::ARGUMENT) {
        return ocx::run::leash::main(arguments);
    }
    ExitCode::SUCCESS
}
