//! Escapes bytes for a terminal, so that different bytes look different.
//!
//! Invariant: the result is printable ASCII, and different byte strings have different results.

use std::fmt::Write;

/// Writes `\r`, `\n`, `\t` and `\\` as escapes, other bytes outside printable ASCII as `\xNN`, and a space before the end or
/// before an invisible byte as `\x20`.
pub(super) fn visible(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        let rest = bytes.get(index..).unwrap_or_default();
        match byte {
            b'\r' => shown.push_str("\\r"),
            b'\n' => shown.push_str("\\n"),
            b'\t' => shown.push_str("\\t"),
            b'\\' => shown.push_str("\\\\"),
            b' ' if ends_line(rest) => shown.push_str("\\x20"),
            b' '..=b'~' => shown.push(char::from(*byte)),
            other => {
                // Writing to a String never fails.
                let _ = write!(shown, "\\x{other:02X}");
            }
        }
    }
    shown
}

fn ends_line(rest: &[u8]) -> bool {
    match rest {
        [b' ', next, ..] => matches!(next, b' ' | b'\r' | b'\n'),
        [b' '] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        let table: [(&[u8], &str); 6] = [
            (b"date: x", "date: x"),
            (b"a\r\nb\tc\n", "a\\r\\nb\\tc\\n"),
            (b"a b \n", "a b\\x20\\n"),
            (b"x ", "x\\x20"),
            ("\u{f8}".as_bytes(), "\\xC3\\xB8"),
            (b"\\n\x00\x1b[0m", "\\\\n\\x00\\x1B[0m"),
        ];
        for (bytes, shown) in table {
            assert_eq!(visible(bytes), shown);
        }
    }
}
