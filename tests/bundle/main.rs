//! Bundles against plain Fossil: each reads what the other writes, what is linked in is what a rebuild makes of
//! it, and where plain Fossil is wrong, OCX is right.
#![allow(clippy::unwrap_used, reason = "a test")]

mod faults;
mod interop;
mod kill;
mod place;
mod select;
mod wire;
