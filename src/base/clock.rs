//! Time as a value; the only module that reads the machine's clocks.
//!
//! Checks take a [`Timestamp`] and never read a clock. A saved request can therefore be judged as of its own time, and tests
//! can choose the second on either side of a limit.

use jiff::{
    civil::Date,
    fmt::{StdFmtWrite, temporal::DateTimePrinter},
    tz::TimeZone,
};
use rustix::time::{ClockId, clock_gettime};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// A point in time, in whole seconds since 1970-01-01T00:00:00Z.
///
/// The interface counts in whole seconds (DAT-2: "cut to the whole second").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point in time `seconds` after the epoch.
    pub const fn from_unix(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Midnight of a day in UTC; `None` before the epoch.
    pub fn midnight(day: Date) -> Option<Self> {
        let zoned = day.to_zoned_datetime(TimeZone::UTC).ok()?;
        u64::try_from(zoned.timestamp().as_second()).ok().map(Self)
    }

    /// The first second of its day in UTC.
    #[must_use]
    pub const fn day(self) -> Self {
        Self(self.0 - self.0 % 86_400)
    }

    /// Seconds since the epoch.
    pub const fn unix(self) -> u64 {
        self.0
    }

    /// The absolute difference of two timestamps, in seconds.
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The timestamp as a [`SystemTime`].
    pub fn system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0)
    }
}

impl fmt::Display for Timestamp {
    /// The timestamp in RFC 3339 and UTC: `2026-01-31T12:00:00Z`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds)
            .unwrap_or(jiff::Timestamp::MAX)
            .fmt(formatter)
    }
}

impl From<SystemTime> for Timestamp {
    /// Truncates to the whole second; a time before the epoch becomes the epoch.
    fn from(time: SystemTime) -> Self {
        Self(
            time.duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        )
    }
}

/// A point in time in whole milliseconds since 1970-01-01T00:00:00Z, for logs. Checks use [`Timestamp`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogTime(u64);

impl LogTime {
    /// The point in time `milliseconds` after the epoch.
    pub const fn from_unix_milliseconds(milliseconds: u64) -> Self {
        Self(milliseconds)
    }

    /// Milliseconds since the epoch.
    pub const fn unix_milliseconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for LogTime {
    /// RFC 3339 in UTC, always with three decimals: `2026-01-31T12:00:00.000Z`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        let milliseconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or(jiff::Timestamp::MAX);
        PRINTER
            .print_timestamp(&at, StdFmtWrite(formatter))
            .map_err(|_| fmt::Error)
    }
}

/// The source of [`Timestamp`]s.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A fixed clock, in seconds since the epoch: for tests and for `explain --at`.
    Standing(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that stays at `at` until [`Clock::set`] changes it.
    pub fn standing(at: Timestamp) -> Self {
        Self::Standing(Arc::new(AtomicU64::new(at.unix())))
    }

    /// Sets a fixed clock; has no effect on the machine's clock.
    pub fn set(&self, at: Timestamp) {
        if let Self::Standing(seconds) = self {
            seconds.store(at.unix(), Ordering::Release);
        }
    }

    /// The current time.
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

    /// The current time for a log.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn log_time(&self) -> LogTime {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH);
                let milliseconds = since.map_or(0, |since| since.as_millis());
                LogTime(u64::try_from(milliseconds).unwrap_or(u64::MAX))
            }
            Self::Standing(seconds) => {
                LogTime(seconds.load(Ordering::Acquire).saturating_mul(1_000))
            }
        }
    }
}

/// Measures durations with a monotonic clock: that of the timers, so that tests of the library pause and advance both together.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start or the previous lap; starts the next lap.
    pub fn lap(&mut self) -> Duration {
        let now = Self::start();
        let lap = now.0.saturating_duration_since(self.0);
        *self = now;
        lap
    }

    /// The time from this start to a later one.
    pub fn until(&self, later: Self) -> Duration {
        later.0.saturating_duration_since(self.0)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        Self::start().0.saturating_duration_since(self.0)
    }
}

/// A moment of this machine, by the clock that goes on while the machine is suspended (CLOCK_BOOTTIME), for the age of what was learned from
/// others: [`Stopwatch`] stands meanwhile. It stands, as every clock of a guest, where a hypervisor pauses the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(Duration);

impl BootTime {
    /// The present.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    /// The time since this moment.
    pub fn elapsed(self) -> Duration {
        self.until(Self::now())
    }

    /// The time from this moment to a later one.
    pub const fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }

    /// The moment that much later.
    #[must_use]
    pub const fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// The moment that much earlier.
    pub const fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_clock_changes_only_when_it_is_set() {
        let clock = Clock::standing(Timestamp::from_unix(1_000));
        assert_eq!(clock.now().unix(), 1_000);
        clock.clone().set(Timestamp::from_unix(1_061));
        assert_eq!(clock.now().distance(Timestamp::from_unix(1_000)), 61);
        assert_eq!(clock.log_time().unix_milliseconds(), 1_061_000);
    }

    #[test]
    fn times_of_logs_have_milliseconds() {
        for (milliseconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_767_225_600_007, "2026-01-01T00:00:00.007Z"),
            (1_767_225_600_120, "2026-01-01T00:00:00.120Z"),
        ] {
            let shown = LogTime::from_unix_milliseconds(milliseconds).to_string();
            assert_eq!(shown, expected);
        }
    }
}
