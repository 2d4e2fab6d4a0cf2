//! Fossil's compressed form, in the repository and on the wire: the size in 4 bytes, the highest
//! first, then a zlib stream. Those 4 bytes are never believed.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use crate::error::{Error, Kind, Result};

/// The most bytes that one byte of a zlib stream can expand to, and somewhat more.
const RATIO_MAX: usize = 1040;

thread_local! {
    // Each takes memory that is worth keeping for the next of many artifacts.
    static COMPRESSOR: RefCell<Compressor> = RefCell::new(Compressor::new(CompressionLvl::default()));
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Expands `packed`, which may declare at most `max` bytes and must give exactly what it declares.
///
/// ```
/// use ocx::format::packed::{pack, unpack};
/// assert_eq!(unpack(&pack(b"some text")?, 100)?, b"some text");
/// assert!(unpack(&pack(b"some text")?, 8).is_err());
/// # Ok::<(), ocx::error::Error>(())
/// ```
///
/// # Errors
/// [`Kind::TooLarge`] when more than `max` bytes are declared, before any are made;
/// [`Kind::Corrupt`] when the stream is damaged or expands to another number of bytes.
pub fn unpack(packed: &[u8], max: usize) -> Result<Vec<u8>> {
    let Some((size, stream)) = packed.split_first_chunk() else {
        // Fossil does not compress what is too short for it. It stores only the empty content so.
        return if packed.is_empty() { Ok(Vec::new()) } else { Err(damaged("too short")) };
    };
    let size = u32::from_be_bytes(*size) as usize;
    if size > max {
        let what = format!("compressed content declares {size} bytes, more than {max}");
        return Err(Error::new(Kind::TooLarge, what));
    }
    if size > stream.len().saturating_mul(RATIO_MAX) {
        return Err(damaged("it declares more than it can hold"));
    }
    let mut content = vec![0; size];
    let expanded = DECOMPRESSOR.with_borrow_mut(|zlib| zlib.zlib_decompress(stream, &mut content));
    match expanded {
        Ok(found) if found == size => Ok(content),
        Ok(_) | Err(DecompressionError::InsufficientSpace) => Err(damaged("not the declared size")),
        Err(e) => Err(damaged(&e.to_string()).caused_by(e)),
    }
}

/// The size that `packed` declares for its content.
pub(crate) fn declared_size(packed: &[u8]) -> usize {
    packed.first_chunk().map_or(0, |size| u32::from_be_bytes(*size) as usize)
}

/// Compresses `content`.
///
/// # Errors
/// [`Kind::TooLarge`] when its size does not fit 4 bytes.
pub fn pack(content: &[u8]) -> Result<Vec<u8>> {
    let too_large = |e| Error::new(Kind::TooLarge, "content over 4 GiB cannot be compressed").caused_by(e);
    let size = u32::try_from(content.len()).map_err(|e| too_large(Box::new(e)))?;
    COMPRESSOR.with_borrow_mut(|zlib| {
        let mut packed = size.to_be_bytes().to_vec();
        packed.resize(4 + zlib.zlib_compress_bound(content.len()), 0);
        let written = zlib.zlib_compress(content, &mut packed[4..]);
        let written = written.map_err(|e| Error::new(Kind::Internal, "cannot compress").caused_by(e))?;
        packed.truncate(4 + written);
        packed.shrink_to_fit();
        Ok(packed)
    })
}

fn damaged(how: &str) -> Error {
    Error::new(Kind::Corrupt, format!("compressed content is damaged: {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(packed: &[u8], max: usize) -> Kind {
        unpack(packed, max).unwrap_err().kind()
    }

    #[test]
    fn what_was_packed_comes_back() {
        for content in [&b""[..], b"x", &vec![7; 100_000]] {
            assert_eq!(unpack(&pack(content).unwrap(), content.len()).unwrap(), content);
        }
    }

    #[test]
    fn a_declared_size_over_the_limit_is_refused_before_inflating() {
        let mut bomb = pack(&[0; 10_000]).unwrap();
        assert_eq!(refused(&bomb, 9_999), Kind::TooLarge);
        bomb[..4].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
        assert_eq!(refused(&bomb, 1 << 20), Kind::TooLarge);
        assert_eq!(refused(&bomb, usize::MAX), Kind::Corrupt);
    }

    #[test]
    fn a_stream_that_gives_more_or_less_than_declared_is_refused() {
        let mut packed = pack(&[0; 10_000]).unwrap();
        packed[3] ^= 1;
        assert_eq!(refused(&packed, 1 << 20), Kind::Corrupt);
        packed[..4].copy_from_slice(&[0, 0, 0, 3]);
        assert_eq!(refused(&packed, 1 << 20), Kind::Corrupt);
        assert_eq!(refused(b"abc", 10), Kind::Corrupt);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = unpack(&bytes, 1 << 16);
        }

        #[test]
        fn a_broken_stream_never_panics(at in 0_usize..64, byte in any::<u8>()) {
            let mut packed = pack(b"some text that is long enough to be worth compressing, text").unwrap();
            let at = at % packed.len();
            packed[at] = byte;
            let _ = unpack(&packed, 1 << 16);
        }
    }
}
