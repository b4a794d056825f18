//! `PSU-ID`, `PSU-Corporate-ID` and `PSU-Device-ID` (HDR-9): a UUID in the 8-4-4-4-12 form only, either letter case.
//!
//! Letter case does not distinguish PSUs, so [`PsuId`] and [`CorporateId`] hold the 128 bits and not the text. The version
//! and variant bits are not checked, because the bank chose the id.

use crate::character::OddCharacter;
use std::fmt;
use uuid::Uuid;

/// Eight, four, four, four and twelve digits with four hyphens. Of the forms that the `uuid` crate reads, it is the
/// only one of this length: without hyphens, in braces and as a URN it has 32, 38 and 45.
const LENGTH: usize = 36;

/// The reason why a value is not of this form (ERR-10). It shows no digit.
pub fn fault(value: &[u8]) -> String {
    let is_of_uuid = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    match OddCharacter::first(value, is_of_uuid) {
        Some(odd) => format!("{odd}; a UUID has hexadecimal digits and hyphens alone"),
        None if value.len() != LENGTH => format!(
            "it has {} characters; a UUID with its hyphens has {LENGTH}",
            value.len()
        ),
        None => "its hyphens do not stand between 8, 4, 4, 4 and 12 hexadecimal digits".to_owned(),
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {
        $($(#[$doc])*
        #[doc = "\n\n`Debug` does not show it, and there is no `Display`: an id of a PSU stands in no log and no error."]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// Parses a header value (HDR-9).
            pub fn parse(value: &[u8]) -> Option<Self> {
                parse(value).map(Self)
            }

            /// The id of these bits.
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// The 128 bits, the first digit first.
            pub const fn to_be_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }

            /// The text of the id, in lower case.
            pub fn hyphenated(self) -> String {
                Uuid::from_u128(self.0).hyphenated().to_string()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(concat!(stringify!($name), "(***)"))
            }
        })+
    };
}

ids! {
    /// A PSU, as one TPP knows it (SCA-3).
    PsuId;
    /// A corporate agreement (SCA-17).
    CorporateId;
}

/// Whether a value is a UUID of this form.
pub fn is_valid(value: &[u8]) -> bool {
    parse(value).is_some()
}

fn parse(value: &[u8]) -> Option<u128> {
    let uuid = Uuid::try_parse_ascii(value).ok()?;
    (value.len() == LENGTH).then(|| uuid.as_u128())
}

#[cfg(test)]
mod tests {
    use super::*;

    //= HDR-9 accepted
    #[test]
    fn either_letter_case_is_one_number() {
        let lower = PsuId::parse(b"0192f0c1-5a5b-7def-8000-1234567890ab").unwrap();
        assert_eq!(lower, PsuId(0x0192_f0c1_5a5b_7def_8000_1234_5678_90ab));
        for other in [
            b"0192F0C1-5A5B-7DEF-8000-1234567890AB",
            b"0192f0C1-5a5B-7DEF-8000-1234567890aB",
        ] {
            assert_eq!(PsuId::parse(other), Some(lower));
        }
        assert_eq!(lower.hyphenated(), "0192f0c1-5a5b-7def-8000-1234567890ab");
        assert_eq!(format!("{lower:?}"), "PsuId(***)");
        assert_eq!(
            CorporateId::parse(b"00000000-0000-0000-0000-000000000000"),
            Some(CorporateId::from_bits(0))
        );
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
            assert_eq!(PsuId::parse(value.as_bytes()), None, "{value}");
        }
        assert!(!is_valid(&[b'-'; LENGTH]) && !is_valid(&[0xff; LENGTH]));
    }
}
