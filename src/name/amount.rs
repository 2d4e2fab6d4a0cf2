//! An amount of memory or disk as people write it in files: `512K`, `64M`, `2G`.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Kind};

/// An amount of bytes, in whole kibibytes.
///
/// ```
/// use ocx::name::Amount;
/// let amount: Amount = "2G".parse()?;
/// assert_eq!(amount.bytes(), 2 << 30);
/// assert_eq!(amount.to_string(), "2G");
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    kib: u64,
}

/// Each unit, and how many kibibytes it is.
const UNITS: [(&str, u64); 3] = [("K", 1), ("M", 1 << 10), ("G", 1 << 20)];

/// The most kibibytes whose bytes can be counted.
const KIB_MAX: u64 = u64::MAX >> 10;

impl Amount {
    /// An amount of `mebibytes`.
    #[must_use]
    pub const fn mebibytes(mebibytes: u32) -> Self {
        Self { kib: (mebibytes as u64) << 10 }
    }

    /// The amount in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.kib << 10
    }
}

impl FromStr for Amount {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map(|kib| Self { kib }).ok_or_else(|| {
            Error::new(Kind::Invalid, format!("`{}` is not an amount", text.escape_debug()))
                .with_hint("Write a whole number and one unit: `512K`, `64M` or `2G`.")
        })
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|kib| *kib <= KIB_MAX)
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &&(&str, u64)| self.kib.is_multiple_of(*factor) && self.kib >= *factor;
        let (unit, factor) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        write!(f, "{}{unit}", self.kib / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_as_they_were_written() {
        for text in ["0K", "1K", "512K", "64M", "1500M", "2G", "16777215G"] {
            assert_eq!(text.parse::<Amount>().unwrap().to_string(), text);
        }
        assert_eq!("1024M".parse::<Amount>().unwrap().to_string(), "1G");
        assert_eq!("2048M".parse::<Amount>().unwrap(), Amount::mebibytes(2_048));
    }

    #[test]
    fn the_bytes_of_the_greatest_amount_can_be_counted() {
        let greatest: Amount = "18014398509481983K".parse().unwrap();
        assert_eq!(greatest.bytes(), u64::MAX - 1_023);
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "10",
            "M",
            "-1M",
            "1.5G",
            "2 G",
            "2g",
            "2GB",
            "1T",
            "18014398509481984K",
            "17179869184G",
            "1G1M",
        ] {
            assert_eq!(text.parse::<Amount>().unwrap_err().kind(), Kind::Invalid, "{text}");
        }
    }
}
