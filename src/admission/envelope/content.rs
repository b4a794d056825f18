//! The body that the head announces, and Accept (HTTP-4 to HTTP-6).

use super::super::{Announced, Head, Policy};
use crate::interface::{
    Fault, Reason,
    character::OddCharacter,
    headers::{self, accept, content},
    operations::{Body, Operation},
};
use http::HeaderValue;

pub(super) fn judge(
    head: &Head<'_>,
    body: Announced,
    operation: &Operation,
    policy: &Policy,
    faults: &mut Vec<Fault>,
) {
    if body != Announced::Nothing && operation.body != Body::Ignored {
        media_type(head, faults);
    }
    if !accept::allows_json(head.fields.map()) {
        faults.push(Fault::header(
            Reason::NotAcceptable,
            headers::ACCEPT.written,
            "it excludes application/json; accept that or leave it out",
        ));
    }
    if let Announced::Length(length) = body
        && usize::try_from(length).map_or(true, |length| length > policy.body_limit)
    {
        faults.push(too_large(policy));
    }
}

/// HTTP-6; also for a body without an announced length.
pub(in crate::admission) fn too_large(policy: &Policy) -> Fault {
    Fault::body(
        Reason::BodyTooLarge,
        format!("a body may have {} bytes", policy.body_limit),
    )
}

/// HTTP-4.
fn media_type(head: &Head<'_>, faults: &mut Vec<Fault>) {
    let kind = headers::CONTENT_TYPE.get(&head.fields);
    let kind = kind.map(HeaderValue::as_bytes);
    if let Some((kind, Err(text))) = kind.map(|kind| (kind, content::utf8_json(kind))) {
        let is_of_type = |byte: u8| byte.is_ascii();
        let text = match OddCharacter::first(kind, is_of_type) {
            Some(odd) => format!("{odd}; {text}"),
            None => text.to_owned(),
        };
        faults.push(Fault::header(
            Reason::MediaTypeUnsupported,
            headers::CONTENT_TYPE.written,
            text,
        ));
    }
    let coding = headers::CONTENT_ENCODING.get(&head.fields);
    if coding.is_some_and(|coding| !content::is_identity(coding.as_bytes())) {
        let text = "send the body without a content coding";
        faults.push(Fault::header(
            Reason::MediaTypeUnsupported,
            headers::CONTENT_ENCODING.written,
            text,
        ));
    }
}
