//! The places of a saved request where the format may show other bytes, and nothing vouches for those that it shows.
//!
//! A signature that verifies with the key of the request's certificate vouches for the parts that it covers, whatever else the request is
//! refused for; a signed digest vouches for the body. Such bytes are those that were sent. Deliberately not here: any verdict.

use super::judge::JudgedRequest;
use crate::{
    admission::Stage,
    interface::headers::{self, Fields, digest, encoded_word, signature::Signature},
    terminal::tame,
    tools::saved::SavedRequest,
    trust::{decode, judgement},
};
use base64::{Engine, engine::general_purpose::STANDARD};

/// The note about the places for which nothing vouches; `None` if there are none.
pub(super) fn note(request: &SavedRequest, judged: &JudgedRequest) -> Option<String> {
    let doubts = &request.doubts;
    let signed = signed_names(request, judged).unwrap_or_default();
    let is_signed = |name: &str| {
        signed
            .iter()
            .any(|listed| listed.eq_ignore_ascii_case(name))
    };
    let mut places = Vec::new();
    if doubts.target && !is_signed("(request-target)") {
        places.push("the request target".to_owned());
    }
    for name in &doubts.headers {
        // The signature does not cover its own header; the check of it does.
        let is_checked =
            *name == headers::SIGNATURE.name.as_str() && judged.record.holds(Stage::Signature);
        if !is_checked && !is_signed(name) {
            let known = headers::find(name).map_or(name.as_str(), |header| header.written);
            places.push(tame(known));
        }
    }
    if doubts.body && !(is_signed(headers::DIGEST.name.as_str()) && is_digested(request)) {
        places.push("the body".to_owned());
    }
    (!places.is_empty()).then(|| {
        format!(
            "{}. Nothing vouches for {}: the gateway may have decided otherwise",
            doubts.why,
            places.join(", ")
        )
    })
}

/// The names of the signed headers, if the signature verifies with the key of the request's certificate.
fn signed_names(request: &SavedRequest, judged: &JudgedRequest) -> Option<Vec<String>> {
    let fields = Fields::of(&request.headers);
    let shown = headers::TPP_SIGNATURE_CERTIFICATE.get(&fields)?;
    let presented = decode::decode(headers::trim(shown.as_bytes())).ok()?;
    let (certificate, _) = judgement::read(&presented.leaf).ok()?;
    let key = judgement::signing_key(&certificate).ok()?;
    let value = headers::SIGNATURE.get(&fields)?;
    let value = encoded_word::decode(value.as_bytes()).ok()?;
    let signature = Signature::parse(&value).ok()?;
    let bytes = STANDARD.decode(signature.signature).ok()?;
    key.verify_sig(judged.signing_string.as_deref()?, &bytes)
        .ok()?;
    Some(signature.headers.into_iter().map(str::to_owned).collect())
}

fn is_digested(request: &SavedRequest) -> bool {
    let digest = request.headers.get(&headers::DIGEST.name);
    digest.is_some_and(|digest| {
        digest::check(headers::trim(digest.as_bytes()), &request.body).is_ok()
    })
}
