//! The reasons why a certificate does not identify a TPP.

use super::NotDer;
use portvakt_base::clock::Timestamp;
use portvakt_interface::Reason;
use std::borrow::Cow;

/// The reason why a certificate does not identify a TPP. The texts are for the operator; the caller gets the text of [`Self::reason`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    /// CRT-1, CRT-10: the certificate cannot be read.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// CRT-1: the certificate has another spelling than that of DER.
    #[error(transparent)]
    NotDer(NotDer),
    /// SIG-5: the certificate's key is not accepted.
    #[error("{0}")]
    Weak(String),
    /// CRT-2, CRT-9, CRT-10: the certificate does not chain to an anchor.
    #[error("{0}")]
    Untrusted(String),
    /// CRT-2, CRT-10: no valid path leads from the certificate to an anchor.
    #[error(transparent)]
    Path(PathFault),
    /// CRT-10: the certificate is a CA's.
    #[error("it is the certificate of a CA")]
    OfCa,
    /// CRT-2: a certificate has expired.
    #[error("expired at {}", .0.unix())]
    Expired(Timestamp, Member),
    /// CRT-2: a certificate is not valid yet.
    #[error("not valid before {}", .0.unix())]
    NotYetValid(Timestamp, Member),
    /// CRT-3: the certificate is not an eIDAS certificate of an accepted type.
    #[error("{0}")]
    WrongType(&'static str),
    /// CRT-3: a trusted list does not vouch for the certificate as one of its type.
    #[error("{0}")]
    Unqualified(&'static str),
    /// CRT-2, CRT-13: a trusted list names the nearest issuer that the lists know, and grants it nothing.
    #[error(
        "a trusted list names a CA of its chain, and grants it no service for seals or web sites: it was withdrawn, is for signatures alone, or is left out"
    )]
    Ungranted,
    /// CRT-4: the certificate has no PSD2 identity.
    #[error("{0}")]
    NotPsd2(Cow<'static, str>),
}

/// The member of a chain that a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// The TPP's certificate.
    Leaf,
    /// A certificate above it.
    Above,
}

impl Member {
    /// The member at this depth of a chain.
    pub(super) const fn at(depth: usize) -> Self {
        match depth {
            0 => Self::Leaf,
            _ => Self::Above,
        }
    }
}

/// The reason why no path to an anchor is valid, as OpenSSL finds it. `Display` is for the operator, because a depth tells of the anchors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} (at depth {depth})")]
pub struct PathFault {
    /// OpenSSL's text.
    pub(super) why: &'static str,
    /// OpenSSL's number of it.
    pub(super) number: i32,
    /// The depth of the certificate: 0 is the TPP's.
    pub(super) depth: u32,
}

impl PathFault {
    /// The cause, for the caller (ERR-10). It names no certificate of the gateway's.
    pub const fn for_caller(&self) -> &'static str {
        // The numbers of x509_vfy.h, which never change.
        match self.number {
            2 | 20 | 21 => {
                "no trust anchor of this environment issued it, nor an intermediate certificate that the gateway has or the header adds"
            }
            18 => "it is signed with its own key, and is no trust anchor of this environment",
            19 => "its chain ends at a root that is no trust anchor of this environment",
            7 => "the signature of its issuer over it, or over one above it, does not verify",
            25 => "a CA above it may not have so many CAs below it (path length)",
            24 | 32 | 79 => {
                "a certificate above it is not that of a CA that may issue certificates"
            }
            34 => "it, or one above it, has a critical extension that is not known here",
            47 | 48 => "its names are not those that a CA above it may certify (name constraints)",
            66 | 67 => "a key in its chain is too short",
            68 => "it, or one above it, is signed with MD5 or SHA-1",
            22 => "its chain is too long",
            _ => "its chain is not valid by RFC 5280",
        }
    }
}

impl CertificateFault {
    /// Whether the chain leads to an anchor, and what trusted lists say of it refuses the certificate.
    pub const fn is_by_lists(&self) -> bool {
        matches!(self, Self::Unqualified(_) | Self::Ungranted)
    }

    /// The refusal reason for the caller.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Malformed(_) | Self::NotDer(_) => Reason::CertificateMalformed,
            Self::Weak(_) => Reason::CertificateWeak,
            Self::Untrusted(_) | Self::Path(_) | Self::OfCa | Self::Ungranted => {
                Reason::CertificateUntrusted
            }
            Self::Expired(..) => Reason::CertificateExpired,
            Self::NotYetValid(..) => Reason::CertificateNotYetValid,
            Self::WrongType(_) | Self::Unqualified(_) => Reason::CertificateWrongType,
            Self::NotPsd2(_) => Reason::CertificateNotPsd2,
        }
    }
}
