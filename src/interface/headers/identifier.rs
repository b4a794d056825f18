//! `X-Request-ID` and `TPP-Session-ID` (HDR-7): 1 to 128 visible ASCII characters. The interface says string, not UUID.

/// HDR-7.
pub const MAX_LENGTH: usize = 128;

/// What passes, for a fault.
pub const EXPECTED: &str = "it must be 1 to 128 visible ASCII characters without a space";

/// Whether a value has the form of an identifier.
pub fn is_valid(value: &[u8]) -> bool {
    (1..=MAX_LENGTH).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        assert!(EXPECTED.contains(&format!("1 to {MAX_LENGTH} ")));
        assert!(
            is_valid(b"a")
                && is_valid(&[b'~'; 128])
                && is_valid(b"0192f0c1-5a5b-7def-8000-1234567890ab")
        );
        assert!(
            !is_valid(b"")
                && !is_valid(&[b'a'; 129])
                && !is_valid(b"a b")
                && !is_valid("ø".as_bytes())
                && !is_valid(b"\x7f")
        );
    }
}
