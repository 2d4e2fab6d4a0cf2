//! Each tool on a real checkout: what it does, what it refuses, and that a dry run changes nothing.

mod audit;
mod battery;
mod binding;
mod commit_and_sync;
mod context;
mod create;
mod deliver;
mod dry_run;
mod edit;
mod find;
mod guide;
mod post;
mod queue;
mod read;
mod records;
mod save;
mod status;
mod stop;
mod sync;
mod test;
mod unversioned_put;
mod wiki_edit;
mod without_checkout;
