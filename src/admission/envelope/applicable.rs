//! The headers that an operation takes, and the header of a fault.

use crate::interface::{
    Fault, FaultPlace,
    headers::Header,
    operations::{Operation, Takes},
};

/// HDR-3: a header that an operation does not take is dropped, not judged.
pub(super) fn is_taken(operation: &Operation, header: &Header) -> bool {
    operation.takes == Takes::Whole || header.on_sandbox
}

pub(super) fn is_about(fault: &Fault, header: &Header) -> bool {
    fault.place == FaultPlace::Header(header.written)
}
