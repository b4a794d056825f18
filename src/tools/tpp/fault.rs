//! What can go wrong on a TPP's side.
//!
//! Invariant: no variant holds anything of a private key or of a body.

use crate::tools::input::InputFault;
use crate::tools::saved::SavedFault;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a request could not be signed or sent.
#[derive(Debug, thiserror::Error)]
pub enum TppFault {
    /// A file that was named cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The certificate is no PEM or DER of an X.509 certificate.
    #[error("the certificate cannot be read: PEM with one X.509 certificate is wanted")]
    Certificate,
    /// The key is no RSA private key in PEM (PKCS#8 or PKCS#1, not encrypted).
    #[error(
        "the key cannot be read: PEM with an RSA private key is wanted, PKCS#8 or PKCS#1, not encrypted"
    )]
    Key,
    /// Key and certificate are not of one pair.
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    /// The certificate's issuer cannot be written as RFC 2253 text (SIG-4).
    #[error("the certificate's issuer name cannot be written out")]
    Issuer,
    /// The method is no HTTP method token.
    #[error("{0:?} is no HTTP method")]
    Method(String),
    /// The request target or URL is not of a kind that can be signed and sent as it is.
    #[error(
        "{0:?} is no target to sign: https://host/path?query is wanted, visible ASCII, no fragment"
    )]
    Target(String),
    /// The header's name or value cannot stand in a request.
    #[error("the header {0:?} cannot be sent: a token, a colon and a value on one line is wanted")]
    Header(String),
    /// The date lies before 1970 or after 9999.
    #[error("the time is not one that a Date header can hold")]
    Date,
    /// The RSA operation failed.
    #[error("the signature could not be made")]
    Signing,
    /// The HTTP client would send another target than the one that was signed.
    #[error("the HTTP client would send {sent:?} instead of the signed target: use --curl")]
    TargetRewritten {
        /// What it would send.
        sent: String,
    },
    /// The request could not be sent, or no answer came.
    #[error("no answer: {}", causes(.0))]
    Client(#[from] reqwest::Error),
    /// The answer is larger than the tool reads.
    #[error("the answer is over {limit} bytes")]
    AnswerTooLarge {
        /// The most that is read, in bytes.
        limit: usize,
    },
    /// A saved request, an answer or a certificate cannot be read.
    #[error(transparent)]
    Input(#[from] InputFault),
    /// The input holds no request, or no answer.
    #[error("{}: {fault}", crate::tools::input::name(path))]
    Saved {
        /// The input.
        path: PathBuf,
        /// What it is instead.
        fault: SavedFault,
    },
    /// Neither `--cert` nor the message names a certificate, or it is none.
    #[error("there is no certificate to verify with: {0}")]
    NoCertificate(String),
    /// Standard input or output failed.
    #[error(transparent)]
    Terminal(#[from] std::io::Error),
}

impl TppFault {
    /// The status of the program: 2 for an input that cannot be verified at all, 1 for everything else.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) | Self::Saved { .. } | Self::NoCertificate(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// The fault with those beneath it: the reason of a failed connection is never the first.
fn causes(fault: &dyn std::error::Error) -> String {
    let mut text = fault.to_string();
    let mut beneath = fault.source();
    while let Some(cause) = beneath {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        beneath = cause.source();
    }
    text
}
