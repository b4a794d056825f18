//! The framing of a chunked body (RFC 9112, section 7.1), read as strictly as the grammar is written.
//!
//! pingora takes an empty line for the last chunk, and accepts white space after a size and any byte in an extension. Another server on
//! the way may read such a body differently, and of an answer a part may be missing. So a request is refused unless its body is exact,
//! and so is an answer of the core. The bytes pass to the HTTP layer unchanged; the result is known when the body has been read, and
//! before its end is used. Deliberately not here: the content.

use super::token::is_token_byte;
use portvakt_base::hex;

/// The most digits of a size.
const MAX_DIGITS: u8 = 16;

/// The most bytes of the extensions of one body, and of its trailer section. No known client sends any.
const MAX_IGNORED: u16 = 1024;

/// The result of the bytes that were read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkedBody {
    /// The body is incomplete.
    #[default]
    Incomplete,
    /// The body is complete and exact, and no byte follows.
    Exact,
    /// The body is complete and exact, and further bytes have arrived after it.
    Followed,
    /// The bytes are no chunked body.
    Malformed,
}

/// A chunked body while it arrives.
#[derive(Debug, Default)]
pub struct ChunkInspector {
    step: Step,
    ignored: u16,
}

/// The meaning of the next byte.
#[derive(Clone, Copy, Debug, Default)]
enum Step {
    /// The first digit of a size.
    #[default]
    Size,
    /// A further digit, or the end of the size.
    Digits {
        size: u64,
        count: u8,
    },
    /// The name of an extension; its first byte if it is empty.
    Extension {
        size: u64,
        is_empty: bool,
    },
    /// The LF after a size.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The CR, then the LF, after the data.
    DataCr,
    DataLf,
    /// The first byte of a line of the trailer section.
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerEnd,
    /// The last LF.
    LastLf,
    Ended(ChunkedBody),
}

impl ChunkInspector {
    /// Takes the next bytes; returns the result so far.
    pub fn take(&mut self, mut bytes: &[u8]) -> ChunkedBody {
        while let Some((byte, rest)) = bytes.split_first() {
            match self.step {
                Step::Data { left } => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let taken = u64::try_from(length).unwrap_or(u64::MAX);
                    self.step = match left.saturating_sub(taken) {
                        0 => Step::DataCr,
                        left => Step::Data { left },
                    };
                    bytes = bytes.get(length..).unwrap_or_default();
                }
                Step::Ended(ChunkedBody::Malformed) => break,
                step => {
                    let next = self.next(step, *byte);
                    self.step = next.unwrap_or(Step::Ended(ChunkedBody::Malformed));
                    bytes = rest;
                }
            }
        }
        self.result()
    }

    /// The result so far.
    pub const fn result(&self) -> ChunkedBody {
        match self.step {
            Step::Ended(body) => body,
            _ => ChunkedBody::Incomplete,
        }
    }

    /// The step after a byte outside the data; `None` if the byte may not stand there.
    fn next(&mut self, step: Step, byte: u8) -> Option<Step> {
        Some(match (step, byte) {
            (Step::Size, _) => Step::Digits {
                size: hex::digit(byte)?.into(),
                count: 1,
            },
            (Step::Digits { size, .. }, b'\r') => Step::SizeEnd { size },
            (Step::Digits { size, .. }, b';') => Step::Extension {
                size,
                is_empty: true,
            },
            (Step::Digits { size, count }, _) if count < MAX_DIGITS => Step::Digits {
                size: size << 4 | u64::from(hex::digit(byte)?),
                count: count.saturating_add(1),
            },
            (
                Step::Extension {
                    size,
                    is_empty: false,
                },
                b'\r',
            ) => Step::SizeEnd { size },
            (Step::Extension { size, is_empty }, b'\t' | b' '..=b'~') if self.ignore() => {
                Step::Extension {
                    size,
                    is_empty: is_empty && matches!(byte, b'\t' | b' '),
                }
            }
            (Step::SizeEnd { size: 0 }, b'\n') => Step::Trailer,
            (Step::SizeEnd { size }, b'\n') => Step::Data { left: size },
            (Step::DataCr, b'\r') => Step::DataLf,
            (Step::DataLf, b'\n') => Step::Size,
            (Step::Trailer, b'\r') => Step::LastLf,
            (Step::Trailer | Step::TrailerName, _) if is_token_byte(byte) && self.ignore() => {
                Step::TrailerName
            }
            (Step::TrailerName, b':') => Step::TrailerValue,
            (Step::TrailerValue, b'\r') => Step::TrailerEnd,
            (Step::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) if self.ignore() => {
                Step::TrailerValue
            }
            (Step::TrailerEnd, b'\n') => Step::Trailer,
            (Step::LastLf, b'\n') => Step::Ended(ChunkedBody::Exact),
            (Step::Ended(ChunkedBody::Exact | ChunkedBody::Followed), _) => {
                Step::Ended(ChunkedBody::Followed)
            }
            _ => return None,
        })
    }

    /// Counts a byte without a meaning here; false beyond the limit.
    const fn ignore(&mut self) -> bool {
        self.ignored = self.ignored.saturating_add(1);
        self.ignored <= MAX_IGNORED
    }
}

impl ChunkedBody {
    /// The result of this number, as an atomic holds it.
    pub const fn of(number: u8) -> Self {
        match number {
            0 => Self::Incomplete,
            1 => Self::Exact,
            2 => Self::Followed,
            _ => Self::Malformed,
        }
    }

    /// The number of the result.
    pub const fn number(self) -> u8 {
        match self {
            Self::Incomplete => 0,
            Self::Exact => 1,
            Self::Followed => 2,
            Self::Malformed => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, whole and byte by byte.
    fn result(bytes: &[u8]) -> ChunkedBody {
        let whole = ChunkInspector::default().take(bytes);
        let mut inspector = ChunkInspector::default();
        let mut last = ChunkedBody::Incomplete;
        for byte in bytes {
            last = inspector.take(&[*byte]);
        }
        assert_eq!(whole, last, "{}", bytes.escape_ascii());
        whole
    }

    #[test]
    fn exact_bodies() {
        for body in [
            "0\r\n\r\n",
            "00\r\n\r\n",
            "2\r\n{}\r\n0\r\n\r\n",
            "A\r\n0123456789\r\n1\r\n\n\r\n0000000000000000\r\n\r\n",
            "2;name\r\n{}\r\n0;a=b;c=\"d e\"\r\n\r\n",
            "2; name\r\n{}\r\n0\r\n\r\n",
            "0\r\nX-Sum: 1\r\nX-Other:\t\u{e6}\r\n\r\n",
        ] {
            assert_eq!(result(body.as_bytes()), ChunkedBody::Exact, "{body:?}");
            let followed = format!("{body}G");
            assert_eq!(result(followed.as_bytes()), ChunkedBody::Followed);
            let begun = &body.as_bytes()[..body.len() - 1];
            assert_eq!(result(begun), ChunkedBody::Incomplete);
        }
    }

    #[test]
    fn bodies_that_two_servers_could_read_in_two_ways() {
        let long = format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(1025));
        for body in [
            "\r\n\r\n",
            "\n",
            "2\r\n{}\r\n\r\n\r\n",
            " 2\r\n{}\r\n0\r\n\r\n",
            "2 \r\n{}\r\n0\r\n\r\n",
            "2 ;a\r\n{}\r\n0\r\n\r\n",
            "2\t\r\n{}\r\n0\r\n\r\n",
            "2;\r\n{}\r\n0\r\n\r\n",
            "2; \r\n{}\r\n0\r\n\r\n",
            "2;a\0b\r\n{}\r\n0\r\n\r\n",
            "2;a\rb\r\n{}\r\n0\r\n\r\n",
            "2;a\n{}\r\n0\r\n\r\n",
            "2;a\u{e6}\r\n{}\r\n0\r\n\r\n",
            "2\n{}\r\n0\r\n\r\n",
            "2\r{}\r\n0\r\n\r\n",
            "2\r\n{}\n0\r\n\r\n",
            "2\r\n{}0\r\n\r\n",
            "2\r\n{}xx0\r\n\r\n",
            "0x2\r\n{}\r\n0\r\n\r\n",
            "+2\r\n{}\r\n0\r\n\r\n",
            "-2\r\n{}\r\n0\r\n\r\n",
            "2.0\r\n{}\r\n0\r\n\r\n",
            "2_\r\n{}\r\n0\r\n\r\n",
            "zz\r\n{}\r\n0\r\n\r\n",
            "00000000000000002\r\n{}\r\n0\r\n\r\n",
            "fffffffffffffffff\r\n",
            "0\r\n\n",
            "0\n\r\n",
            "0\r\nX-Sum : 1\r\n\r\n",
            "0\r\nX-Sum\r\n\r\n",
            "0\r\n: 1\r\n\r\n",
            "0\r\nX-Sum: 1\r\n 2\r\n\r\n",
            "0\r\nX-Sum: 1\n\r\n",
            "0\r\nX-Sum: \0\r\n\r\n",
            "{\"a\":1}",
            &long,
        ] {
            assert_eq!(result(body.as_bytes()), ChunkedBody::Malformed, "{body:?}");
        }
    }
}
