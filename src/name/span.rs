//! A length of time as people write it in files: `500ms`, `45s`, `10m`, `1h`.

use std::{fmt, str::FromStr, time::Duration};

use crate::error::{Error, Kind};

/// A length of time, in whole milliseconds.
///
/// ```
/// use ocx::name::Span;
/// let span: Span = "10m".parse()?;
/// assert_eq!(span.duration().as_secs(), 600);
/// assert_eq!(span.to_string(), "10m");
/// # Ok::<(), ocx::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    ms: u64,
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl Span {
    /// A span of `minutes`.
    #[must_use]
    pub const fn minutes(minutes: u32) -> Self {
        Self { ms: minutes as u64 * 60_000 }
    }

    /// A span of `hours`.
    #[must_use]
    pub const fn hours(hours: u32) -> Self {
        Self { ms: hours as u64 * 3_600_000 }
    }

    /// The span as the standard library counts time.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.ms)
    }
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map(|ms| Self { ms }).ok_or_else(|| {
            Error::new(Kind::Invalid, format!("`{}` is not a length of time", text.escape_debug()))
                .with_hint("Write a whole number and one unit: `500ms`, `45s`, `10m` or `1h`.")
        })
    }
}

fn parse(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &&(&str, u64)| self.ms.is_multiple_of(*factor) && self.ms >= *factor;
        let (unit, factor) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
        write!(f, "{}{unit}", self.ms / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_as_they_were_written() {
        for text in ["500ms", "45s", "10m", "1h", "90m", "0ms", "1500ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("60s".parse::<Span>().unwrap(), Span::minutes(1));
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in [
            "",
            "10",
            "m",
            "-1s",
            "1.5s",
            "10 m",
            "1h30m",
            "10M",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert_eq!(text.parse::<Span>().unwrap_err().kind(), Kind::Invalid, "{text}");
        }
    }
}
