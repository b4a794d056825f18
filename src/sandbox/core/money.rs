//! Amounts and account numbers: whole numbers of a currency's minor unit, and numbers with their check digits.
//!
//! Invariant: no amount is ever a binary fraction, and every account number is valid (modulus 11 for a Norwegian BBAN, ISO 7064
//! for its IBAN).

/// The home currency.
pub(super) const NOK: &str = "NOK";

/// The first four digits of this bank's account numbers: 9710 is no Norwegian bank's.
pub(super) const BANK_NUMBER: &str = "9710";

/// The bank's BIC.
pub(super) const BIC: &str = "PVSBNO22XXX";

/// The largest amount, in minor units: precision 18 (§Amount object). The type holds nine times as much.
pub(super) const MOST: i64 = 999_999_999_999_999_999;

/// Formats minor units as the interface does: with the currency's number of fraction digits.
pub(super) fn written(amount: i64, digits: u32) -> String {
    let sign = if amount < 0 { "-" } else { "" };
    let (amount, unit) = (amount.unsigned_abs(), 10_u64.saturating_pow(digits));
    let (whole, part) = (amount / unit, amount % unit);
    match usize::try_from(digits) {
        Ok(width) if width > 0 => format!("{sign}{whole}.{part:0width$}"),
        _ => format!("{sign}{whole}"),
    }
}

/// Parses a decimal with exactly these fraction digits, of at most [`MOST`] minor units.
pub(super) fn read(text: &str, digits: u32) -> Option<i64> {
    let (sign, plain) = match text.strip_prefix('-') {
        Some(plain) => (-1, plain),
        None => (1, text),
    };
    let (whole, part) = plain.split_once('.').unwrap_or((plain, ""));
    let fits = u32::try_from(part.len()) == Ok(digits) && plain.contains('.') == (digits > 0);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !fits || !is_number(whole) || !is_number(part) {
        return None;
    }
    let amount: i64 = format!("{whole}{part}").parse().ok()?;
    (amount <= MOST).then_some(amount.saturating_mul(sign))
}

/// As [`read`], with no more than these fraction digits.
pub(super) fn read_up_to(text: &str, digits: u32) -> Option<i64> {
    if text.ends_with('.') {
        return None;
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let width = usize::try_from(digits).ok()?;
    read(&format!("{whole}.{part:0<width$}"), digits)
}

/// The account number of ten digits; `None` if its check digit would be ten.
pub(super) fn bban(ten: u64) -> Option<String> {
    let digits = format!("{ten:010}");
    let check = check_digit(&digits)?;
    Some(format!("{digits}{check}"))
}

/// Whether this is a Norwegian account number.
pub(super) fn is_bban(number: &str) -> bool {
    number.split_at_checked(10).is_some_and(|(digits, check)| {
        check_digit(digits).is_some_and(|right| check == right.to_string())
    }) && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The check digit of ten digits, modulus 11.
fn check_digit(digits: &str) -> Option<u32> {
    let weights = [5, 4, 3, 2, 7, 6, 5, 4, 3, 2];
    let digits = digits.chars().filter_map(|digit| digit.to_digit(10));
    let sum: u32 = digits
        .zip(weights)
        .map(|(digit, weight)| digit.saturating_mul(weight))
        .sum();
    let check = (11 - sum % 11) % 11;
    (check < 10).then_some(check)
}

/// ISO 13616-1: the country's letters as 23 and 24, the check digits as 00, modulo 97.
pub(super) fn iban(bban: &str) -> String {
    let digits = bban.chars().chain("232400".chars());
    let rest = digits
        .filter_map(|digit| digit.to_digit(10))
        .fold(0, |rest, digit| (rest * 10 + digit) % 97);
    format!("NO{:02}{bban}", 98 - rest)
}

/// The Norwegian account number in an IBAN of Norway, if it is one.
pub(super) fn bban_of(iban: &str) -> Option<&str> {
    let bban = iban.strip_prefix("NO")?.get(2..)?;
    (is_bban(bban) && self::iban(bban) == iban).then_some(bban)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_and_read_with_the_digits_of_their_currency() {
        for (amount, digits, text) in [
            (1_234_550, 2, "12345.50"),
            (-5, 2, "-0.05"),
            (700, 0, "700"),
            (1_001, 3, "1.001"),
            (0, 2, "0.00"),
        ] {
            assert_eq!(written(amount, digits), text);
            assert_eq!(read(text, digits), Some(amount));
        }
        for bad in [
            "",
            ".",
            "1",
            "1.0",
            "1.000",
            "1.-1",
            "+1.00",
            "a.bc",
            "10000000000000000.00",
            "99999999999999999999.00",
            "1.0٣",
        ] {
            assert_eq!(read(bad, 2), None, "{bad}");
        }
        assert_eq!(read("9999999999999999.99", 2), Some(MOST));
        assert_eq!(read("-9999999999999999.99", 2), Some(-MOST));
        assert_eq!(read("1.0", 0), None);
    }

    #[test]
    fn amounts_without_minor_units_have_up_to_so_many_digits() {
        for (text, amount) in [
            ("1", 100_000),
            ("1.5", 150_000),
            ("-0.00001", -1),
            ("9999999999999.99999", MOST),
        ] {
            assert_eq!(read_up_to(text, 5), Some(amount), "{text}");
        }
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "1.000000",
            "1.0.0",
            "1.x",
            "10000000000000",
        ] {
            assert_eq!(read_up_to(bad, 5), None, "{bad}");
        }
    }

    #[test]
    fn account_numbers_hold() {
        // The example of ISO 13616's registry for Norway.
        assert_eq!(bban(8_601_111_794).as_deref(), Some("86011117947"));
        assert_eq!(iban("86011117947"), "NO9386011117947");
        assert_eq!(bban_of("NO9386011117947"), Some("86011117947"));
        for bad in ["NO9486011117947", "DE89370400440532013000", "NO93", "NO"] {
            assert_eq!(bban_of(bad), None, "{bad}");
        }
        assert!(!is_bban("86011117946") && !is_bban("8601111794x") && !is_bban("860111179477"));
        let many: std::collections::HashSet<_> =
            (9_710_050_000..9_710_050_500).filter_map(bban).collect();
        assert!(many.len() > 400);
        for bban in many {
            assert!(is_bban(&bban), "{bban}");
            let iban = iban(&bban).parse::<iban::Iban>().unwrap();
            assert_eq!(iban::IbanLike::country_code(&iban), "NO");
        }
    }
}
