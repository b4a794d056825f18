//! The meaning of each reason and its remedy: the text of `portvakt explain REASON` and of docs/refusals.md.
//!
//! The guide says more than an answer can, and depends on no request. A reason without a guide does not compile.

// The text of one reason.
mod entry;
// One file for each group of reasons.
mod caller;
mod request;
mod service;

pub use entry::Guide;

use super::Reason;
use caller::{certificate, registration, signing};
use request::{headers, payload, query, transport};
use service::{failure, state};
use std::fmt::Write;

impl Reason {
    /// The reason with this slug.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.slug() == slug)
    }

    /// Its meaning and its remedy.
    pub const fn guide(self) -> Guide {
        match self {
            Self::OperationUnknown
            | Self::MethodNotAllowed
            | Self::ProductUnknown
            | Self::MediaTypeUnsupported
            | Self::NotAcceptable
            | Self::BodyTooLarge
            | Self::MalformedRequest
            | Self::ExpectationFailed
            | Self::BodyUnexpected
            | Self::RequestTimeout
            | Self::HeadersTooLarge => transport(self),
            Self::HeaderMissing
            | Self::HeaderMalformed
            | Self::CorporateIdMissing
            | Self::HeaderDuplicated
            | Self::DateSkewed
            | Self::DigestMismatch
            | Self::DigestUnsupported => headers(self),
            Self::SignatureMissing
            | Self::SignatureMalformed
            | Self::SignatureKeyMismatch
            | Self::SignatureAlgorithmUnsupported
            | Self::SignatureCoverage
            | Self::SignatureMismatch => signing(self),
            Self::CertificateMalformed
            | Self::CertificateUntrusted
            | Self::CertificateExpired
            | Self::CertificateNotYetValid
            | Self::CertificateWeak
            | Self::CertificateWrongType
            | Self::CertificateNotPsd2
            | Self::CertificateRevoked => certificate(self),
            Self::CertificateIdentityMismatch
            | Self::RoleMissing
            | Self::TppNotRegistered
            | Self::TppBlocked => registration(self),
            Self::ScaRequired
            | Self::AccountUnknown
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::RequestReplayed => state(self),
            Self::HistoryTooOld
            | Self::QueryMalformed
            | Self::PeriodInverted
            | Self::QueryMissing => query(self),
            Self::PayloadMalformed | Self::PayloadInvalid => payload(self),
            Self::UpstreamError
            | Self::UpstreamUnreachable
            | Self::UpstreamTimeout
            | Self::OutcomeUnknown
            | Self::RegisterStale
            | Self::RevocationUnavailable
            | Self::Overloaded
            | Self::TooManyAtOnce
            | Self::StateUnavailable
            | Self::Internal => failure(self),
        }
    }
}

/// docs/refusals.md: every reason, in the order of the rules.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Refusals\n\n\
         Every reason that an answer of the gateway can give, in the order of the rules. The reason is the member `reason`\n\
         of the answer and of each of its faults, the field `reason` of the log line and the label of the metric.\n\
         `portvakt explain REASON` prints the same. Made from the table of reasons; `PORTVAKT_BLESS=1 make test` writes it anew.\n",
    );
    for reason in Reason::ALL {
        // A reader of Markdown takes a placeholder such as <NCA> for a tag, and hides it.
        let guide = describe(*reason).replace('<', "\\<");
        // Writing to a String cannot fail.
        let _ = write!(text, "\n## {}\n\n{guide}", reason.slug());
    }
    text
}

/// The guide to one reason, in Markdown.
pub fn describe(reason: Reason) -> String {
    let Guide {
        rules,
        when,
        remedy,
        example,
    } = reason.guide();
    let (status, title) = (reason.status(), reason.title());
    let code = reason.code().map_or_else(
        || "with `_links` and no code".to_owned(),
        |code| format!("`{}`", code.as_str()),
    );
    format!(
        "{title}\n\n- **Answer:** {status} {code} ({rules})\n- **When:** {when}\n- **What to do:** {remedy}\n- **Example:** {example}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs, path::Path};

    #[test]
    fn docs_refusals_is_what_the_table_says() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/refusals.md");
        if env::var_os("PORTVAKT_BLESS").is_some() {
            fs::write(&path, markdown()).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == markdown(),
            "docs/refusals.md is not what the table says: PORTVAKT_BLESS=1 make test"
        );
    }

    #[test]
    fn a_slug_names_its_reason() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_slug(reason.slug()), Some(*reason));
        }
        assert_eq!(Reason::from_slug("nothing"), None);
    }
}
