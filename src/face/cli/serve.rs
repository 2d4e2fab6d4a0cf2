//! `ocx mcp`: the options that say how to serve the protocol.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};

use super::target::Target;
use crate::tool::Binding;

/// What `ocx mcp` must do: serve the protocol on standard input and output, or over HTTP.
#[derive(Debug, PartialEq, Eq)]
pub struct Serve {
    /// Where calls act, and as which user.
    pub target: Target,
    /// Where the callers' files are.
    pub binding: Binding,
    /// Where to listen, if not on standard input.
    pub listen: Option<Listen>,
}

/// How `ocx mcp` listens.
#[derive(Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub place: Place,
    /// The file with the tokens. Every caller must send one of them. If none is given, one token is made.
    pub token_file: Option<PathBuf>,
    /// Whether callers need no token at all.
    pub no_token: bool,
    /// The names of the server besides its address.
    pub hosts: Vec<String>,
}

/// Where `ocx mcp` listens.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// At this address. Port 0 means any free port.
    Address(SocketAddr),
    /// On a socket that only its owner can use.
    Socket(PathBuf),
}

impl Serve {
    /// Reads the options of `ocx mcp`. If callers can come from another machine, their files are on that machine.
    #[must_use]
    pub fn of(target: Target, given: &ArgMatches) -> Self {
        let address = given.get_one("listen").copied().map(Place::Address);
        let place = address.or_else(|| given.get_one("socket").cloned().map(Place::Socket));
        let listen = place.map(|place| Listen {
            place,
            token_file: given.get_one("token_file").cloned(),
            no_token: given.get_flag("no_token"),
            hosts: given.get_many::<String>("host").unwrap_or_default().cloned().collect(),
        });
        let beyond = listen.as_ref().is_some_and(
            |listen| matches!(listen.place, Place::Address(address) if !address.ip().is_loopback()),
        );
        let binding = if beyond || given.get_flag("remote") { Binding::Remote } else { Binding::Local };
        Self { target, binding, listen }
    }
}

/// The command `ocx mcp`.
pub fn command() -> Command {
    Command::new("mcp")
        .about("Serve the tools over MCP, on standard input and output or over HTTP")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDR")
                .num_args(0..=1)
                .default_missing_value("0")
                .value_parser(address)
                .help("Serve over HTTP at this address, such as 127.0.0.1:8765; a port alone is one of this machine only, and 0 takes a free one"),
        )
        .arg(
            Arg::new("socket")
                .long("socket")
                .value_name("PATH")
                .conflicts_with_all(["listen", "no_token"])
                .value_parser(value_parser!(PathBuf))
                .help("Serve over HTTP on a Unix socket at PATH, which only you can use; no token is needed there unless --token-file names some"),
        )
        .arg(
            Arg::new("remote")
                .long("remote")
                .action(ArgAction::SetTrue)
                .help("Say that callers have their files elsewhere; implied by an address that is not loopback"),
        )
        .arg(
            Arg::new("token_file")
                .long("token-file")
                .value_name("FILE")
                .requires("served")
                .value_parser(value_parser!(PathBuf))
                .help("The file with the tokens of which callers must send one as their bearer token, in lines of LOGIN TOKEN, or a token alone for the checkout's user, which only its owner may read; OCX_TOKEN otherwise, or else a token that is made, kept and printed"),
        )
        .arg(
            Arg::new("no_token")
                .long("no-token")
                .requires("listen")
                .conflicts_with("token_file")
                .action(ArgAction::SetTrue)
                .help("Let every user of this machine call without a token, which is for tests; only on a loopback address"),
        )
        .arg(
            Arg::new("host")
                .long("host")
                .value_name("NAME")
                .requires("served")
                .action(ArgAction::Append)
                .help("A name, besides its address, by which callers may call the server"),
        )
        .group(ArgGroup::new("served").args(["listen", "socket"]))
}

/// Reads an address with its port, or a port alone, which belongs to the loopback address.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse()
        .map_err(|_| "it must be ADDRESS:PORT, such as 127.0.0.1:8765 or [::1]:8765, or a port".to_owned())
}
