//! Members that a rule reads: the string or the object that it expects, or another value.

use std::{borrow::Cow, fmt};

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonKind {
    Text,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a string",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Null => "null",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// A member that should be a string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum TextMember<'a> {
    /// No such member.
    #[default]
    Absent,
    /// A string, decoded.
    Text(Cow<'a, str>),
    /// Something else.
    Other(JsonKind),
}

/// A member that should be an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ObjectMember<T> {
    /// No such member.
    #[default]
    Absent,
    /// An object, as it was read.
    Object(T),
    /// Something else.
    Other(JsonKind),
}
