//! The query parameters of an operation, as data (QRY-1, QRY-4).

/// A query parameter that an operation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, in its letter case.
    pub name: String,
    /// The form of its values.
    pub kind: ParameterKind,
    /// Whether a request without it is refused (QRY-4).
    pub required: bool,
}

impl Parameter {
    /// A parameter that may be left out.
    pub fn new(name: &str, kind: ParameterKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            required: false,
        }
    }

    /// The same, but it must stand.
    pub fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }
}

super::named::named! {
    /// The form of a parameter's values, and their meaning to the rules: an operation has at most one parameter
    /// each of the kinds `date-from`, `date-to`, `offset` and `limit`.
    ParameterKind {
        /// A date.
        Date = "date",
        /// The first day of a period (QRY-2, QUO-8).
        DateFrom = "date-from",
        /// The last day of a period (QRY-2).
        DateTo = "date-to",
        /// An int32 of at least 0: how many entries are skipped (QUO-13).
        Offset = "offset",
        /// An int32 of at least 1: how many entries are asked for (QUO-13).
        Limit = "limit",
        /// true or false.
        Boolean = "boolean",
        /// booked, pending, both or all.
        BookingStatus = "booking-status",
        /// Anything.
        Text = "text",
    }
}

impl ParameterKind {
    /// Whether an operation can have only one parameter of this kind.
    pub const fn is_single(self) -> bool {
        matches!(
            self,
            Self::DateFrom | Self::DateTo | Self::Offset | Self::Limit
        )
    }
}
