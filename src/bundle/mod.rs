//! A bundle: check-ins with what they need, in one file that carries them from one repository to another.
//!
//! The file is what `fossil bundle` reads and writes: an SQLite database with the plain tables `bconfig` and
//! `bblob`. Nothing in it is believed. It is read through a connection of its own that cannot write, and every
//! size is checked before memory is taken by it. Which artifacts go into a bundle, and how they are taken from it
//! into a repository, is the business of [`transfer`](crate::transfer).

mod create;
mod export;
mod file;
mod import;
mod index;
mod list;
mod open;
mod wire;

pub use crate::transfer::{Import, Imported, Progress, Selection};
pub use export::Exported;
pub use file::Bundle;
pub use list::{BundledCheckIn, Contents};
