//! The header that stands where another one is missing and was probably meant by it (ERR-10).
//!
//! Only a request that lacks a header comes here. No value is read, and a name is repeated only if it is close to that of a header of the
//! interface.

use super::super::Head;
use crate::interface::{
    headers::{self, Header},
    similar,
};

/// Headers of other standards, with the header of the interface that has their place.
const OTHERS: [(&str, &Header, &str); 3] = [
    (
        "content-digest",
        &headers::DIGEST,
        "; Content-Digest is of RFC 9530, and this interface has Digest: SHA-256=<base64>",
    ),
    (
        "authorization",
        &headers::SIGNATURE,
        "; the request has Authorization: where the signature stands in it, send it in the header Signature, without the word Signature before keyId",
    ),
    (
        "signature-input",
        &headers::SIGNATURE,
        "; Signature-Input is of RFC 9421, and this interface has the header Signature alone",
    ),
];

/// The text about a header that is missing, with the one that was probably meant.
pub(super) fn missing(head: &Head<'_>, header: &Header, text: &str) -> String {
    let names = || head.fields.map().keys().map(http::HeaderName::as_str);
    let known = header.name.as_str();
    let alike = names().filter(|name| similar::is_misspelling(name, known));
    let mut unknown = alike.filter(|name| headers::find(name).is_none());
    if let Some(found) = unknown.next() {
        let written = header.written;
        let is_signed = headers::SIGNED
            .iter()
            .any(|signed| signed.name == header.name);
        let list = match is_signed {
            true => ", and list it in the signature's headers",
            false => "",
        };
        return format!("{text}; the request has {found}: write {written}{list}");
    }
    let mut others = OTHERS
        .iter()
        .filter(|(_, meant, _)| meant.name == header.name);
    match others.find(|(name, ..)| names().any(|found| found == *name)) {
        Some((_, _, hint)) => format!("{text}{hint}"),
        None => text.to_owned(),
    }
}
