//! A request whose sender is known: certificate, signature and digest hold.

use super::{Snapshot, ValidQuery, envelope::Envelope};
use crate::{
    clock::Timestamp,
    interface::{TppId, operations::Operation, path::Target},
};
use http::Method;
use std::borrow::Cow;

/// A request of a TPP whose certificate, signature and digest hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuthenticatedRequest<'a> {
    pub(super) method: &'a Method,
    /// Its headers, typed.
    pub(super) envelope: &'a Envelope,
    pub(super) operation: &'a Operation,
    pub(super) target: Target<'a>,
    /// The ids in its path, decoded: consent and quota are kept by them.
    pub(super) ids: &'a [Cow<'a, str>],
    pub(super) query: Option<&'a ValidQuery>,
    /// The Date header, where it held when the head was judged.
    pub(super) date: Option<Timestamp>,
    /// The TPP's identity (CRT-4).
    pub(super) tpp: &'a TppId,
    /// The TPP's name, as its certificate has it.
    pub(super) tpp_name: &'a str,
    pub(super) world: &'a Snapshot,
}
