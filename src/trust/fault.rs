//! The reasons why a certificate does not identify a TPP.

use super::NotDer;
use crate::{clock::Timestamp, interface::Reason};

/// The reason why a certificate does not identify a TPP. The texts are for the operator; the caller gets the text of [`Self::reason`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// CRT-1, CRT-10: the certificate cannot be read.
    #[error("{0}")]
    Malformed(&'static str),
    /// CRT-1: the certificate has another spelling than that of DER.
    #[error(transparent)]
    NotDer(NotDer),
    /// SIG-5: the certificate's key is not accepted.
    #[error("{0}")]
    Weak(String),
    /// CRT-2, CRT-9, CRT-10: the certificate does not chain to an anchor.
    #[error("{0}")]
    Untrusted(String),
    /// CRT-2: the certificate, or one above it in the chain, has expired.
    #[error("expired at {}", .0.unix())]
    Expired(Timestamp),
    /// CRT-2: the certificate, or one above it in the chain, is not valid yet.
    #[error("not valid before {}", .0.unix())]
    NotYetValid(Timestamp),
    /// CRT-3: the certificate is not an eIDAS certificate of an accepted type.
    #[error("{0}")]
    WrongType(&'static str),
    /// CRT-4: the certificate has no PSD2 identity.
    #[error("{0}")]
    NotPsd2(&'static str),
}

impl CertificateFault {
    /// The refusal reason for the caller.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Malformed(_) | Self::NotDer(_) => Reason::CertificateMalformed,
            Self::Weak(_) => Reason::CertificateWeak,
            Self::Untrusted(_) => Reason::CertificateUntrusted,
            Self::Expired(_) => Reason::CertificateExpired,
            Self::NotYetValid(_) => Reason::CertificateNotYetValid,
            Self::WrongType(_) => Reason::CertificateWrongType,
            Self::NotPsd2(_) => Reason::CertificateNotPsd2,
        }
    }
}
