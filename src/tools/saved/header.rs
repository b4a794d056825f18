//! One header of a saved head.

use super::fault::SavedFault;
use http::{HeaderName, HeaderValue};

/// Parses a header. `line` is its position, for the fault.
pub(super) fn header(
    name: &[u8],
    value: &[u8],
    line: usize,
) -> Result<(HeaderName, HeaderValue), SavedFault> {
    let fault = |why| SavedFault::Header { line, why };
    if name.ends_with(b" ") || name.ends_with(b"\t") {
        return Err(fault("white space stands before the colon"));
    }
    let name = HeaderName::from_bytes(name)
        .map_err(|_| fault("its name is not one that a header can have"))?;
    let value = HeaderValue::from_bytes(crate::interface::headers::trim(value))
        .map_err(|_| fault("its value holds a control character"))?;
    Ok((name, value))
}
