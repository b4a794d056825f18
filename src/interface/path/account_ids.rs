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
        self.judge(id).is_ok()
    }

    /// Judges an id, decoded.
    ///
    /// # Errors
    /// The reason why it cannot be an account's.
    pub fn judge(&self, id: &str) -> Result<(), IdFault> {
        let known = |c: char| c.is_ascii() && self.characters >> u32::from(c) & 1 == 1;
        if let Some(unknown) = id.chars().find(|c| !known(*c)) {
            return Err(IdFault::Character(unknown));
        }
        if !(1..=Self::MAX).contains(&id.len()) {
            return Err(IdFault::Length);
        }
        match id {
            "." | ".." => Err(IdFault::Dots),
            _ => Ok(()),
        }
    }
}

/// The reason why an id in a path is refused, for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdFault {
    /// An account's id has a character that [`AccountIds`] do not include.
    #[error(
        "an account's id has {0:?}, which no account's id has at this bank; take ids as GET /v1/accounts writes them"
    )]
    Character(char),
    /// An account's id is empty or too long.
    #[error("an account's id has 1 to {} characters", AccountIds::MAX)]
    Length,
    /// An account's id is `.` or `..`.
    #[error("an account's id is more than dots")]
    Dots,
    /// Another id has more than this number of characters.
    #[error("an id in the path has more than {0} characters")]
    OtherLength(usize),
}

impl IdFault {
    /// What the operator can do about it.
    pub fn for_operator(&self) -> Option<String> {
        match self {
            Self::Character(unknown) => Some(format!(
                "bank.account_ids does not include {unknown:?}; if ids of the core have it, add it there"
            )),
            Self::Length | Self::Dots | Self::OtherLength(_) => None,
        }
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
    fn the_character_that_is_refused() {
        let by_default = AccountIds::default();
        let fault = by_default.judge("enc!!a==").unwrap_err();
        assert_eq!(fault, IdFault::Character('!'));
        assert!(fault.to_string().contains("'!'"), "{fault}");
        assert!(fault.for_operator().unwrap().contains("bank.account_ids"));
        assert_eq!(by_default.judge(""), Err(IdFault::Length));
        assert_eq!(by_default.judge(".."), Err(IdFault::Dots));
        let widened = AccountIds::parse("A-Za-z0-9._~:!=-").unwrap();
        assert_eq!(widened.judge("enc!!a=="), Ok(()));
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
