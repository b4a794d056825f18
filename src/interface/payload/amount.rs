//! Amounts (PAY-4): decimals in strings. The digits are checked as text, so that no value is rounded.

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
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text, None),
        };
        let are_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let leads_with_zero = whole.len() > 1 && whole.starts_with('0');
        if !are_digits(whole) || leads_with_zero || !fraction.is_none_or(are_digits) {
            return Err(
                "it must be a decimal number such as 100.00: digits and a point, without sign, exponent, grouping or leading zeros",
            );
        }
        let scale = fraction.map_or(0, str::len);
        if scale > SCALE {
            return Err("it has more than 5 fraction digits");
        }
        if whole.len().saturating_add(scale) > PRECISION {
            return Err("it has more than 18 digits");
        }
        if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
            return Err("it must be more than zero");
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
}
