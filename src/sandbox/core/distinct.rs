//! JSON in which no object has a member twice: two readers could take another one of them.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A JSON object in which no object has a member twice; `None` if this is none.
pub(super) fn object(body: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(body) {
        Ok(Distinct(Value::Object(object))) => Some(object),
        _ => None,
    }
}

/// A JSON value in which no object has a member twice.
struct Distinct(Value);

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(Self)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Distinct(entry)) = entries.next_element()? {
            list.push(entry);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Distinct(value))) = members.next_entry::<String, Distinct>()? {
            if object.insert(name, value).is_some() {
                return Err(A::Error::custom("a member is there twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_that_is_there_twice_is_refused_at_any_depth() {
        let text = br#"{"a": [1, -1, 1.5, true, null, {"b": "\u00e6"}], "c": {"a": {}}}"#;
        let expected = json!({"a": [1, -1, 1.5, true, null, {"b": "æ"}], "c": {"a": {}}});
        assert_eq!(object(text).map(Value::Object), Some(expected));
        for wrong in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"a": 1, "\u0061": 2}"#,
            r#"{"a": [{"b": {"c": 1, "d": 2, "c": 1}}]}"#,
            "[]",
            "{",
            "{} {}",
            "",
        ] {
            assert_eq!(object(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
