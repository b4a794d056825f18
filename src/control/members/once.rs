//! Parses JSON and finds duplicate members at any depth.
//!
//! serde_json silently keeps the last duplicate. Deliberately not here: the meaning of members.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::{cell::RefCell, collections::BTreeSet, fmt};

/// The most duplicates that are named; one is enough to refuse a body.
const MOST_NAMED: usize = 16;

/// The most characters of a name that are repeated.
const MAX_NAME: usize = 64;

/// A value, and the paths of its duplicate members: names joined by dots, without indices of arrays.
pub(super) fn parse(bytes: &[u8]) -> serde_json::Result<(Value, BTreeSet<String>)> {
    let doubled = RefCell::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Once {
        path: "",
        doubled: &doubled,
    }
    .deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, doubled.into_inner()))
}

/// Reads one value; `path` is its position.
#[derive(Clone, Copy)]
struct Once<'p> {
    path: &'p str,
    doubled: &'p RefCell<BTreeSet<String>>,
}

impl Once<'_> {
    fn path_of(&self, name: &str) -> String {
        let name: String = name.chars().take(MAX_NAME).collect();
        match self.path {
            "" => name,
            path => format!("{path}.{name}"),
        }
    }

    fn note(&self, path: String) {
        let mut doubled = self.doubled.borrow_mut();
        if doubled.len() < MOST_NAMED {
            doubled.insert(path);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(self)? {
            list.push(element);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = self.path_of(&name);
            let inner = Once {
                path: &path,
                doubled: self.doubled,
            };
            let value = members.next_value_seed(inner)?;
            if object.insert(name, value).is_some() {
                self.note(path);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled(text: &str) -> Vec<String> {
        parse(text.as_bytes()).unwrap().1.into_iter().collect()
    }

    #[test]
    fn duplicate_members_are_named() {
        let table: [(&str, &[&str]); 8] = [
            (r#"{"a":1,"b":[1,1],"A":2}"#, &[]),
            (r#"{"a":1,"a":1}"#, &["a"]),
            (r#"{"a":1,"a":1,"a":null}"#, &["a"]),
            (r#"{"a":1,"\u0061":2,"b":1,"b":{}}"#, &["a", "b"]),
            (r#"{"a":{"b":{"c":1,"c":2}}}"#, &["a.b.c"]),
            (r#"{"a":[[{"b":1}],{"b":1,"b":2}]}"#, &["a.b"]),
            (r#"{"a":[{"b":1},{"b":1}]}"#, &[]),
            (r#"[{"":1,"":2}]"#, &[""]),
        ];
        for (text, expected) in table {
            assert_eq!(doubled(text), expected, "{text}");
        }
        let long = "n".repeat(100);
        assert_eq!(
            doubled(&format!(r#"{{"{long}":1,"{long}":1}}"#)),
            [&long[..MAX_NAME]]
        );
        let many: String = (0..100).map(|n| format!(r#""{n}":1,"{n}":1,"#)).collect();
        assert_eq!(doubled(&format!("{{{many}\"x\":1}}")).len(), MOST_NAMED);
    }

    #[test]
    fn values_are_those_of_serde_json() {
        for text in [
            r#"{"a":[1,-1,1.5,1e400,null,true,"\u00e6"],"b":{"c":{}}}"#,
            r#"{"a":18446744073709551615,"b":0.1}"#,
            "[]",
            "7",
            "{",
            "{}x",
            "{\"a\":\"\\ud800\"}",
        ] {
            let expected = serde_json::from_str::<Value>(text).ok();
            let found = parse(text.as_bytes()).ok().map(|(value, _)| value);
            assert_eq!(found, expected, "{text}");
        }
        let deep = [b"{\"a\":".to_vec(), b"[".repeat(60_000)].concat();
        assert!(parse(&deep).is_err());
    }
}
