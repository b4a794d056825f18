//! The language of the bank's pages and of what it says to a PSU, chosen by Accept-Language (RFC 9110, section 12.5.4), and how it
//! writes sums and days.

use jiff::ZonedDateTime;
use jiff::civil::Date;

/// A no-break space: a sum is never split over two lines.
const NO_BREAK: char = '\u{a0}';

/// A language of the bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Language {
    /// Norwegian (bokmål), for every kind of Norwegian.
    Norwegian,
    /// English, for everybody else.
    #[default]
    English,
}

impl Language {
    /// The language that the header prefers; English where it names neither.
    pub(super) fn preferred(accepted: &str) -> Self {
        let mut best = (0.0, Self::English);
        for entry in accepted.split(',') {
            let (tag, rest) = entry.split_once(';').unwrap_or((entry, ""));
            let quality = match rest.trim().strip_prefix("q=") {
                Some(quality) => quality.trim().parse().unwrap_or(0.0),
                None => 1.0,
            };
            let tag = tag.trim().to_ascii_lowercase();
            let language = match tag.split('-').next() {
                Some("nb" | "nn" | "no") => Self::Norwegian,
                Some("en") => Self::English,
                _ => continue,
            };
            // The first of equals stays.
            if quality > best.0 {
                best = (quality, language);
            }
        }
        best.1
    }

    /// The tag in HTML and in Content-Language (RFC 5646).
    pub(super) const fn tag(self) -> &'static str {
        match self {
            Self::Norwegian => "nb",
            Self::English => "en",
        }
    }

    /// A sum in minor units, with its currency.
    pub(super) fn sum(self, amount: i64, digits: u32, currency: &str) -> String {
        let written = super::money::written(amount, digits);
        let (whole, part) = written.split_once('.').unwrap_or((&written, ""));
        let (group, point) = match self {
            Self::Norwegian => (NO_BREAK, ','),
            Self::English => (',', '.'),
        };
        let mut text = String::new();
        let length = whole.chars().count();
        for (place, letter) in whole.chars().enumerate() {
            let rest = length.saturating_sub(place);
            if place > 0 && rest.is_multiple_of(3) && !text.ends_with('-') {
                text.push(group);
            }
            text.push(letter);
        }
        if !part.is_empty() {
            text.push(point);
            text.push_str(part);
        }
        match self {
            Self::Norwegian => format!("{text}{NO_BREAK}{currency}"),
            Self::English => format!("{currency}{NO_BREAK}{text}"),
        }
    }

    /// A day, as in "22. mai 2027" or "22 May 2027".
    pub(super) fn day(self, day: Date) -> String {
        let (months, dot) = match self {
            Self::Norwegian => (NORWEGIAN_MONTHS, "."),
            Self::English => (ENGLISH_MONTHS, ""),
        };
        let month = usize::try_from(day.month()).unwrap_or_default();
        let month = months.get(month.saturating_sub(1)).unwrap_or(&"");
        format!("{}{dot} {month} {}", day.day(), day.year())
    }

    /// A time of day, to the minute.
    pub(super) fn time(self, time: &ZonedDateTime) -> String {
        let point = match self {
            Self::Norwegian => '.',
            Self::English => ':',
        };
        format!("{:02}{point}{:02}", time.hour(), time.minute())
    }
}

const NORWEGIAN_MONTHS: [&str; 12] = [
    "januar",
    "februar",
    "mars",
    "april",
    "mai",
    "juni",
    "juli",
    "august",
    "september",
    "oktober",
    "november",
    "desember",
];

const ENGLISH_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// An account number in groups, as people write it: 9710 05 00019, or an IBAN in groups of four.
pub(super) fn grouped(number: &str) -> String {
    if super::money::is_bban(number)
        && let Some((bank, rest)) = number.split_at_checked(4)
        && let Some((kind, account)) = rest.split_at_checked(2)
    {
        return format!("{bank} {kind} {account}");
    }
    let letters: Vec<char> = number.chars().collect();
    let groups = letters.chunks(4).map(|group| group.iter().collect());
    groups.collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn the_preferred_language_is_taken() {
        for (accepted, expected) in [
            ("", Language::English),
            ("nb-NO,nb;q=0.9,en;q=0.8", Language::Norwegian),
            ("nn", Language::Norwegian),
            ("NO", Language::Norwegian),
            ("en-GB,nb", Language::English),
            ("en;q=0.1, nb;q=0.2", Language::Norwegian),
            ("pl, nb;q=0.3", Language::Norwegian),
            ("nb;q=0", Language::English),
            ("nb;q=x, en", Language::English),
            ("de,*", Language::English),
        ] {
            assert_eq!(Language::preferred(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn sums_and_days_are_written_as_people_do() {
        let (nb, en) = (Language::Norwegian, Language::English);
        assert_eq!(
            nb.sum(123_456_750, 2, "NOK"),
            "1\u{a0}234\u{a0}567,50\u{a0}NOK"
        );
        assert_eq!(en.sum(123_456_750, 2, "NOK"), "NOK\u{a0}1,234,567.50");
        assert_eq!(en.sum(-12_345, 2, "EUR"), "EUR\u{a0}-123.45");
        assert_eq!(en.sum(1_000, 0, "JPY"), "JPY\u{a0}1,000");
        assert_eq!(nb.day(date(2027, 5, 22)), "22. mai 2027");
        assert_eq!(en.day(date(2027, 12, 1)), "1 December 2027");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped("86011117947"), "8601 11 17947");
        assert_eq!(
            grouped("DE89370400440532013000"),
            "DE89 3704 0044 0532 0130 00"
        );
        assert_eq!(grouped(""), "");
        assert_eq!(grouped("æøåæø"), "æøåæ ø");
    }
}
