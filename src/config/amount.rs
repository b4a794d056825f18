//! Numbers with a unit: parsing and formatting.
//!
//! Invariant: an amount has one spelling of its number, no sign, no fraction, and no space before the unit.

use std::time::Duration;

/// Units of time, in milliseconds, longest first.
pub(super) const TIME_UNITS: [(&str, u64); 4] =
    [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Units of size, in bytes, largest first. Powers of 1024 only, because `KB` is ambiguous.
pub(super) const SIZE_UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("", 1),
];

/// Accepts `0`, `17`, `-3`; refuses `017`, which some parsers read as octal.
pub(super) fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits == "0"
        || (!digits.starts_with('0')
            && !digits.is_empty()
            && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses a whole number directly followed by its unit; returns the amount in the smallest unit.
pub(super) fn measured(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    if !is_decimal(number) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A duration with its unit (ms, s, m, h), such as `10m`.
pub fn duration(text: &str) -> Option<Duration> {
    measured(text, &TIME_UNITS).map(Duration::from_millis)
}

/// Formats a duration in the shortest exact form.
pub(super) fn show_duration(duration: Duration) -> String {
    show(
        u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        &TIME_UNITS,
        "s",
    )
}

/// Formats a size in the shortest exact form.
pub(super) fn show_size(bytes: u64) -> String {
    show(bytes, &SIZE_UNITS, "")
}

fn show(amount: u64, units: &[(&str, u64)], unit_of_zero: &str) -> String {
    units
        .iter()
        .find(|(_, factor)| amount > 0 && amount.is_multiple_of(*factor))
        .map_or_else(
            || format!("0{unit_of_zero}"),
            |(name, factor)| format!("{}{name}", amount / factor),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_exactly() {
        for (millis, shown) in [
            (0, "0s"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (90_000, "90s"),
            (900_000, "15m"),
            (86_400_000, "24h"),
        ] {
            assert_eq!(show_duration(Duration::from_millis(millis)), shown);
        }
        for (bytes, shown) in [
            (0, "0"),
            (1_000, "1000"),
            (1_024, "1KiB"),
            (1_536, "1536"),
            (1 << 30, "1GiB"),
        ] {
            assert_eq!(show_size(bytes), shown);
        }
    }
}
