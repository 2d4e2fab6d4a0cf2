//! The `ocx` command: takes arguments and streams from the process and gives its exit code.
//!
//! What a command does is in the library's `face`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use ocx::error::{Error, Result};
use ocx::face::cli::{self, Ended, Listen, Other, Terminal};
use ocx::face::{demo, mcp};
use ocx::process::Supervisor;
use ocx::sync::{Connection, Reach};
use ocx::tool::Service;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    // These two want a process without threads, so they come before everything else.
    if args.first().is_some_and(|first| first == Supervisor::ARGUMENT) {
        return Supervisor::main(args.into_iter().skip(1));
    }
    if let Some((folder, words)) = cli::verbatim(&args, "fossil") {
        return fossil(folder, &words);
    }
    log_to_stderr();
    share_proxy();
    let code = match run(args) {
        Ended::Exit(code) => ExitCode::from(code),
        Ended::Other(Other::Mcp { target, binding, listen: how }) => {
            let session = target.service().with_password(password().as_deref()).bound(binding);
            finish(match how {
                Some(how) => listen(session, &how),
                None => serve(session),
            })
        }
        Ended::Other(Other::Demo) => finish(demo::run(&mut io::stdout())),
    };
    ocx::engine::close_all();
    code
}

fn run(args: Vec<OsString>) -> Ended {
    let out = io::stdout();
    let out_is_terminal = out.is_terminal();
    let mut terminal = Terminal {
        input: &mut io::stdin() as &mut dyn Read,
        out: &mut out.lock(),
        err: &mut io::stderr(),
        out_is_terminal,
        err_is_terminal: io::stderr().is_terminal(),
        login: std::env::var("USER").ok(),
        password: password(),
    };
    cli::run(args, &mut terminal)
}

/// Serves the protocol. Standard output is kept for it alone: whatever else prints goes to standard error.
fn serve(session: Service) -> Result<()> {
    let refused = |e| Error::io("cannot take standard input and output", e);
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(refused)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
    rustix::stdio::dup2_stdout(io::stderr()).map_err(|e| refused(e.into()))?;
    mcp::serve(session, File::from(input), File::from(output))
}

/// Serves the protocol over HTTP until the process is asked to end. The address is told on standard error.
fn listen(session: Service, how: &Listen) -> Result<()> {
    let tokens = match &how.token_file {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .map_err(|e| Error::io(format!("cannot read the token file `{}`", file.display()), e))?,
        ),
        None => std::env::var("OCX_TOKEN").ok().filter(|token| !token.is_empty()),
    };
    let listener = mcp::http::Listener::bind(how.address, &how.hosts, tokens.as_deref())?;
    eprintln!("ocx: serving MCP at {}", listener.url());
    listener.serve(session, asked_to_end())
}

/// Done when the process gets SIGTERM or SIGINT.
async fn asked_to_end() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

/// The password for the server comes by the environment: an argument would show in the list of processes.
fn password() -> Option<String> {
    std::env::var("OCX_PASSWORD").ok().filter(|p| !p.is_empty())
}

/// Has every call reach `https` servers through the proxy that the environment names, if it does. Which certificates
/// are trusted, `SSL_CERT_FILE` and `SSL_CERT_DIR` say without this.
fn share_proxy() {
    let named = |names: [&str; 2]| names.iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
    let Some(proxy) = named(["https_proxy", "HTTPS_PROXY"]) else { return };
    let no_proxy = named(["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let no_proxy = no_proxy.split(',').map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
    let reach = Reach {
        proxy: Some(proxy),
        proxy_https_only: true,
        no_proxy: no_proxy.collect(),
        ..Reach::default()
    };
    match Connection::new(&reach) {
        Ok(connection) => drop(connection.share()),
        Err(e) => tracing::error!("the proxy of the environment is not used: {e}"),
    }
}

fn finish(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ocx: {e}");
            if let Some(hint) = e.hint() {
                eprintln!("{hint}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Warnings and worse; `OCX_LOG` asks for more, as `tracing` filters are written.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("OCX_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).init();
}

fn fossil(folder: Option<PathBuf>, words: &[OsString]) -> ExitCode {
    if let Some(folder) = folder
        && let Err(e) = std::env::set_current_dir(&folder)
    {
        return finish(Err(Error::io(format!("cannot go to `{}`", folder.display()), e)));
    }
    let args = std::iter::once(OsString::from("fossil")).chain(words.iter().cloned());
    code(ocx::engine::plain(args.collect()))
}

fn code(exit: i32) -> ExitCode {
    ExitCode::from(u8::try_from(exit & 0xff).unwrap_or(u8::MAX))
}
