//! The `ocx` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == ocx::run::leash::ARGUMENT) {
        return ocx::run::leash::main(arguments);
    }
    if let Some(fossil) = first.filter(|first| first == "fossil") {
        // Before any thread starts: from here on this is plain Fossil.
        let code = ocx::engine::plain(std::iter::once(fossil).chain(arguments).collect());
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    ExitCode::SUCCESS
}
