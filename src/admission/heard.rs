//! A request whose sender is known: certificate, signature and digest hold. What it says of the PSU, read from its head.
//!
//! The envelope has judged the form of every header that is read here.

use super::{Asked, Head, Snapshot};
use crate::clock::Timestamp;
use crate::interface::{
    headers::{self, Header, uuid_form},
    operations::{Operation, Takes},
    path::Target,
};
use std::borrow::Cow;

/// A request of a TPP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    pub(super) head: &'a Head<'a>,
    pub(super) operation: &'a Operation,
    pub(super) target: Target<'a>,
    /// The ids in its path, decoded: what is consented to and counted.
    pub(super) ids: &'a [Cow<'a, str>],
    pub(super) asked: Option<&'a Asked>,
    /// The Date header, where it held when the head was judged.
    pub(super) date: Option<Timestamp>,
    /// The TPP's identity (CRT-4).
    pub(super) tpp: &'a str,
    /// The TPP's name, as its certificate has it.
    pub(super) tpp_name: &'a str,
    pub(super) world: &'a Snapshot,
}

impl<'a> Heard<'a> {
    /// PSU-ID.
    pub(super) fn psu(&self) -> Option<u128> {
        self.uuid(&headers::PSU_ID)
    }

    /// Whether the TPP says that the PSU is present.
    pub(super) fn says_psu_present(&self) -> bool {
        self.get(&headers::PSU_IP_ADDRESS).is_some()
    }

    /// A filled header that the operation takes (HDR-3), without white space around it.
    pub(super) fn get(&self, header: &Header) -> Option<&'a [u8]> {
        let taken = self.operation.takes == Takes::Whole;
        let value = taken.then(|| header.get_filled(&self.head.fields))??;
        Some(headers::trim(value.as_bytes()))
    }

    /// A header that holds a UUID.
    pub(super) fn uuid(&self, header: &Header) -> Option<u128> {
        self.get(header).and_then(uuid_form::parse)
    }
}
