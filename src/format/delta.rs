//! Fossil's delta format: one artifact written as copies from another plus new bytes.
//!
//! A delta is `SIZE\n`, then copies `N@OFFSET,` and inserts `N:bytes`, then `CHECKSUM;`; numbers are in
//! Fossil's base 64. Deltas come from bundles and from the network, so no number in one is believed:
//! each is checked against the delta, the base and the caller's limit before a byte is allocated.

mod create;

pub use create::create;

use crate::error::{Error, Kind, Result};

/// Applies `delta` to `base`. Returns the target, which may hold at most `max` bytes.
///
/// The checksum at the delta's end is checked, so a delta applied to the wrong base is noticed.
///
/// ```
/// use ocx::format::delta::apply;
/// // 11 bytes (`B`): 6 from the start of the base, then 5 new ones, then the checksum.
/// let delta = b"B\n6@0,5:earth19zZcD;";
/// assert_eq!(apply(b"hello world", delta, 1024)?, b"hello earth");
/// # Ok::<(), ocx::error::Error>(())
/// ```
///
/// # Errors
/// [`Kind::Corrupt`] when the delta is malformed, was made for another base or does not result in what it
/// declares; [`Kind::TooLarge`] when it declares more than `max` bytes.
pub fn apply(base: &[u8], delta: &[u8], max: usize) -> Result<Vec<u8>> {
    let mut rest = Rest(delta);
    let size = declared_size(&mut rest, max)?;
    let mut target = Vec::new();
    loop {
        let count = rest.number()? as usize;
        let more = match rest.byte()? {
            b'@' => rest.copied(base, count)?,
            b':' => rest.take(count)?,
            b';' => return finished(target, size, count),
            _ => return Err(damaged("unknown operation")),
        };
        if more.len() > size - target.len() {
            return Err(damaged("it gives more bytes than it declares"));
        }
        if target.is_empty() {
            // Not earlier: a huge size alone must not cost memory before any byte backs it.
            target.reserve_exact(size.min(base.len().saturating_add(delta.len())));
        }
        target.extend_from_slice(more);
    }
}

/// The size in bytes that `delta` declares for its target.
///
/// # Errors
/// [`Kind::Corrupt`] when the delta does not begin with a size.
pub fn target_size(delta: &[u8]) -> Result<usize> {
    declared_size(&mut Rest(delta), usize::MAX)
}

fn declared_size(rest: &mut Rest, max: usize) -> Result<usize> {
    let size = rest.number()? as usize;
    if rest.byte()? != b'\n' {
        return Err(damaged("no size"));
    }
    if size > max {
        return Err(Error::new(
            Kind::TooLarge,
            format!("delta declares {size} bytes, more than the limit of {max}"),
        ));
    }
    Ok(size)
}

fn finished(target: Vec<u8>, size: usize, sum: usize) -> Result<Vec<u8>> {
    if target.len() != size {
        return Err(damaged("it gives fewer bytes than it declares"));
    }
    if checksum(&target) as usize != sum {
        return Err(damaged("wrong checksum"));
    }
    Ok(target)
}

/// The sum of the big-endian 32-bit words of `bytes`, the last one padded with zeros.
fn checksum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u32::from_be_bytes(last), |sum, word| sum.wrapping_add(u32::from_be_bytes(*word)))
}

/// What is left of a delta. Every step is checked against its end.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Result<u8> {
        let (first, rest) = self.0.split_first().ok_or_else(|| damaged("it ends too early"))?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| damaged("an insert reaches past its end"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn copied<'b>(&mut self, base: &'b [u8], count: usize) -> Result<&'b [u8]> {
        let offset = self.number()? as usize;
        if self.byte()? != b',' {
            return Err(damaged("a copy has no end"));
        }
        offset
            .checked_add(count)
            .and_then(|end| base.get(offset..end))
            .ok_or_else(|| damaged("a copy reaches past the base"))
    }

    /// Reads a number of at most 32 bits. No digits at all count as zero, as in Fossil.
    fn number(&mut self) -> Result<u32> {
        let mut value: u32 = 0;
        while let Some((&first, rest)) = self.0.split_first() {
            let Some(digit) = digit(first) else { break };
            if value >> 26 != 0 {
                return Err(damaged("a number has more than 32 bits"));
            }
            value = value << 6 | digit;
            self.0 = rest;
        }
        Ok(value)
    }
}

fn digit(byte: u8) -> Option<u32> {
    Some(match byte {
        b'0'..=b'9' => u32::from(byte - b'0'),
        b'A'..=b'Z' => u32::from(byte - b'A') + 10,
        b'_' => 36,
        b'a'..=b'z' => u32::from(byte - b'a') + 37,
        b'~' => 63,
        _ => return None,
    })
}

fn damaged(how: &str) -> Error {
    Error::new(Kind::Corrupt, format!("delta is damaged: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_fossil::PlainFossil;
    use proptest::prelude::*;

    fn encoded(mut value: u64) -> String {
        const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";
        let mut out = Vec::new();
        loop {
            out.insert(0, DIGITS[(value & 63) as usize]);
            value >>= 6;
            if value == 0 {
                return String::from_utf8(out).unwrap();
            }
        }
    }

    fn refused(base: &[u8], delta: impl AsRef<[u8]>) -> Kind {
        apply(base, delta.as_ref(), 1 << 20).unwrap_err().kind()
    }

    #[test]
    fn copies_and_inserts_give_the_target() {
        let sum = encoded(u64::from(checksum(b"hello earth")));
        let delta = format!("B\n6@0,5:earth{sum};");
        assert_eq!(apply(b"hello world", delta.as_bytes(), 11).unwrap(), b"hello earth");
        assert_eq!(target_size(delta.as_bytes()).unwrap(), 11);
        assert_eq!(apply(b"hello world", delta.as_bytes(), 10).unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn b12_lengths_past_32_bits_or_past_the_data_are_refused() {
        let huge = encoded(u64::from(u32::MAX));
        assert_eq!(refused(b"x", format!("{huge}\n1@0,0;")), Kind::TooLarge);
        assert_eq!(refused(b"x", format!("5\n{huge}@{huge},0;")), Kind::Corrupt);
        assert_eq!(refused(b"x", format!("5\n{huge}@1,0;")), Kind::Corrupt);
        assert_eq!(refused(b"x", format!("5\n{huge}:abc0;")), Kind::Corrupt);
        assert_eq!(refused(b"x", format!("{}\n1@0,0;", encoded(1 << 33))), Kind::Corrupt);
    }

    #[test]
    fn a_declared_gigabyte_allocates_nothing_before_bytes_back_it() {
        let delta = format!("{}\n1@0,0;", encoded(1 << 30));
        let error = apply(b"x", delta.as_bytes(), 1 << 31).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt);
    }

    /// A target that was made from a base by moving, cutting and adding passages.
    fn edited() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let base = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..3_000),
            prop::collection::vec(0..3_u8, 0..3_000),
            "([a-d]{0,8}[ \\n]){0,300}".prop_map(String::into_bytes),
        ];
        let edits =
            prop::collection::vec((any::<prop::sample::Index>(), 0..400_usize, "[a-z\\n]{0,40}"), 0..8);
        (base, edits).prop_map(|(base, edits)| {
            let mut target = base.clone();
            for (at, len, new) in edits {
                let start = at.index(target.len() + 1);
                let end = (start + len).min(target.len());
                let cut: Vec<u8> = target.splice(start..end, new.into_bytes()).collect();
                if len % 3 == 0 {
                    target.extend(cut);
                }
            }
            (base, target)
        })
    }

    #[test]
    fn plain_fossil_takes_the_deltas_that_are_made_here() {
        let fossil = PlainFossil::new();
        let base: String =
            (0..2_000).fold(String::new(), |text, i| text + &format!("line {i} of {}\n", i * 7919 % 1_009));
        let mut target = base.replace("line 30 ", "another line 30 ").replace("line 1500 ", "");
        target.insert_str(9_000, &base[20_000..24_000]);
        let delta = create(base.as_bytes(), target.as_bytes());
        assert!(delta.len() < 200, "{}", delta.len());
        let [base, delta] = [("../base", base.as_bytes()), ("../delta", &delta)]
            .map(|(name, bytes)| fossil.write(name, bytes));
        let applied = fossil.write("../target", "");
        fossil.run([&"test-delta-apply".into(), &base, &delta, &applied]);
        assert_eq!(std::fs::read_to_string(applied).unwrap(), target);
    }

    #[test]
    fn a_delta_from_what_has_nothing_in_common_is_little_longer_than_its_target() {
        let target: Vec<u8> =
            (0..100_000_u32).map(|i| u8::try_from(i.wrapping_mul(i) % 251).unwrap_or(0)).collect();
        for base in [&b""[..], &vec![255; 70_000]] {
            let delta = create(base, &target);
            assert!(delta.len() < target.len() + 40);
            assert_eq!(apply(base, &delta, target.len()).unwrap(), target);
        }
    }

    #[test]
    fn malformed_deltas_are_refused() {
        for delta in
            ["", "5", "5\n", "5\n5", "5\n5@0", "5\n5@0,", "5\n9:ab", "5x5@0,0;", "1\n1?0;", "2\n1@0,0;"]
        {
            assert_eq!(refused(b"hello", delta), Kind::Corrupt, "{delta:?}");
        }
        assert_eq!(refused(b"hello", "3\n5@0,0;"), Kind::Corrupt);
    }

    #[test]
    fn deltas_that_plain_fossil_makes_give_their_targets() {
        let fossil = PlainFossil::new();
        let text: Vec<u8> =
            (0..3000_u32).flat_map(|i| format!("line {}\n", i * i % 97).into_bytes()).collect();
        let binary: Vec<u8> = (0..20_000_u32).map(|i| (i * i).to_be_bytes()[2]).collect();
        let edited = [&text[..5000], b"new text\n\xff\0", &text[7000..], &text[..300]].concat();
        let empty = Vec::new();
        for (base, target) in [
            (&text, &edited),
            (&edited, &text),
            (&text, &binary),
            (&binary, &edited),
            (&empty, &text),
            (&text, &empty),
        ] {
            let [from, to] =
                [("../from", base), ("../to", target)].map(|(name, bytes)| fossil.write(name, bytes));
            let made = fossil.write("../delta", "");
            fossil.run([&"test-delta-create".into(), &from, &to, &made]);
            let delta = std::fs::read(made).unwrap();
            assert_eq!(apply(base, &delta, target.len()).unwrap(), *target);
        }
    }

    proptest! {
        #[test]
        fn deltas_that_are_made_here_give_their_targets((base, target) in edited()) {
            let delta = create(&base, &target);
            prop_assert!(delta.len() <= target.len() + 32);
            prop_assert_eq!(apply(&base, &delta, target.len()).unwrap(), target);
        }

        #[test]
        fn random_bytes_never_panic(base in prop::collection::vec(any::<u8>(), 0..64),
                                    delta in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = apply(&base, &delta, 4096);
        }

        #[test]
        fn delta_like_text_never_panics(delta in "[0-9A-Z]{0,2}\n?([0-9A-Z_a-z~]{0,7}[@:;,]){0,6}") {
            if let Ok(target) = apply(b"some base text of a few bytes", delta.as_bytes(), 4096) {
                prop_assert!(target.len() <= 4096);
            }
        }
    }
}
