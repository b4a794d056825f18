//! `PSU-ID`, `PSU-Corporate-ID` and `PSU-Device-ID` (HDR-9): a UUID in the 8-4-4-4-12 form only, either letter case.
//!
//! Spelled in upper or lower case it is the same PSU, so the id is a number, not text: what is compared and keyed is
//! the 128 bits. The version and variant bits are not looked at: the bank chose the id, and the TPP only repeats it.

use uuid::Uuid;

/// Eight, four, four, four and twelve digits with four hyphens. Of the forms that the `uuid` crate reads, it is the
/// only one of this length: without hyphens, in braces and as a URN it has 32, 38 and 45.
const LENGTH: usize = 36;

/// What passes, for a fault.
pub const EXPECTED: &str = "it must be a UUID with its hyphens: 8, 4, 4, 4 and 12 hexadecimal digits, in either letter case";

/// The UUID that a value spells.
pub fn parse(value: &[u8]) -> Option<u128> {
    let uuid = Uuid::try_parse_ascii(value).ok()?;
    (value.len() == LENGTH).then(|| uuid.as_u128())
}

#[cfg(test)]
mod tests {
    use super::*;

    //= HDR-9 accepted
    #[test]
    fn either_letter_case_is_one_number() {
        let lower = parse(b"0192f0c1-5a5b-7def-8000-1234567890ab");
        assert_eq!(lower, Some(0x0192_f0c1_5a5b_7def_8000_1234_5678_90ab));
        assert_eq!(parse(b"0192F0C1-5A5B-7DEF-8000-1234567890AB"), lower);
        assert_eq!(parse(b"0192f0C1-5a5B-7DEF-8000-1234567890aB"), lower);
        assert_eq!(parse(b"00000000-0000-0000-0000-000000000000"), Some(0));
    }

    //= HDR-9 refused
    #[test]
    fn other_forms() {
        let table = [
            "",
            "p",
            "0192f0c15a5b7def80001234567890ab",
            "{0192f0c1-5a5b-7def-8000-1234567890ab}",
            "urn:uuid:0192f0c1-5a5b-7def-8000-1234567890ab",
            "0192f0c1-5a5b-7def-8000-1234567890a",
            "0192f0c1-5a5b-7def-8000-1234567890abc",
            "0192f0c1-5a5b-7def-8000-1234567890ag",
            "0192f0c15-a5b-7def-8000-1234567890ab",
            "0192f0c1-5a5b-7def-80001-234567890ab",
            "0192f0c1_5a5b_7def_8000_1234567890ab",
            "0192f0c1-5a5b-7def-8000-1234567890ab ",
            "0192f0c15a5b7def80001234567890ab----",
            "+192f0c1-5a5b-7def-8000-1234567890ab",
            "0192f0c1-5a5b-7def-8000-12345678 0ab",
        ];
        for value in table {
            assert_eq!(parse(value.as_bytes()), None, "{value}");
        }
        assert_eq!(parse(&[b'-'; LENGTH]), None);
        assert_eq!(parse(&[0xff; LENGTH]), None);
    }
}
