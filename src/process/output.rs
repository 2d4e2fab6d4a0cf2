//! What a command prints: counted whole, kept up to a bound, its last lines at hand at any time.
//!
//! The last few MiB stay as they are. What moves out of that window is compressed, up to a limit. What comes after
//! that limit and before the window is left out; how much that is, is counted.

use std::io::Write;

use memchr::{memchr_iter, memrchr, memrchr_iter};
use zstd::stream::write::Encoder;

use super::shown_line::ShownLine;

const WINDOW: usize = 4 << 20;
const HEAD: u64 = 56 << 20;
/// The output of one command, as far as it has come.
pub struct Output {
    head: Encoder<'static, Vec<u8>>,
    window: Vec<u8>,
    /// How many bytes before the window belong to its first line.
    leading: u64,
    count: Count,
}

/// How much was printed, and what of it is not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// All bytes printed.
    pub bytes: u64,
    /// All line ends printed.
    pub line_ends: u64,
    /// Whether the last byte is a line end, or nothing was printed.
    pub whole: bool,
    /// The bytes kept from the start.
    pub head_bytes: u64,
    /// The bytes left out after those.
    pub gap_bytes: u64,
    /// The line ends among the bytes left out.
    pub gap_lines: u64,
}

impl Count {
    /// All lines printed; a last one without a line end counts.
    #[must_use]
    pub fn lines(self) -> u64 {
        self.line_ends + u64::from(!self.whole)
    }
}

/// A finished output: its kept bytes as one zstd frame.
pub struct Kept {
    /// The frame: the head, then the window.
    pub frame: Vec<u8>,
    /// Its figures.
    pub count: Count,
}

impl Output {
    /// Makes an output with nothing printed yet.
    ///
    /// # Errors
    /// If the compressor cannot be made.
    pub fn new() -> std::io::Result<Self> {
        let count = Count { whole: true, ..Count::default() };
        Ok(Self { head: Encoder::new(Vec::new(), 1)?, window: Vec::new(), leading: 0, count })
    }

    /// Takes what was printed next.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.count.bytes += bytes.len() as u64;
        self.count.line_ends += line_ends(bytes);
        self.count.whole = *last == b'\n';
        self.window.extend_from_slice(bytes);
        if self.window.len() >= 2 * WINDOW {
            let leaving = self.window.len() - WINDOW;
            self.keep(leaving);
        }
    }

    /// Returns how much was printed so far.
    #[must_use]
    pub fn count(&self) -> Count {
        self.count
    }

    /// Returns the last `n` lines, without their ends. A long line is cut and says so.
    #[must_use]
    pub fn tail(&self, n: usize) -> Vec<String> {
        let body = self.window.strip_suffix(b"\n").unwrap_or(&self.window);
        if n == 0 || self.window.is_empty() {
            return Vec::new();
        }
        let start = memrchr_iter(b'\n', body).nth(n - 1).map_or(0, |at| at + 1);
        let mut line = ShownLine::after(if start == 0 { self.leading } else { 0 });
        let shown = |bytes: &[u8]| {
            line.push(bytes);
            line.take()
        };
        body[start..].split(|byte| *byte == b'\n').map(shown).collect()
    }

    /// Ends the output and compresses what is kept.
    ///
    /// # Errors
    /// If the compressor fails.
    pub fn finish(mut self) -> std::io::Result<Kept> {
        self.head.write_all(&self.window)?;
        Ok(Kept { frame: self.head.finish()?, count: self.count })
    }

    /// Moves `n` bytes out of the window, and into the head if it has room.
    fn keep(&mut self, n: usize) {
        let room = usize::try_from(HEAD - self.count.head_bytes).unwrap_or(usize::MAX);
        // Once something is left out, so is all that follows: there is one gap.
        let kept = if self.count.gap_bytes > 0 { 0 } else { room.min(n) };
        // A `Vec` takes every write.
        let kept = if self.head.write_all(&self.window[..kept]).is_ok() { kept } else { 0 };
        self.count.head_bytes += kept as u64;
        self.count.gap_bytes += (n - kept) as u64;
        self.count.gap_lines += line_ends(&self.window[kept..n]);
        self.leading = match memrchr(b'\n', &self.window[..n]) {
            Some(end) => (n - end - 1) as u64,
            None => self.leading + n as u64,
        };
        self.window.drain(..n);
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::LINE_BYTES_MAX;

    fn of(chunks: &[&[u8]]) -> Output {
        let mut output = Output::new().unwrap();
        for chunk in chunks {
            output.push(chunk);
        }
        output
    }

    #[test]
    fn lines_are_counted_across_chunks() {
        let output = of(&[b"a\nb", b"c\n", b"d"]);
        assert_eq!(output.count().lines(), 3);
        assert_eq!(output.tail(2), ["bc", "d"]);
        assert_eq!(output.tail(100), ["a", "bc", "d"]);
        assert_eq!(of(&[b"a\n\n"]).tail(100), ["a", ""]);
        assert!(of(&[]).tail(100).is_empty());
        assert_eq!(of(&[]).count().lines(), 0);
    }

    #[test]
    fn r06_undecodable_bytes_become_replacement_characters() {
        let tail = of(&[b"a\xf0b\n\0\x1b[31m"]).tail(100);
        assert_eq!(tail, ["a\u{fffd}b", "\0\u{1b}[31m"]);
        let json = serde_json::to_string(&tail).unwrap();
        assert_eq!(serde_json::from_str::<Vec<String>>(&json).unwrap(), tail);
    }

    #[test]
    fn t15_a_cut_falls_between_characters() {
        for pad in 0..4 {
            let line = format!("{}{}", "x".repeat(pad), "😀".repeat(5000));
            let tail = of(&[line.as_bytes()]).tail(100);
            assert!(!tail[0].contains('\u{fffd}'));
            assert!(tail[0].starts_with(&"x".repeat(pad)));
            assert!(tail[0].ends_with(&format!("[cut: a line of {} bytes]", line.len())));
            assert!(tail[0].len() < LINE_BYTES_MAX + 50);
        }
    }

    #[test]
    fn a_short_output_is_kept_whole() {
        let kept = of(&[b"one\n", b"two\n"]).finish().unwrap();
        assert_eq!(zstd::decode_all(&*kept.frame).unwrap(), b"one\ntwo\n");
        assert_eq!(kept.count.gap_bytes, 0);
    }

    #[test]
    fn a_flood_keeps_its_start_and_its_end() {
        let mut output = of(&[b"first\n"]);
        let chunk = b"0123456\n".repeat(8 << 10);
        for _ in 0..(80 << 20) / chunk.len() {
            output.push(&chunk);
        }
        output.push(b"last");
        assert_eq!(output.tail(1), ["last"]);
        let Kept { frame, count } = output.finish().unwrap();
        let all = zstd::decode_all(&*frame).unwrap();
        assert!(all.starts_with(b"first\n0123456\n") && all.ends_with(b"\nlast"));
        assert!(all.len() <= 64 << 20);
        assert_eq!(all.len() as u64 + count.gap_bytes, count.bytes);
        assert_eq!(count.lines(), 2 + (80 << 20) / 8);
        assert_eq!(line_ends(&all) + count.gap_lines, count.line_ends);
    }
}
