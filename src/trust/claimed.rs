//! The TPPs that a certificate names, whether or not it is valid.
//!
//! They prove nothing, because anybody can make a certificate with any name. So they serve only to refuse more (a TPP that the bank blocks),
//! and to select the checks of the certificate and the signature that are only observed (FWD-6).

use super::{decode, judgement};
use portvakt_interface::TppId;

/// The TPPs that the certificate in a header value names; none if it cannot be read.
pub fn in_header(presented: &[u8]) -> Vec<TppId> {
    decode::decode(presented).map_or_else(|_| Vec::new(), |certificates| of(&certificates.leaf))
}

/// The TPPs that a certificate names in its subject, also where it names several, or where bytes follow it (CRT-4, CRT-10).
pub(super) fn of(der: &[u8]) -> Vec<TppId> {
    let Ok((certificate, _)) = judgement::read(der) else {
        return Vec::new();
    };
    let named = certificate
        .subject()
        .iter_by_oid(&judgement::ORGANIZATION_IDENTIFIER);
    named
        .filter_map(|name| TppId::parse(name.as_str().ok()?))
        .collect()
}
