//! Judges one message before the protocol machinery sees it, and repairs a call that is nearly right. A message is a
//! line or a body.
//!
//! A bad message gets an error that says what is wrong. The error carries the message's id, if that is usable. A call
//! with broken arguments becomes a call that the tool layer refuses. The model can read the words of that refusal, but
//! protocol errors often never reach the model. Nothing is guessed or coerced.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, GetMeta, ProtocolVersion, RequestId};
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Map, Value, json};

use super::weight;

/// The length of the longest accepted message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The field of `_meta` in which a call that can't be made carries the reason: `why`, or the arguments as they were
/// `given`.
pub const REFUSAL: &str = "ocx/refusal";

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;

/// What happens to a message.
pub enum Judged {
    /// The message goes to the session.
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// An error goes back. `under_id` says whether the error carries the id of a request.
    Reply { reply: Vec<u8>, under_id: bool },
    /// Nothing happens: the message is an empty line, or a notification or response that means nothing here.
    Nothing,
}

/// Judges one message.
#[must_use]
pub fn judge(line: &[u8]) -> Judged {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Judged::Nothing;
    }
    if let Err(words) = weight::weigh(line) {
        return refuse(weight::id(line), INVALID_REQUEST, &words);
    }
    match serde_json::from_slice(line) {
        Ok(Value::Object(message)) => judge_object(message),
        Ok(Value::Array(_)) => {
            refuse(None, INVALID_REQUEST, "batches are not taken: send one message at a time")
        }
        Ok(_) => refuse(None, INVALID_REQUEST, "a message must be a JSON object"),
        Err(error) => judge_broken(line, &error),
    }
}

/// The error for a message over the limit. `what` says which message it was and how long.
#[must_use]
pub fn over_the_limit(what: &str) -> Vec<u8> {
    let words = format!("{what} is over the limit of {MESSAGE_BYTES_MAX} bytes and was dropped");
    error(None, INVALID_REQUEST, &words)
}

/// The error for a message that comes while too many large ones are in work.
#[must_use]
pub fn too_many_bytes(id: Option<Value>) -> Vec<u8> {
    error(id, INVALID_REQUEST, "too many large messages are in work: send it again when one is answered")
}

/// The error for a request whose id another one in flight has, or that is one too many.
#[must_use]
pub fn not_taken(id: &RequestId) -> Vec<u8> {
    let shown = id.to_string();
    let words = format!(
        "a request with the id {} is in flight, or hundreds of others are: use another id, and wait for answers",
        shown.escape_debug()
    );
    error(Some(id.clone().into_json_value()), INVALID_REQUEST, &words)
}

/// The error for a body without a message.
#[must_use]
pub fn no_message() -> Vec<u8> {
    error(None, INVALID_REQUEST, "the body is empty: send one JSON-RPC message")
}

/// Whether a request opens a session. `initialize` does, and so does a request that carries its own metadata.
#[must_use]
pub fn opens(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let RxJsonRpcMessage::<RoleServer>::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}

fn judge_object(mut message: Map<String, Value>) -> Judged {
    let id = match message.get("id") {
        None => None,
        Some(Value::String(_)) => message.get("id").cloned(),
        Some(Value::Number(n)) if n.is_i64() => message.get("id").cloned(),
        Some(_) => return refuse(None, INVALID_REQUEST, "an id must be a string or a 64-bit whole number"),
    };
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return refuse(id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = message.get("method") else {
        let response = message.contains_key("result") || message.contains_key("error");
        return if response { pass(message, None) } else { refuse(id, INVALID_REQUEST, "no `method`") };
    };
    if !method.is_string() {
        return refuse(id, INVALID_REQUEST, "`method` must be a string");
    }
    let call = method == "tools/call";
    // Some clients send every field.
    if let Some(Value::Object(params)) = message.get_mut("params")
        && params.get("_meta").is_some_and(Value::is_null)
    {
        params.shift_remove("_meta");
    }
    if id.is_some() && call {
        if let Err(words) = repair_call(&mut message) {
            return refuse(id, INVALID_PARAMS, words);
        }
    } else if message.get("params").is_some_and(Value::is_null) {
        message.remove("params");
    }
    pass(message, id)
}

/// Changes a call with unusable arguments, so that the tool layer refuses it in words. A call without a name is a
/// protocol error.
fn repair_call(message: &mut Map<String, Value>) -> Result<(), &'static str> {
    let Some(Value::Object(params)) = message.get_mut("params") else {
        return Err("`params` must be an object with `name` and `arguments`");
    };
    if !params.get("name").is_some_and(Value::is_string) {
        return Err("`name` is missing: it must be a string, the name of a tool that tools/list gives");
    }
    if params.get("_meta").is_some_and(|m| !m.is_object()) {
        return Err("`_meta` must be an object");
    }
    let reason = match params.get("arguments") {
        None | Some(Value::Object(_)) => return Ok(()),
        Some(Value::Null) => {
            params.remove("arguments");
            return Ok(());
        }
        Some(given) => json!({"given": given}),
    };
    refuse_call(params, reason);
    Ok(())
}

fn refuse_call(params: &mut Map<String, Value>, reason: Value) {
    params.remove("arguments");
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    meta[REFUSAL] = reason;
}

/// Judges a line that is not JSON. One fault is common and easy to detect: half of a surrogate pair. A model writes it
/// when an emoji is cut in two.
fn judge_broken(line: &[u8], error: &serde_json::Error) -> Judged {
    let Some(Ok(Value::Object(mut message))) =
        without_lone_surrogates(line).map(|l| serde_json::from_slice(&l))
    else {
        return refuse(None, PARSE_ERROR, &format!("the message is not JSON: {error}"));
    };
    let words = "the input holds half of a surrogate pair (\\ud800 to \\udfff without its other half)";
    if message.get("method") == Some(&json!("tools/call"))
        && let Some(Value::Object(params)) = message.get_mut("params")
    {
        refuse_call(params, json!({"why": words}));
        return judge_object(message);
    }
    let id = message.remove("id").filter(|id| id.is_string() || id.is_i64());
    refuse(id, INVALID_PARAMS, words)
}

/// The line with each lone surrogate escape replaced. Returns nothing if there is none.
fn without_lone_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = Vec::with_capacity(line.len());
    let mut found = false;
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        repaired.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let length = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                found = true;
                repaired.extend_from_slice(b"\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => rest.len().min(2),
        };
        repaired.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    repaired.extend_from_slice(rest);
    found.then_some(repaired)
}

/// The UTF-16 unit of the `\uXXXX` at the start of `text`.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn pass(message: Map<String, Value>, id: Option<Value>) -> Judged {
    match serde_json::from_value(Value::Object(message)) {
        Ok(message) => Judged::Message(Box::new(message)),
        Err(_) if id.is_none() => Judged::Nothing,
        Err(error) => refuse(id, INVALID_REQUEST, &format!("not a request of this protocol: {error}")),
    }
}

/// An error reply. If there is no usable id, the reply has none. MCP wants it so.
fn refuse(id: Option<Value>, code: i32, message: &str) -> Judged {
    let under_id = id.is_some();
    Judged::Reply { reply: error(id, code, message), under_id }
}

fn error(id: Option<Value>, code: i32, message: &str) -> Vec<u8> {
    let mut reply = json!({"jsonrpc": "2.0"});
    if let Some(id) = id {
        reply["id"] = id;
    }
    reply["error"] = json!({"code": code, "message": message});
    reply.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> Value {
        match judge(line.as_bytes()) {
            Judged::Reply { reply, .. } => serde_json::from_slice(&reply).expect("a reply is JSON"),
            Judged::Message(_) => panic!("passed: {line}"),
            Judged::Nothing => Value::Null,
        }
    }

    fn passed(line: &str) -> Value {
        match judge(line.as_bytes()) {
            Judged::Message(message) => serde_json::to_value(&*message).expect("a message is JSON"),
            _ => panic!("not passed: {line}"),
        }
    }

    #[test]
    fn m01_garbage_is_a_parse_error_and_a_bom_is_nothing() {
        assert_eq!(reply("garbage")["error"]["code"], PARSE_ERROR);
        assert_eq!(reply(" \r"), Value::Null);
        assert_eq!(passed("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")["method"], "ping");
    }

    #[test]
    fn m02_what_is_no_request_is_refused_under_its_id() {
        assert_eq!(reply("[]")["error"]["code"], INVALID_REQUEST);
        assert_eq!(reply("3")["error"]["code"], INVALID_REQUEST);
        let nameless = reply(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{}}}"#);
        assert_eq!((&nameless["id"], &nameless["error"]["code"]), (&json!(7), &json!(INVALID_PARAMS)));
        let null = reply(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":null}"#);
        assert_eq!(null["error"]["code"], INVALID_PARAMS);
    }

    #[test]
    fn m10_ids_pass_exactly_and_null_is_refused() {
        let id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(passed(&id("9007199254740993"))["id"], json!(9_007_199_254_740_993_i64));
        assert_eq!(passed(&id(r#""x\u0000""#))["id"], "x\0");
        for bad in ["null", "1.5", "99999999999999999999", "[]"] {
            assert_eq!(reply(&id(bad))["error"]["code"], INVALID_REQUEST, "{bad}");
        }
    }

    #[test]
    fn t14_a_lone_surrogate_becomes_a_call_that_is_refused() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ocx_edit","arguments":{"new":"x\ud800y"}}}"#;
        let call = passed(line);
        assert!(call["params"]["_meta"][REFUSAL]["why"].as_str().is_some_and(|w| w.contains("surrogate")));
        assert!(call["params"].get("arguments").is_none());
    }

    #[test]
    fn whole_pairs_and_escaped_backslashes_are_left_alone() {
        assert_eq!(without_lone_surrogates(br#""\ud83d\ude00 \\ud800""#), None);
        assert_eq!(without_lone_surrogates(br#""a\ude00b""#).as_deref(), Some(&br#""a\ufffdb""#[..]));
    }

    #[test]
    fn arguments_that_are_no_object_go_to_the_tools_as_they_are() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ocx_read","arguments":"{\"path\":\"a\"}"}}"#;
        assert_eq!(passed(line)["params"]["_meta"][REFUSAL]["given"], "{\"path\":\"a\"}");
    }
}
