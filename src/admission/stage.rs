//! The checks of the pipeline, by name and in their order.

macro_rules! stages {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// A check of the pipeline, in its order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Stage { $($(#[$doc])* $variant),+ }

        impl Stage {
            /// Every stage, in the order of the pipeline.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in logs.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The name with the punctuation of a member of a JSON object that is not the first.
            pub const fn member(self) -> &'static str {
                match self { $(Self::$variant => concat!(",\"", $name, "\":")),+ }
            }
        }
    };
}

stages! {
    /// Path and method.
    Match = "match",
    /// Framing and headers.
    Envelope = "envelope",
    /// The query.
    Query = "query",
    /// The Date header.
    Date = "date",
    /// The rate of the address.
    AddressRate = "address-rate",
    /// The certificate.
    Certificate = "certificate",
    /// The role that it carries.
    Role = "role",
    /// The signature.
    Signature = "signature",
    /// The rate of the TPP.
    TppRate = "tpp-rate",
    /// Whether the TPP is registered.
    Register = "register",
    /// Whether the certificate is revoked.
    Revocation = "revocation",
    /// The host that TPP-Redirect-URI names.
    Redirect = "redirect",
    /// The complete body.
    Body = "body",
    /// The digest of the body.
    Digest = "digest",
    /// The members of the body.
    Payload = "payload",
    /// The PSU's consent and session.
    Sca = "sca",
    /// The request id and the quota.
    Claim = "claim",
}

impl Stage {
    /// The checks whose time is measured, in the order of the pipeline.
    pub fn timed() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|stage| stage.is_timed())
    }

    /// Whether the time of the check is measured. A check that only compares takes less time than reading the clock: its time is added to
    /// the next measured check.
    pub const fn is_timed(self) -> bool {
        matches!(
            self,
            Self::Match
                | Self::Envelope
                | Self::Certificate
                | Self::Signature
                | Self::Revocation
                | Self::Body
                | Self::Payload
                | Self::Sca
                | Self::Claim
        )
    }
}
