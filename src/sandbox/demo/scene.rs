//! One scene: a request, how it is altered, and the expected result.
//!
//! Deliberately not here: the scenes themselves (story.rs, flows.rs, refusals.rs), and playing one (play.rs).

use super::answered::Answered;
use super::memory::Memory;
use portvakt::tools::tpp::{SignedRequest, Unsigned};
use std::time::Duration;

/// The expected result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The core sees it, once, and answers with this status.
    Forwarded(u16),
    /// The gateway answers by itself with this status, and the core sees nothing.
    Answered(u16),
    /// The gateway answers with this status and reason, and the core sees nothing.
    Refused(u16, &'static str),
}

/// A request, and its expected result.
#[derive(Debug)]
pub(super) struct Scene {
    /// One line that says what is special about it.
    pub(super) title: &'static str,
    /// Who signs it: the name of a certificate of the development PKI.
    pub(super) signer: &'static str,
    /// The request to sign, built from the story's values so far.
    pub(super) request: fn(&Memory) -> Unsigned,
    /// Whether the previous request is sent again unchanged instead.
    pub(super) again: bool,
    /// The age of the request's Date.
    pub(super) age: Duration,
    /// The change between signing and sending.
    pub(super) meddle: fn(&mut SignedRequest),
    /// The expected result.
    pub(super) expected: Expected,
    /// Checks the answer's further content, which may be stored in the memory.
    pub(super) learn: fn(&Answered, &mut Memory) -> bool,
    /// Whether the report shows the whole request at the core.
    pub(super) shows_core: bool,
}

/// A scene without a fault.
pub(super) fn scene(
    title: &'static str,
    request: fn(&Memory) -> Unsigned,
    expected: Expected,
) -> Scene {
    Scene {
        title,
        signer: "tpp-both",
        request,
        again: false,
        age: Duration::ZERO,
        meddle: |_| {},
        expected,
        learn: |_, _| true,
        shows_core: false,
    }
}
