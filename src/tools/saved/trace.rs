//! The output of curl's `--trace-ascii`, and of `--trace`.
//!
//! `--trace-ascii` writes rows of up to 64 bytes with their offset in hexadecimal, ends a row at CRLF and omits both bytes;
//! bytes outside printable ASCII become dots. The offsets therefore restore every CRLF, but dots cannot be restored: they are doubts.
//! `--trace` writes every byte in hexadecimal without loss.

use super::{SavedFault, SavedRequest, choice::choose, doubts::Doubts, raw};
use crate::hex;

/// A row: its offset and text.
type Row<'a> = (usize, &'a [u8]);

/// A block that curl sent at once.
#[derive(Default)]
struct Block<'a> {
    is_head: bool,
    /// The length in the block's first line.
    length: usize,
    rows: Vec<Row<'a>>,
}

/// Whether the input is a trace: curl's own lines begin with an arrow or `==`, after a time if `--trace-time` was given.
pub(super) fn is_trace(input: &[u8]) -> bool {
    lines(input)
        .take(200)
        .any(|line| sent(line).is_some() || line.starts_with(b"== Info: "))
}

pub(super) fn request(input: &[u8], entry: Option<usize>) -> Result<SavedRequest, SavedFault> {
    let mut requests: Vec<Vec<Block<'_>>> = Vec::new();
    for block in blocks(input) {
        match requests.last_mut() {
            Some(request) if !block.is_head => request.push(block),
            _ if block.is_head && !block.rows.is_empty() => requests.push(vec![block]),
            _ => {}
        }
    }
    let is_signed = |request: &Vec<Block<'_>>| request.first().is_some_and(is_signed);
    let (chosen, note) = choose(requests, entry, is_signed)?;
    let mut notes = Vec::from_iter(note);
    let mut bytes = Vec::new();
    let mut head_length = 0;
    let mut exact = true;
    for block in &chosen {
        exact &= assemble(block, &mut bytes, &mut notes);
        if block.is_head {
            head_length = bytes.len();
        }
    }
    let mut request = raw::request(&bytes, raw::InputOrigin::Record)?;
    notes.append(&mut request.notes);
    request.form = "curl --trace";
    request.notes = notes;
    if !exact {
        request.form = "curl --trace-ascii";
        let (head, body) = bytes.split_at_checked(head_length).unwrap_or((&bytes, &[]));
        let own: Vec<&[u8]> = lines(input).filter_map(own_line).collect();
        request.doubts = Doubts::of_dots(head, body, &own);
    }
    Ok(request)
}

fn lines(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// The text of curl's own lines, `== Info: …`, behind a time or ids.
fn own_line(line: &[u8]) -> Option<&[u8]> {
    let mark = memchr::memmem::find(line, b"== Info: ").filter(|at| *at <= 40)?;
    line.get(mark..)
}

/// `=> Send header, 123 bytes (0x7b)` or `=> Send data, …`: whether the block is a head, and its length. A time (`--trace-time`)
/// or ids (`--trace-ids`) may precede it.
fn sent(line: &[u8]) -> Option<(bool, usize)> {
    let arrow = memchr::memmem::find(line, b"=> Send ").filter(|at| *at <= 40)?;
    if row(line).is_some() {
        return None;
    }
    let rest = line.get(arrow..)?.strip_prefix(b"=> Send ")?;
    let (is_head, rest) = match rest.strip_prefix(b"header, ") {
        Some(rest) => (true, rest),
        None => (false, rest.strip_prefix(b"data, ")?),
    };
    let digits = rest.split(|byte| *byte == b' ').next()?;
    Some((is_head, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// Parses `0010: text`. An editor may have removed the space of an empty row.
fn row(line: &[u8]) -> Option<Row<'_>> {
    let colon = memchr::memchr(b':', line).filter(|at| (4..=8).contains(at))?;
    let (offset, text) = line.split_at_checked(colon)?;
    let offset = usize::try_from(hex::number(offset)?).ok()?;
    match text {
        [b':'] => Some((offset, &[])),
        [b':', b' ', text @ ..] => Some((offset, text)),
        _ => None,
    }
}

fn blocks(input: &[u8]) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut inside = false;
    for line in lines(input) {
        if let Some((is_head, length)) = sent(line) {
            inside = true;
            blocks.push(Block {
                is_head,
                length,
                rows: Vec::new(),
            });
        } else if let Some(row) = row(line).filter(|_| inside)
            && let Some(block) = blocks.last_mut()
        {
            block.rows.push(row);
        } else {
            inside = false;
        }
    }
    blocks
}

/// Joins the bytes of a block. Also returns whether they are exact, as in `--trace`.
fn assemble(block: &Block<'_>, bytes: &mut Vec<u8>, notes: &mut Vec<String>) -> bool {
    if let Some(hex) = block
        .rows
        .iter()
        .map(|(_, text)| hex_row(text))
        .collect::<Option<Vec<_>>>()
        .filter(|rows| !rows.is_empty())
    {
        bytes.extend(hex.into_iter().flatten());
        return true;
    }
    let start = bytes.len();
    let mut sound = true;
    let ends = block.rows.iter().skip(1).map(|(offset, _)| *offset);
    for ((offset, text), end) in block.rows.iter().zip(ends.chain([block.length])) {
        bytes.extend_from_slice(text);
        match end.checked_sub(offset.saturating_add(text.len())) {
            Some(0) => {}
            Some(2) => bytes.extend_from_slice(b"\r\n"),
            // Editors remove spaces at the end of a row.
            Some(gap @ (1 | 3..=64)) => {
                sound = false;
                let (spaces, end) = if gap == 1 {
                    (1, &b""[..])
                } else {
                    (gap.saturating_sub(2), &b"\r\n"[..])
                };
                bytes.extend(std::iter::repeat_n(b' ', spaces));
                bytes.extend_from_slice(end);
            }
            _ => sound = false,
        }
    }
    if !sound || bytes.len().saturating_sub(start) != block.length {
        let kind = if block.is_head { "header" } else { "data" };
        notes.push(format!(
            "the rows below `Send {kind}` do not add up to its {} bytes: the trace was changed after curl wrote it; gaps are read as spaces",
            block.length
        ));
    }
    false
}

/// `47 45 54 …` and the text beside it, as `--trace` writes: sixteen columns of three characters.
fn hex_row(text: &[u8]) -> Option<Vec<u8>> {
    const COLUMNS: usize = 48;
    let columns = text.get(..COLUMNS)?;
    let mut bytes = Vec::with_capacity(16);
    for column in columns.chunks(3) {
        match column {
            b"   " => {}
            [high, low, b' '] => bytes.push(hex::byte(*high, *low)?),
            _ => return None,
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

fn is_signed(head: &Block<'_>) -> bool {
    let mut bytes = Vec::new();
    assemble(head, &mut bytes, &mut Vec::new());
    memchr::memmem::find(&bytes.to_ascii_lowercase(), b"\r\nsignature:").is_some()
}
