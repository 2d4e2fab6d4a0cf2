//! The catalogue: one declaration per tool, one dispatcher, one answer.
//!
//! A tool is a file here: its declaration, and a `plan` that reads, checks and says what would be done. Only the
//! dispatcher makes the [`Permit`] with which a plan can be performed, so a dry run cannot write. How a call
//! arrives and how an answer is shown are the business of [`crate::face`].

pub mod answer;
mod binding;
mod call;
pub mod catalogue;
mod changes;
mod commit;
mod control;
pub mod declare;
mod deliver;
mod dispatch;
mod encoded;
mod encoded_bundle;
mod facts;
mod files;
mod incoming_bundle;
pub mod input;
mod interface;
mod left_out;
mod list;
mod page;
mod place;
pub mod plan;
mod publication;
pub mod repair;
mod replacement;
pub mod result;
pub mod schema;
pub mod service;
pub mod suggest;
mod words;

mod audit;
mod commit_and_sync;
mod commit_and_sync_guide;
mod context;
mod create;
mod edit;
mod find;
mod post;
mod queue;
mod ran_tests;
mod read;
mod save;
mod status;
mod stop;
mod sync;
mod test;
mod unversioned_get;
mod unversioned_list;
mod unversioned_put;
mod wiki_edit;
mod wiki_read;

pub use answer::{Answer, NextCall, Operation, Refusal};
pub use binding::Binding;
pub use call::Call;
pub use catalogue::Catalogue;
pub use control::CallControl;
pub use declare::{Acts, Capability, Declaration, Declarations, Field, FieldKind, Hints};
pub use dispatch::call;
pub use input::Input;
pub use interface::Tool;
pub use plan::{Permit, Plan};
pub use result::{Readable, ToolResult};
pub use service::Service;
