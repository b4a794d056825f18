//! Members that a rule reads: the expected string or object, or a value of another type.

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
    /// The member is absent.
    #[default]
    Absent,
    /// A decoded string.
    Text(Cow<'a, str>),
    /// A value of another type.
    Other(JsonKind),
}

/// A member that should be an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ObjectMember<T> {
    /// The member is absent.
    #[default]
    Absent,
    /// An object.
    Object(T),
    /// A value of another type.
    Other(JsonKind),
}
