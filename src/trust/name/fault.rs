//! The faults of a name in DER, and the differences between two names.

use super::text;

/// Why bytes are not a Name in DER. RDNs are counted from 0, in the order of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// Not one SEQUENCE, or something stands after it.
    #[error("the name is not exactly one DER SEQUENCE")]
    NotASequence,
    /// Not a SET, or an empty one, or something in it is not a type with one value.
    #[error("RDN {rdn} of the name is not a SET of attributes")]
    Rdn {
        /// Which RDN.
        rdn: usize,
    },
    /// Not an OBJECT IDENTIFIER in DER, or one with an arc wider than 128 bits.
    #[error("an attribute type in RDN {rdn} of the name is not an OBJECT IDENTIFIER")]
    AttributeType {
        /// Which RDN.
        rdn: usize,
    },
}

/// How the text in keyId differs from the certificate's issuer. Its `Display` tells a TPP's developer what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameMismatch {
    /// The text is not a name, or too long for one ([`MAX_TEXT`](super::MAX_TEXT)).
    #[error("the issuer cannot be read at byte {at}: {why}")]
    Unreadable {
        /// Bytes from the start of the text.
        at: usize,
        /// What was expected there.
        why: &'static str,
    },
    /// The names have not as many RDNs.
    #[error("the certificate's issuer has {expected} RDNs, the issuer in keyId {found}")]
    RdnCount {
        /// RDNs of the certificate's issuer.
        expected: usize,
        /// RDNs of the text.
        found: usize,
    },
    /// The text has the right RDNs, the wrong way round.
    #[error("the RDNs stand in reverse: RFC 2253 starts with the last")]
    Reversed,
    /// The first RDN that differs.
    #[error("RDN {position} of the issuer is {expected} in the certificate and {found} in keyId", position = .index.saturating_add(1))]
    Rdn {
        /// Which RDN, from 0, in RFC 2253 order. The message counts from 1.
        index: usize,
        /// The certificate's, as RFC 2253 writes it.
        expected: String,
        /// The text's, in the same way.
        found: String,
    },
}

impl NameMismatch {
    /// The one of two mismatches that says more; the first if neither does, because the first reading is what the TPP wrote.
    pub(super) fn or_nearer(self, other: NameMismatch) -> NameMismatch {
        if other.nearness() > self.nearness() {
            other
        } else {
            self
        }
    }

    fn nearness(&self) -> u8 {
        match self {
            NameMismatch::Unreadable { .. } => 0,
            NameMismatch::RdnCount { .. } => 1,
            NameMismatch::Rdn { .. } => 2,
            NameMismatch::Reversed => 3,
        }
    }
}

impl From<text::Unreadable> for NameMismatch {
    fn from(fault: text::Unreadable) -> Self {
        NameMismatch::Unreadable {
            at: fault.at,
            why: fault.why,
        }
    }
}
