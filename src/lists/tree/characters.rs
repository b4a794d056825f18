//! The characters of XML 1.0: which may stand in a document, in a name, and for what a reference stands.

use std::borrow::Cow;

/// Whether XML 1.0 allows the character in a document (production 2).
pub(crate) const fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// White space (production 3).
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether it is a name without a colon. Only ASCII: the names of the lists' schemas have nothing else, and so no two names look alike.
pub(crate) fn is_name(name: &str) -> bool {
    let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_part = |byte: u8| is_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    name.bytes().next().is_some_and(is_start) && name.bytes().all(is_part)
}

/// The character that a reference stands for, without its `&` and `;`. No entity but the five of XML exists, since there is no DTD.
pub(crate) fn resolve(reference: &str) -> Option<char> {
    let character = match reference {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => char::from_u32(code(reference.strip_prefix('#')?)?)?,
    };
    is_allowed(character).then_some(character)
}

/// The number of a character reference: decimal digits, or `x` and hexadecimal ones.
fn code(digits: &str) -> Option<u32> {
    let (digits, radix) = match digits.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    // The standard library takes a sign too.
    let are_digits = digits.chars().all(|digit| digit.is_digit(radix));
    u32::from_str_radix(digits, radix)
        .ok()
        .filter(|_| are_digits)
}

/// Makes every end of a line a line feed (XML 1.0, 2.11).
pub(crate) fn normalise_lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The value of an attribute between its quotes, normalised (XML 1.0, 3.3.3, CDATA): white space becomes spaces, references characters.
/// `None` if nothing is changed.
///
/// # Errors
/// A `<`, or a reference that does not exist.
pub(crate) fn normalise_value(raw: &str) -> Result<Option<String>, &'static str> {
    if raw.contains('<') {
        return Err("a `<` in the value of an attribute");
    }
    if !raw.contains(['&', '\t', '\n', '\r']) {
        return Ok(None);
    }
    let mut value = String::with_capacity(raw.len());
    let lines = normalise_lines(raw);
    let mut parts = lines.split('&');
    push_spaced(&mut value, parts.next().unwrap_or_default());
    for part in parts {
        let resolved = part
            .split_once(';')
            .and_then(|(reference, rest)| Some((resolve(reference)?, rest)));
        let (character, rest) = resolved.ok_or("an unknown entity in the value of an attribute")?;
        value.push(character);
        push_spaced(&mut value, rest);
    }
    Ok(Some(value))
}

/// Appends text whose white space has become spaces.
fn push_spaced(value: &mut String, text: &str) {
    value.extend(text.chars().map(|character| match character {
        '\t' | '\n' => ' ',
        other => other,
    }));
}
