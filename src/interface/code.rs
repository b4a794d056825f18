//! The closed vocabulary of the member `code` of an error body (ERR-3).
//!
//! The vocabulary is the interface's: a [`Reason`](super::Reason) and its message say more than a code can.

macro_rules! codes {
    ($($variant:ident = $text:literal),+ $(,)?) => {
        /// A code of the interface (§Errors, codes in tppMessages; PERIOD_INVALID; REFERENCE_MIX_INVALID).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`")] $variant),+
        }

        impl Code {
            /// Every code, in the order of the interface.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as it stands in a body.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}

codes! {
    SystemError = "SYSTEM_ERROR",
    BadRequest = "BAD_REQUEST",
    Forbidden = "FORBIDDEN",
    NotFound = "NOT_FOUND",
    Conflict = "CONFLICT",
    HttpHeaderRequired = "HTTP_HEADER_REQUIRED",
    QueryParameterRequired = "QUERY_PARAMETER_REQUIRED",
    ScaNotFound = "SCA_NOT_FOUND",
    ScaExpired = "SCA_EXPIRED",
    ScaInvalid = "SCA_INVALID",
    FormatError = "FORMAT_ERROR",
    ResourceUnknown = "RESOURCE_UNKNOWN",
    PsuCredentialsInvalid = "PSU_CREDENTIALS_INVALID",
    ConsentUnknown = "CONSENT_UNKNOWN",
    ConsentInvalid = "CONSENT_INVALID",
    ConsentExpired = "CONSENT_EXPIRED",
    AccessExceeded = "ACCESS_EXCEEDED",
    ProductUnknown = "PRODUCT_UNKNOWN",
    ProductInvalid = "PRODUCT_INVALID",
    KidMissing = "KID_MISSING",
    KidInvalid = "KID_INVALID",
    PaymentFailed = "PAYMENT_FAILED",
    ExecutionDateInvalid = "EXECUTION_DATE_INVALID",
    PeriodInvalid = "PERIOD_INVALID",
    ReferenceMixInvalid = "REFERENCE_MIX_INVALID",
}
