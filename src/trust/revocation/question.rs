//! Questions to sources.

use super::{
    crl::{Scope, Signers},
    fetch::SourceUrl,
};
use aws_lc_rs::digest;
use portvakt_base::hex;
use std::sync::Arc;

/// A question to a source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// The OCSP status of one certificate (DER) of a CA.
    Ocsp {
        certificate: Arc<[u8]>,
        signers: Signers,
    },
    /// The CRL of a CA.
    Crl { signers: Signers, scope: Scope },
}

/// A question and the address of its source; `None` for a file of the configuration.
pub(super) type Key = (Option<SourceUrl>, Question);

impl Question {
    /// The file name of the copy on disk: a hash of the address and the question.
    pub(super) fn copy_name(&self, address: Option<&SourceUrl>) -> String {
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut add = |part: &[u8]| {
            hash.update(&part.len().to_be_bytes());
            hash.update(part);
        };
        add(address
            .map(ToString::to_string)
            .unwrap_or_default()
            .as_bytes());
        let suffix = match self {
            Self::Ocsp {
                certificate,
                signers,
            } => {
                add(signers.issuer_der());
                add(certificate);
                "ocsp"
            }
            Self::Crl { signers, scope } => {
                add(signers.issuer_der());
                add(&[u8::from(scope.of_ca)]);
                scope.points.iter().for_each(|point| add(point));
                "crl"
            }
        };
        format!("{}.{suffix}", hex::encode(hash.finish().as_ref()))
    }
}
