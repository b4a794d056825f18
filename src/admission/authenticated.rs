//! A request with an authenticated sender: certificate, signature and digest are valid.

use super::{Snapshot, ValidQuery, envelope::Envelope};
use crate::{
    clock::Timestamp,
    interface::{TppId, operations::Operation, path::Target},
};
use http::Method;
use std::borrow::Cow;

/// A request of a TPP whose certificate, signature and digest are valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuthenticatedRequest<'a> {
    pub(super) method: &'a Method,
    /// The parsed headers.
    pub(super) envelope: &'a Envelope,
    pub(super) operation: &'a Operation,
    pub(super) target: Target<'a>,
    /// The decoded ids in the path; they are keys of consents and quotas.
    pub(super) ids: &'a [Cow<'a, str>],
    pub(super) query: Option<&'a ValidQuery>,
    /// The Date header, if it was valid when the head was judged.
    pub(super) date: Option<Timestamp>,
    /// The TPP's identity (CRT-4).
    pub(super) tpp: &'a TppId,
    /// The TPP's name in its certificate.
    pub(super) tpp_name: &'a str,
    pub(super) snapshot: &'a Snapshot,
}
