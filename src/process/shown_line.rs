//! One line of output as a terminal would show it at its end.

/// A shown line is cut at this many bytes.
pub(crate) const LINE_BYTES_MAX: usize = 2_000;

/// Three bytes more, so that a character over the limit is whole and not taken for a bad one.
const CELLS_MAX: usize = LINE_BYTES_MAX + 3;

/// A line that grows. A carriage return goes back to its start, and what follows overwrites it.
#[derive(Debug, Default)]
pub(crate) struct ShownLine {
    cells: Vec<u8>,
    /// Where the next byte goes.
    at: usize,
    /// How many bytes the line is wide.
    width: usize,
    /// How many bytes it took.
    length: u64,
}

impl ShownLine {
    /// A line of which `length` bytes came that are not at hand any more.
    pub fn after(length: u64) -> Self {
        let width = usize::try_from(length).unwrap_or(usize::MAX);
        Self { width, length, ..Self::default() }
    }

    /// Takes the next bytes of the line.
    pub fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        for (i, piece) in bytes.split(|byte| *byte == b'\r').enumerate() {
            if i > 0 {
                self.at = 0;
            }
            self.write(piece);
        }
    }

    /// Counts bytes of the line that were not kept.
    pub fn skip(&mut self, bytes: u64) {
        self.length += bytes;
    }

    /// Whether nothing of the line came yet.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The line, with U+FFFD for what is no UTF-8. A long line is cut between characters and says so. The next line
    /// begins.
    pub fn take(&mut self) -> String {
        let line = std::mem::take(self);
        let text = String::from_utf8_lossy(&line.cells);
        let width = line.width as u64;
        // Where the start of the line is gone, its whole length is all that is known of its width.
        let is_long = width > LINE_BYTES_MAX as u64 || text.len() > 3 * LINE_BYTES_MAX;
        if !is_long {
            return text.into_owned();
        }
        let cut = text.floor_char_boundary(LINE_BYTES_MAX);
        format!("{} [cut: a line of {} bytes]", &text[..cut], line.length)
    }

    fn write(&mut self, mut piece: &[u8]) {
        while let Some(escape) = piece.iter().position(|byte| *byte == b'\x1b') {
            let (before, rest) = piece.split_at(escape);
            self.put(before);
            let erased = [(&b"\x1b[K"[..], self.at), (b"\x1b[0K", self.at), (b"\x1b[2K", 0)];
            if let Some((code, kept)) = erased.iter().find(|(code, _)| rest.starts_with(code)) {
                self.cells.truncate(*kept);
                self.width = *kept;
                piece = &rest[code.len()..];
            } else {
                self.put(&rest[..1]);
                piece = &rest[1..];
            }
        }
        self.put(piece);
    }

    /// Writes bytes from the current place on.
    fn put(&mut self, bytes: &[u8]) {
        let room = CELLS_MAX.saturating_sub(self.at).min(bytes.len());
        if room > 0 {
            let end = self.at + room;
            if self.cells.len() < end {
                self.cells.resize(end, b' ');
            }
            self.cells[self.at..end].copy_from_slice(&bytes[..room]);
        }
        self.at += bytes.len();
        self.width = self.width.max(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut line = ShownLine::default();
        for piece in pieces {
            line.push(piece);
        }
        line.take()
    }

    #[test]
    fn t26_a_line_that_moves_shows_its_last_state() {
        let moving = [b"\rprogress".repeat(600), b"\rERROR: x".to_vec()].concat();
        assert_eq!(shown(&[&moving]), "ERROR: x");
        assert_eq!(shown(&[b"10%\r", b"20%\r", b"done\r"]), "done");
        assert_eq!(shown(&[b"progress\rdone"]), "doneress", "as a terminal shows it");
        assert_eq!(shown(&[b"progress\r\x1b[Kdone"]), "done");
        assert_eq!(shown(&[b"progress\x1b[2K\rok"]), "ok");
        assert_eq!(shown(&[b"a\x1b[31mred\r"]), "a\u{1b}[31mred");
        let long = shown(&[&[b"x".repeat(5_000), b"\rshort".to_vec()].concat()]);
        assert!(long.starts_with("shortxxx") && long.ends_with("[cut: a line of 5006 bytes]"), "{long}");
    }

    #[test]
    fn t33_a_line_that_was_not_kept_whole_says_its_whole_length() {
        let mut line = ShownLine::after(100_000_000);
        line.push(&b"x".repeat(3_000));
        assert!(line.take().ends_with("[cut: a line of 100003000 bytes]"));
        assert!(line.is_empty());
    }
}
