//! How much an agent has to read. The rough count of tokens is the bytes divided by four.

use serde_json::json;

use super::Place;
use super::common::Result;
use super::common::mcp::Client;

pub fn count(place: &Place) -> Result<()> {
    let mut client = Client::start(&place.tree, &place.home)?;
    let list = client.list()?.to_string().len();
    let mut session = 0;
    let mut call = |tool: &str, input: &serde_json::Value| -> Result<serde_json::Value> {
        let answer = client.call(tool, input)?;
        session += input.to_string().len() + answer.to_string().len();
        Ok(answer)
    };
    call("ocx_context", &json!({}))?;
    let found = call("ocx_find", &json!({"text": "return"}))?;
    let place = &found["result"]["matches"][0];
    let line = place["line"].as_u64().unwrap_or(1).saturating_sub(10).max(1);
    let read = call("ocx_read", &json!({"path": place["path"], "from": line}))?;
    let text = read["result"]["text"].as_str().unwrap_or_default();
    let passage: String = text.split_inclusive('\n').take(12).collect();
    let changed = format!("{passage}changed\n");
    call("ocx_edit", &json!({"path": place["path"], "old": passage, "new": changed}))?;
    call("ocx_save", &json!({"title": "t", "intent": "i", "expression": "e", "demonstrates": "d"}))?;
    println!(
        "\n## Tokens, as bytes by four\n\n| what | tokens |\n|---|---:|\n| the list of tools | {} |\n| a session: context, \
         find, read, edit, save; calls and answers | {} |",
        list / 4,
        session / 4
    );
    Ok(())
}
