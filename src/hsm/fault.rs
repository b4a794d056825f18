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
    pub(crate) class: Class,
}

/// What follows from a fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The call fails. Another session would fail, too.
    Call,
    /// Sessions, or the library, must be opened again.
    Outage,
    /// The signature is not one by the key: the key is not trusted until the probe has verified one.
    Signature,
}

impl LoadFault {
    pub(crate) fn new(part: Part, text: impl Into<String>) -> Self {
        Self {
            part,
            text: text.into(),
            class: Class::Call,
        }
    }

    pub(crate) fn outage(text: impl Into<String>) -> Self {
        Self {
            class: Class::Outage,
            ..Self::new(Part::Token, text)
        }
    }

    /// The fault of a signature that does not verify by the certificate.
    pub(crate) fn of_signature() -> Self {
        Self {
            class: Class::Signature,
            ..Self::new(
                Part::Label,
                "the signature of the token does not verify by the certificate: the key is not that of the certificate (correct the label, or name the certificate of this key), or the module returns wrong signatures",
            )
        }
    }

    /// The fault of a login; `None` if the token is logged in. A fault of the PIN says that this login must not be tried again: the token has
    /// counted the PIN as wrong, or does not say whether it has.
    pub(crate) fn of_login(error: Error) -> Option<Self> {
        let Error::Pkcs11(reason, _) = &error else {
            return Some(Self::doubtful(&error));
        };
        match *reason {
            RvError::UserAlreadyLoggedIn => None,
            reason if is_of_the_pin(reason) => Some(Self::new(
                Part::Pin,
                format!(
                    "the token refuses the PIN ({reason:?}): correct it, or unlock the token and restart; this PIN is not tried again before a restart"
                ),
            )),
            reason if is_before_the_pin(reason) => Some(error.into()),
            _ => Some(Self::doubtful(&error)),
        }
    }

    fn doubtful(error: &Error) -> Self {
        let text = format!(
            "the login failed, and the token does not say whether it counted the PIN as wrong ({}): find out, then restart; this PIN is not tried again before a restart",
            shown(error)
        );
        Self::new(Part::Pin, text)
    }

    pub(crate) fn is_outage(&self) -> bool {
        self.class == Class::Outage
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

/// Whether a login failed before the token judged the PIN: the session or the token is lost.
const fn is_before_the_pin(reason: RvError) -> bool {
    matches!(
        reason,
        RvError::CryptokiNotInitialized
            | RvError::DeviceRemoved
            | RvError::SessionClosed
            | RvError::SessionHandleInvalid
            | RvError::TokenNotPresent
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

#[cfg(test)]
mod tests {
    use super::*;
    use cryptoki::context::Function;

    /// A login is tried again only where it is certain that the token did not judge the PIN.
    #[test]
    fn logins_that_are_not_tried_again() {
        let of = |reason| LoadFault::of_login(Error::Pkcs11(reason, Function::Login));
        for reason in [
            RvError::PinIncorrect,
            RvError::PinLocked,
            RvError::GeneralError,
            RvError::FunctionFailed,
            RvError::DeviceError,
            RvError::VendorDefined(1),
        ] {
            let fault = of(reason).unwrap();
            assert_eq!(fault.part, Part::Pin, "{reason:?}");
            assert!(!fault.is_outage(), "{reason:?}");
        }
        for reason in [RvError::SessionHandleInvalid, RvError::TokenNotPresent] {
            assert!(of(reason).unwrap().is_outage(), "{reason:?}");
        }
        assert!(of(RvError::UserAlreadyLoggedIn).is_none());
    }
}
