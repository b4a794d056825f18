//! A complete body, from the first byte to the last.

use super::{
    json::{JsonReader, Malformed},
    odd::Oddities,
};

/// Parses a complete body with `value`. Also returns the oddities of the body.
pub(super) fn read<'a, T>(
    text: &'a str,
    value: impl FnOnce(&mut JsonReader<'a>) -> Result<T, Malformed>,
) -> Result<(T, Oddities<'a>), Malformed> {
    let mut reader = JsonReader::new(text);
    reader.start()?;
    let value = value(&mut reader)?;
    Ok((value, reader.end()?))
}
