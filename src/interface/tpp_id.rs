//! A TPP's identity: the organizationIdentifier of its certificate (CRT-4, ETSI TS 119 495, 5.2.1).
//!
//! Invariant: a [`TppId`] has one spelling for each TPP, so that equal TPPs have equal ids, which are the keys of rates, quotas, bindings
//! and metrics.

use std::{fmt, sync::Arc};

/// `PSD<country>-<NCA>-<id>`, trimmed and in capitals; ASCII alone. A clone copies no text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TppId(Arc<str>);

impl TppId {
    /// The identity in a text, in its normalised spelling; `None` if the text has none.
    ///
    /// Only ASCII is folded: the Unicode capital of `ſ` is S, so Unicode folding would give one TPP the spelling of another.
    pub fn parse(text: &str) -> Option<Self> {
        let identity = text.trim_matches(|c: char| c.is_ascii_whitespace());
        let identity = identity.to_ascii_uppercase();
        is_psd2_identifier(&identity).then(|| Self(identity.into()))
    }

    /// The identity as certificates and registers write it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The identity as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The identity without the spaces and dashes of its id.
    pub fn bare(&self) -> BareTppId {
        let mut dashes = 0_u8;
        let kept = |c: &char| {
            let separates = *c == '-' && dashes < 2;
            dashes = dashes.saturating_add(u8::from(separates));
            separates || !matches!(c, ' ' | '-')
        };
        let bare: String = self.0.chars().filter(kept).collect();
        BareTppId(bare.into_boxed_str())
    }
}

impl fmt::Display for TppId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for TppId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, formatter)
    }
}

/// An identity without the spaces and dashes of its id, as registers and the operator's lists compare it: see
/// [`TppId::bare`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BareTppId(Box<str>);

fn is_psd2_identifier(identifier: &str) -> bool {
    let Some((country, rest)) = identifier
        .strip_prefix("PSD")
        .and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    let Some((nca, id)) = rest.split_once('-') else {
        return false;
    };
    is_authority(country, nca)
        && !id.is_empty()
        && id.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// A country of two letters and an authority of two to eight. `EU` is not a country of ISO 3166-1.
pub(crate) fn is_authority(country: &str, nca: &str) -> bool {
    let letters = |text: &str| text.bytes().all(|byte| byte.is_ascii_uppercase());
    country.len() == 2
        && letters(country)
        && country != "EU"
        && (2..=8).contains(&nca.len())
        && letters(nca)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities() {
        for good in [
            "PSDNO-FSA-123456",
            "PSDFI-FINFSA-29884997",
            "PSDDE-BAFIN-A B",
        ] {
            assert!(is_psd2_identifier(good), "{good}");
        }
        for bad in [
            "PSDNO-FSA",
            "PSDNO-FSA-",
            "PSDNOR-FSA-1",
            "NTRNO-123456",
            "PSD12-FSA-1",
            "PSDNO-F-1",
            "PSDNO-FIN_FSA-1",
            "PSDEU-NCA-1",
            "",
            "PSDNO-FSA-\u{e6}",
        ] {
            assert!(!is_psd2_identifier(bad), "{bad}");
        }
    }

    #[test]
    fn only_ascii_is_folded() {
        let identity = TppId::parse("\tpsdno-fsa-a1 ").unwrap();
        assert_eq!(identity.as_str(), "PSDNO-FSA-A1");
        for other in [
            "P\u{17f}DNO-FSA-A1",
            "PSDNO-F\u{17f}A-A1",
            "PSDNO-FSA-\u{ff21}1",
            "PSDNO-FSA-A\u{661}",
            "PSDNO-FSA-A1\u{a0}",
            "PSDNO-FSA-A1\u{200b}",
            "PSDNO-FSA-A1\0",
        ] {
            assert_eq!(TppId::parse(other), None, "{other}");
        }
    }
}
