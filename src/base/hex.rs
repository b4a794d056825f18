//! Bytes in hexadecimal digits.
//!
//! Deliberately not here: the sizes of chunks and other numbers, which the standard library reads.

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

/// The number that 1 to 32 lower-case digits write: for formats that allow no other digits.
pub fn lower_case_number(digits: &[u8]) -> Option<u128> {
    if digits.is_empty() || digits.len() > 32 {
        return None;
    }
    digits.iter().try_fold(0, |number, byte| {
        let value = digit(*byte).filter(|_| !byte.is_ascii_uppercase())?;
        Some(number << 4 | u128::from(value))
    })
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
    fn numbers_in_lower_case() {
        for (digits, number) in [
            ("0", Some(0)),
            ("00ff", Some(255)),
            ("ffffffffffffffffffffffffffffffff", Some(u128::MAX)),
            ("000000000000000000000000000000001", None),
            ("", None),
            ("fF", None),
            ("+1", None),
            ("0x1", None),
        ] {
            assert_eq!(lower_case_number(digits.as_bytes()), number, "{digits}");
        }
    }
}
