//! Making a delta: where the base holds what the target holds.
//!
//! What both have at their start and at their end is found first. Between them, the blocks of the base are found in the
//! target by their hashes, and each find is made as long as it can be, both ways.

use super::checksum;

/// Bytes of a block: the shortest passage that is surely found lies around two of them.
const BLOCK: usize = 16;
/// How many blocks with one hash are looked at. More cost time in bases that repeat themselves.
const TRIES_MAX: usize = 24;
/// What a copy may cost in a delta, so that a shorter passage is not worth one.
const COPY_COST: usize = 12;

const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

/// Makes a delta that [`apply`](super::apply) turns back into `target`. It is at most some bytes longer than the target.
/// Both may hold up to 4 GiB.
///
/// ```
/// use ocx::format::delta::{apply, create};
/// let (base, target) = (b"what both of them begin with, then this", b"what both of them begin with, then that");
/// let delta = create(base, target);
/// assert!(delta.len() < target.len());
/// assert_eq!(apply(base, &delta, 1024)?, target);
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[must_use]
pub fn create(base: &[u8], target: &[u8]) -> Vec<u8> {
    let mut delta = Delta { text: Vec::new(), target, written: 0 };
    delta.number(target.len());
    delta.text.push(b'\n');
    let start = worth_a_copy(common(base.iter(), target.iter()));
    let (base_rest, target_rest) = (&base[start..], &target[start..]);
    let end = worth_a_copy(common(base_rest.iter().rev(), target_rest.iter().rev()));
    delta.copy(0, 0, start);
    if target_rest.len() > end {
        delta.find(base, start..target.len() - end);
    }
    delta.insert(target.len() - end);
    delta.copy(base.len() - end, target.len() - end, end);
    delta.number(checksum(target) as usize);
    delta.text.push(b';');
    delta.text
}

/// How many bytes are the same.
fn common<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

fn worth_a_copy(len: usize) -> usize {
    if len > COPY_COST { len } else { 0 }
}

/// A passage that base and target share.
struct Passage {
    base: usize,
    target: usize,
    len: usize,
}

/// A delta that is being made.
struct Delta<'a> {
    text: Vec<u8>,
    target: &'a [u8],
    /// How much of the target is in the delta.
    written: usize,
}

impl Delta<'_> {
    /// Writes the part of the target in `range`, as far as the base holds it.
    fn find(&mut self, base: &[u8], range: std::ops::Range<usize>) {
        let blocks = Blocks::of(base);
        let mut at = range.start;
        while at + BLOCK <= range.end {
            let target = &self.target[..range.end];
            match blocks.longest(base, target, at, self.written) {
                Some(found) => {
                    self.insert(found.target);
                    self.copy(found.base, found.target, found.len);
                    at = self.written;
                }
                None => at += 1,
            }
        }
    }

    /// Writes what of the target comes before `end`.
    fn insert(&mut self, end: usize) {
        if end > self.written {
            self.number(end - self.written);
            self.text.push(b':');
            self.text.extend_from_slice(&self.target[self.written..end]);
            self.written = end;
        }
    }

    fn copy(&mut self, base: usize, target: usize, len: usize) {
        if len > 0 {
            self.number(len);
            self.text.push(b'@');
            self.number(base);
            self.text.push(b',');
            self.written = target + len;
        }
    }

    fn number(&mut self, value: usize) {
        let digits = (usize::BITS - value.leading_zeros()).div_ceil(6).max(1);
        self.text.extend((0..digits).rev().map(|digit| DIGITS[value >> (6 * digit) & 63]));
    }
}

/// The blocks of a base by their hashes.
struct Blocks {
    /// The first block with a hash, plus one.
    first: Vec<u32>,
    /// The next block with the same place in `first`, plus one.
    next: Vec<u32>,
}

impl Blocks {
    fn of(base: &[u8]) -> Self {
        let blocks = base.as_chunks::<BLOCK>().0;
        let mut first = vec![0; blocks.len().next_power_of_two()];
        let mut next = vec![0; blocks.len()];
        for (at, block) in blocks.iter().enumerate().rev() {
            let place = place(block, first.len());
            next[at] = first[place];
            first[place] = u32::try_from(at + 1).unwrap_or(0);
        }
        Self { first, next }
    }

    /// The longest passage around a block that stands in the target at `at`. It begins at `from` or later.
    fn longest(&self, base: &[u8], target: &[u8], at: usize, from: usize) -> Option<Passage> {
        let block = target[at..].first_chunk::<BLOCK>()?;
        let mut number = *self.first.get(place(block, self.first.len()))?;
        let mut best: Option<Passage> = None;
        for _ in 0..TRIES_MAX {
            let Some(index) = (number as usize).checked_sub(1) else { break };
            number = self.next[index];
            let start = index * BLOCK;
            if base[start..start + BLOCK] != *block {
                continue;
            }
            let ahead = common(base[start..].iter(), target[at..].iter());
            let back = common(base[..start].iter().rev(), target[from..at].iter().rev());
            if best.as_ref().is_none_or(|best| best.len < ahead + back) {
                best = Some(Passage { base: start - back, target: at - back, len: ahead + back });
            }
        }
        best
    }
}

/// The place of a block among `places`, which are a power of two.
fn place(block: &[u8; BLOCK], places: usize) -> usize {
    let number = u128::from_le_bytes(*block);
    let mixed = (number ^ number >> 71).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    usize::try_from(mixed >> 96).unwrap_or(0) & (places - 1)
}
