//! The agent of the demonstration: an MCP client that prints what it calls and what it gets.

use std::path::PathBuf;
use std::time::Instant;

use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use serde_json::Value;
use tokio::process::{Child, Command};

use super::{Story, unexpected};
use crate::error::{Error, Kind, Result};
use crate::text;

/// The longest piece of a call or answer that is printed, in bytes.
const SHOWN: usize = 150;

/// A session with a server that runs in the agent's checkout.
pub struct Agent {
    session: RunningService<RoleClient, ()>,
    server: Child,
}

impl Agent {
    /// Starts `ocx mcp` in `checkout` and opens a session.
    pub async fn start(checkout: PathBuf) -> Result<Self> {
        let cannot = |e| Error::io("cannot start `ocx mcp`", e);
        let mut server = Command::new(std::env::current_exe().map_err(cannot)?)
            .arg("-C")
            .arg(checkout)
            .arg("mcp")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(cannot)?;
        let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(unexpected("`ocx mcp`", "it has no streams"));
        };
        let session =
            ().serve((output, input)).await.map_err(|e| unexpected("the MCP handshake", &e.to_string()))?;
        Ok(Self { session, server })
    }

    /// How many tools the server offers.
    pub async fn tools(&self) -> Result<usize> {
        let tools =
            self.session.list_all_tools().await.map_err(|e| unexpected("tools/list", &e.to_string()))?;
        Ok(tools.len())
    }

    /// Ends the session; the server is gone afterwards.
    pub async fn stop(mut self) -> Result<()> {
        self.session.cancel().await.map_err(|e| unexpected("the end of the session", &e.to_string()))?;
        self.server.wait().await.map_err(|e| Error::io("cannot wait for `ocx mcp`", e))?;
        Ok(())
    }

    /// Makes a call that must be done.
    pub async fn expect(&mut self, story: &mut Story<'_>, tool: &str, arguments: Value) -> Result<Value> {
        let answer = self.call(story, tool, arguments).await?;
        if answer["ok"] == Value::Bool(true) {
            Ok(answer)
        } else {
            Err(unexpected(tool, &answer.to_string()))
        }
    }

    /// Makes a call that must be refused for the reason of `kind`.
    pub async fn refused(
        &mut self,
        story: &mut Story<'_>,
        tool: &str,
        arguments: Value,
        kind: Kind,
    ) -> Result<Value> {
        let answer = self.call(story, tool, arguments).await?;
        let as_expected = answer["ok"] == Value::Bool(false) && answer["code"] == kind.code();
        if as_expected { Ok(answer) } else { Err(unexpected(tool, &answer.to_string())) }
    }

    /// Makes the call that a refusal gave, just as it stands; it must be done.
    pub async fn follow(&mut self, story: &mut Story<'_>, refused: &Value) -> Result<Value> {
        let (tool, arguments) = next_call(refused)?;
        self.expect(story, &tool, arguments).await
    }

    /// The same, where that call must be refused in turn.
    pub async fn follow_to_refusal(
        &mut self,
        story: &mut Story<'_>,
        refused: &Value,
        kind: Kind,
    ) -> Result<Value> {
        let (tool, arguments) = next_call(refused)?;
        self.refused(story, &tool, arguments, kind).await
    }

    async fn call(&mut self, story: &mut Story<'_>, tool: &str, arguments: Value) -> Result<Value> {
        story.say(&format!("-> {tool} {}", cut(&arguments.to_string())))?;
        let started = Instant::now();
        let object = arguments.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(object);
        let result = self.session.call_tool(params).await.map_err(|e| unexpected(tool, &e.to_string()))?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let answer = result
            .structured_content
            .ok_or_else(|| unexpected(tool, "the answer has no structured content"))?;
        story.say(&format!("<- {:>6.1} ms  {}", ms, gist(&answer)))?;
        Ok(answer)
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
