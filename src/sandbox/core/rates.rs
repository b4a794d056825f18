//! Exchange rates from a file, as of one day: the value of one unit of a currency in NOK.
//!
//! The built-in file has every currency of the interface's list (SBX-17). Its rates are invented for a simulated bank: they never change,
//! and are near real ones only so that sums look likely. Where ISO 4217 defines no minor units (XDR), `minorUnits` is null, and an amount
//! has any number of fraction digits that the interface allows.
//!
//! Invariant: a conversion is exact except for one rounding, half away from zero, to the minor unit of the target.

use super::money::{self, NOK};
use jiff::civil::Date;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The built-in rates.
const DEFAULT: &str = include_str!("rates.json");

/// The number of fraction digits of a rate in NOK.
const SCALE_DIGITS: u32 = 6;

/// The number of fraction digits of a rate that six digits do not give exactly.
const INEXACT_DIGITS: u32 = 10;

/// The maximum number of fraction digits of an amount (§Amount object).
const MOST_DIGITS: u32 = 5;

/// All currencies of the bank.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    /// The day of the quotation.
    pub(super) quoted: Date,
    currencies: BTreeMap<String, Rate>,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    digits: u32,
    /// Whether an amount has exactly these digits, and not fewer.
    is_exact: bool,
    /// Millionths of a NOK for one unit.
    nok: i128,
}

/// The reason why a file of rates cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RatesFault {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    /// The file has another format.
    #[error("the exchange rates: {0}")]
    Form(#[from] serde_json::Error),
    /// The day of the quotation is not a date.
    #[error("the exchange rates: quotationDate: {0}")]
    Day(jiff::Error),
    /// A rate is not a positive decimal.
    #[error(
        "the exchange rates: the rate of {0} is no positive decimal with at most six fraction digits, or it has more than five minor units"
    )]
    Rate(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    quotation_date: String,
    currencies: BTreeMap<String, WrittenRate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenRate {
    /// Null is written: a member that was forgotten is a fault.
    #[serde(deserialize_with = "Option::deserialize")]
    minor_units: Option<u32>,
    nok: String,
}

impl Rates {
    /// The rates of a file, or the built-in ones.
    pub(super) fn load(file: Option<&Path>) -> Result<Self, RatesFault> {
        match file {
            None => Self::parse(DEFAULT),
            Some(path) => {
                let text = std::fs::read_to_string(path);
                Self::parse(&text.map_err(|fault| RatesFault::File(path.to_owned(), fault))?)
            }
        }
    }

    fn parse(text: &str) -> Result<Self, RatesFault> {
        let written: Written = serde_json::from_str(text)?;
        let quoted = written.quotation_date.parse().map_err(RatesFault::Day)?;
        let one = 10_i128.pow(SCALE_DIGITS);
        let mut currencies = BTreeMap::from([(
            NOK.to_owned(),
            Rate {
                digits: 2,
                is_exact: true,
                nok: one,
            },
        )]);
        for (currency, rate) in written.currencies {
            let digits = rate.minor_units.unwrap_or(MOST_DIGITS);
            let nok = scaled(&rate.nok).filter(|nok| *nok > 0 && digits <= MOST_DIGITS);
            let nok = nok.ok_or_else(|| RatesFault::Rate(currency.clone()))?;
            let is_exact = rate.minor_units.is_some();
            currencies.entry(currency).or_insert(Rate {
                digits,
                is_exact,
                nok,
            });
        }
        Ok(Self { quoted, currencies })
    }

    /// The number of fraction digits of a currency, as the bank keeps and writes its amounts; `None` for an unknown currency.
    pub(super) fn digits(&self, currency: &str) -> Option<u32> {
        self.currencies.get(currency).map(|rate| rate.digits)
    }

    /// Parses an amount of a currency, of at most [`money::MOST`] minor units; `None` for an unknown currency too.
    pub(super) fn read(&self, text: &str, currency: &str) -> Option<i64> {
        let rate = self.currencies.get(currency)?;
        if rate.is_exact {
            money::read(text, rate.digits)
        } else {
            money::read_up_to(text, rate.digits)
        }
    }

    /// Converts minor units of one currency to minor units of another.
    pub(super) fn convert(&self, amount: i64, from: &str, to: &str) -> Option<i64> {
        i64::try_from(self.convert_wide(amount.into(), from, to)?).ok()
    }

    /// As [`Self::convert`], for a sum that is not booked and may be larger.
    pub(super) fn convert_wide(&self, amount: i128, from: &str, to: &str) -> Option<i128> {
        let (from, to) = (self.currencies.get(from)?, self.currencies.get(to)?);
        let above = amount
            .checked_mul(from.nok)?
            .checked_mul(10_i128.checked_pow(to.digits)?)?;
        let below = to.nok.checked_mul(10_i128.checked_pow(from.digits)?)?;
        let half = if above < 0 { -below / 2 } else { below / 2 };
        above.checked_add(half)?.checked_div(below)
    }

    /// The rate of two currencies, as it is quoted: the currency of which one unit is worth more, and that unit's value in the other. It has
    /// six fraction digits, or ten where six are not exact, so that a booked amount follows from it up to some 10^10 minor units.
    pub(super) fn quote<'c>(&self, one: &'c str, other: &'c str) -> Option<(&'c str, String)> {
        let nok = |currency: &str| self.currencies.get(currency).map(|rate| rate.nok);
        let (unit, above, below) = match (nok(one)?, nok(other)?) {
            (above, below) if above >= below => (one, above, below),
            (below, above) => (other, above, below),
        };
        let digits = match above
            .checked_mul(10_i128.pow(SCALE_DIGITS))?
            .checked_rem(below)?
        {
            0 => SCALE_DIGITS,
            _ => INEXACT_DIGITS,
        };
        let scale = 10_i128.pow(digits);
        let rate = above
            .checked_mul(scale)?
            .checked_add(below / 2)?
            .checked_div(below)?;
        let width = usize::try_from(digits).ok()?;
        Some((unit, format!("{}.{:0width$}", rate / scale, rate % scale)))
    }
}

/// A decimal in millionths.
fn scaled(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return None;
    }
    format!("{whole}{part:0<6}").parse().ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use portvakt_interface::operations::Schema;
    use portvakt_interface::payload::{Ibans, check, describe::definitions};
    use serde_json::json;

    /// The interface's currencies (§Currency codes).
    pub(in super::super) fn listed() -> Vec<String> {
        let schemas = definitions(Schema::Payment, &Ibans::default());
        let codes = schemas["Currency"]["enum"].as_array().unwrap();
        let codes = codes.iter().map(|code| code.as_str().unwrap().to_owned());
        codes.collect()
    }

    //= SBX-17 accepted
    #[test]
    fn every_currency_of_the_interface_has_a_rate() {
        let rates = Rates::load(None).unwrap();
        let known: Vec<_> = rates.currencies.keys().cloned().collect();
        let mut listed = listed();
        listed.sort_unstable();
        assert_eq!(known, listed);
        let written: Written = serde_json::from_str(DEFAULT).unwrap();
        for (currency, rate) in &written.currencies {
            let (_, part) = rate.nok.split_once('.').unwrap();
            assert_eq!(part.len(), 6, "{currency}");
        }
    }

    /// The bank takes the same digits as the gateway (PAY-4).
    #[test]
    fn amounts_have_the_digits_that_the_interface_asks_for() {
        let rates = Rates::load(None).unwrap();
        let day = jiff::civil::date(2026, 3, 2);
        for currency in listed() {
            let passes = |amount: &str| {
                let body = json!({"instructedAmount": {"amount": amount, "currency": currency}});
                let body = body.to_string();
                let ibans = Ibans::default();
                check(body.as_bytes(), Schema::Payment, &[], day, &ibans).is_ok()
            };
            let own = rates.digits(&currency).unwrap();
            for digits in 0..=6 {
                let amount = money::written(1, digits);
                let expected = digits == own || currency == "XDR" && digits < own;
                let taken = rates.read(&amount, &currency).is_some();
                assert_eq!(
                    (passes(&amount), taken),
                    (expected, expected),
                    "{amount} {currency}"
                );
            }
        }
    }

    #[test]
    fn a_booked_amount_follows_from_the_quoted_rate() {
        let rates = Rates::load(None).unwrap();
        let quoted = Some(("EUR", "11.624000".to_owned()));
        assert_eq!(rates.quote("EUR", NOK), quoted);
        assert_eq!(rates.quote(NOK, "EUR"), quoted);
        assert_eq!(rates.quote(NOK, "XXX"), None);
        for (source, target) in listed()
            .iter()
            .flat_map(|one| listed().into_iter().map(move |other| (one.clone(), other)))
        {
            let (unit, rate) = rates.quote(&target, &source).unwrap();
            let (rate, digits) = rate
                .split_once('.')
                .map(|(whole, part)| {
                    let digits = u32::try_from(part.len()).unwrap();
                    (format!("{whole}{part}").parse::<i128>().unwrap(), digits)
                })
                .unwrap();
            let [from, to] = [&source, &target].map(|one| rates.digits(one).unwrap());
            // About ten thousand NOK.
            let amount = rates.convert_wide(1_000_000, NOK, &source).unwrap();
            let booked = rates.convert_wide(amount, &source, &target).unwrap();
            let (above, below) = match unit == source {
                true => (rate, 10_i128.pow(digits)),
                false => (10_i128.pow(digits), rate),
            };
            let follows = amount * above * 10_i128.pow(to) / (below * 10_i128.pow(from));
            assert!(
                (booked - follows).abs() <= 1,
                "{source} {target}: {booked} {follows}"
            );
        }
    }

    #[test]
    fn a_conversion_rounds_once() {
        let rates = Rates::load(None).unwrap();
        assert_eq!(rates.convert(100, "EUR", NOK), Some(1_162));
        assert_eq!(rates.convert(1_162, NOK, "EUR"), Some(100));
        assert_eq!(rates.convert(1_000, "JPY", NOK), Some(6_612));
        assert_eq!(rates.convert(-100, "EUR", NOK), Some(-1_162));
        assert_eq!(rates.convert(1, NOK, "XXX"), None);
        assert_eq!(rates.digits("BHD"), Some(3));
        // More than an amount has: no fault, whatever the file says.
        let most = money::MOST;
        assert_eq!(rates.convert(most, "GBP", NOK), None);
        let worth = rates.convert_wide(most.into(), "GBP", NOK);
        assert_eq!(worth, Some(13_296_999_999_999_999_987));
        assert_eq!(rates.convert_wide(i128::MAX, "GBP", NOK), None);
    }

    #[test]
    fn a_file_that_says_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rates.json");
        assert!(matches!(
            Rates::load(Some(&path)),
            Err(RatesFault::File(..))
        ));
        for (text, good) in [
            (
                r#"{"quotationDate": "2026-01-02", "currencies": {"EUR": {"minorUnits": 2, "nok": "12"}}}"#,
                true,
            ),
            (
                r#"{"quotationDate": "2026-01-02", "currencies": {"EUR": {"minorUnits": 2, "nok": "-1"}}}"#,
                false,
            ),
            (
                r#"{"quotationDate": "2026-01-02", "currencies": {"EUR": {"minorUnits": 2, "nok": "0"}}}"#,
                false,
            ),
            (
                r#"{"quotationDate": "2026-01-02", "currencies": {"EUR": {"minorUnits": 9, "nok": "1"}}}"#,
                false,
            ),
            (
                r#"{"quotationDate": "2026-01-02", "currencies": {"XDR": {"minorUnits": null, "nok": "1"}}}"#,
                true,
            ),
            (
                r#"{"quotationDate": "2026-01-02", "currencies": {"EUR": {"nok": "12"}}}"#,
                false,
            ),
            (r#"{"quotationDate": "today", "currencies": {}}"#, false),
            ("[]", false),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(Rates::load(Some(&path)).is_ok(), good, "{text}");
        }
    }
}
