//! What a repository holds beside check-ins: wiki pages, the forum, unversioned files, tags, logins, verdicts.

mod agent_record;
mod audit;
mod author;
mod forum;
mod tags;
mod unversioned;
mod users;
mod wiki;

pub use agent_record::AgentRecord;
pub use audit::{Audits, Verdict};
pub use forum::{Forum, Post, Thread};
pub use tags::{BranchInfo, Tag, Tags};
pub use unversioned::{UNVERSIONED_MAX, Unversioned, UnversionedFile};
pub use users::{Login, Users};
pub use wiki::{Wiki, WikiContent, WikiPage, WikiText, WikiVersion};
