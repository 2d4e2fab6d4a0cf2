//! Clients of `ocx mcp`. One speaks JSON-RPC in lines over the server's standard input and output, the other over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Result;
use super::programs::OCX;

/// The revision of the protocol that most clients speak.
const REVISION: &str = "2025-11-25";

/// Fails if the reply says that the call was not done.
fn done(tool: &str, reply: &Value) -> Result<()> {
    let answer = &reply["result"]["structuredContent"];
    if answer["ok"] == true { Ok(()) } else { Err(format!("{tool}: {reply}").into()) }
}

/// A running server and the pipes to it. The server ends when this is dropped.
pub struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    /// Starts the server in a checkout and opens a session.
    pub fn start(checkout: &Path, home: &Path) -> Result<Self> {
        let mut command = Command::new(OCX);
        command.arg("mcp").current_dir(checkout).env("HOME", home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn()?;
        let input = server.stdin.take();
        let output = BufReader::new(server.stdout.take().ok_or("no pipe from the server")?);
        let mut client = Self { server, input, output, last_id: 0 };
        let greeting = json!({
            "protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}
        });
        client.ask("initialize", &greeting)?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// Calls a tool. The tool must answer that it did what was asked.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let answer = result["structuredContent"].take();
        if answer["ok"] == true {
            Ok(answer)
        } else {
            Err(format!("{tool} {arguments}: {answer}{result}").into())
        }
    }

    /// The time until the whole answer of a tool has arrived. The tool must have done what was asked.
    pub fn time(&mut self, tool: &str, arguments: &Value) -> Result<Duration> {
        let message = self.message("tools/call", &json!({"name": tool, "arguments": arguments}));
        let start = Instant::now();
        self.send(&message)?;
        let line = self.line()?;
        let time = start.elapsed();
        done(tool, &serde_json::from_str(&line)?)?;
        Ok(time)
    }

    /// The list of tools, as it is sent.
    pub fn list(&mut self) -> Result<Value> {
        self.ask("tools/list", &json!({}))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let message = self.message(method, params);
        self.send(&message)?;
        loop {
            let line = self.line()?;
            let mut reply: Value = serde_json::from_str(&line)?;
            if reply["id"] == message["id"] {
                let result = reply["result"].take();
                return if result.is_null() { Err(line.into()) } else { Ok(result) };
            }
        }
    }

    fn message(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params})
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 { Err("the server has ended".into()) } else { Ok(line) }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().ok_or("no pipe to the server")?;
        input.write_all(format!("{message}\n").as_bytes())?;
        Ok(input.flush()?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The server ends when its input ends.
        drop(self.input.take());
        let _ = self.server.wait();
    }
}

/// A server that listens. It ends when this is dropped.
pub struct Listening {
    server: Child,
    address: String,
}

impl Listening {
    /// Starts the server in a checkout on a free port.
    pub fn start(checkout: &Path, home: &Path) -> Result<Self> {
        let mut command = Command::new(OCX);
        command.args(["mcp", "--listen", "--no-token"]).current_dir(checkout);
        command.env("HOME", home).env_remove("OCX_TOKEN");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.spawn()?;
        let mut line = String::new();
        BufReader::new(server.stderr.take().ok_or("no pipe from the server")?).read_line(&mut line)?;
        let address =
            line.trim().strip_prefix("ocx: serving MCP at http://").and_then(|u| u.strip_suffix("/mcp"));
        let address = address.ok_or_else(|| line.clone())?.to_owned();
        Ok(Self { server, address })
    }

    /// Opens a connection that stays open for many calls.
    pub fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        Ok(Connection { address: self.address.clone(), stream: BufReader::new(stream) })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A connection to a server that listens. It stays open.
pub struct Connection {
    address: String,
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Calls a tool. The tool must answer that it did what was asked.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let answer = result["structuredContent"].take();
        if answer["ok"] == true { Ok(answer) } else { Err(format!("{tool} {arguments}: {answer}").into()) }
    }

    /// The time until the whole answer of a tool has arrived. The tool must have done what was asked.
    pub fn time(&mut self, tool: &str, arguments: &Value) -> Result<Duration> {
        let params = json!({"name": tool, "arguments": arguments});
        let start = Instant::now();
        let reply = self.reply("tools/call", &params)?;
        let time = start.elapsed();
        done(tool, &serde_json::from_slice(&reply)?)?;
        Ok(time)
    }

    /// Asks whether the server is there.
    pub fn ping(&mut self) -> Result<()> {
        self.ask("ping", &json!({})).map(drop)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let mut reply: Value = serde_json::from_slice(&self.reply(method, params)?)?;
        let result = reply["result"].take();
        if result.is_null() { Err(reply.to_string().into()) } else { Ok(result) }
    }

    fn reply(&mut self, method: &str, params: &Value) -> Result<Vec<u8>> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let message = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: \
             application/json\r\nMCP-Protocol-Version: {REVISION}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(message.as_bytes())?;
        let mut length = 0;
        let mut line = String::new();
        while self.stream.read_line(&mut line)? > 2 {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
            line.clear();
        }
        let mut reply = vec![0; length];
        self.stream.read_exact(&mut reply)?;
        Ok(reply)
    }
}
