//! Amounts (PAY-4): decimals in strings. The digits are checked as text, so that no value is rounded.

use crate::character;
use std::borrow::Cow;

/// The maximum number of digits before and after the point together (§Amount object).
pub(super) const PRECISION: usize = 18;

/// The maximum number of fraction digits (§Amount object).
pub(super) const SCALE: usize = 5;

/// The number of digits before the point from which an amount is large: six, for 100 000 and more (PAY-11).
pub(super) const LARGE: usize = 6;

/// An amount as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    whole: usize,
    scale: usize,
}

impl Amount {
    /// Parses an amount.
    ///
    /// # Errors
    /// The accepted form.
    pub(super) fn parse(text: &str) -> Result<Self, Cow<'static, str>> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let are_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let leads_with_zero = whole.len() > 1 && whole.starts_with('0');
        if !are_digits(whole) || leads_with_zero || !fraction.is_none_or(are_digits) {
            return Err(fault(text, leads_with_zero));
        }
        let scale = fraction.map_or(0, str::len);
        if scale > SCALE {
            return Err("it has more than 5 fraction digits".into());
        }
        if whole.len().saturating_add(scale) > PRECISION {
            return Err("it has more than 18 digits".into());
        }
        if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
            return Err("it must be more than zero".into());
        }
        let whole = whole.len();
        Ok(Self { whole, scale })
    }

    /// The number of fraction digits.
    pub(super) const fn scale(self) -> usize {
        self.scale
    }

    /// Whether the amount is 100 000 or more. There are no leading zeros, so the number of digits decides.
    pub(super) const fn is_large(self) -> bool {
        self.whole >= LARGE
    }
}

/// The reason why a text is not digits, with or without a point and further digits (ERR-10). It repeats no digit.
fn fault(text: &str, leads_with_zero: bool) -> Cow<'static, str> {
    let mut characters = text.chars().zip(1_usize..);
    let odd = characters.find(|(found, _)| !found.is_ascii_digit() && *found != '.');
    let what = match odd {
        _ if text.is_empty() => "it is empty",
        Some(('+' | '-', 1)) => "it has a sign, which an amount does not have",
        Some((',', _)) => {
            "it has a comma: a point stands before the fraction, and nothing groups the digits"
        }
        Some(('e' | 'E', at)) if at > 1 => "it has an exponent, which an amount does not have",
        Some((found, at)) => {
            let found = character::name(found);
            return format!("its character {at} is {found}; an amount consists of digits and a point, as in 100.00").into();
        }
        None if text.split('.').count() > 2 => "it has more than one point",
        None if text.starts_with('.') => "no digit stands before its point",
        None if text.ends_with('.') => "no digit stands behind its point",
        None if leads_with_zero => "it has a leading zero",
        None => "it must be a decimal number such as 100.00",
    };
    what.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        let table = [
            ("0.01", 2, false),
            ("1", 0, false),
            ("99999.99", 2, false),
            ("100000.00", 2, true),
            ("100000", 0, true),
            ("9999999999999999.99", 2, true),
            ("9999999999999.99999", 5, true),
            ("999999999999999999", 0, true),
        ];
        for (text, scale, large) in table {
            let amount = Amount::parse(text).unwrap();
            assert_eq!(
                (amount.scale(), amount.is_large()),
                (scale, large),
                "{text}"
            );
        }
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1.00",
            "+1.00",
            "1e3",
            "1E3",
            "01.00",
            "00.01",
            "1,00",
            "1 000.00",
            "1.0.0",
            "0",
            "0.00",
            "0.000001",
            "1.123456",
            "9999999999999999999",
            "99999999999999999.99",
            "NaN",
            "0x10",
            "１.00",
            " 1.00",
            "1.00 ",
            "Infinity",
        ] {
            assert!(Amount::parse(bad).is_err(), "{bad}");
        }
    }

    //= ERR-10 refused
    #[test]
    fn each_cause_has_its_sentence() {
        for (bad, expected) in [
            ("", "it is empty"),
            (".", "no digit stands before its point"),
            ("1.", "no digit stands behind its point"),
            ("-1.00", "it has a sign"),
            ("1e3", "it has an exponent"),
            ("e3", "its character 1 is a small letter"),
            ("01.00", "it has a leading zero"),
            ("1,00", "it has a comma"),
            ("1 000.00", "its character 2 is a blank"),
            ("1.0.0", "more than one point"),
            (
                "\u{ff11}.00",
                "its character 1 is U+FF11, which is outside ASCII",
            ),
            ("0.00", "more than zero"),
        ] {
            let said = Amount::parse(bad).unwrap_err();
            assert!(said.contains(expected), "{bad}: {said}");
        }
    }
}
