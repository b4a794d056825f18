//! The subset of DER and PEM that the development PKI needs: writing values, reading an RSA private key.
//!
//! Invariant: nothing here panics; unreadable input gives `None`. Deliberately not a DER library: only definite lengths, one-byte
//! tags, and keys that the developer made.

/// DER of one value: tag, length, content.
pub fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant: Vec<u8> = length
        .iter()
        .copied()
        .skip_while(|byte| *byte == 0)
        .collect();
    let mut out = vec![tag];
    match (significant.as_slice(), u8::try_from(significant.len())) {
        ([], _) => out.push(0),
        ([short], _) if *short < 0x80 => out.push(*short),
        (long, count) => {
            out.push(0x80 | count.unwrap_or(u8::MAX));
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(content);
    out
}

/// DER of a SEQUENCE of values that are DER already.
pub fn der_sequence(values: &[Vec<u8>]) -> Vec<u8> {
    der(0x30, &values.concat())
}

/// DER of an OBJECT IDENTIFIER whose first arc is 0 or 1, or 2 with a second arc below 48.
pub fn der_oid(arcs: &[u64]) -> Vec<u8> {
    let (first, rest) = match arcs {
        [first, second, rest @ ..] => (first * 40 + second, rest),
        _ => (0, arcs),
    };
    der(
        0x06,
        &std::iter::once(first)
            .chain(rest.iter().copied())
            .flat_map(base128)
            .collect::<Vec<u8>>(),
    )
}

/// DER of a UTF8String.
pub fn der_utf8(text: &str) -> Vec<u8> {
    der(0x0c, text.as_bytes())
}

fn base128(arc: u64) -> Vec<u8> {
    let mut groups: Vec<u8> = (0..10)
        .map(|n| u8::try_from((arc >> (7 * n)) & 0x7f).unwrap_or(0))
        .collect();
    while groups.len() > 1 && groups.last() == Some(&0) {
        groups.pop();
    }
    let last = groups.remove(0);
    groups
        .iter()
        .rev()
        .map(|group| group | 0x80)
        .chain([last])
        .collect()
}

/// RSAPublicKey { n, e } of a PEM with an RSA private key, PKCS#8 or PKCS#1.
pub(super) fn rsa_public_key(pem: &str) -> Option<Vec<u8>> {
    let private = pem_content(pem)?;
    // PKCS#8 { version, algorithm, OCTET STRING } wraps the RSAPrivateKey { version, n, e, .. } of PKCS#1.
    match members(&private)? {
        [_, (0x30, _), (_, wrapped)] => match members(wrapped)? {
            [_, (_, modulus), (_, exponent)] => Some(public_key(modulus, exponent)),
        },
        [_, (_, modulus), (_, exponent)] => Some(public_key(modulus, exponent)),
    }
}

fn public_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    der_sequence(&[der(0x02, modulus), der(0x02, exponent)])
}

/// The first three members of a SEQUENCE, each with its tag.
fn members(sequence: &[u8]) -> Option<[(u8, &[u8]); 3]> {
    let (_, content, _) = der_split(sequence)?;
    let (first_tag, first, rest) = der_split(content)?;
    let (second_tag, second, rest) = der_split(rest)?;
    let (third_tag, third, _) = der_split(rest)?;
    Some([(first_tag, first), (second_tag, second), (third_tag, third)])
}

/// Tag, content and rest of the first DER value.
fn der_split(input: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, input) = input.split_first()?;
    let (first, input) = input.split_first()?;
    let (length, input) = match usize::from(*first) {
        short @ 0..0x80 => (short, input),
        long => {
            let (length, input) = input.split_at_checked(long - 0x80)?;
            (
                length.iter().try_fold(0_usize, |sum, byte| {
                    sum.checked_mul(256)?.checked_add(usize::from(*byte))
                })?,
                input,
            )
        }
    };
    let (content, rest) = input.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// The bytes between the first pair of armour lines.
fn pem_content(pem: &str) -> Option<Vec<u8>> {
    let body = pem
        .split_once("-----BEGIN ")?
        .1
        .split_once("-----\n")?
        .1
        .split_once("-----END ")?
        .0;
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for letter in body
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=')
    {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, held) = (((bits << 6) | u32::from(value)) & 0xffff, held + 6);
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    Some(out)
}
