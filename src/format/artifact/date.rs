//! The dates on D and E cards, read by SQLite as Fossil reads them.

use rusqlite::Connection;

thread_local! {
    /// An empty database in memory, only there to call SQLite's date functions.
    static CALENDAR: Option<Connection> = Connection::open_in_memory().ok();
}

/// The Julian day of a date in any form that SQLite knows. Returns nothing if it is none or not positive.
pub(crate) fn julian_day(token: &[u8]) -> Option<f64> {
    let text = str::from_utf8(token).ok()?;
    CALENDAR.with(|calendar| {
        let mut query = calendar.as_ref()?.prepare_cached("SELECT julianday(?1)").ok()?;
        let day: Option<f64> = query.query_row([text], |row| row.get(0)).ok()?;
        day.filter(|day| *day > 0.0)
    })
}

/// Whether a date means the same everywhere and always: not `now`, and nothing that SQLite adds to it.
pub(crate) fn is_fixed(token: &[u8]) -> bool {
    is_day(token) || token.first().is_some_and(u8::is_ascii_digit) && julian_day(token).is_some()
}

/// Whether a date has Fossil's own form with numbers that no calendar refuses, which spares asking SQLite.
fn is_day(token: &[u8]) -> bool {
    let number = |at: usize| u32::from(token[at] - b'0') * 10 + u32::from(token[at + 1] - b'0');
    str::from_utf8(token).is_ok_and(is_canonical)
        && (1..=12).contains(&number(5))
        && (1..=28).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
}

/// Whether `text` has the form that Fossil writes: `2026-11-30T10:23:45` with milliseconds or without.
pub(crate) fn is_canonical(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00.000";
    let fits = |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    matches!(text.len(), 19 | 23) && text.bytes().zip(FORM).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_sqlite_reads_them() {
        assert_eq!(julian_day(b"2000-01-01T12:00:00"), Some(2_451_545.0));
        assert_eq!(julian_day(b"2451545.0"), Some(2_451_545.0));
        assert_eq!(julian_day(b"2000-13-01"), None);
        assert_eq!(julian_day(b""), None);
        assert_eq!(julian_day(b"\xff"), None);
    }

    #[test]
    fn only_fossils_own_form_is_canonical() {
        assert!(is_canonical("2026-11-30T10:23:45"));
        assert!(is_canonical("2026-11-30T10:23:45.120"));
        for text in ["now", "2026-11-30 10:23:45", "2026-11-30T10:23:45.1", "2026-11-30T10:23:45\nU x"] {
            assert!(!is_canonical(text), "{text}");
        }
    }
}
