//! The clock and the calendar. Fossil keeps a moment as a Julian day: days since noon of 24 November 4714 BC.
//!
//! SQLite reads the dates that people write, because Fossil reads them so. Everything else about time is here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// The Julian day at which 1970 begins, in milliseconds.
const EPOCH_MS: i64 = 210_866_760_000_000;

/// The milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;

/// The time since 1970 began; zero if the clock is set before that.
#[must_use]
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Now, as a Julian day. It is a whole millisecond and the very number that SQLite gives, so that it compares with times
/// that are stored.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "the milliseconds of any real date fit")]
pub fn julian_now() -> f64 {
    let ms = i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX / 2);
    (EPOCH_MS + ms) as f64 / DAY_MS
}

/// Now, in nanoseconds since 1970.
#[must_use]
pub fn now_ns() -> i64 {
    i64::try_from(since_epoch().as_nanos()).unwrap_or(i64::MAX)
}

/// A Julian day in whole seconds since 1970.
#[must_use]
pub fn epoch_seconds(julian: f64) -> i64 {
    timestamp(julian).as_second()
}

/// A Julian day as `2026-01-31T12:00:00Z`.
///
/// ```
/// assert_eq!(ocx::name::time::utc(2_451_604.5), "2000-03-01T00:00:00Z");
/// ```
#[must_use]
pub fn utc(julian: f64) -> String {
    timestamp(julian).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A Julian day as D cards have it, `2026-01-31T12:00:00.000`, rounded to the nearest millisecond as SQLite does.
#[must_use]
pub fn date_card(julian: f64) -> String {
    timestamp(julian).strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string()
}

/// The nearest millisecond. What is no date of the calendar becomes the first or the last one.
fn timestamp(julian: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "a cast to an integer stops at its limits")]
    let ms = ((julian * DAY_MS).round() as i64).saturating_sub(EPOCH_MS);
    let outside = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(ms).unwrap_or(outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn julian_days_are_shown_as_dates() {
        assert_eq!(utc(2_440_587.5), "1970-01-01T00:00:00Z");
        assert_eq!(utc(2_451_604.5), "2000-03-01T00:00:00Z");
        assert_eq!(utc(2_462_502.5), "2030-01-01T00:00:00Z");
        assert_eq!(date_card(2_451_545.0 + 0.001 / 86_400.0), "2000-01-01T12:00:00.001");
    }

    #[test]
    fn days_outside_the_calendar_make_no_panic() {
        for day in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 0.0] {
            assert!(!utc(day).is_empty());
        }
    }

    #[test]
    fn now_is_a_whole_millisecond_that_its_date_gives_back() {
        let (db, now) = (rusqlite::Connection::open_in_memory().unwrap(), julian_now());
        let back: f64 = db.query_row("SELECT julianday(?1)", [date_card(now)], |row| row.get(0)).unwrap();
        assert_eq!(back.to_bits(), now.to_bits());
    }

    #[test]
    fn dates_are_those_of_sqlite() {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        for step in 0..5_000 {
            let day = 2_440_587.5 + f64::from(step) * 7.123_456_7;
            let theirs: String =
                db.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%f', ?1)", [day], |row| row.get(0)).unwrap();
            assert_eq!(date_card(day), theirs);
        }
    }
}
