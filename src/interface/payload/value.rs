//! What stands where a rule looks: the string or the object that it expects, or something else.

use std::{borrow::Cow, fmt};

/// What a value is, where no string was found.
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

/// What stands where a string is expected.
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

/// What stands where an object is expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ObjectMember<T> {
    /// No such member.
    #[default]
    Absent,
    /// An object, with what is known of it.
    Object(T),
    /// Something else.
    Other(JsonKind),
}
