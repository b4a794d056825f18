//! Time as a value: the only place that reads the machine's clocks.
//!
//! Checks never ask what time it is; they are given a [`Timestamp`]. That makes a request reproducible ("judge it as
//! of then") and lets tests stand on either side of a limit to the second.

use jiff::{civil::Date, tz::TimeZone};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A moment, in whole seconds since 1970-01-01T00:00:00Z.
///
/// The interface counts in whole seconds (DAT-2: "cut to the whole second"), and so do we.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment `seconds` after the epoch.
    pub const fn from_unix(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The moment that a day begins, in UTC. None before the epoch.
    pub fn midnight(day: Date) -> Option<Self> {
        let zoned = day.to_zoned(TimeZone::UTC).ok()?;
        u64::try_from(zoned.timestamp().as_second()).ok().map(Self)
    }

    /// Seconds since the epoch.
    pub const fn unix(self) -> u64 {
        self.0
    }

    /// The distance between two moments, in seconds, whichever comes first.
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The same moment as the standard library has it.
    pub fn system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0)
    }
}

impl fmt::Display for Timestamp {
    /// As RFC 3339 has it, in UTC: `2026-01-31T12:00:00Z`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds)
            .unwrap_or(jiff::Timestamp::MAX)
            .fmt(formatter)
    }
}

impl From<SystemTime> for Timestamp {
    /// Cut to the whole second; a time before the epoch is the epoch.
    fn from(time: SystemTime) -> Self {
        Self(
            time.duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        )
    }
}

/// Where [`Timestamp`]s come from.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's own clock.
    #[default]
    System,
    /// A clock that stands where it is put, in seconds since the epoch: for tests and for `explain --at`.
    Standing(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that stands at `at` until it is moved with [`Clock::set`].
    pub fn standing(at: Timestamp) -> Self {
        Self::Standing(Arc::new(AtomicU64::new(at.unix())))
    }

    /// Moves a standing clock; the machine's own is left alone.
    pub fn set(&self, at: Timestamp) {
        if let Self::Standing(seconds) = self {
            seconds.store(at.unix(), Ordering::Release);
        }
    }

    /// What time it is.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => SystemTime::now().into(),
            Self::Standing(seconds) => Timestamp(seconds.load(Ordering::Acquire)),
        }
    }
}

/// Measures how long things take. It says nothing about what time it is.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start or the last lap; the next lap starts now.
    pub fn lap(&mut self) -> Duration {
        let now = Self::start();
        let lap = now.0.saturating_duration_since(self.0);
        *self = now;
        lap
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        Self::start().0.saturating_duration_since(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_clock_moves_only_when_it_is_moved() {
        let clock = Clock::standing(Timestamp::from_unix(1_000));
        assert_eq!(clock.now().unix(), 1_000);
        clock.clone().set(Timestamp::from_unix(1_061));
        assert_eq!(clock.now().distance(Timestamp::from_unix(1_000)), 61);
    }
}
