//! `ocx demo`: the main job on a real tree, in a temporary folder, from an agent's first call to the check-in on a
//! Fossil server. When something goes wrong on the way, the agent repairs it by doing what the answer says.
//!
//! The demonstration is a client like any other. It starts this program as the MCP server and as plain Fossil's server.
//! It believes only what the server's own repository shows.

mod agent;
mod place;
mod story;

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use self::agent::Agent;
use self::place::{AGENT, Place};
use self::story::{Story, unexpected};
use crate::error::{Error, Kind, Result};
use crate::name::Hash;
use crate::repo::Repository;

const CHANGES: &str = "www/changes.wiki";
const TITLE: &str = "Begin version 2.29 with an in-process note";

/// The sources of Fossil that this program was built from.
const SOURCE: &str = env!("OCX_FOSSIL_TREE");

/// Runs the demonstration and prints it to `out`.
///
/// # Errors
/// The error names the first step that is not as expected.
pub fn run(out: &mut dyn Write) -> Result<()> {
    let source = Path::new(SOURCE);
    if !source.join("VERSION").is_file() {
        return Err(Error::new(Kind::NotFound, format!("Fossil's sources are no longer at `{SOURCE}`"))
            .with_hint("Run the demonstration where the program was built: `cargo run --release -- demo`."));
    }
    let started = Instant::now();
    let mut story = Story::new(out);
    let mut place = Place::make(source, &mut story)?;
    job(&mut place, &mut story)?;
    story.say(&format!(
        "\nAs expected in every step, in {:.1} s. The temporary folder is gone.",
        started.elapsed().as_secs_f64()
    ))
}

/// The job itself: the calls of one agent's session.
fn job(place: &mut Place, story: &mut Story<'_>) -> Result<()> {
    let mut agent = Agent::start(&place.checkout())?;
    story.say(&format!("\nAn MCP client starts `ocx mcp` ({} tools):", agent.tools()?))?;
    let context = agent.expect(story, "ocx_context", &json!({}))?;
    let branch = text(&context, "/result/branch")?;

    story.say("\nIt finds, reads and edits; a vague edit is refused, and the answer says how to go on:")?;
    agent.expect(story, "ocx_find", &json!({"text": "Changes for version 2.2", "path": CHANGES}))?;
    agent.expect(story, "ocx_read", &json!({"path": "VERSION"}))?;
    let old = json!({"path": CHANGES, "old": "<h2 id='v2_", "new": "<h2 id='v2_29'>Changes for version 2.29 (pending)</h2>\n"});
    let refused = agent.refused(story, "ocx_edit", &old, Kind::Ambiguous)?;
    let read = agent.follow(story, &refused)?;
    let heading =
        text(&read, "/result/text")?.lines().find(|l| l.contains("<h2 id='v2_28'>")).map(str::to_owned);
    let heading =
        heading.ok_or_else(|| unexpected("ocx_read", "the text holds no heading of version 2.28"))?;
    let new = format!(
        "<h2 id='v2_29'>Changes for version 2.29 (pending)</h2><ol>\n  <li> Built by an agent.\n</ol>\n\n{heading}"
    );
    agent.expect(story, "ocx_edit", &json!({"path": CHANGES, "old": heading, "new": new}))?;

    story.say("\nIt may not save before the tests have passed on exactly these files:")?;
    let refused = agent.refused(story, "ocx_save", &save(), Kind::Untested)?;
    let failed = agent.follow_to_refusal(story, &refused, Kind::Untested)?;
    story.say(&format!("   the test says: {}", text(&failed, "/result/tests/0/output")?.trim()))?;
    agent.expect(story, "ocx_edit", &json!({"path": "VERSION", "old": "2.28", "new": "2.29"}))?;
    agent.expect(story, "ocx_test", &json!({}))?;

    story.say(
        "\nThe server is down when it saves: the check-in is made and kept, and saving again only pushes:",
    )?;
    place.stop_server();
    let refused = agent.refused(story, "ocx_save", &save(), Kind::NotPushed)?;
    let hash = Hash::parse(text(&refused, "/result/checkin")?)?;
    if Repository::open(&place.server_repository())?.store().holds(&hash)? {
        return Err(unexpected("ocx_save", "the stopped server holds the check-in"));
    }
    place.start_server()?;
    let saved = agent.follow(story, &refused)?;
    if text(&saved, "/result/checkin")? != hash.as_str()
        || saved.pointer("/result/pushed") != Some(&Value::Bool(true))
    {
        return Err(unexpected("ocx_save", &saved.to_string()));
    }
    agent.stop()?;
    place.stop_server();
    proof(place, story, &hash, branch)
}

fn save() -> Value {
    json!({
        "title": TITLE,
        "intent": "show an agent's work from its first call to the server",
        "expression": "VERSION and the first heading of www/changes.wiki",
        "demonstrates": "test `version`: the version has a heading in the change log",
    })
}

/// Reads from the server's own repository what has arrived there.
fn proof(place: &Place, story: &mut Story<'_>, hash: &Hash, branch: &str) -> Result<()> {
    let server = Repository::open(&place.server_repository())?;
    let held = server.store();
    let landed = held.check_in(hash)?;
    let receipt = held.receipt(hash)?.ok_or_else(|| unexpected("the server", "there is no receipt"))?;
    let files = held.files(hash)?;
    let version = files.iter().find(|(path, _)| path.as_str() == "VERSION").map(|(_, file)| file.hash);
    let version = version.ok_or_else(|| unexpected("the server", "there is no file VERSION"))?;
    let content = String::from_utf8_lossy(&held.content(&version)?).into_owned();
    story.say("\nThe proof, from the server's repository:")?;
    story.say(&format!("   check-in  {hash}"))?;
    story.say(&format!("   branch    {}", landed.branch))?;
    story.say(&format!(
        "   user      {}, as the server received it from {} at {}",
        landed.user, receipt.user, receipt.time
    ))?;
    story.say(&format!("   comment   {}", landed.comment.replace('\n', " | ")))?;
    story.say(&format!("   content   {} files, VERSION is {}", files.len(), content.trim()))?;
    let right = landed.branch == branch
        && landed.user == AGENT
        && receipt.user == AGENT
        && landed.comment.starts_with(TITLE)
        && landed.comment.lines().count() == 4
        && content.trim() == "2.29"
        && files.len() == place.file_count()
        && held.branch_tips(&crate::name::Branch::parse(branch)?)? == [*hash];
    if right { Ok(()) } else { Err(unexpected("the server", "what landed is not what was saved")) }
}

/// The text at `pointer` of an answer.
fn text<'a>(answer: &'a Value, pointer: &str) -> Result<&'a str> {
    answer.pointer(pointer).and_then(Value::as_str).ok_or_else(|| unexpected(pointer, &answer.to_string()))
}
