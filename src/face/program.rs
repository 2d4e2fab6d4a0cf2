//! The program around the faces. It takes three things from its process: the environment, the streams and the signals.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::cli::{self, Listen, Next, Place, Serve, Terminal};
use super::{demo, mcp};
use crate::engine;
use crate::error::{Error, Kind, Result};
use crate::http::{Gate, Listener, Tokens, token_file};
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
    mcp::serve(service, File::from(input), File::from(output), asked_to_end())
}

/// Serves MCP over HTTP until the process is asked to end. Writes the address on standard error, and on a line of its
/// own what a caller needs to know of the token.
fn serve_http(service: Service, listen: &Listen) -> Result<()> {
    let proof = Proof::of(listen)?;
    let gate = Gate::new(&listen.hosts, "name it with `ocx mcp --host NAME`");
    let (listener, said) = match &listen.place {
        Place::Address(address) => {
            let listener = Listener::bind(*address, gate, proof.tokens()?).map_err(|e| match e.kind() {
                Kind::Denied => e.with_hint("Leave out --no-token, or listen on 127.0.0.1."),
                _ => e,
            })?;
            let url = format!("{}{}", listener.url(), mcp::PATH);
            let said = format!("ocx: serving MCP at {url}\n{}", proof.said(&url));
            (listener, said)
        }
        Place::Socket(path) => {
            let listener = Listener::bind_socket(path, gate, proof.tokens()?)?;
            let said = format!("ocx: serving MCP on the socket {}, at {}\n", path.display(), mcp::PATH);
            (listener, said)
        }
    };
    // One who started the server may read one line and close its end.
    let _ = io::stderr().write_all(said.as_bytes());
    mcp::serve_http(service, listener, asked_to_end())
}

/// How callers over HTTP prove who they are.
enum Proof {
    /// By one of the tokens in this text, which the operator gave.
    Given(String),
    /// By this token, which is kept for the operator.
    Kept(String),
    /// Not at all.
    None,
}

impl Proof {
    fn of(listen: &Listen) -> Result<Self> {
        match (&listen.token_file, variable("OCX_TOKEN")) {
            (_, Some(_)) if listen.no_token => {
                Err(Error::new(Kind::Invalid, "both --no-token and OCX_TOKEN are given")
                    .with_hint("Leave out --no-token, or unset OCX_TOKEN."))
            }
            _ if listen.no_token => Ok(Self::None),
            (Some(file), _) => token_file::read(file).map(Self::Given),
            // Nobody else reaches the socket.
            (None, _) if matches!(listen.place, Place::Socket(_)) => Ok(Self::None),
            (None, Some(text)) => Ok(Self::Given(text)),
            (None, None) => {
                let nowhere = || {
                    Error::new(Kind::NotFound, "no folder to keep a token in: HOME is not set")
                        .with_hint("Give a token with --token-file FILE or in OCX_TOKEN.")
                };
                token_file::kept(&state().ok_or_else(nowhere)?).map(Self::Kept)
            }
        }
    }

    fn tokens(&self) -> Result<Option<Tokens>> {
        match self {
            Self::Given(text) | Self::Kept(text) => Tokens::parse(text).map(Some),
            Self::None => Ok(None),
        }
    }

    /// What is to be said of it: the command that adds the server to a client, or a warning.
    fn said(&self, url: &str) -> String {
        match self {
            Self::Given(_) => String::new(),
            Self::Kept(token) => {
                format!(
                    "claude mcp add --transport http ocx {url} --header \"Authorization: Bearer {token}\"\n"
                )
            }
            Self::None => {
                "ocx: warning: --no-token lets every user of this machine call, and run commands as you\n"
                    .into()
            }
        }
    }
}

/// How long calls may go on in the engine after the process was asked to end.
const CALLS_END: Duration = Duration::from_millis(400);

/// How much later the process ends whatever still runs.
const PROCESS_ENDS: Duration = Duration::from_millis(450);

/// How long the engine may take to close what it has open, at that time.
const CLOSE: Duration = Duration::from_millis(100);

/// Waits until the process gets SIGTERM or SIGINT. From then on it ends within a second, whatever runs: in order if that
/// lets itself be ended, and else as it stands, when what was acknowledged is on the disk.
async fn asked_to_end() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    // A thread, since a busy runtime must not hold it up. Without one the process ends when its calls do.
    let _ = thread::Builder::new().name("ocx-end".into()).spawn(|| {
        thread::sleep(CALLS_END);
        engine::interrupt();
        thread::sleep(PROCESS_ENDS);
        engine::with_timeout(CLOSE, engine::close_all);
        std::process::exit(1);
    });
}

/// The folder that keeps what is known of tests, and the token of the server: `OCX_STATE`, or `ocx` in the folder for the state of the user's
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

/// The filter of what is logged if `OCX_LOG` is not set. Whoever has an earlier call's work finished is told. A client that goes away before its answer is no error, but rmcp
/// calls it one.
const LOGGED: &str = "error,ocx::finished=warn,rmcp::service=off";

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
