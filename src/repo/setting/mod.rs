//! Fossil's settings: which there are, and the one reader of their values.

mod declared;
mod empty_dirs;
mod global;
mod hooks;
mod settings;

pub use declared::{Here, OWN, REFUSE_HOOKS, SETTINGS, Setting, VARIABLES, declared};
pub(crate) use global::GlobalSettings;
pub(crate) use settings::{Settings, means_no, means_yes};
