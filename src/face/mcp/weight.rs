//! What a message costs in memory: its bytes, and many times that for each JSON value in it. Both are bounded before any
//! value is made.
//!
//! A value takes up to a kilobyte until a call has it, and the shortest has two bytes: a message of 16 MiB took 6 GB.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most JSON values in a message: objects, arrays, members and elements. The largest call has some hundred.
const VALUES_MAX: usize = 4096;

/// How deep values may lie in others.
const DEPTH_MAX: usize = 32;

/// The most bytes of long messages that are in work at once, over all connections. There is room for four of the
/// longest. Each may cost ten times its bytes.
const BYTES_MAX: usize = 64 << 20;

/// A message of at most so many bytes is not counted, so that it never waits for long ones.
const SHORT_BYTES: usize = 64 << 10;

/// How long a message waits until others are answered.
const WAIT: Duration = Duration::from_secs(10);

/// The bytes of the long messages that are in work.
#[derive(Clone)]
pub struct Scale(Arc<Semaphore>);

/// Bytes that are counted until this is dropped.
#[derive(Default)]
pub struct Weighed {
    bytes: Option<OwnedSemaphorePermit>,
}

impl Scale {
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_MAX)))
    }

    /// Counts a message of so many bytes. Nothing if too many are in work.
    pub fn add(&self, bytes: usize) -> Option<Weighed> {
        if bytes <= SHORT_BYTES {
            return Some(Weighed::default());
        }
        let bytes = Arc::clone(&self.0).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()?;
        Some(Weighed { bytes: Some(bytes) })
    }

    /// The same, and waits a while for others to be answered.
    pub async fn wait(&self, bytes: usize) -> Option<Weighed> {
        if bytes <= SHORT_BYTES {
            return Some(Weighed::default());
        }
        let bytes = Arc::clone(&self.0).acquire_many_owned(u32::try_from(bytes).ok()?);
        let bytes = tokio::time::timeout(WAIT, bytes).await.ok()?.ok()?;
        Some(Weighed { bytes: Some(bytes) })
    }
}

impl Weighed {
    /// The same for a message that turned out to have only so many bytes.
    pub fn only(mut self, bytes: usize) -> Self {
        let bytes = if bytes <= SHORT_BYTES { 0 } else { bytes };
        Self { bytes: self.bytes.as_mut().and_then(|counted| counted.split(bytes)).filter(|_| bytes > 0) }
    }
}

/// Refuses a message with too many values, or values too deep in others.
///
/// # Errors
/// The words that say what there is too much of.
pub fn weigh(message: &[u8]) -> Result<(), String> {
    let (mut values, mut depth) = (1, 0_usize);
    let mut rest = message;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b',' | b'[' | b'{' | b']' | b'}'))
    {
        let byte = rest[at];
        rest = &rest[at + 1..];
        match byte {
            b'"' => rest = behind_text(rest),
            b',' => values += 1,
            b'[' | b'{' => {
                values += 1;
                depth += 1;
            }
            _ => depth = depth.saturating_sub(1),
        }
        if values > VALUES_MAX {
            return Err(format!("the message has over {VALUES_MAX} JSON values and was dropped"));
        }
        if depth > DEPTH_MAX {
            return Err(format!(
                "the message has JSON values over {DEPTH_MAX} deep in others and was dropped"
            ));
        }
    }
    Ok(())
}

/// What follows the text whose content `rest` begins with.
fn behind_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let skip = if rest[at] == b'"' { 1 } else { 2 };
        let end = rest[at] == b'"';
        rest = rest.get(at + skip..).unwrap_or_default();
        if end {
            return rest;
        }
    }
    &[]
}

/// The id of a message, if it is one that a request can have. Nothing else of the message is kept.
pub fn id(message: &[u8]) -> Option<Value> {
    /// The one field.
    #[derive(Deserialize)]
    struct Head {
        id: Option<Id>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Id {
        Number(i64),
        Text(String),
        Other(IgnoredAny),
    }
    match serde_json::from_slice(message).ok()? {
        Head { id: Some(Id::Number(id)) } => Some(id.into()),
        Head { id: Some(Id::Text(id)) } => Some(id.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v08_a_message_is_weighed_by_its_values_before_it_is_read() {
        let many = |count: usize| format!(r#"{{"id":7,"x":[{}0]}}"#, "[],".repeat(count));
        assert!(weigh(many(1000).as_bytes()).is_ok());
        assert!(weigh(many(3000).as_bytes()).unwrap_err().contains("4096 JSON values"));
        let deep = format!(r#"{{"id":7,"x":{}{}}}"#, "[".repeat(40), "]".repeat(40));
        assert!(weigh(deep.as_bytes()).unwrap_err().contains("32 deep"));
        // What stands in a text is no value.
        let text = format!(r#"{{"id":7,"x":"{}\\\"{}"}}"#, "[],".repeat(9999), "{,".repeat(9999));
        assert!(weigh(text.as_bytes()).is_ok());
        for broken in ["{\"a\":\"b", "\"\\", "\"\\\"", "]]]}", "", "\\"] {
            assert!(weigh(broken.as_bytes()).is_ok(), "the parser says what is wrong with it");
        }
    }

    #[test]
    fn the_id_of_a_heavy_message_is_read_alone() {
        assert_eq!(id(br#"{"x":[[],[]],"id":7}"#), Some(7.into()));
        assert_eq!(id(br#"{"id":"a","x":{}}"#), Some("a".into()));
        for none in [&br#"{"id":[],"x":1}"#[..], br#"{"id":null}"#, br#"{"id":1.5}"#, b"[]", b"{"] {
            assert_eq!(id(none), None);
        }
    }

    #[test]
    fn v08_the_bytes_in_work_are_bounded_in_sum_and_short_messages_do_not_count() {
        let scale = Scale::new();
        let mut held: Vec<_> = (0..4).map(|_| scale.add(16 << 20).unwrap()).collect();
        assert!(scale.add(SHORT_BYTES + 1).is_none());
        assert!(scale.add(SHORT_BYTES).is_some());
        let last = held.pop().unwrap().only(1 << 20);
        assert!(scale.add(16 << 20).is_none());
        assert!(scale.add(15 << 20).is_some());
        drop(last.only(7));
        assert!(scale.add(16 << 20).is_some());
    }
}
