//! The description of the interface on the public listener (`listener.description`). A caller needs no signature for it, so the
//! answers to all callers together are limited.

use crate::interface::{Fault, Reason, Refusal, openapi::page::Document};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::{Method, request::Parts};
use std::num::NonZeroU32;

/// The maximum number of answers in a second.
const PER_SECOND: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Finds documents, within the limit.
#[derive(Debug)]
pub(super) struct Descriptions {
    rate: DefaultDirectRateLimiter,
}

/// The answer to a request for an unknown operation.
#[derive(Debug)]
pub(super) enum Found {
    /// A description.
    Document(Document),
    /// A refusal: the limit is reached.
    TooMany,
    /// A refusal: there is no such document.
    Nothing,
}

impl Descriptions {
    pub(super) fn new() -> Self {
        let rate = RateLimiter::direct(Quota::per_second(PER_SECOND));
        Self { rate }
    }

    /// The document that a request asks for.
    pub(super) fn find(&self, head: &Parts, documents: &[Document]) -> Found {
        let reads = head.method == Method::GET || head.method == Method::HEAD;
        let is_asked = |document: &&Document| reads && document.path == head.uri.path();
        match documents.iter().find(is_asked) {
            None => Found::Nothing,
            Some(_) if self.rate.check().is_err() => Found::TooMany,
            Some(document) => Found::Document(document.clone()),
        }
    }
}

/// The refusal where the limit is reached. It does not count as a failure of the gateway; otherwise a caller that reads the description
/// all day would set off an alert.
pub(super) fn too_many() -> Refusal {
    let text = "more descriptions of the interface were asked for than are sent in a second";
    Refusal::from(Fault::request(Reason::RateLimited, text)).retry_after(1)
}
