//! The faults of a name in DER, and the differences between two names.

/// The reason why bytes are not a Name in DER. RDNs are counted from 0, in the order of the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// The bytes are not a SEQUENCE, or other bytes follow the SEQUENCE.
    #[error("the name is not exactly one DER SEQUENCE")]
    NotASequence,
    /// An RDN is not a SET, is empty, or has an element that is not an attribute type with one value.
    #[error("RDN {rdn} of the name is not a SET of attributes")]
    Rdn {
        /// The index of the RDN.
        rdn: usize,
    },
    /// An attribute type is not an OBJECT IDENTIFIER in DER, or has an arc wider than 128 bits.
    #[error("an attribute type in RDN {rdn} of the name is not an OBJECT IDENTIFIER")]
    AttributeType {
        /// The index of the RDN.
        rdn: usize,
    },
}

/// The difference between the text in keyId and the certificate's issuer. The `Display` text tells a TPP's developer what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameMismatch {
    /// The text is not a name, or is longer than a name may be ([`MAX_TEXT`](super::MAX_TEXT)).
    #[error("the issuer cannot be read at byte {at}: {why}")]
    Unreadable {
        /// The offset in bytes from the start of the text.
        at: usize,
        /// The expected syntax at this offset.
        why: &'static str,
    },
    /// The names have different numbers of RDNs.
    #[error("the certificate's issuer has {expected} RDNs, the issuer in keyId {found}")]
    RdnCount {
        /// The number of RDNs of the certificate's issuer.
        expected: usize,
        /// The number of RDNs of the text.
        found: usize,
    },
    /// The text has the right RDNs in reverse order.
    #[error("the RDNs stand in reverse: RFC 2253 starts with the last")]
    Reversed,
    /// The first RDN that differs.
    #[error("RDN {position} of the issuer is {expected} in the certificate and {found} in keyId", position = .index.saturating_add(1))]
    Rdn {
        /// The index of the RDN, from 0, in RFC 2253 order. The message counts from 1.
        index: usize,
        /// The RDN of the certificate, in RFC 2253 form.
        expected: String,
        /// The RDN of the text, in RFC 2253 form.
        found: String,
    },
}

impl NameMismatch {
    /// The more informative of two mismatches; if both are equally informative, the first, because the first reading is the text that the
    /// TPP wrote.
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
