//! The faults of a key in an HSM. No text repeats a PIN.

use cryptoki::error::{Error, RvError};
use portvakt_base::values;

values! {
    /// The use of a key.
    pub enum Purpose {
        /// TLS of the public listener.
        Listener = "listener",
        /// Signatures of answers (SIG-12).
        Answers = "answers",
        /// The client's key in TLS to the core.
        Upstream = "upstream",
    }
}

values! {
    /// Why no signature was made.
    pub enum Cause {
        /// Too many callers wait already.
        Busy = "busy",
        /// The token did not answer within the timeout.
        Timeout = "timeout",
        /// The token is known to be unavailable, so it was not asked, or it was lost during the call.
        Unavailable = "unavailable",
        /// The token answered with another error.
        Refused = "refused",
    }
}

/// The setting that a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The library.
    Module,
    /// The label of the token, or the token itself.
    Token,
    /// The PIN.
    Pin,
    /// The label of the key, or the key itself.
    Label,
}

/// A key cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct LoadFault {
    /// The setting that is to be changed.
    pub part: Part,
    /// What is wrong, and what to change.
    pub text: String,
    /// Whether sessions, or the library, must be opened again.
    pub(crate) is_outage: bool,
}

impl LoadFault {
    pub(crate) fn new(part: Part, text: impl Into<String>) -> Self {
        Self {
            part,
            text: text.into(),
            is_outage: false,
        }
    }

    pub(crate) fn outage(text: impl Into<String>) -> Self {
        Self {
            is_outage: true,
            ..Self::new(Part::Token, text)
        }
    }
}

/// An error by its names: the texts of the library are paragraphs of the standard.
pub(crate) fn shown(error: &Error) -> String {
    match error {
        Error::Pkcs11(reason, function) => format!("{function:?} returned {reason:?}"),
        other => other.to_string(),
    }
}

/// An error of a call.
impl From<Error> for LoadFault {
    fn from(error: Error) -> Self {
        match &error {
            Error::Pkcs11(reason, _) if is_of_the_pin(*reason) => Self::new(
                Part::Pin,
                format!(
                    "the token refuses the PIN ({reason:?}): correct it, or unlock the token; no further login is tried until the configuration is read again"
                ),
            ),
            Error::Pkcs11(reason, _) if is_of_the_request(*reason) => Self::new(
                Part::Label,
                format!("the token does not sign with this key: {}", shown(&error)),
            ),
            _ => Self::outage(format!("the token does not answer: {}", shown(&error))),
        }
    }
}

const fn is_of_the_pin(reason: RvError) -> bool {
    matches!(
        reason,
        RvError::PinIncorrect
            | RvError::PinInvalid
            | RvError::PinLenRange
            | RvError::PinLocked
            | RvError::PinExpired
            | RvError::UserPinNotInitialized
    )
}

/// Whether another session would get the same error.
const fn is_of_the_request(reason: RvError) -> bool {
    matches!(
        reason,
        RvError::DataInvalid
            | RvError::DataLenRange
            | RvError::KeyFunctionNotPermitted
            | RvError::KeySizeRange
            | RvError::KeyTypeInconsistent
            | RvError::MechanismInvalid
            | RvError::MechanismParamInvalid
            | RvError::FunctionNotSupported
    )
}
