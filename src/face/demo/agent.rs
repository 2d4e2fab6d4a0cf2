//! The agent of the demonstration: an MCP client that prints what it calls and what it gets.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::story::{Story, unexpected};
use crate::error::{Error, Kind, Result};
use crate::text;

/// The revision of the protocol that the agent speaks.
const REVISION: &str = "2025-11-25";

/// The longest piece of a call or answer that is printed, in bytes.
const SHOWN: usize = 150;

/// A session with a server that runs in the agent's checkout. Each message is a line of JSON.
pub struct Agent {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Agent {
    /// Starts `ocx mcp` in `checkout` and opens a session.
    pub fn start(checkout: &Path) -> Result<Self> {
        let cannot = |e| Error::io("cannot start `ocx mcp`", e);
        let mut server = Command::new(std::env::current_exe().map_err(cannot)?)
            .arg("-C")
            .arg(checkout)
            .arg("mcp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let (input, output) = (server.stdin.take(), server.stdout.take());
        let output = output.ok_or_else(|| unexpected("`ocx mcp`", "it has no standard output"))?;
        let mut agent = Self { server, input, output: BufReader::new(output), requests: 0 };
        let client = json!({"name": "ocx demo", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client});
        let server = agent.request("initialize", &hello)?;
        if server["protocolVersion"] != REVISION {
            return Err(unexpected("initialize", &server.to_string()));
        }
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(agent)
    }

    /// How many tools the server offers.
    pub fn tools(&mut self) -> Result<usize> {
        let listed = self.request("tools/list", &json!({}))?;
        let tools =
            listed["tools"].as_array().ok_or_else(|| unexpected("tools/list", &listed.to_string()))?;
        Ok(tools.len())
    }

    /// Ends the session, and the server with it.
    pub fn stop(mut self) -> Result<()> {
        self.input = None;
        let ended = self.server.wait().map_err(|e| Error::io("cannot wait for `ocx mcp`", e))?;
        if ended.success() { Ok(()) } else { Err(unexpected("the end of the session", &ended.to_string())) }
    }

    /// Makes a call that must succeed.
    pub fn expect(&mut self, story: &mut Story<'_>, tool: &str, arguments: &Value) -> Result<Value> {
        let answer = self.call(story, tool, arguments)?;
        if answer["ok"] == Value::Bool(true) {
            Ok(answer)
        } else {
            Err(unexpected(tool, &answer.to_string()))
        }
    }

    /// Makes a call that must be refused with `kind`.
    pub fn refused(
        &mut self,
        story: &mut Story<'_>,
        tool: &str,
        arguments: &Value,
        kind: Kind,
    ) -> Result<Value> {
        let answer = self.call(story, tool, arguments)?;
        let as_expected = answer["ok"] == Value::Bool(false) && answer["code"] == kind.code();
        if as_expected { Ok(answer) } else { Err(unexpected(tool, &answer.to_string())) }
    }

    /// Makes the call that a refusal gave, without a change. The call must succeed.
    pub fn follow(&mut self, story: &mut Story<'_>, refused: &Value) -> Result<Value> {
        let (tool, arguments) = next_call(refused)?;
        self.expect(story, &tool, &arguments)
    }

    /// Makes the call that a refusal gave. This call must be refused too.
    pub fn follow_to_refusal(&mut self, story: &mut Story<'_>, refused: &Value, kind: Kind) -> Result<Value> {
        let (tool, arguments) = next_call(refused)?;
        self.refused(story, &tool, &arguments, kind)
    }

    fn call(&mut self, story: &mut Story<'_>, tool: &str, arguments: &Value) -> Result<Value> {
        story.say(&format!("-> {tool} {}", cut(&arguments.to_string())))?;
        let started = Instant::now();
        let mut result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let answer = result["structuredContent"].take();
        if !answer.is_object() {
            return Err(unexpected(tool, "the answer has no structured content"));
        }
        story.say(&format!("<- {:>6.1} ms  {}", ms, gist(&answer)))?;
        Ok(answer)
    }

    /// Sends a request and waits for its result.
    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.requests += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}))?;
        loop {
            let mut message = self.receive(method)?;
            if message["id"] != self.requests {
                continue;
            }
            return match message.get_mut("result") {
                Some(result) => Ok(result.take()),
                None => Err(unexpected(method, &message["error"].to_string())),
            };
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let cannot = |e| Error::io("cannot write to `ocx mcp`", e);
        let Some(input) = &mut self.input else { return Ok(()) };
        writeln!(input, "{message}").and_then(|()| input.flush()).map_err(cannot)
    }

    fn receive(&mut self, method: &str) -> Result<Value> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(unexpected(method, "`ocx mcp` ended")),
            Ok(_) => serde_json::from_str(&line).map_err(|e| unexpected(method, &format!("{e}: {line}"))),
            Err(e) => Err(Error::io("cannot read from `ocx mcp`", e)),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // After a failure the server may still run. After `stop` it has ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn next_call(refused: &Value) -> Result<(String, Value)> {
    let call = &refused["next_call"];
    let tool = call["tool"].as_str().ok_or_else(|| unexpected("next_call", &refused.to_string()))?;
    Ok((tool.to_owned(), call["arguments"].clone()))
}

/// An answer in a line or two.
fn gist(answer: &Value) -> String {
    if answer["ok"] == Value::Bool(true) {
        return format!("ok  {}", cut(&answer["result"].to_string()));
    }
    let say = |key: &str| cut(answer[key].as_str().unwrap_or_default());
    format!("{}: {}\n             next: {}", say("code"), say("stopped"), say("next_step"))
}

fn cut(text: &str) -> String {
    let short = text::cut(text, SHOWN);
    if short.len() < text.len() { format!("{short}...") } else { short.to_owned() }
}
