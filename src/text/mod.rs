//! Text as lines: where lines end, what is text at all, and the exact replacement of one passage.
//!
//! A line ends at LF and nowhere else, in every count. Bytes are never translated: no line end, mark or character
//! changes except what was asked for.

mod compare;
mod lines;
mod look;
mod nearest;
mod repair;
mod replace;

pub use compare::{Comparison, Effort, changes};
pub use lines::{LineEnds, as_text, count_lines, cut, line_at, lines, tail, without_end};
pub(crate) use look::{Ends, Look, LookKind};
pub use nearest::Nearest;
pub use repair::{Repair, repair};
pub use replace::{Miss, Replaced, replace_once};
