//! The TPP's knowledge: values of answers and redirects, which later scenes send.
//!
//! Invariant: apart from the PSU's number, no value comes from anywhere else. Deliberately not here: reading an answer for a flow
//! (story.rs, flows.rs).

use super::request::{REDIRECT_URI, SESSION};

/// The TPP's knowledge so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// The mocked national identity number of the PSU in this story.
    pub(super) identity: String,
    /// scaRedirect.
    pub(super) link: String,
    /// PSU-ID, from the redirect.
    pub(super) psu: String,
    /// PSU-Corporate-ID, likewise; empty in a private context.
    pub(super) corporate: String,
    /// The payments of the basket.
    pub(super) payments: [String; 2],
    /// The first account of the list.
    pub(super) account: String,
    /// Its number.
    pub(super) bban: String,
    /// The same as an IBAN.
    pub(super) iban: String,
    /// The startAuthorisation link of the payment.
    pub(super) authorise: String,
    /// The status link of the payment.
    pub(super) status: String,
}

impl Memory {
    /// Reads the redirect (§Redirect after successful SCA); returns whether it contains everything required.
    pub(super) fn learn_redirect(&mut self, uri: &str) -> bool {
        let Some((start, query)) = uri.split_once('?') else {
            return false;
        };
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value)
        };
        let agreement = parameter("psu-corporate-id");
        let context = agreement.map_or("PRIVATE", |_| "CORPORATE");
        agreement
            .unwrap_or_default()
            .clone_into(&mut self.corporate);
        start == REDIRECT_URI
            && parameter("tpp-session-id") == Some(SESSION)
            && parameter("context") == Some(context)
            && keep(&mut self.psu, parameter("psu-id"))
    }
}

/// Stores a value, if it was found; returns whether it was.
pub(super) fn keep(place: &mut String, found: Option<&str>) -> bool {
    found.map(|found| found.clone_into(place)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_must_say_all() {
        let mut memory = Memory::default();
        let good = format!("{REDIRECT_URI}?psu-id=1&tpp-session-id={SESSION}&context=PRIVATE");
        for bad in [
            REDIRECT_URI.to_owned(),
            good.replace("psu-id=1", "status=401"),
            good.replace(SESSION, "other"),
            good.replace("PRIVATE", "CORPORATE"),
            good.replace(REDIRECT_URI, "https://thief.example/"),
        ] {
            assert!(!memory.learn_redirect(&bad), "{bad}");
        }
        assert!(memory.learn_redirect(&good));
        assert_eq!(memory.psu, "1");
        let corporate = good.replace("PRIVATE", "CORPORATE&psu-corporate-id=2");
        assert!(memory.learn_redirect(&corporate));
        assert_eq!(memory.corporate, "2");
    }
}
