//! The forms of the values of `bundle.yaml`, as an import writes them: another value is refused where it is read, so that the fault has its line.

use serde::{Deserialize, Deserializer, de::Error as _};

/// Two capital letters, as lists write countries.
#[derive(Deserialize)]
#[serde(transparent)]
struct Territory(#[serde(deserialize_with = "territory")] String);

/// A country.
pub(super) fn territory<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        true => Ok(text),
        false => Err(D::Error::custom(
            "expected a territory of two capital letters, such as NO, or EU for the list of lists",
        )),
    }
}

/// Countries.
pub(super) fn territories<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let all = Vec::<Territory>::deserialize(from)?;
    Ok(all.into_iter().map(|Territory(text)| text).collect())
}

/// The number of an issue of a list.
pub(super) fn sequence<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        0 => Err(D::Error::custom(
            "expected the sequence number of a list, which is 1 or more",
        )),
        number => Ok(number),
    }
}

/// The version of the format of a list.
pub(super) fn version<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        number @ (5 | 6) => Ok(number),
        _ => Err(D::Error::custom("expected the list version 5 or 6")),
    }
}

/// The end of the document: `true`.
pub(super) mod end {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>((): &(), into: S) -> Result<S::Ok, S::Error> {
        into.serialize_bool(true)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<(), D::Error> {
        match bool::deserialize(from)? {
            true => Ok(()),
            false => Err(D::Error::custom("expected end: true")),
        }
    }
}

/// The SHA-256 of a file or of a certificate.
pub(super) fn sha256<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match text.len() == 64 && text.bytes().all(is_digit) {
        true => Ok(text),
        false => Err(D::Error::custom(
            "expected a SHA-256 of 64 hexadecimal digits, with small letters",
        )),
    }
}

/// Hashes of keys as hexadecimal digits.
pub(super) mod key_hash {
    use crate::KeyHash;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>(
        key: &KeyHash,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(key)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<KeyHash, D::Error> {
        let text = String::deserialize(from)?;
        let found = KeyHash::parse(&text);
        found
            .ok_or_else(|| D::Error::custom("expected the SHA-256 of a key, 64 hexadecimal digits"))
    }
}

/// Times as RFC 3339 in UTC.
pub(super) mod moment {
    use portvakt_base::clock::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>(
        at: &Timestamp,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(at)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Timestamp, D::Error> {
        let text = String::deserialize(from)?;
        let parsed = text.parse::<jiff::Timestamp>().ok();
        let seconds = parsed.and_then(|at| u64::try_from(at.as_second()).ok());
        seconds
            .map(Timestamp::from_unix)
            .ok_or_else(|| D::Error::custom("expected a time in UTC, such as 2026-01-31T12:00:00Z"))
    }
}

/// Times that may be missing.
pub(super) mod optional_moment {
    use portvakt_base::clock::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Moment(#[serde(with = "super::moment")] Timestamp);

    pub(in super::super) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(|at| at.to_string()).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let moment = Option::<Moment>::deserialize(from)?;
        Ok(moment.map(|Moment(at)| at))
    }
}
