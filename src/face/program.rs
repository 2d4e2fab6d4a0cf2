//! The program around the faces. It takes three things from its process: the environment, the streams and the signals.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::cli::{self, Listen, Next, Serve, Terminal};
use super::{demo, mcp};
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::http::{Gate, Listener, Tokens};
use crate::process::hide_from_debuggers;
use crate::sync::{Connection, Reach};
use crate::tool::Service;

/// A smaller `~/.fossil` is none to Fossil, in bytes.
const OLD_BYTES_MIN: u64 = 3 * 1024;

/// Runs a command line. The arguments are without the program's name.
#[must_use]
pub fn run(args: Vec<OsString>) -> ExitCode {
    // Its variables and its memory hold passwords, and tests run beside it.
    hide_from_debuggers();
    log_to_stderr();
    share_proxy();
    let code = match command(args) {
        Next::Exit(code) => ExitCode::from(code),
        Next::Serve(how) => finish(serve(how)),
        Next::Demo => finish(demo::run(&mut io::stdout())),
    };
    engine::close_all();
    code
}

/// Runs plain Fossil in `folder`. Call it before any thread is started.
#[must_use]
pub fn fossil(folder: Option<PathBuf>, words: &[OsString]) -> ExitCode {
    if let Some(folder) = folder
        && let Err(e) = std::env::set_current_dir(&folder)
    {
        return finish(Err(Error::io(format!("cannot go to `{}`", folder.display()), e)));
    }
    let args = std::iter::once(OsString::from("fossil")).chain(words.iter().cloned());
    let code = engine::plain(args.collect());
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

fn command(args: Vec<OsString>) -> Next {
    let out = io::stdout();
    let out_is_terminal = out.is_terminal();
    let mut terminal = Terminal {
        input: &mut io::stdin() as &mut dyn Read,
        out: &mut out.lock(),
        err: &mut io::stderr(),
        out_is_terminal,
        err_is_terminal: io::stderr().is_terminal(),
        login: variable("USER"),
        // A password in an argument would show in the list of processes.
        password: variable("OCX_PASSWORD"),
        state: state(),
        global_settings: global_settings(),
    };
    cli::run(args, &mut terminal)
}

fn serve(how: Serve) -> Result<()> {
    let service =
        how.target.service(state()).with_password(variable("OCX_PASSWORD").as_deref()).bound(how.binding);
    let service = service.with_global_settings(global_settings());
    match how.listen {
        Some(listen) => serve_http(service, &listen),
        None => serve_streams(service),
    }
}

/// Serves MCP on the standard streams. Standard output is for MCP alone. Everything else that prints goes to standard
/// error.
fn serve_streams(service: Service) -> Result<()> {
    let refused = |e| Error::io("cannot take standard input and output", e);
    let input = io::stdin().as_fd().try_clone_to_owned().map_err(refused)?;
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(refused)?;
    rustix::stdio::dup2_stdout(io::stderr()).map_err(|e| refused(e.into()))?;
    mcp::serve(service, File::from(input), File::from(output))
}

/// Serves MCP over HTTP until the process is asked to end. Writes the address on standard error.
fn serve_http(service: Service, listen: &Listen) -> Result<()> {
    let tokens = match &listen.token_file {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .map_err(|e| Error::io(format!("cannot read the token file `{}`", file.display()), e))?,
        ),
        None => variable("OCX_TOKEN"),
    };
    let tokens = tokens.as_deref().map(Tokens::parse).transpose()?;
    let gate = Gate::new(&listen.hosts, "name it with `ocx mcp --host NAME`");
    let listener = Listener::bind(listen.address, gate, tokens).map_err(|e| match e.kind() {
        Kind::Denied => {
            e.with_hint("Give one with --token-file FILE or in OCX_TOKEN, or listen on 127.0.0.1.")
        }
        _ => e,
    })?;
    eprintln!("ocx: serving MCP at {}{}", listener.url(), mcp::PATH);
    mcp::serve_http(service, listener, asked_to_end)
}

/// Waits until the process gets SIGTERM or SIGINT.
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

/// The folder that keeps what is known of tests: `OCX_STATE`, or `ocx` in the folder for the state of the user's
/// programs.
fn state() -> Option<PathBuf> {
    let own = || Some(PathBuf::from(variable("XDG_STATE_HOME")?).join("ocx"));
    let home = || Some(PathBuf::from(variable("HOME")?).join(".local/state/ocx"));
    variable("OCX_STATE").map(PathBuf::from).or_else(own).or_else(home)
}

/// An environment variable. Returns nothing if it is empty or not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where plain Fossil keeps the settings that its user has for all repositories, in the order in which it looks.
fn global_settings() -> Option<PathBuf> {
    let folder = |name| variable(name).map(PathBuf::from);
    if let Some(home) = folder("FOSSIL_HOME") {
        return Some(home.join(".fossil"));
    }
    let home = folder("HOME");
    let old = home.as_ref().map(|home| home.join(".fossil"));
    if let Some(old) = old.as_ref().filter(|old| old.metadata().is_ok_and(|meta| meta.len() > OLD_BYTES_MIN))
    {
        return Some(old.clone());
    }
    let config = home.map(|home| home.join(".config")).filter(|config| config.is_dir());
    folder("XDG_CONFIG_HOME").or(config).map(|config| config.join("fossil.db")).or(old)
}

/// If the environment names a proxy, every call reaches `https` servers through it. The trusted certificates need
/// nothing here: `SSL_CERT_FILE` and `SSL_CERT_DIR` already choose them.
fn share_proxy() {
    let named = |names: [&str; 2]| names.into_iter().find_map(variable);
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

/// The filter of what is logged if `OCX_LOG` is not set. A client that goes away before its answer is no error, but rmcp
/// calls it one.
const LOGGED: &str = "error,rmcp::service=off";

/// Logs errors. `OCX_LOG` asks for more; it is written as a `tracing` filter.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("OCX_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOGGED));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).init();
}

fn finish(done: Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    // A caller that does not read standard error learns of the failure from the exit code.
    let _ = cli::complain(&error, &mut io::stderr());
    ExitCode::FAILURE
}
