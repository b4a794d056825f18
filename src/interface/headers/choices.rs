//! `PSU-Context`, `TPP-Redirect-Preferred` and `PSU-HTTP-Method` (HDR-10): one of a few words each.
//!
//! The values are case-sensitive. The interface writes each word in one spelling, HTTP methods are case-sensitive (RFC 9110,
//! section 9.1), and the core gets the header unchanged: if the gateway accepted `private` and the core did not, they would
//! use two contexts for one request.

use crate::character::OddCharacter;

/// The context that a PSU acts in (§Corporate context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PsuContext {
    /// A private person.
    Private,
    /// A representative of a corporation.
    Corporate,
}

impl PsuContext {
    /// Parses PSU-Context.
    pub const fn parse(value: &[u8]) -> Option<Self> {
        match value {
            b"PRIVATE" => Some(Self::Private),
            b"CORPORATE" => Some(Self::Corporate),
            _ => None,
        }
    }

    /// The value in the header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "PRIVATE",
            Self::Corporate => "CORPORATE",
        }
    }
}

/// The reason why a value is none of the words of a header (ERR-10): `expected` names them.
pub fn fault(value: &[u8], expected: &str) -> String {
    if let Some(odd) = OddCharacter::outside_ascii(value) {
        return format!("{odd}; {expected}");
    }
    let words = expected.split([' ', ',']);
    let mut words = words.filter(|word| !word.is_empty());
    if words.any(|word| word.as_bytes().eq_ignore_ascii_case(value)) {
        return format!("it stands in another letter case; {expected}");
    }
    format!("it is another word; {expected}")
}

/// The accepted values of PSU-Context, for a fault.
pub const EXPECTED_CONTEXT: &str = "it must be PRIVATE or CORPORATE, in capitals";
/// The accepted values of TPP-Redirect-Preferred, for a fault.
pub const EXPECTED_PREFERRED: &str = "it must be true or false, in small letters";
/// The accepted values of PSU-HTTP-Method, for a fault.
pub const EXPECTED_METHOD: &str = "it must be GET, POST, PUT, PATCH or DELETE, in capitals";

/// Parses TPP-Redirect-Preferred.
pub const fn redirect_preferred(value: &[u8]) -> Option<bool> {
    match value {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

/// Whether a value is a valid PSU-HTTP-Method.
pub const fn is_psu_method(value: &[u8]) -> bool {
    matches!(value, b"GET" | b"POST" | b"PUT" | b"PATCH" | b"DELETE")
}

#[cfg(test)]
mod tests {
    use super::*;

    //= HDR-10 accepted
    #[test]
    fn the_words() {
        for context in [PsuContext::Private, PsuContext::Corporate] {
            assert_eq!(
                PsuContext::parse(context.as_str().as_bytes()),
                Some(context)
            );
        }
        assert_eq!(redirect_preferred(b"true"), Some(true));
        assert_eq!(redirect_preferred(b"false"), Some(false));
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            assert!(is_psu_method(method.as_bytes()), "{method}");
        }
    }

    //= HDR-10 refused
    #[test]
    fn other_words() {
        let contexts = [
            "",
            "private",
            "Corporate",
            "BUSINESS",
            "PRIVATE,CORPORATE",
            "PRIVATE ",
        ];
        for word in contexts {
            assert_eq!(PsuContext::parse(word.as_bytes()), None, "{word}");
        }
        for word in ["", "True", "FALSE", "1", "0", "yes", "?0", "\"true\""] {
            assert_eq!(redirect_preferred(word.as_bytes()), None, "{word}");
        }
        let methods = [
            "",
            "get",
            "HEAD",
            "OPTIONS",
            "TRACE",
            "CONNECT",
            "GET, POST",
            "GETT",
        ];
        for word in methods {
            assert!(!is_psu_method(word.as_bytes()), "{word}");
        }
    }
}
