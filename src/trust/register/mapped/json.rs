//! The records of a JSON file: one at a time is in memory.

use super::{
    fault::MappedFault,
    member::{Member, Origin, Texts},
    once::OnceEach,
};
use serde::{
    Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{fmt, io::Read};

/// Reads each record, in order.
pub(super) fn each(
    reader: impl Read,
    records: Option<&str>,
    origins: &[(Member, Origin)],
    take: &mut impl FnMut(&Texts),
) -> Result<(), MappedFault> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut list = List {
        origins,
        seen: vec![false; origins.len()],
        take,
    };
    match records {
        None => list.deserialize(&mut json)?,
        Some(records) => Outer {
            records,
            list: &mut list,
        }
        .deserialize(&mut json)?,
    }
    json.end()?;
    let unseen = list.seen.iter().zip(origins).find(|(seen, _)| !**seen);
    match unseen {
        Some((_, (_, Origin::Column(path)))) => Err(MappedFault::NoMember(path.clone())),
        Some((_, (_, Origin::Constant(_)))) | None => Ok(()),
    }
}

/// The list of records.
struct List<'a, F> {
    origins: &'a [(Member, Origin)],
    /// Whether a record has the member, for each origin: a misspelt name must not read as an absent value.
    seen: Vec<bool>,
    take: &'a mut F,
}

impl<'de, F: FnMut(&Texts)> DeserializeSeed<'de> for &mut List<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&Texts)> Visitor<'de> for &mut List<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<(), A::Error> {
        while let Some(OnceEach(record)) = records.next_element()? {
            let mut of_record: Texts = Vec::new();
            for ((member, origin), seen) in self.origins.iter().zip(&mut self.seen) {
                of_record.push(match origin {
                    Origin::Constant(text) => {
                        *seen = true;
                        vec![text.clone()]
                    }
                    Origin::Column(path) => {
                        let value = inner(&record, path).map_err(de::Error::custom)?;
                        *seen |= value.is_some();
                        let is_list = matches!(member, Member::Roles | Member::Countries);
                        texts(value, is_list)
                            .map_err(|what| de::Error::custom(format!("{path:?} is {what}")))?
                    }
                });
            }
            (self.take)(&of_record);
        }
        Ok(())
    }
}

/// The object around the list.
struct Outer<'a, 'l, F> {
    records: &'a str,
    list: &'a mut List<'l, F>,
}

impl<'de, F: FnMut(&Texts)> DeserializeSeed<'de> for Outer<'_, '_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&Texts)> Visitor<'de> for Outer<'_, '_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with the list {:?}", self.records)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut is_found = false;
        while let Some(name) = members.next_key::<String>()? {
            if name != self.records {
                members.next_value::<IgnoredAny>()?;
            } else if is_found {
                let text = format!("the member {:?} stands twice", self.records);
                return Err(de::Error::custom(text));
            } else {
                members.next_value_seed(&mut *self.list)?;
                is_found = true;
            }
        }
        if is_found {
            return Ok(());
        }
        let text = format!("there is no member {:?}", self.records);
        Err(de::Error::custom(text))
    }
}

/// The value at a path: the name of a member, with a dot before each inner one.
///
/// # Errors
/// A part of the path is neither an object nor null: it must not read as an absent value.
fn inner<'a>(record: &'a Map<String, Value>, path: &str) -> Result<Option<&'a Value>, String> {
    let mut names = path.split('.');
    let mut value = names.next().and_then(|name| record.get(name));
    for name in names {
        value = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(members)) => members.get(name),
            Some(_) => {
                return Err(format!(
                    "{path:?}: what stands before {name:?} is no object"
                ));
            }
        };
    }
    Ok(value)
}

/// The texts of a value; none of null and of an absent one.
///
/// # Errors
/// It is an object, or a list where one text is expected, or a list of something else than texts.
fn texts(value: Option<&Value>, is_list: bool) -> Result<Vec<String>, &'static str> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(values)) if is_list => {
            let texts = values.iter().map(text).collect::<Option<_>>();
            texts.ok_or("a list of something else than texts")
        }
        Some(Value::Array(_)) => Err("a list; one text is expected"),
        Some(value) => Ok(vec![text(value).ok_or("an object; a text is expected")?]),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
