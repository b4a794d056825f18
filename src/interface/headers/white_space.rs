//! White space around a value.

/// A value without the white space around it (RFC 9110, section 5.5: SP and HTAB).
pub fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut rest = value;
    while let [first, tail @ ..] = rest
        && blank(first)
    {
        rest = tail;
    }
    while let [head @ .., last] = rest
        && blank(last)
    {
        rest = head;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_value_does_not_count() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
    }
}
