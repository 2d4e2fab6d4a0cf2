//! The record of an agent's run: the forum post that says which agent runs, for whom and how. Tools write it, and read
//! the JSON at the end of its text.

use serde_json::Value;

use crate::error::{Error, Kind, Result};
use crate::name::User;

/// What a record's post says of the run.
///
/// ```
/// use ocx::record::AgentRecord;
/// let text = "Review what arrives.\n\n```json\n{\"ocx\":\"record\",\"runner\":\"claude\",\"login\":\"claude-1a2b3c4d\"}\n```\n";
/// assert_eq!(AgentRecord::in_post(text)?.login.as_str(), "claude-1a2b3c4d");
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRecord {
    /// The login that was made for the run.
    pub login: User,
    /// What runs the agent: `claude` or `codex`.
    pub runner: String,
}

impl AgentRecord {
    /// Reads the record that a post's text ends with.
    ///
    /// # Errors
    /// `Invalid`, naming what the text lacks.
    pub fn in_post(text: &str) -> Result<Self> {
        let block = last_block(text).ok_or_else(|| broken("its text does not end with a fenced block"))?;
        let json: Value = serde_json::from_str(block)
            .map_err(|e| broken("the block at its end is not JSON").caused_by(e))?;
        if json["ocx"] != "record" {
            return Err(broken("the JSON at its end is no record"));
        }
        let word = |name: &str| {
            json[name].as_str().ok_or_else(|| broken(&format!("the record at its end has no `{name}`")))
        };
        Ok(Self { login: User::parse(word("login")?)?, runner: word("runner")?.to_owned() })
    }
}

fn broken(why: &str) -> Error {
    Error::new(Kind::Invalid, why)
}

/// Returns what stands in the fence at the end of a text. No line of JSON begins with a fence.
fn last_block(text: &str) -> Option<&str> {
    let inside = text.trim_end().strip_suffix("\n```")?;
    let (at, _) =
        inside.match_indices("```").filter(|(at, _)| *at == 0 || inside[..*at].ends_with('\n')).last()?;
    let (info, block) = inside[at..].split_once('\n')?;
    ["```", "```json"].contains(&info.trim_end()).then_some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"ocx":"record","login":"claude-1a2b3c4d","runner":"claude"}"#;

    #[test]
    fn the_last_block_is_the_record() {
        let text = format!("Do it.\n```json\n{{\"ocx\":\"other\"}}\n```\nmore\n\n```json\n{RECORD}\n```\n\n");
        assert_eq!(AgentRecord::in_post(&text).unwrap().runner, "claude");
        assert_eq!(
            AgentRecord::in_post(&format!("```\n{RECORD}\n```")).unwrap().login.as_str(),
            "claude-1a2b3c4d"
        );
    }

    #[test]
    fn what_does_not_end_with_a_record_is_refused() {
        let fenced = |json: &str| format!("x\n```json\n{json}\n```");
        for text in [
            String::new(),
            RECORD.to_owned(),
            format!("{}\nBye.", fenced(RECORD)),
            format!("x\n```c\n{RECORD}\n```"),
            format!("x ```json\n{RECORD}\n```"),
            fenced("{"),
            fenced("[]"),
            fenced(r#"{"ocx":"response","login":"a","runner":"b"}"#),
            fenced(r#"{"ocx":"record","runner":"claude"}"#),
            fenced(r#"{"ocx":"record","login":"a\nU boss","runner":"claude"}"#),
        ] {
            assert_eq!(AgentRecord::in_post(&text).unwrap_err().kind(), Kind::Invalid, "{text}");
        }
    }
}
