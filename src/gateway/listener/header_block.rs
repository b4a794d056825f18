//! Parses the header blocks of one HTTP/2 connection (HPACK, RFC 7541) by the lengths of their fields.
//!
//! The HTTP/2 library cuts a `:path` off at `#` before the gateway sees it, so the gateway would not check the path that was sent
//! (HTTP-7). Here, each `#` in a value of `:path` becomes `>`, in place: both have Huffman codes of 12 bits, and no path and no
//! query may contain `>`, so the library refuses the request and resets its stream. A value that enters the dynamic table enters
//! it changed, and is refused wherever an index refers to it later.
//!
//! Invariant: only the last bit of a coded `#`, or the one byte of a plain `#`, is changed, so lengths and the decoder's state
//! stay in step with the client's encoder. Deliberately not here: decoding. Only values of `:path` that may contain a `#` are
//! examined bit by bit.

/// RFC 7541, appendix A: the two entries of the static table with the name `:path`.
const STATIC_PATHS: std::ops::RangeInclusive<u32> = 4..=5;

/// The entries of the static table with pseudo-header names.
const STATIC_PSEUDO: std::ops::RangeInclusive<u32> = 1..=14;

/// The first index of a dynamic entry.
const FIRST_DYNAMIC: u32 = 62;

/// An integer ends with its fifth byte at the latest: the library rejects longer ones.
const LAST_SHIFT: u32 = 21;

/// The Huffman code of `#`, and its length in bits. The code of `>` differs in the last bit.
const HASH: u32 = 0xffa;
const HASH_BITS: u32 = 12;

/// RFC 7541, appendix B: for each code length in bits, the first longer code, left-aligned in 32 bits. The code is canonical, so
/// these limits determine the length of a code. A code that is not below any of them has 30 bits.
const CODE_LIMITS: [(u32, u32); 20] = [
    (0x5000_0000, 5),
    (0xb800_0000, 6),
    (0xf800_0000, 7),
    (0xfe00_0000, 8),
    (0xff40_0000, 10),
    (0xffa0_0000, 11),
    (0xffc0_0000, 12),
    (0xfff0_0000, 13),
    (0xfff8_0000, 14),
    (0xfffe_0000, 15),
    (0xfffe_6000, 19),
    (0xfffe_e000, 20),
    (0xffff_4800, 21),
    (0xffff_b000, 22),
    (0xffff_ea00, 23),
    (0xffff_f600, 24),
    (0xffff_f800, 25),
    (0xffff_fbc0, 26),
    (0xffff_fe20, 27),
    (0xffff_fff0, 28),
];

/// The reason why a block cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockFault {
    /// The block is not valid HPACK: the library would end the connection.
    NotHpack,
    /// A trailer section contains a pseudo-header (RFC 9113, section 8.1).
    PseudoInTrailers,
}

/// The successive header blocks of one connection.
#[derive(Debug, Default)]
pub(super) struct HeaderBlocks {
    step: Step,
    codes: Codes,
    /// Whether a `:path` is in the dynamic table: an index may refer to it from now on.
    path_is_indexed: bool,
    in_trailers: bool,
    /// The fields of the current block, changes of the table's size included.
    fields: u32,
}

/// The meaning of the next byte.
#[derive(Clone, Copy, Debug, Default)]
enum Step {
    /// The first byte of a field.
    #[default]
    Field,
    /// A further byte of an integer.
    Integer { of: Integer, value: u32, shift: u32 },
    /// The first byte of a string's length.
    Length(StringRole),
    /// A byte of a string.
    Text(Text),
}

/// The meaning of an integer.
#[derive(Clone, Copy, Debug)]
enum Integer {
    /// The index of a complete field, or the size of the table: ignored.
    Other,
    /// The index of a literal field's name.
    NameIndex { inserts: bool },
    /// The length of a string.
    Length { text: StringRole, is_huffman: bool },
}

/// The rest of a string.
#[derive(Clone, Copy, Debug)]
struct Text {
    kind: StringRole,
    left: u32,
    is_huffman: bool,
    begun: bool,
}

/// The role of a string.
#[derive(Clone, Copy, Debug)]
enum StringRole {
    /// A name, classified by its first byte.
    Name {
        inserts: bool,
        named: Named,
    },
    Value(Named),
}

/// The name of a value's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// `:path`, or another pseudo-header name: none of their values may contain `#`.
    Path,
    /// Referenced by a dynamic entry, while one of the entries is a `:path`: the value decides.
    ByIndex,
    Otherwise,
}

impl HeaderBlocks {
    /// Begins another block.
    pub(super) const fn begin(&mut self, in_trailers: bool) {
        self.step = Step::Field;
        self.in_trailers = in_trailers;
        self.fields = 0;
    }

    /// The number of fields of the current block, so far.
    pub(super) const fn fields(&self) -> u32 {
        self.fields
    }

    /// Parses the next part of a block, and changes each `#` of a path in it.
    pub(super) fn walk(&mut self, mut rest: &mut [u8]) -> Result<(), BlockFault> {
        while !rest.is_empty() {
            if let Step::Text(string) = self.step {
                let length = usize::try_from(string.left).unwrap_or(usize::MAX);
                let length = length.min(rest.len());
                let Some((bytes, after)) = rest.split_at_mut_checked(length) else {
                    return Ok(());
                };
                self.step = self.text(string, bytes)?;
                rest = after;
                continue;
            }
            let Some((byte, after)) = rest.split_first_mut() else {
                return Ok(());
            };
            self.step = match self.step {
                Step::Integer { of, value, shift } => self.integer(of, value, shift, *byte)?,
                Step::Length(text) => {
                    let is_huffman = *byte & 0x80 != 0;
                    self.prefix(Integer::Length { text, is_huffman }, *byte, 0x7f)?
                }
                Step::Field | Step::Text(_) => self.field(*byte)?,
            };
            rest = after;
        }
        Ok(())
    }

    /// Parses a field's first byte (RFC 7541, section 6).
    fn field(&mut self, byte: u8) -> Result<Step, BlockFault> {
        self.fields = self.fields.saturating_add(1);
        match byte {
            0x80.. => {
                if self.in_trailers && STATIC_PSEUDO.contains(&u32::from(byte & 0x7f)) {
                    return Err(BlockFault::PseudoInTrailers);
                }
                self.prefix(Integer::Other, byte, 0x7f)
            }
            0x40.. => self.prefix(Integer::NameIndex { inserts: true }, byte, 0x3f),
            0x20.. => self.prefix(Integer::Other, byte, 0x1f),
            _ => self.prefix(Integer::NameIndex { inserts: false }, byte, 0x0f),
        }
    }

    /// Parses an integer's first byte (RFC 7541, section 5.1).
    fn prefix(&mut self, of: Integer, byte: u8, mask: u8) -> Result<Step, BlockFault> {
        let value = u32::from(byte & mask);
        if byte & mask == mask {
            return Ok(Step::Integer {
                of,
                value,
                shift: 0,
            });
        }
        self.is(of, value)
    }

    fn integer(
        &mut self,
        of: Integer,
        value: u32,
        shift: u32,
        byte: u8,
    ) -> Result<Step, BlockFault> {
        if shift > LAST_SHIFT {
            return Err(BlockFault::NotHpack);
        }
        // At most 28 bits and a prefix: no overflow.
        let value = value.saturating_add(u32::from(byte & 0x7f) << shift);
        if byte & 0x80 != 0 {
            return Ok(Step::Integer {
                of,
                value,
                shift: shift.saturating_add(7),
            });
        }
        self.is(of, value)
    }

    /// Handles a complete integer.
    fn is(&mut self, of: Integer, value: u32) -> Result<Step, BlockFault> {
        match of {
            Integer::Other => Ok(Step::Field),
            Integer::NameIndex { inserts } => {
                if self.in_trailers && STATIC_PSEUDO.contains(&value) {
                    return Err(BlockFault::PseudoInTrailers);
                }
                let named = match value {
                    0 => {
                        let named = Named::Otherwise;
                        return Ok(Step::Length(StringRole::Name { inserts, named }));
                    }
                    _ if STATIC_PATHS.contains(&value) => Named::Path,
                    FIRST_DYNAMIC.. if self.path_is_indexed => Named::ByIndex,
                    _ => Named::Otherwise,
                };
                Ok(self.value_of(named, inserts))
            }
            Integer::Length { text, is_huffman } => Ok(match value {
                0 => self.after(text),
                left => Step::Text(Text {
                    kind: text,
                    left,
                    is_huffman,
                    begun: false,
                }),
            }),
        }
    }

    /// The step for the value of a field.
    fn value_of(&mut self, named: Named, inserts: bool) -> Step {
        self.path_is_indexed |= inserts && named == Named::Path;
        Step::Length(StringRole::Value(named))
    }

    /// The step after a string.
    fn after(&mut self, kind: StringRole) -> Step {
        match kind {
            StringRole::Name { inserts, named } => self.value_of(named, inserts),
            StringRole::Value(_) => Step::Field,
        }
    }

    /// Handles the next bytes of a string.
    fn text(&mut self, mut text: Text, bytes: &mut [u8]) -> Result<Step, BlockFault> {
        let is_first = !text.begun;
        if let Some(first) = bytes.first().filter(|_| is_first) {
            text.kind = text.kind.told_by(*first, text.is_huffman);
            if self.in_trailers
                && matches!(
                    text.kind,
                    StringRole::Name {
                        named: Named::Path,
                        ..
                    }
                )
            {
                return Err(BlockFault::PseudoInTrailers);
            }
        }
        let read = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        text.left = text.left.saturating_sub(read);
        text.begun = true;
        if let StringRole::Value(Named::Path) = text.kind {
            let is_whole = is_first && text.left == 0;
            if is_first {
                self.codes = Codes::default();
            }
            match text.is_huffman {
                true if is_whole && !may_hold_hash(bytes) => {}
                true => self.codes.replace_hashes(bytes),
                false => replace_hashes(bytes),
            }
        }
        Ok(match text.left {
            0 => self.after(text.kind),
            _ => Step::Text(text),
        })
    }
}

impl StringRole {
    /// Classifies a string by its first byte.
    fn told_by(self, first: u8, is_huffman: bool) -> Self {
        let is = |plain: u8, code: u8, bits: u32| match is_huffman {
            true => first >> 8_u32.saturating_sub(bits) == code,
            false => first == plain,
        };
        match self {
            // Each pseudo-header name counts as `:path` here: the values of the others may not contain `#` either.
            Self::Name { inserts, .. } if is(b':', 0x5c, 7) => Self::Name {
                inserts,
                named: Named::Path,
            },
            // A path begins with `/`. The codes of `#` and `?` begin with ones, unlike those of every letter and digit.
            Self::Value(Named::ByIndex) => {
                let odd = first == b'#' || first == b'?' || (is_huffman && first >= 0xfe);
                Self::Value(match is(b'/', 0x18, 6) || odd {
                    true => Named::Path,
                    false => Named::Otherwise,
                })
            }
            kind => kind,
        }
    }
}

/// Changes each `#` of a value without Huffman coding.
fn replace_hashes(bytes: &mut [u8]) {
    if memchr::memchr(b'#', bytes).is_none() {
        return;
    }
    for byte in bytes.iter_mut().filter(|byte| **byte == b'#') {
        *byte = b'>';
    }
}

/// Whether a complete value may contain the code of `#`, which begins with nine ones, unlike most others.
fn may_hold_hash(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| match pair {
        [one, other] => one.trailing_ones().saturating_add(other.leading_ones()) >= 9,
        _ => false,
    })
}

/// A Huffman-coded value, decoded code by code.
#[derive(Debug, Default)]
struct Codes {
    /// The bits of the incomplete code, right-aligned.
    bits: u64,
    count: u32,
}

impl Codes {
    /// Changes each `#` whose code ends in these bytes; its last bit is then in them.
    fn replace_hashes(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.bits = self.bits << 8 | u64::from(*byte);
            self.count = self.count.saturating_add(8);
            while let Some((code, length)) = self.first() {
                self.count = self.count.saturating_sub(length);
                if length == HASH_BITS && code == HASH {
                    // At most seven bits follow it in this byte.
                    *byte |= 1_u8.checked_shl(self.count).unwrap_or_default();
                }
                self.bits &= (1_u64 << self.count).wrapping_sub(1);
            }
        }
    }

    /// The first code and its length in bits, if it is complete; at most 29 bits and a byte are pending.
    fn first(&self) -> Option<(u32, u32)> {
        let left = 32_u32.saturating_sub(self.count);
        let over = self.count.saturating_sub(32);
        let top = u32::try_from(self.bits >> over << left).ok()?;
        let limit = CODE_LIMITS.iter().find(|(limit, _)| top < *limit);
        let length = limit.map_or(30, |(_, length)| *length);
        (length <= self.count).then(|| (top >> 32_u32.saturating_sub(length), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of RFC 7541, appendix B, that the tests need: their length and code.
    fn code(byte: u8) -> (u32, u32) {
        match byte {
            b'/' => (0x18, 6),
            b':' => (0x5c, 7),
            b'#' => (0xffa, 12),
            b'>' => (0xffb, 12),
            b'?' => (0x3fc, 10),
            b'=' => (0x20, 6),
            b'a' => (0x3, 5),
            b'h' => (0x27, 6),
            b'p' => (0x2b, 6),
            b't' => (0x9, 5),
            b'v' => (0x77, 7),
            b'1' => (0x1, 5),
            b'x' => (0x79, 7),
            b'~' => (0x1ffd, 13),
            b'|' => (0x7fc, 11),
            b'{' => (0x7ffe, 15),
            b'\\' => (0x7fff0, 19),
            0xff => (0x3ff_ffee, 26),
            b'\n' => (0x3fff_fffc, 30),
            _ => panic!("{byte}"),
        }
    }

    fn huffman(text: &[u8]) -> Vec<u8> {
        let mut bits: Vec<bool> = Vec::new();
        for byte in text {
            let (code, length) = code(*byte);
            bits.extend((0..length).rev().map(|at| code >> at & 1 == 1));
        }
        while !bits.len().is_multiple_of(8) {
            bits.push(true);
        }
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    }

    fn string(text: &[u8], is_huffman: bool) -> Vec<u8> {
        let coded = if is_huffman {
            huffman(text)
        } else {
            text.to_vec()
        };
        let mark = if is_huffman { 0x80 } else { 0 };
        let length = coded.len();
        let mut bytes = match u8::try_from(length) {
            Ok(short @ 0..0x7f) => vec![mark | short],
            _ => vec![
                mark | 0x7f,
                u8::try_from((length - 0x7f) & 0x7f).unwrap() | 0x80,
                u8::try_from((length - 0x7f) >> 7).unwrap(),
            ],
        };
        bytes.extend(coded);
        bytes
    }

    /// Parses a block whole, cut in two at each position, and byte by byte.
    fn walked(blocks: &[&[u8]]) -> Vec<Vec<u8>> {
        let last = blocks.last().unwrap();
        let cuts = (0..=last.len()).map(|cut| vec![cut, last.len() - cut]);
        let each = std::iter::once(vec![1; last.len()]);
        let mut seen = Vec::new();
        for cut in cuts.chain(each) {
            let mut walker = HeaderBlocks::default();
            for block in blocks.iter().take(blocks.len() - 1) {
                walker.begin(false);
                walker.walk(&mut block.to_vec()).unwrap();
            }
            walker.begin(false);
            let mut whole = last.to_vec();
            let mut rest = whole.as_mut_slice();
            for length in cut {
                let (part, after) = rest.split_at_mut(length);
                walker.walk(part).unwrap();
                rest = after;
            }
            assert!(matches!(walker.step, Step::Field), "{:?}", walker.step);
            seen.push(whole);
        }
        seen.dedup();
        assert_eq!(
            seen.len(),
            1,
            "the result depends on where the block is cut"
        );
        seen
    }

    fn becomes(blocks: &[&[u8]]) -> Vec<u8> {
        walked(blocks).remove(0)
    }

    #[test]
    fn hashes_of_paths() {
        let long = [b"/".as_slice(), &[b'a'; 300]].concat();
        for is_huffman in [false, true] {
            for (path, expected) in [
                (b"/v1#a".as_slice(), b"/v1>a".as_slice()),
                (b"#", b">"),
                (b"/v1?a=1#x#", b"/v1?a=1>x>"),
                (b"/##", b"/>>"),
                (b"/\xff#\n#", b"/\xff>\n>"),
                (b"/~|{\\?>", b"/~|{\\?>"),
                (b"/v1?a=1", b"/v1?a=1"),
                (&long, &long),
                (
                    &[&long, b"#".as_slice()].concat(),
                    &[&long, b">".as_slice()].concat(),
                ),
            ] {
                // By index, with and without indexing, and never indexed; by literal name.
                for name in [
                    vec![0x44],
                    vec![0x04],
                    vec![0x15],
                    [vec![0x40], string(b":path", is_huffman)].concat(),
                    [vec![0x00], string(b":path", is_huffman)].concat(),
                ] {
                    let block =
                        |path| [name.clone(), string(path, is_huffman), vec![0x82]].concat();
                    assert_eq!(becomes(&[&block(path)]), block(expected), "{path:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_path_stays() {
        for is_huffman in [false, true] {
            let value = string(b"/a#", is_huffman);
            for name in [
                // A static name, literal names, the index of an entry that is not a path.
                vec![0x7a],
                vec![0x0f, 0x0a],
                [vec![0x40], string(b"path", is_huffman)].concat(),
                [vec![0x00], string(b"x", is_huffman)].concat(),
                [vec![0x40], string(b"", is_huffman)].concat(),
                vec![0x7e],
            ] {
                let block = [vec![0x3f, 0xe1, 0x1f], name, value.clone(), vec![0xbe]].concat();
                assert_eq!(becomes(&[&block]), block);
            }
        }
    }

    #[test]
    fn names_of_the_dynamic_table() {
        for is_huffman in [false, true] {
            let first = [vec![0x44], string(b"/v1", is_huffman)].concat();
            let later = |path: &[u8]| [vec![0x7e], string(path, is_huffman)].concat();
            for (path, expected) in [
                (b"/v1#".as_slice(), b"/v1>".as_slice()),
                (b"#/v1", b">/v1"),
                (b"?#", b"?>"),
                // The value of another header whose name is indexed; no entry is a path.
                (b"ax#", b"ax#"),
                (b"/v1", b"/v1"),
            ] {
                assert_eq!(
                    becomes(&[&first, &later(path)]),
                    later(expected),
                    "{path:?}"
                );
                // Without a path entry in the table, the name is another one.
                assert_eq!(becomes(&[&later(path)]), later(path));
            }
        }
    }

    #[test]
    fn pseudo_headers_in_trailers() {
        let of = |block: &[u8]| {
            let mut walker = HeaderBlocks::default();
            walker.begin(true);
            walker.walk(&mut block.to_vec())
        };
        let path = string(b":path", true);
        for block in [
            vec![0x82],
            vec![0x88],
            vec![0x41, 0x00],
            vec![0x04, 0x00],
            [vec![0x00], string(b":x", false), vec![0x00]].concat(),
            [vec![0x40], path, vec![0x00]].concat(),
        ] {
            assert_eq!(of(&block), Err(BlockFault::PseudoInTrailers), "{block:?}");
        }
        assert_eq!(
            of(&[&[0x00][..], &string(b"x", true), &[0x00]].concat()),
            Ok(())
        );
    }

    #[test]
    fn integers_that_are_too_long() {
        let mut walker = HeaderBlocks::default();
        let walked = walker.walk(&mut [0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]);
        assert_eq!(walked, Err(BlockFault::NotHpack));
    }
}
