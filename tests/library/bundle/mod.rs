//! Bundles against plain Fossil: each reads what the other writes, what is linked in is what a rebuild makes of
//! it, and where plain Fossil is wrong, OCX is right.

mod faults;
mod interop;
mod kill;
mod limits;
mod select;
mod wire;
