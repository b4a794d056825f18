//! A whole body, from its first byte to its last.

use super::{
    json::{JsonReader, Malformed},
    odd::Oddities,
};

/// Reads a whole body by `value`. Gives its oddities too.
pub(super) fn read<'a, T>(
    text: &'a str,
    value: impl FnOnce(&mut JsonReader<'a>) -> Result<T, Malformed>,
) -> Result<(T, Oddities), Malformed> {
    let mut reader = JsonReader::new(text);
    reader.start()?;
    let value = value(&mut reader)?;
    Ok((value, reader.end()?))
}
