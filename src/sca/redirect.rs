//! The redirect of the PSU's browser to the TPP at the end of an SCA (§Events; SCA-10, SCA-11).
//!
//! Invariant: the redirect begins with the TPP's own URI, unchanged as it was signed. All characters of the added parameters except RFC
//! 3986's unreserved characters are percent-encoded, so that no value can end a parameter or begin another. HDR-8 has checked that the URI
//! has no fragment and none of these parameters.

use super::Pending;
use crate::interface::{
    Code,
    headers::{CorporateId, PsuContext, PsuId},
};
use crate::state::Known;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except RFC 3986's unreserved characters (section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The failure of an SCA, as the TPP gets it (§Redirect after failed SCA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// The system that produced the error.
    pub system: &'a str,
    /// HTTP status code.
    pub status: u16,
    /// One of the interface's codes (ERR-3).
    pub code: Code,
    /// Text for the TPP.
    pub message: &'a str,
}

/// The redirect after a successful SCA (SCA-10). With a corporate id the context is CORPORATE.
pub fn completed(
    pending: &Pending,
    psu: Known<PsuId>,
    corporate: Option<Known<CorporateId>>,
) -> String {
    let mut uri = Appending::to(pending.redirect_uri.as_str());
    uri.parameter("psu-id", &psu.get().hyphenated());
    if let Some(corporate) = corporate {
        uri.parameter("psu-corporate-id", &corporate.get().hyphenated());
    }
    uri.parameter("tpp-session-id", pending.session.as_str());
    let context = corporate.map_or(PsuContext::Private, |_| PsuContext::Corporate);
    uri.parameter("context", context.as_str());
    uri.uri
}

/// The redirect after a failed SCA (SCA-11).
pub fn failed(pending: &Pending, failure: &Failure<'_>) -> String {
    let mut uri = Appending::to(pending.redirect_uri.as_str());
    uri.parameter("system", failure.system);
    uri.parameter("status", &failure.status.to_string());
    uri.parameter("code", failure.code.as_str());
    uri.parameter("message", failure.message);
    uri.uri
}

/// A URI during the addition of parameters.
struct Appending {
    uri: String,
    separator: &'static str,
}

impl Appending {
    fn to(uri: &str) -> Self {
        let separator = match uri.split_once('?') {
            None => "?",
            Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
            Some(_) => "&",
        };
        Self {
            uri: uri.to_owned(),
            separator,
        }
    }

    fn parameter(&mut self, name: &str, value: &str) {
        self.uri.push_str(self.separator);
        self.separator = "&";
        self.uri.push_str(name);
        self.uri.push('=');
        self.uri.extend(utf8_percent_encode(value, ENCODED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{
        TppId,
        headers::{RedirectUri, SessionId},
        operations::Environment,
    };

    const PSU: Known<PsuId> =
        Known::by_bank(PsuId::from_bits(0x0192_f0c1_5a5b_7def_8000_1234_5678_90ab));
    const AGREEMENT: Known<CorporateId> = Known::by_bank(CorporateId::from_bits(0xff));

    fn pending(redirect_uri: &str, session: &str) -> Pending {
        Pending {
            environment: Environment::Sandbox,
            tpp: TppId::parse("PSDNO-FSA-123456").unwrap(),
            tpp_name: "Tredjepart AS".into(),
            session: SessionId::from_text(session).unwrap(),
            redirect_uri: RedirectUri::from_text(redirect_uri, Environment::Sandbox).unwrap(),
            preferred: true,
            operation: "account-list".into(),
            resource: None,
            asks_consent: true,
            context: None,
            corporate: None,
            psu: None,
        }
    }

    //= SCA-10 accepted
    #[test]
    fn after_success() {
        let psu = "psu-id=0192f0c1-5a5b-7def-8000-1234567890ab";
        let table = [
            ("https://t.example", "?"),
            ("https://t.example/", "?"),
            ("https://t.example/back", "?"),
            ("https://t.example/back?", ""),
            ("https://t.example/back?a=b", "&"),
            ("https://t.example/back?a=b&", ""),
            ("https://t.example/back?a=%2F+%c3%a6;x&b", "&"),
            ("https://[::1]:8443/?q=?/@:", "&"),
        ];
        for (uri, separator) in table {
            assert_eq!(
                completed(&pending(uri, "s-1"), PSU, None),
                format!("{uri}{separator}{psu}&tpp-session-id=s-1&context=PRIVATE")
            );
            assert_eq!(
                completed(&pending(uri, "s-1"), PSU, Some(AGREEMENT)),
                format!(
                    "{uri}{separator}{psu}&psu-corporate-id=00000000-0000-0000-0000-0000000000ff&tpp-session-id=s-1&context=CORPORATE"
                )
            );
        }
        // Every character that a TPP-Session-ID may have (HDR-7).
        let session: String = (b'!'..=b'~').map(char::from).collect();
        let uri = completed(&pending("https://t.example/?a=b", &session), PSU, None);
        let query = uri.split_once('?').unwrap().1;
        let names: Vec<_> = query
            .split('&')
            .map(|pair| pair.split('=').next().unwrap())
            .collect();
        assert_eq!(names, ["a", "psu-id", "tpp-session-id", "context"]);
        let value = query.split('&').nth(2).unwrap().split_once('=').unwrap().1;
        let decoded = percent_encoding::percent_decode_str(value).decode_utf8();
        assert_eq!(decoded.unwrap(), session);
        assert!(!uri.contains(['"', '<', '#', ' ', '\\']), "{uri}");
    }

    //= SCA-11 accepted
    #[test]
    fn after_failure() {
        let failure = Failure {
            system: "core & co",
            status: 400,
            code: Code::PaymentFailed,
            message: "Kunden avbrøt: 100 % sikkert #1?\r\n",
        };
        assert_eq!(
            failed(&pending("https://t.example/back?a=b", "s"), &failure),
            "https://t.example/back?a=b&system=core%20%26%20co&status=400&code=PAYMENT_FAILED\
             &message=Kunden%20avbr%C3%B8t%3A%20100%20%25%20sikkert%20%231%3F%0D%0A"
        );
    }
}
