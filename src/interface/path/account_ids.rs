//! The characters of account ids (HTTP-10).
//!
//! The quota and the consent use the account's id as a key. A core that trims, folds or decodes an id again could treat two different ids
//! as one account, so ids may only have the characters that the bank uses.

use super::characters::is_unreserved;

/// The characters of account ids. Ids are compared decoded, in their letter case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountIds {
    /// A bit for each character of ASCII.
    characters: u128,
}

impl AccountIds {
    /// The maximum length of an account's id in characters.
    pub const MAX: usize = 128;

    /// The characters that are taken by default, as [`AccountIds::parse`] reads them.
    pub const DEFAULT: &'static str = "A-Za-z0-9._~:-";

    /// Reads a class of characters: each stands for itself, and `a-z` for those from a to z.
    ///
    /// # Errors
    /// The accepted form.
    pub fn parse(class: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "characters that a path may hold as they are (letters, digits and any of -._~!$&'()*+,=:@), with ranges such as A-Z";
        let mut characters = 0_u128;
        let mut rest = class.as_bytes();
        while let [first, after @ ..] = rest {
            let last = match after {
                [b'-', last, after @ ..] => {
                    rest = after;
                    last
                }
                after => {
                    rest = after;
                    first
                }
            };
            let alike: [fn(&u8) -> bool; 3] = [
                u8::is_ascii_uppercase,
                u8::is_ascii_lowercase,
                u8::is_ascii_digit,
            ];
            let is_range = first <= last && alike.iter().any(|alike| alike(first) && alike(last));
            if !is_range && first != last {
                return Err(EXPECTED);
            }
            for byte in *first..=*last {
                if !(is_unreserved(byte) || b"!$&'()*+,=:@".contains(&byte)) {
                    return Err(EXPECTED);
                }
                characters |= 1 << byte;
            }
        }
        if characters == 0 {
            return Err(EXPECTED);
        }
        Ok(Self { characters })
    }

    /// Whether an id, decoded, can be an account's.
    pub fn include(&self, id: &str) -> bool {
        let known = |byte: u8| byte.is_ascii() && self.characters >> byte & 1 == 1;
        (1..=Self::MAX).contains(&id.len()) && !matches!(id, "." | "..") && id.bytes().all(known)
    }
}

impl Default for AccountIds {
    fn default() -> Self {
        // A test shows that the default parses. If that changes, no id is valid.
        Self::parse(Self::DEFAULT).unwrap_or(Self { characters: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        let by_default = AccountIds::default();
        let longest = "a".repeat(AccountIds::MAX);
        for id in ["acc-9", "a", "NO93:x_~.-", "...", &longest] {
            assert!(by_default.include(id), "{id}");
        }
        let too_long = "a".repeat(AccountIds::MAX + 1);
        for id in [
            "",
            ".",
            "..",
            "acc-9 ",
            "acc%2D9",
            "acc-9;x",
            "acc-9\u{feff}",
            "æ",
            "a@b",
            "a+b",
            "a/b",
            "a\0",
            &too_long,
        ] {
            assert!(!by_default.include(id), "{id:?}");
        }
    }

    #[test]
    fn classes() {
        let digits = AccountIds::parse("0-9").unwrap();
        assert!(digits.include("0123456789") && !digits.include("12a") && !digits.include("1-2"));
        let odd = AccountIds::parse("-a@+-").unwrap();
        assert!(odd.include("-a@+") && !odd.include("b"));
        for bad in [
            "", "a;", "z-a", "A-z", "%", "a b", "æ", "/", "!-~", "\0", "a-",
        ] {
            assert_eq!(AccountIds::parse(bad).is_err(), bad != "a-", "{bad}");
        }
    }
}
