//! Faults of the TPP's side.
//!
//! Invariant: no variant contains any part of a private key or a body.

use crate::causes;
use crate::config::ConfigFaults;
use crate::tools::input::InputFault;
use crate::tools::saved::SavedFault;
use std::path::PathBuf;
use std::process::ExitCode;

/// The reason why a request could not be signed or sent.
#[derive(Debug, thiserror::Error)]
pub enum TppFault {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The certificate is not an X.509 certificate in PEM or DER.
    #[error("the certificate cannot be read: expected PEM with one X.509 certificate")]
    Certificate,
    /// The key is not an RSA private key in PEM (PKCS#8 or PKCS#1, not encrypted).
    #[error(
        "the key cannot be read: expected PEM with an RSA private key, PKCS#8 or PKCS#1, not encrypted"
    )]
    Key,
    /// Key and certificate are not a pair.
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    /// The certificate's issuer cannot be written as RFC 2253 text (SIG-4).
    #[error("the certificate's issuer name cannot be written out")]
    Issuer,
    /// The method is not an HTTP token.
    #[error("{0:?} is not an HTTP method")]
    Method(String),
    /// The request target or URL cannot be signed and sent unchanged.
    #[error(
        "{0:?} is not a target to sign; expected https://host/path?query in visible ASCII without a fragment"
    )]
    Target(String),
    /// The header's name or value is invalid.
    #[error("the header {0:?} cannot be sent: expected a token, a colon and a value on one line")]
    Header(String),
    /// The date is before 1970 or after 9999.
    #[error("the time is not one that a Date header can hold")]
    Date,
    /// The RSA operation failed.
    #[error("the signature could not be made")]
    Signing,
    /// The HTTP client would change the signed target.
    #[error("the HTTP client would send {sent:?} instead of the signed target: use --curl")]
    TargetRewritten {
        /// The target that the client would send.
        sent: String,
    },
    /// The HTTP client cannot be made, such as without CA certificates of the system.
    #[error(
        "no HTTP client ({}): install the CA certificates of the system (package ca-certificates), or name the server's CA with --cacert",
        causes::describe(.0)
    )]
    NoClient(#[source] reqwest::Error),
    /// The request could not be sent, or there was no answer.
    #[error("no answer: {}", causes::describe(.0))]
    Client(#[from] reqwest::Error),
    /// The answer is larger than the tool reads.
    #[error("the answer is over {limit} bytes")]
    AnswerTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A saved message or a certificate cannot be read.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// The input contains no request, or no answer.
    #[error("{}: {fault}", crate::tools::input::name(path))]
    Saved {
        /// The input.
        path: PathBuf,
        /// The reason.
        fault: SavedFault,
    },
    /// There is no certificate that is trusted.
    #[error("there is no certificate to verify with: {0}")]
    NoCertificate(String),
    /// The configuration was refused.
    #[error("{0}")]
    Config(ConfigFaults),
    /// Standard input or output failed.
    #[error(transparent)]
    Terminal(#[from] std::io::Error),
}

impl TppFault {
    /// The exit status: 2 for an unusable input of `verify`, 1 for every other fault.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) | Self::Saved { .. } | Self::NoCertificate(_) | Self::Config(_) => {
                ExitCode::from(2)
            }
            _ => ExitCode::FAILURE,
        }
    }
}
