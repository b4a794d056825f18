//! `traceparent` (W3C Trace Context, level 1): the place of a request in a trace that spans several systems.
//!
//! Invariant: trace and span are never zero. Deliberately not here: whose header is believed, and `tracestate`, which no system gets.

use http::HeaderValue;
use portvakt_base::hex;
use std::fmt;

/// The length of the header in version 00.
const LENGTH: usize = 55;

/// The flags of a trace that begins here: the sender may have recorded the request. Every request has a line in the access log.
const RECORDED: u8 = 1;

/// The header of another system: its trace, and the span that caused the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace: u128,
    span: u64,
    flags: u8,
}

impl TraceParent {
    /// Reads the header; `None` if it is malformed, as section 3.2 of the standard demands. A later version than 00 may be longer.
    pub fn parse(value: &HeaderValue) -> Option<Self> {
        let (fields, more) = value.as_bytes().split_at_checked(LENGTH)?;
        let mut parts = fields.split(|byte| *byte == b'-');
        let mut part = |length| parts.next().filter(|part| part.len() == length);
        let version = hex::lower_case_number(part(2)?)?;
        let trace = hex::lower_case_number(part(32)?)?;
        let span = u64::try_from(hex::lower_case_number(part(16)?)?).ok()?;
        let flags = u8::try_from(hex::lower_case_number(part(2)?)?).ok()?;
        let is_whole = more.is_empty() || (version != 0 && more.starts_with(b"-"));
        (version != 0xff && is_whole && trace != 0 && span != 0).then_some(Self {
            trace,
            span,
            flags,
        })
    }
}

/// The place of one request in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    flags: u8,
}

impl TraceContext {
    /// A request with this span; it belongs to its parent's trace, or begins `trace`.
    pub fn new(parent: Option<TraceParent>, trace: u128, span: u64) -> Self {
        Self {
            trace: parent.map_or(trace, |parent| parent.trace).max(1),
            span: span.max(1),
            parent: parent.map(|parent| parent.span),
            flags: parent.map_or(RECORDED, |parent| parent.flags),
        }
    }

    /// The trace; never zero.
    pub const fn trace(&self) -> u128 {
        self.trace
    }

    /// The span of this request; never zero.
    pub const fn span(&self) -> u64 {
        self.span
    }

    /// The span that caused the request, if a trusted system named it.
    pub const fn parent(&self) -> Option<u64> {
        self.parent
    }

    /// Whether the trusted system that sent the trace records it; `None` if the trace begins here.
    pub const fn is_sampled_by_parent(&self) -> Option<bool> {
        match self.parent {
            Some(_) => Some(self.flags & RECORDED != 0),
            None => None,
        }
    }

    /// The trace, in 32 hexadecimal digits.
    pub fn trace_id(&self) -> HexadecimalId {
        HexadecimalId::of(self.trace.to_be_bytes())
    }

    /// The span of this request, in 16 hexadecimal digits.
    pub fn span_id(&self) -> HexadecimalId {
        HexadecimalId::of(self.span.to_be_bytes())
    }

    /// The span that caused the request, if a trusted system named it.
    pub fn parent_id(&self) -> Option<HexadecimalId> {
        self.parent
            .map(|parent| HexadecimalId::of(parent.to_be_bytes()))
    }

    /// The header that tells the next system this span.
    pub fn traceparent(&self) -> Option<HeaderValue> {
        let mut text = Vec::with_capacity(LENGTH);
        text.extend_from_slice(b"00-");
        let trace = self.trace.to_be_bytes();
        trace
            .as_chunks()
            .0
            .iter()
            .for_each(|part| text.extend(digits(*part)));
        text.push(b'-');
        let span = self.span.to_be_bytes();
        span.as_chunks()
            .0
            .iter()
            .for_each(|part| text.extend(digits(*part)));
        text.push(b'-');
        text.extend(digits([0, 0, 0, self.flags]).last_chunk::<2>()?);
        HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).ok()
    }
}

/// Eight hexadecimal digits at once, because this runs for each request: each half of a byte gets a byte of its own, and then the
/// distance to its character, which is 39 more for a letter.
fn digits(bytes: [u8; 4]) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut halves = u64::from(u32::from_be_bytes(bytes));
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
    ] {
        halves = (halves | (halves << shift)) & mask;
    }
    let letters = ((halves + 6 * EACH) >> 4) & EACH;
    (halves + u64::from(b'0') * EACH + 39 * letters).to_be_bytes()
}

/// The digits of an id: at most 16 bytes.
pub struct HexadecimalId {
    text: [[u8; 8]; 4],
    length: usize,
}

impl HexadecimalId {
    fn of<const N: usize>(id: [u8; N]) -> Self {
        let mut text = [[0; 8]; 4];
        let parts = id.as_chunks().0;
        for (text, part) in text.iter_mut().zip(parts) {
            *text = digits(*part);
        }
        let length = parts.len().saturating_mul(8);
        Self { text, length }
    }

    /// The digits, in lower case.
    pub fn as_str(&self) -> &str {
        let digits = self.text.as_flattened().get(..self.length);
        str::from_utf8(digits.unwrap_or_default()).unwrap_or_default()
    }
}

impl fmt::Display for HexadecimalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<TraceParent> {
        TraceParent::parse(&HeaderValue::from_str(text).unwrap())
    }

    #[test]
    fn a_trace_goes_on() {
        let written = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let context = TraceContext::new(parse(written), 7, 0xabc);
        assert_eq!(context.parent_id().unwrap().to_string(), "00f067aa0ba902b7");
        assert_eq!(
            context.traceparent().unwrap(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000abc-00"
        );
        assert_eq!(context.is_sampled_by_parent(), Some(false));
        let sampled = TraceContext::new(parse(&written.replace("b7-00", "b7-01")), 7, 0xabc);
        assert_eq!(sampled.is_sampled_by_parent(), Some(true));
        let later = format!("01{}-more", &written[2..]);
        assert_eq!(parse(&later), parse(written));
    }

    #[test]
    fn every_byte_has_its_digits() {
        for byte in 0..=u8::MAX {
            let written = digits([byte, 0, !byte, 0x9a]);
            let expected = format!("{byte:02x}00{:02x}9a", !byte);
            assert_eq!(written, expected.as_bytes());
        }
    }

    #[test]
    fn a_trace_begins() {
        let context = TraceContext::new(None, u128::MAX - 1, 0);
        assert!(context.parent_id().is_none());
        assert_eq!(context.is_sampled_by_parent(), None);
        assert_eq!(context.span_id().to_string(), "0000000000000001");
        assert_eq!(
            context.trace_id().to_string(),
            "fffffffffffffffffffffffffffffffe"
        );
        assert_eq!(
            context.traceparent().unwrap(),
            "00-fffffffffffffffffffffffffffffffe-0000000000000001-01"
        );
    }

    #[test]
    fn a_malformed_header_names_no_trace() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert!(parse(good).is_some());
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736000f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
