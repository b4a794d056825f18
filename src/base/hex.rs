//! Bytes and numbers in hexadecimal digits. The standard library reads numbers too, but takes a sign before them.

/// Bytes in lower-case digits, two for each byte.
pub fn encode(bytes: &[u8]) -> String {
    // Digit by digit: formatting each byte costs a refused signature a per cent.
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// The value of a digit, 0 to 15; a letter may have either case.
pub fn digit(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// The byte that two digits write.
pub fn byte(high: u8, low: u8) -> Option<u8> {
    Some(digit(high)? << 4 | digit(low)?)
}

/// The number that 1 to 32 digits write.
pub fn number(digits: &[u8]) -> Option<u128> {
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    let mut digits = digits.iter();
    digits.try_fold(0, |number, byte| {
        Some(number << 4 | u128::from(digit(*byte)?))
    })
}

/// The same, for formats that allow lower-case digits only.
pub fn lower_case_number(digits: &[u8]) -> Option<u128> {
    number(digits).filter(|_| !digits.iter().any(u8::is_ascii_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read() {
        let all: Vec<u8> = (0..=255).collect();
        let written = encode(&all);
        assert!(written.starts_with("000102") && written.ends_with("fdfeff"));
        let (pairs, _) = written.as_bytes().as_chunks::<2>();
        let read: Option<Vec<u8>> = pairs.iter().map(|[high, low]| byte(*high, *low)).collect();
        assert_eq!(read, Some(all));
        assert_eq!(byte(b'F', b'a'), Some(0xfa));
        for not in [b'g', b'/', b':', b'@', b'`', b'+', b' ', 0xb2] {
            assert_eq!((byte(not, b'0'), byte(b'0', not)), (None, None), "{not}");
        }
    }

    #[test]
    fn numbers() {
        for (digits, expected) in [
            ("0", Some(0)),
            ("00ff", Some(255)),
            ("ffffffffffffffffffffffffffffffff", Some(u128::MAX)),
            ("000000000000000000000000000000001", None),
            ("", None),
            ("fF", None),
            ("+1", None),
            ("0x1", None),
        ] {
            assert_eq!(lower_case_number(digits.as_bytes()), expected, "{digits}");
        }
        assert_eq!(number(b"fF"), Some(255));
        assert_eq!(
            (number(b"+1"), number(b"-1"), number(b"")),
            (None, None, None)
        );
    }
}
